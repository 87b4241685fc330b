//! Plain `extract` on `/nodes` and `/facts`: the columns one PuppetDB gives, a row per owner.

use anyhow::{Result, ensure};
use pdbmux_e2e::estate::{Side, Strategy};
use pdbmux_e2e::records::Record;
use serde_json::json;

use crate::world::{World, of, same};
use crate::{Case, cases};

pub(crate) const CASES: &[Case] = cases![
    r035_r039_projected_nodes_are_the_winners_rows,
    r041_projected_facts_are_the_owners_rows,
    r035_a_projection_can_be_ordered_by_a_column_it_leaves_out,
];

fn r035_r039_projected_nodes_are_the_winners_rows(world: &World) -> Result<()> {
    for columns in [
        r#"["certname","report_timestamp"]"#,
        r#"["certname"]"#,
        r#"["report_environment","latest_report_status"]"#,
        r#"["facts_environment"]"#,
        r#"["latest_report_hash","certname","latest_report_noop"]"#,
    ] {
        same_projection(world, "nodes", columns, None)?;
    }
    Ok(())
}

fn r041_projected_facts_are_the_owners_rows(world: &World) -> Result<()> {
    for columns in [
        r#"["certname","value"]"#,
        r#"["value"]"#,
        r#"["name","value"]"#,
        r#"["environment"]"#,
    ] {
        for fact in ["site", "uptime_seconds", "networking", "huge_integer"] {
            same_projection(world, "facts", columns, Some(fact))?;
        }
    }
    Ok(())
}

fn r035_a_projection_can_be_ordered_by_a_column_it_leaves_out(world: &World) -> Result<()> {
    let query = r#"["extract",["latest_report_status"]]"#;
    let order = r#"[{"field":"certname"}]"#;
    let mut wanted = Vec::new();
    for record in world.query("nodes", &[("order_by", order)])?.records()? {
        wanted.push(format!(
            "{{\"latest_report_status\":{}}}",
            record.field("latest_report_status")?
        ));
    }
    let answer = world.query("nodes", &[("query", query), ("order_by", order)])?;
    let got: Vec<_> = answer
        .records()?
        .iter()
        .map(|record| record.0.to_owned())
        .collect();
    same("statuses by certname", &got, &wanted)
}

/// The rows each node's owner gives for the same columns, whether or not they name the node.
fn same_projection(world: &World, entity: &str, columns: &str, fact: Option<&str>) -> Result<()> {
    let of_fact = fact.map(|fact| format!(r#"["=","name","{fact}"]"#));
    let query = match &of_fact {
        Some(filter) => format!(r#"["extract",{columns},{filter}]"#),
        None => format!(r#"["extract",{columns}]"#),
    };
    let mut wanted = Vec::new();
    for side in [Side::A, Side::B] {
        let owned: Vec<_> = world
            .estate
            .owners(Strategy::Freshness)
            .filter_map(|(certname, owner)| (owner == side).then_some(certname))
            .collect();
        let filter = json!(["in", "certname", ["array", owned]]).to_string();
        let filters: Vec<_> = of_fact.iter().cloned().chain([filter]).collect();
        let query = format!(r#"["extract",{columns},["and",{}]]"#, filters.join(","));
        let answer = world.backend(side).query(entity, &[("query", &query)])?;
        wanted.extend(answer.records()?.iter().map(|record| record.0.to_owned()));
    }
    wanted.sort();
    let answer = world.query(entity, &[("query", &query)])?;
    let mut got: Vec<_> = answer
        .records()?
        .iter()
        .map(|record| record.0.to_owned())
        .collect();
    got.sort();
    same(&answer.asked, &got, &wanted)?;
    let both = world.both(entity, &[("query", &query)])?;
    let alone = of(Side::A, &both).records()?;
    let (got, alone) = (Record(&got[0]).columns()?, alone[0].columns()?);
    ensure!(
        got == alone,
        "{query}: columns {got:?}, a single PuppetDB has {alone:?}"
    );
    Ok(())
}
