//! Windows over `/nodes` and `/facts`.

use anyhow::{Result, ensure};
use pdbmux_e2e::http::Answer;

use crate::world::{World, same, sorted};
use crate::{Case, cases};

pub(crate) const CASES: &[Case] = cases![
    r143_r153_ordered_pages_of_nodes_are_the_ordered_whole,
    r153_unordered_pages_of_nodes_give_each_record_once,
    r143_r153_ordered_pages_of_facts_are_the_ordered_whole,
    r153_unordered_pages_of_facts_give_each_record_once,
    r013_r149_a_total_is_told_when_asked_for,
];

const BY_NODE: &str = r#"[{"field":"certname"}]"#;
const NEWEST: &str = r#"[{"field":"report_timestamp","order":"desc"},{"field":"certname"}]"#;
const BY_FACT: &str = r#"[{"field":"certname"},{"field":"name","order":"desc"}]"#;

/// A few nodes of either owner, to walk record by record.
const SOME: &str = r#"["~","certname","^(core1|edge1|tie1|quiet3)\\."]"#;

fn r143_r153_ordered_pages_of_nodes_are_the_ordered_whole(world: &World) -> Result<()> {
    for order in [BY_NODE, NEWEST] {
        for size in [1, 2, 7, 100] {
            ordered(world, "nodes", "", order, size)?;
        }
    }
    let mut names = Vec::new();
    for record in world.query("nodes", &[("order_by", BY_NODE)])?.records()? {
        names.push(record.certname()?);
    }
    ensure!(
        names.is_sorted(),
        "text sorts by bytes (ruling 8): {names:?}"
    );
    Ok(())
}

fn r153_unordered_pages_of_nodes_give_each_record_once(world: &World) -> Result<()> {
    for size in [1, 2, 7, 100] {
        unordered(world, "nodes", "", size)?;
    }
    Ok(())
}

fn r143_r153_ordered_pages_of_facts_are_the_ordered_whole(world: &World) -> Result<()> {
    for (query, size) in [(SOME, 1), (SOME, 2), (SOME, 7), ("", 100)] {
        ordered(world, "facts", query, BY_FACT, size)?;
    }
    Ok(())
}

fn r153_unordered_pages_of_facts_give_each_record_once(world: &World) -> Result<()> {
    for (query, size) in [(SOME, 1), (SOME, 2), (SOME, 7), ("", 100)] {
        unordered(world, "facts", query, size)?;
    }
    Ok(())
}

fn r013_r149_a_total_is_told_when_asked_for(world: &World) -> Result<()> {
    for entity in ["nodes", "facts", "reports", "events"] {
        let all = world.query(entity, &[])?.records()?.len();
        let window = [
            ("include_total", "true"),
            ("limit", "2"),
            ("order_by", BY_NODE),
        ];
        let answer = world.query(entity, &window)?;
        let total: usize = answer.header("x-records").unwrap_or_default().parse()?;
        let mut apart = 0;
        for one in &world.both(entity, &window)? {
            apart += one
                .header("x-records")
                .unwrap_or_default()
                .parse::<usize>()?;
        }
        // An upper bound: what both backends have may count twice, pdbmux's own facts once.
        ensure!(answer.records()?.len() == 2, "{entity}: {}", answer.body);
        ensure!(
            total >= all.min(apart) && total <= apart.max(all),
            "{entity}: {total}, {all} merged, {apart} apart"
        );
        let silent = world.query(entity, &[("limit", "2"), ("order_by", BY_NODE)])?;
        ensure!(
            silent.header("x-records").is_none(),
            "{entity}: {:?}",
            silent.headers
        );
    }
    Ok(())
}

/// Pages put together are the whole, in its order.
fn ordered(world: &World, entity: &str, query: &str, order: &str, size: usize) -> Result<()> {
    let whole = world.query(entity, &[("query", query), ("order_by", order)])?;
    let whole = bytes(&whole)?;
    let paged = walk(
        world,
        entity,
        &[("query", query), ("order_by", order)],
        size,
        whole.len(),
    )?;
    same(
        &format!("{entity} by {order} in pages of {size}"),
        &paged,
        &whole,
    )
}

/// Pages put together hold each record of the whole once.
fn unordered(world: &World, entity: &str, query: &str, size: usize) -> Result<()> {
    let whole = world.query(entity, &[("query", query)])?;
    let whole = sorted(&whole.records()?);
    let mut paged = walk(world, entity, &[("query", query)], size, whole.len())?;
    paged.sort();
    same(&format!("{entity} in pages of {size}"), &paged, &whole)
}

/// All pages up to and including the first empty one.
fn walk(
    world: &World,
    entity: &str,
    fixed: &[(&str, &str)],
    size: usize,
    whole: usize,
) -> Result<Vec<String>> {
    let limit = size.to_string();
    let mut all = Vec::new();
    loop {
        let offset = all.len().to_string();
        let mut parameters = vec![("limit", limit.as_str()), ("offset", &offset)];
        parameters.extend(fixed);
        let page = bytes(&world.query(entity, &parameters)?)?;
        let full = page.len() == size;
        ensure!(
            page.len() <= size,
            "a page of {size} has {} records",
            page.len()
        );
        all.extend(page);
        if !full || all.len() > whole {
            return Ok(all);
        }
    }
}

fn bytes(answer: &Answer) -> Result<Vec<String>> {
    Ok(answer
        .records()?
        .iter()
        .map(|record| record.0.to_owned())
        .collect())
}
