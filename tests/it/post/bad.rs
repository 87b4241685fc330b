//! What is wrong with a body is said in one sentence, before any backend is asked.

use super::{FORM, JSON, answer, post, with_body};
use crate::harness::Pdbmux;
use crate::stub::Stub;

const NODES: &str = "/pdb/query/v4/nodes";

#[tokio::test]
async fn a_body_that_is_wrong_is_refused() {
    let a = Stub::start().await;
    let mux = Pdbmux::start(&[&a]).await;
    for (body, sentence) in [
        (
            "query=x",
            "a POST holds its parameters in a JSON object, which this body is not: expected value \
             at line 1 column 1",
        ),
        (
            "[]",
            "a POST holds its parameters in a JSON object, which this body is not: it is JSON of \
             another kind",
        ),
        (
            r#"{"query":["="}"#,
            "a POST holds its parameters in a JSON object, which this body is not: expected `,` or \
             `]` at line 1 column 14",
        ),
        (
            r#"{"order_by":"[{\"field\":\"certname\"}]"}"#,
            "'order_by' takes an array in a body",
        ),
        (
            r#"{"query":{"a":1}}"#,
            "'query' takes an array or text in a body",
        ),
        (
            r#"{"limit":0}"#,
            "limit takes a whole number from 1 to 2147483647, not '0'",
        ),
        (
            r#"{"limit":[1]}"#,
            "limit takes a whole number from 1 to 2147483647, not '[1]'",
        ),
        (
            r#"{"order_by":["certname"]}"#,
            "each item of order_by is an object such as {\"field\": \"certname\"}, not \"certname\"",
        ),
    ] {
        assert_eq!(post(&mux, NODES, body).await.refusal(), sentence, "{body}");
    }
    let form = with_body("GET", NODES, FORM, "query=%zz");
    assert_eq!(
        answer(&mux, form).await.refusal(),
        "the parameter 'query' holds a malformed percent-escape"
    );
    assert_eq!(a.targets(), [""; 0]);
}

#[tokio::test]
async fn a_post_with_parameters_in_its_url_is_refused() {
    let a = Stub::start().await;
    a.fresh(&[]).otherwise("[]");
    let mux = Pdbmux::start(&[&a]).await;
    for path in [
        "nodes",
        "facts/os",
        "event-counts",
        "nodes/n/facts",
        "reports/h/logs",
    ] {
        let target = format!("/pdb/query/v4/{path}?pretty=true");
        let response = post(&mux, &target, "{}").await;
        assert_eq!(
            response.refusal(),
            "a POST takes its parameters from its body, but the URL holds some too"
        );
    }
    assert_eq!(a.targets(), [""; 0]);
    post(&mux, "/pdb/query/v4/nodes?", "{}").await.ok();
}

#[tokio::test]
async fn a_body_of_another_kind_is_415_as_puppetdb_says_it() {
    let a = Stub::start().await;
    a.on(NODES, "[]");
    let mux = Pdbmux::start(&[&a]).await;
    for (headers, message) in [
        (
            FORM,
            "the body of a POST must be application/json, not 'application/x-www-form-urlencoded'",
        ),
        (
            "Content-Type: text/Plain; charset=utf-8\r\n",
            "the body of a POST must be application/json, not 'text/plain'",
        ),
        (
            "Content-Type: application/json-patch\r\n",
            "the body of a POST must be application/json, not 'application/json-patch'",
        ),
        (
            "Content-Type: application/json\r\nContent-Encoding: gzip\r\n",
            "the body comes in the encoding 'gzip', but pdbmux reads plain ones only",
        ),
    ] {
        let response = answer(&mux, with_body("POST", NODES, headers, "{}")).await;
        assert_eq!(
            (response.status, response.header("content-type")),
            (415, Some("application/json;charset=utf-8"))
        );
        let expected = serde_json::json!({"kind": "unsupported-type", "msg": message});
        assert_eq!(response.json(), expected);
    }
    let packed = format!("{FORM}Content-Encoding: deflate\r\n");
    let response = answer(&mux, with_body("GET", NODES, &packed, "limit=1")).await;
    assert_eq!(response.status, 415);
    assert_eq!(a.targets(), [""; 0]);
    for headers in [
        "",
        JSON,
        "Content-Type: application/json; charset=UTF-8\r\n",
        "Content-Type: Application/JSON;charset=iso-8859-1\r\n",
        "Content-Type: application/json\r\nContent-Encoding: identity\r\n",
    ] {
        answer(&mux, with_body("POST", NODES, headers, "{}"))
            .await
            .ok();
    }
}

#[tokio::test]
async fn a_parameter_that_nobody_knows_is_refused_by_the_backends() {
    let a = Stub::start().await;
    let refusal = "Unsupported query parameter 'foo'";
    a.makes(NODES, move |seen| {
        assert_eq!(seen.param("foo").as_deref(), Some(r#"{"a": 1}"#));
        crate::stub::Answer::status(400, refusal)
    });
    let mux = Pdbmux::start(&[&a]).await;
    let response = post(&mux, NODES, r#"{"foo":{"a": 1}}"#).await;
    assert_eq!(response.refusal(), refusal);
}

#[tokio::test]
async fn writes_and_metrics_take_no_query_by_post() {
    let a = Stub::start().await;
    let mux = Pdbmux::start(&[&a]).await;
    for (path, status) in [
        (
            "/pdb/cmd/v1?command=deactivate+node&version=3&certname=n",
            501,
        ),
        ("/pdb/cmd/v1?command=%zz", 501),
        ("/pdb/admin/v1/archive", 501),
        ("/metrics/v2", 405),
        ("/metrics/v2/read", 405),
        ("/pdb/meta/v1/version", 405),
        ("/nosuch", 404),
    ] {
        for headers in [JSON, FORM, "Content-Encoding: gzip\r\n"] {
            let response = answer(&mux, with_body("POST", path, headers, "{}")).await;
            assert_eq!(response.status, status, "{path}");
        }
    }
    assert_eq!(a.targets(), [""; 0]);
}
