//! Questions that a backend is asked at one time.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use pdbmux_core::settings::Strategy;

use super::{ENVIRONMENTS, FACTS, NODES};
use crate::client::{in_time, request};
use crate::harness::{Pdbmux, SHORT};
use crate::stub::{Answer, FRESHNESS, Stub, nodes_body};

/// Answers a while after they were asked.
fn slow(body: impl AsRef<[u8]>) -> Answer {
    let body = body.as_ref();
    let pause = Duration::from_millis(5);
    Answer::default().pause(pause).send(format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
        body.len(),
        String::from_utf8_lossy(body)
    ))
}

/// A backend with two nodes of its own, whose answers are too long to be held.
async fn slow_stub(name: &str) -> Stub {
    let stub = Stub::start().await;
    let certnames = [format!("{name}-1"), format!("{name}-2")];
    let nodes = certnames
        .each_ref()
        .map(|name| (&**name, "2026-01-01T00:00:00Z"));
    stub.on(FRESHNESS, slow(nodes_body(&nodes)));
    let facts = certnames.each_ref().map(|certname| {
        let value = "x".repeat(20_000);
        serde_json::json!({"certname": certname, "environment": "e", "name": "n", "value": value})
    });
    stub.on(FACTS, slow(serde_json::to_string(&facts).unwrap()));
    stub.on(NODES, slow(nodes_body(&nodes)));
    stub.on(ENVIRONMENTS, slow("[]"));
    stub
}

#[tokio::test]
pub(crate) async fn no_backend_is_asked_more_at_one_time_than_it_may_and_all_are_answered() {
    for merge in [Strategy::Freshness, Strategy::Static] {
        let (a, b) = (slow_stub("a").await, slow_stub("b").await);
        let mux = Pdbmux::with(&[&a, &b], |config| {
            config.merge = merge;
            // What asks for whose data is newest does so beside what it asks.
            config.freshness_ttl = Duration::ZERO;
            config.buffer_bytes = 1;
            config.access.max_in_flight = Some(8);
            config.backends[1].access.max_in_flight = Some(2);
        })
        .await;
        let paths = [FACTS, NODES, FACTS, ENVIRONMENTS];
        let answers = paths.iter().cycle().take(80).map(|path| mux.get(path));
        for (answer, path) in in_time(join_all(answers))
            .await
            .iter()
            .zip(paths.iter().cycle())
        {
            assert_eq!(answer.missing(), [""; 0], "{merge:?} {path}");
            let answer: serde_json::Value = serde_json::from_str(answer.ok()).unwrap();
            let records = match *path {
                FACTS => 8,
                NODES => 4,
                _ => 0,
            };
            assert_eq!(
                answer.as_array().unwrap().len(),
                records,
                "{merge:?} {path}"
            );
        }
        assert!(a.most_under_way() <= 8, "{}", a.most_under_way());
        assert!(b.most_under_way() <= 2, "{}", b.most_under_way());
    }
}

#[tokio::test]
pub(crate) async fn a_backend_without_a_place_in_time_has_failed_and_the_other_answers() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    let part = |certname: &str| Answer::json(nodes_body(&[(certname, "")]));
    // Never silent for long, and never at its end.
    let begun = Answer::promising(1000).send("[");
    let drip = |answer: Answer, _| answer.pause(SHORT / 4).send(" ");
    a.on(NODES, part("a"));
    a.on(ENVIRONMENTS, (0..100).fold(begun, drip));
    b.on(NODES, part("b"));
    let mux = Pdbmux::with(&[&a, &b], |config| {
        config.backends[0].access.max_in_flight = Some(2);
        config.backends[0].access.timeout = Some(SHORT);
    })
    .await;
    let mut holding = mux.connect().await;
    holding.send(request("GET", ENVIRONMENTS)).await;
    holding.until_received("[").await;
    let response = mux.get(NODES).await;
    assert_eq!(response.missing(), ["pdb-a; reason=busy"]);
    assert_eq!(response.backends(), Some("1/2"));
    assert_eq!(a.targets(), [ENVIRONMENTS]);
    // Whoever leaves gives the place back.
    drop(holding);
    a.until_hung_up_on().await;
    assert_eq!(mux.get(NODES).await.backends(), Some("2/2"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
pub(crate) async fn rounds_that_keep_places_of_several_backends_do_not_wait_for_each_other() {
    let (a, b) = (slow_stub("a").await, slow_stub("b").await);
    let mux = Pdbmux::with(&[&a, &b], |config| {
        config.merge = Strategy::Static;
        config.buffer_bytes = 1;
        config.access.max_in_flight = Some(2);
    })
    .await;
    let mux = Arc::new(mux);
    let answers = (0..200).map(|_| {
        let mux = Arc::clone(&mux);
        tokio::spawn(async move { mux.get(FACTS).await })
    });
    for answer in in_time(join_all(answers)).await {
        assert_eq!(answer.unwrap().missing(), [""; 0]);
    }
}
