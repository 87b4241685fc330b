//! The answer cache (R202-R227, ruling 14).

mod failing;
mod flights;
mod status;

use std::time::Duration;

use pdbmux::config::Config;

use crate::client::{Response, in_time};
use crate::facts::fact;
use crate::harness::Pdbmux;
use crate::stub::{Answer, Stub, nodes_body};

const NODES: &str = "/pdb/query/v4/nodes";
const FACTS: &str = "/pdb/query/v4/facts";
const NAMES: &str = "/pdb/query/v4/fact-names";
const OLD: &str = "2024-05-01T10:00:00.000Z";
const NEW: &str = "2024-05-02T10:00:00.000Z";

/// So short that an entry is past its time when it is looked for.
const GONE_AT_ONCE: Duration = Duration::from_nanos(1);

/// A pdbmux whose entries are fresh for as long as any test takes.
async fn caching(stubs: &[&Stub]) -> Pdbmux {
    with_ttl(stubs, Duration::from_hours(1)).await
}

async fn with_ttl(stubs: &[&Stub], ttl: Duration) -> Pdbmux {
    Pdbmux::with(stubs, |config| config.facts_ttl = ttl).await
}

/// Both hold `n`, which is newer in the second; the first holds `m` too.
async fn pair() -> (Stub, Stub) {
    let (a, b) = (Stub::start().await, Stub::start().await);
    for (stub, nodes, name) in [
        (&a, &[("m", OLD), ("n", OLD)][..], "a"),
        (&b, &[("n", NEW)], "b"),
    ] {
        let facts: Vec<_> = nodes
            .iter()
            .map(|(node, _)| fact(node, "os", name))
            .collect();
        let facts = format!("[{}]", facts.join(","));
        stub.fresh(nodes)
            .on(NODES, nodes_body(nodes))
            .on(FACTS, &*facts)
            .on("/pdb/query/v4/facts/os", &*facts)
            .on("/pdb/query/v4/facts/os/a", &*facts)
            .on(NAMES, r#"["os"]"#);
    }
    (a, b)
}

/// `X-Cache` and `Age`.
fn cache(response: &Response) -> (Option<&str>, Option<&str>) {
    (response.header("x-cache"), response.header("age"))
}

const MISS: (Option<&str>, Option<&str>) = (Some("miss"), Some("0"));

#[track_caller]
fn assert_hit(response: &Response) {
    assert_eq!(response.header("x-cache"), Some("hit"), "{response:#?}");
    assert!(response.header("age").is_some());
}

#[tokio::test]
async fn r202_r220_r221_a_second_request_is_answered_from_memory() {
    let (a, b) = pair().await;
    let mux = caching(&[&a, &b]).await;
    for path in [
        NODES,
        FACTS,
        "/pdb/query/v4/facts/os",
        "/pdb/query/v4/facts/os/a",
        "/pdb/query/v4/facts/pdbmux_source",
        NAMES,
    ] {
        let asked = (a.asked().len(), b.asked().len());
        let first = mux.get(path).await;
        assert_eq!(cache(&first), MISS, "{path}");
        let second = mux.get(path).await;
        assert_hit(&second);
        // R223: with the source fact, from where it was taken.
        assert_eq!(second.ok(), first.ok());
        for header in ["content-type", "x-backends", "x-records"] {
            assert_eq!(second.header(header), first.header(header), "{header}");
        }
        assert_eq!(
            (a.asked().len(), b.asked().len()),
            (asked.0 + 1, asked.1 + 1)
        );
    }
}

#[tokio::test]
async fn r221_age_counts_whole_seconds_since_storing() {
    let (a, b) = pair().await;
    let mux = caching(&[&a, &b]).await;
    mux.get(NODES).await;
    let aged = in_time(async {
        loop {
            let hit = mux.get(NODES).await;
            assert_hit(&hit);
            if hit.header("age") != Some("0") {
                return hit;
            }
        }
    })
    .await;
    assert_eq!(aged.header("age"), Some("1"));
}

#[tokio::test]
async fn r203_r222_everything_else_is_asked_for_every_time_and_says_nothing_of_a_cache() {
    let (a, b) = pair().await;
    let count = r#"["extract",[["function","count"]]]"#;
    for stub in [&a, &b] {
        stub.otherwise("{}")
            .on("/pdb/query/v4/reports", "[]")
            .on("/pdb/query/v4/environments", "[]")
            .on("/pdb/meta/v1/version", r#"{"version":"8.0.0"}"#)
            .makes(NODES, |seen| match seen.param("query") {
                Some(_) => Answer::json(r#"[{"count":1}]"#),
                None => Answer::json("[]"),
            });
    }
    let mux = caching(&[&a, &b]).await;
    let counting = crate::harness::target(NODES, &[("query", count)]);
    for target in [
        &*counting,
        "/pdb/query/v4/reports",
        "/pdb/query/v4/environments",
        "/pdb/query/v4/factsets/n",
        "/pdb/meta/v1/version",
        "/pdb/query/v4/nodes?explain=analyze",
    ] {
        let asked = || a.asked().len() + b.asked().len();
        let mut before = asked();
        for _ in 0..2 {
            let response = mux.get(target).await;
            response.ok();
            assert_eq!(cache(&response), (None, None), "{target}");
            assert!(asked() > before, "{target}");
            before = asked();
        }
    }
}

#[tokio::test]
async fn r205_r224_what_decides_the_answer_tells_entries_apart_and_nothing_else_does() {
    let (a, b) = pair().await;
    for stub in [&a, &b] {
        stub.on(FACTS, "[]").on(NODES, "[]");
    }
    let mux = caching(&[&a, &b]).await;
    let is_hit = async |target: &str| mux.get(target).await.header("x-cache") == Some("hit");
    assert!(!is_hit("/pdb/query/v4/nodes?limit=1&offset=0").await);
    assert!(is_hit("/pdb/query/v4/nodes?offset=0&limit=1").await);
    assert!(!is_hit("/pdb/query/v4/nodes?limit=2&offset=0").await);
    assert!(!is_hit(NODES).await);
    assert!(!is_hit("/pdb/query/v4/nodes?pretty=true").await);
    assert!(is_hit("/pdb/query/v4/nodes?pretty=true").await);
    assert!(!is_hit(FACTS).await);
    let named = [("query", r#"["=","name","os"]"#)];
    assert!(!is_hit(&crate::harness::target(FACTS, &named)).await);
}

#[tokio::test]
async fn r225_all_values_and_pages_of_the_source_fact_are_cut_from_one_entry() {
    let (a, b) = pair().await;
    let mux = caching(&[&a, &b]).await;
    let source = "/pdb/query/v4/facts/pdbmux_source";
    let certnames = async |target: String| {
        let response = mux.get(&target).await;
        let records = response.json();
        let certname = |record: &serde_json::Value| record["certname"].as_str().unwrap().to_owned();
        let shown: Vec<_> = records.as_array().unwrap().iter().map(certname).collect();
        (shown.join(","), response)
    };
    let (shown, first) = certnames(format!("{source}/pdb-b")).await;
    assert_eq!((&*shown, cache(&first)), ("n", MISS));
    for (target, expected, total) in [
        (source.to_owned(), "m,n", None),
        (format!("{source}/pdb-a"), "m", None),
        (format!("{source}/pdb-b?pretty=true"), "n", None),
        (
            format!("{source}?offset=1&limit=1&include_total=true"),
            "n",
            Some("2"),
        ),
        (format!("{source}/pdb-a?include_total=true"), "m", Some("1")),
    ] {
        let (shown, response) = certnames(target).await;
        assert_hit(&response);
        assert_eq!((&*shown, response.header("x-records")), (expected, total));
        assert_eq!(response.backends(), Some("2/2"));
    }
    assert_eq!(
        (a.asked(), b.asked()),
        (vec![FACTS.to_owned()], vec![FACTS.to_owned()])
    );
    // R062, R220: a value that names no backend needs none.
    let none = mux.get(&format!("{source}/nobody")).await;
    assert_eq!((none.ok(), cache(&none)), ("[]", MISS));
}

#[tokio::test]
async fn r209_turned_off_it_is_not_there() {
    let (a, b) = pair().await;
    let mux = with_ttl(&[&a, &b], Duration::ZERO).await;
    for _ in 0..2 {
        let response = mux.get(NODES).await;
        response.ok();
        assert_eq!(cache(&response), (None, None));
    }
    assert_eq!((a.asked().len(), b.asked().len()), (2, 2));
    let health = mux.get("/healthz").await.json();
    let expected = serde_json::json!({
        "backend": "none", "ttl": "0s", "entries": 0, "stale_entries": 0, "bytes": 0,
        "serving_stale": false, "stale_served": 0, "last_stale_served": null,
    });
    assert_eq!(health["cache"], expected);
}

#[tokio::test]
async fn r210_r212_past_its_time_an_entry_does_not_stand_in_for_a_backend_that_answers() {
    let (a, b) = pair().await;
    let mux = with_ttl(&[&a, &b], GONE_AT_ONCE).await;
    mux.get(NAMES).await.ok();
    a.on(NAMES, r#"["new"]"#);
    let response = mux.get(NAMES).await;
    assert_eq!(response.ok(), r#"["new","os","pdbmux_source"]"#);
    assert_eq!(cache(&response), MISS);
}

#[tokio::test]
async fn r214_r216_r295_the_budget_counts_bodies_and_what_is_longer_is_served_but_not_stored() {
    let (a, b) = pair().await;
    let mux = caching(&[&a, &b]).await;
    let long = mux.get(NODES).await.ok().to_owned();
    let budget = |bytes| {
        move |config: &mut Config| {
            config.facts_ttl = Duration::from_hours(1);
            config.facts_cache_bytes = bytes;
        }
    };
    for (bytes, second) in [(long.len(), "hit"), (long.len() - 1, "miss")] {
        let mux = Pdbmux::with(&[&a, &b], budget(bytes)).await;
        assert_eq!(mux.get(NODES).await.ok(), long);
        let again = mux.get(NODES).await;
        assert_eq!(
            (again.ok(), again.header("x-cache")),
            (&*long, Some(second))
        );
        let held = mux.get("/healthz").await.json()["cache"]["bytes"].clone();
        assert_eq!(held, if second == "hit" { long.len() } else { 0 });
    }
}
