//! Where lists of certnames would be too long, rows are told apart here. It shows in nothing but in
//! what is asked.

use std::net::Ipv4Addr;
use std::time::Duration;

use pdbmux::config::{BackendConfig, Config};
use pdbmux_core::settings::Strategy;
use pdbmux_samples::{Server, Timestamp, migration, serve};
use serde_json::{Value, json};

use super::backend::{Backend, INVENTORY, NODES};
use crate::client::Response;
use crate::harness::{Pdbmux, target};

const COUNT: &str = r#"["extract",[["function","count"]]]"#;

/// The two sample PuppetDBs, which share nodes that are newer in either.
async fn samples() -> Vec<(Server, BackendConfig)> {
    let mut samples = Vec::new();
    for sample in migration::samples(Timestamp::parse("2026-05-01T12:00:00Z").unwrap()) {
        let server = serve(sample.estate, (Ipv4Addr::LOCALHOST, 0).into());
        let server = server.await.unwrap();
        let backend = BackendConfig {
            name: sample.name.to_owned(),
            url: server.url().parse().unwrap(),
            access: pdbmux::config::Access::default(),
        };
        samples.push((server, backend));
    }
    samples
}

async fn listing(samples: &[(Server, BackendConfig)], most: usize, buffer: usize) -> Pdbmux {
    let backends: Vec<_> = samples.iter().map(|(_, config)| config.clone()).collect();
    let configured = |config: &mut Config| {
        config.backends = backends;
        config.merge = Strategy::Exact;
        config.max_listed_nodes = most;
        config.buffer_bytes = buffer;
        config.facts_ttl = Duration::ZERO;
    };
    Pdbmux::with(&[], configured).await
}

/// What of an answer may not depend on how it came about. Without an order, rows may come in any.
fn told(response: &Response, is_ordered: bool) -> (u16, Value, Option<String>) {
    let body = serde_json::from_slice(&response.body);
    let mut body = body.unwrap_or_else(|_| json!(response.text()));
    if let Value::Array(rows) = &mut body
        && !is_ordered
    {
        rows.sort_by_key(Value::to_string);
    }
    let total = response.header("x-records").map(str::to_owned);
    (response.status, body, total)
}

/// A question: what is below `/pdb/query/v4`, and the parameters.
type Question = (&'static str, Vec<(&'static str, &'static str)>);

#[rustfmt::skip]
fn questions() -> Vec<Question> {
    let total = ("include_total", "true");
    let by_name = ("order_by", r#"[{"field":"certname"}]"#);
    vec![
        ("nodes", vec![]),
        ("nodes", vec![total]),
        ("nodes", vec![("limit", "3"), by_name]),
        ("nodes", vec![("limit", "2"), ("offset", "3"), by_name, total]),
        ("nodes", vec![("query", COUNT)]),
        ("nodes", vec![("query", COUNT), total]),
        ("nodes", vec![("query", r#"["extract",[["function","count"]],["=","latest_report_status","failed"]]"#)]),
        ("nodes", vec![("query", r#"["extract",[["function","count"]],["=","certname","none"]]"#)]),
        ("nodes", vec![("query", r#"["extract",[["function","count"],["function","max","report_timestamp"],"facts_environment"],["group_by","facts_environment"]]"#)]),
        ("nodes", vec![("query", r#"["extract",["facts_environment"],["group_by","facts_environment"]]"#)]),
        ("nodes", vec![("query", r#"["extract",[["function","count"],"pdbmux_source"],["group_by","pdbmux_source"]]"#)]),
        ("nodes", vec![("query", r#"["extract",["pdbmux_source","facts_environment"]]"#)]),
        ("nodes", vec![("query", r#"["extract",["facts_environment"],["~","certname","."]]"#)]),
        ("nodes", vec![("query", r#"["=","pdbmux_source","pdb-new"]"#)]),
        ("nodes", vec![("query", r#"["in","certname",["extract","certname",["select_facts",["=","name","role"]]]]"#)]),
        ("facts", vec![("query", r#"["=","name","role"]"#)]),
        ("facts", vec![total]),
        ("facts/role", vec![("limit", "3"), by_name]),
        ("facts/pdbmux_source", vec![]),
        ("facts", vec![("query", r#"["extract",[["function","count"],"value"],["=","name","role"],["group_by","value"]]"#)]),
        ("facts", vec![("query", r#"["extract",[["function","avg","value"],["function","min","value"]],["=","name","processorcount"]]"#)]),
        ("resources", vec![("query", r#"["=","type","File"]"#)]),
        ("resources", vec![("query", r#"["extract",[["function","count"],"type"],["group_by","type"]]"#), ("order_by", r#"[{"field":"count","order":"desc"},{"field":"type"}]"#), ("limit", "3"), total]),
        ("resources", vec![("query", r#"["extract",["type","title"],["~","type","."]]"#)]),
        ("inventory", vec![]),
        ("factsets", vec![("query", r#"["extract",["certname","hash"]]"#)]),
        ("catalogs", vec![("query", COUNT)]),
        ("nodes", vec![("query", r#"["=","nosuch","x"]"#)]),
    ]
}

#[tokio::test]
async fn answers_are_the_same_with_lists_and_without() {
    let samples = samples().await;
    let whole = 1 << 20;
    let lists = listing(&samples, 20_000, whole).await;
    let none = listing(&samples, 0, whole).await;
    let streams = listing(&samples, 0, 1).await;
    let mut asked = 0;
    for (path, parameters) in questions() {
        let path = format!("/pdb/query/v4/{path}");
        let is_ordered = parameters.iter().any(|(name, _)| *name == "order_by");
        let target = target(&path, &parameters);
        let one = told(&lists.connect().await.get(&target).await, is_ordered);
        for otherwise in [&none, &streams] {
            let other = told(&otherwise.connect().await.get(&target).await, is_ordered);
            assert_eq!(one, other, "{path} {parameters:?}");
        }
        asked += usize::from(one.0 == 200);
    }
    assert!(asked > 20, "most of it is answered: {asked}");
}

/// `kept` is newer in a, `moved` in b, and each has one more.
async fn pair(most: usize) -> (Backend, Backend, Pdbmux) {
    let a = Backend::holding(&[("only-a", 1), ("kept", 5), ("moved", 1)]).await;
    let b = Backend::holding(&[("kept", 1), ("moved", 9), ("only-b", 1)]).await;
    let mux = Pdbmux::with(&[&a.stub, &b.stub], |config| {
        config.merge = Strategy::Exact;
        config.max_listed_nodes = most;
    })
    .await;
    (a, b, mux)
}

#[tokio::test]
async fn a_list_that_is_too_long_is_never_sent() {
    for (most, is_listed) in [(1, true), (0, false)] {
        let (a, b, mux) = pair(most).await;
        let response = mux.ask(INVENTORY, &[("include_total", "true")]).await;
        let mut rows: Vec<_> = response.json().as_array().unwrap().clone();
        rows.sort_by_key(|row| row["certname"].to_string());
        let expected = [("kept", 5), ("moved", 9), ("only-a", 1), ("only-b", 1)];
        let expected = expected.map(|(name, minute)| json!({"certname": name, "minute": minute}));
        assert_eq!(rows, expected);
        assert_eq!(response.header("x-records"), Some("4"));
        assert_eq!(response.header("x-pdbmux-exact"), None);
        for backend in [&a, &b] {
            let [query] = &*backend.queries(INVENTORY) else {
                panic!("asked once")
            };
            assert_eq!(query.is_some(), is_listed, "{query:?}");
        }
    }
}

#[tokio::test]
async fn a_backend_whose_share_takes_no_list_is_asked_for_it_alone() {
    // All that a has is stale, so it takes no list to say so; of b's nodes it does, and their times are
    // alike.
    let a = Backend::holding(&[("m", 1), ("n", 1)]).await;
    let b = Backend::holding(&[("m", 2), ("n", 2), ("o", 2)]).await;
    let c = Backend::holding(&[("o", 3), ("p", 1)]).await;
    let mux = Pdbmux::with(&[&a.stub, &b.stub, &c.stub], |config| {
        config.merge = Strategy::Exact;
        config.max_listed_nodes = 0;
    })
    .await;
    let rows = mux.ask(INVENTORY, &[]).await.json();
    assert_eq!(rows.as_array().unwrap().len(), 4, "{rows}");
    assert_eq!(
        a.queries(INVENTORY),
        [Some(r#"["=","certname",""]"#.to_owned())]
    );
    assert_eq!(b.queries(INVENTORY), [None]);
}

#[tokio::test]
async fn the_number_of_nodes_is_known_of_their_owners() {
    let (a, b, mux) = pair(20_000).await;
    let count = async || mux.ask(NODES, &[("query", COUNT)]).await.json();
    assert_eq!(count().await, json!([{"count": 4}]));
    for backend in [&a, &b] {
        let asked = backend.queries(NODES);
        assert_eq!(
            asked,
            [Some(COUNT.to_owned())],
            "how many it has was enough"
        );
    }
    // What is remembered is no longer so.
    b.gains("only-a", 9);
    b.gains("new", 1);
    assert_eq!(count().await, json!([{"count": 5}]));
}
