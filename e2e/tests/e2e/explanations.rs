//! The same mistake made through pdbmux and straight to each PuppetDB; and `pretty`.

use anyhow::{Result, ensure};
use pdbmux_e2e::estate::Side;
use pdbmux_e2e::http::Answer;
use serde_json::json;

use crate::world::World;
use crate::{Case, cases};

pub(crate) const CASES: &[Case] = cases![
    r017_r021_r022_a_mistake_is_explained_as_puppetdb_explains_it,
    r017_counts_and_names_explain_theirs,
    r119_an_average_of_the_wrong_column_is_explained_by_its_sum,
    r152_an_order_that_cannot_be_read_is_refused_as_puppetdb_does,
    r029_a_function_that_cannot_be_combined_is_refused_here,
    r019_backends_that_disagree_are_a_502_naming_both,
    r028_one_backend_without_a_parameter_leaves_the_other,
    r010_pretty_is_laid_out_as_puppetdb_does,
];

const ENTITIES: [&str; 6] = [
    "nodes",
    "facts",
    "facts/uptime_seconds",
    "reports",
    "events",
    "resources",
];

fn r017_r021_r022_a_mistake_is_explained_as_puppetdb_explains_it(world: &World) -> Result<()> {
    for entity in ENTITIES {
        for (name, value) in [
            ("query", r#"["=""#),
            ("query", "nodes{}"),
            ("query", r#"["=","nosuch",1]"#),
            ("query", r#"["extract",["nosuch"]]"#),
            ("query", r#"["extract",["function","count"]]"#),
            ("query", r#"["extract",["certname",["function","count"]]]"#),
            ("query", r#"["extract",[["function","sum","certname"]]]"#),
            ("query", r#"["nosuch","certname","x"]"#),
            // Text compared with a number: a 400 of one operator, a 500 of the other.
            ("query", r#"[">","certname",5]"#),
            ("query", r#"["=","certname",5]"#),
            ("query", r#"["~","certname","("]"#),
            ("order_by", r#"[{"field":"nosuch"}]"#),
            ("nosuch", "1"),
        ] {
            as_puppetdb(world, entity, &[(name, value)])?;
        }
    }
    for (entity, query) in [
        (
            "facts",
            r#"["extract",[["function","jsonb_typeof","value"]]]"#,
        ),
        (
            "resources",
            r#"["extract",[["function","jsonb_typeof","parameters"]]]"#,
        ),
        ("reports", r#"["=","noop","x"]"#),
        ("nodes", r#"[">","report_timestamp","soon"]"#),
        (
            "nodes",
            r#"["and",["extract","certname",["=","certname","x"]]]"#,
        ),
        ("nodes", r#"["from","nodes"]"#),
        ("events", r#"["=","line","x"]"#),
        ("inventory", "nodes{}"),
        ("environments/nosuch", ""),
    ] {
        as_puppetdb(world, entity, &[("query", query)])?;
    }
    Ok(())
}

fn r017_counts_and_names_explain_theirs(world: &World) -> Result<()> {
    let by = ("summarize_by", "certname");
    for (entity, parameters) in [
        ("event-counts", vec![]),
        ("event-counts", vec![("summarize_by", "nosuch")]),
        ("event-counts", vec![by, ("count_by", "nosuch")]),
        (
            "event-counts",
            vec![by, ("counts_filter", r#"["=","x",1]"#)],
        ),
        ("event-counts", vec![by, ("query", r#"["=","nosuch",1]"#)]),
        (
            "event-counts",
            vec![by, ("order_by", r#"[{"field":"subject"}]"#)],
        ),
        ("aggregate-event-counts", vec![]),
        ("aggregate-event-counts", vec![("summarize_by", "nosuch")]),
        ("aggregate-event-counts", vec![by, ("limit", "1")]),
        ("fact-names", vec![("query", r#"["=","nosuch",1]"#)]),
        ("fact-names", vec![("nosuch", "1")]),
        ("events", vec![("distinct_resources", "true")]),
    ] {
        as_puppetdb(world, entity, &parameters)?;
    }
    Ok(())
}

fn r119_an_average_of_the_wrong_column_is_explained_by_its_sum(world: &World) -> Result<()> {
    // What is asked upstream is a sum and a count.
    let query = [("query", r#"["extract",[["function","avg","end_time"]]]"#)];
    let [a, b, got] = three(world, "reports", &query)?;
    ensure!(
        a.status == 500
            && a.body == b.body
            && got.status == 500
            && got.body == a.body.replace("avg(", "sum("),
        "{} {}, PuppetDB says {} {}",
        got.status,
        got.body,
        a.status,
        a.body
    );
    Ok(())
}

fn r152_an_order_that_cannot_be_read_is_refused_as_puppetdb_does(world: &World) -> Result<()> {
    for entity in &ENTITIES[..5] {
        for order in [
            "certname",
            "{",
            r#"[{"order":"asc"}]"#,
            r#"[{"field":"certname","order":"up"}]"#,
            r#"{"field":"certname"}"#,
            r#"["certname"]"#,
            // A 500 of PuppetDB (D12); a 400 here.
            r#"[{"field":1}]"#,
        ] {
            let parameters = [("order_by", order)];
            let [a, b, got] = three(world, entity, &parameters)?;
            ensure!(
                a.status == b.status
                    && (a.status == 400 || order.contains(":1"))
                    && got.status == 400
                    && got.body.contains("order_by"),
                "{entity} {order}: {} {}, PuppetDB says {} {}",
                got.status,
                got.body,
                a.status,
                a.body
            );
        }
        for order in ["", "[]", "{}", "null"] {
            let [a, _, got] = three(world, entity, &[("order_by", order), ("limit", "1")])?;
            ensure!(
                a.status == 200 && got.status == 200,
                "ruling 7: {entity} {order:?}: {} {}, PuppetDB says {}",
                got.status,
                got.body,
                a.status
            );
        }
    }
    Ok(())
}

fn r029_a_function_that_cannot_be_combined_is_refused_here(world: &World) -> Result<()> {
    for entity in ENTITIES {
        let query = [("query", r#"["extract",[["function","median","certname"]]]"#)];
        let [a, b, got] = three(world, entity, &query)?;
        // PuppetDB's own word for it is an unexpected error.
        ensure!(
            (a.status, b.status, got.status) == (500, 500, 400) && got.body.contains("median"),
            "{entity}: {} {}, PuppetDB says {} and {}",
            got.status,
            got.body,
            a.status,
            b.status
        );
    }
    Ok(())
}

fn r019_backends_that_disagree_are_a_502_naming_both(world: &World) -> Result<()> {
    for entity in ENTITIES {
        // 7.12 knows no `timeout` (400); 8.4 does and then fails on the query (500).
        let parameters = [("timeout", "5"), ("query", r#"["=","certname",5]"#)];
        let [a, b, got] = three(world, entity, &parameters)?;
        if a.status == b.status {
            // Twice the same PuppetDB: nothing to disagree about.
            ensure!(got.status == a.status, "{entity}: {}", got.body);
            continue;
        }
        ensure!(
            got.status == 502
                && [Side::A, Side::B].iter().all(|&side| {
                    let named = format!("{}: ", world.name(side));
                    got.body.contains(&named)
                }),
            "{entity}: {} {}, PuppetDBs say {} and {}",
            got.status,
            got.body,
            a.status,
            b.status
        );
    }
    Ok(())
}

fn r028_one_backend_without_a_parameter_leaves_the_other(world: &World) -> Result<()> {
    let [a, b, got] = three(world, "reports", &[("timeout", "60")])?;
    if a.status == b.status {
        ensure!(got.status == a.status, "{}", got.body);
        return Ok(());
    }
    ensure!(
        (a.status, b.status, got.status) == (400, 200, 200)
            && got.header("x-backends") == Some("1/2")
            && got.records()?.len() == b.records()?.len(),
        "{} {:?}, PuppetDBs say {} and {}",
        got.status,
        got.headers,
        a.status,
        b.status
    );
    Ok(())
}

fn r010_pretty_is_laid_out_as_puppetdb_does(world: &World) -> Result<()> {
    // Without pdbmux's own fact and key, which no PuppetDB has.
    let plain = world.pdbmux_with(&[("PDBMUX_SOURCE_FACT_ENABLED", "false")])?;
    for (side, certname) in [
        (Side::A, "Web-02.Example.COM"),
        (Side::B, "app1.example.com"),
    ] {
        let of_node = json!(["=", "certname", certname]).to_string();
        let counted = json!([
            "extract",
            [["function", "count"], "status"],
            ["=", "certname", certname],
            ["group_by", "status"],
        ])
        .to_string();
        let nobody = r#"["=","certname","nosuch"]"#;
        let by_certname = r#"[{"field":"certname"}]"#;
        for (entity, query, more) in [
            ("nodes", of_node.as_str(), ("order_by", by_certname)),
            ("nodes", nobody, ("order_by", by_certname)),
            ("facts", &of_node, ("order_by", r#"[{"field":"name"}]"#)),
            ("facts/networking", &of_node, ("order_by", by_certname)),
            ("facts/nothing", &of_node, ("order_by", by_certname)),
            ("facts/empty_map", &of_node, ("order_by", by_certname)),
            (
                "reports",
                &of_node,
                ("order_by", r#"[{"field":"end_time"}]"#),
            ),
            ("reports", &counted, ("limit", "9")),
            (
                "events",
                &of_node,
                ("order_by", r#"[{"field":"resource_title"}]"#),
            ),
            ("event-counts", &of_node, ("summarize_by", "certname")),
        ] {
            let parameters = [("query", query), more, ("pretty", "true")];
            let got = plain.client.query(entity, &parameters)?;
            let wanted = world.backend(side).query(entity, &parameters)?;
            // PuppetDB itself gives a report's resource events their columns in another order
            // once `pretty` is asked for.
            let alike = match entity {
                "reports" => lines(&got.body) == lines(&wanted.body),
                _ => got.body == wanted.body,
            };
            ensure!(
                alike,
                "{entity} {query}:\n{}\nPuppetDB:\n{}",
                got.body,
                wanted.body
            );
        }
    }
    Ok(())
}

/// A laid-out body's lines in no order, without the commas that depend on it.
fn lines(body: &str) -> Vec<&str> {
    let mut lines: Vec<_> = body
        .lines()
        .map(|line| line.trim_end_matches(','))
        .collect();
    lines.sort_unstable();
    lines
}

/// Both backends and pdbmux say the same: status, body and content type.
fn as_puppetdb(world: &World, entity: &str, parameters: &[(&str, &str)]) -> Result<()> {
    let [a, b, got] = three(world, entity, parameters)?;
    ensure!(
        a.status >= 400 && a.status == b.status && a.body == b.body,
        "{entity} {parameters:?}: the backends disagree: {} {} and {} {}",
        a.status,
        a.body,
        b.status,
        b.body
    );
    ensure!(
        got.status == a.status
            && got.body == a.body
            && got.header("content-type") == a.header("content-type"),
        "{entity} {parameters:?}: {} {:?} {}, PuppetDB says {} {:?} {}",
        got.status,
        got.header("content-type"),
        got.body,
        a.status,
        a.header("content-type"),
        a.body
    );
    Ok(())
}

/// Backend a, backend b and pdbmux, whatever they say.
fn three(world: &World, entity: &str, parameters: &[(&str, &str)]) -> Result<[Answer; 3]> {
    let path = format!("/pdb/query/v4/{entity}");
    Ok([
        world.backend(Side::A).get(&path, parameters)?,
        world.backend(Side::B).get(&path, parameters)?,
        world.pdbmux.client.get(&path, parameters)?,
    ])
}
