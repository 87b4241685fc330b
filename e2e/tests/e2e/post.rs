//! Queries in a body: JSON by POST, and forms by GET.

use anyhow::{Result, ensure};
use pdbmux_e2e::estate::Side;
use pdbmux_e2e::http::{Answer, Client};
use serde_json::{Value, json};

use crate::world::{World, same, sorted};
use crate::{Case, cases};

pub(crate) const CASES: &[Case] = cases![
    a_question_is_answered_alike_however_it_comes,
    a_question_too_long_for_a_url_is_answered,
    a_body_that_is_wrong_is_refused_with_puppetdbs_status,
    what_nobody_knows_is_refused_in_puppetdbs_words,
];

const BY_NODE: &str = r#"[{"field":"certname","order":"desc"}]"#;

/// The types that a client of PuppetDB gives a body's members.
fn object(parameters: &[(&str, &str)]) -> Value {
    let member = |(name, text): &(&str, &str)| {
        let value = match *name {
            "limit" | "offset" | "order_by" | "include_total" | "counts_filter" | "ast_only" => {
                serde_json::from_str(text).unwrap_or_default()
            }
            "query" if text.starts_with('[') => serde_json::from_str(text).unwrap_or_default(),
            _ => Value::from(*text),
        };
        ((*name).to_owned(), value)
    };
    parameters.iter().map(member).collect()
}

fn path(entity: &str) -> String {
    format!("/pdb/query/v4/{entity}")
        .trim_end_matches('/')
        .to_owned()
}

fn a_question_is_answered_alike_however_it_comes(world: &World) -> Result<()> {
    let questions: [(&str, &[(&str, &str)]); 16] = [
        ("nodes", &[]),
        ("nodes", &[("query", r#"["~","certname","^web"]"#)]),
        (
            "nodes",
            &[
                ("order_by", BY_NODE),
                ("limit", "3"),
                ("offset", "2"),
                ("include_total", "true"),
            ],
        ),
        ("nodes/web1.example.com", &[]),
        ("facts", &[("query", r#"["=","name","kernel"]"#)]),
        (
            "facts",
            &[(
                "query",
                r#"["extract",[["function","count"],"name"],["group_by","name"]]"#,
            )],
        ),
        ("facts/kernel", &[("query", r#"["=","value","Linux"]"#)]),
        ("fact-names", &[("limit", "5")]),
        ("reports", &[("query", r#"["=","status","changed"]"#)]),
        ("events", &[]),
        (
            "event-counts",
            &[
                ("query", r#"["=","latest_report?",true]"#),
                ("summarize_by", "certname"),
                ("counts_filter", r#"[">","successes",0]"#),
            ],
        ),
        ("aggregate-event-counts", &[("summarize_by", "certname")]),
        ("resources", &[("query", r#"["=","type","File"]"#)]),
        ("inventory", &[("query", r#"["~","certname","^web"]"#)]),
        ("", &[("query", "nodes[certname] { certname ~ \"^web\" }")]),
        (
            "",
            &[("query", r#"["from","nodes",["~","certname","^web"]]"#)],
        ),
    ];
    let servers = [
        &world.pdbmux.client,
        world.backend(Side::A),
        world.backend(Side::B),
    ];
    for (entity, parameters) in questions {
        let answer = world.pdbmux.client.get(&path(entity), parameters)?;
        ensure!(answer.status == 200, "{}: {}", answer.asked, answer.body);
        for server in servers {
            alike(server, entity, parameters)?;
        }
    }
    Ok(())
}

fn alike(server: &Client, entity: &str, parameters: &[(&str, &str)]) -> Result<()> {
    let path = path(entity);
    let get = server.get(&path, parameters)?;
    let form = server.form(&path, parameters)?;
    let post = server.post(&path, &[], &object(parameters).to_string())?;
    for (how, other) in [("form", form), ("POST", post)] {
        let what = format!("{} {parameters:?} by {how}", get.asked);
        ensure!(
            other.status == get.status,
            "{what}: {} {}",
            other.status,
            other.body
        );
        ensure!(
            other.header("x-records") == get.header("x-records"),
            "{what}: {:?}",
            other.headers
        );
        same(&what, &contents(&other)?, &contents(&get)?)?;
    }
    Ok(())
}

/// Everything in an answer, in no order: rows without an `order_by` have none.
fn contents(answer: &Answer) -> Result<Vec<String>> {
    let mut all = match answer.json()? {
        Value::Array(rows) => rows.iter().map(Value::to_string).collect(),
        other => vec![other.to_string()],
    };
    all.sort();
    Ok(all)
}

fn a_question_too_long_for_a_url_is_answered(world: &World) -> Result<()> {
    let held: Vec<_> = world
        .estate
        .nodes
        .iter()
        .map(|node| node.certname)
        .collect();
    let absent = (0..600).map(|at| format!("absent-{at:04}.example.com"));
    let all: Vec<_> = held
        .iter()
        .map(|name| (*name).to_owned())
        .chain(absent)
        .collect();
    let short = json!(["in", "certname", ["array", held]]).to_string();
    let long = json!(["in", "certname", ["array", all]]).to_string();
    for entity in [
        "nodes",
        "facts",
        "reports",
        "events",
        "resources",
        "inventory",
    ] {
        let ask = |query: &str| -> Result<[Answer; 2]> {
            let parameters = [
                ("query", query),
                ("order_by", r#"[{"field":"certname"}]"#),
                ("limit", "40"),
                ("include_total", "true"),
            ];
            let path = path(entity);
            let post = object(&parameters).to_string();
            let client = &world.pdbmux.client;
            Ok([
                client.get(&path, &parameters)?,
                client.post(&path, &[], &post)?,
            ])
        };
        let [wanted, _] = ask(&short)?;
        for got in ask(&long)? {
            ensure!(got.status == 200, "{entity}: {} {}", got.status, got.body);
            ensure!(
                got.header("x-records") == wanted.header("x-records"),
                "{entity}"
            );
            // Rows of one node have no order among themselves where pages are not merged.
            ensure!(got.records()?.len() == wanted.records()?.len(), "{entity}");
            if matches!(entity, "nodes" | "facts" | "reports") {
                same(
                    entity,
                    &sorted(&got.records()?),
                    &sorted(&wanted.records()?),
                )?;
            }
        }
    }
    let count = format!(r#"["from","nodes",["extract",[["function","count"]],{long}]]"#);
    let (path, body) = (path(""), json!({ "query": count }).to_string());
    let got = world.pdbmux.client.get(&path, &[("query", &count)])?;
    let wanted = world.backend(Side::A).post(&path, &[], &body)?;
    ensure!(
        got.status == 200 && got.body == wanted.body,
        "the root route: {} {}, PuppetDB says {}",
        got.status,
        got.body,
        wanted.body
    );
    Ok(())
}

fn a_body_that_is_wrong_is_refused_with_puppetdbs_status(world: &World) -> Result<()> {
    for body in [
        r#"{"order_by":"[{\"field\":\"certname\"}]"}"#,
        r#"{"limit":"0"}"#,
        r#"{"limit":"x"}"#,
        r#"{"query":"nodes { }"}"#,
    ] {
        let path = "/pdb/query/v4/nodes";
        let wanted = world.backend(Side::A).post(path, &[], body)?.status;
        let got = world.pdbmux.client.post(path, &[], body)?;
        ensure!(
            (got.status, wanted) == (400, 400),
            "{body}: {} {}, PuppetDB says {wanted}",
            got.status,
            got.body
        );
    }
    Ok(())
}

fn what_nobody_knows_is_refused_in_puppetdbs_words(world: &World) -> Result<()> {
    for (entity, body) in [
        ("nodes", r#"{"nosuch":[1]}"#),
        ("inventory", r#"{"nosuch":{"a":1}}"#),
        ("environments", r#"{"nosuch":"x"}"#),
        (
            "event-counts",
            r#"{"nosuch":true,"summarize_by":"certname"}"#,
        ),
    ] {
        let path = path(entity);
        let wanted = world.backend(Side::A).post(&path, &[], body)?;
        let got = world.pdbmux.client.post(&path, &[], body)?;
        ensure!(
            got.status == 400 && got.body == wanted.body,
            "{entity}: {} {}, PuppetDB says {}",
            got.status,
            got.body,
            wanted.body
        );
    }
    Ok(())
}
