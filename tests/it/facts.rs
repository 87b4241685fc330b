//! `/facts` and `/facts/<name>`: all facts of a node from its owner (R041-R056, R068-R072).

use pdbmux_core::settings::Strategy;
use serde_json::json;

use crate::harness::Pdbmux;
use crate::stub::{Answer, Stub};

const FACTS: &str = "/pdb/query/v4/facts";
const OLD: &str = "2024-05-01T10:00:00.000Z";
const NEW: &str = "2024-05-02T10:00:00.000Z";

/// A fact record as PuppetDB writes it.
pub(crate) fn fact(certname: &str, name: &str, value: &str) -> String {
    format!(
        r#"{{"certname":"{certname}","environment":"production","name":"{name}","value":"{value}"}}"#
    )
}

fn list(records: &[String]) -> String {
    format!("[{}]", records.join(","))
}

/// Two backends that hold the node `n`, the second with the newer report.
async fn shared() -> (Stub, Stub) {
    let (a, b) = (Stub::start().await, Stub::start().await);
    a.fresh(&[("n", OLD)]).on(
        FACTS,
        list(&[fact("n", "os", "a"), fact("n", "only_a", "a")]),
    );
    b.fresh(&[("n", NEW)]).on(
        FACTS,
        list(&[fact("n", "os", "b"), fact("n", "only_b", "b")]),
    );
    (a, b)
}

#[tokio::test]
async fn r041_r042_r043_r048_a_nodes_facts_are_its_owners_and_never_mixed() {
    let (a, b) = shared().await;
    let mux = Pdbmux::with(&[&a, &b], |config| config.source_fact_enabled = false).await;
    let of_b = list(&[fact("n", "os", "b"), fact("n", "only_b", "b")]);
    assert_eq!(mux.get(FACTS).await.ok(), of_b);

    a.fresh(&[("n", NEW)]);
    let mux = Pdbmux::with(&[&a, &b], |config| config.source_fact_enabled = false).await;
    let of_a = list(&[fact("n", "os", "a"), fact("n", "only_a", "a")]);
    assert_eq!(
        mux.get(FACTS).await.ok(),
        of_a,
        "a tie goes to the first configured"
    );
}

#[tokio::test]
async fn r045_static_merging_asks_no_nodes_and_takes_the_first_holder() {
    let (a, b) = shared().await;
    b.on(FACTS, list(&[fact("n", "os", "b"), fact("m", "os", "b")]));
    let mux = Pdbmux::with(&[&a, &b], |config| {
        config.merge = Strategy::Static;
        config.source_fact_enabled = false;
    })
    .await;
    let expected = [
        fact("n", "os", "a"),
        fact("n", "only_a", "a"),
        fact("m", "os", "b"),
    ];
    assert_eq!(mux.get(FACTS).await.ok(), list(&expected));
    assert_eq!((a.freshness_asks(), b.freshness_asks()), (0, 0));
}

#[tokio::test]
async fn r046_r047_facts_of_a_node_are_served_by_whoever_sent_some() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    // The map knows nothing of `unknown`; the owner of `moved` sent none of its facts.
    a.fresh(&[("moved", NEW)])
        .on(FACTS, list(&[fact("unknown", "os", "a")]));
    b.fresh(&[("moved", OLD)]).on(
        FACTS,
        list(&[fact("unknown", "os", "b"), fact("moved", "os", "b")]),
    );
    let mux = Pdbmux::with(&[&a, &b], |config| config.source_fact_enabled = false).await;
    let expected = [fact("unknown", "os", "a"), fact("moved", "os", "b")];
    assert_eq!(mux.get(FACTS).await.ok(), list(&expected));
}

#[tokio::test]
async fn r049_r050_r051_each_node_gains_one_fact_among_its_own() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    let bare = r#"{"certname":"m","environment":null,"name":"os","value":1}"#;
    a.fresh(&[("n", NEW), ("m", NEW)]).on(
        FACTS,
        format!("[{},{bare},{}]", fact("n", "os", "a"), fact("n", "z", "a")),
    );
    let none = r#"{"certname":"bare","name":"os","value":1}"#;
    b.fresh(&[("n", OLD)])
        .on(FACTS, format!("[{},{none}]", fact("n", "os", "b")));
    let mux = Pdbmux::start(&[&a, &b]).await;
    let response = mux.get(FACTS).await;
    let all = response.json();
    let synthetic: Vec<_> = all
        .as_array()
        .unwrap()
        .iter()
        .filter(|record| record["name"] == "pdbmux_source")
        .collect();
    assert_eq!(
        json!(synthetic),
        json!([
            {"certname":"n","environment":"production","name":"pdbmux_source","value":"pdb-a"},
            {"certname":"m","environment":null,"name":"pdbmux_source","value":"pdb-a"},
            {"certname":"bare","environment":null,"name":"pdbmux_source","value":"pdb-b"},
        ])
    );
    let places: Vec<_> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["certname"].as_str().unwrap())
        .collect();
    let nodes: Vec<_> = places.chunk_by(|a, b| a == b).map(|run| run[0]).collect();
    assert_eq!(
        nodes,
        ["n", "m", "n", "bare"],
        "beside the node's other facts: {places:?}"
    );
}

#[tokio::test]
async fn r052_r054_r075_aggregates_are_combined_and_not_inflated() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    for path in [FACTS, "/pdb/query/v4/facts/os", "/pdb/query/v4/facts/os/a"] {
        a.on(path, r#"[{"count":3,"value":"a"},{"count":1,"value":"x"}]"#);
        b.on(path, r#"[{"count":4,"value":"a"}]"#);
    }
    let mux = Pdbmux::start(&[&a, &b]).await;
    let query = [(
        "query",
        r#"["extract",["value",["function","count"]],["group_by","value"]]"#,
    )];
    for path in [FACTS, "/pdb/query/v4/facts/os", "/pdb/query/v4/facts/os/a"] {
        let mut rows = mux.ask(path, &query).await.json();
        let rows = rows.as_array_mut().unwrap();
        rows.sort_by_key(|row| row["value"].to_string());
        assert_eq!(
            json!(rows),
            json!([{"count":7,"value":"a"},{"count":1,"value":"x"}])
        );
    }
    assert_eq!(a.freshness_asks(), 0);
}

#[tokio::test]
async fn r053_r055_r056_a_named_fact_follows_the_owner_and_gains_nothing() {
    let (a, b) = shared().await;
    for raw in [
        "/pdb/query/v4/facts/os",
        "/pdb/query/v4/facts/o%73/a%2Fb",
        "/pdb/query/v4/facts/",
    ] {
        a.on(raw, list(&[fact("n", "os", "a")]));
        b.on(raw, list(&[fact("n", "os", "b")]));
        let mux = Pdbmux::start(&[&a, &b]).await;
        assert_eq!(mux.get(raw).await.ok(), list(&[fact("n", "os", "b")]));
        assert_eq!(a.asked().pop().unwrap(), raw);
        assert_eq!(b.asked().pop().unwrap(), raw);
    }
}

#[tokio::test]
async fn r068_r069_r083_upstream_namesakes_are_dropped_where_a_record_names_itself() {
    let a = Stub::start().await;
    let real = fact("n", "pdbmux_source", "forged");
    a.fresh(&[("n", NEW)])
        .on(
            FACTS,
            list(&[real.clone(), fact("n", "os", "a"), real.clone()]),
        )
        .on(
            "/pdb/query/v4/facts/os",
            list(&[real.clone(), fact("n", "os", "a")]),
        );
    let mux = Pdbmux::start(&[&a]).await;
    let response = mux.get(FACTS).await;
    assert!(!response.ok().contains("forged"));
    assert_eq!(response.text().matches("pdbmux_source").count(), 1);
    assert_eq!(
        mux.get("/pdb/query/v4/facts/os").await.ok(),
        list(&[fact("n", "os", "a")])
    );
    // A filter on the name is forwarded as it is and finds nothing that would be served.
    let query = [("query", r#"["=","name","pdbmux_source"]"#)];
    a.on(FACTS, list(&[real]));
    assert_eq!(mux.ask(FACTS, &query).await.ok(), "[]");
    assert_eq!(
        a.seen().pop().unwrap().param("query").as_deref(),
        Some(query[0].1)
    );
    // A row without a name column passes.
    let query = [(
        "query",
        r#"["extract",["certname","value"],["=","name","pdbmux_source"]]"#,
    )];
    let row = r#"[{"certname":"n","value":"forged"}]"#;
    a.on(FACTS, row);
    assert_eq!(mux.ask(FACTS, &query).await.ok(), row);
}

#[tokio::test]
async fn r071_r072_r082_injection_can_be_switched_off_and_renamed() {
    let a = Stub::start().await;
    let real = list(&[fact("n", "pdbmux_source", "theirs"), fact("n", "os", "a")]);
    a.fresh(&[("n", NEW)]).on(FACTS, real.as_str());
    let off = Pdbmux::with(&[&a], |config| config.source_fact_enabled = false).await;
    assert_eq!(off.get(FACTS).await.ok(), real);
    let renamed = Pdbmux::with(&[&a], |config| config.source_fact = "origin".to_owned()).await;
    let response = renamed.get(FACTS).await;
    assert!(response.ok().contains("theirs"));
    assert!(
        response
            .text()
            .contains(r#""name":"origin","value":"pdb-a""#)
    );
}

#[tokio::test]
async fn r076_to_r081_r085_the_whole_query_decides_about_injection() {
    let a = Stub::start().await;
    a.fresh(&[("n", NEW)])
        .on(FACTS, list(&[fact("n", "os", "a")]));
    let mux = Pdbmux::start(&[&a]).await;
    for (query, injected) in [
        ("", true),
        ("null", true),
        (r#"["=","certname","n"]"#, true),
        (
            r#"["and",["=","certname","n"],["~","environment","."]]"#,
            true,
        ),
        (
            r#"["in","certname",["extract","certname",["select_facts",["=","name","os"]]]]"#,
            true,
        ),
        (r#"["subquery","resources",["=","type","File"]]"#, true),
        (
            r#"["in","certname",["from","facts",["extract","certname",["=","name","x"]]]]"#,
            true,
        ),
        (r#"["=","name","os"]"#, false),
        (r#"["~","name","o"]"#, false),
        (r#"["not",["=","name","x"]]"#, false),
        (
            r#"["and",["=","certname","n"],["or",["=","name","os"]]]"#,
            false,
        ),
        (r#"["in","name",["array",["os"]]]"#, false),
        (
            r#"["extract",["certname","environment","name","value"]]"#,
            false,
        ),
        ("facts { name = 'os' }", false),
        (r#""text""#, false),
        (r#"{"a":1}"#, false),
    ] {
        let response = mux.ask(FACTS, &[("query", query)]).await;
        assert_eq!(response.ok().contains("pdbmux_source"), injected, "{query}");
    }
}

#[tokio::test]
async fn r073_r074_each_endpoint_names_the_winner_of_its_own_merge() {
    let (a, b) = shared().await;
    a.on(
        "/pdb/query/v4/nodes",
        r#"[{"certname":"n","report_timestamp":"2024-05-01T10:00:00Z"}]"#,
    );
    b.on(
        "/pdb/query/v4/nodes",
        r#"[{"certname":"n","report_timestamp":"2024-05-02T10:00:00Z"}]"#,
    );
    let mux = Pdbmux::with(&[&a, &b], |config| config.merge = Strategy::Static).await;
    assert!(
        mux.get("/pdb/query/v4/nodes")
            .await
            .ok()
            .contains(r#""pdbmux_source":"pdb-b""#)
    );
    assert!(
        mux.get(FACTS)
            .await
            .ok()
            .contains(r#""name":"pdbmux_source","value":"pdb-a""#)
    );
}

#[tokio::test]
async fn r084_nothing_is_added_to_other_routes() {
    let a = Stub::start().await;
    let body = r#"[{"certname":"n"}]"#;
    a.fresh(&[("n", NEW)]).otherwise(body);
    let mux = Pdbmux::start(&[&a]).await;
    for path in [
        "/pdb/query/v4/factsets",
        "/pdb/query/v4/inventory",
        "/pdb/query/v4/nodes/n",
        "/pdb/query/v4/nodes/n/facts",
        "/pdb/query/v4/nodes/n/facts/os",
        "/pdb/query/v4/factsets/n/facts",
    ] {
        assert_eq!(mux.get(path).await.ok(), body, "{path}");
    }
}

#[tokio::test]
async fn a_facts_answer_of_megabytes_is_merged_like_a_small_one() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    let of = |source: &str| {
        let records: Vec<_> = (0..20_000)
            .map(|n| fact(&format!("node{}", n / 10), &format!("f{}", n % 10), source))
            .collect();
        list(&records)
    };
    a.fresh(&[("node7", OLD)]).on(FACTS, of("a"));
    b.fresh(&[("node7", NEW)]).on(FACTS, Answer::json(of("b")));
    let mux = Pdbmux::with(&[&a, &b], |config| config.source_fact_enabled = false).await;
    let response = mux.get(FACTS).await;
    let records = response.json();
    let records = records.as_array().unwrap();
    assert_eq!(records.len(), 20_000);
    assert!(
        records
            .iter()
            .all(|r| (r["value"] == "b") == (r["certname"] == "node7"))
    );
}
