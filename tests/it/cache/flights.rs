//! Requests for the same at the same time.

use bytes::Bytes;
use futures_util::future::join_all;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

use super::*;
use crate::client::request;
use crate::stub::Gate;

/// A client that asks many things at once on one connection.
struct Http2(SendRequest<Empty<Bytes>>);

impl Http2 {
    async fn connect(mux: &Pdbmux) -> Self {
        let stream = TcpStream::connect(mux.address()).await.unwrap();
        let connecting = http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
        let (sender, connection) = connecting.await.unwrap();
        tokio::spawn(connection);
        Self(sender)
    }

    /// Asks at once, whether the answer is waited for or not; to drop the future is to leave.
    fn get(&mut self, path: &str) -> impl Future<Output = (u16, Bytes)> + use<> {
        let uri = format!("http://pdbmux{path}");
        let request = hyper::Request::get(uri).body(Empty::new()).unwrap();
        let answering = self.0.send_request(request);
        async {
            let response = answering.await.unwrap();
            let status = response.status().as_u16();
            (
                status,
                response.into_body().collect().await.unwrap().to_bytes(),
            )
        }
    }

    /// Waits until all that was sent so far has been seen: frames are read in their order.
    async fn settle(&mut self) {
        assert_eq!(in_time(self.get("/nosuch")).await.0, 404);
    }
}

#[tokio::test]
async fn r217_r218_a_thousand_requests_share_one_round_and_half_may_leave() {
    let (a, b) = pair().await;
    let gate = Gate::new();
    b.on(NODES, Answer::json(nodes_body(&[("n", NEW)])).behind(&gate));
    let mux = caching(&[&a, &b]).await;
    let (mut staying, mut leaving, mut clients) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..10 {
        let mut client = Http2::connect(&mux).await;
        // The first of all to ask is one of those who leave.
        for _ in 0..50 {
            leaving.push(client.get(NODES));
            staying.push(client.get(NODES));
        }
        client.settle().await;
        clients.push(client);
    }
    b.until_seen(1).await;
    drop(leaving);
    for client in &mut clients {
        client.settle().await;
    }
    gate.open();
    let answers = in_time(join_all(staying)).await;
    assert_eq!(answers.len(), 500);
    let merged = mux.get(NODES).await;
    assert_hit(&merged);
    assert_eq!(merged.backends(), Some("2/2"));
    assert!(
        answers
            .iter()
            .all(|(status, body)| *status == 200 && *body == merged.body)
    );
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
    let mut client = Http2::connect(&mux).await;
    let source = |value: &str| format!("/pdb/query/v4/facts/pdbmux_source{value}");
    let of = ["", "/pdb-a", "/pdb-b"].map(|value| client.get(&source(value)));
    let failing = [client.get(NAMES), client.get(NAMES)];
    client.settle().await;
    gate.open();
    closed.open();
    let lengths = in_time(join_all(of))
        .await
        .into_iter()
        .map(|(status, body)| {
            assert_eq!(status, 200);
            let records: Vec<serde_json::Value> = serde_json::from_slice(&body).unwrap();
            records.len()
        });
    assert_eq!(lengths.collect::<Vec<_>>(), [2, 1, 1]);
    let failed = in_time(join_all(failing)).await;
    assert!(failed.iter().all(|(status, _)| *status == 502));
    let asked = |stub: &Stub| {
        stub.asked()
            .iter()
            .filter(|target| *target == FACTS)
            .count()
    };
    assert_eq!((asked(&a), asked(&b)), (1, 1));
}
