//! Queries that are wrong: as PuppetDB says it, or in pdbmux's own words.

use anyhow::{Result, ensure};
use pdbmux_e2e::estate::Side;

use crate::world::World;
use crate::{Case, cases};

pub(crate) const CASES: &[Case] = cases![
    r017_r022_what_both_refuse_alike_is_refused_alike,
    r150_r151_r152_windows_that_make_no_sense_are_400,
    r088_fact_names_have_one_column_to_order_by,
    r004_writes_are_refused,
];

fn r017_r022_what_both_refuse_alike_is_refused_alike(world: &World) -> Result<()> {
    for (entity, parameters) in [
        ("nodes", [("query", "[\"=\",\"certname\"")]),
        ("facts", [("query", "[\"=\",\"certname\"")]),
        ("nodes", [("query", r#"["=","nosuch",1]"#)]),
        ("reports", [("query", r#"["=","nosuch",1]"#)]),
        ("facts", [("query", r#"["extract",["nosuch"]]"#)]),
        ("nodes", [("query", r#"nodes{certname = "x"}"#)]),
        ("facts", [("query", r#"facts[value]{name = "x"}"#)]),
        ("nodes", [("query", "[]")]),
        ("events", [("query", r#"["~","certname","("]"#)]),
        ("nodes", [("order_by", r#"[{"field":"nosuch"}]"#)]),
        ("reports", [("order_by", r#"[{"field":"nosuch"}]"#)]),
        ("nodes", [("nosuch", "1")]),
        ("event-counts", [("query", "")]),
        ("environments", [("nosuch", "1")]),
    ] {
        let path = format!("/pdb/query/v4/{entity}");
        let [a, b] = [Side::A, Side::B].map(|side| world.backend(side).get(&path, &parameters));
        let (a, b, got) = (a?, b?, world.pdbmux.client.get(&path, &parameters)?);
        ensure!(
            a.status >= 400 && a.status == b.status,
            "{entity} {parameters:?}: {} and {}",
            a.status,
            b.status
        );
        ensure!(
            got.status == a.status && (got.body == a.body || got.body == b.body),
            "{entity} {parameters:?}: {} {}, PuppetDB says {} {}",
            got.status,
            got.body,
            a.status,
            a.body
        );
        ensure!(
            got.header("content-type") == a.header("content-type"),
            "{entity} {parameters:?}: {:?}",
            got.header("content-type")
        );
    }
    Ok(())
}

fn r150_r151_r152_windows_that_make_no_sense_are_400(world: &World) -> Result<()> {
    for entity in ["nodes", "facts", "reports", "events", "fact-names"] {
        for (name, value) in [
            ("limit", "0"),
            ("limit", "-1"),
            ("limit", "ten"),
            ("offset", "-1"),
            ("offset", "1.5"),
            ("order_by", "certname"),
            ("order_by", r#"[{"order":"asc"}]"#),
            ("order_by", r#"[{"field":"certname","order":"up"}]"#),
        ] {
            let answer = world
                .pdbmux
                .client
                .get(&format!("/pdb/query/v4/{entity}"), &[(name, value)])?;
            ensure!(
                answer.status == 400 && answer.body.contains(name),
                "{entity} {name}={value}: {} {}",
                answer.status,
                answer.body
            );
        }
    }
    Ok(())
}

fn r088_fact_names_have_one_column_to_order_by(world: &World) -> Result<()> {
    let order = [("order_by", r#"[{"field":"certname"}]"#)];
    let answer = world
        .pdbmux
        .client
        .get("/pdb/query/v4/fact-names", &order)?;
    ensure!(answer.status == 400, "{} {}", answer.status, answer.body);
    Ok(())
}

fn r004_writes_are_refused(world: &World) -> Result<()> {
    let before = world.both("nodes", &[])?.map(|answer| answer.body);
    let parameters = [
        ("command", "deactivate_node"),
        ("version", "3"),
        ("certname", "web1.example.com"),
    ];
    let body = r#"{"certname":"web1.example.com","producer_timestamp":"2025-03-09T00:00:00.000Z"}"#;
    let answer = world.pdbmux.client.post("/pdb/cmd/v1", &parameters, body)?;
    ensure!(
        answer.status == 501,
        "ruling 2: {} {}",
        answer.status,
        answer.body
    );
    ensure!(
        world.both("nodes", &[])?.map(|answer| answer.body) == before,
        "a write reached a backend"
    );
    Ok(())
}
