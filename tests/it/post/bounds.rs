//! What a body may cost: its length and its time.

use std::time::Duration;

use super::{JSON, answer, with_body};
use crate::client::End;
use crate::harness::Pdbmux;
use crate::stub::Stub;

const NODES: &str = "/pdb/query/v4/nodes";
const TOO_LONG: &str = "the body is longer than the 100 bytes that max_request_bytes allows";

async fn bounded() -> (Stub, Pdbmux) {
    let a = Stub::start().await;
    a.on(NODES, "[]");
    let mux = Pdbmux::with(&[&a], |config| {
        config.max_request_bytes = 100;
        config.header_timeout = Duration::from_millis(200);
    })
    .await;
    (a, mux)
}

fn padded(length: usize) -> String {
    format!("{{}}{}", " ".repeat(length - 2))
}

#[tokio::test]
async fn a_body_as_long_as_allowed_is_read_and_a_longer_one_is_413() {
    let (a, mux) = bounded().await;
    for headers in [JSON, ""] {
        answer(&mux, with_body("POST", NODES, headers, &padded(100)))
            .await
            .ok();
        for length in [101, 100_000] {
            let response = answer(&mux, with_body("POST", NODES, headers, &padded(length))).await;
            assert_eq!((response.status, response.text()), (413, TOO_LONG));
        }
    }
    let form = with_body("GET", NODES, super::FORM, &"x=1&".repeat(26));
    assert_eq!(answer(&mux, form).await.status, 413);
    assert_eq!(a.targets(), [NODES, NODES]);
}

#[tokio::test]
async fn a_body_in_chunks_is_read_within_the_same_bounds() {
    let (a, mux) = bounded().await;
    let head =
        format!("POST {NODES} HTTP/1.1\r\nHost: x\r\n{JSON}Transfer-Encoding: chunked\r\n\r\n");
    let chunked = format!("{head}5\r\n{{\"que\r\n9\r\nry\":null}}\r\n0\r\n\r\n");
    answer(&mux, chunked).await.ok();
    let long = format!("{head}{}0\r\n\r\n", "a\r\n          \r\n".repeat(11));
    let response = answer(&mux, long).await;
    assert_eq!((response.status, response.text()), (413, TOO_LONG));
    // What is no chunk ends the request, and nobody is asked.
    let response = answer(&mux, format!("{head}zz\r\n")).await;
    assert_eq!((response.status, response.end), (400, End::Whole));
    assert!(response.text().starts_with("the body could not be read: "));
    assert_eq!(a.targets(), [NODES]);
}

#[tokio::test]
async fn an_expectation_is_met_if_the_body_is_wanted() {
    let (a, mux) = bounded().await;
    let head = |length: usize| {
        format!(
            "POST {NODES} HTTP/1.1\r\nHost: x\r\n{JSON}Content-Length: {length}\r\nExpect: 100-continue\r\n\r\n"
        )
    };
    let mut client = mux.connect().await;
    client.send(head(2)).await;
    assert_eq!(client.response().await.status, 100);
    client.send("{}").await;
    client.response().await.ok();
    let mut client = mux.connect().await;
    client.send(head(101)).await;
    let response = client.response().await;
    assert_eq!((response.status, response.text()), (413, TOO_LONG));
    assert_eq!(a.targets(), [NODES]);
}

#[tokio::test]
async fn a_body_that_does_not_come_in_time_is_408() {
    let (a, mux) = bounded().await;
    for begun in ["", "{"] {
        let mut client = mux.connect().await;
        let head = format!("POST {NODES} HTTP/1.1\r\nHost: x\r\n{JSON}Content-Length: 9\r\n\r\n");
        client.send(head + begun).await;
        let response = client.response().await;
        assert_eq!(response.status, 408);
        assert_eq!(
            response.text(),
            "the body did not come whole within header_timeout, 200ms"
        );
        assert_eq!(client.until_closed().await, b"");
    }
    assert_eq!(a.targets(), [""; 0]);
}

#[tokio::test]
async fn a_connection_is_used_again_after_a_body() {
    let (a, mux) = bounded().await;
    let mut client = mux.connect().await;
    for _ in 0..2 {
        client.send(with_body("POST", NODES, JSON, "{}")).await;
        client.response().await.ok();
        client.send(with_body("POST", NODES, JSON, "[")).await;
        client.response().await.refusal();
        client
            .send(with_body("POST", NODES, JSON, &padded(200)))
            .await;
        assert_eq!(client.response().await.status, 413);
        client.get(NODES).await.ok();
    }
    assert_eq!(a.targets(), [NODES; 4]);
}

#[tokio::test]
async fn a_client_that_leaves_within_its_body_asks_nothing() {
    let (a, mux) = bounded().await;
    let mut client = mux.connect().await;
    let head = format!("POST {NODES} HTTP/1.1\r\nHost: x\r\n{JSON}Content-Length: 9\r\n\r\n{{}}");
    client.send(head).await;
    drop(client);
    // The next one is served meanwhile.
    mux.get(NODES).await.ok();
    assert_eq!(a.targets(), [NODES]);
}

#[tokio::test]
async fn whoever_is_refused_is_listened_to_and_hears_why() {
    let mux = Pdbmux::with(&[], |_| ()).await;
    // More than a connection takes that nobody reads.
    let body = "x".repeat(16 << 20);
    for (method, target, headers, status) in [
        (
            "POST",
            "/pdb/cmd/v1?command=store_report&version=8",
            JSON,
            501,
        ),
        ("POST", "/nowhere", JSON, 404),
        ("POST", "/pdb/query/v4/../nodes", JSON, 400),
        ("PUT", "/pdb/query/v4/nodes", JSON, 405),
        ("POST", "/pdb/meta/v1/version", JSON, 405),
        (
            "POST",
            "/pdb/query/v4/nodes",
            "Content-Type: text/plain\r\n",
            415,
        ),
        ("POST", "/pdb/query/v4/nodes?limit=1", JSON, 400),
    ] {
        let mut client = mux.connect().await;
        for _ in 0..2 {
            client.send(with_body(method, target, headers, &body)).await;
            let response = client.response().await;
            assert_eq!(response.status, status, "{method} {target}: {response:?}");
        }
    }
}
