//! Requests that are answered at one time.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use super::{ENVIRONMENTS, FACTS, NODES};
use crate::client::{End, Response, in_time, request};
use crate::harness::{Pdbmux, SHORT};
use crate::stub::{Answer, Gate, Stub};

/// A refusal's `Retry-After` and its sentence.
#[track_caller]
fn refusal(response: &Response, status: u16) -> (&str, String) {
    assert_eq!(response.status, status, "{response:?}");
    let error = response.json()["error"].as_str().unwrap().to_owned();
    (response.header("retry-after").unwrap(), error)
}

#[tokio::test]
async fn of_ten_times_more_than_can_be_taken_the_admitted_are_right_and_the_rest_is_refused_at_once()
 {
    let gate = Gate::new();
    let (a, b) = (Stub::start().await, Stub::start().await);
    a.on(NODES, Answer::json(r#"[{"certname":"a"}]"#).behind(&gate));
    b.on(NODES, Answer::json(r#"[{"certname":"b"}]"#).behind(&gate));
    let mux = Pdbmux::with(&[&a, &b], |config| {
        config.door.max_in_flight = 4;
        config.door.queue_length = 4;
        config.door.queue_timeout = Duration::from_secs(10);
        config.access.max_in_flight = Some(3);
    })
    .await;
    let mut answers: FuturesUnordered<_> = (0..80).map(|_| mux.get(NODES)).collect();
    for _ in 0..72 {
        let response = in_time(answers.next()).await.unwrap();
        assert_eq!(
            refusal(&response, 503),
            (
                "10",
                "the 4 requests that max_in_flight allows are being answered, and as many wait as \
                 queue_length allows, 4"
                    .to_owned()
            )
        );
        // Nobody is answered yet.
        assert!(!gate.is_open());
    }
    // Whoever watches pdbmux is answered all the same.
    for path in ["/livez", "/readyz"] {
        assert_eq!(mux.get(path).await.status, 200);
    }
    gate.open();
    let mut admitted = 0;
    while let Some(response) = in_time(answers.next()).await {
        assert_eq!(response.backends(), Some("2/2"));
        assert_eq!(response.json().as_array().unwrap().len(), 2);
        admitted += 1;
    }
    assert_eq!(admitted, 8);
    for stub in [&a, &b] {
        assert!(stub.most_under_way() <= 2, "{}", stub.most_under_way());
        assert_eq!(stub.asked().len(), 8);
    }
}

#[tokio::test]
async fn whoever_waits_for_too_long_is_refused_and_asks_nobody() {
    let a = Stub::start().await;
    a.on(NODES, Answer::hung());
    let mux = Pdbmux::with(&[&a], |config| {
        config.door.max_in_flight = 1;
        config.door.queue_timeout = SHORT;
    })
    .await;
    let mut first = mux.connect().await;
    first.send(request("GET", NODES)).await;
    a.until_seen(1).await;
    let error = "the 1 requests that max_in_flight allows are being answered, and none has ended for \
                 250ms";
    let response = mux.get(FACTS).await;
    assert_eq!(refusal(&response, 503), ("1", error.to_owned()));
    assert_eq!(a.targets(), [NODES]);
}

#[tokio::test]
pub(crate) async fn a_place_comes_back_when_a_client_leaves_and_when_an_answer_is_cut() {
    let a = Stub::start().await;
    a.on(NODES, Answer::hung());
    let cut = Answer::promising(100).send("[").close();
    a.on(ENVIRONMENTS, cut);
    a.on("/pdb/query/v4/producers", "[]");
    let mux = Pdbmux::with(&[&a], |config| {
        config.door.max_in_flight = 1;
        config.door.queue_timeout = Duration::from_secs(10);
    })
    .await;
    for round in 1..=3 {
        let mut leaving = mux.connect().await;
        leaving.send(request("GET", NODES)).await;
        a.until_seen(3 * round - 2).await;
        // One that waits and leaves, and one that waits and is let in.
        let mut waiting = mux.connect().await;
        waiting
            .send(request("GET", "/pdb/query/v4/producers"))
            .await;
        let mut giving_up = mux.connect().await;
        giving_up
            .send(request("GET", "/pdb/query/v4/producers"))
            .await;
        drop(giving_up);
        drop(leaving);
        assert_eq!(waiting.response().await.ok(), "[]");
        assert_eq!(mux.get(ENVIRONMENTS).await.end, End::Broken);
    }
}

#[tokio::test]
pub(crate) async fn a_place_is_had_until_the_last_byte_is_written() {
    let gate = Gate::new();
    let a = Stub::start().await;
    let half = Answer::promising(2).send("[").hold(&gate).send("]");
    a.on(ENVIRONMENTS, half);
    let mux = Pdbmux::with(&[&a], |config| {
        config.door.max_in_flight = 1;
        config.door.queue_length = 0;
    })
    .await;
    let mut client = mux.connect().await;
    client.send(request("GET", ENVIRONMENTS)).await;
    let head = client.head().await;
    client.until_received("[").await;
    let error = "the 1 requests that max_in_flight allows are being answered, and as many wait as \
                 queue_length allows, 0";
    let response = mux.get(ENVIRONMENTS).await;
    assert_eq!(refusal(&response, 503), ("1", error.to_owned()));
    gate.open();
    client.body_of(head).await.ok();
    mux.get(ENVIRONMENTS).await.ok();
}

#[tokio::test]
async fn a_client_has_no_more_requests_under_way_than_it_may_on_all_its_connections() {
    let gate = Gate::new();
    let a = Stub::start().await;
    a.on(NODES, Answer::json("[]").behind(&gate));
    let mux = Pdbmux::with(&[&a], |config| config.door.max_per_client = 2).await;
    let mut clients = [mux.connect().await, mux.connect().await];
    for client in &mut clients {
        client.send(request("GET", NODES)).await;
    }
    a.until_seen(2).await;
    let error = "the 2 requests that max_per_client allows to one client are under way";
    let response = mux.get(NODES).await;
    assert_eq!(refusal(&response, 429), ("1", error.to_owned()));
    assert_eq!(mux.get("/livez").await.status, 200);
    gate.open();
    for client in &mut clients {
        client.response().await.ok();
    }
    mux.get(NODES).await.ok();
}

#[tokio::test]
async fn a_refused_request_with_a_body_hears_why_and_goes_on() {
    let a = Stub::start().await;
    a.on(NODES, Answer::hung());
    let mux = Pdbmux::with(&[&a], |config| {
        config.door.max_in_flight = 1;
        config.door.queue_length = 0;
    })
    .await;
    let mut first = mux.connect().await;
    first.send(request("GET", NODES)).await;
    a.until_seen(1).await;
    let mut client = mux.connect().await;
    for _ in 0..2 {
        let body = "x".repeat(4 << 20);
        let length = body.len();
        let head = format!("POST {NODES} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n");
        client.send(head + &body).await;
        assert_eq!(client.response().await.status, 503);
    }
}

#[tokio::test]
async fn a_head_longer_than_allowed_is_431() {
    let a = Stub::start().await;
    a.on(NODES, "[]");
    let mux = Pdbmux::with(&[&a], |config| config.door.max_head_bytes = 8192).await;
    let padded = |length: usize| {
        let padding = "x".repeat(length);
        format!("GET {NODES} HTTP/1.1\r\nHost: x\r\nX: {padding}\r\n\r\n")
    };
    let mut client = mux.connect().await;
    client.send(padded(7000)).await;
    client.response().await.ok();
    let mut client = mux.connect().await;
    client.send(padded(9000)).await;
    assert_eq!(client.response().await.status, 431);
    assert_eq!(a.targets(), [NODES]);
}
