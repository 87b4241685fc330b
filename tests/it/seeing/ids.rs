//! Which request is which: `X-Request-Id` and `traceparent`.

use std::time::Duration;

use pdbmux::config::RequestIds;

use super::request;
use crate::client::Response;
use crate::harness::Pdbmux;
use crate::stub::{Answer, Gate, Seen, Stub};

const NODES: &str = "/pdb/query/v4/nodes";
const ID: &str = "x-request-id";

async fn ask(mux: &Pdbmux, target: &str, headers: &[(&str, &str)]) -> Response {
    let mut client = mux.connect().await;
    client.send(request(target, headers)).await;
    client.response().await
}

async fn identifying(stubs: &[&Stub]) -> Pdbmux {
    Pdbmux::with(stubs, |config| config.request_ids = RequestIds::On).await
}

fn header<'s>(seen: &'s Seen, name: &str) -> Option<&'s str> {
    let mut found = seen.headers.iter().filter(|(known, _)| known == name);
    found.next().map(|(_, value)| &**value)
}

#[tokio::test]
async fn a_request_keeps_its_id_here_and_at_every_backend() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    a.on(NODES, "[]");
    b.on(NODES, "[]");
    let mux = identifying(&[&a, &b]).await;
    let answer = ask(&mux, NODES, &[("X-Request-Id", "client-7f.3c")]).await;
    assert_eq!(answer.header(ID), Some("client-7f.3c"));
    for stub in [&a, &b] {
        assert_eq!(header(&stub.only(), ID), Some("client-7f.3c"));
    }
}

#[tokio::test]
async fn an_id_is_made_where_there_is_none_to_be_taken_over() {
    let backend = Stub::start().await;
    backend.on(NODES, "[]");
    let mux = identifying(&[&backend]).await;
    let long = "x".repeat(129);
    let mut made = std::collections::BTreeSet::new();
    for headers in [
        &[][..],
        &[("X-Request-Id", "a b")],
        &[("X-Request-Id", &long)],
    ] {
        let answer = ask(&mux, NODES, headers).await;
        let id = answer.header(ID).unwrap().to_owned();
        assert_eq!(id.len(), 16, "{id}");
        assert_eq!(header(backend.seen().last().unwrap(), ID), Some(&*id));
        made.insert(id);
    }
    assert_eq!(made.len(), 3);
    // Whatever the answer is.
    for target in [
        "/nowhere",
        "/livez",
        "/pdb/query/v4/nodes?limit=x",
        "/pdb/cmd/v1",
    ] {
        let answer = ask(&mux, target, &[("X-Request-Id", "one")]).await;
        assert_eq!(answer.header(ID), Some("one"), "{target}");
    }
}

#[tokio::test]
async fn a_shared_round_goes_under_the_id_that_began_it_and_ids_share_entries() {
    let backend = Stub::start().await;
    let gate = Gate::new();
    backend.on(NODES, Answer::json("[]").behind(&gate));
    let mux = Pdbmux::with(&[&backend], |config| {
        config.facts_ttl = Duration::from_secs(30);
        config.request_ids = RequestIds::On;
    })
    .await;
    let (mut first, mut second) = (mux.connect().await, mux.connect().await);
    first
        .send(request(NODES, &[("X-Request-Id", "first")]))
        .await;
    backend.until_seen(1).await;
    second
        .send(request(NODES, &[("X-Request-Id", "second")]))
        .await;
    gate.open();
    assert_eq!(first.response().await.header(ID), Some("first"));
    assert_eq!(second.response().await.header(ID), Some("second"));
    let third = ask(&mux, NODES, &[("X-Request-Id", "third")]).await;
    assert_eq!(third.header(ID), Some("third"));
    assert_eq!(third.header("x-cache"), Some("hit"));
    assert_eq!(header(&backend.only(), ID), Some("first"));
}

#[tokio::test]
async fn a_trace_goes_on_at_the_backends_under_new_spans() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    a.on(NODES, "[]");
    b.on(NODES, "[]");
    let mux = Pdbmux::start(&[&a, &b]).await;
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let state = "vendor=1";
    ask(
        &mux,
        NODES,
        &[("traceparent", parent), ("tracestate", state)],
    )
    .await
    .ok();
    let told = |stub: &Stub| header(&stub.only(), "traceparent").unwrap().to_owned();
    let (one, other) = (told(&a), told(&b));
    assert_ne!(one, other);
    for told in [&one, &other] {
        assert_eq!((&told[..36], &told[52..]), (&parent[..36], "-01"));
        assert_ne!(told, parent);
    }
    assert_eq!(header(&a.only(), "tracestate"), Some(state));
}

#[tokio::test]
async fn without_a_sound_trace_nothing_is_told_of_one() {
    let backend = Stub::start().await;
    backend.on(NODES, "[]");
    let mux = Pdbmux::start(&[&backend]).await;
    let broken = [("traceparent", "00-0-0-01"), ("tracestate", "vendor=1")];
    ask(&mux, NODES, &broken).await.ok();
    let seen = backend.only();
    assert_eq!(header(&seen, "traceparent"), None);
    assert_eq!(header(&seen, "tracestate"), None);
}

#[tokio::test]
async fn t62_without_being_asked_for_there_are_no_ids() {
    let backend = Stub::start().await;
    backend.on(NODES, "[]");
    let mux = Pdbmux::start(&[&backend]).await;
    let answer = ask(&mux, NODES, &[("X-Request-Id", "one")]).await;
    assert_eq!(answer.header(ID), None);
    assert_eq!(header(&backend.only(), ID), None);
}
