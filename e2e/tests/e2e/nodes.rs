//! `/nodes` and what hangs below a certname.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use pdbmux_e2e::estate::{Side, Strategy};

use crate::world::{SOURCE, World, bytes_by_certname, of, same, segment, with_source};
use crate::{Case, cases};

pub(crate) const CASES: &[Case] = cases![
    r030_r031_r032_r033_each_node_once_as_its_winner_has_it,
    r037_static_attribution_leaves_nodes_to_the_newer_report,
    r067_r278_without_injection_no_key_is_added,
    r228_r238_a_node_is_served_as_its_owner_has_it,
    r239_static_asks_the_first_holder_for_a_node,
    r231_a_node_that_nobody_has_is_puppetdbs_own_404,
];

fn r030_r031_r032_r033_each_node_once_as_its_winner_has_it(world: &World) -> Result<()> {
    let answer = world.query("nodes", &[])?;
    same_nodes(world, &answer, Some(SOURCE))?;
    ensure!(
        answer.header("content-type") == Some("application/json;charset=utf-8"),
        "R012: {:?}",
        answer.headers
    );
    ensure!(
        answer.header("x-backends") == Some("2/2"),
        "R014: {:?}",
        answer.headers
    );
    ensure!(
        answer.header("x-records").is_none(),
        "R013: {:?}",
        answer.headers
    );
    // R038: a node that only one backend has is there.
    let both = world.both("nodes", &[])?;
    let [a, b] = [bytes_by_certname(&both[0])?, bytes_by_certname(&both[1])?];
    let union: BTreeSet<_> = a.keys().chain(b.keys()).collect();
    same(
        "the union of both",
        &bytes_by_certname(&answer)?.keys().collect::<Vec<_>>(),
        &union.into_iter().collect::<Vec<_>>(),
    )
}

fn r037_static_attribution_leaves_nodes_to_the_newer_report(world: &World) -> Result<()> {
    let fixed = world.pdbmux_with(&[("PDBMUX_MERGE", "static")])?;
    same_nodes(world, &fixed.client.query("nodes", &[])?, Some(SOURCE))
}

fn r067_r278_without_injection_no_key_is_added(world: &World) -> Result<()> {
    let plain = world.pdbmux_with(&[("PDBMUX_SOURCE_FACT_ENABLED", "false")])?;
    same_nodes(world, &plain.client.query("nodes", &[])?, None)?;
    let renamed = world.pdbmux_with(&[("PDBMUX_SOURCE_FACT", "which_backend")])?;
    same_nodes(
        world,
        &renamed.client.query("nodes", &[])?,
        Some("which_backend"),
    )
}

fn r228_r238_a_node_is_served_as_its_owner_has_it(world: &World) -> Result<()> {
    // The newest copy speaks, also for a node that is deactivated there.
    for node in &world.estate.nodes {
        let name = segment(node.certname);
        // A node that never ran has no catalog: the owner says so itself.
        for entity in ["nodes", "factsets", "catalogs"] {
            let path = format!("/pdb/query/v4/{entity}/{name}");
            let wanted = world.backend(node.newest()).get(&path, &[])?;
            let got = world.pdbmux.client.get(&path, &[])?;
            // PuppetDB's routes for factsets know no encoded segment; before 8.6 it redirects.
            let status = if wanted.status == 302 {
                404
            } else {
                wanted.status
            };
            ensure!(
                (got.status, &got.body) == (status, &wanted.body),
                "{path}: {} {}, the owner {:?} says {} {}",
                got.status,
                got.body,
                node.newest(),
                wanted.status,
                wanted.body
            );
        }
    }
    let below = world.query("nodes/App-02.Example.COM/facts/site", &[])?;
    ensure!(below.body.contains("\"value\":\"b\""), "{}", below.body);
    // R230: known to backend b alone, deactivated there.
    let gone = world.query("nodes/retired2.example.com", &[])?;
    ensure!(
        gone.body
            == world
                .backend(Side::B)
                .query("nodes/retired2.example.com", &[])?
                .body,
        "{}",
        gone.body
    );
    Ok(())
}

fn r239_static_asks_the_first_holder_for_a_node(world: &World) -> Result<()> {
    let fixed = world.pdbmux_with(&[("PDBMUX_MERGE", "static")])?;
    for certname in ["edge1.example.com", "core1.example.com", "web1.example.com"] {
        let path = format!("nodes/{certname}");
        let got = fixed.client.query(&path, &[])?;
        ensure!(
            got.body == world.backend(Side::A).query(&path, &[])?.body,
            "{certname}: {}",
            got.body
        );
    }
    ensure!(
        fixed.client.query("nodes/app1.example.com", &[])?.body
            == world
                .backend(Side::B)
                .query("nodes/app1.example.com", &[])?
                .body,
        "app1.example.com is only in b"
    );
    Ok(())
}

fn r231_a_node_that_nobody_has_is_puppetdbs_own_404(world: &World) -> Result<()> {
    for entity in ["nodes", "factsets", "catalogs"] {
        let path = format!("/pdb/query/v4/{entity}/nosuch.example.com");
        let (got, wanted) = (
            world.pdbmux.client.get(&path, &[])?,
            world.backend(Side::A).get(&path, &[])?,
        );
        ensure!(
            got.status == 404
                && got.body == wanted.body
                && got.header("content-type") == wanted.header("content-type"),
            "{path}: {} {:?} {}",
            got.status,
            got.header("content-type"),
            got.body
        );
    }
    Ok(())
}

/// Every active node once, the winner's bytes, with `key` naming the winner.
fn same_nodes(world: &World, got: &pdbmux_e2e::http::Answer, key: Option<&str>) -> Result<()> {
    let both = world.both("nodes", &[])?;
    let held = [bytes_by_certname(&both[0])?, bytes_by_certname(&both[1])?];
    let mut wanted = BTreeMap::new();
    for (certname, owner) in world.estate.owners(Strategy::Freshness) {
        let record = held[owner as usize]
            .get(certname)
            .and_then(|records| records.first())
            .with_context(|| format!("{} lacks {certname}", of(owner, &both).asked))?;
        let record = match key {
            Some(key) => with_source(record, key, world.name(owner))?,
            None => record.clone(),
        };
        wanted.insert(certname.to_owned(), vec![record]);
    }
    same(
        &got.asked,
        &bytes_by_certname(got)?.into_iter().collect::<Vec<_>>(),
        &wanted.into_iter().collect::<Vec<_>>(),
    )
}
