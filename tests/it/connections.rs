//! The client's side of HTTP: methods, connections, patience, and the end of the daemon.

use std::time::Duration;

use crate::client::{Client, End, in_time, request};
use crate::harness::Pdbmux;
use crate::stub::{Answer, Gate, Stub};

const NODES: &str = "/pdb/query/v4/nodes";
const VERSION: &str = "/pdb/meta/v1/version";

/// A backend of one node, and pdbmux before it.
async fn plain() -> (Stub, Pdbmux) {
    let a = Stub::start().await;
    a.on(NODES, "[]").on(VERSION, r#"{"version":"8.0.0"}"#);
    let mux = Pdbmux::start(&[&a]).await;
    (a, mux)
}

#[tokio::test]
async fn head_is_answered_without_a_body() {
    let (a, mux) = plain().await;
    let mut client = mux.connect().await;
    client.send(request("HEAD", NODES)).await;
    let head = client.head().await;
    assert_eq!(
        (head.status, head.header("allow")),
        (405, Some("GET, POST"))
    );
    // What follows is the next answer: nothing of a body stood between.
    assert_eq!(client.get(NODES).await.ok(), "[]");
    assert_eq!(a.targets(), [NODES]);
}

#[tokio::test]
async fn a_connection_is_used_again_after_every_kind_of_answer() {
    let (a, mux) = plain().await;
    a.on("/pdb/query/v4/environments", Answer::status(500, "oh"));
    let mut client = mux.connect().await;
    for (target, status) in [
        (NODES, 200),
        ("/pdb/query/v4/nodes?limit=x", 400),
        ("/nosuch", 404),
        ("/pdb/cmd/v1", 501),
        ("/pdb/query/v4/environments", 500),
        (VERSION, 200),
    ] {
        assert_eq!(client.get(target).await.status, status);
    }
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_their_order() {
    let (a, mux) = plain().await;
    let gate = Gate::new();
    a.on(NODES, Answer::json("[]").behind(&gate));
    let mut client = mux.connect().await;
    client
        .send(
            [
                request("GET", NODES),
                request("GET", VERSION),
                request("GET", "/nosuch"),
            ]
            .concat(),
        )
        .await;
    a.until_seen(1).await;
    gate.open();
    assert_eq!(client.response().await.ok(), "[]");
    assert!(client.response().await.ok().contains("8.0.0"));
    assert_eq!(client.response().await.status, 404);
}

#[tokio::test]
async fn an_http_1_0_client_is_answered_and_let_go() {
    let (a, mux) = plain().await;
    a.on(
        "/pdb/query/v4/environments",
        Answer::chunked().chunk("[1]").last_chunk(),
    );
    for (path, body) in [(NODES, "[]"), ("/pdb/query/v4/environments", "[1]")] {
        let mut client = mux.connect().await;
        client.send(format!("GET {path} HTTP/1.0\r\n\r\n")).await;
        let response = client.response().await;
        assert_eq!(
            (response.ok(), response.header("transfer-encoding")),
            (body, None)
        );
        assert_eq!(client.until_closed().await, b"");
    }
}

#[tokio::test]
async fn an_absolute_target_is_read_as_its_path() {
    let (a, mux) = plain().await;
    let mut client = mux.connect().await;
    client
        .send("GET http://elsewhere:1234/pdb/query/v4/nodes HTTP/1.1\r\nHost: x\r\n\r\n")
        .await;
    assert_eq!(client.response().await.ok(), "[]");
    assert_eq!(a.only().target, NODES);
}

#[tokio::test]
async fn an_expectation_is_met_or_answered_but_never_waited_for() {
    let (_a, mux) = plain().await;
    let mut client = mux.connect().await;
    client
        .send(format!(
            "GET {NODES} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n\r\n"
        ))
        .await;
    assert_eq!(client.response().await.ok(), "[]");
    let mut client = mux.connect().await;
    client
        .send(format!(
            "PUT {NODES} HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n"
        ))
        .await;
    assert_eq!(client.response().await.status, 405);
}

#[tokio::test]
async fn a_body_that_nobody_reads_is_never_taken_for_a_request() {
    let (a, mux) = plain().await;
    let mut client = mux.connect().await;
    let smuggled = request("GET", VERSION);
    client
        .send(format!(
            "GET {NODES} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{smuggled}",
            smuggled.len()
        ))
        .await;
    assert_eq!(client.response().await.ok(), "[]");
    client.send(request("GET", "/nosuch")).await;
    let rest = client.until_answered_or_closed().await;
    assert!(rest.is_none_or(|response| response.status == 404));
    assert_eq!(a.targets(), [NODES]);
}

#[tokio::test]
async fn what_is_no_http_is_refused_and_let_go() {
    let (a, mux) = plain().await;
    for garbage in [
        "\r\n\r\n\r\nnonsense\r\n\r\n",
        "GET\r\n\r\n",
        "GET /pdb/query/v4/nodes HTTP/9.9\r\n\r\n",
        "GET /a b c HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nbroken header\r\n\r\n",
        "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\u{0}\u{1}\u{fc}\u{3}\u{3}\r\n\r\n",
        "GET /pdb/query/v4/nodes HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    ] {
        let mut client = mux.connect().await;
        client.send(garbage).await;
        let text = String::from_utf8_lossy(&client.until_closed().await).into_owned();
        assert!(
            text.is_empty() || text.starts_with("HTTP/1.1 400 "),
            "{garbage:?}: {text}"
        );
    }
    assert_eq!(a.targets(), [""; 0]);
    assert_eq!(mux.get(NODES).await.ok(), "[]");
}

#[tokio::test]
async fn a_head_above_all_measure_is_refused() {
    let (_a, mux) = plain().await;
    for (head, statuses) in [
        (
            format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(70_000)),
            ["414", "431"],
        ),
        (
            format!("GET {NODES} HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(1 << 20)),
            ["431", "400"],
        ),
        (
            format!("GET {NODES} HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(500)),
            ["431", "400"],
        ),
    ] {
        let mut client = mux.connect().await;
        client.send_while_open(head).await;
        let text = String::from_utf8_lossy(&client.until_closed().await).into_owned();
        let status = text.split(' ').nth(1).unwrap_or("closed");
        assert!(statuses.contains(&status) || status == "closed", "{text}");
    }
}

#[tokio::test]
async fn a_long_query_is_forwarded_whole() {
    let (a, mux) = plain().await;
    let origin = "x".repeat(30_000);
    let response = mux.get(&format!("{NODES}?origin={origin}")).await;
    assert_eq!(response.ok(), "[]");
    let expected = format!(r#"{{"origin":"{origin}"}}"#);
    assert_eq!((a.only().target.as_str(), a.only().body), (NODES, expected));
}

#[tokio::test]
async fn a_head_that_does_not_end_in_time_ends_the_connection() {
    let a = Stub::start().await;
    a.on(NODES, "[]");
    let mux = Pdbmux::with(&[&a], |config| {
        config.header_timeout = Duration::from_millis(100);
    })
    .await;
    for begun in ["G", "GET /pdb/query/v4/nodes HTTP/1.1\r\nHost:"] {
        let mut client = mux.connect().await;
        client.send(begun).await;
        assert_eq!(client.until_closed().await, b"");
    }
    let mut client = mux.connect().await;
    client.get(NODES).await.ok();
    client.send("GET /pdb").await;
    assert_eq!(client.until_closed().await, b"");
}

#[tokio::test]
async fn a_connection_without_a_request_ends_after_the_idle_time() {
    let a = Stub::start().await;
    a.on(NODES, "[]");
    let mux = Pdbmux::with(&[&a], |config| {
        config.idle_timeout = Duration::from_millis(100);
    })
    .await;
    let mut silent = mux.connect().await;
    assert_eq!(silent.until_closed().await, b"");
    let mut used = mux.connect().await;
    used.get(NODES).await.ok();
    assert_eq!(used.until_closed().await, b"");
}

#[tokio::test]
async fn neither_time_runs_while_a_request_is_answered() {
    let a = Stub::start().await;
    let pause = Duration::from_millis(300);
    a.on(
        NODES,
        Answer::default()
            .pause(pause)
            .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]"),
    );
    a.on(
        "/pdb/query/v4/environments",
        Answer::promising(4).send("[1").pause(pause).send(" ]"),
    );
    let mux = Pdbmux::with(&[&a], |config| {
        config.header_timeout = Duration::from_millis(50);
        config.idle_timeout = Duration::from_millis(50);
    })
    .await;
    assert_eq!(mux.get(NODES).await.ok(), "[]");
    assert_eq!(mux.get("/pdb/query/v4/environments").await.ok(), "[1 ]");
}

#[tokio::test]
async fn a_client_that_hangs_up_ends_the_questions_it_asked() {
    for (path, answer) in [
        (NODES, Answer::hung()),
        (NODES, Answer::promising(100).send("[").hang()),
        ("/pdb/query/v4/environments", Answer::hung()),
        (
            "/pdb/query/v4/environments",
            Answer::promising(100).send("[").hang(),
        ),
        (
            "/pdb/query/v4/nodes/n",
            Answer::promising(100).send("[").hang(),
        ),
        ("/pdb/query/v4/facts", Answer::hung()),
    ] {
        let a = Stub::start().await;
        a.fresh(&[]).on(path, answer);
        let mux = Pdbmux::start(&[&a]).await;
        let mut client = mux.connect().await;
        client.send(request("GET", path)).await;
        in_time(async {
            while a.asked().is_empty() {
                a.until_seen(1).await;
                tokio::task::yield_now().await;
            }
        })
        .await;
        drop(client);
        a.until_hung_up_on().await;
    }
}

#[tokio::test]
async fn the_answer_under_way_is_finished_after_the_signal_and_no_other_begun() {
    for (path, answer) in [
        (NODES, Answer::json("[1]")),
        (
            "/pdb/query/v4/environments",
            Answer::promising(3).send("[1"),
        ),
    ] {
        let (a, gate) = (Stub::start().await, Gate::new());
        match path {
            NODES => a.on(path, Answer::json("[{}]").behind(&gate)),
            _ => a.on(path, answer.hold(&gate).send("]")),
        };
        let mux = Pdbmux::with(&[&a], |config| config.source_fact_enabled = false).await;
        let mut idle = mux.connect().await;
        idle.get("/nosuch").await;
        let mut client = mux.connect().await;
        client.send(request("GET", path)).await;
        a.until_seen(1).await;
        mux.stop();
        mux.until_refused().await;
        assert_eq!(idle.until_closed().await, b"");
        gate.open();
        let response = client.response().await;
        assert_eq!((response.status, response.end), (200, End::Whole));
        assert_eq!(client.until_closed().await, b"");
        mux.until_stopped().await;
    }
}

#[tokio::test]
async fn the_drain_limit_cuts_what_is_still_under_way() {
    let a = Stub::start().await;
    a.on(NODES, Answer::hung());
    a.on(
        "/pdb/query/v4/environments",
        Answer::promising(100).send("[").hang(),
    );
    for path in [NODES, "/pdb/query/v4/environments"] {
        let mux = Pdbmux::with(&[&a], |config| {
            config.shutdown_timeout = Duration::from_millis(50);
        })
        .await;
        let before = a.seen().len();
        let mut client = mux.connect().await;
        client.send(request("GET", path)).await;
        a.until_seen(before + 1).await;
        mux.stop();
        mux.until_stopped().await;
        let rest = client.until_closed().await;
        assert!(
            !String::from_utf8_lossy(&rest).contains(" 502 "),
            "cut, not answered"
        );
    }
    a.until_hung_up_on().await;
}

#[tokio::test]
async fn an_idle_daemon_stops_at_once() {
    let (_a, mux) = plain().await;
    let mut idle = mux.connect().await;
    let mut used = mux.connect().await;
    used.get(NODES).await.ok();
    mux.stop();
    mux.until_stopped().await;
    assert_eq!(idle.until_closed().await, b"");
    assert_eq!(used.until_closed().await, b"");
}

#[tokio::test]
async fn healthz_tells_no_address_of_a_backend_that_is_down() {
    let (a, b) = (Stub::closed(), Stub::start().await);
    b.otherwise(Answer::default().send("garbage\r\n\r\n").close());
    let mux = Pdbmux::start(&[&a, &b]).await;
    let response = mux.get("/healthz").await;
    assert_eq!(response.status, 503);
    assert!(response.text().contains("pdb-b"));
}

#[tokio::test]
async fn healthz_is_answered_for_get_and_head() {
    let (a, mux) = plain().await;
    let response = mux.get("/healthz").await;
    assert_eq!(response.status, 200);
    assert_eq!(response.json()["status"], "ok");
    a.on(NODES, Answer::reset());
    let response = mux.get("/healthz").await;
    assert_eq!(
        (response.status, &response.json()["status"]),
        (503, &"down".into())
    );
    let mut client: Client = mux.connect().await;
    client.send(request("HEAD", "/healthz")).await;
    assert_eq!(client.head().await.status, 503);
    client.send(request("POST", "/healthz")).await;
    assert_eq!(client.response().await.status, 405);
}
