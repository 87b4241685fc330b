//! Function extracts and event counts, folded over both backends.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use pdbmux_e2e::http::Answer;
use serde_json::{Value, json};

use crate::world::{World, rows, same};
use crate::{Case, cases};

pub(crate) const CASES: &[Case] = cases![
    r036_r052_r098_r115_counts_are_added_per_group,
    r117_r118_the_smallest_and_the_largest_of_both,
    r119_r120_r122_avg_is_weighted,
    r136_r137_the_window_is_cut_after_the_fold,
    r109_event_counts_are_added_per_subject,
    r110_aggregate_event_counts_are_added,
    r125_r131_r132_r134_r099_what_cannot_be_folded_is_refused,
];

fn r036_r052_r098_r115_counts_are_added_per_group(world: &World) -> Result<()> {
    for (entity, query) in [
        ("nodes", r#"["extract",[["function","count"]]]"#),
        (
            "nodes",
            r#"["extract",[["function","count"],"facts_environment"],["group_by","facts_environment"]]"#,
        ),
        (
            "nodes",
            r#"["extract",[["function","count"],"report_environment"],["group_by","report_environment"]]"#,
        ),
        ("facts", r#"["extract",[["function","count"]]]"#),
        (
            "facts",
            r#"["extract",["name",["function","count"]],["group_by","name"]]"#,
        ),
        (
            "facts/uptime_seconds",
            r#"["extract",[["function","count"],"environment"],["group_by","environment"]]"#,
        ),
        (
            "reports",
            r#"["extract",[["function","count"],"status"],["group_by","status"]]"#,
        ),
        (
            "events",
            r#"["extract",[["function","count"],"status"],["group_by","status"]]"#,
        ),
        (
            "resources",
            r#"["extract",[["function","count"],"type"],["group_by","type"]]"#,
        ),
    ] {
        let parameters = [("query", query)];
        let mut wanted = BTreeMap::new();
        for answer in &world.both(entity, &parameters)? {
            for (key, count) in counted(answer)? {
                *wanted.entry(key).or_insert(0) += count;
            }
        }
        let got = counted(&world.query(entity, &parameters)?)?;
        same(
            &format!("{entity} {query}"),
            &got.into_iter().collect::<Vec<_>>(),
            &wanted.into_iter().collect::<Vec<_>>(),
        )?;
    }
    Ok(())
}

fn r117_r118_the_smallest_and_the_largest_of_both(world: &World) -> Result<()> {
    let query =
        r#"["extract",[["function","min","certname"],["function","max","report_timestamp"]]]"#;
    let got = rows(&world.query("nodes", &[("query", query)])?)?;
    let mut nodes = Vec::new();
    for answer in &world.both("nodes", &[])? {
        nodes.extend(rows(answer)?);
    }
    let texts = |column: &str| {
        nodes
            .iter()
            .filter_map(|row| row[column].as_str().map(str::to_owned))
            .collect::<Vec<_>>()
    };
    let wanted = BTreeMap::from([
        ("min".to_owned(), json!(texts("certname").iter().min())),
        (
            "max".to_owned(),
            json!(texts("report_timestamp").iter().max()),
        ),
    ]);
    same("min and max", &got, &[wanted])
}

fn r119_r120_r122_avg_is_weighted(world: &World) -> Result<()> {
    let query = r#"["extract",[["function","avg","value"]],["=","name","uptime_seconds"]]"#;
    let (mut sum, mut count) = (0.0, 0.0);
    for answer in &world.both("facts/uptime_seconds", &[])? {
        for row in rows(answer)? {
            sum += row["value"].as_f64().unwrap_or(f64::NAN);
            count += 1.0;
        }
    }
    let got = rows(&world.query("facts", &[("query", query)])?)?;
    ensure!(got.len() == 1 && got[0].keys().eq(["avg"]), "{got:?}");
    let average = got[0]["avg"].as_f64().unwrap_or(f64::NAN);
    // R124: fractional averages may differ in their last digits.
    ensure!(
        (average - sum / count).abs() < 1e-6,
        "{average} is not {sum} / {count}"
    );
    Ok(())
}

fn r136_r137_the_window_is_cut_after_the_fold(world: &World) -> Result<()> {
    let query = r#"["extract",["name",["function","count"]],["group_by","name"]]"#;
    let order = r#"[{"field":"name"}]"#;
    let all = rows(&world.query("facts", &[("query", query), ("order_by", order)])?)?;
    let window = [
        ("query", query),
        ("order_by", order),
        ("limit", "4"),
        ("offset", "3"),
        ("include_total", "true"),
    ];
    let answer = world.query("facts", &window)?;
    same("a window", &rows(&answer)?, &all[3..7])?;
    ensure!(
        answer.header("x-records") == Some(all.len().to_string().as_str()),
        "{:?}",
        answer.headers
    );
    Ok(())
}

fn r109_event_counts_are_added_per_subject(world: &World) -> Result<()> {
    for summarize in ["certname", "resource", "containing_class"] {
        let parameters = [("summarize_by", summarize)];
        let mut wanted = BTreeMap::new();
        for answer in &world.both("event-counts", &parameters)? {
            add(&mut wanted, answer, &["subject", "subject_type"])?;
        }
        let mut got = BTreeMap::new();
        let answer = world.query("event-counts", &parameters)?;
        add(&mut got, &answer, &["subject", "subject_type"])?;
        ensure!(
            rows(&answer)?.len() == got.len(),
            "a subject twice: {}",
            answer.body
        );
        ensure!(got == wanted, "{summarize}: got {got:?}, wanted {wanted:?}");
    }
    Ok(())
}

fn r110_aggregate_event_counts_are_added(world: &World) -> Result<()> {
    let parameters = [("summarize_by", "certname,resource")];
    let mut wanted = BTreeMap::new();
    for answer in &world.both("aggregate-event-counts", &parameters)? {
        add(&mut wanted, answer, &["summarize_by"])?;
    }
    let mut got = BTreeMap::new();
    add(
        &mut got,
        &world.query("aggregate-event-counts", &parameters)?,
        &["summarize_by"],
    )?;
    ensure!(
        got == wanted && got.len() == 2,
        "got {got:?}, wanted {wanted:?}"
    );
    Ok(())
}

fn r125_r131_r132_r134_r099_what_cannot_be_folded_is_refused(world: &World) -> Result<()> {
    let times = [
        ("distinct_resources", "true"),
        ("distinct_start_time", "2025-01-01T00:00:00Z"),
        ("distinct_end_time", "2026-01-01T00:00:00Z"),
    ];
    for (entity, query, more, culprit) in [
        (
            "facts",
            r#"["extract",[["function","avg","value"],["function","count","value"]]]"#,
            &[][..],
            "avg",
        ),
        (
            "nodes",
            r#"["extract",[["function","count"],["function","count","certname"]]]"#,
            &[],
            "count",
        ),
        (
            "reports",
            r#"["extract",["count",["function","count"]],["group_by","count"]]"#,
            &[],
            "count",
        ),
        (
            "nodes",
            r#"["extract",[["function","median","certname"]]]"#,
            &[],
            "median",
        ),
        (
            "events",
            r#"["extract",[["function","count"]]]"#,
            &times,
            "distinct_resources",
        ),
    ] {
        let mut parameters = vec![("query", query)];
        parameters.extend(more);
        let answer = world
            .pdbmux
            .client
            .get(&format!("/pdb/query/v4/{entity}"), &parameters)?;
        ensure!(
            answer.status == 400 && answer.body.contains(culprit),
            "{query}: {} {}",
            answer.status,
            answer.body
        );
    }
    Ok(())
}

/// The count of each group, keyed by the other columns.
fn counted(answer: &Answer) -> Result<BTreeMap<String, u64>> {
    let mut counts = BTreeMap::new();
    for mut row in rows(answer)? {
        let count = row.remove("count").as_ref().and_then(Value::as_u64);
        let twice = counts.insert(serde_json::to_string(&row)?, count.unwrap_or(u64::MAX));
        ensure!(
            twice.is_none(),
            "{} gives the group {row:?} twice",
            answer.asked
        );
    }
    Ok(counts)
}

/// Adds every column of `answer` that is not in `keys` to the sums so far.
fn add(
    sums: &mut BTreeMap<String, BTreeMap<String, u64>>,
    answer: &Answer,
    keys: &[&str],
) -> Result<()> {
    for row in rows(answer)? {
        let key: Vec<_> = keys.iter().map(|key| row[*key].to_string()).collect();
        let sum = sums.entry(key.join(" ")).or_default();
        for (column, value) in row
            .iter()
            .filter(|(column, _)| !keys.contains(&column.as_str()))
        {
            *sum.entry(column.clone()).or_default() += value.as_u64().unwrap_or(u64::MAX / 4);
        }
    }
    Ok(())
}
