//! `Cache-Status` (RFC 9211), beside `X-Cache`.

use super::*;
use crate::client::request;
use crate::harness::target;
use crate::stub::Gate;

fn status(response: &Response) -> Option<&str> {
    response.header("cache-status")
}

#[tokio::test]
async fn an_answer_says_whether_it_was_stored_and_a_hit_how_long_it_is_fresh() {
    let (a, b) = pair().await;
    let mux = caching(&[&a, &b]).await;
    let first = mux.get(NODES).await;
    assert_eq!(status(&first), Some("pdbmux; fwd=miss; stored"));
    let hit = mux.get(NODES).await;
    let left = status(&hit).unwrap().strip_prefix("pdbmux; hit; ttl=");
    let left: u64 = left.unwrap().parse().unwrap();
    assert!((3580..3600).contains(&left), "{left}");
    for stub in [&a, &b] {
        stub.on(NODES, Answer::status(400, "no"));
    }
    let refused = mux.get("/pdb/query/v4/nodes?limit=7").await;
    assert_eq!(
        (refused.status, status(&refused)),
        (400, Some("pdbmux; fwd=miss"))
    );
    let known = mux.get("/pdb/query/v4/facts/pdbmux_source/nobody").await;
    assert_eq!(status(&known), Some("pdbmux; detail=nothing-to-ask"));
}

#[tokio::test]
async fn an_older_answer_says_what_it_stands_for() {
    let (a, b) = pair().await;
    let mux = with_ttl(&[&a, &b], GONE_AT_ONCE).await;
    mux.get(NODES).await.ok();
    assert_eq!(
        status(&mux.get(NODES).await),
        Some("pdbmux; fwd=stale; stored")
    );
    for stub in [&a, &b] {
        stub.on(NODES, Answer::status(503, "not ready"));
    }
    let stale = mux.get(NODES).await;
    let expected = "pdbmux; fwd=stale; fwd-status=503; ttl=0; detail=served-stale";
    assert_eq!((stale.status, status(&stale)), (200, Some(expected)));
}

#[tokio::test]
async fn who_shares_the_round_of_another_says_so() {
    let (a, b) = pair().await;
    let gate = Gate::new();
    b.on(NODES, Answer::json("[]").behind(&gate));
    let mux = caching(&[&a, &b]).await;
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut client = mux.connect().await;
        client.send(request("GET", NODES)).await;
        clients.push(client);
    }
    // What came before this was heard before it.
    b.until_seen(1).await;
    mux.get("/livez").await.ok();
    gate.open();
    let mut told = Vec::new();
    for mut client in clients {
        told.push(status(&client.response().await).unwrap().to_owned());
    }
    let of = |text: &str| told.iter().filter(|told| *told == text).count();
    assert_eq!(of("pdbmux; fwd=miss; stored"), 1, "{told:?}");
    assert_eq!(of("pdbmux; fwd=miss; stored; collapsed"), 2, "{told:?}");
}

#[tokio::test]
async fn where_nothing_is_cached_nothing_is_said() {
    let (a, b) = pair().await;
    let count = target(NODES, &[("query", r#"["extract",[["function","count"]]]"#)]);
    for stub in [&a, &b] {
        stub.on(&count, r#"[{"count":1}]"#);
    }
    let mux = caching(&[&a, &b]).await;
    assert_eq!(status(&mux.get(&count).await), None);
    let mux = with_ttl(&[&a, &b], Duration::ZERO).await;
    assert_eq!(status(&mux.get(NODES).await), None);
}
