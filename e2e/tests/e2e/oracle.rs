//! The rig itself: the oracle holds what the owners hold, and every report.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use pdbmux_e2e::estate::{Side, Strategy};
use pdbmux_e2e::http::Answer;
use pdbmux_e2e::process::poll;
use pdbmux_e2e::puppetdb::queue_depth;
use serde_json::Value;

use crate::world::{World, bytes_by_certname, rows, same};
use crate::{Case, cases};

pub(crate) const CASES: &[Case] = cases![
    r297_the_oracle_has_the_owners_facts,
    r297_the_oracle_has_every_report_and_the_owners_latest,
    r298_nothing_waits_in_a_queue,
];

fn r297_the_oracle_has_the_owners_facts(world: &World) -> Result<()> {
    let both = world.both("facts", &[])?;
    let held = [bytes_by_certname(&both[0])?, bytes_by_certname(&both[1])?];
    let wanted: BTreeMap<_, _> = world
        .estate
        .owners(Strategy::Exact)
        .map(|(certname, owner)| {
            Ok((
                certname.to_owned(),
                held[owner as usize]
                    .get(certname)
                    .context(certname)?
                    .clone(),
            ))
        })
        .collect::<Result<_>>()?;
    same(
        "the oracle's facts",
        &bytes_by_certname(&world.oracle()?.query("facts", &[])?)?
            .into_iter()
            .collect::<Vec<_>>(),
        &wanted.into_iter().collect::<Vec<_>>(),
    )
}

fn r297_the_oracle_has_every_report_and_the_owners_latest(world: &World) -> Result<()> {
    let hashes = |answer: &Answer| -> Result<Vec<String>> {
        Ok(rows(answer)?
            .into_iter()
            .map(|row| row["hash"].to_string())
            .collect())
    };
    let both = world.both("reports", &[])?;
    let mut wanted = [hashes(&both[0])?, hashes(&both[1])?].concat();
    wanted.sort();
    wanted.dedup();
    let mut got = hashes(&world.oracle()?.query("reports", &[])?)?;
    got.sort();
    same("the oracle's reports", &got, &wanted)?;

    let latest = |answer: &Answer| -> Result<BTreeMap<String, Value>> {
        rows(answer)?
            .into_iter()
            .map(|row| {
                Ok((
                    row["certname"].as_str().context("no certname")?.to_owned(),
                    row["latest_report_hash"].clone(),
                ))
            })
            .collect()
    };
    let both = world.both("nodes", &[])?;
    let (a, b, got) = (
        latest(&both[0])?,
        latest(&both[1])?,
        latest(&world.oracle()?.query("nodes", &[])?)?,
    );
    for (certname, owner) in world.estate.owners(Strategy::Exact) {
        let held = match owner {
            Side::A => &a,
            Side::B => &b,
        };
        ensure!(
            got.get(certname) == held.get(certname),
            "{certname}: {:?}",
            got.get(certname)
        );
    }
    Ok(())
}

fn r298_nothing_waits_in_a_queue(world: &World) -> Result<()> {
    for one in world.rig.backends.iter().chain(&world.rig.oracle) {
        let depth = poll(std::time::Instant::now(), || queue_depth(&one.client));
        ensure!(
            depth == Some(0),
            "{} has {depth:?} commands waiting",
            one.name
        );
    }
    Ok(())
}
