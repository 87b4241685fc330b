//! `/nodes`: one record a certname (R030-R040).

use pdbmux_core::settings::Strategy;
use serde_json::json;

use crate::harness::Pdbmux;
use crate::stub::{Answer, Stub, nodes_body};

const NODES: &str = "/pdb/query/v4/nodes";
const OLD: &str = "2024-05-01T10:00:00.000Z";
const NEW: &str = "2024-05-01T10:00:00.001Z";

async fn pair(a: &[(&str, &str)], b: &[(&str, &str)]) -> (Stub, Stub) {
    let (first, second) = (Stub::start().await, Stub::start().await);
    first.on(NODES, nodes_body(a));
    second.on(NODES, nodes_body(b));
    (first, second)
}

/// Which backend each certname's record names.
async fn sources(mux: &Pdbmux) -> Vec<(String, String)> {
    let response = mux.get(NODES).await;
    let records = response.json();
    let mut sources: Vec<_> = records
        .as_array()
        .unwrap()
        .iter()
        .map(|record| {
            let text = |key: &str| record[key].as_str().unwrap().to_owned();
            (text("certname"), text("pdbmux_source"))
        })
        .collect();
    sources.sort();
    sources
}

fn named(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let own = |(certname, source): &(&str, &str)| ((*certname).to_owned(), (*source).to_owned());
    pairs.iter().map(own).collect()
}

#[tokio::test]
async fn r030_to_r033_each_certname_comes_once_from_the_newer_report() {
    let (a, b) = pair(
        &[
            ("n1", OLD),
            ("n2", NEW),
            ("tie", NEW),
            ("never", ""),
            ("n5", ""),
        ],
        &[
            ("n1", NEW),
            ("n2", OLD),
            ("tie", NEW),
            ("never", ""),
            ("n5", OLD),
        ],
    )
    .await;
    let mux = Pdbmux::start(&[&a, &b]).await;
    let expected = [
        ("n1", "pdb-b"),
        ("n2", "pdb-a"),
        ("n5", "pdb-b"),
        ("never", "pdb-a"),
        ("tie", "pdb-a"),
    ];
    assert_eq!(sources(&mux).await, named(&expected));
}

#[tokio::test]
async fn r034_the_source_is_the_only_key_that_is_added() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    a.on(
        NODES,
        r#"[{"certname":"n1","report_timestamp":null,"x":{}}]"#,
    );
    b.on(NODES, r#"[{}, {"certname":"n2"}]"#);
    let mux = Pdbmux::start(&[&a, &b]).await;
    assert_eq!(
        mux.get(NODES).await.ok(),
        concat!(
            r#"[{"certname":"n1","report_timestamp":null,"x":{},"pdbmux_source":"pdb-a"},"#,
            r#"{"pdbmux_source":"pdb-b"},{"certname":"n2","pdbmux_source":"pdb-b"}]"#
        )
    );
}

#[tokio::test]
async fn r035_a_plain_extract_merges_by_certname_and_gains_nothing() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    let row = |reported: &str, of: &str| {
        format!(
            r#"[{{"catalog_environment":"{of}","certname":"n","report_timestamp":"{reported}"}}]"#
        )
    };
    a.on(NODES, row(OLD, "from-a"));
    b.on(NODES, row(NEW, "from-b"));
    let mux = Pdbmux::start(&[&a, &b]).await;
    // The certname and the timestamp that decide are asked for and taken out again (ruling 4).
    let query = [(
        "query",
        r#"["extract",["catalog_environment"],["=","certname","n"]]"#,
    )];
    assert_eq!(
        mux.ask(NODES, &query).await.ok(),
        r#"[{"catalog_environment":"from-b"}]"#
    );
    assert_eq!(
        a.only().param("query").as_deref(),
        Some(
            r#"["extract",["catalog_environment","certname","report_timestamp"],["=","certname","n"]]"#
        )
    );
    let query = [("query", r#"["extract",["certname","report_timestamp"]]"#)];
    a.on(NODES, nodes_body(&[("n", OLD)]));
    b.on(NODES, nodes_body(&[("n", NEW)]));
    assert_eq!(mux.ask(NODES, &query).await.ok(), nodes_body(&[("n", NEW)]));
}

#[tokio::test]
async fn r036_a_function_is_combined_before_certnames_are_looked_at() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    a.on(NODES, r#"[{"count":2}]"#);
    b.on(NODES, r#"[{"count":40}]"#);
    let mux = Pdbmux::start(&[&a, &b]).await;
    let query = [("query", r#"["extract",[["function","count"]]]"#)];
    assert_eq!(mux.ask(NODES, &query).await.json(), json!([{"count": 42}]));
}

#[tokio::test]
async fn r037_static_merging_leaves_the_newer_report_in_charge_here() {
    let (a, b) = pair(&[("n", OLD)], &[("n", NEW)]).await;
    let mux = Pdbmux::with(&[&a, &b], |config| config.merge = Strategy::Static).await;
    assert_eq!(sources(&mux).await, named(&[("n", "pdb-b")]));
    assert_eq!(a.freshness_asks(), 0);
}

#[tokio::test]
async fn r038_a_node_that_one_backend_holds_is_never_lost() {
    let (a, b) = pair(&[("a1", NEW), ("a2", "")], &[("b1", OLD)]).await;
    let mux = Pdbmux::start(&[&a, &b]).await;
    let expected = [("a1", "pdb-a"), ("a2", "pdb-a"), ("b1", "pdb-b")];
    assert_eq!(sources(&mux).await, named(&expected));
}

#[tokio::test]
async fn r039_r040_the_key_is_added_unless_the_query_projects_or_is_text() {
    let a = Stub::start().await;
    a.on(NODES, nodes_body(&[("n", NEW)]));
    let mux = Pdbmux::start(&[&a]).await;
    let without = r#"{"certname":"n","report_timestamp":"2024-05-01T10:00:00.001Z"}"#;
    for (query, added) in [
        ("", true),
        ("null", true),
        (r#"["=","certname","n"]"#, true),
        // A name is constrained, or columns are projected inside a subquery only.
        (
            r#"["in","certname",["extract","certname",["select_facts",["=","name","os"]]]]"#,
            true,
        ),
        (r#"["=",["fact","name"],"x"]"#, true),
        (r#"["extract",["certname","report_timestamp"]]"#, false),
        (
            r#"["extract",["certname","report_timestamp"],["~","certname","."]]"#,
            false,
        ),
        ("nodes { certname = 'n' }", false),
        (r#"{"not":"an array"}"#, false),
    ] {
        let response = mux.ask(NODES, &[("query", query)]).await;
        assert_eq!(response.ok().contains("pdbmux_source"), added, "{query}");
        if !added {
            assert_eq!(response.text(), format!("[{without}]"));
        }
    }
    let off = Pdbmux::with(&[&a], |config| config.source_fact_enabled = false).await;
    assert_eq!(off.get(NODES).await.ok(), format!("[{without}]"));
}

#[tokio::test]
async fn a_pdbmux_behind_pdbmux_leaves_one_source_key() {
    let a = Stub::start().await;
    a.on(NODES, r#"[{"certname":"n","pdbmux_source":"inner","x":1}]"#);
    let mux = Pdbmux::start(&[&a]).await;
    assert_eq!(
        mux.get(NODES).await.ok(),
        r#"[{"certname":"n","pdbmux_source":"pdb-a","x":1}]"#
    );
}

#[tokio::test]
async fn a_body_of_the_wrong_shape_is_a_failed_backend() {
    for body in [
        "", "null", "{}", "[1]", "[[]]", "[{}", "[{}]x", "[{},]", "<html>", "\u{0}",
    ] {
        let (a, b) = (Stub::start().await, Stub::start().await);
        a.on(NODES, Answer::json(body));
        b.on(NODES, r#"[{"certname":"n"}]"#);
        let mux = Pdbmux::start(&[&a, &b]).await;
        let response = mux.get(NODES).await;
        assert_eq!(
            response.ok(),
            r#"[{"certname":"n","pdbmux_source":"pdb-b"}]"#,
            "{body:?}"
        );
        assert_eq!(response.missing(), ["pdb-a; reason=damaged"], "{body:?}");
    }
}
