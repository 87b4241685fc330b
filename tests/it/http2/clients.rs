//! Clients that speak HTTP/2: each request is on its own, as on a connection of its own.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http::Method;
use pdbmux::config::Protocol;

use super::{ENVIRONMENTS, NODES};
use crate::client::http2::{Http2, request};
use crate::client::{Client, End, in_time};
use crate::harness::{Pdbmux, SHORT};
use crate::stub::{Answer, Gate, Stub};

#[tokio::test]
async fn both_are_spoken_on_one_port_whatever_the_first_bytes_come_in() {
    let a = Stub::start().await;
    a.on(NODES, "[]");
    let mux = Pdbmux::start(&[&a]).await;
    let client = Http2::connect(mux.address()).await;
    for _ in 0..2 {
        let response = client.get(NODES).await;
        assert_eq!((response.ok(), response.backends()), ("[]", Some("1/1")));
        assert_eq!(response.header("connection"), None);
    }
    // What begins as HTTP/2 does is looked at byte by byte.
    for bytes in [
        "PRI * HTTP/1.1\r\nHost: x\r\n\r\n",
        "POST /nosuch HTTP/1.1\r\nHost: x\r\n\r\n",
    ] {
        let mut client = mux.connect().await;
        for byte in bytes.as_bytes() {
            client.send([*byte]).await;
            tokio::task::yield_now().await;
        }
        assert_eq!(client.response().await.status, 404);
    }
    let mut client = mux.connect().await;
    for byte in b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" {
        client.send([*byte]).await;
        tokio::task::yield_now().await;
    }
    client.send([0, 0, 0, 4, 0, 0, 0, 0, 0]).await;
    // A frame of settings, type 4, comes back.
    client.until(|bytes| bytes.get(3) == Some(&4)).await;
}

#[tokio::test]
async fn a_question_in_a_body_is_read_and_head_is_answered_without_one() {
    let a = Stub::start().await;
    a.on(NODES, r#"[{"certname":"n"}]"#);
    let mux = Pdbmux::with(&[&a], |config| config.max_request_bytes = 100_000).await;
    let client = Http2::connect(mux.address()).await;
    let origin = "x".repeat(90_000);
    let body = format!(r#"{{"origin":"{origin}"}}"#);
    let asked = client.ask(request(Method::POST, NODES, &body)).await;
    assert!(asked.unwrap().ok().contains(r#""certname":"n""#));
    assert!(a.only().body.contains(&origin));
    let long = "x".repeat(200_000);
    let refused = client.ask(request(Method::POST, NODES, &long)).await;
    assert_eq!(refused.unwrap().status, 413);
    let health = client.get("/healthz").await;
    let head = client.ask(request(Method::HEAD, "/healthz", "")).await;
    let head = head.unwrap();
    assert_eq!((head.status, head.text(), head.end), (200, "", End::Whole));
    assert_eq!(
        head.header("content-length"),
        health.header("content-length")
    );
}

#[tokio::test]
async fn places_are_had_by_requests_and_not_by_connections() {
    let gate = Gate::new();
    let a = Stub::start().await;
    a.on(NODES, Answer::json("[]").behind(&gate));
    let mux = Pdbmux::with(&[&a], |config| {
        config.door.max_in_flight = 4;
        config.door.queue_length = 4;
        config.door.queue_timeout = Duration::from_secs(10);
    })
    .await;
    let client = Http2::connect(mux.address()).await;
    let mut answers: FuturesUnordered<_> = (0..80).map(|_| client.get(NODES)).collect();
    for _ in 0..72 {
        assert_eq!(in_time(answers.next()).await.unwrap().status, 503);
    }
    assert_eq!(client.get("/readyz").await.status, 200);
    gate.open();
    let mut admitted = 0;
    while let Some(response) = in_time(answers.next()).await {
        response.ok();
        admitted += 1;
    }
    assert_eq!(admitted, 8);

    let a = Stub::start().await;
    a.on(NODES, Answer::hung());
    let mux = Pdbmux::with(&[&a], |config| config.door.max_per_client = 2).await;
    let client = Http2::connect(mux.address()).await;
    let hung = [client.get(NODES), client.get(NODES)].map(Box::pin);
    let hung = futures_util::future::select_all(hung);
    tokio::select! {
        _ = hung => panic!("what hangs was answered"),
        () = a.until_seen(2) => {}
    }
}

#[tokio::test]
async fn a_request_that_is_taken_back_ends_its_questions_and_no_other() {
    let a = Stub::start().await;
    let gate = Gate::new();
    a.on(NODES, Answer::hung());
    a.on(
        ENVIRONMENTS,
        Answer::promising(3).send("[1").hold(&gate).send("]"),
    );
    let mux = Pdbmux::with(&[&a], |config| config.door.max_in_flight = 2).await;
    let client = Http2::connect(mux.address()).await;
    let mut other = client
        .begin(request(Method::GET, ENVIRONMENTS, ""))
        .await
        .unwrap();
    assert_eq!(other.more().await.unwrap(), "[1");
    tokio::select! {
        _ = client.get(NODES) => panic!("what hangs was answered"),
        () = a.until_seen(2) => {}
    }
    a.until_hung_up_on().await;
    // Its place is free again.
    client.get("/pdb/query/v4/nodes?limit=x").await.refusal();
    gate.open();
    assert_eq!(other.whole().await.ok(), "]");
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_never_a_whole_one_and_no_other_is_hurt() {
    let a = Stub::start().await;
    let gate = Gate::new();
    a.on(
        ENVIRONMENTS,
        Answer::promising(100).send("[1").hold(&gate).close(),
    );
    a.on(NODES, "[]");
    let mux = Pdbmux::start(&[&a]).await;
    let client = Http2::connect(mux.address()).await;
    let mut broken = client
        .begin(request(Method::GET, ENVIRONMENTS, ""))
        .await
        .unwrap();
    assert_eq!(broken.more().await.unwrap(), "[1");
    gate.open();
    assert_eq!(broken.whole().await.end, End::Broken);
    assert_eq!(client.get(NODES).await.ok(), "[]");
}

#[tokio::test]
async fn a_client_that_does_not_read_holds_up_its_backend_and_no_other_answer() {
    // More than all that lies between the two can hold.
    let record = format!(r#"{{"x":"{}"}}"#, "y".repeat(64 << 20));
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let (a, sent) = (Stub::speaking(protocol).await, Gate::new());
        let large = Answer::json(format!("[{record}]")).open(&sent);
        a.on(ENVIRONMENTS, large).on(NODES, "[]");
        let mux = Pdbmux::start(&[&a]).await;
        let client = Http2::connect(mux.address()).await;
        let large = client.begin(request(Method::GET, ENVIRONMENTS, "")).await;
        for _ in 0..3 {
            client.get(NODES).await.ok();
            tokio::time::sleep(SHORT).await;
            assert!(!sent.is_open());
        }
        let large = large.unwrap().whole().await;
        assert_eq!(
            (large.end, large.body.len()),
            (End::Whole, record.len() + 2)
        );
    }
}

#[tokio::test]
async fn of_many_at_one_time_each_gets_its_own_answer() {
    let a = Stub::start().await;
    a.makes(NODES, |seen| {
        let query = seen.param("query").unwrap();
        Answer::json(format!(r#"[{{"certname":{query:?}}}]"#))
    });
    let mux = Pdbmux::start(&[&a]).await;
    let client = Http2::connect(mux.address()).await;
    let answers = (0..300).map(async |number| {
        let query = format!(r#"["=","certname","n{number}"]"#);
        let target = crate::harness::target(NODES, &[("query", &query)]);
        let response = client.get(&target).await;
        response.ok();
        response.json()[0]["certname"] == query
    });
    let right = futures_util::future::join_all(answers).await;
    assert!(right.into_iter().all(|right| right));
}

#[tokio::test]
async fn a_head_longer_than_allowed_is_431_on_its_own() {
    let a = Stub::start().await;
    a.on(NODES, "[]");
    let mux = Pdbmux::with(&[&a], |config| config.door.max_head_bytes = 8192).await;
    let client = Http2::connect(mux.address()).await;
    let padded = |length: usize| {
        let mut padded = request(Method::GET, NODES, "");
        let padding = "x".repeat(length).try_into().unwrap();
        padded.headers_mut().insert("x", padding);
        padded
    };
    client.ask(padded(7000)).await.unwrap().ok();
    assert_eq!(client.ask(padded(9000)).await.unwrap().status, 431);
    client.get(NODES).await.ok();
    assert_eq!(a.targets(), [NODES; 2]);
}

#[tokio::test]
async fn to_read_an_answer_is_no_request_that_does_not_end() {
    let a = Stub::start().await;
    let text = format!(r#"["{}"]"#, "x".repeat(8 << 20));
    a.on(ENVIRONMENTS, text.as_str());
    let mux = Pdbmux::with(&[&a], |config| config.header_timeout = SHORT / 5).await;
    let client = Http2::connect(mux.address()).await;
    client.get(ENVIRONMENTS).await.ok();
    // What tells that the answer was read comes when nothing is asked.
    tokio::time::sleep(SHORT).await;
    client.get(ENVIRONMENTS).await.ok();
}

#[tokio::test]
async fn http_1_1_is_as_patient_as_ever_with_whoever_begins_like_http_2() {
    let mux = Pdbmux::with(&[], |config| config.header_timeout = SHORT / 5).await;
    for begun in ["P", "PRI * HTTP/2.0\r\n"] {
        let mut client = Client::connect(mux.address()).await;
        client.send(begun).await;
        assert_eq!(client.until_closed().await, b"");
    }
}
