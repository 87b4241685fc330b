//! Answers that lack a backend: served, or refused where the configuration or the client says so.

use std::time::Duration;

use pdbmux::config::{Config, Partial};
use serde_json::json;

use crate::client::{End, Response};
use crate::harness::{Pdbmux, SHORT};
use crate::stub::{Answer, Gate, Stub, nodes_body};

const NODES: &str = "/pdb/query/v4/nodes";
const REPORTS: &str = "/pdb/query/v4/reports";
const CATALOG: &str = "/pdb/query/v4/catalogs/n";

/// Two backends that have the node, which is newer in the second.
async fn pair() -> (Stub, Stub) {
    let (a, b) = (Stub::start().await, Stub::start().await);
    for (stub, time) in [(&a, "2024-05-01T10:00:00Z"), (&b, "2024-05-02T10:00:00Z")] {
        let nodes = &[("n", time)][..];
        stub.fresh(nodes)
            .on(NODES, nodes_body(nodes))
            .on(CATALOG, "{}");
    }
    (a, b)
}

async fn asked(mux: &Pdbmux, target: &str, wish: &str) -> Response {
    let mut client = mux.connect().await;
    let wish = format!("X-Pdbmux-Partial: {wish}\r\n");
    let request = format!("GET {target} HTTP/1.1\r\nHost: pdbmux\r\n{wish}\r\n");
    client.send(request).await;
    client.response().await
}

#[track_caller]
fn assert_refused(response: &Response, name: &str, reason: &str) {
    assert_eq!(response.status, 503, "{response:#?}");
    assert_eq!(
        response.json(),
        json!({
            "error": format!("a partial answer is refused: it would lack {name}"),
            "missing": [{"backend": name, "reason": reason}],
        })
    );
    assert_eq!(response.missing(), [format!("{name}; reason={reason}")]);
    assert_eq!(response.header("retry-after"), Some("10"));
    assert_eq!(response.backends(), None);
}

#[tokio::test]
async fn a_partial_answer_is_refused_by_the_configuration_or_the_client_who_goes_before_it() {
    let (a, b) = pair().await;
    let mux = Pdbmux::start(&[&a, &b]).await;
    let strict = Pdbmux::with(&[&a, &b], |config| config.partial = Partial::Refuse).await;
    strict.get(NODES).await.ok();
    asked(&mux, NODES, "refuse").await.ok();
    b.on(NODES, Answer::reset());
    mux.get(NODES).await.ok();
    assert_refused(&strict.get(NODES).await, "pdb-b", "unreachable");
    assert_refused(&asked(&mux, NODES, "refuse").await, "pdb-b", "unreachable");
    let served = asked(&strict, NODES, "serve").await;
    assert_eq!((served.status, served.backends()), (200, Some("1/2")));
    // What is no partial answer is as ever.
    a.on(NODES, Answer::reset());
    assert_eq!(strict.get(NODES).await.status, 502);
}

#[tokio::test]
async fn what_is_neither_serve_nor_refuse_is_refused_before_anyone_is_asked() {
    let (a, b) = pair().await;
    let mux = Pdbmux::start(&[&a, &b]).await;
    for wish in ["", "Refuse", "serve, refuse", "1"] {
        let response = asked(&mux, NODES, wish).await;
        assert_eq!(
            response.refusal(),
            "X-Pdbmux-Partial is neither serve nor refuse"
        );
    }
    assert_eq!((a.targets().len(), b.targets().len()), (0, 0));
}

#[tokio::test]
async fn a_required_backend_is_not_done_without_and_others_are() {
    let (a, b) = pair().await;
    let mux = Pdbmux::with(&[&a, &b], |config| {
        config.backends[1].access.required = Some(true);
    })
    .await;
    a.on(NODES, Answer::reset());
    assert_eq!(
        mux.get(NODES).await.missing(),
        ["pdb-a; reason=unreachable"]
    );
    b.on(NODES, Answer::status(500, "oh"));
    a.on(NODES, "[]");
    assert_refused(&mux.get(NODES).await, "pdb-b", "status-500");
    asked(&mux, NODES, "serve").await.ok();
}

#[tokio::test]
async fn a_required_backend_out_of_service_is_missed() {
    const PROBE: &str = "/status/v1/services";
    let (a, b) = pair().await;
    let running = r#"{"puppetdb-status":{"state":"running"}}"#;
    for stub in [&a, &b] {
        stub.on(PROBE, running)
            .on("/pdb/query/v4/nodes?limit=1", "[]");
    }
    let mux = Pdbmux::with(&[&a, &b], |config| {
        config.backends[1].access.required = Some(true);
        config.health_probe_enabled = true;
        config.health_probe_interval = Duration::from_millis(5);
    })
    .await;
    let until = async |state: &str| {
        crate::client::in_time(async {
            while mux.get("/healthz").await.json()["backends"][1]["state"] != state {}
        })
        .await;
    };
    until("healthy").await;
    b.on(PROBE, Answer::status(503, "starting"));
    until("unhealthy").await;
    let response = mux.get(NODES).await;
    assert_eq!(response.missing(), ["pdb-b; reason=out-of-service"]);
    assert_eq!(
        (response.status, response.header("retry-after")),
        (503, Some("1"))
    );
    // Nor is it known whether it has newer data of a node.
    let response = mux.get(CATALOG).await;
    assert_eq!(response.missing(), ["pdb-b; reason=out-of-service"]);
    assert_eq!(response.status, 503);
}

#[tokio::test]
async fn a_stand_in_for_the_owner_of_a_node_is_not_taken_for_it() {
    let (a, b) = pair().await;
    let mux = Pdbmux::start(&[&a, &b]).await;
    asked(&mux, CATALOG, "refuse").await.ok();
    b.on(CATALOG, Answer::reset());
    assert_eq!(mux.get(CATALOG).await.ok(), "{}");
    assert_refused(
        &asked(&mux, CATALOG, "refuse").await,
        "pdb-b",
        "unreachable",
    );
    // One that only lacks what was asked for is not missed, nor are others than the owner.
    b.on(CATALOG, Answer::status(404, "no catalog"));
    asked(&mux, CATALOG, "refuse").await.ok();
    b.on(CATALOG, "{}");
    a.on(CATALOG, Answer::reset());
    asked(&mux, CATALOG, "refuse").await.ok();
}

#[tokio::test]
async fn a_stored_partial_answer_is_no_answer_for_who_refuses_one() {
    let (a, b) = pair().await;
    let mux = Pdbmux::with(&[&a, &b], |config| {
        config.facts_ttl = Duration::from_hours(1);
    })
    .await;
    b.on(NODES, Answer::reset());
    mux.get(NODES).await.ok();
    assert_eq!(mux.get(NODES).await.header("x-cache"), Some("hit"));
    let refused = asked(&mux, NODES, "refuse").await;
    assert_refused(&refused, "pdb-b", "unreachable");
    assert_eq!(
        (refused.header("x-cache"), refused.header("age")),
        (Some("miss"), Some("0"))
    );
    b.on(NODES, "[]");
    let whole = asked(&mux, NODES, "refuse").await;
    assert_eq!((whole.status, whole.backends()), (200, Some("2/2")));
    let hit = asked(&mux, NODES, "refuse").await;
    assert_eq!(
        (hit.header("x-cache"), hit.backends()),
        (Some("hit"), Some("2/2"))
    );
}

#[tokio::test]
async fn an_older_answer_that_was_whole_is_served_and_a_partial_one_is_not() {
    for (whole, status) in [(true, 200), (false, 502)] {
        let (a, b) = pair().await;
        let gone_at_once = |config: &mut Config| config.facts_ttl = Duration::from_nanos(1);
        let mux = Pdbmux::with(&[&a, &b], gone_at_once).await;
        if !whole {
            b.on(NODES, Answer::reset());
        }
        mux.get(NODES).await.ok();
        for stub in [&a, &b] {
            stub.on(NODES, Answer::reset());
        }
        assert_eq!(asked(&mux, NODES, "refuse").await.status, status);
        assert_eq!(asked(&mux, NODES, "serve").await.status, 200);
    }
}

#[tokio::test]
async fn a_long_list_is_refused_before_its_head_and_broken_off_after_it() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    let reports = |hash: &str| json!([{"certname": "n", "hash": hash}]).to_string();
    let streaming = |config: &mut Config| {
        config.buffer_bytes = 1;
        config.timeout = SHORT;
        config.partial = Partial::Refuse;
    };
    let mux = Pdbmux::with(&[&a, &b], streaming).await;
    let gate = Gate::new();
    let long = reports("1");
    a.on(REPORTS, Answer::chunked().chunk(&long[..20]).hold(&gate));
    b.on(REPORTS, Answer::status(500, "oh"));
    assert_refused(&mux.get(REPORTS).await, "pdb-b", "status-500");
    a.until_hung_up_on().await;
    a.on(REPORTS, &*long);
    b.on(REPORTS, Answer::chunked().chunk(&reports("2")[..20]).hang());
    let broken = mux.get(REPORTS).await;
    assert_eq!((broken.status, broken.end), (200, End::Broken));
}
