//! `/reports`, `/events` and a report's children.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use pdbmux_e2e::estate::Side;
use pdbmux_e2e::http::Answer;
use serde_json::Value;

use crate::world::{World, rows, same};
use crate::{Case, cases};

pub(crate) const CASES: &[Case] = cases![
    r093_r095_each_report_once_whoever_has_it,
    r094_each_event_once_though_receipt_times_differ,
    r097_a_projection_without_the_hash_loses_no_report,
    r096_reports_are_sorted_and_cut_across_backends,
    r102_r104_a_reports_children_come_from_whoever_has_it,
    r103_a_report_that_nobody_has_is_a_404,
];

fn r093_r095_each_report_once_whoever_has_it(world: &World) -> Result<()> {
    let got = by_hash(&world.query("reports", &[])?)?;
    let [a, b] = world.both("reports", &[])?;
    let mut wanted = by_hash(&b)?;
    wanted.extend(by_hash(&a)?);
    same(
        "reports",
        &got.into_iter().collect::<Vec<_>>(),
        &wanted.into_iter().collect::<Vec<_>>(),
    )
}

fn r094_each_event_once_though_receipt_times_differ(world: &World) -> Result<()> {
    let identities = |answer: &Answer| -> Result<Vec<String>> {
        let mut all = Vec::new();
        for mut row in rows(answer)? {
            row.remove("report_receive_time")
                .context("an event without a receipt time")?;
            all.push(serde_json::to_string(&row)?);
        }
        all.sort();
        Ok(all)
    };
    let [a, b] = world.both("events", &[])?;
    let mut wanted: BTreeSet<_> = identities(&a)?.into_iter().collect();
    let apart = wanted.len() + identities(&b)?.len();
    wanted.extend(identities(&b)?);
    ensure!(
        wanted.len() < apart,
        "the estate has no event in both backends"
    );
    same(
        "events",
        &identities(&world.query("events", &[])?)?,
        &wanted.into_iter().collect::<Vec<_>>(),
    )
}

fn r097_a_projection_without_the_hash_loses_no_report(world: &World) -> Result<()> {
    let all = by_hash(&world.query("reports", &[])?)?.len();
    let projected = rows(&world.query("reports", &[("query", r#"["extract",["status"]]"#)])?)?;
    ensure!(
        projected.len() == all,
        "{} of {all} reports",
        projected.len()
    );
    ensure!(
        projected.iter().all(|row| row.keys().eq(["status"])),
        "other columns: {:?}",
        projected.first()
    );
    Ok(())
}

fn r096_reports_are_sorted_and_cut_across_backends(world: &World) -> Result<()> {
    let order = r#"[{"field":"end_time","order":"desc"},{"field":"hash"}]"#;
    let all = hashes(&world.query("reports", &[("order_by", order)])?)?;
    let mut wanted = Vec::new();
    for row in rows(&world.query("reports", &[])?)? {
        wanted.push((row["end_time"].to_string(), row["hash"].clone()));
    }
    wanted.sort_by(|left, right| {
        right
            .0
            .cmp(&left.0)
            .then_with(|| left.1.to_string().cmp(&right.1.to_string()))
    });
    same(
        "sorted",
        &all,
        &wanted.into_iter().map(|(_, hash)| hash).collect::<Vec<_>>(),
    )?;
    let mut paged = Vec::new();
    for offset in (0..all.len()).step_by(7) {
        let offset = offset.to_string();
        let page = [("order_by", order), ("limit", "7"), ("offset", &offset)];
        paged.extend(hashes(&world.query("reports", &page)?)?);
    }
    same("pages of seven", &paged, &all)
}

fn r102_r104_a_reports_children_come_from_whoever_has_it(world: &World) -> Result<()> {
    for (certname, side) in [("web1.example.com", Side::A), ("app1.example.com", Side::B)] {
        let query = format!(r#"["=","certname","{certname}"]"#);
        let hash = hashes(&world.backend(side).query("reports", &[("query", &query)])?)?
            .first()
            .and_then(Value::as_str)
            .map(str::to_owned)
            .with_context(|| format!("{certname} has no report"))?;
        for child in ["logs", "metrics"] {
            let path = format!("reports/{hash}/{child}");
            let (got, wanted) = (
                world.query(&path, &[])?,
                world.backend(side).query(&path, &[])?,
            );
            ensure!(got.body == wanted.body, "{path}: {}", got.body);
        }
    }
    Ok(())
}

fn r103_a_report_that_nobody_has_is_a_404(world: &World) -> Result<()> {
    for child in ["events", "logs", "metrics"] {
        let path =
            format!("/pdb/query/v4/reports/0123456789012345678901234567890123456789/{child}");
        let (got, wanted) = (
            world.pdbmux.client.get(&path, &[])?,
            world.backend(Side::A).get(&path, &[])?,
        );
        ensure!(
            got.status == 404 && got.body == wanted.body,
            "{path}: {} {}",
            got.status,
            got.body
        );
    }
    Ok(())
}

fn by_hash(answer: &Answer) -> Result<BTreeMap<String, String>> {
    let mut reports = BTreeMap::new();
    for record in answer.records()? {
        let twice = reports.insert(record.text("hash")?, record.0.to_owned());
        ensure!(
            twice.is_none(),
            "{} gives a report twice: {}",
            answer.asked,
            record.0
        );
    }
    Ok(reports)
}

fn hashes(answer: &Answer) -> Result<Vec<Value>> {
    Ok(rows(answer)?
        .into_iter()
        .map(|mut row| row.remove("hash").unwrap_or_default())
        .collect())
}
