//! `/facts/<source_fact>`: made of the `/facts` merge (R057-R067).

use crate::facts::fact;
use crate::harness::Pdbmux;
use crate::stub::Stub;

const FACTS: &str = "/pdb/query/v4/facts";
const SOURCE: &str = "/pdb/query/v4/facts/pdbmux_source";
const OLD: &str = "2024-05-01T10:00:00.000Z";
const NEW: &str = "2024-05-02T10:00:00.000Z";

/// `n` is held by both and newer in the second; `m` only in the first.
async fn pair() -> (Stub, Stub) {
    let (a, b) = (Stub::start().await, Stub::start().await);
    a.fresh(&[("n", OLD), ("m", OLD)]);
    a.on(
        FACTS,
        format!("[{},{}]", fact("n", "os", "a"), fact("m", "os", "a")),
    );
    b.fresh(&[("n", NEW)])
        .on(FACTS, format!("[{}]", fact("n", "os", "b")));
    (a, b)
}

fn record(certname: &str, backend: &str) -> String {
    fact(certname, "pdbmux_source", backend)
}

#[tokio::test]
async fn r057_r058_r060_it_is_taken_from_one_facts_fan_out() {
    let (a, b) = pair().await;
    let mux = Pdbmux::start(&[&a, &b]).await;
    let response = mux.get(SOURCE).await;
    assert_eq!(
        response.ok(),
        format!("[{},{}]", record("m", "pdb-a"), record("n", "pdb-b"))
    );
    assert_eq!(response.backends(), Some("2/2"));
    assert_eq!(
        (a.only().target, b.only().target),
        (FACTS.to_owned(), FACTS.to_owned())
    );

    let all = mux.get(FACTS).await.json();
    let mut same = all.as_array().unwrap().clone();
    same.retain(|record| record["name"] == "pdbmux_source");
    assert_eq!(response.json(), serde_json::json!(same));
}

#[tokio::test]
async fn r059_the_query_narrows_it_upstream() {
    let (a, b) = pair().await;
    let mux = Pdbmux::start(&[&a, &b]).await;
    let query = r#"["=","certname","n"]"#;
    a.on(FACTS, "[]");
    let response = mux.ask(SOURCE, &[("query", query)]).await;
    assert_eq!(response.ok(), format!("[{}]", record("n", "pdb-b")));
    assert_eq!(a.only().param("query").as_deref(), Some(query));
}

#[tokio::test]
async fn r061_r062_r063_a_value_selects_the_nodes_of_that_backend() {
    let (a, b) = pair().await;
    let mux = Pdbmux::start(&[&a, &b]).await;
    let of = async |value: &str| {
        let response = mux.get(&format!("{SOURCE}/{value}")).await;
        response.ok().to_owned()
    };
    assert_eq!(of("pdb-a").await, format!("[{}]", record("m", "pdb-a")));
    assert_eq!(of("pdb%2Db").await, format!("[{}]", record("n", "pdb-b")));
    let before = a.targets();
    assert_eq!(of("nobody").await, "[]");
    assert_eq!(of("").await, "[]");
    assert_eq!(
        a.targets(),
        before,
        "no backend is asked about a value that names none"
    );
    assert!(a.asked().iter().all(|target| target == FACTS));
}

#[tokio::test]
async fn r062_a_total_of_nothing_is_a_total() {
    let a = Stub::start().await;
    let mux = Pdbmux::start(&[&a]).await;
    let response = mux
        .ask(&format!("{SOURCE}/nobody"), &[("include_total", "true")])
        .await;
    assert_eq!(
        (response.ok(), response.header("x-records")),
        ("[]", Some("0"))
    );
}

#[tokio::test]
async fn r065_an_aggregate_takes_the_combining_branch() {
    let (a, b) = pair().await;
    a.on(SOURCE, r#"[{"count":0}]"#);
    b.on(SOURCE, r#"[{"count":0}]"#);
    let mux = Pdbmux::start(&[&a, &b]).await;
    let query = [("query", r#"["extract",[["function","count"]]]"#)];
    assert_eq!(mux.ask(SOURCE, &query).await.ok(), r#"[{"count":0}]"#);
}

#[tokio::test]
async fn r066_gated_queries_find_nothing() {
    let a = Stub::start().await;
    let mux = Pdbmux::start(&[&a]).await;
    for query in [
        r#"["extract",["certname"]]"#,
        r#"["=","name","os"]"#,
        "facts{}",
        r#"{"a":1}"#,
    ] {
        assert_eq!(mux.ask(SOURCE, &[("query", query)]).await.ok(), "[]");
    }
    assert_eq!(a.targets(), [""; 0]);
}

#[tokio::test]
async fn r067_with_injection_off_it_is_a_fact_like_any_other() {
    let a = Stub::start().await;
    a.fresh(&[])
        .on(SOURCE, "[]")
        .on(&format!("{SOURCE}/pdb-a"), "[]");
    let mux = Pdbmux::with(&[&a], |config| config.source_fact_enabled = false).await;
    assert_eq!(mux.get(SOURCE).await.ok(), "[]");
    assert_eq!(mux.get(&format!("{SOURCE}/pdb-a")).await.ok(), "[]");
    assert_eq!(a.asked(), [SOURCE.to_owned(), format!("{SOURCE}/pdb-a")]);
}

#[tokio::test]
async fn the_synthetic_records_are_ordered_paged_and_counted() {
    let (a, b) = pair().await;
    let mux = Pdbmux::start(&[&a, &b]).await;
    let order = r#"[{"field":"certname","order":"desc"}]"#;
    let page = [
        ("order_by", order),
        ("limit", "1"),
        ("offset", "1"),
        ("include_total", "true"),
    ];
    let response = mux.ask(SOURCE, &page).await;
    assert_eq!(response.ok(), format!("[{}]", record("m", "pdb-a")));
    assert_eq!(response.header("x-records"), Some("2"));
    assert_eq!(a.only().target, FACTS);
}
