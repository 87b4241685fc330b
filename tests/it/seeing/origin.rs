//! `backend_origin`: what backends are told for their own log of queries, once they have told a version
//! that takes it.

use std::time::Duration;

use pdbmux::config::{Config, RequestIds};

use super::{Scrape, get, request};
use crate::client::{Response, in_time};
use crate::harness::Pdbmux;
use crate::stub::{Answer, Stub};

const NODES: &str = "/pdb/query/v4/nodes";
const VERSION: &str = "/pdb/meta/v1/version";
const PROBE: &str = "/status/v1/services";

fn version(version: &str) -> Answer {
    Answer::json(format!("{{\"version\":{version:?}}}"))
}

/// A backend of this version that has no records.
async fn backend(told: &str) -> Stub {
    let stub = Stub::start().await;
    stub.on(VERSION, version(told)).otherwise("[]").fresh(&[]);
    stub
}

/// Tells backends whom they are asked for; the versions of all of them are known.
async fn telling(stubs: &[&Stub], change: impl FnOnce(&mut Config)) -> Pdbmux {
    let mux = Pdbmux::with(stubs, |config| {
        config.access.origin = Some(true);
        config.request_ids = RequestIds::On;
        change(config);
    })
    .await;
    let all = i64::try_from(stubs.len()).unwrap();
    Scrape::until(&mux, |scrape| scrape.sum("pdbmux_backend_info", &[]) == all).await;
    mux
}

async fn ask(mux: &Pdbmux, target: &str, id: &str) -> Response {
    let mut client = mux.connect().await;
    client.send(request(target, &[("X-Request-Id", id)])).await;
    client.response().await
}

/// What a backend was told with each query.
fn origins(stub: &Stub) -> Vec<Option<String>> {
    let queries = stub.seen().into_iter();
    let queries = queries.filter(|seen| seen.target.starts_with("/pdb/query"));
    queries.map(|seen| seen.param("origin")).collect()
}

fn told(origins: &[&str]) -> Vec<Option<String>> {
    origins.iter().map(|it| Some((*it).to_owned())).collect()
}

#[tokio::test]
async fn t68_only_who_is_known_to_take_it_is_told_for_which_request_it_is_asked() {
    let (new, old) = (backend("7.6.0").await, backend("7.5.1").await);
    let mux = telling(&[&new, &old], |_| {}).await;
    ask(&mux, NODES, "client-7f").await.ok();
    assert_eq!(origins(&new), told(&["pdbmux:client-7f"]));
    assert_eq!(origins(&old), [None]);
    let of = |backend, version| [("backend", backend), ("version", version)];
    let scrape = Scrape::of(&mux).await;
    for labels in [of("pdb-a", "7.6.0"), of("pdb-b", "7.5.1")] {
        assert_eq!(scrape.sum("pdbmux_backend_info", &labels), 1);
    }
    let page = get(&mux, "/").await;
    for version in ["Version 7.6.0", "Version 7.5.1"] {
        assert!(page.ok().contains(version), "{version}");
    }
    // Asked beside all requests, and once.
    let asked = |stub: &Stub| stub.targets().iter().filter(|it| *it == VERSION).count();
    assert_eq!((asked(&new), asked(&old)), (1, 1));
    assert_eq!(scrape.sum("pdbmux_backend_requests_total", &[]), 2);
}

#[tokio::test]
async fn a_clients_own_origin_goes_first_and_no_other_route_is_told_one() {
    let backend = backend("8.15.0").await;
    let mux = telling(&[&backend], |_| {}).await;
    ask(&mux, "/pdb/query/v4/nodes?origin=board", "one")
        .await
        .ok();
    assert_eq!(origins(&backend), told(&["board"]));
    ask(&mux, VERSION, "two").await.ok();
    assert_eq!(backend.targets().last().unwrap(), VERSION);
}

#[tokio::test]
async fn a_question_that_goes_by_post_tells_it_in_its_body() {
    let backend = backend("8.15.0").await;
    let mux = telling(&[&backend], |_| {}).await;
    let long = format!(r#"["=","certname","{}"]"#, "x".repeat(7_000));
    let target = crate::harness::target(NODES, &[("query", &long)]);
    ask(&mux, &target, "one").await.ok();
    let seen = backend.seen().pop().unwrap();
    assert_eq!((&*seen.method, &*seen.target), ("POST", NODES));
    assert!(
        seen.body.contains(r#""origin":"pdbmux:one""#),
        "{}",
        seen.body
    );
}

#[tokio::test]
async fn requests_without_ids_are_told_to_be_pdbmuxs() {
    let backend = backend("8.15.0").await;
    let mux = telling(&[&backend], |config| config.request_ids = RequestIds::Off).await;
    ask(&mux, NODES, "one").await.ok();
    assert_eq!(origins(&backend), told(&["pdbmux"]));
}

#[tokio::test]
async fn ids_share_entries_of_the_cache() {
    let backend = backend("8.15.0").await;
    let mux = telling(&[&backend], |config| {
        config.facts_ttl = Duration::from_secs(30);
    })
    .await;
    ask(&mux, NODES, "one").await.ok();
    assert_eq!(ask(&mux, NODES, "two").await.header("x-cache"), Some("hit"));
    assert_eq!(origins(&backend), told(&["pdbmux:one"]));
}

#[tokio::test]
async fn each_of_a_group_is_told_by_its_own_version() {
    let (new, old) = (backend("8.15.0").await, backend("7.5.1").await);
    let mux = telling(&[&new, &old], |config| {
        for backend in &mut config.backends {
            backend.access.group = Some("eu".to_owned());
        }
    })
    .await;
    ask(&mux, NODES, "one").await.ok();
    new.on(NODES, Answer::status(503, "starting"));
    ask(&mux, NODES, "two").await.ok();
    assert_eq!(origins(&new), told(&["pdbmux:one", "pdbmux:two"]));
    assert_eq!(origins(&old), [None]);
    let page = get(&mux, "/").await;
    assert!(page.ok().contains("Version 8.15.0, 7.5.1"));
}

#[tokio::test]
async fn a_backend_that_comes_back_as_an_older_one_is_told_nothing_any_more() {
    let stub = backend("8.15.0").await;
    let running = Answer::json(r#"{"puppetdb-status":{"state":"running"}}"#);
    stub.on(PROBE, running.clone());
    let mux = telling(&[&stub], |config| {
        config.health_probe_enabled = true;
        config.health_probe_interval = Duration::from_millis(5);
    })
    .await;
    ask(&mux, NODES, "one").await.ok();
    // Too short to be out of service, and long enough to be replaced.
    stub.on(VERSION, version("7.5.1"))
        .on(PROBE, Answer::reset());
    let known = |scrape: &Scrape, it| scrape.sum("pdbmux_backend_info", &[("version", it)]) == 1;
    in_time(async { while known(&Scrape::of(&mux).await, "8.15.0") {} }).await;
    stub.on(PROBE, running);
    Scrape::until(&mux, |scrape| known(scrape, "7.5.1")).await;
    ask(&mux, NODES, "two").await.ok();
    let origins = origins(&stub);
    assert_eq!(origins.first().unwrap().as_deref(), Some("pdbmux:one"));
    assert_eq!(origins.last().unwrap().as_deref(), None);
}
