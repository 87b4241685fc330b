//! Backends that come and go: who is asked, and what `/healthz` tells of it (R155-R201).

mod endpoints;
mod service;
mod story;

use std::time::Duration;

use pdbmux::config::Config;
use serde_json::Value;

use crate::client::in_time;
use crate::harness::Pdbmux;
use crate::stub::{Answer, Stub};

const PROBE: &str = "/status/v1/services";
/// What `/healthz` asks.
const REACH: &str = "/pdb/query/v4/nodes?limit=1";
const NODES: &str = "/pdb/query/v4/nodes";

fn running() -> Answer {
    Answer::json(r#"{"puppetdb-status":{"state":"running"},"status-service":{"state":"running"}}"#)
}

fn starting() -> Answer {
    let body = r#"{"puppetdb-status":{"state":"starting"}}"#;
    Answer::with(503, &[("Content-Type", "application/json")], body)
}

/// A backend that is well, has no nodes and answers a probe so.
async fn backend(probe: Answer) -> Stub {
    let stub = Stub::start().await;
    stub.on(PROBE, probe).otherwise("[]").fresh(&[]);
    stub
}

/// Probes these backends every few milliseconds.
async fn probing(stubs: &[&Stub]) -> Pdbmux {
    probing_with(stubs, |_| {}).await
}

async fn probing_with(stubs: &[&Stub], change: impl FnOnce(&mut Config)) -> Pdbmux {
    Pdbmux::with(stubs, |config| {
        config.health_probe_enabled = true;
        config.health_probe_interval = Duration::from_millis(5);
        change(config);
    })
    .await
}

/// Two healthy backends, and then the second is out of service.
async fn with_b_down() -> (Stub, Stub, Pdbmux) {
    let (a, b) = (backend(running()).await, backend(running()).await);
    let mux = probing(&[&a, &b]).await;
    take_down(&mux, 1, &b, starting()).await;
    (a, b, mux)
}

/// Lets the backend's probe be answered so, once it is trusted, until it is out of service.
async fn take_down(mux: &Pdbmux, at: usize, stub: &Stub, probe: Answer) {
    until_state(mux, at, "healthy").await;
    stub.on(PROBE, probe);
    until_state(mux, at, "unhealthy").await;
}

async fn health(mux: &Pdbmux) -> Value {
    mux.get("/healthz").await.json()
}

/// Waits until the backend at this place is in this state.
async fn until_state(mux: &Pdbmux, at: usize, state: &str) -> Value {
    until(mux, |health| health["backends"][at]["state"] == state).await
}

async fn until(mux: &Pdbmux, holds: impl Fn(&Value) -> bool) -> Value {
    in_time(async {
        loop {
            let health = health(mux).await;
            if holds(&health) {
                return health;
            }
        }
    })
    .await
}

/// What a backend was asked for clients.
fn queries(stub: &Stub) -> Vec<String> {
    let mut targets = stub.asked();
    targets.retain(|target| target != PROBE && target != REACH);
    targets
}
