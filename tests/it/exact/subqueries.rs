//! Subqueries whose rows any backend may hold: asked of all before the question around them.

use std::time::Duration;

use pdbmux_core::settings::Strategy;
use serde_json::json;

use super::estate::{asked, estate};
use crate::harness::Pdbmux;
use crate::stub::{Answer, Stub};

const FACTS: &str = "/pdb/query/v4/facts";
const REPORTS: &str = "/pdb/query/v4/reports";
const EVENTS: &str = "/pdb/query/v4/events";

const FAILED: &str =
    r#"["in","certname",["extract","certname",["select_reports",["=","status","failed"]]]]"#;
const SEES_ONE: &str = "no; reason=subquery-sees-one-backend";

/// Two backends that have one node each and no facts.
async fn pair() -> ([Stub; 2], Pdbmux) {
    let (stubs, mux) = estate([&[("x", 1)], &[("y", 1)]]).await;
    for stub in &stubs {
        stub.on(FACTS, "[]");
    }
    (stubs, mux)
}

fn certname(name: &str) -> String {
    format!(r#"[{{"certname":"{name}"}}]"#)
}

#[tokio::test]
async fn what_all_backends_know_stands_in_the_place_of_a_subquery() {
    let ([a, b], mux) = pair().await;
    a.on(REPORTS, certname("x"));
    b.on(REPORTS, r#"[{"certname":"x"},{"certname":"old"}]"#);
    let query = format!(r#"["extract",["name"],["not",{FAILED}]]"#);
    let response = mux.ask(FACTS, &[("query", &query)]).await;
    assert_eq!(response.ok(), "[]");
    assert_eq!(response.backends(), Some("2/2"));
    assert_eq!(response.header("x-pdbmux-exact"), None);
    for stub in [&a, &b] {
        assert_eq!(
            asked(stub),
            [
                r#"/reports ["extract",["certname"],["=","status","failed"],["group_by","certname"]]"#,
                r#"/facts ["extract",["name"],["not",["or",["in","certname",["array",["old","x"]]]]]]"#,
            ]
        );
    }
}

#[tokio::test]
async fn r197_a_request_is_one_round_however_many_questions_come_first() {
    let ([a, b], mux) = pair().await;
    a.on(REPORTS, certname("x"));
    b.on(REPORTS, Answer::status(503, "down"));
    let seen = async || mux.get("/healthz").await.json()["query"].clone();
    let response = mux.ask(FACTS, &[("query", FAILED)]).await;
    assert_eq!(response.backends(), Some("1/2"));
    // The last round was the one of the question itself, to which both contributed.
    let query = seen().await;
    assert_eq!(
        (&query["partial"], &query["contributed"]),
        (&json!(true), &json!(1))
    );
    assert_eq!(query["partial_rounds"], 1);
    a.on(REPORTS, Answer::status(500, "broken"));
    assert_eq!(mux.ask(FACTS, &[("query", FAILED)]).await.status, 502);
    assert_eq!(seen().await["partial_rounds"], 2);
}

#[tokio::test]
async fn the_innermost_subquery_is_asked_first() {
    let ([a, b], mux) = pair().await;
    for (stub, report) in [(&a, "r1"), (&b, "r2")] {
        stub.on(EVENTS, format!(r#"[{{"environment":"{report}"}}]"#));
        stub.on(REPORTS, "[]");
    }
    let events = r#"["in","environment",["from","events",["extract","environment",["=","status","failure"]]]]"#;
    let query = format!(r#"["subquery","reports",{events}]"#);
    let response = mux.ask(FACTS, &[("query", &query)]).await;
    assert_eq!(response.ok(), "[]");
    let questions = asked(&a);
    let paths: Vec<_> = questions.iter().map(|it| it.split(' ').next()).collect();
    assert_eq!(paths, [Some("/events"), Some("/reports"), Some("/facts")]);
    assert!(
        questions[1].contains(r#"["in","environment",["array",["r1","r2"]]]"#),
        "{questions:?}"
    );
    // No row at all: nothing can equal it.
    assert!(
        questions[2].ends_with(r#" ["and",["null?","certname",true],["null?","certname",false]]"#)
    );
}

#[tokio::test]
async fn a_limit_inside_cuts_the_rows_of_all_backends() {
    let ([a, b], mux) = pair().await;
    a.on(
        REPORTS,
        r#"[{"certname":"c","hash":"3"},{"certname":"d","hash":"4"}]"#,
    );
    b.on(
        REPORTS,
        r#"[{"certname":"b","hash":"2"},{"certname":"e","hash":"5"}]"#,
    );
    let query = r#"["in","certname",["from","reports",["extract","certname"],["order_by",["hash"]],["limit",2]]]"#;
    let response = mux.ask(FACTS, &[("query", query)]).await;
    assert_eq!(response.header("x-pdbmux-exact"), None);
    assert_eq!(
        asked(&a).pop().as_deref(),
        Some(r#"/facts ["or",["in","certname",["array",["b","c"]]]]"#)
    );
}

#[tokio::test]
async fn a_backend_that_does_not_tell_of_a_subquery_is_missing_in_the_answer() {
    let ([a, b], mux) = pair().await;
    a.on(REPORTS, certname("x"));
    b.on(REPORTS, Answer::status(503, "down"));
    let response = mux.ask(FACTS, &[("query", FAILED)]).await;
    assert_eq!(response.ok(), "[]");
    assert_eq!(response.backends(), Some("1/2"));
    assert_eq!(
        response.header("x-pdbmux-missing"),
        Some("pdb-b; reason=status-503")
    );
    assert_eq!(response.header("x-pdbmux-exact"), None);
    assert!(asked(&b).last().unwrap().contains(r#"["array",["x"]]"#));
}

#[tokio::test]
async fn if_nobody_tells_of_a_subquery_there_is_no_answer() {
    let ([a, b], mux) = pair().await;
    a.on(REPORTS, Answer::status(500, "broken"));
    b.on(REPORTS, Answer::status(503, "down"));
    let response = mux.ask(FACTS, &[("query", FAILED)]).await;
    assert_eq!(response.status, 502);
    assert!(
        response.text().contains("pdb-b: status-503"),
        "{}",
        response.text()
    );
    assert!(asked(&a).iter().all(|it| !it.starts_with("/facts")));
}

#[tokio::test]
async fn a_subquery_that_all_refuse_is_refused_with_the_question_around_it() {
    let ([a, b], mux) = pair().await;
    for stub in [&a, &b] {
        stub.on(REPORTS, Answer::status(400, "no such column"));
        stub.on(FACTS, Answer::status(400, "the whole is wrong"));
    }
    let response = mux.ask(FACTS, &[("query", FAILED)]).await;
    assert_eq!(response.status, 400);
    assert_eq!(response.text(), "the whole is wrong");
    assert_eq!(asked(&a).pop(), Some(format!("/facts {FAILED}")));
}

/// More values than a query takes.
fn too_many() -> String {
    let rows: Vec<_> = (0..=10_000)
        .map(|at| format!(r#"{{"certname":"n{at}"}}"#))
        .collect();
    format!("[{}]", rows.join(","))
}

#[tokio::test]
async fn too_many_values_leave_the_subquery_where_it_is_and_mark_the_answer() {
    let ([a, b], mux) = pair().await;
    a.on(REPORTS, too_many());
    b.on(REPORTS, "[]");
    let response = mux.ask(FACTS, &[("query", FAILED)]).await;
    assert_eq!(response.ok(), "[]");
    assert_eq!(response.backends(), Some("2/2"));
    assert_eq!(response.header("x-pdbmux-exact"), Some(SEES_ONE));
    assert_eq!(asked(&b).pop(), Some(format!("/facts {FAILED}")));
}

#[tokio::test]
async fn a_cached_answer_keeps_the_mark_that_it_got_while_it_was_made() {
    let ([a, b], _) = pair().await;
    let mux = Pdbmux::with(&[&a, &b], |config| {
        config.merge = Strategy::Exact;
        config.facts_ttl = Duration::from_mins(1);
    })
    .await;
    a.on(REPORTS, too_many());
    b.on(REPORTS, "[]");
    for origin in ["miss", "hit"] {
        let response = mux.ask(FACTS, &[("query", FAILED)]).await;
        assert_eq!(response.header("x-cache"), Some(origin));
        assert_eq!(response.header("x-pdbmux-exact"), Some(SEES_ONE));
    }
    // What the subquery came to is part of the entry, which is kept under the client's question.
    let asked = asked(&a);
    assert_eq!(
        asked.iter().filter(|it| it.starts_with("/reports")).count(),
        1
    );
}

#[tokio::test]
async fn routes_below_a_node_ask_first_too() {
    let ([a, b], mux) = pair().await;
    let below = "/pdb/query/v4/nodes/x/facts";
    a.on(below, "[]");
    a.on(REPORTS, certname("x"));
    b.on(REPORTS, Answer::status(503, "down"));
    let response = mux.ask(below, &[("query", FAILED)]).await;
    assert_eq!(response.ok(), "[]");
    assert_eq!(
        response.header("x-pdbmux-missing"),
        Some("pdb-b; reason=status-503")
    );
    assert_eq!(response.header("x-pdbmux-exact"), None);
    assert_eq!(
        asked(&a).pop().as_deref(),
        Some(r#"/nodes/x/facts ["or",["in","certname",["array",["x"]]]]"#)
    );
    a.on(REPORTS, too_many());
    let response = mux.ask(below, &[("query", FAILED)]).await;
    assert_eq!(response.header("x-pdbmux-exact"), Some(SEES_ONE));
    a.on(REPORTS, Answer::status(500, "broken"));
    assert_eq!(mux.ask(below, &[("query", FAILED)]).await.status, 502);
}

#[tokio::test]
async fn nothing_is_asked_first_in_the_default_modes() {
    let ([a, b], _) = pair().await;
    let mux = Pdbmux::start(&[&a, &b]).await;
    mux.ask(FACTS, &[("query", FAILED)]).await;
    let asked = asked(&a);
    assert!(asked.contains(&format!("/facts {FAILED}")), "{asked:?}");
    assert!(asked.iter().all(|it| !it.starts_with("/reports")));
}

#[tokio::test]
async fn the_explanation_tells_what_was_asked_first() {
    let ([a, b], mux) = pair().await;
    for stub in [&a, &b] {
        stub.on(REPORTS, certname("x"));
    }
    let target = crate::harness::target(FACTS, &[("query", FAILED)]);
    let request = format!("GET {target} HTTP/1.1\r\nHost: pdbmux\r\nX-Pdbmux-Explain: 1\r\n\r\n");
    let mut client = mux.connect().await;
    client.send(request.as_bytes()).await;
    let told = client.response().await.json();
    let first = &told["plan"]["first"][0];
    assert_eq!(first["in_place_of"], FAILED);
    assert_eq!(
        first["each_is_asked_for"],
        "the reports that no other speaks for"
    );
    assert_eq!(
        first["else_not_exact"],
        json!(["subquery-sees-one-backend"])
    );
    assert_eq!(told["outcome"]["not_exact"], json!([]));
    assert_eq!(told["plan"]["not_exact"], json!([]));
}
