//! `/pdb/meta/v1` and `/metrics` (R243-R247, R248-R262 as far as HTTP shows them).

use serde_json::json;

use crate::harness::Pdbmux;
use crate::stub::{Answer, Stub};

const VERSION: &str = "/pdb/meta/v1/version";
const CLOCK: &str = "/pdb/meta/v1/server-time";

async fn pair(path: &str, a: impl Into<Answer>, b: impl Into<Answer>) -> (Stub, Stub, Pdbmux) {
    let (first, second) = (Stub::start().await, Stub::start().await);
    first.on(path, a);
    second.on(path, b);
    let mux = Pdbmux::start(&[&first, &second]).await;
    (first, second, mux)
}

#[tokio::test]
async fn r243_r244_the_lowest_version_is_served() {
    for (a, b, lowest) in [
        ("8.15.0", "8.15.0", "8.15.0"),
        ("7.12.0", "7.9.0", "7.9.0"),
        ("7.9.0", "7.12.0", "7.9.0"),
        ("8.8.1", "8.8.1-SNAPSHOT", "8.8.1-SNAPSHOT"),
    ] {
        let body = |version: &str| json!({"version": version}).to_string();
        let (_a, _b, mux) = pair(VERSION, body(a), body(b)).await;
        let response = mux.get(VERSION).await;
        response.ok();
        assert_eq!(response.json(), json!({"version": lowest}));
        assert_eq!(response.backends(), Some("2/2"));
    }
}

#[tokio::test]
async fn r245_a_body_without_a_version_is_skipped() {
    for body in [
        "{}",
        "[]",
        r#"{"version":null}"#,
        r#"{"version":""}"#,
        "<html>",
    ] {
        let (_a, b, mux) = pair(VERSION, body, r#"{"version":"8.0.0"}"#).await;
        let response = mux.get(VERSION).await;
        response.ok();
        assert_eq!(response.json(), json!({"version": "8.0.0"}));
        assert_eq!(response.missing(), ["pdb-a; reason=damaged"]);
        b.on(VERSION, body);
        assert_eq!(mux.get(VERSION).await.status, 502);
    }
}

#[tokio::test]
async fn r246_the_clock_is_the_first_reachable_backends() {
    let body = |time: &str| json!({"server_time": time}).to_string();
    let (a, _b, mux) = pair(CLOCK, body("1"), body("2")).await;
    assert_eq!(mux.get(CLOCK).await.json(), json!({"server_time": "1"}));
    for trouble in [
        Answer::reset(),
        Answer::status(500, "oh"),
        Answer::json("<html>"),
    ] {
        a.on(CLOCK, trouble);
        assert_eq!(mux.get(CLOCK).await.json(), json!({"server_time": "2"}));
    }
}

#[tokio::test]
async fn r247_meta_is_asked_every_time() {
    let (a, b, mux) = pair(VERSION, r#"{"version":"8.0.0"}"#, r#"{"version":"8.0.0"}"#).await;
    for _ in 0..3 {
        mux.get(VERSION).await.ok();
    }
    assert_eq!((a.seen().len(), b.seen().len()), (3, 3));
}

#[tokio::test]
async fn r248_r250_r258_r261_metrics_are_added_under_their_raw_path() {
    let path = "/metrics/v2/read/puppetlabs.puppetdb.mq:name=a!%2Fb%2Cc/Count";
    let whole = |value: &str, at: u32| {
        format!(r#"{{"request":{{"type":"read"}},"value":{value},"timestamp":{at},"status":200}}"#)
    };
    let (a, _b, mux) = pair(path, whole("2", 5), whole("40", 7)).await;
    let response = mux.get(path).await;
    assert_eq!(
        response.json(),
        json!({"request":{"type":"read"},"value":42,"timestamp":7,"status":200})
    );
    assert_eq!(
        response.header("content-type"),
        Some("application/json;charset=utf-8")
    );
    assert_eq!(a.targets(), [path]);
}

#[tokio::test]
async fn r256_r257_an_error_in_an_envelope_is_skipped_and_replayed_only_alone() {
    let path = "/metrics/v2/read/java.lang:type=Memory";
    let error = r#"{"error_type":"x","error":"no such bean","status":404}"#;
    let good = r#"{"value":1,"timestamp":1,"status":200}"#;
    let (_a, b, mux) = pair(path, error, good).await;
    let response = mux.get(path).await;
    assert_eq!(response.ok(), good);
    assert_eq!(response.backends(), Some("1/2"));
    b.on(path, error);
    assert_eq!(mux.get(path).await.ok(), error);
}

#[tokio::test]
async fn r262_a_flat_403_of_all_is_replayed() {
    let path = "/metrics/v2/read/java.lang:type=Memory";
    let words = "Forbidden request: /metrics/v2 (method :get)";
    let flat = Answer::with(403, &[], words);
    let (_a, _b, mux) = pair(path, flat.clone(), flat).await;
    let response = mux.get(path).await;
    assert_eq!((response.status, response.text()), (403, words));
}
