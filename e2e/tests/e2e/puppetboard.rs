//! Puppetboard as a client (R016, R299).

use anyhow::{Result, ensure};
use pdbmux_e2e::daemon::puppetboard;

use crate::world::World;
use crate::{Case, cases};

pub(crate) const CASES: &[Case] = cases![r016_r299_puppetboard_shows_the_nodes_of_both_backends];

fn r016_r299_puppetboard_shows_the_nodes_of_both_backends(world: &World) -> Result<()> {
    let board = puppetboard(&world.settings, &world.pdbmux)?;
    let (of_a, of_b) = ("web1.example.com", "app1.example.com");
    let count = world.query("nodes", &[])?.records()?.len();
    // `%2A` is all environments.
    for (path, shown) in [
        ("/".to_owned(), vec!["Puppetboard"]),
        ("/%2A/".to_owned(), vec!["Puppetboard", of_a]),
        (
            "/%2A/nodes".to_owned(),
            vec![of_a, of_b, "ünïcode.example.com", "quiet3.example.com"],
        ),
        ("/nodes".to_owned(), vec![of_a, of_b]),
        (format!("/node/{of_a}"), vec![of_a]),
        (format!("/node/{of_b}"), vec![of_b]),
        (
            format!("/node/{of_b}/facts/json"),
            vec!["only_in_b", "uptime_seconds", "pdbmux_source"],
        ),
        (
            "/%2A/facts".to_owned(),
            vec!["only_in_a", "only_in_b", "pdbmux_source"],
        ),
        ("/fact/site".to_owned(), vec!["site"]),
        (
            "/%2A/fact/site/json".to_owned(),
            vec![of_a, of_b, "staging1.example.com"],
        ),
        (
            "/%2A/fact/pdbmux_source/json".to_owned(),
            vec![of_a, of_b, "edge1.example.com"],
        ),
        (
            "/%2A/reports/json?length=100&start=0&draw=1".to_owned(),
            vec![of_a, of_b],
        ),
        (
            format!("/reports/{of_b}/json?length=10&start=0&draw=1"),
            vec![of_b],
        ),
        (
            "/metric/puppetlabs.puppetdb.population:name=num-nodes".to_owned(),
            vec!["Value"],
        ),
    ] {
        let answer = board.client.get(&path, &[])?;
        ensure!(
            answer.status == 200,
            "{path}: {} {}\n{}",
            answer.status,
            answer.body,
            board.process.tail()
        );
        for text in shown {
            ensure!(answer.body.contains(text), "{path} does not show {text}");
        }
    }
    let nodes = board.client.get("/%2A/nodes", &[])?.body;
    let rows = nodes.matches("<td><a href=\"/*/node/").count();
    ensure!(rows == count, "{rows} rows for {count} nodes");
    Ok(())
}
