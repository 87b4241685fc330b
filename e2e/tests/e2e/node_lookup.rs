//! node-lookup, which finds nodes by their facts, as a client (R299, R300).
//!
//! Where there is none, `clients/node_lookup.py` asks what it asks, so that this always asserts
//! (R301).

use std::collections::BTreeSet;
use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use pdbmux_e2e::estate::Strategy;

use crate::world::{SOURCE, World};
use crate::{Case, cases};

pub(crate) const CASES: &[Case] = cases![
    r016_r299_to_r301_nodes_of_both_backends_are_found_by_a_fact,
    r299_nodes_of_both_backends_are_found_by_a_facts_value,
    r083_r304_a_filter_on_the_source_fact_finds_nothing,
];

fn r016_r299_to_r301_nodes_of_both_backends_are_found_by_a_fact(world: &World) -> Result<()> {
    let by_name = [("query", r#"["=","name","site"]"#)];
    let mut wanted = BTreeSet::new();
    for (certname, owner) in world.estate.owners(Strategy::Freshness) {
        for record in world.backend(owner).query("facts", &by_name)?.records()? {
            if record.certname()? == certname {
                wanted.insert(format!("{certname} {}", record.text("value")?));
            }
        }
    }
    let found = lookup(world, &["site"])?;
    ensure!(found == wanted, "{found:?}, wanted {wanted:?}");
    ensure!(found.iter().any(|line| line.ends_with(" a")));
    ensure!(found.iter().any(|line| line.ends_with(" b")));
    Ok(())
}

fn r299_nodes_of_both_backends_are_found_by_a_facts_value(world: &World) -> Result<()> {
    let query = r#"["and",["=","name","kernel"],["=","value","Linux"]]"#;
    let mut wanted = BTreeSet::new();
    for answer in &world.both("facts", &[("query", query)])? {
        for record in answer.records()? {
            wanted.insert(format!("{} Linux", record.certname()?));
        }
    }
    let found = lookup(world, &["kernel", "Linux"])?;
    ensure!(found == wanted, "{found:?}, wanted {wanted:?}");
    Ok(())
}

fn r083_r304_a_filter_on_the_source_fact_finds_nothing(world: &World) -> Result<()> {
    let found = lookup(world, &[SOURCE])?;
    ensure!(found.is_empty(), "{found:?}");
    Ok(())
}

/// What it prints of a fact, and of a value of it if one is given.
fn lookup(world: &World, words: &[&str]) -> Result<BTreeSet<String>> {
    let program = program(world);
    let run = Command::new(&program)
        .args(words)
        .env("PUPPETDB_URL", world.pdbmux.client.base())
        .output()
        .with_context(|| format!("cannot run {}", program.display()))?;
    ensure!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
    let lines = String::from_utf8(run.stdout)?;
    Ok(lines.lines().map(str::to_owned).collect())
}

/// The one that is named, else the one that is installed, else the stand-in.
fn program(world: &World) -> PathBuf {
    if let Some(named) = env::var_os("PDBMUX_E2E_NODE_LOOKUP") {
        return named.into();
    }
    let folders = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&folders)
        .map(|folder| folder.join("node-lookup"))
        .find(|installed| installed.exists())
        .unwrap_or_else(|| {
            let clients = world.settings.repository.join("e2e/clients");
            clients.join("node_lookup.py")
        })
}
