//! The traps of a migration, under `merge: exact`: a node that moved to the second backend has left
//! a copy in the first, as it was when it went.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use pdbmux_e2e::estate::{MOVED, ONLY_IN_B, Side, Strategy};
use pdbmux_e2e::http::Client;
use serde_json::Value;

use crate::exact_clients::exact;
use crate::world::{World, rows};
use crate::{Case, cases};

pub(crate) const CASES: &[Case] = cases![exact_what_a_moved_node_left_behind_counts_nowhere];

const FAILED: &str = r#"["=","latest_report_status","failed"]"#;
const POPULATION: &str = "/metrics/v2/read/puppetlabs.puppetdb.population:name=num-nodes";

fn exact_what_a_moved_node_left_behind_counts_nowhere(world: &World) -> Result<()> {
    let (union, daemon) = exact(world)?;
    let ours = &daemon.client;
    let old = world.backend(Side::A);

    // Its old copy failed, it did not.
    ensure!(names(old, "/nodes", FAILED)?.contains_key(MOVED));
    for (path, query) in [
        ("/nodes", FAILED.to_owned()),
        (
            "/facts",
            format!(r#"["and",["=","name","kernel"],["subquery","nodes",{FAILED}]]"#),
        ),
        ("", "nodes { latest_report_status = 'failed' }".to_owned()),
        (
            "",
            "facts { nodes { latest_report_status = 'failed' } and name = 'kernel' }".to_owned(),
        ),
        (
            "/reports",
            r#"["and",["=","latest_report?",true],["=","status","failed"]]"#.to_owned(),
        ),
    ] {
        let (got, wanted) = (names(ours, path, &query)?, names(&union, path, &query)?);
        ensure!(got == wanted, "{path} {query}: {got:?} for {wanted:?}");
        ensure!(
            !got.is_empty() && !got.contains_key(MOVED),
            "{query}: {got:?}"
        );
    }

    // The population has it once.
    let nodes = world.estate.owners(Strategy::Exact).count();
    let population: Value = ours.get(POPULATION, &[])?.json()?;
    ensure!(population["value"]["Value"] == nodes, "{population}");
    let count = r#"["extract",[["function","count"]]]"#;
    let counted = rows(&ours.query("nodes", &[("query", count)])?)?;
    ensure!(
        counted.len() == 1 && counted[0]["count"] == nodes,
        "{counted:?}"
    );

    // Event counts have it once: with all that happened to it, or with its own latest run.
    for (query, failures) in [
        (r#"["~","certname","."]"#, 1),
        (r#"["=","latest_report?",true]"#, 0),
    ] {
        let parameters = [("query", query), ("summarize_by", "certname")];
        let counts = rows(&ours.query("event-counts", &parameters)?)?;
        let of_it: Vec<_> = counts
            .iter()
            .filter(|row| row["subject"]["title"] == MOVED)
            .collect();
        ensure!(of_it.len() == 1, "{query}: {of_it:?}");
        ensure!(
            of_it[0]["failures"] == failures && of_it[0]["successes"] == 1,
            "{of_it:?}"
        );
    }

    // What it exports is there once, as it is now.
    let exported = r#"["and",["=","type","File"],["=","exported",true]]"#;
    ensure!(names(old, "/resources", exported)?.contains_key(MOVED));
    let got = names(ours, "/resources", exported)?;
    ensure!(got == names(&union, "/resources", exported)?, "{got:?}");
    ensure!(got.get(MOVED) == Some(&1), "{got:?}");

    // The environment that it moved to is known.
    let environments = rows(&ours.query("environments", &[])?)?;
    ensure!(
        environments.iter().any(|row| row["name"] == ONLY_IN_B),
        "{environments:?}"
    );
    Ok(())
}

/// How many rows a server answers for each certname, below the root of queries.
fn names(server: &Client, path: &str, query: &str) -> Result<BTreeMap<String, usize>> {
    let answer = server.get(&format!("/pdb/query/v4{path}"), &[("query", query)])?;
    ensure!(
        answer.status == 200,
        "{query}: {} {}",
        answer.status,
        answer.body
    );
    let mut names = BTreeMap::new();
    for row in rows(&answer)? {
        let certname = row["certname"].as_str().unwrap_or_default();
        *names.entry(certname.to_owned()).or_default() += 1;
    }
    Ok(names)
}
