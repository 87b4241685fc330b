//! How connections of HTTP/2 end.

use std::time::Duration;

use http::Method;
use pdbmux::config::Config;

use super::{ENVIRONMENTS, NODES};
use crate::client::http2::{Http2, request};
use crate::client::{End, in_time};
use crate::harness::{Pdbmux, SHORT};
use crate::stub::{Answer, Gate, Stub};

async fn hung() -> Stub {
    let stub = Stub::start().await;
    stub.on(NODES, "[]").on(ENVIRONMENTS, Answer::hung());
    stub
}

fn for_ever(config: &mut Config) {
    config.drain_delay = Duration::from_hours(1);
    config.shutdown_timeout = Duration::from_hours(1);
}

#[tokio::test]
async fn what_is_under_way_is_finished_after_the_signal_and_no_other_begun() {
    let (a, gate) = (Stub::start().await, Gate::new());
    a.on(NODES, Answer::json("[]").behind(&gate));
    a.on(
        ENVIRONMENTS,
        Answer::promising(3).send("[1").hold(&gate).send("]"),
    );
    let mux = Pdbmux::start(&[&a]).await;
    let idle = Http2::connect(mux.address()).await;
    idle.get("/nosuch").await;
    let client = Http2::connect(mux.address()).await;
    let passed = client.begin(request(Method::GET, ENVIRONMENTS, "")).await;
    let merged = client.get(NODES);
    let ending = async {
        a.until_seen(2).await;
        mux.stop();
        mux.until_refused().await;
        idle.until_closed().await;
        let late = client.ask(request(Method::GET, "/livez", "")).await;
        assert!(late.is_err(), "{late:?}");
        gate.open();
    };
    let (merged, ()) = tokio::join!(merged, ending);
    assert_eq!(merged.ok(), "[]");
    assert_eq!(passed.unwrap().whole().await.ok(), "[1]");
    client.until_closed().await;
    mux.until_stopped().await;
}

#[tokio::test]
async fn until_the_delay_is_over_each_connection_ends_with_an_answer() {
    let a = hung().await;
    let mux = Pdbmux::with(&[&a], for_ever).await;
    let before = Http2::connect(mux.address()).await;
    before.get(NODES).await.ok();
    mux.stop();
    in_time(async { while mux.get("/readyz").await.status == 200 {} }).await;
    for client in [before, Http2::connect(mux.address()).await] {
        let response = client.get(NODES).await;
        assert_eq!((response.ok(), response.header("connection")), ("[]", None));
        client.until_closed().await;
    }
}

#[tokio::test]
async fn the_drain_limit_cuts_what_is_still_under_way() {
    let a = hung().await;
    let mux = Pdbmux::with(&[&a], |config| config.shutdown_timeout = SHORT / 5).await;
    let client = Http2::connect(mux.address()).await;
    let asked = client.ask(request(Method::GET, ENVIRONMENTS, ""));
    let ending = async {
        a.until_seen(1).await;
        mux.stop();
    };
    let (answer, ()) = tokio::join!(asked, ending);
    assert!(answer.is_err(), "{answer:?}");
    mux.until_stopped().await;
    a.until_hung_up_on().await;
}

#[tokio::test]
async fn a_client_that_has_gone_silent_does_not_hold_up_the_end() {
    let a = hung().await;
    let mux = Pdbmux::with(&[&a], |config| {
        config.shutdown_timeout = Duration::from_hours(1);
    })
    .await;
    let mut silent = mux.connect().await;
    // The beginning and its settings; what comes back is not answered.
    silent.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    silent.send([0, 0, 0, 4, 0, 0, 0, 0, 0]).await;
    silent.until(|bytes| bytes.len() > 9).await;
    mux.stop();
    mux.until_stopped().await;
}

#[tokio::test]
async fn without_a_request_it_ends_after_the_idle_time_and_neither_time_runs_under_one() {
    let a = Stub::start().await;
    let pause = 2 * SHORT;
    a.on(
        ENVIRONMENTS,
        Answer::promising(4).send("[1").pause(pause).send(" ]"),
    );
    let mux = Pdbmux::with(&[&a], |config| {
        config.header_timeout = SHORT / 2;
        config.idle_timeout = SHORT / 2;
    })
    .await;
    Http2::connect(mux.address()).await.until_closed().await;
    let client = Http2::connect(mux.address()).await;
    assert_eq!(client.get(ENVIRONMENTS).await.ok(), "[1 ]");
    client.until_closed().await;
}

#[tokio::test]
async fn an_idle_one_makes_room_for_whoever_comes_and_a_busy_one_does_not() {
    let a = Stub::start().await;
    let gate = Gate::new();
    a.on(
        ENVIRONMENTS,
        Answer::promising(3).send("[1").hold(&gate).send("]"),
    );
    let mux = Pdbmux::with(&[&a], |config| config.max_connections = 2).await;
    let idle = Http2::connect(mux.address()).await;
    idle.get("/livez").await;
    let busy = Http2::connect(mux.address()).await;
    let busy = busy.begin(request(Method::GET, ENVIRONMENTS, "")).await;
    let newcomer = Http2::connect(mux.address()).await;
    assert_eq!(newcomer.get("/livez").await.status, 200);
    idle.until_closed().await;
    gate.open();
    let busy = busy.unwrap().whole().await;
    assert_eq!((busy.ok(), busy.end), ("[1]", End::Whole));
}
