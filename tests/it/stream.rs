//! Answers too long to be held: written while the backends' answers arrive.

pub(crate) mod ordered;
mod unordered;

use std::time::Duration;

use pdbmux_core::settings::Strategy;
use serde_json::{Value, json};

use crate::client::{Client, End, request};
use crate::harness::{Pdbmux, SHORT};
use crate::stub::{Answer, Gate, Stub, nodes_body};

const FACTS: &str = "/pdb/query/v4/facts";
const NODES: &str = "/pdb/query/v4/nodes";
const REPORTS: &str = "/pdb/query/v4/reports";

fn fact(certname: &str, name: &str, value: &str) -> String {
    let fact = json!({"certname": certname, "environment": "e", "name": name, "value": value});
    fact.to_string()
}

fn list(records: &[String]) -> String {
    format!("[{}]", records.join(","))
}

/// pdbmux that holds next to nothing.
async fn streaming(stubs: &[&Stub], merge: Strategy, facts_ttl: Duration) -> Pdbmux {
    Pdbmux::with(stubs, |config| {
        config.merge = merge;
        config.facts_ttl = facts_ttl;
        config.facts_cache_bytes = 1;
        config.buffer_bytes = 1;
        config.timeout = SHORT;
    })
    .await
}

async fn uncached(stubs: &[&Stub]) -> Pdbmux {
    streaming(stubs, Strategy::Freshness, Duration::ZERO).await
}

/// Two backends with a node each and one that b has newer.
async fn pair() -> (Stub, Stub) {
    let (a, b) = (Stub::start().await, Stub::start().await);
    a.fresh(&[
        ("only-a", "2026-01-01T00:00:00Z"),
        ("both", "2026-01-01T00:00:00Z"),
    ]);
    b.fresh(&[
        ("both", "2026-01-02T00:00:00Z"),
        ("only-b", "2026-01-01T00:00:00Z"),
    ]);
    a.on(
        FACTS,
        Answer::counted(
            3,
            list(&[
                fact("both", "os", "old"),
                fact("only-a", "os", "a"),
                fact("only-a", "pdbmux_source", "not ours"),
            ]),
        ),
    );
    b.on(
        FACTS,
        Answer::counted(
            2,
            list(&[fact("only-b", "os", "b"), fact("both", "os", "new")]),
        ),
    );
    (a, b)
}

fn rows(body: &Value) -> Vec<String> {
    let mut rows: Vec<_> = body
        .as_array()
        .unwrap()
        .iter()
        .map(Value::to_string)
        .collect();
    rows.sort();
    rows
}

#[tokio::test]
pub(crate) async fn what_is_streamed_is_what_is_held_in_another_order() {
    for merge in [Strategy::Freshness, Strategy::Static] {
        let (a, b) = pair().await;
        let asked = format!("{FACTS}?include_total=true");
        let held = Pdbmux::with(&[&a, &b], |config| config.merge = merge).await;
        let held = held.get(&asked).await;
        let mux = streaming(&[&a, &b], merge, Duration::ZERO).await;
        let streamed = mux.get(&asked).await;
        streamed.ok();
        assert_eq!(streamed.header("transfer-encoding"), Some("chunked"));
        assert_eq!(rows(&streamed.json()), rows(&held.json()), "{merge:?}");
        for header in ["content-type", "x-records", "x-backends"] {
            assert_eq!(streamed.header(header), held.header(header), "{header}");
        }
    }
}

#[tokio::test]
async fn reports_held_twice_are_streamed_once() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    let report = |hash: &str| json!({"certname": "n", "hash": hash}).to_string();
    a.on(REPORTS, list(&[report("1"), report("2")]));
    b.on(REPORTS, list(&[report("2"), report("3")]));
    let mux = uncached(&[&a, &b]).await;
    let response = mux.get(REPORTS).await;
    assert_eq!(response.header("transfer-encoding"), Some("chunked"));
    assert_eq!(
        rows(&response.json()),
        [report("1"), report("2"), report("3")]
    );
}

#[tokio::test]
async fn under_exact_each_backend_streams_what_it_owns() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    for (stub, node) in [(&a, "m"), (&b, "n")] {
        stub.makes("/pdb/query/v4/nodes", move |seen| {
            let is_count = seen
                .param("query")
                .is_some_and(|query| query.contains("\"count\""));
            let body = if is_count {
                json!([{"count": 1}])
            } else {
                json!([{"certname": node}])
            };
            Answer::json(body.to_string())
        });
        stub.on(FACTS, list(&[fact(node, "os", "x")]));
    }
    let mux = streaming(&[&a, &b], Strategy::Exact, Duration::ZERO).await;
    let response = mux.get(FACTS).await;
    assert_eq!(response.header("transfer-encoding"), Some("chunked"));
    let source = |node: &str, name: &str| fact(node, "pdbmux_source", name);
    let mut expected = [
        fact("m", "os", "x"),
        source("m", "pdb-a"),
        fact("n", "os", "x"),
        source("n", "pdb-b"),
    ];
    expected.sort();
    assert_eq!(rows(&response.json()), expected);
}

#[tokio::test]
pub(crate) async fn the_head_and_what_is_decided_go_out_before_the_backends_are_done() {
    let (a, b) = pair().await;
    let gate = Gate::new();
    let only_b = fact("only-b", "os", "b");
    b.on(
        FACTS,
        Answer::chunked()
            .chunk("[")
            .chunk(&only_b)
            .hold(&gate)
            .chunk("]")
            .last_chunk(),
    );
    let mux = uncached(&[&a, &b]).await;
    let mut client = mux.connect().await;
    client.send(request("GET", FACTS)).await;
    client.until_received(&only_b).await;
    client.until_received("\"only-a\"").await;
    gate.open();
    let response = client.response().await;
    // b turned out not to have the node that it has newer: then the older copy is what there is.
    assert!(response.ok().contains("old"));
}

#[tokio::test]
pub(crate) async fn a_backend_that_fails_under_way_breaks_the_answer_off() {
    let record = fact("only-b", "os", "b");
    for broken in [
        Answer::chunked().chunk(format!("[{record},")).close(),
        Answer::chunked().chunk(format!("[{record},")).hang(),
        Answer::chunked()
            .chunk(format!("[{record},"))
            .chunk("nonsense]")
            .last_chunk(),
        Answer::chunked().chunk(format!("[{record}")).last_chunk(),
        Answer::chunked()
            .chunk(format!("[{record}"))
            .chunk("] more")
            .last_chunk(),
    ] {
        let (a, b) = pair().await;
        let shown = format!("{broken:?}");
        b.on(FACTS, broken);
        for stub in [&a, &b] {
            // What `/healthz` asks for.
            stub.on("/pdb/query/v4/nodes", "[]");
        }
        let mux = uncached(&[&a, &b]).await;
        let response = mux.get(FACTS).await;
        assert_eq!(
            (response.status, response.end),
            (200, End::Broken),
            "{shown}"
        );
        assert_eq!(response.backends(), Some("2/2"));
        let health = mux.get("/healthz").await.json();
        assert_eq!(health["query"]["partial_rounds"], 1, "{health}");
        // The process is as well as before.
        b.on(FACTS, "[]");
        mux.get(FACTS).await.ok();
    }
}

#[tokio::test]
async fn a_backend_that_fails_at_once_leaves_a_partial_answer() {
    for (failure, reason) in [
        (Answer::status(500, "ill"), "status-500"),
        (Answer::json("<html>"), "damaged"),
        (Answer::json("[{\"certname\": \"x\"}, 7]"), "damaged"),
        (Answer::chunked().close(), "cut"),
        (Answer::default().close(), "unreachable"),
        (Answer::hung(), "timeout"),
    ] {
        let (a, b) = pair().await;
        b.on(FACTS, failure);
        let mux = uncached(&[&a, &b]).await;
        let response = mux.get(FACTS).await;
        assert!(response.ok().contains("old"));
        assert_eq!(response.backends(), Some("1/2"));
        assert_eq!(response.missing(), [format!("pdb-b; reason={reason}")]);
    }
}

#[tokio::test]
async fn a_slow_client_slows_the_backends() {
    let a = Stub::start().await;
    a.fresh(&[]);
    let record = fact("n", "f", &"x".repeat(1 << 20));
    let answer = (0..64).fold(Answer::chunked().chunk("["), |answer, at| {
        let comma = if at == 0 { "" } else { "," };
        answer.chunk(format!("{comma}{record}"))
    });
    let sent = Gate::new();
    a.on(FACTS, answer.chunk("]").open(&sent).last_chunk());
    let mux = uncached(&[&a]).await;
    let mut client = mux.connect().await;
    client.send(request("GET", FACTS)).await;
    client.until_received("\"n\"").await;
    // Nothing is read for longer than the backend would need, and longer than it may be silent.
    tokio::time::sleep(2 * SHORT).await;
    assert!(
        !sent.is_open(),
        "64 MB were taken from the backend for a client that takes nothing"
    );
    let response = client.response().await;
    assert_eq!(response.end, End::Whole);
    assert!(response.body.len() > 64 << 20);
}

#[tokio::test]
pub(crate) async fn under_static_a_backend_is_not_read_while_all_it_sends_can_only_wait() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    for stub in [&a, &b] {
        stub.fresh(&[("n", "2026-01-01T00:00:00Z")]);
    }
    let (gate, sent) = (Gate::new(), Gate::new());
    let own = fact("n", "f", "of a");
    a.on(
        FACTS,
        Answer::chunked()
            .chunk("[\n")
            .hold(&gate)
            .chunk(&own)
            .chunk("]")
            .last_chunk(),
    );
    let record = fact("n", "f", &"x".repeat(1 << 20));
    let answer = (0..64).fold(Answer::chunked().chunk("["), |answer, at| {
        let comma = if at == 0 { "" } else { "," };
        answer.chunk(format!("{comma}{record}"))
    });
    b.on(FACTS, answer.chunk("]").open(&sent).last_chunk());
    let mux = Pdbmux::with(&[&a, &b], |config| {
        config.merge = Strategy::Static;
        config.facts_ttl = Duration::ZERO;
        config.buffer_bytes = 1;
    })
    .await;
    let mut client = mux.connect().await;
    client.send(request("GET", FACTS)).await;
    b.until_seen(2).await;
    // Longer than b would need.
    tokio::time::sleep(SHORT).await;
    assert!(!sent.is_open(), "64 MB were taken from b that wait for a");
    gate.open();
    let response = client.response().await;
    assert_eq!(
        rows(&response.json()),
        [own, fact("n", "pdbmux_source", "pdb-a")]
    );
}

#[tokio::test]
pub(crate) async fn a_client_that_leaves_ends_the_asking() {
    let a = Stub::start().await;
    a.fresh(&[]);
    a.on(
        FACTS,
        Answer::chunked()
            .chunk(format!("[{}", fact("n", "f", "v")))
            .hang(),
    );
    let mux = Pdbmux::with(&[&a], |config| {
        config.facts_ttl = Duration::ZERO;
        config.buffer_bytes = 1;
    })
    .await;
    let mut client = mux.connect().await;
    client.send(request("GET", FACTS)).await;
    client.until_received("\"n\"").await;
    drop(client);
    a.until_hung_up_on().await;
}

#[tokio::test]
pub(crate) async fn all_who_want_the_same_are_sent_all_of_it_and_nothing_is_kept() {
    let (a, b) = pair().await;
    let gate = Gate::new();
    let facts = list(&[fact("only-a", "os", "a")]);
    a.on(FACTS, Answer::json(&facts).behind(&gate));
    let mux = streaming(&[&a, &b], Strategy::Freshness, Duration::from_secs(30)).await;
    let mut clients: Vec<Client> = Vec::new();
    for _ in 0..3 {
        let mut client = mux.connect().await;
        client.send(request("GET", FACTS)).await;
        clients.push(client);
    }
    b.until_seen(2).await;
    gate.open();
    for mut client in clients {
        let response = client.response().await;
        assert!(response.ok().contains("only-a") && response.text().contains("only-b"));
        assert_eq!(response.header("x-cache"), Some("miss"));
    }
    let before = a.asked().len();
    assert_eq!(mux.get(FACTS).await.header("x-cache"), Some("miss"));
    assert_eq!(a.asked().len(), before + 1);
}

#[tokio::test]
async fn what_may_be_cached_is_held() {
    let (a, b) = pair().await;
    let mux = Pdbmux::with(&[&a, &b], |config| {
        config.buffer_bytes = 1;
        config.facts_ttl = Duration::from_secs(30);
    })
    .await;
    for origin in ["miss", "hit"] {
        let response = mux.get(FACTS).await;
        response.ok();
        assert_eq!(response.header("x-cache"), Some(origin));
        assert_eq!(response.header("transfer-encoding"), None);
    }
}
