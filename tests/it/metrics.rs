//! `/metrics` over HTTP as far as `meta` leaves it: listings, the old form, other shapes, errors
//! (R248-R262, ruling 10).

use serde_json::json;

use crate::harness::Pdbmux;
use crate::stub::{Answer, Stub};

const LIST: &str = "/metrics/v2/list";
const MBEANS: &str = "/metrics/v1/mbeans";

async fn pair(path: &str, a: impl Into<Answer>, b: impl Into<Answer>) -> (Stub, Stub, Pdbmux) {
    let (first, second) = (Stub::start().await, Stub::start().await);
    first.on(path, a);
    second.on(path, b);
    let mux = Pdbmux::start(&[&first, &second]).await;
    (first, second, mux)
}

fn envelope(value: &str, timestamp: u32) -> String {
    format!(r#"{{"request":{{"type":"x"}},"value":{value},"timestamp":{timestamp},"status":200}}"#)
}

#[tokio::test]
async fn r259_the_trees_of_mbeans_are_united() {
    let a = envelope(r#"{"java.lang":{"type=Memory":{"attr":1}},"a":{}}"#, 9);
    let b = envelope(
        r#"{"java.lang":{"type=Memory":{"attr":2},"type=Runtime":{}}}"#,
        5,
    );
    let (first, second, mux) = pair(LIST, a, b).await;
    let response = mux.get(LIST).await;
    response.ok();
    assert_eq!(
        response.json(),
        json!({
            "request": {"type": "x"},
            "value": {"java.lang": {"type=Memory": {"attr": 1}, "type=Runtime": {}}, "a": {}},
            "timestamp": 9,
            "status": 200,
        })
    );
    assert_eq!(response.backends(), Some("2/2"));
    // T75: deeper than a backend was asked to show, everything is a leaf.
    let shallow = format!("{LIST}?maxDepth=1");
    let (a, b) = (envelope(r#"{"a":"1"}"#, 1), envelope(r#"{"b":"1"}"#, 1));
    first.on(&shallow, a);
    second.on(&shallow, b);
    let response = mux.get(&shallow).await;
    assert_eq!(response.json()["value"], json!({"a": "1", "b": "1"}));
}

#[tokio::test]
async fn r260_the_old_listing_is_united_and_its_mbeans_are_combined_under_their_raw_path() {
    let a = r#"{"java.lang:type=Memory":"/mbeans/java.lang%3Atype%3DMemory"}"#;
    let b = r#"{"x:name=y":"/mbeans/x%3Aname%3Dy","java.lang:type=Memory":"other"}"#;
    let (_a, _b, mux) = pair(MBEANS, a, b).await;
    let united = mux.get(MBEANS).await;
    united.ok();
    assert_eq!(
        united.json(),
        json!({
            "java.lang:type=Memory": "/mbeans/java.lang%3Atype%3DMemory",
            "x:name=y": "/mbeans/x%3Aname%3Dy",
        })
    );

    let path = "/metrics/v1/mbeans/puppetlabs.puppetdb.http%3Aname%3D%2Fpdb%2Fquery.service-time";
    let a = r#"{"Count":1,"Min":5,"Max":5,"Mean":2.0,"RateUnit":"s","Only":1}"#;
    let b = r#"{"Count":2,"Min":3,"Max":4,"Mean":4.0,"RateUnit":"m"}"#;
    let (first, _b, mux) = pair(path, a, b).await;
    let combined = mux.get(path).await;
    combined.ok();
    let expected = json!({"Count": 3, "Min": 3, "Max": 5, "RateUnit": "s", "Only": 1});
    let combined = combined.json();
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(combined[name], *value, "{name}");
    }
    assert_eq!(combined["Mean"].as_f64(), Some(3.0));
    assert_eq!(first.targets(), [path]);
}

#[tokio::test]
async fn r251_to_r255_ruling_10_values_are_combined_by_the_names_in_the_path() {
    for (tail, a, b, expected) in [
        ("java.lang:type=Runtime/Uptime", "5", "7", json!(7)),
        ("java.lang:type=Runtime/uptime", "5", "7", json!(7)),
        ("x:y=z/Min", "5", "7", json!(5)),
        ("x:y=z/Count", "5", "7", json!(12)),
        ("x:y=z/Name", r#""a""#, r#""b""#, json!("a")),
        (
            "puppetlabs.puppetdb.population:name=num-nodes/Value",
            "2",
            "3",
            json!(5),
        ),
        (
            "puppetlabs.puppetdb.population:name=avg-resources-per-node/Value",
            "2",
            "4",
            json!(3),
        ),
        // "Unknown" is not added.
        (
            "puppetlabs.puppetdb.population:name=num-resources/Value",
            "-1",
            "4",
            json!(4),
        ),
    ] {
        let path = format!("/metrics/v2/read/{tail}");
        let (_a, _b, mux) = pair(&path, envelope(a, 1), envelope(b, 1)).await;
        let value = mux.get(&path).await.json()["value"].clone();
        assert_eq!(value.as_f64(), expected.as_f64(), "{tail}");
        assert_eq!(value.as_str(), expected.as_str(), "{tail}");
    }
}

#[tokio::test]
async fn r256_r257_errors_in_envelopes_are_skipped_and_replayed_only_alone() {
    let error = r#"{"error_type":"x","error":"none","status":404}"#;
    let good = envelope(r#"{"a":{}}"#, 1);
    for path in [LIST, "/metrics/v2/read/x:y=z"] {
        let (_a, b, mux) = pair(path, error, &good).await;
        let response = mux.get(path).await;
        assert_eq!(response.ok(), good);
        assert_eq!(response.backends(), Some("1/2"));
        b.on(path, r#"{"error":"other","status":500}"#);
        assert_eq!(mux.get(path).await.ok(), error);
    }
}

#[tokio::test]
async fn r262_flat_refusals_are_replayed_by_the_common_rule() {
    for path in [
        LIST,
        MBEANS,
        "/metrics/v1/mbeans/x",
        "/metrics/v2/read/x",
        "/metrics/v2",
    ] {
        let words = "Forbidden request: /metrics (method :get)";
        let (a, b, mux) = pair(
            path,
            Answer::with(403, &[], words),
            Answer::with(403, &[], "other"),
        )
        .await;
        let response = mux.get(path).await;
        assert_eq!((response.status, response.text()), (403, words), "{path}");
        // T57.
        assert_eq!(
            response.header("content-type"),
            Some("text/plain;charset=utf-8")
        );
        b.on(path, Answer::status(404, "no"));
        assert_eq!(mux.get(path).await.status, 502);
        a.on(path, Answer::json(envelope("{}", 1)));
        mux.get(path).await.ok();
    }
}

#[tokio::test]
async fn r008_a_body_that_is_not_what_the_route_promises_is_damaged() {
    for (path, good) in [
        (LIST, envelope("{}", 1)),
        (MBEANS, r#"{"a":"b"}"#.to_owned()),
        ("/metrics/v1/mbeans/x", r#"{"Count":1}"#.to_owned()),
    ] {
        for bad in ["[]", "<html>", r#"{"a":1"#] {
            let (_a, _b, mux) = pair(path, bad, &good).await;
            let response = mux.get(path).await;
            assert_eq!(response.ok(), good);
            assert_eq!(response.missing(), ["pdb-a; reason=damaged"]);
        }
    }
}

#[tokio::test]
async fn t75_other_shapes_pass_through_from_one_backend() {
    let script = |body: &str| Answer::with(200, &[("Content-Type", "text/javascript")], body);
    for path in [LIST, "/metrics/v2/read/x:y=z"] {
        let target = format!("{path}?callback=show");
        let (_a, b, mux) = pair(&target, script("show({});"), script("show([]);")).await;
        let response = mux.get(&target).await;
        assert_eq!(response.ok(), "show({});");
        assert_eq!(response.header("content-type"), Some("text/javascript"));
        assert_eq!(b.targets(), [""; 0]);

        let target = format!("{path}?mimeType=text/plain");
        let plain = Answer::with(200, &[("Content-Type", "text/plain")], "{\"value\": 1}");
        let (_a, b, mux) = pair(&target, Answer::reset(), plain).await;
        let response = mux.get(&target).await;
        assert_eq!(response.ok(), "{\"value\": 1}");
        assert_eq!(response.header("content-type"), Some("text/plain"));
        assert_eq!(b.targets(), [target]);
    }
}
