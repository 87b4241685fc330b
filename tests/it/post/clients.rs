//! Requests as clients in the field write them.

use super::{answer, with_body};
use crate::harness::Pdbmux;
use crate::stub::{Seen, Stub};

/// The header lines that a client sends beside `Host` and `Content-Length`.
const GO: &str = "User-Agent: Go-http-client/1.1\r\nContent-Type: application/json; charset=UTF-8\r\nAccept-Encoding: gzip\r\n";
const BOLT: &str = "User-Agent: HTTPClient/1.0 (2.9.0, ruby 3.2.5 (2024-07-26))\r\nAccept: */*\r\nDate: Mon, 30 Nov 2026 04:00:00 GMT\r\nContent-Type: application/json\r\n";
const PROMETHEUS: &str = "User-Agent: Prometheus/3.0.0\r\nAccept: application/json\r\nContent-Type: application/json\r\nAccept-Encoding: gzip\r\n";
const PYTHON: &str = "User-Agent: python-requests/2.32.3\r\nAccept-Encoding: identity\r\naccept: application/json\r\nConnection: keep-alive\r\naccept-charset: utf-8\r\ncontent-type: application/json\r\n";
const TERMINUS: &str = "Accept: application/json\r\nX-Puppet-Version: 8.10.0\r\nUser-Agent: Puppet/8.10.0 Ruby/3.2.5-p208 (x86_64-linux)\r\nAccept-Encoding: gzip;q=1.0,deflate;q=0.6,identity;q=0.3\r\nContent-Type: application/json\r\n";
const HTTPARTY: &str = "Content-Type: application/x-www-form-urlencoded\r\nAccept: */*\r\nUser-Agent: Ruby\r\nAccept-Encoding: gzip;q=1.0,deflate;q=0.6,identity;q=0.3\r\n";

const LATEST: &str = r#"["=","latest_report?",true]"#;

/// What the only backend is asked for such a request.
async fn asked(method: &str, entity: &str, headers: &str, body: &str) -> Seen {
    let a = Stub::start().await;
    a.fresh(&[]).otherwise("[]");
    let mux = Pdbmux::start(&[&a]).await;
    let path = format!("/pdb/query/v4{entity}");
    let response = answer(&mux, with_body(method, &path, headers, body)).await;
    assert_eq!(response.ok(), "[]", "{entity}: {body}");
    // Prometheus takes no other spelling.
    assert_eq!(
        response.header("content-type"),
        Some("application/json;charset=utf-8")
    );
    let seen = a.only();
    let (asked, _) = seen.target.split_once('?').unwrap_or((&seen.target, ""));
    assert_eq!((&*seen.method, asked), ("GET", &*path), "{body}");
    seen
}

#[tokio::test]
async fn posts_of_the_clients_that_only_post_are_answered() {
    let names = r#"["and",["or",["=","name","os"],["=","name","kernel"]]]"#;
    for (client, entity, body, parameters) in [
        (
            GO,
            "",
            r#"{"query":"environments  { }"}"#,
            &[("query", "environments  { }")][..],
        ),
        (
            GO,
            "",
            r#"{"query":"reports  { (certname = 'x') order by end_time desc limit 10}"}"#,
            &[(
                "query",
                "reports  { (certname = 'x') order by end_time desc limit 10}",
            )],
        ),
        (
            GO,
            "/event-counts",
            r#"{"query":["=","latest_report?",true],"summarize_by":"certname"}"#,
            &[("query", LATEST), ("summarize_by", "certname")],
        ),
        (GO, "/nodes", r#"{"query":null}"#, &[]),
        (
            GO,
            "/nodes",
            r#"{"query":["=","catalog_environment","production"]}"#,
            &[("query", r#"["=","catalog_environment","production"]"#)],
        ),
        (
            GO,
            "/facts",
            r#"{"query":["and",["or",["=","name","os"],["=","name","kernel"]]]}"#,
            &[("query", names)],
        ),
        (
            BOLT,
            "",
            r#"{"query":"nodes[certname] { }"}"#,
            &[("query", "nodes[certname] { }")],
        ),
        (
            BOLT,
            "/inventory",
            r#"{"query":["or",["=","certname","a"],["=","certname","b"]]}"#,
            &[(
                "query",
                r#"["or",["=","certname","a"],["=","certname","b"]]"#,
            )],
        ),
        (
            PROMETHEUS,
            "",
            "{\"query\":\"resources { type = \\\"Class\\\" and title \\u003e \\\"a\\\" }\"}",
            &[("query", "resources { type = \"Class\" and title > \"a\" }")],
        ),
        (
            TERMINUS,
            "",
            r#"{"query":["from","nodes",["=","certname","a"]]}"#,
            &[("query", r#"["from","nodes",["=","certname","a"]]"#)],
        ),
        (
            PYTHON,
            "/nodes",
            r#"{"query": "[\"=\", \"certname\", \"a\"]", "include_total": "true"}"#,
            &[
                ("query", r#"["=", "certname", "a"]"#),
                ("include_total", "true"),
            ],
        ),
        (
            PYTHON,
            "",
            r#"{"query": "nodes { certname = \"\u00e9\" }"}"#,
            &[("query", "nodes { certname = \"é\" }")],
        ),
    ] {
        let seen = asked("POST", entity, client, body).await;
        let count = seen.target.split('&').count();
        assert_eq!(count, parameters.len().max(1), "{}", seen.target);
        for (name, value) in parameters {
            assert_eq!(seen.param(name).as_deref(), Some(*value), "{body}");
        }
    }
}

#[tokio::test]
async fn forms_of_puppetdb_ruby_are_answered() {
    for (entity, body, query) in [
        ("/nodes", "query=null", "null"),
        ("/environments", "query=null", "null"),
        (
            "/facts",
            "query=%5B%22%3D%22%2C%22certname%22%2C%22a%22%5D",
            r#"["=","certname","a"]"#,
        ),
        (
            "",
            "query=resources%5Btitle%5D%20%7B%20type%20%3D%20%22Class%22%20%7D",
            r#"resources[title] { type = "Class" }"#,
        ),
    ] {
        let seen = asked("GET", entity, HTTPARTY, body).await;
        assert_eq!(seen.param("query").as_deref(), Some(query), "{body}");
    }
}

#[tokio::test]
async fn a_large_target_mapping_of_bolt_reaches_the_backend_whole() {
    let a = Stub::start().await;
    a.otherwise("[]");
    let mux = Pdbmux::start(&[&a]).await;
    let hundreds = (0..5).map(|hundred| {
        let names = (0..100).map(|at| format!("target-{hundred}{at:02}.example.com"));
        serde_json::json!(["in", "certname", ["array", names.collect::<Vec<_>>()]])
    });
    let mut names = vec![serde_json::json!("or")];
    names.extend(hundreds);
    let query = serde_json::json!(["and", names, ["or", ["=", "path", ["os", "family"]]]]);
    let body = serde_json::json!({ "query": query }).to_string();
    let request = with_body("POST", "/pdb/query/v4/fact-contents", BOLT, &body);
    answer(&mux, request).await.ok();
    let seen = a.only();
    assert_eq!(
        (&*seen.method, &*seen.target),
        ("POST", "/pdb/query/v4/fact-contents")
    );
    let sent: serde_json::Value = serde_json::from_str(&seen.body).unwrap();
    let sent: serde_json::Value = serde_json::from_str(sent["query"].as_str().unwrap()).unwrap();
    assert_eq!(sent, query);
}
