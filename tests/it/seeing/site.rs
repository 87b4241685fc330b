//! What is counted of a whole site: groups, ejected PuppetDBs, requests that are refused, and all of
//! it across a reload.

use std::time::Duration;

use pdbmux::config::{Config, Origins, Partial};

use super::{Scrape, get, request};
use crate::client::{Response, request as plain};
use crate::harness::{Pdbmux, SHORT};
use crate::reload::{File, reload};
use crate::stub::{Answer, Gate, Stub};
use crate::tls::Files;

const NODES: &str = "/pdb/query/v4/nodes";

async fn ask(mux: &Pdbmux, headers: &[(&str, &str)]) -> Response {
    let mut client = mux.connect().await;
    client.send(request(NODES, headers)).await;
    client.response().await
}

#[tokio::test]
async fn questions_are_counted_of_puppetdbs_and_contributions_of_what_they_answer_for() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    a.on(NODES, Answer::status(500, "oh"));
    b.on(NODES, "[]");
    let mux = Pdbmux::with(&[&a, &b], |config| {
        for backend in &mut config.backends {
            backend.access.group = Some("eu".to_owned());
        }
    })
    .await;
    assert_eq!(mux.get(NODES).await.ok(), "[]");
    let scrape = Scrape::of(&mux).await;
    let asked = |backend, outcome| {
        let labels = [("backend", backend), ("outcome", outcome)];
        scrape.sum("pdbmux_backend_requests_total", &labels)
    };
    assert_eq!((asked("pdb-a", "error"), asked("pdb-b", "ok")), (1, 1));
    assert_eq!(scrape.sum("pdbmux_backend_requests_total", &[]), 2);
    let contributed = |backend| {
        let labels = [("backend", backend)];
        scrape.sum("pdbmux_backend_contributed_total", &labels)
    };
    assert_eq!(["eu", "pdb-a", "pdb-b"].map(contributed), [1, 0, 0]);
    for backend in ["pdb-a", "pdb-b"] {
        let labels = [("backend", backend), ("state", "unmonitored")];
        assert_eq!(scrape.sum("pdbmux_backend_state", &labels), 1);
    }
}

#[tokio::test]
async fn who_is_asked_as_much_as_it_may_be_is_busy() {
    let backend = Stub::start().await;
    let path = "/pdb/query/v4/environments";
    // Never silent for long, and never at its end.
    let begun = Answer::promising(1000).send("[");
    let drip = |answer: Answer, _| answer.pause(SHORT / 4).send(" ");
    backend.on(path, (0..100).fold(begun, drip));
    let mux = Pdbmux::with(&[&backend], |config| {
        config.access.max_in_flight = Some(2);
        config.timeout = SHORT;
    })
    .await;
    let mut holding = mux.connect().await;
    holding.send(plain("GET", path)).await;
    holding.until_received("[").await;
    assert_eq!(mux.get(NODES).await.status, 502);
    let scrape = Scrape::of(&mux).await;
    for (name, label) in [
        ("pdbmux_backend_requests_total", "outcome"),
        ("pdbmux_backend_missing_total", "reason"),
    ] {
        assert_eq!(scrape.sum(name, &[(label, "busy")]), 1, "{name}");
    }
    assert_eq!(backend.seen().len(), 1);
}

#[tokio::test]
async fn a_puppetdb_that_requests_leave_out_is_ejected() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    a.on(NODES, "[]");
    b.on(NODES, Answer::reset());
    let mux = Pdbmux::with(&[&a, &b], |config| {
        config.eject_failures = 1;
        config.eject_time = Duration::from_hours(1);
    })
    .await;
    mux.get(NODES).await.ok();
    let scrape = Scrape::of(&mux).await;
    let state = |backend, state| {
        let labels = [("backend", backend), ("state", state)];
        scrape.sum("pdbmux_backend_state", &labels)
    };
    assert_eq!(
        (state("pdb-a", "ejected"), state("pdb-b", "ejected")),
        (0, 1)
    );
    assert_eq!(
        scrape.sum("pdbmux_backend_state", &[("backend", "pdb-b")]),
        1
    );
}

#[tokio::test]
async fn requests_that_are_not_let_in_are_counted_by_why() {
    let (backend, files, gate) = (Stub::start().await, Files::new(), Gate::new());
    backend.on(NODES, Answer::json("[]").behind(&gate));
    let mux = Pdbmux::with(&[&backend], |config| {
        config.door.tokens = Some(files.write("tokens", "hush"));
        config.door.max_in_flight = 1;
        config.door.queue_length = 1;
        config.door.queue_timeout = SHORT;
        config.door.max_per_client = 3;
    })
    .await;
    assert_eq!(ask(&mux, &[]).await.status, 401);
    assert_eq!(
        ask(&mux, &[("X-Authentication", "other")]).await.status,
        401
    );
    let known = [("X-Authentication", "hush")];
    let mut first = mux.connect().await;
    first.send(request(NODES, &known)).await;
    backend.until_seen(1).await;
    // One waits, and is refused once it has for long enough; the other is refused at once.
    let (one, other) = tokio::join!(ask(&mux, &known), ask(&mux, &known));
    assert_eq!((one.status, other.status), (503, 503));
    gate.open();
    first.response().await.ok();
    let scrape = Scrape::of(&mux).await;
    let of = |name: &str, reason| scrape.sum(name, &[("reason", reason)]);
    let denied = ["bare", "unknown", "unlisted"].map(|why| of("pdbmux_denied_total", why));
    assert_eq!(denied, [1, 1, 0]);
    let shed = ["queue_length", "queue_time", "per_client", "memory"];
    let shed = shed.map(|why| of("pdbmux_shed_total", why));
    assert_eq!(shed, [1, 1, 0, 0]);
    let unknown = [("route", "unknown"), ("code", "4xx")];
    assert_eq!(scrape.sum("pdbmux_http_requests_total", &unknown), 2);
}

#[tokio::test]
async fn a_client_that_asks_too_much_at_one_time_is_counted() {
    let (backend, gate) = (Stub::start().await, Gate::new());
    backend.on(NODES, Answer::json("[]").behind(&gate));
    let mux = Pdbmux::with(&[&backend], |config| config.door.max_per_client = 1).await;
    let mut first = mux.connect().await;
    first.send(plain("GET", NODES)).await;
    backend.until_seen(1).await;
    assert_eq!(mux.get(NODES).await.status, 429);
    let scrape = Scrape::of(&mux).await;
    assert_eq!(
        scrape.sum("pdbmux_shed_total", &[("reason", "per_client")]),
        1
    );
    assert_eq!(scrape.sum("pdbmux_shed_total", &[]), 1);
}

#[tokio::test]
async fn partial_answers_are_counted_and_shown_whether_they_are_sent_or_refused() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    a.on(NODES, "[]");
    b.on(NODES, Answer::reset());
    let mux = Pdbmux::with(&[&a, &b], |config| config.partial = Partial::Refuse).await;
    assert_eq!(ask(&mux, &[]).await.status, 503);
    assert_eq!(
        ask(&mux, &[("X-Pdbmux-Partial", "serve")]).await.status,
        200
    );
    let counted = |scrape: &Scrape| scrape.sum("pdbmux_http_requests_total", &[]) == 2;
    let scrape = Scrape::until(&mux, counted).await;
    let of = |name| scrape.sum(name, &[("route", NODES)]);
    assert_eq!(of("pdbmux_partial_answers_total"), 1);
    assert_eq!(of("pdbmux_refused_partial_answers_total"), 1);
    let page = get(&mux, "/").await;
    let rows = page.ok().matches("pdb-b; reason=").count();
    assert_eq!(rows, 2, "{}", page.ok());
}

#[tokio::test]
async fn the_page_shows_slow_requests_where_it_is_said_what_is_slow() {
    let backend = Stub::start().await;
    backend.on(NODES, "[]");
    for (slow_query, shown) in [(Duration::ZERO, 0), (Duration::from_nanos(1), 1)] {
        let mux = Pdbmux::with(&[&backend], |config| config.slow_query = slow_query).await;
        mux.get(NODES).await.ok();
        let counted = |scrape: &Scrape| scrape.sum("pdbmux_http_requests_total", &[]) == 1;
        Scrape::until(&mux, counted).await;
        let page = get(&mux, "/").await;
        assert_eq!(page.ok().matches("pdb-a 200 ").count(), shown);
    }
}

#[tokio::test]
async fn pages_of_other_sites_may_read_the_id() {
    let backend = Stub::start().await;
    backend.on(NODES, "[]");
    let mux = Pdbmux::with(&[&backend], |config: &mut Config| {
        config.request_ids = pdbmux::config::RequestIds::On;
        config.door.cors_origins = Origins::Anybody;
    })
    .await;
    let response = ask(&mux, &[("Origin", "https://board.example")]).await;
    let exposed = response.header("access-control-expose-headers").unwrap();
    assert!(
        exposed.split(", ").any(|it| it == "x-request-id"),
        "{exposed}"
    );
    assert!(response.header("x-request-id").is_some());
}

#[tokio::test]
async fn counts_go_on_across_a_reload_and_new_backends_are_counted() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    for stub in [&a, &b] {
        stub.on(NODES, "[]");
    }
    let (file, mut read) = (
        File::with(
            "listen: 127.0.0.1:0\nadmin_listen: 127.0.0.1:0\nhealth_probe_enabled: false\n\
             facts_ttl: 0s\n",
        ),
        0,
    );
    file.write(&[("one", &a)], "");
    let mux = Pdbmux::of_file(&file.path()).await;
    mux.get(NODES).await.ok();
    file.write(&[("one", &a), ("two", &b)], "");
    reload(&mux, &mut read).await;
    mux.get(NODES).await.ok();
    file.replace("nonsense");
    reload(&mux, &mut read).await;
    let scrape = Scrape::of(&mux).await;
    let contributed = |backend| {
        let labels = [("backend", backend)];
        scrape.sum("pdbmux_backend_contributed_total", &labels)
    };
    assert_eq!((contributed("one"), contributed("two")), (2, 1));
    let reloads = |result| scrape.sum("pdbmux_config_reloads_total", &[("result", result)]);
    assert_eq!((reloads("success"), reloads("failure")), (1, 1));
    assert_eq!(scrape.sum("pdbmux_config_last_reload_successful", &[]), 0);
}
