//! A POST, a form beside GET and a plain GET that ask the same are one question.

use std::time::Duration;

use pdbmux_core::settings::Strategy;
use serde_json::{Map, Value};

use super::{FORM, answer, post, with_body};
use crate::client::Response;
use crate::harness::{Pdbmux, target};
use crate::stub::{Answer, Stub, nodes_body};

/// A question in its parameters, sorted by name.
type Question = (&'static str, &'static [(&'static str, &'static str)]);

const ORDER: &str = r#"[{"field":"certname","order":"desc"}]"#;
const COUNT: &str = r#"["extract",[["function","count"],"name"],["group_by","name"]]"#;

const QUESTIONS: &[Question] = &[
    ("nodes", &[]),
    ("nodes", &[("query", "null")]),
    ("nodes", &[("query", r#"["=", "certname", "n"]"#)]),
    (
        "nodes",
        &[
            ("include_total", "true"),
            ("limit", "1"),
            ("offset", "1"),
            ("order_by", ORDER),
        ],
    ),
    ("nodes", &[("pretty", "true")]),
    ("nodes", &[("limit", "0")]),
    ("nodes", &[("query", r#"["extract","certname"]"#)]),
    ("nodes/n", &[]),
    ("facts", &[("query", r#"["=", "name", "os"]"#)]),
    ("facts", &[("query", COUNT)]),
    ("facts/os", &[("query", r#"["~","certname","\\."]"#)]),
    ("facts/pdbmux_source", &[("order_by", ORDER)]),
    ("fact-names", &[("limit", "2")]),
    (
        "reports",
        &[("order_by", ORDER), ("query", r#"["=","status","failed"]"#)],
    ),
    ("reports/h/events", &[]),
    ("reports/h/logs", &[]),
    (
        "event-counts",
        &[
            ("counts_filter", r#"[">","failures",0]"#),
            ("query", r#"["=","latest_report?",true]"#),
            ("summarize_by", "certname"),
        ],
    ),
    ("aggregate-event-counts", &[("summarize_by", "certname")]),
    (
        "resources",
        &[("limit", "3"), ("query", r#"["=","type","Class"]"#)],
    ),
    ("inventory", &[("query", r#"["=","facts.a",1.50e1]"#)]),
    ("environments", &[("nosuch", "x")]),
    ("", &[("query", "nodes { certname ~ 'a&b=%+c' }")]),
    (
        "",
        &[("ast_only", "true"), ("query", r#"["from", "nodes"]"#)],
    ),
];

/// The JSON object that clients of PuppetDB write for these parameters.
fn object(parameters: &[(&str, &str)]) -> String {
    let members = parameters.iter().map(|(name, text)| {
        let value = match *name {
            "query" if !text.starts_with('[') => Value::from(*text),
            // Exactly what the URL holds, digit by digit.
            "query" => return format!("\"query\": {text}"),
            "summarize_by" | "nosuch" => Value::from(*text),
            _ => serde_json::from_str(text).unwrap(),
        };
        format!("\"{name}\": {value}")
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
}

fn path(entity: &str) -> String {
    format!("/pdb/query/v4/{entity}")
        .trim_end_matches('/')
        .to_owned()
}

/// Rows that every entity's merge can read.
fn rows(of: &str) -> String {
    let row = |certname: &str| {
        let mut row = Map::new();
        for (column, value) in [
            ("certname", certname),
            ("name", "os"),
            ("environment", "e"),
            ("value", of),
            ("hash", of),
            ("report_timestamp", "2024-05-01T10:00:00.000Z"),
            ("subject_type", "certname"),
        ] {
            row.insert(column.to_owned(), value.into());
        }
        row.insert("failures".to_owned(), 1.into());
        row.insert("count".to_owned(), 2.into());
        row.insert("subject".to_owned(), serde_json::json!({"title": certname}));
        Value::Object(row)
    };
    serde_json::to_string(&[row("n"), row(of)]).unwrap()
}

async fn backend(of: &'static str) -> Stub {
    let stub = Stub::start().await;
    stub.fresh(&[("n", "2024-05-01T10:00:00.000Z")]);
    stub.on("/pdb/query/v4/fact-names", r#"["a","os"]"#);
    stub.on(
        "/pdb/query/v4/environments",
        Answer::status(400, "Unsupported query parameter 'nosuch'"),
    );
    stub.otherwise(Answer::counted(5, rows(of)));
    stub
}

/// What a client sees, and what both backends saw.
#[derive(Debug, Clone, PartialEq)]
struct Shown {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
    asked: [Vec<String>; 2],
}

fn shown(response: &Response, stubs: [&Stub; 2]) -> Shown {
    let mut headers = response.headers.clone();
    headers.retain(|(name, _)| name != "date");
    let asked = stubs.map(|stub| {
        assert!(stub.seen().iter().all(|seen| seen.method == "GET"));
        let mut asked = stub.asked();
        asked.sort();
        asked
    });
    Shown {
        status: response.status,
        headers,
        body: response.text().to_owned(),
        asked,
    }
}

/// A request that asks `question`, and how it does.
fn requests((entity, parameters): Question) -> [(&'static str, String); 4] {
    let path = path(entity);
    let get = target(&path, parameters);
    let form = get.split_once('?').map_or("", |(_, query)| query);
    let (half, other) = parameters.split_at(parameters.len() / 2);
    let other = target("", other);
    [
        ("GET", crate::client::request("GET", &get)),
        ("form", with_body("GET", &path, FORM, form)),
        (
            "URL and form",
            with_body(
                "GET",
                &target(&path, half),
                FORM,
                other.trim_start_matches('?'),
            ),
        ),
        (
            "POST",
            with_body("POST", &path, super::JSON, &object(parameters)),
        ),
    ]
}

#[tokio::test]
async fn the_answer_and_what_is_asked_upstream_are_the_same_in_every_mode() {
    let modes = [Strategy::Freshness, Strategy::Static, Strategy::Exact];
    for (mode, &question) in modes
        .iter()
        .flat_map(|mode| QUESTIONS.iter().map(move |it| (*mode, it)))
    {
        let mut first = None;
        for (how, request) in requests(question) {
            let (a, b) = (backend("a").await, backend("b").await);
            let mux = Pdbmux::with(&[&a, &b], |config| config.merge = mode).await;
            let shown = shown(&answer(&mux, request).await, [&a, &b]);
            assert_eq!(
                first.get_or_insert_with(|| shown.clone()),
                &shown,
                "{mode:?}: {question:?} by {how}"
            );
        }
    }
}

#[tokio::test]
async fn they_share_one_entry_of_the_cache() {
    let kept = ["nodes", "facts", "facts/os", "fact-names"];
    for &question in QUESTIONS {
        let (entity, parameters) = question;
        if !kept.contains(&entity)
            || parameters
                .iter()
                .any(|(_, value)| ["0", COUNT].contains(value))
        {
            continue;
        }
        for first in 0..4 {
            let (a, b) = (backend("a").await, backend("b").await);
            let mux = Pdbmux::with(&[&a, &b], |config| {
                config.facts_ttl = Duration::from_hours(1);
            })
            .await;
            let mut requests = requests(question);
            requests.rotate_left(first);
            let mut body = None;
            for (at, (how, request)) in requests.into_iter().enumerate() {
                let response = answer(&mux, request).await;
                let origin = if at == 0 { "miss" } else { "hit" };
                assert_eq!(
                    response.header("x-cache"),
                    Some(origin),
                    "{question:?} by {how}"
                );
                let text = response.ok().to_owned();
                assert_eq!(body.get_or_insert_with(|| text.clone()), &text);
            }
            assert_eq!(a.asked().len(), 1, "{question:?}");
        }
    }
}

#[tokio::test]
async fn null_and_nothing_ask_for_everything() {
    let a = Stub::start().await;
    a.on("/pdb/query/v4/nodes", nodes_body(&[("n", "")]));
    let mux = Pdbmux::with(&[&a], |config| config.facts_ttl = Duration::from_hours(1)).await;
    let whole = mux.get("/pdb/query/v4/nodes").await.ok().to_owned();
    for body in [
        "",
        " \n",
        "{}",
        r#"{"query":null}"#,
        r#"{"query":null,"limit":null,"order_by":null}"#,
    ] {
        let response = post(&mux, "/pdb/query/v4/nodes", body).await;
        assert_eq!(
            (response.ok(), response.header("x-cache")),
            (&*whole, Some("hit")),
            "{body}"
        );
    }
    assert_eq!(a.targets(), ["/pdb/query/v4/nodes"]);
}

#[tokio::test]
async fn no_digit_of_a_query_changes() {
    let a = Stub::start().await;
    a.otherwise("[]");
    let mux = Pdbmux::start(&[&a]).await;
    let query =
        "[\"=\",\n \"value\", 1.500000000000000000001e+03, \"\\u00e9\\/\", 18446744073709551617]";
    let body = format!("{{\"query\":{query}}}");
    post(&mux, "/pdb/query/v4/inventory", &body).await.ok();
    assert_eq!(a.only().param("query").as_deref(), Some(query));
}

#[tokio::test]
async fn the_bodies_of_other_requests_are_not_looked_at() {
    let a = Stub::start().await;
    a.on("/pdb/query/v4/nodes", "[]")
        .on("/pdb/meta/v1/version", r#"{"version":"8.0.0"}"#);
    let mux = Pdbmux::start(&[&a]).await;
    for (path, headers) in [
        ("/pdb/query/v4/nodes", super::JSON),
        ("/pdb/query/v4/nodes", "Content-Type: text/plain\r\n"),
        ("/pdb/query/v4/nodes", ""),
        ("/pdb/meta/v1/version", FORM),
    ] {
        answer(&mux, with_body("GET", path, headers, "limit=x"))
            .await
            .ok();
    }
    // Puppet's terminus sends such a header without a body.
    let bare = format!("GET /pdb/query/v4/nodes HTTP/1.1\r\nHost: x\r\n{FORM}\r\n");
    answer(&mux, bare).await.ok();
    assert!(a.targets().iter().all(|target| !target.contains('?')));
}
