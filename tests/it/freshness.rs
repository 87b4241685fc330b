//! The freshness map: who asks for it, how often, and what it may cost (R044, R045).

pub(crate) mod arriving;

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use pdbmux_core::settings::Strategy;

use crate::client::in_time;
use crate::facts::fact;
use crate::harness::{Pdbmux, SHORT};
use crate::stub::{Answer, FRESHNESS, Gate, Stub, nodes_body};

const FACTS: &str = "/pdb/query/v4/facts";
const OLD: &str = "2024-05-01T10:00:00.000Z";
const NEW: &str = "2024-05-02T10:00:00.000Z";

/// Both hold `n`, which is newer in the second.
async fn pair() -> (Stub, Stub) {
    let (a, b) = (Stub::start().await, Stub::start().await);
    a.fresh(&[("n", OLD)])
        .on(FACTS, format!("[{}]", fact("n", "os", "a")));
    b.fresh(&[("n", NEW)])
        .on(FACTS, format!("[{}]", fact("n", "os", "b")));
    (a, b)
}

/// Whose facts are served.
async fn owner(mux: &Pdbmux) -> String {
    let response = mux.get(FACTS).await;
    let records = response.json();
    assert_eq!(response.status, 200);
    records[0]["value"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn r044_twenty_requests_at_once_ask_for_it_once() {
    let (a, b) = pair().await;
    let gate = Gate::new();
    for (stub, reported) in [(&a, OLD), (&b, NEW)] {
        stub.on(
            FRESHNESS,
            Answer::json(nodes_body(&[("n", reported)])).behind(&gate),
        );
    }
    let mux = Pdbmux::start(&[&a, &b]).await;
    let asked = async {
        // Twenty times the facts and once the map, before any map is there.
        a.until_seen(21).await;
        b.until_seen(21).await;
        gate.open();
    };
    let (owners, ()) = tokio::join!(join_all((0..20).map(|_| owner(&mux))), asked);
    assert_eq!(owners, ["b"; 20]);
    assert_eq!((a.freshness_asks(), b.freshness_asks()), (1, 1));
}

#[tokio::test]
async fn r044_it_is_kept_for_its_time() {
    let (a, b) = pair().await;
    let mux = Pdbmux::start(&[&a, &b]).await;
    a.on("/pdb/query/v4/nodes/n", Answer::json("{}"));
    b.on("/pdb/query/v4/nodes/n", Answer::json("{}"));
    for _ in 0..3 {
        assert_eq!(owner(&mux).await, "b");
        mux.get("/pdb/query/v4/nodes/n").await.ok();
    }
    assert_eq!((a.freshness_asks(), b.freshness_asks()), (1, 1));
}

#[tokio::test]
async fn r044_it_is_built_anew_after_its_time() {
    let (a, b) = pair().await;
    let mux = Pdbmux::with(&[&a, &b], |config| {
        config.freshness_ttl = Duration::from_millis(20);
    })
    .await;
    assert_eq!(owner(&mux).await, "b");
    a.fresh(&[("n", "2024-06-01T00:00:00Z")]);
    in_time(async { while owner(&mux).await == "b" {} }).await;
    assert_eq!(owner(&mux).await, "a");
}

#[tokio::test]
async fn r045_it_is_not_asked_for_where_nothing_needs_it() {
    let (a, b) = pair().await;
    for stub in [&a, &b] {
        stub.otherwise("[]");
        stub.on("/pdb/meta/v1/version", r#"{"version":"8.0.0"}"#);
    }
    let mux = Pdbmux::start(&[&a, &b]).await;
    for path in [
        "/pdb/query/v4/nodes",
        "/pdb/query/v4/environments",
        "/pdb/meta/v1/version",
        "/pdb/query/v4/facts?query=%5B%22extract%22,%5B%5B%22function%22,%22count%22%5D%5D%5D",
    ] {
        mux.get(path).await.ok();
    }
    let fixed = Pdbmux::with(&[&a, &b], |config| config.merge = Strategy::Static).await;
    for path in [FACTS, "/pdb/query/v4/facts/os", "/pdb/query/v4/nodes/n"] {
        fixed.get(path).await.ok();
    }
    assert_eq!((a.freshness_asks(), b.freshness_asks()), (0, 0));
}

#[tokio::test]
async fn a_backend_that_comes_back_owns_its_nodes_at_once() {
    let (a, b) = pair().await;
    let back = Answer::json(format!("[{}]", fact("n", "os", "b")));
    b.on(FACTS, Answer::reset()).on(FRESHNESS, Answer::reset());
    let mux = Pdbmux::start(&[&a, &b]).await;
    assert_eq!(owner(&mux).await, "a");
    b.on(FACTS, back).fresh(&[("n", NEW)]);
    assert_eq!(
        owner(&mux).await,
        "b",
        "the map of the time without it must not decide"
    );
    assert_eq!(a.freshness_asks(), 2);
}

#[tokio::test]
async fn a_backend_whose_nodes_cannot_be_read_leaves_shared_nodes_to_others() {
    for trouble in [
        Answer::reset(),
        Answer::status(500, "oh"),
        Answer::json("[{"),
        Answer::json("<html>"),
    ] {
        let (a, b) = pair().await;
        b.on(FRESHNESS, trouble);
        b.on(
            FACTS,
            format!("[{},{}]", fact("n", "os", "b"), fact("m", "os", "b")),
        );
        let mux = Pdbmux::start(&[&a, &b]).await;
        let response = mux.get(FACTS).await;
        let values: Vec<_> = response
            .json()
            .as_array()
            .unwrap()
            .iter()
            .filter(|record| record["name"] == "os")
            .map(|record| record["value"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(values, ["a", "b"]);
        assert_eq!(response.backends(), Some("2/2"));
    }
}

#[tokio::test]
async fn a_map_that_was_just_tried_is_not_tried_again_for_the_same_request() {
    let (a, b) = pair().await;
    b.on(FRESHNESS, Answer::status(500, "oh"));
    let mux = Pdbmux::start(&[&a, &b]).await;
    assert_eq!(owner(&mux).await, "a");
    assert_eq!((a.freshness_asks(), b.freshness_asks()), (1, 1));
}

#[tokio::test]
async fn a_silent_backend_delays_an_answer_by_one_timeout_at_most() {
    let (a, b) = pair().await;
    b.on(FRESHNESS, Answer::hung());
    let mux = Pdbmux::with(&[&a, &b], |config| config.timeout = 2 * SHORT).await;
    let start = Instant::now();
    assert_eq!(owner(&mux).await, "a");
    let took = start.elapsed();
    assert!(took < 4 * SHORT, "{took:?}");
}

#[tokio::test]
async fn a_client_that_leaves_does_not_take_the_map_from_those_who_wait() {
    let (a, b) = pair().await;
    let gate = Gate::new();
    b.on(
        FRESHNESS,
        Answer::json(nodes_body(&[("n", NEW)])).behind(&gate),
    );
    let mux = Pdbmux::start(&[&a, &b]).await;
    let mut leaving = mux.connect().await;
    leaving.send(crate::client::request("GET", FACTS)).await;
    b.until_seen(2).await;
    let waiting = async {
        b.until_seen(3).await;
        drop(leaving);
        gate.open();
    };
    let (owner, ()) = tokio::join!(owner(&mux), waiting);
    assert_eq!(owner, "b");
    assert_eq!(b.freshness_asks(), 1);
}
