//! Who is in service, and who is asked.

use pdbmux_core::settings::Strategy;
use serde_json::Value;

use super::*;
use crate::harness::SHORT;
use crate::stub::{FRESHNESS, Gate};

#[tokio::test]
async fn r155_r182_r183_requests_do_not_wait_for_the_first_probe() {
    let gate = Gate::new();
    let a = backend(running().behind(&gate)).await;
    let mux = probing(&[&a]).await;
    assert_eq!(mux.get(NODES).await.ok(), "[]");
    let before = health(&mux).await["backends"][0].clone();
    assert_eq!(
        (&before["state"], &before["last_probe"]),
        (&Value::from("unprobed"), &Value::Null)
    );
    gate.open();
    let after = until_state(&mux, 0, "healthy").await["backends"][0].clone();
    assert!(after["consecutive_successes"].as_u64() >= Some(1));
    let probed = after["last_probe"].as_str().unwrap();
    assert!(probed.len() == 24 && probed.ends_with('Z'), "{probed}");
}

#[tokio::test]
async fn r155_the_configured_path_is_probed() {
    let a = backend(running()).await;
    let path = "/status/v1/simple?x=%2F";
    a.on(path, Answer::status(200, "running"));
    let mux = probing_with(&[&a], |config| {
        config.health_probe_path = path.parse().unwrap();
    })
    .await;
    until_state(&mux, 0, "healthy").await;
    assert!(!a.targets().contains(&PROBE.to_owned()));
    a.on(path, Answer::status(503, "starting"));
    until_state(&mux, 0, "unhealthy").await;
}

#[tokio::test]
async fn r007_r172_r173_r187_a_backend_that_goes_is_not_asked_until_it_is_back() {
    let (a, b) = (backend(running()).await, backend(running()).await);
    let mux = probing(&[&a, &b]).await;
    until_state(&mux, 1, "healthy").await;
    assert_eq!(mux.get(NODES).await.backends(), Some("2/2"));
    assert_eq!(queries(&b).len(), 1);

    b.on(REACH, Answer::reset()).otherwise(Answer::hung());
    take_down(&mux, 1, &b, Answer::reset()).await;
    for _ in 0..3 {
        let response = mux.get(NODES).await;
        assert_eq!(response.ok(), "[]");
        assert_eq!(response.backends(), Some("1/2"));
        assert_eq!(response.missing(), ["pdb-b; reason=out-of-service"]);
    }
    assert_eq!((queries(&a).len(), queries(&b).len()), (4, 1));

    b.on(PROBE, running()).otherwise("[]");
    until_state(&mux, 1, "healthy").await;
    let response = mux.get(NODES).await;
    assert_eq!(
        (response.backends(), response.missing()),
        (Some("2/2"), vec![])
    );
    assert_eq!(queries(&b).len(), 2);
}

#[tokio::test]
async fn r158_to_r162_r170_r171_each_kind_of_trouble_takes_a_trusted_backend_out() {
    let degraded = Answer::json(r#"{"puppetdb-status":{"state":"error"}}"#);
    for (trouble, error) in [
        (starting(), "it answered with status 503"),
        (
            degraded,
            r#"its service "puppetdb-status" is in the state "error""#,
        ),
        (Answer::status(500, "oh"), "it answered with status 500"),
        (Answer::status(429, "busy"), "it answered with status 429"),
        (Answer::status(404, "moved"), "it answered with status 404"),
        (Answer::status(403, "no"), "it answered with status 403"),
        (Answer::hung(), "nothing came for 250ms"),
        (
            Answer::promising(9).send("{").hang(),
            "nothing came for 250ms",
        ),
        (
            Answer::promising(9).send("{").close(),
            "the answer broke off",
        ),
        (Answer::reset(), "no answer: "),
    ] {
        let (a, b) = (backend(running()).await, backend(running()).await);
        let mux = probing_with(&[&a, &b], |config| config.health_probe_timeout = SHORT).await;
        take_down(&mux, 1, &b, trouble).await;
        let of_b = health(&mux).await["backends"][1].clone();
        let text = of_b["last_error"].as_str().unwrap();
        assert!(text.contains(error), "{text}");
        assert!(of_b["consecutive_failures"].as_u64() >= Some(3), "{of_b}");
        assert_eq!(of_b["consecutive_successes"], 0);
        mux.get(NODES).await.ok();
        assert_eq!(queries(&b), [""; 0], "{text}");
    }
}

#[tokio::test]
async fn r164_to_r169_r196_a_backend_whose_probe_was_never_answered_stays_in_service() {
    for trouble in [
        Answer::status(404, "no such page"),
        Answer::status(401, "who"),
        Answer::status(501, "what"),
        Answer::with(302, &[("Location", "/elsewhere")], ""),
        Answer::hung(),
        Answer::reset(),
    ] {
        let (a, b) = (backend(running()).await, backend(trouble).await);
        let mux = probing_with(&[&a, &b], |config| config.health_probe_timeout = SHORT).await;
        let health = until_state(&mux, 1, "probe_unsupported").await;
        assert!(health["backends"][1]["last_error"].is_string());
        assert_eq!(health["status"], "ok");
        assert_eq!(mux.get(NODES).await.backends(), Some("2/2"));
        assert_eq!(queries(&b), [NODES]);
        b.on(PROBE, running());
        until_state(&mux, 1, "healthy").await;
    }
}

#[tokio::test]
async fn r169_a_backend_that_is_unreachable_from_the_start_is_asked() {
    let (a, b) = (backend(running()).await, Stub::closed());
    let mux = probing(&[&a, &b]).await;
    let health = until_state(&mux, 1, "probe_unsupported").await;
    assert_eq!(health["status"], "degraded");
    let response = mux.get(NODES).await;
    assert_eq!(response.missing(), ["pdb-b; reason=unreachable"]);
}

#[tokio::test]
async fn r181_where_all_are_down_all_are_asked() {
    let (a, b) = (backend(running()).await, backend(running()).await);
    let mux = probing(&[&a, &b]).await;
    take_down(&mux, 0, &a, Answer::status(404, "moved")).await;
    take_down(&mux, 1, &b, Answer::status(404, "moved")).await;
    let response = mux.get(NODES).await;
    assert_eq!(
        (response.backends(), response.missing()),
        (Some("2/2"), vec![])
    );
    assert_eq!(
        (queries(&a), queries(&b)),
        (vec![NODES.into()], vec![NODES.into()])
    );
    mux.get("/pdb/query/v4/environments").await.ok();
    assert_eq!(queries(&a).len(), 2);
}

#[tokio::test]
async fn r188_without_probing_everybody_is_asked_every_time() {
    let (a, b) = (backend(starting()).await, backend(starting()).await);
    b.otherwise(Answer::reset());
    let mux = Pdbmux::start(&[&a, &b]).await;
    for _ in 0..4 {
        let response = mux.get(NODES).await;
        assert_eq!(response.backends(), Some("1/2"));
        assert_eq!(response.missing(), ["pdb-b; reason=unreachable"]);
    }
    for of in health(&mux).await["backends"].as_array().unwrap() {
        assert_eq!(of["state"], "unmonitored");
        assert_eq!(
            (&of["last_probe"], &of["last_error"]),
            (&Value::Null, &Value::Null)
        );
    }
    for stub in [&a, &b] {
        assert!(!stub.targets().contains(&PROBE.to_owned()));
    }
}

#[tokio::test]
async fn r186_what_those_in_service_agree_on_is_the_answer() {
    let (a, b, mux) = with_b_down().await;
    a.on(NODES, Answer::status(400, "no such column"));
    let response = mux.get(NODES).await;
    assert_eq!((response.status, response.text()), (400, "no such column"));
    a.on(NODES, Answer::reset());
    let response = mux.get(NODES).await;
    assert_eq!(response.status, 502);
    assert_eq!(
        response.missing(),
        ["pdb-a; reason=unreachable", "pdb-b; reason=out-of-service"]
    );
    assert_eq!(queries(&b), [""; 0]);
}

#[tokio::test]
async fn r044_the_freshness_map_is_built_without_those_out_of_service() {
    let (a, b, mux) = with_b_down().await;
    mux.get("/pdb/query/v4/facts").await.ok();
    assert_eq!((a.freshness_asks(), b.freshness_asks()), (1, 0));
    b.on(PROBE, running());
    until_state(&mux, 1, "healthy").await;
    mux.get("/pdb/query/v4/facts").await.ok();
    assert_eq!(b.freshness_asks(), 1, "a map without it does not decide");
}

#[tokio::test]
async fn r240_passing_through_skips_those_out_of_service() {
    let (a, b) = (backend(running()).await, backend(running()).await);
    let mux = probing(&[&a, &b]).await;
    take_down(&mux, 0, &a, starting()).await;
    let path = "/pdb/query/v4/environments";
    mux.get(path).await.ok();
    b.on(path, Answer::status(404, "none"));
    assert_eq!(mux.get(path).await.status, 404);
    b.on(path, Answer::reset());
    let response = mux.get(path).await;
    assert_eq!(response.status, 502);
    assert_eq!(
        response.missing(),
        ["pdb-a; reason=out-of-service", "pdb-b; reason=unreachable"]
    );
    assert_eq!(queries(&a), [""; 0]);
}

#[tokio::test]
async fn r228_an_owner_out_of_service_gives_way_to_the_next_holder() {
    let path = "/pdb/query/v4/catalogs/n";
    let (a, b) = (backend(running()).await, backend(running()).await);
    a.fresh(&[("n", "2024-05-01T10:00:00Z")])
        .on(path, r#"{"of":"a"}"#);
    b.fresh(&[("n", "2024-05-02T10:00:00Z")])
        .on(path, r#"{"of":"b"}"#);
    let mux = probing(&[&a, &b]).await;
    assert_eq!(mux.get(path).await.ok(), r#"{"of":"b"}"#);
    take_down(&mux, 1, &b, starting()).await;
    assert_eq!(mux.get(path).await.ok(), r#"{"of":"a"}"#);
    // Where a holder says that there is none, nobody out of service is waited for.
    a.on(path, Answer::status(404, "no catalog"));
    assert_eq!(mux.get(path).await.status, 404);
    assert_eq!(queries(&b), [path]);
}

#[tokio::test]
async fn r230_a_node_that_nobody_in_service_has_is_asked_for_of_the_others_at_last() {
    let path = "/pdb/query/v4/nodes/n";
    for strategy in [Strategy::Freshness, Strategy::Static] {
        let (a, b) = (backend(running()).await, backend(running()).await);
        let mux = probing_with(&[&a, &b], |config| config.merge = strategy).await;
        take_down(&mux, 0, &a, starting()).await;
        a.on(path, r#"{"of":"a"}"#);
        b.on(path, r#"{"of":"b"}"#);
        assert_eq!(mux.get(path).await.ok(), r#"{"of":"b"}"#);
        assert_eq!(queries(&a), [""; 0]);
        b.on(path, Answer::status(404, "unknown"));
        assert_eq!(mux.get(path).await.ok(), r#"{"of":"a"}"#);
        a.on(path, Answer::reset());
        assert_eq!(mux.get(path).await.text(), "unknown");
        assert_eq!(
            b.targets().iter().any(|t| t == FRESHNESS),
            strategy == Strategy::Freshness
        );
    }
}

#[tokio::test]
async fn r103_a_report_that_only_a_skipped_backend_may_have_is_not_called_unknown() {
    let (a, b, mux) = with_b_down().await;
    let path = "/pdb/query/v4/reports/abc/logs";
    a.on(path, "[1]");
    assert_eq!(mux.get(path).await.ok(), "[1]");
    a.on(path, Answer::status(404, "no report"));
    let response = mux.get(path).await;
    assert_eq!(response.status, 502);
    assert!(response.missing().contains(&"pdb-b; reason=out-of-service"));
    assert_eq!(queries(&b), [""; 0]);
}

#[tokio::test]
async fn probing_ends_with_the_daemon() {
    let a = backend(Answer::hung()).await;
    let mux = probing_with(&[&a], |config| {
        config.health_probe_timeout = Duration::from_secs(30);
    })
    .await;
    a.until_seen(1).await;
    mux.stop();
    mux.until_stopped().await;
    a.until_hung_up_on().await;
}
