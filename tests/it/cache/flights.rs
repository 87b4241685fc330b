//! Requests for the same at the same time.

use futures_util::future::join_all;
use tokio::task::JoinHandle;

use super::*;
use crate::client::{Response, request};
use crate::stub::Gate;

/// Asks on a connection of its own; to abort the task is to leave.
async fn ask(mux: &Pdbmux, path: &str) -> JoinHandle<Response> {
    let mut client = mux.connect().await;
    client.send(request("GET", path)).await;
    tokio::spawn(async move { client.response().await })
}

async fn answers(asked: Vec<JoinHandle<Response>>) -> Vec<Response> {
    let answers = in_time(join_all(asked)).await;
    answers.into_iter().map(Result::unwrap).collect()
}

#[tokio::test]
async fn r217_r218_a_thousand_requests_share_one_round_and_half_may_leave() {
    let (a, b) = pair().await;
    let gate = Gate::new();
    b.on(NODES, Answer::json(nodes_body(&[("n", NEW)])).behind(&gate));
    let mux = Pdbmux::with(&[&a, &b], |config| {
        config.facts_ttl = Duration::from_hours(1);
        config.max_connections = 2_000;
    })
    .await;
    // Both ends of each connection are open files of this process.
    rlimit::increase_nofile_limit(4096).unwrap();
    let (mut staying, mut leaving) = (Vec::new(), Vec::new());
    // The first of all to ask is one of those who leave.
    for _ in 0..500 {
        leaving.push(ask(&mux, NODES).await);
        staying.push(ask(&mux, NODES).await);
    }
    b.until_seen(1).await;
    for client in leaving {
        client.abort();
    }
    gate.open();
    let answers = answers(staying).await;
    assert_eq!(answers.len(), 500);
    let merged = mux.get(NODES).await;
    assert_hit(&merged);
    assert_eq!(merged.backends(), Some("2/2"));
    let same = |answer: &Response| answer.status == 200 && answer.body == merged.body;
    assert!(answers.iter().all(same));
    assert_eq!((a.asked().len(), b.asked().len()), (1, 1));
}

#[tokio::test]
async fn r219_a_lone_client_that_leaves_ends_the_requests_upstream() {
    let (a, b) = pair().await;
    b.on(NODES, Answer::hung());
    let mux = caching(&[&a, &b]).await;
    let mut client = mux.connect().await;
    client.send(request("GET", NODES)).await;
    b.until_seen(1).await;
    drop(client);
    b.until_hung_up_on().await;
    // It leaves nothing behind that the next would wait for.
    b.on(NODES, "[]");
    let next = mux.get(NODES).await;
    assert_eq!((next.backends(), cache(&next)), (Some("2/2"), MISS));
}

#[tokio::test]
async fn r217_failures_and_different_drilldowns_are_shared_too() {
    let (a, b) = pair().await;
    let (gate, closed) = (Gate::new(), Gate::new());
    let facts = format!("[{}]", fact("n", "os", "b"));
    b.on(FACTS, Answer::json(facts).behind(&gate));
    a.on(NAMES, Answer::reset());
    b.on(NAMES, Answer::reset().behind(&closed));
    let mux = caching(&[&a, &b]).await;
    let mut of = Vec::new();
    for value in ["", "/pdb-a", "/pdb-b"] {
        let source = format!("/pdb/query/v4/facts/pdbmux_source{value}");
        of.push(ask(&mux, &source).await);
    }
    let failing = vec![ask(&mux, NAMES).await, ask(&mux, NAMES).await];
    gate.open();
    closed.open();
    let of = answers(of).await;
    let lengths = of.iter().map(|answer| {
        assert_eq!(answer.status, 200);
        answer.json().as_array().unwrap().len()
    });
    assert_eq!(lengths.collect::<Vec<_>>(), [2, 1, 1]);
    let failed = answers(failing).await;
    assert!(failed.iter().all(|answer| answer.status == 502));
    let asked = |stub: &Stub| {
        stub.asked()
            .iter()
            .filter(|target| *target == FACTS)
            .count()
    };
    assert_eq!((asked(&a), asked(&b)), (1, 1));
}
