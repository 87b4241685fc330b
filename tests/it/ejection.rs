//! Backends that are left out for a time since requests fail with them.

use std::num::NonZeroU32;
use std::time::Duration;

use pdbmux::config::Config;
use pdbmux_core::settings::Strategy;

use crate::client::{End, in_time};
use crate::harness::{Pdbmux, SHORT};
use crate::stub::{Answer, Gate, Stub};

const NODES: &str = "/pdb/query/v4/nodes";
const REPORTS: &str = "/pdb/query/v4/reports";
const PROBE: &str = "/status/v1/services";
const LONG: Duration = Duration::from_hours(1);
/// So short that a trial is due when the next request comes.
const GONE_AT_ONCE: Duration = Duration::from_nanos(1);

async fn pair() -> (Stub, Stub) {
    let (a, b) = (Stub::start().await, Stub::start().await);
    for stub in [&a, &b] {
        stub.otherwise("[]").fresh(&[]);
    }
    (a, b)
}

/// pdbmux that leaves backends out for this time after so many failures.
async fn ejecting(stubs: &[&Stub], failures: u32, time: Duration) -> Pdbmux {
    ejecting_with(stubs, failures, time, |_| {}).await
}

async fn ejecting_with(
    stubs: &[&Stub],
    failures: u32,
    time: Duration,
    change: impl FnOnce(&mut Config),
) -> Pdbmux {
    Pdbmux::with(stubs, |config| {
        config.eject_failures = failures;
        config.eject_time = time;
        config.timeout = SHORT;
        change(config);
    })
    .await
}

/// Whether the second backend is left out, as `/healthz` tells.
async fn is_out(mux: &Pdbmux) -> bool {
    let health = mux.get("/healthz").await.json();
    health["backends"][1].get("ejected_until").is_some()
}

#[tokio::test]
async fn by_default_nobody_is_left_out_for_failing_requests() {
    let (a, b) = pair().await;
    let mux = Pdbmux::start(&[&a, &b]).await;
    b.on(NODES, Answer::reset());
    for _ in 0..12 {
        assert_eq!(
            mux.get(NODES).await.missing(),
            ["pdb-b; reason=unreachable"]
        );
    }
    assert!(!is_out(&mux).await);
}

#[tokio::test]
pub(crate) async fn failures_in_a_row_leave_a_backend_out_and_others_are_asked_without_it() {
    for failing in [
        Answer::reset(),
        Answer::hung(),
        Answer::status(500, "oh"),
        Answer::json("[{"),
        Answer::promising(10).send("[").close(),
    ] {
        let (a, b) = pair().await;
        let mux = ejecting(&[&a, &b], 3, LONG).await;
        for answer in [&failing, &failing, &Answer::json("[]"), &failing, &failing] {
            b.on(NODES, answer.clone());
            mux.get(NODES).await.ok();
        }
        assert!(!is_out(&mux).await, "{failing:?}");
        mux.get(NODES).await.ok();
        assert!(is_out(&mux).await, "{failing:?}");
        let asked = b.asked().len();
        let response = mux.get(NODES).await;
        assert_eq!(response.missing(), ["pdb-b; reason=out-of-service"]);
        assert_eq!(b.asked().len(), asked);
    }
}

#[tokio::test]
async fn what_the_question_may_be_to_blame_for_leaves_nobody_out() {
    let (a, b) = pair().await;
    let mux = ejecting(&[&a, &b], 1, LONG).await;
    for (one, other) in [(400, 400), (500, 500), (503, 503), (200, 400), (200, 404)] {
        a.on(NODES, Answer::status(one, "[]"));
        b.on(NODES, Answer::status(other, "no"));
        mux.get(NODES).await;
        assert!(!is_out(&mux).await, "{one} {other}");
    }
    a.on(NODES, "[]");
    b.on(NODES, Answer::status(503, "not ready"));
    mux.get(NODES).await.ok();
    assert!(is_out(&mux).await);
}

#[tokio::test]
async fn never_are_all_left_out() {
    let (a, b) = pair().await;
    let mux = ejecting(&[&a, &b], 1, LONG).await;
    for stub in [&b, &a] {
        stub.on(NODES, Answer::reset());
        mux.get(NODES).await;
    }
    let asked = (a.asked().len(), b.asked().len());
    assert_eq!(mux.get(NODES).await.status, 502);
    assert!(a.asked().len() > asked.0 && b.asked().len() > asked.1);
    // Who answers then is in again, and the other is not asked any more.
    a.on(NODES, "[]");
    mux.get(NODES).await.ok();
    let asked = b.asked().len();
    assert_eq!(
        mux.get(NODES).await.missing(),
        ["pdb-b; reason=out-of-service"]
    );
    assert_eq!(b.asked().len(), asked);
}

#[tokio::test]
pub(crate) async fn one_request_tries_a_backend_whose_time_is_over_while_others_go_without() {
    let (a, b) = pair().await;
    let mux = ejecting_with(&[&a, &b], 1, GONE_AT_ONCE, |config| {
        config.timeout = Duration::from_secs(30);
    })
    .await;
    b.on(NODES, Answer::reset());
    mux.get(NODES).await.ok();
    assert!(is_out(&mux).await);
    let gate = Gate::new();
    b.on(NODES, Answer::json("[]").behind(&gate));
    let asked = b.seen().len();
    let others = async {
        b.until_seen(asked + 1).await;
        let other = mux.get(NODES).await;
        assert_eq!(other.missing(), ["pdb-b; reason=out-of-service"]);
        gate.open();
    };
    let (trial, ()) = tokio::join!(mux.get(NODES), others);
    assert_eq!((trial.status, trial.backends()), (200, Some("2/2")));
    assert!(!is_out(&mux).await);
    assert_eq!(mux.get(NODES).await.backends(), Some("2/2"));
}

#[tokio::test]
async fn a_backend_that_is_well_again_is_found_so_whatever_is_asked() {
    for (strategy, path) in [
        (Strategy::Freshness, NODES),
        (Strategy::Freshness, "/pdb/query/v4/facts"),
        (Strategy::Exact, NODES),
        (Strategy::Exact, "/pdb/query/v4/facts"),
    ] {
        let (a, b) = pair().await;
        let mux = ejecting_with(&[&a, &b], 1, GONE_AT_ONCE, |config| {
            config.merge = strategy;
            // Whose nodes are whose is asked each time, also of who is tried.
            config.freshness_ttl = Duration::ZERO;
            // A trial that comes to nothing is not repeated within this test.
            config.timeout = Duration::from_secs(30);
        })
        .await;
        mux.get(path).await.ok();
        let well = b.asked();
        b.otherwise(Answer::reset());
        in_time(async { while !is_out(&mux).await && mux.get(path).await.status == 200 {} }).await;
        b.otherwise("[]");
        in_time(async { while mux.get(path).await.backends() != Some("2/2") {} }).await;
        assert!(b.asked().len() > well.len(), "{strategy:?} {path}");
        assert!(!is_out(&mux).await, "{strategy:?} {path}");
    }
}

#[tokio::test]
async fn a_good_probe_does_not_bring_back_who_fails_at_queries_and_a_recovery_does() {
    let (a, b) = pair().await;
    let running = r#"{"puppetdb-status":{"state":"running"}}"#;
    for stub in [&a, &b] {
        stub.on(PROBE, running);
    }
    let mux = ejecting_with(&[&a, &b], 1, LONG, |config| {
        config.health_probe_enabled = true;
        config.health_probe_interval = Duration::from_millis(5);
        config.health_probe_failures = NonZeroU32::MIN;
    })
    .await;
    let probes = || b.targets().iter().filter(|target| *target == PROBE).count();
    let until = async |state: &str| {
        let is_so = async || mux.get("/healthz").await.json()["backends"][1]["state"] == state;
        in_time(async { while !is_so().await {} }).await;
    };
    until("healthy").await;
    b.on(NODES, Answer::reset());
    mux.get(NODES).await.ok();
    let before = probes();
    in_time(async { while probes() < before + 5 && is_out(&mux).await {} }).await;
    assert!(is_out(&mux).await);
    assert_eq!(mux.get(NODES).await.backends(), Some("1/2"));
    // It is restarted: its time is over at once.
    b.on(NODES, "[]").on(PROBE, Answer::status(503, "starting"));
    until("unhealthy").await;
    b.on(PROBE, running);
    until("healthy").await;
    assert_eq!(mux.get(NODES).await.backends(), Some("2/2"));
    assert!(!is_out(&mux).await);
}

#[tokio::test]
async fn an_answer_that_breaks_off_while_it_is_written_is_a_failure_too() {
    let (a, b) = pair().await;
    let report = r#"[{"certname":"n","hash":"1"}]"#;
    let mux = ejecting_with(&[&a, &b], 2, LONG, |config| config.buffer_bytes = 1).await;
    a.on(REPORTS, report);
    b.on(REPORTS, Answer::chunked().chunk(&report[..20]).hang());
    for _ in 0..2 {
        assert!(!is_out(&mux).await);
        assert_eq!(mux.get(REPORTS).await.end, End::Broken);
    }
    assert!(is_out(&mux).await);
    assert_eq!(mux.get(REPORTS).await.end, End::Whole);
}

#[tokio::test]
async fn who_fails_before_another_in_turn_is_left_out() {
    let path = "/pdb/query/v4/environments";
    for failing in [
        Answer::reset(),
        Answer::status(500, "oh"),
        Answer::json("<html>"),
    ] {
        let (a, b) = pair().await;
        let mux = ejecting(&[&b, &a], 1, LONG).await;
        b.on(path, failing);
        mux.get(path).await.ok();
        let asked = b.asked().len();
        mux.get(path).await.ok();
        assert_eq!(b.asked().len(), asked);
    }
}

#[tokio::test]
async fn one_of_a_group_is_left_out_alone() {
    let (a, b) = pair().await;
    let mux = ejecting_with(&[&a, &b], 1, LONG, |config| {
        for backend in &mut config.backends {
            backend.access.group = Some("eu".to_owned());
        }
    })
    .await;
    a.on(NODES, Answer::status(500, "oh"));
    b.on(NODES, "[]");
    let response = mux.get(NODES).await;
    assert_eq!((response.status, response.backends()), (200, Some("1/1")));
    let health = mux.get("/healthz").await.json();
    let group = &health["backends"][0];
    assert_eq!(group.get("ejected_until"), None);
    assert!(group["members"][0].get("ejected_until").is_some());
    assert_eq!(group["members"][1].get("ejected_until"), None);
    // The other fails as well: nobody is left to be asked first.
    b.on(NODES, Answer::reset());
    a.on(NODES, "[]");
    assert_eq!(mux.get(NODES).await.status, 502);
    assert_eq!(mux.get(NODES).await.status, 200);
}
