//! The root route: each entity by its own plan.

use super::estate::{asked, estate};
use crate::stub::Answer;

const ROOT: &str = "/pdb/query/v4";
const FACTS: &str = "/pdb/query/v4/facts";
const REPORTS: &str = "/pdb/query/v4/reports";

fn from(query: &str) -> Vec<(&str, &str)> {
    vec![("query", query)]
}

#[tokio::test]
async fn t41_a_query_takes_the_plan_of_its_entity() {
    let ([a, b], mux) = estate([&[("n", 1), ("x", 1)], &[("n", 2)]]).await;
    a.on(FACTS, r#"[{"certname":"x","value":1}]"#);
    b.on(FACTS, r#"[{"certname":"n","value":2}]"#);
    let query = r#"["from","facts",["=","name","f"]]"#;
    let response = mux.ask(ROOT, &from(query)).await;
    assert_eq!(
        response.ok(),
        r#"[{"certname":"x","value":1},{"certname":"n","value":2}]"#
    );
    assert_eq!(response.backends(), Some("2/2"));
    assert_eq!(response.header("x-pdbmux-exact"), None);
    let stale = r#"["not",["or",["in","certname",["array",["n"]]]]]"#;
    assert_eq!(
        asked(&a),
        [format!(r#"/facts ["and",{stale},["=","name","f"]]"#)]
    );
}

#[tokio::test]
async fn whole_records_come_as_a_puppetdb_has_them() {
    let ([_a, _b], mux) = estate([&[("x", 1)], &[("y", 2)]]).await;
    let response = mux.ask(ROOT, &from(r#"["from","nodes"]"#)).await;
    assert!(!response.ok().contains("pdbmux_source"), "{response:?}");
    let response = mux.get("/pdb/query/v4/nodes").await;
    assert!(response.ok().contains(r#""pdbmux_source":"pdb-a""#));
}

#[tokio::test]
async fn the_source_can_be_asked_for_by_name() {
    let ([_a, _b], mux) = estate([&[("x", 1)], &[("y", 2)]]).await;
    let query = r#"["from","nodes",["extract",["certname","pdbmux_source"]]]"#;
    let response = mux.ask(ROOT, &from(query)).await;
    assert!(response.ok().contains(r#""pdbmux_source":"pdb-b""#));
}

#[tokio::test]
async fn t25_the_window_is_cut_from_the_merged_set() {
    let ([a, b], mux) = estate([&[("x", 1)], &[("y", 1)]]).await;
    a.on(
        FACTS,
        r#"[{"certname":"x","name":"a"},{"certname":"x","name":"c"}]"#,
    );
    b.on(FACTS, r#"[{"certname":"y","name":"b"}]"#);
    let query = r#"["from","facts",["extract",["certname","name"]],["order_by",["name"]],["limit",1],["offset",1]]"#;
    let response = mux.ask(ROOT, &from(query)).await;
    assert_eq!(response.ok(), r#"[{"certname":"y","name":"b"}]"#);
    // What stands in the URL wins.
    let response = mux.ask(ROOT, &[("query", query), ("offset", "2")]).await;
    assert_eq!(response.ok(), r#"[{"certname":"x","name":"c"}]"#);
}

#[tokio::test]
async fn t42_inactive_nodes_are_hidden_where_the_entitys_own_route_does_not() {
    let ([a, b], mux) = estate([&[("x", 1)], &[("y", 1)]]).await;
    for stub in [&a, &b] {
        stub.on(REPORTS, r#"[{"count":1}]"#);
    }
    let count = |condition: &str| {
        format!(r#"["from","reports",["extract",[["function","count"]]{condition}]]"#)
    };
    let response = mux.ask(ROOT, &from(&count(""))).await;
    assert_eq!(response.ok(), r#"[{"count":2}]"#);
    mux.ask(ROOT, &from(&count(r#",["=","node_state","any"]"#)))
        .await;
    assert_eq!(
        asked(&a),
        [
            r#"/reports ["extract",[["function","count"]],["=","node_state","active"]]"#,
            r#"/reports ["extract",[["function","count"]],["=","node_state","any"]]"#,
        ]
    );
}

#[tokio::test]
async fn what_cannot_be_classified_is_refused_in_puppetdbs_own_words() {
    let ([a, b], mux) = estate([&[("x", 1)], &[("y", 1)]]).await;
    for stub in [&a, &b] {
        stub.on(
            ROOT,
            Answer::status(400, "Invalid entity 'nosuch' in query"),
        );
    }
    for query in [
        r#"["from","nosuch"]"#,
        r#"["from","event_counts"]"#,
        r#"["from","nodes",["limit","x"]]"#,
        r#"["from"]"#,
        "[]",
    ] {
        let response = mux.ask(ROOT, &from(query)).await;
        assert_eq!(response.status, 400, "{query}");
        assert_eq!(response.text(), "Invalid entity 'nosuch' in query");
        assert_eq!(asked(&a).pop(), Some(format!(" {query}")));
    }
    let known = r#"["from","events"]"#;
    let response = mux
        .ask(ROOT, &[("query", known), ("distinct_resources", "true")])
        .await;
    assert_eq!(response.status, 400);
}

#[tokio::test]
async fn what_one_backend_takes_all_the_same_is_marked() {
    let ([a, _b], mux) = estate([&[("x", 1)], &[("y", 1)]]).await;
    a.on(ROOT, "[1]");
    let response = mux
        .ask(ROOT, &from(r#"["from","nodes",["limit",1.5]]"#))
        .await;
    assert_eq!(response.ok(), "[1]");
    assert_eq!(
        response.header("x-pdbmux-exact"),
        Some("no; reason=one-backend")
    );
}

#[tokio::test]
async fn t26_a_limit_in_a_subquery_that_all_refuse_is_marked() {
    let ([a, b], mux) = estate([&[("x", 1)], &[("y", 1)]]).await;
    for stub in [&a, &b] {
        stub.on(FACTS, "[]");
        stub.on(REPORTS, Answer::status(400, "no"));
    }
    let condition = r#"["in","certname",["from","reports",["extract","certname",["=","latest_report?",true]],["limit",1]]]"#;
    let root = format!(r#"["from","facts",{condition}]"#);
    for (path, query) in [(ROOT, &*root), (FACTS, condition)] {
        let response = mux.ask(path, &from(query)).await;
        assert_eq!(
            response.header("x-pdbmux-exact"),
            Some("no; reason=limit-in-subquery"),
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_cached_answer_keeps_its_mark() {
    let ([a, b], _) = estate([&[("x", 1)], &[("y", 1)]]).await;
    let mux = crate::harness::Pdbmux::with(&[&a, &b], |config| {
        config.merge = pdbmux_core::settings::Strategy::Exact;
        config.facts_ttl = std::time::Duration::from_mins(1);
    })
    .await;
    for stub in [&a, &b] {
        stub.on(FACTS, "[]");
    }
    let query = r#"["in","name",["from","fact_names",["extract","name"]]]"#;
    for origin in ["miss", "hit"] {
        let response = mux.ask(FACTS, &from(query)).await;
        assert_eq!(response.header("x-cache"), Some(origin));
        assert_eq!(
            response.header("x-pdbmux-exact"),
            Some("no; reason=subquery-sees-one-backend")
        );
    }
}

#[tokio::test]
async fn r305_in_the_default_modes_the_first_backend_answers() {
    let ([a, b], _) = estate([&[("x", 1)], &[("y", 1)]]).await;
    a.on(ROOT, "[1]");
    let mux = crate::harness::Pdbmux::start(&[&a, &b]).await;
    let response = mux.ask(ROOT, &from(r#"["from","nodes"]"#)).await;
    assert_eq!(response.ok(), "[1]");
    assert_eq!(response.header("x-pdbmux-exact"), None);
    assert_eq!(asked(&b), [""; 0]);
}
