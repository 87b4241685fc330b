//! Every merged list walked page by page: each record once, and all together the whole.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use pdbmux_e2e::http::Answer;
use pdbmux_e2e::records::Record;
use serde_json::Value;

use crate::world::{World, same};
use crate::{Case, cases};

pub(crate) const CASES: &[Case] = cases![
    r147_r153_nodes_walk,
    r147_r153_facts_walk,
    r147_r153_named_facts_walk,
    r089_r090_fact_names_walk,
    r096_r147_r153_reports_walk,
    r096_r147_r153_events_walk,
    r105_r147_r153_event_counts_walk,
    r145_nulls_stand_last_ascending_and_first_descending,
];

/// A few nodes of every kind, to walk record by record.
const SOME: &str = r#"["~","certname","^(core1|edge1|twin1|quiet3)\\."]"#;

/// As few as still hold every kind of value.
const FEWER: &str = r#"["and",["~","certname","^(edge1|quiet3)\\."],["~","name","^(nothing|load|os|upt|is_v|empty|whole)"]]"#;

/// A list, and orders to walk it in.
struct List {
    path: &'static str,
    /// Sent with every request.
    fixed: &'static [(&'static str, &'static str)],
    /// Empty: none.
    orders: &'static [&'static str],
}

fn r147_r153_nodes_walk(world: &World) -> Result<()> {
    let list = List {
        path: "nodes",
        fixed: &[],
        orders: &[
            "",
            r#"[{"field":"report_timestamp","order":"desc"}]"#,
            r#"[{"field":"certname","order":"desc"}]"#,
            r#"[{"field":"report_timestamp"},{"field":"certname"}]"#,
            r#"[{"field":"latest_report_status"},{"field":"facts_environment","order":"desc"},{"field":"certname"}]"#,
            r#"[{"field":"latest_report_noop","order":"desc"}]"#,
        ],
    };
    walks(world, &list)
}

fn r147_r153_facts_walk(world: &World) -> Result<()> {
    let few = List {
        path: "facts",
        fixed: &[],
        orders: &[
            "",
            r#"[{"field":"value"}]"#,
            r#"[{"field":"name","order":"desc"},{"field":"certname"}]"#,
            r#"[{"field":"environment"},{"field":"name"}]"#,
            r#"[{"field":"value","order":"desc"},{"field":"certname","order":"desc"}]"#,
        ],
    };
    walk_in(world, &few, &[("query", FEWER)], &[1, 2, 7])?;
    walk_in(world, &few, &[], &[100])
}

fn r147_r153_named_facts_walk(world: &World) -> Result<()> {
    for path in [
        "facts/uptime_seconds",
        "facts/networking",
        "facts/kernel/Linux",
        "facts/pdbmux_source",
    ] {
        let list = List {
            path,
            fixed: &[],
            orders: &[
                "",
                r#"[{"field":"value","order":"desc"}]"#,
                r#"[{"field":"environment"},{"field":"value"},{"field":"certname","order":"desc"}]"#,
            ],
        };
        walks(world, &list)?;
    }
    Ok(())
}

fn r089_r090_fact_names_walk(world: &World) -> Result<()> {
    let list = List {
        path: "fact-names",
        fixed: &[],
        orders: &[
            "",
            r#"[{"field":"name"}]"#,
            r#"[{"field":"name","order":"desc"}]"#,
        ],
    };
    walk_in(world, &list, list.fixed, &[1, 2, 7, 100])
}

fn r096_r147_r153_reports_walk(world: &World) -> Result<()> {
    let list = List {
        path: "reports",
        fixed: &[],
        orders: &[
            "",
            r#"[{"field":"end_time","order":"desc"}]"#,
            r#"[{"field":"status"},{"field":"certname","order":"desc"},{"field":"end_time"}]"#,
            r#"[{"field":"noop_pending","order":"desc"},{"field":"hash"}]"#,
            r#"[{"field":"code_id"},{"field":"producer_timestamp","order":"desc"}]"#,
        ],
    };
    walks(world, &list)?;
    let projected = List {
        path: "reports",
        fixed: &[("query", r#"["extract",["status","certname"]]"#)],
        orders: &["", r#"[{"field":"certname"}]"#],
    };
    walk_in(world, &projected, projected.fixed, &[2, 7])
}

fn r096_r147_r153_events_walk(world: &World) -> Result<()> {
    let list = List {
        path: "events",
        fixed: &[],
        orders: &[
            "",
            r#"[{"field":"timestamp","order":"desc"},{"field":"certname"},{"field":"resource_title"}]"#,
            r#"[{"field":"status"},{"field":"resource_type","order":"desc"}]"#,
            r#"[{"field":"new_value"},{"field":"certname"}]"#,
        ],
    };
    walks(world, &list)
}

fn r105_r147_r153_event_counts_walk(world: &World) -> Result<()> {
    let list = List {
        path: "event-counts",
        fixed: &[("summarize_by", "certname")],
        orders: &[
            "",
            r#"[{"field":"certname"}]"#,
            r#"[{"field":"failures","order":"desc"},{"field":"certname","order":"desc"}]"#,
        ],
    };
    walks(world, &list)
}

fn r145_nulls_stand_last_ascending_and_first_descending(world: &World) -> Result<()> {
    for (direction, position) in [("asc", "last"), ("desc", "first")] {
        let order = format!(r#"[{{"field":"report_timestamp","order":"{direction}"}}]"#);
        let answer = world.query("nodes", &[("order_by", &order)])?;
        let mut nulls = Vec::new();
        for record in answer.records()? {
            nulls.push(record.field("report_timestamp")?.is_null());
        }
        if direction == "desc" {
            nulls.reverse();
        }
        ensure!(
            nulls.is_sorted() && nulls.ends_with(&[true]) && nulls.starts_with(&[false]),
            "nulls do not stand {position}: {nulls:?}"
        );
    }
    Ok(())
}

/// Walks `list` in each order and page size, the costly sizes in the first two orders alone,
/// and compares with the list in one piece.
fn walks(world: &World, list: &List) -> Result<()> {
    let few = [list.fixed, &[("query", SOME)]].concat();
    walk_in(world, list, &few, &[1, 2])?;
    walk_in(world, list, list.fixed, &[7, 100])
}

fn walk_in(world: &World, list: &List, fixed: &[(&str, &str)], sizes: &[usize]) -> Result<()> {
    for (at, order) in list.orders.iter().enumerate() {
        let mut fixed = fixed.to_vec();
        if !order.is_empty() {
            fixed.push(("order_by", order));
        }
        fixed.push(("include_total", "true"));
        let whole = world.query(list.path, &fixed)?;
        let total = whole.header("x-records").unwrap_or_default();
        let wanted = bytes(&whole)?;
        ensure!(wanted.len() > 2, "{} is too short to walk", whole.asked);
        // What both backends have may count twice (R149), and pdbmux's own facts not at all.
        ensure!(
            total.parse::<usize>()? >= wanted.len() || list.path.starts_with("facts"),
            "{}: a total of {total} for {} records",
            whole.asked,
            wanted.len()
        );
        for &size in sizes {
            if matches!(size, 1 | 7) && at > 1 {
                continue;
            }
            let paged = walk(world, list.path, &fixed, size, total)?;
            let what = format!("{} in pages of {size}", whole.asked);
            // Among equals a page's order is by identity, the whole's is as merged (R144).
            same(&what, &keys(&paged, order)?, &keys(&wanted, order)?)?;
            same(&what, &in_order(paged), &in_order(wanted.clone()))?;
        }
    }
    Ok(())
}

fn in_order(mut records: Vec<String>) -> Vec<String> {
    records.sort();
    records
}

/// The ordered columns of each record.
fn keys(records: &[String], order: &str) -> Result<Vec<Vec<Value>>> {
    let fields: Vec<BTreeMap<String, String>> = match order {
        "" => return Ok(Vec::new()),
        order => serde_json::from_str(order)?,
    };
    let key = |record: &String| -> Result<Vec<Value>> {
        match record.strip_prefix('"') {
            Some(_) => Ok(vec![serde_json::from_str(record)?]),
            None => fields
                .iter()
                .map(|field| {
                    let value = Record(record).field(&field["field"])?;
                    // `1` and `1.0` are equal.
                    Ok(value.as_f64().map_or(value, Value::from))
                })
                .collect(),
        }
    };
    records.iter().map(key).collect()
}

/// All pages up to the first that is not full, each with the same total.
fn walk(
    world: &World,
    path: &str,
    fixed: &[(&str, &str)],
    size: usize,
    total: &str,
) -> Result<Vec<String>> {
    let limit = size.to_string();
    let mut all = Vec::new();
    loop {
        let offset = all.len().to_string();
        let mut parameters = vec![("limit", limit.as_str()), ("offset", &offset)];
        parameters.extend(fixed);
        let answer = world.query(path, &parameters)?;
        let page = bytes(&answer)?;
        ensure!(
            page.len() <= size && all.len() < 5_000,
            "{}: {} records, after {}",
            answer.asked,
            page.len(),
            all.len()
        );
        ensure!(
            answer.header("x-records") == Some(total),
            "{}: a total of {:?}, the whole has {total}",
            answer.asked,
            answer.header("x-records")
        );
        let full = page.len() == size;
        all.extend(page);
        if !full {
            return Ok(all);
        }
    }
}

/// The elements' bytes, in the answer's order.
fn bytes(answer: &Answer) -> Result<Vec<String>> {
    let records = answer.records()?;
    Ok(records.iter().map(|record| record.0.to_owned()).collect())
}
