//! What `/healthz`, `/livez` and `/readyz` tell.

use std::time::Instant;

use serde_json::{Value, json};

use super::*;
use crate::client::request;
use crate::harness::SHORT;

#[tokio::test]
async fn r189_to_r194_healthz_goes_by_who_answers_a_query() {
    let (a, b) = (backend(running()).await, backend(running()).await);
    let mux = Pdbmux::start(&[&a, &b]).await;
    let response = mux.get("/healthz").await;
    let of = |name: &str, reachable: &str| {
        json!({
            "name": name,
            "state": "unmonitored",
            "consecutive_failures": 0,
            "consecutive_successes": 0,
            "last_probe": null,
            "last_error": null,
            "reachable": reachable,
        })
    };
    let query = json!({
        "partial": false,
        "contributed": 0,
        "configured": 2,
        "partial_rounds": 0,
        "last_partial": null,
    });
    assert_eq!(response.status, 200);
    let mut health = response.json();
    // What it tells of the cache is the cache's own test.
    health.as_object_mut().unwrap().remove("cache").unwrap();
    assert_eq!(
        health,
        json!({"status": "ok", "backends": [of("pdb-a", "ok"), of("pdb-b", "ok")], "query": query})
    );
    b.on(REACH, Answer::status(500, "oh"));
    let response = mux.get("/healthz").await;
    let health = response.json();
    assert_eq!(
        (response.status, &health["status"]),
        (200, &json!("degraded"))
    );
    assert_eq!(
        health["backends"][1],
        of("pdb-b", "it answered with status 500")
    );
    a.on(REACH, Answer::reset());
    let response = mux.get("/healthz").await;
    assert_eq!(
        (response.status, &response.json()["status"]),
        (503, &json!("down"))
    );
}

#[tokio::test]
async fn r192_r195_r196_healthz_asks_those_out_of_service_and_those_not_verified_too() {
    let gone = || Answer::status(404, "nothing here");
    let (a, b) = (backend(running()).await, backend(gone()).await);
    b.otherwise(gone());
    b.on(REACH, gone());
    let mux = probing(&[&a, &b]).await;
    take_down(&mux, 0, &a, starting()).await;
    let health = until_state(&mux, 1, "probe_unsupported").await;
    assert_eq!(health["status"], "degraded");
    assert_eq!(health["backends"][0]["state"], "unhealthy");
    assert_eq!(health["backends"][0]["reachable"], "ok");
    assert_eq!(
        health["backends"][1]["reachable"],
        "it answered with status 404"
    );
}

#[tokio::test]
async fn healthz_is_answered_in_bounded_time() {
    let a = backend(running()).await;
    // Never silent for long, and never done.
    let drip = |answer: Answer, _| answer.chunk("[").pause(SHORT / 2);
    a.on(REACH, (0..200).fold(Answer::chunked(), drip));
    let mux = Pdbmux::with(&[&a], |config| config.timeout = 2 * SHORT).await;
    let start = Instant::now();
    let response = mux.get("/healthz").await;
    assert!(start.elapsed() < 6 * SHORT, "{:?}", start.elapsed());
    assert_eq!(
        response.json()["backends"][0]["reachable"],
        "nothing came for 500ms"
    );
}

/// What `/healthz` tells of the last round: partial, contributed, partial rounds.
async fn query(mux: &Pdbmux) -> (bool, u64, u64) {
    let query = health(mux).await["query"].clone();
    assert_eq!(query["configured"], 2);
    let rounds = query["partial_rounds"].as_u64().unwrap();
    assert_eq!(query["last_partial"].is_string(), rounds > 0, "{query}");
    let number = |name: &str| query[name].as_u64().unwrap();
    (
        query["partial"].as_bool().unwrap(),
        number("contributed"),
        rounds,
    )
}

#[tokio::test]
async fn r197_r198_r023_r025_the_query_object_tells_of_the_last_merged_round() {
    let (a, b) = (backend(running()).await, backend(running()).await);
    let mux = Pdbmux::start(&[&a, &b]).await;
    let answers = |first: Answer, second: Answer| {
        a.on(NODES, first);
        b.on(NODES, second);
    };
    let good = || Answer::json("[]");
    let status = |status| Answer::status(status, "oh");
    let cases = [
        (good(), good(), (false, 2, 0)),
        (good(), Answer::reset(), (true, 1, 1)),
        // Refused by all: it tells nothing about the backends.
        (status(400), status(400), (true, 1, 1)),
        (good(), good(), (false, 2, 1)),
        (status(400), status(400), (false, 2, 1)),
        (status(403), status(403), (false, 2, 1)),
        // Failed: by all in the same way, and otherwise.
        (status(500), status(500), (true, 0, 2)),
        (good(), good(), (false, 2, 2)),
        (status(400), status(500), (true, 0, 3)),
        (Answer::reset(), Answer::reset(), (true, 0, 4)),
        (good(), Answer::json("["), (true, 1, 5)),
        (good(), good(), (false, 2, 5)),
    ];
    for (case, (first, second, expected)) in cases.into_iter().enumerate() {
        answers(first, second);
        mux.get(NODES).await;
        assert_eq!(query(&mux).await, expected, "case {case}");
    }
    // What is not merged, or is refused here, is no round.
    b.on("/pdb/query/v4/environments", Answer::reset());
    a.on("/pdb/query/v4/environments", Answer::reset());
    mux.get("/pdb/query/v4/environments").await;
    mux.get("/pdb/query/v4/nodes?limit=x").await.refusal();
    assert_eq!(query(&mux).await, (false, 2, 5));
}

#[tokio::test]
async fn r197_a_backend_without_the_report_is_not_missed() {
    let (a, b) = (backend(running()).await, backend(running()).await);
    let mux = Pdbmux::start(&[&a, &b]).await;
    let path = "/pdb/query/v4/reports/abc/logs";
    a.on(path, Answer::status(404, "no report"));
    mux.get(path).await.ok();
    assert_eq!(query(&mux).await, (false, 1, 0));
    a.on(path, Answer::reset());
    mux.get(path).await.ok();
    assert_eq!(query(&mux).await, (true, 1, 1));
}

#[tokio::test]
async fn r197_a_round_without_a_skipped_backend_is_partial() {
    let (_a, _b, mux) = with_b_down().await;
    mux.get(NODES).await.ok();
    assert_eq!(query(&mux).await, (true, 1, 1));
}

#[tokio::test]
async fn r201_livez_and_readyz_tell_of_the_process_and_ask_nobody() {
    let a = backend(running()).await;
    let mux = probing(&[&a]).await;
    let ok = json!({"status": "ok"});
    let asked = |stub: &Stub| stub.asked().iter().any(|target| target != PROBE);
    for path in ["/livez", "/readyz"] {
        let response = mux.get(path).await;
        assert_eq!((response.status, response.json()), (200, ok.clone()));
    }
    assert!(!asked(&a));
    take_down(&mux, 0, &a, starting()).await;
    assert_eq!(mux.get("/livez").await.status, 200);
    let response = mux.get("/readyz").await;
    assert_eq!(response.status, 503);
    assert_eq!(response.json(), json!({"status": "no backend in service"}));
    a.on(PROBE, running());
    until_state(&mux, 0, "healthy").await;
    mux.get("/readyz").await.ok();
}

#[tokio::test]
async fn r201_they_are_answered_for_get_and_head_only() {
    let a = backend(running()).await;
    let mux = Pdbmux::start(&[&a]).await;
    for path in ["/healthz", "/livez", "/readyz"] {
        let mut client = mux.connect().await;
        client.send(request("HEAD", path)).await;
        assert_eq!(client.head().await.status, 200, "{path}");
        client.send(request("POST", path)).await;
        let response = client.response().await;
        assert_eq!(response.status, 405, "{path}");
        assert_eq!(response.header("allow"), Some("GET, HEAD"));
    }
}

#[tokio::test]
async fn r018_no_address_of_a_backend_is_told() {
    let b = Stub::closed();
    let mux = probing(&[&b]).await;
    let health = until_state(&mux, 0, "probe_unsupported").await;
    // The harness looks for addresses in every answer.
    assert!(health["backends"][0]["last_error"] != Value::Null);
    assert!(health["backends"][0]["reachable"] != "ok");
}
