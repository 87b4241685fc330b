//! What is too long for a request line goes upstream by POST.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use serde_json::{Value, json};

use crate::harness::{Pdbmux, target};
use crate::stub::{Answer, FRESHNESS, Seen, Stub};

/// A query of so many certnames that no PuppetDB takes it in a URL.
fn long_query() -> String {
    let names: Vec<_> = (0..500)
        .map(|at| format!("node-{at:03}.example.com"))
        .collect();
    json!(["in", "certname", ["array", names]]).to_string()
}

fn body(seen: &Seen) -> Value {
    serde_json::from_str(&seen.body).unwrap()
}

#[tokio::test]
async fn a_long_question_reaches_every_backend_by_post_as_it_would_by_get() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    a.fresh(&[])
        .otherwise(Answer::counted(1, r#"[{"certname":"x"}]"#));
    b.fresh(&[])
        .otherwise(Answer::counted(2, r#"[{"certname":"y"}]"#));
    let mux = Pdbmux::start(&[&a, &b]).await;
    let query = long_query();
    let order = r#"[{"field":"certname","order":"desc"}]"#;
    let parameters = [
        ("query", &*query),
        ("order_by", order),
        ("limit", "1"),
        ("offset", "1"),
        ("include_total", "true"),
        ("origin", "a test"),
    ];
    let response = mux.ask("/pdb/query/v4/nodes", &parameters).await;
    assert!(response.ok().contains(r#""certname":"x""#));
    assert_eq!(response.header("x-records"), Some("3"));
    for stub in [&a, &b] {
        let seen = stub.only();
        assert_eq!(
            (&*seen.method, &*seen.target),
            ("POST", "/pdb/query/v4/nodes")
        );
        let expected = json!({
            "query": query,
            "order_by": [{"field": "certname", "order": "desc"}],
            "limit": 2,
            "include_total": true,
            "origin": "a test",
        });
        assert_eq!(body(&seen), expected);
    }
}

#[tokio::test]
async fn t62_a_post_upstream_carries_pdbmuxs_own_headers_only() {
    let a = Stub::start().await;
    a.otherwise("[]");
    let mux = Pdbmux::start(&[&a]).await;
    mux.ask("/pdb/query/v4/inventory", &[("query", &long_query())])
        .await
        .ok();
    let seen = a.only();
    let mut headers = seen.headers.clone();
    headers.sort();
    let expected = [
        ("accept", "application/json"),
        ("content-length", &*seen.body.len().to_string()),
        ("content-type", "application/json"),
        ("host", &a.address().to_string()),
        ("user-agent", concat!("pdbmux/", env!("CARGO_PKG_VERSION"))),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(headers, expected);
}

#[tokio::test]
async fn a_post_on_a_connection_that_has_just_ended_is_sent_once_more() {
    let a = Stub::start().await;
    a.on(FRESHNESS, "[]");
    a.otherwise(Answer::json("[]"));
    let mux = Pdbmux::start(&[&a]).await;
    let inventory = "/pdb/query/v4/inventory";
    let long = target(inventory, &[("query", &long_query())]);
    // Kept, and closed in the moment in which it is used again.
    mux.get(inventory).await.ok();
    let asked = AtomicUsize::new(0);
    a.makes(inventory, move |_| match asked.fetch_add(1, Relaxed) {
        0 => Answer::default().close(),
        _ => Answer::json("[1]"),
    });
    assert_eq!(mux.get(&long).await.ok(), "[1]");
    let seen = a.seen();
    let methods: Vec<_> = seen.iter().map(|seen| &*seen.method).collect();
    assert_eq!(methods, ["GET", "POST", "POST"]);
    assert_eq!(seen[1].body, seen[2].body);
}

#[tokio::test]
async fn the_base_path_of_a_backend_counts() {
    let a = Stub::start().await;
    a.otherwise("[]");
    let prefix = format!("/{}", "p".repeat(5000));
    let mux = Pdbmux::with(&[&a], |config| {
        config.backends[0].url = format!("{}{prefix}", a.url()).parse().unwrap();
    })
    .await;
    for (length, method) in [(1000, "GET"), (1500, "POST")] {
        let query = "x".repeat(length);
        mux.ask("/pdb/query/v4/inventory", &[("query", &query)])
            .await
            .ok();
        let seen = a.seen().pop().unwrap();
        assert_eq!(seen.method, method);
        assert!(
            seen.target
                .starts_with(&format!("{prefix}/pdb/query/v4/inventory"))
        );
    }
}
