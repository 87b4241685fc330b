//! `/metrics` and what else the admin listener answers.

use std::collections::BTreeSet;
use std::time::Duration;

use pdbmux_core::settings::Strategy;

use super::{Scrape, get};
use crate::client::request;
use crate::harness::{Pdbmux, SHORT};
use crate::stub::{Answer, Gate, Stub};

const NODES: &str = "/pdb/query/v4/nodes";
const OLD: &str = "2026-01-01T00:00:00.000Z";
const NEW: &str = "2026-01-02T00:00:00.000Z";

#[tokio::test]
async fn what_is_asked_of_each_backend_is_counted_by_what_came_of_it() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    a.on(NODES, "[]").on("/pdb/query/v4/resources", "[]");
    b.on(NODES, Answer::status(500, "no"));
    let mux = Pdbmux::with(&[&a, &b], |config| config.timeout = SHORT).await;
    assert_eq!(mux.get(NODES).await.backends(), Some("1/2"));
    b.on(NODES, Answer::hung());
    assert_eq!(mux.get(NODES).await.backends(), Some("1/2"));
    b.on(NODES, Answer::promising(9).send("[").close());
    assert_eq!(mux.get(NODES).await.backends(), Some("1/2"));
    b.on(NODES, "{");
    assert_eq!(mux.get(NODES).await.backends(), Some("1/2"));
    let scrape = Scrape::of(&mux).await;
    let asked = |backend, outcome| {
        let labels = [("backend", backend), ("outcome", outcome)];
        scrape.sum("pdbmux_backend_requests_total", &labels)
    };
    assert_eq!(asked("pdb-a", "ok"), 4);
    // That a body is damaged is found when it has come whole.
    for outcome in ["error", "timeout", "cut", "ok"] {
        assert_eq!(asked("pdb-b", outcome), 1, "{outcome}");
    }
    let sum = |name, backend| scrape.sum(name, &[("backend", backend)]);
    assert_eq!(sum("pdbmux_backend_requests_total", "pdb-a"), 4);
    assert_eq!(sum("pdbmux_backend_requests_total", "pdb-b"), 4);
    assert_eq!(sum("pdbmux_backend_requests_in_flight", "pdb-b"), 0);
    assert_eq!(sum("pdbmux_backend_received_bytes_total", "pdb-a"), 8);
    assert_eq!(sum("pdbmux_backend_first_byte_seconds_count", "pdb-a"), 4);
    assert_eq!(sum("pdbmux_backend_contributed_total", "pdb-a"), 4);
    assert_eq!(sum("pdbmux_backend_contributed_total", "pdb-b"), 0);
    for reason in ["error", "timeout", "cut", "damaged"] {
        let labels = [("backend", "pdb-b"), ("reason", reason)];
        let missing = scrape.sum("pdbmux_backend_missing_total", &labels);
        assert_eq!(missing, 1, "{reason}");
    }
}

#[tokio::test]
async fn an_answer_that_nobody_waits_for_is_abandoned_and_no_longer_in_flight() {
    let backend = Stub::start().await;
    let gate = Gate::new();
    backend.on(NODES, Answer::json("[]").behind(&gate));
    let mux = Pdbmux::start(&[&backend]).await;
    let mut client = mux.connect().await;
    client.send(request("GET", NODES)).await;
    backend.until_seen(1).await;
    let scrape = Scrape::of(&mux).await;
    assert_eq!(scrape.sum("pdbmux_backend_requests_in_flight", &[]), 1);
    assert_eq!(scrape.sum("pdbmux_http_requests_in_flight", &[]), 1);
    assert_eq!(scrape.sum("pdbmux_client_connections", &[]), 1);
    drop(client);
    let left = |scrape: &Scrape| scrape.sum("pdbmux_client_connections", &[]) == 0;
    let scrape = Scrape::until(&mux, left).await;
    assert_eq!(scrape.sum("pdbmux_backend_requests_in_flight", &[]), 0);
    assert_eq!(scrape.sum("pdbmux_http_requests_in_flight", &[]), 0);
    let abandoned = [("outcome", "abandoned")];
    let abandoned = scrape.sum("pdbmux_backend_requests_total", &abandoned);
    assert_eq!(abandoned, 1);
    let left = [("route", NODES), ("code", "left")];
    assert_eq!(scrape.sum("pdbmux_http_requests_total", &left), 1);
}

#[tokio::test]
async fn answers_are_counted_by_route_method_and_class_and_by_what_the_cache_did() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    a.on(NODES, "[]").otherwise("[]");
    b.on(NODES, Answer::reset()).otherwise("[]");
    let mux = Pdbmux::with(&[&a, &b], |config| {
        config.facts_ttl = Duration::from_secs(30);
    })
    .await;
    mux.get(NODES).await.ok();
    mux.get(NODES).await.ok();
    mux.ask(NODES, &[("query", r#"["extract",[["function","count"]]]"#)])
        .await
        .ok();
    assert_eq!(mux.get("/pdb/query/v4/nodes?limit=x").await.status, 400);
    mux.get("/pdb/query/v4/nodes/one.example/facts").await.ok();
    mux.get("/pdb/query/v4/nodes/two.example/facts/os")
        .await
        .ok();
    let counted = |scrape: &Scrape| scrape.sum("pdbmux_http_requests_total", &[]) == 6;
    let scrape = Scrape::until(&mux, counted).await;
    let requests = |route, code| {
        let labels = [("route", route), ("method", "GET"), ("code", code)];
        scrape.sum("pdbmux_http_requests_total", &labels)
    };
    assert_eq!((requests(NODES, "2xx"), requests(NODES, "4xx")), (3, 1));
    assert_eq!(requests("/pdb/query/v4/nodes/{}/**", "2xx"), 2);
    let cache = |result| {
        let labels = [("route", NODES), ("result", result)];
        scrape.sum("pdbmux_cache_results_total", &labels)
    };
    let seen = ["miss", "hit", "bypass", "stale"].map(cache);
    assert_eq!(seen, [1, 1, 1, 0]);
    let of = |name| scrape.sum(name, &[("route", NODES)]);
    // The stored answer lacks a backend whoever is sent it.
    assert_eq!(of("pdbmux_partial_answers_total"), 3);
    assert_eq!(of("pdbmux_http_request_duration_seconds_count"), 4);
    assert_eq!(of("pdbmux_merge_seconds_count"), 2);
    assert_eq!(scrape.sum("pdbmux_cache_entries", &[]), 1);
    assert_eq!(scrape.sum("pdbmux_cache_bytes", &[]), 2);
}

#[tokio::test]
async fn who_waits_for_anothers_round_is_counted() {
    let backend = Stub::start().await;
    let gate = Gate::new();
    backend.on(NODES, Answer::json("[]").behind(&gate));
    let mux = Pdbmux::with(&[&backend], |config| {
        config.facts_ttl = Duration::from_secs(30);
    })
    .await;
    let (mut first, mut second) = (mux.connect().await, mux.connect().await);
    first.send(request("GET", NODES)).await;
    backend.until_seen(1).await;
    second.send(request("GET", NODES)).await;
    let labels = [("route", NODES)];
    let joined = |scrape: &Scrape| scrape.sum("pdbmux_coalesced_total", &labels) == 1;
    Scrape::until(&mux, joined).await;
    gate.open();
    first.response().await.ok();
    second.response().await.ok();
    assert_eq!(backend.seen().len(), 1);
}

#[tokio::test]
async fn the_estate_is_told_when_the_nodes_were_asked_for_anyway() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    let facts = "/pdb/query/v4/facts";
    a.fresh(&[("one", OLD), ("two", OLD)]).on(facts, "[]");
    b.fresh(&[("two", NEW), ("three", NEW)]).on(facts, "[]");
    let mux = Pdbmux::start(&[&a, &b]).await;
    let before = Scrape::of(&mux).await;
    assert_eq!(before.sum("pdbmux_nodes_seen_timestamp_seconds", &[]), 0);
    assert_eq!(before.sum("pdbmux_backend_nodes", &[]), 0);
    mux.get(facts).await.ok();
    let after = Scrape::of(&mux).await;
    assert!(after.sum("pdbmux_nodes_seen_timestamp_seconds", &[]) > 1_700_000_000);
    let of = |backend| {
        let labels = [("backend", backend)];
        ["nodes", "owned_nodes", "stale_nodes"]
            .map(|what| after.sum(&format!("pdbmux_backend_{what}"), &labels))
    };
    assert_eq!((of("pdb-a"), of("pdb-b")), ([2, 1, 1], [2, 2, 0]));
    assert_eq!(after.sum("pdbmux_nodes", &[]), 3);
    assert_eq!(after.sum("pdbmux_shared_nodes", &[]), 1);
    assert_eq!(a.seen().len(), 2, "nothing is asked for a scrape");
}

#[tokio::test]
async fn a_backend_is_in_one_state_and_the_process_tells_of_itself() {
    let backend = Stub::start().await;
    let mux = Pdbmux::start(&[&backend]).await;
    let scrape = Scrape::of(&mux).await;
    let state = |state| scrape.sum("pdbmux_backend_state", &[("state", state)]);
    assert_eq!((state("unmonitored"), state("healthy")), (1, 0));
    assert_eq!(scrape.sum("pdbmux_backend_state", &[]), 1);
    assert_eq!(
        scrape.sum(
            "pdbmux_build_info",
            &[("version", env!("CARGO_PKG_VERSION"))]
        ),
        1
    );
    assert_eq!(scrape.sum("pdbmux_config_last_reload_successful", &[]), 1);
    for name in [
        "process_start_time_seconds",
        "process_resident_memory_bytes",
        "process_open_fds",
        "process_max_fds",
    ] {
        assert!(scrape.sum(name, &[]) > 0, "{name}");
    }
}

#[tokio::test]
async fn doubts_are_counted_by_their_words() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    let path = "/pdb/query/v4/unheard-of";
    a.on(path, "[]");
    let mux = Pdbmux::with(&[&a, &b], |config| config.merge = Strategy::Exact).await;
    mux.get(path).await.ok();
    let scrape = Scrape::of(&mux).await;
    let labels = [("route", "/pdb/query/v4/**"), ("reason", "one-backend")];
    assert_eq!(scrape.sum("pdbmux_doubtful_answers_total", &labels), 1);
}

#[tokio::test]
async fn hostile_paths_methods_and_names_make_no_series() {
    let backend = Stub::start().await;
    backend.otherwise("[]").fresh(&[]);
    let mux = Pdbmux::start(&[&backend]).await;
    let ask = async |seed: usize| {
        for target in [
            format!("/{seed}"),
            format!("/pdb/query/v4/facts/{seed}/a%22%7D%0A{seed}"),
            format!("/pdb/query/v4/x{seed}/y?z={seed}"),
            format!("/pdb/query/v4/../{seed}"),
            format!("/pdb/cmd/{seed}"),
            format!("/metrics/v2/read/{seed}"),
        ] {
            for method in ["GET", "POST", "BREW", &format!("M{seed}")] {
                let mut client = mux.connect().await;
                client.send(request(method, &target)).await;
                client.response().await;
            }
        }
    };
    ask(0).await;
    let under_way = |scrape: &Scrape| scrape.sum("pdbmux_client_connections", &[]) == 0;
    let names = |scrape: &Scrape| -> BTreeSet<_> {
        let series = scrape.0.iter();
        series
            .map(|series| (series.name.clone(), series.labels.clone()))
            .collect()
    };
    let first = names(&Scrape::until(&mux, under_way).await);
    for seed in 1..20 {
        ask(seed).await;
    }
    let then = Scrape::until(&mux, under_way).await;
    let more: Vec<_> = names(&then).difference(&first).cloned().collect();
    assert_eq!(more, []);
    let requests = then.sum("pdbmux_http_requests_total", &[]);
    assert_eq!(requests, 20 * 6 * 4);
    let other = then.sum("pdbmux_http_requests_total", &[("method", "other")]);
    assert_eq!(other, 20 * 6 * 2);
}

#[tokio::test]
async fn the_text_is_openmetrics_for_who_asks_for_that() {
    let backend = Stub::start().await;
    let mux = Pdbmux::start(&[&backend]).await;
    let plain = get(&mux, "/metrics").await;
    let media_type = plain.header("content-type");
    assert_eq!(media_type, Some("text/plain; version=0.0.4; charset=utf-8"));
    assert!(
        plain
            .ok()
            .contains("# TYPE pdbmux_backend_requests_total counter\n")
    );
    assert!(!plain.ok().contains("# EOF"));
    let mut client = mux.connect_admin().await;
    let accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5";
    let asked = super::request("/metrics", &[("Accept", accept)]);
    client.send(asked).await;
    let open = client.response().await;
    let media_type = open.header("content-type");
    let expected = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(media_type, Some(expected));
    assert!(
        open.ok()
            .contains("# TYPE pdbmux_backend_requests counter\n")
    );
    assert!(open.ok().ends_with("# EOF\n"));
}

#[tokio::test]
async fn the_admin_listener_answers_operators_and_clients_are_not_told_metrics() {
    let backend = Stub::start().await;
    backend.on(NODES, Answer::status(500, "no"));
    let mux = Pdbmux::start(&[&backend]).await;
    for path in ["/livez", "/readyz"] {
        get(&mux, path).await.ok();
    }
    assert_eq!(get(&mux, "/healthz").await.status, 503);
    for path in ["/pdb/query/v4/nodes", "/metrics/v2", "/metric"] {
        assert_eq!(get(&mux, path).await.status, 404, "{path}");
    }
    let mut client = mux.connect_admin().await;
    client.send(request("POST", "/metrics")).await;
    let refused = client.response().await;
    assert_eq!(refused.status, 405);
    assert_eq!(refused.header("allow"), Some("GET, HEAD"));
    assert_eq!(mux.get("/metrics").await.status, 404);
}

#[tokio::test]
async fn a_body_that_is_passed_on_counts_once_it_has_ended() {
    let backend = Stub::start().await;
    let path = "/pdb/query/v4/catalogs";
    let gate = Gate::new();
    backend.on(path, Answer::promising(4).send("[1").hold(&gate).send("2]"));
    let mux = Pdbmux::start(&[&backend]).await;
    let mut client = mux.connect().await;
    client.send(request("GET", path)).await;
    client.until_received("[1").await;
    let scrape = Scrape::of(&mux).await;
    assert_eq!(scrape.sum("pdbmux_backend_requests_in_flight", &[]), 1);
    assert_eq!(scrape.sum("pdbmux_backend_requests_total", &[]), 0);
    assert_eq!(scrape.sum("pdbmux_http_requests_total", &[]), 0);
    gate.open();
    client.response().await.ok();
    let ended = |scrape: &Scrape| scrape.sum("pdbmux_http_requests_total", &[]) == 1;
    let scrape = Scrape::until(&mux, ended).await;
    let ok = [("outcome", "ok")];
    assert_eq!(scrape.sum("pdbmux_backend_requests_total", &ok), 1);
    let bytes = scrape.sum("pdbmux_backend_received_bytes_total", &[]);
    assert_eq!(bytes, 4);
}
