//! Every read call of pypuppetdb, Puppetboard's library and many scripts' (R016).

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use pdbmux_e2e::estate::{Side, Strategy};
use pdbmux_e2e::http::{Answer, Client};

use crate::world::World;
use crate::{Case, cases};

pub(crate) const CASES: &[Case] = cases![r016_r240_every_read_call_answers_as_specified,];

/// Nodes that one backend alone holds.
const OF_A: &str = "web1.example.com";
const OF_B: &str = "app1.example.com";

/// What each call came back with.
type Said = BTreeMap<String, String>;

/// One run of the script against pdbmux and each backend serves all comparisons.
fn r016_r240_every_read_call_answers_as_specified(world: &World) -> Result<()> {
    let said = calls(world, &world.pdbmux.client)?;
    let a = calls(world, world.backend(Side::A))?;
    let b = calls(world, world.backend(Side::B))?;
    merged_calls_see_both_backends(world, &said, &a, &b)?;
    other_calls_see_the_first_backend(world, &said, &a)?;
    what_fails_here_fails_there_or_is_not_served(&said, &a, &b)
}

fn merged_calls_see_both_backends(world: &World, said: &Said, a: &Said, b: &Said) -> Result<()> {
    let nodes = world.estate.owners(Strategy::Freshness).count();
    let production = world
        .estate
        .nodes
        .iter()
        .filter(|node| {
            node.owner(Strategy::Freshness)
                .is_some_and(|owner| node.environment(owner) == "production")
        })
        .count();
    for (call, wanted) in [
        ("nodes", nodes),
        ("nodes with_status", nodes),
        ("nodes posted", nodes),
        ("facts kernel", nodes),
        ("facts kernel Linux", nodes),
        ("reports", union(world, "reports", &["hash"])?),
        (
            "events",
            union(world, "events", &["report", "resource_title"])?,
        ),
        (
            "event_counts certname",
            union(world, "events", &["certname"])?,
        ),
        ("event_counts resource", 2),
        ("event_counts containing_class", 1),
        ("aggregate_event_counts", 1),
        ("fact_names", fact_names(world)?),
        ("report logs", b["report logs"].parse()?),
        ("report events", b["report events"].parse()?),
        ("nodes page", 5),
        // Held twice is counted twice (R149, R307).
        ("nodes counted", sum(a, b, "nodes counted")?),
        ("reports total", sum(a, b, "reports total")?),
        ("metric", sum(a, b, "metric")?),
    ] {
        ensure!(
            said[call] == wanted.to_string(),
            "{call}: {}, wanted {wanted}",
            said[call]
        );
    }
    // Every owner's facts, and pdbmux's own in each node. A node that moved has stale facts
    // of its old environment, which the filter finds in the loser alone (R047).
    let facts = world.query("facts", &[])?.records()?.len();
    ensure!(said["facts"] == facts.to_string() && facts > nodes * 15);
    let of_production: usize = said["facts production"].parse()?;
    ensure!(of_production > production * 15 && of_production < facts);
    for (node, side) in [(OF_A, a), (OF_B, b)] {
        for call in ["", " fact", " reports"] {
            let call = format!("node {node}{call}");
            ensure!(said[&call] == side[&call], "{call}: {}", said[&call]);
        }
        let call = format!("node {node} facts");
        let own = side[&call].parse::<usize>()? + 1;
        ensure!(said[&call] == own.to_string(), "{call}: {}", said[&call]);
        let call = format!("catalog {node}");
        ensure!(said[&call] == node, "{call}: {}", said[&call]);
    }
    Ok(())
}

fn other_calls_see_the_first_backend(world: &World, said: &Said, a: &Said) -> Result<()> {
    for call in [
        "resources",
        "resources file",
        "resources production",
        "catalogs",
        "inventory",
        "edges",
        "factsets",
        "fact_contents",
        "fact_paths",
        "environments",
        "pql",
        "pql posted",
        "pql projection",
        "metric list",
    ] {
        ensure!(
            said[call] == a[call] && !said[call].starts_with("error"),
            "{call}: {}, the first backend says {}",
            said[call],
            a[call]
        );
    }
    // R242: a node that only the second has, has none here.
    ensure!(said[&format!("node {OF_B} resources")] == "0");
    // R243: the lower of both.
    let versions = world.rig.backends.each_ref().map(|one| one.version.clone());
    ensure!(versions.contains(&said["current_version"]), "{versions:?}");
    Ok(())
}

fn what_fails_here_fails_there_or_is_not_served(said: &Said, a: &Said, b: &Said) -> Result<()> {
    let failed = |said: &Said| -> BTreeSet<String> {
        said.iter()
            .filter(|(_, said)| said.starts_with("error"))
            .map(|(call, _)| call.clone())
            .collect()
    };
    let (ours, a, b) = (failed(said), failed(a), failed(b));
    // `server_time` is broken in pypuppetdb; a title with a slash is no path of a PuppetDB, and
    // its old metrics are switched off.
    let anywhere: BTreeSet<_> = a.intersection(&b).cloned().collect();
    let only_here: Vec<_> = ours.difference(&anywhere).map(String::as_str).collect();
    // A backend's status says nothing of the whole.
    ensure!(only_here == ["status"], "{only_here:?}");
    Ok(())
}

/// Runs the script against `server`.
fn calls(world: &World, server: &Client) -> Result<Said> {
    let (_, port) = server.base().rsplit_once(':').context("no port")?;
    let output = Command::new(world.settings.folder.join("venv/bin/python"))
        .arg(
            world
                .settings
                .repository
                .join("e2e/clients/pypuppetdb_calls.py"),
        )
        .args([port, OF_A, OF_B])
        .output()
        .context("pypuppetdb is not installed: run e2e/setup.sh")?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let lines = String::from_utf8(output.stdout)?;
    let pair = |line: &str| -> Result<(String, String)> {
        let (call, said) = line.split_once('\t').context("a line without a tab")?;
        Ok((call.to_owned(), said.to_owned()))
    };
    lines.lines().map(pair).collect()
}

/// How many records both backends have together, told apart by `identity`.
fn union(world: &World, entity: &str, identity: &[&str]) -> Result<usize> {
    let key = |answer: &Answer| -> Result<BTreeSet<String>> {
        answer
            .records()?
            .into_iter()
            .map(|record| {
                let parts: Result<Vec<_>> = identity.iter().map(|it| record.text(it)).collect();
                Ok(parts?.join(" "))
            })
            .collect()
    };
    let [a, b] = world.both(entity, &[])?;
    Ok(key(&a)?.union(&key(&b)?).count())
}

fn fact_names(world: &World) -> Result<usize> {
    let mut names = BTreeSet::from([crate::world::SOURCE.to_owned()]);
    for answer in &world.both("fact-names", &[])? {
        names.extend(answer.json::<Vec<String>>()?);
    }
    Ok(names.len())
}

fn sum(a: &Said, b: &Said, call: &str) -> Result<usize> {
    Ok(a[call].parse::<usize>()? + b[call].parse::<usize>()?)
}
