//! The sample over HTTP: what stands on the wire, and what stopping it does.

use std::io;
use std::net::SocketAddr;

use pdbmux_samples::{Entity, Estate, Server, serve};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const ANY_PORT: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

async fn start(version: &str) -> io::Result<Server> {
    let nodes = (0..400).map(|i| {
        let certname = format!("node-{i}.example.org");
        json!({"certname": certname, "report_timestamp": "2026-11-13T00:01:00.014Z"})
    });
    let estate = Estate::new(version).with(Entity::Nodes, nodes);
    serve(estate, ANY_PORT).await
}

/// Sends a request as it stands and reads to the end of the connection.
async fn raw(server: &Server, request: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(server.address()).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

async fn ask(server: &Server, line: &str, headers: &str, body: &str) -> (String, String) {
    let length = body.len();
    let request = format!(
        "{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    );
    match raw(server, &request).await {
        Ok(answer) => {
            let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
            (head.to_lowercase(), body.to_owned())
        }
        Err(error) => (error.to_string(), String::new()),
    }
}

#[tokio::test]
async fn answers_have_the_status_and_headers_of_puppetdb() {
    let server = start("8.15.0").await.unwrap();
    let json = "application/json;charset=utf-8";
    let text = "text/plain;charset=utf-8";
    for (line, headers, status, media, body) in [
        (
            "GET /pdb/query/v4/nodes?limit=1",
            "",
            200,
            json,
            "[{\"deactivated\":null,",
        ),
        ("GET /pdb/query/v4/nodes", "Accept: */*\r\n", 200, json, ""),
        (
            "GET /pdb/query/v4/nodes",
            "Accept: text/html\r\n",
            406,
            json,
            "{\"msg\":\"accept header must",
        ),
        (
            "GET /pdb/query/v4/nodes",
            "Accept: application/json;q=0.9\r\n",
            406,
            json,
            "",
        ),
        (
            "GET /pdb/query/v4/nodes?foo=1",
            "",
            400,
            text,
            "Unsupported query parameter 'foo'",
        ),
        (
            "GET /pdb/query/v4/nodes?limit=0",
            "",
            400,
            text,
            "Illegal value '0' for :limit",
        ),
        ("GET /pdb/query/v4/nodes?limit=1&limit=2", "", 500, text, ""),
        (
            "GET /pdb/query/v4/nodes/nope",
            "",
            404,
            json,
            "{\n  \"error\" : \"No information is known about node nope\"\n}",
        ),
        (
            "GET /pdb/query/v4/nope",
            "",
            404,
            "text/html;charset=utf-8",
            "Not Found",
        ),
        (
            "GET /pdb/query/v4/",
            "",
            404,
            "text/html;charset=utf-8",
            "Not Found",
        ),
        ("GET /nope", "", 404, "text/html;charset=utf-8", ""),
        ("HEAD /pdb/query/v4/nodes", "", 400, text, ""),
        (
            "PUT /pdb/query/v4/nodes",
            "",
            400,
            text,
            "PuppetDB queries must be made via GET/POST",
        ),
        (
            "POST /pdb/query/v4/nodes",
            "Content-Type: text/plain\r\n",
            415,
            json,
            "",
        ),
        ("POST /pdb/query/v4/nodes?limit=1", "", 500, text, ""),
        (
            "GET /pdb/meta/v1/version",
            "",
            200,
            json,
            "{\n  \"version\" : \"8.15.0\"\n}",
        ),
        (
            "DELETE /pdb/meta/v1/version",
            "",
            200,
            json,
            "{\n  \"version\"",
        ),
        (
            "GET /pdb/meta/v1/version?pretty=true",
            "",
            400,
            text,
            "Unsupported query parameter 'pretty'",
        ),
        (
            "GET /pdb/meta/v1/server-time",
            "",
            200,
            json,
            "{\n  \"server_time\" : \"2",
        ),
        (
            "GET /status/v1/services",
            "",
            200,
            json,
            "{\"status-service\":{",
        ),
        (
            "GET /status/v1/services/puppetdb-status",
            "",
            200,
            json,
            "{",
        ),
        ("GET /status/v1/services/nope", "", 404, json, "{"),
        ("GET /status/v1/simple", "", 200, text, "running"),
        (
            "GET /metrics/v2/read/puppetlabs.puppetdb.population%3Aname%3Dnum-nodes",
            "",
            200,
            json,
            "{\"value\":{\"Value\":400},",
        ),
    ] {
        let (head, answer) = ask(&server, line, headers, "").await;
        assert!(
            head.starts_with(&format!("http/1.1 {status} ")),
            "{line}: {head}"
        );
        assert!(
            head.contains(&format!("\r\ncontent-type: {media}")),
            "{line}: {head}"
        );
        assert!(answer.starts_with(body), "{line}: {answer}");
        assert!(!line.starts_with("HEAD") || answer.is_empty(), "{answer}");
    }
}

#[tokio::test]
async fn an_unknown_path_redirects_before_8_6() {
    let server = start("7.12.1").await.unwrap();
    let (head, body) = ask(&server, "GET /pdb/query/v4/nope", "", "").await;
    assert!(head.starts_with("http/1.1 302 "), "{head}");
    assert!(
        head.contains("\r\nlocation: /pdb/query/v4/nope/dashboard/index.html"),
        "{head}"
    );
    assert_eq!(body, "");
}

#[tokio::test]
async fn small_answers_tell_their_length_and_large_ones_are_chunked() {
    let server = start("8.15.0").await.unwrap();
    let (head, _) = ask(&server, "GET /pdb/query/v4/nodes?limit=2", "", "").await;
    assert!(head.contains("\r\ncontent-length: "), "{head}");
    let (head, body) = ask(&server, "GET /pdb/query/v4/nodes", "", "").await;
    assert!(head.contains("\r\ntransfer-encoding: chunked"), "{head}");
    assert!(body.ends_with("\r\n0\r\n\r\n"));
}

#[tokio::test]
async fn the_total_comes_only_when_asked_for() {
    let server = start("8.15.0").await.unwrap();
    let (head, _) = ask(
        &server,
        "GET /pdb/query/v4/nodes?limit=2&include_total=true",
        "",
        "",
    )
    .await;
    assert!(head.contains("\r\nx-records: 400"), "{head}");
    let (head, _) = ask(&server, "GET /pdb/query/v4/nodes?limit=2", "", "").await;
    assert!(!head.contains("x-records"), "{head}");
}

#[tokio::test]
async fn a_query_may_come_in_the_body_of_a_post() {
    let server = start("8.15.0").await.unwrap();
    let body = r#"{"query": ["extract", ["certname"], ["~", "certname", "-39"]], "limit": 1}"#;
    let media = "Content-Type: application/json; charset=utf-8\r\n";
    let (_, answer) = ask(&server, "POST /pdb/query/v4/nodes", media, body).await;
    assert_eq!(answer, r#"[{"certname":"node-39.example.org"}]"#);
}

#[tokio::test]
async fn stopping_cuts_connections_and_frees_the_port_until_the_restart() {
    let mut server = start("8.15.0").await.unwrap();
    let address = server.address();
    let mut open = TcpStream::connect(address).await.unwrap();
    let request = b"GET /pdb/meta/v1/version HTTP/1.1\r\nHost: x\r\n\r\n";
    open.write_all(request).await.unwrap();
    let mut first = [0; 8];
    open.read_exact(&mut first).await.unwrap();

    server.stop().await;
    assert!(!server.is_running());
    let mut rest = Vec::new();
    // Whatever was under way, the connection ends.
    let _ = open.read_to_end(&mut rest).await;
    let refused = TcpStream::connect(address).await.unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    server.stop().await;

    server.restart().await.unwrap();
    assert_eq!((server.address(), server.is_running()), (address, true));
    let (head, _) = ask(&server, "GET /pdb/meta/v1/version", "", "").await;
    assert!(head.starts_with("http/1.1 200 "), "{head}");
    server.restart().await.unwrap();
}

#[tokio::test]
async fn a_port_that_is_taken_is_an_error() {
    let server = start("8.15.0").await.unwrap();
    let taken = serve(Estate::new("8.15.0"), server.address())
        .await
        .unwrap_err();
    assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
}
