//! The end of a daemon that others have to notice first.

mod balancer;

use std::time::Duration;

use pdbmux::config::Config;

use crate::client::{End, in_time, request};
use crate::harness::Pdbmux;
use crate::stub::{Answer, Stub};

const NODES: &str = "/pdb/query/v4/nodes";
const HUNG: &str = "/pdb/query/v4/environments";

async fn backend() -> Stub {
    let stub = Stub::start().await;
    stub.on(NODES, "[]").on(HUNG, Answer::hung());
    stub
}

/// It goes on for longer than any test, unless it is told twice to stop.
fn for_ever(config: &mut Config) {
    config.drain_delay = Duration::from_hours(1);
    config.shutdown_timeout = Duration::from_hours(1);
}

async fn until_not_ready(mux: &Pdbmux) {
    in_time(async { while mux.get("/readyz").await.status == 200 {} }).await;
}

#[tokio::test]
async fn until_the_delay_is_over_requests_are_taken_and_each_ends_its_connection() {
    let a = backend().await;
    let mux = Pdbmux::with(&[&a], for_ever).await;
    let mut idle = mux.connect().await;
    assert_eq!(idle.get(NODES).await.header("connection"), None);
    mux.stop();
    until_not_ready(&mux).await;
    assert_eq!(mux.get("/livez").await.status, 200);
    for client in [&mut idle, &mut mux.connect().await] {
        let response = client.get(NODES).await;
        assert_eq!(
            (response.ok(), response.header("connection")),
            ("[]", Some("close"))
        );
        assert_eq!(client.until_closed().await, b"");
    }
}

#[tokio::test]
async fn told_twice_to_stop_it_ends_at_once() {
    let a = backend().await;
    let mux = Pdbmux::with(&[&a], for_ever).await;
    let mut client = mux.connect().await;
    client.send(request("GET", HUNG)).await;
    a.until_seen(1).await;
    mux.stop();
    until_not_ready(&mux).await;
    mux.stop();
    mux.until_stopped().await;
    assert_eq!(client.until_closed().await, b"");
    a.until_hung_up_on().await;
}

#[tokio::test]
async fn told_twice_while_it_waits_for_answers_it_ends_as_well() {
    let a = backend().await;
    let mux = Pdbmux::with(&[&a], |config| {
        for_ever(config);
        config.drain_delay = Duration::ZERO;
    })
    .await;
    let mut client = mux.connect().await;
    client.send(request("GET", HUNG)).await;
    a.until_seen(1).await;
    mux.stop();
    mux.until_refused().await;
    mux.stop();
    mux.until_stopped().await;
    assert_eq!(client.until_closed().await, b"");
}

#[tokio::test]
async fn after_the_delay_it_ends_as_it_does_without_one() {
    let a = backend().await;
    let mux = Pdbmux::with(&[&a], |config| {
        config.drain_delay = Duration::from_millis(50);
    })
    .await;
    let mut idle = mux.connect().await;
    assert_eq!(idle.get(NODES).await.end, End::Whole);
    mux.stop();
    mux.until_refused().await;
    assert_eq!(idle.until_closed().await, b"");
    mux.until_stopped().await;
}
