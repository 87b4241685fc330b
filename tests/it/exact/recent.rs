//! Where the copies that count are newer than those left behind, a backend is told its nodes by their
//! times.

use pdbmux_core::settings::Strategy;
use serde_json::{Value, json};

use super::backend::{Backend, INVENTORY};
use crate::harness::Pdbmux;

/// Each owns one of the two nodes that both hold. Any list would be too long.
async fn pair() -> (Backend, Backend, Pdbmux) {
    let a = Backend::holding(&[("kept", 50), ("moved", 1)]).await;
    let b = Backend::holding(&[("kept", 2), ("moved", 51)]).await;
    let mux = Pdbmux::with(&[&a.stub, &b.stub], |config| {
        config.merge = Strategy::Exact;
        config.max_listed_nodes = 0;
    })
    .await;
    (a, b, mux)
}

async fn rows(mux: &Pdbmux) -> Vec<Value> {
    let response = mux.ask(INVENTORY, &[]).await;
    assert_eq!(response.header("x-pdbmux-exact"), None);
    let mut rows = response.json().as_array().unwrap().clone();
    rows.sort_by_key(|row| row["certname"].to_string());
    rows
}

fn row(certname: &str, minute: u32) -> Value {
    json!({"certname": certname, "minute": minute})
}

#[tokio::test]
async fn a_backend_is_asked_for_what_has_reported_since_its_stale_copies_were_left() {
    let (a, b, mux) = pair().await;
    assert_eq!(rows(&mux).await, [row("kept", 50), row("moved", 51)]);
    for (backend, since) in [(&a, "00:49:59.999"), (&b, "00:50:59.999")] {
        let asked = format!(
            r#"["in","certname",["extract","certname",["select_factsets",[">=","timestamp","2026-01-01T{since}Z"]]]]"#
        );
        assert_eq!(backend.queries(INVENTORY), [Some(asked)]);
    }
}

#[tokio::test]
async fn a_stale_copy_that_is_renewed_meanwhile_is_not_counted_beside_the_other() {
    let (a, _b, mux) = pair().await;
    rows(&mux).await;
    a.reports("moved", 55);
    assert_eq!(
        rows(&mux).await,
        [row("kept", 50), row("moved", 55)],
        "as many nodes as before, and one more of them new"
    );
}

#[tokio::test]
async fn a_node_that_reports_again_where_it_is_owned_changes_nothing() {
    let (a, b, mux) = pair().await;
    rows(&mux).await;
    a.reports("kept", 58);
    let before = (a.stub.seen().len(), b.stub.seen().len());
    assert_eq!(rows(&mux).await, [row("kept", 58), row("moved", 51)]);
    let asked = (a.stub.seen().len(), b.stub.seen().len());
    // The question, and how many new nodes there are.
    assert_eq!(
        asked,
        (before.0 + 2, before.1 + 2),
        "the nodes are not listed anew"
    );
}

#[tokio::test]
async fn a_node_that_leaves_its_owner_is_what_the_other_has_of_it() {
    let (a, _b, mux) = pair().await;
    rows(&mux).await;
    a.loses("kept");
    assert_eq!(rows(&mux).await, [row("kept", 2), row("moved", 51)]);
}

#[tokio::test]
async fn a_node_that_comes_is_listed_at_once() {
    let (_a, b, mux) = pair().await;
    rows(&mux).await;
    b.gains("new", 52);
    assert_eq!(
        rows(&mux).await,
        [row("kept", 50), row("moved", 51), row("new", 52)]
    );
}
