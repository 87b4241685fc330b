//! Routes that one backend answers, passed on as it arrives (R240-R242).

use crate::client::{End, request};
use crate::harness::{Pdbmux, SHORT};
use crate::stub::{Answer, Gate, Stub};

const ENVIRONMENTS: &str = "/pdb/query/v4/environments";

async fn pair(a: Answer, b: Answer) -> (Stub, Stub, Pdbmux) {
    let (first, second) = (Stub::start().await, Stub::start().await);
    first.otherwise(a);
    second.otherwise(b);
    let mux = Pdbmux::with(&[&first, &second], |config| config.timeout = 2 * SHORT).await;
    (first, second, mux)
}

#[tokio::test]
async fn r240_r242_the_first_success_in_configured_order_is_served_verbatim() {
    let body = "[ {\"name\" : \"production\",\"x\":1.0} ]\n";
    let (_a, b, mux) = pair(Answer::counted(1, body), Answer::json("[]")).await;
    for path in [
        ENVIRONMENTS,
        "/pdb/query/v4/resources?include_total=true",
        "/pdb/query/v4/resources/File?limit=5&offset=2",
        "/pdb/query/v4?query=nodes%7B%7D",
        "/pdb/query/v4/nodes?explain=analyze",
        "/metrics/v2",
    ] {
        let response = mux.get(path).await;
        assert_eq!(response.ok(), body, "{path}");
        assert_eq!(
            response.header("content-type"),
            Some("application/json;charset=utf-8")
        );
        assert_eq!(
            response.header("content-length"),
            Some(&*body.len().to_string())
        );
        assert_eq!(response.header("x-records"), Some("1"));
    }
    assert_eq!(b.targets(), [""; 0]);
}

#[tokio::test]
async fn r240_nothing_else_of_a_backends_head_is_passed_on() {
    let headers = [
        ("Content-Type", "application/json;charset=utf-8"),
        ("Server", "Jetty(12)"),
        ("Location", "http://127.0.0.1/"),
        ("Set-Cookie", "a=b"),
        ("X-PDB-Internal", "127.0.0.1"),
        ("Connection", "close"),
    ];
    let (_a, _b, mux) = pair(Answer::with(200, &headers, "[]"), Answer::json("[]")).await;
    let response = mux.get(ENVIRONMENTS).await;
    response.ok();
    let mut names: Vec<_> = response.headers.iter().map(|(name, _)| &**name).collect();
    names.sort_unstable();
    // `Vary` is pdbmux's own.
    assert_eq!(names, ["content-length", "content-type", "date", "vary"]);
}

#[tokio::test]
async fn r240_a_backend_that_does_not_succeed_is_passed_over() {
    let down = Answer::with(503, &[], "PuppetDB is currently down. Try again later.");
    for trouble in [
        Answer::status(500, "oh"),
        Answer::status(404, "no"),
        down,
        Answer::with(302, &[("Location", "/pdb/dashboard")], ""),
        Answer::reset(),
        Answer::hung(),
        Answer::default().send("garbage\r\n\r\n").close(),
        // Broken before the first byte of a body: nothing has gone out yet.
        Answer::promising(10).close(),
        Answer::promising(10).hang(),
        Answer::chunked().close(),
        // No answer of PuppetDB's.
        Answer::json(""),
        Answer::chunked().last_chunk(),
        Answer::with(
            200,
            &[("Content-Type", "text/html")],
            "<html>Sign in</html>",
        ),
    ] {
        let shown = format!("{trouble:?}");
        let (_a, _b, mux) = pair(trouble, Answer::json("[2]")).await;
        assert_eq!(mux.get(ENVIRONMENTS).await.ok(), "[2]", "{shown}");
        assert_eq!(mux.get("/metrics/v2/search/x").await.ok(), "[2]", "{shown}");
    }
}

#[tokio::test]
async fn r241_all_refusing_alike_is_replayed_and_else_502() {
    let (_a, b, mux) = pair(Answer::status(400, "first"), Answer::status(400, "second")).await;
    let response = mux.get(ENVIRONMENTS).await;
    assert_eq!((response.status, response.text()), (400, "first"));
    for other in [Answer::status(500, "second"), Answer::reset()] {
        b.otherwise(other);
        assert_eq!(mux.get(ENVIRONMENTS).await.status, 502);
    }
}

#[tokio::test]
async fn first_bytes_arrive_while_the_backend_still_sends() {
    for (begin, rest) in [
        (Answer::promising(6).send("[1,"), "2 ]"),
        (Answer::chunked().chunk("[1,"), "3\r\n2 ]\r\n0\r\n\r\n"),
    ] {
        let gate = Gate::new();
        let (_a, _b, mux) = pair(begin.hold(&gate).send(rest), Answer::json("[]")).await;
        let mut client = mux.connect().await;
        client.send(request("GET", ENVIRONMENTS)).await;
        client.until_received("[1,").await;
        gate.open();
        assert_eq!(client.response().await.ok(), "[1,2 ]");
    }
}

#[tokio::test]
async fn a_failure_after_the_first_byte_breaks_the_connection() {
    for broken in [
        Answer::promising(100).send("[1,").close(),
        Answer::promising(100).send("[1,").hang(),
        Answer::chunked().chunk("[1,").close(),
        Answer::chunked().chunk("[1,").hang(),
        Answer::chunked().chunk("[1,").send("zz\r\n").close(),
    ] {
        let shown = format!("{broken:?}");
        let (_a, b, mux) = pair(broken, Answer::json("[]")).await;
        for path in [ENVIRONMENTS, "/pdb/query/v4/factsets"] {
            let response = mux.get(path).await;
            assert_eq!(
                (response.status, response.end),
                (200, End::Broken),
                "{shown}"
            );
            assert_eq!(response.text(), "[1,");
        }
        assert_eq!(b.targets(), [""; 0]);
    }
}

#[tokio::test]
async fn an_answer_that_its_backend_ends_by_closing_is_whole() {
    let head = [("Content-Type", "application/json;charset=utf-8")];
    let (_a, _b, mux) = pair(
        Answer::head(200, &head).send("[1]").close(),
        Answer::json("[]"),
    )
    .await;
    assert_eq!(mux.get(ENVIRONMENTS).await.ok(), "[1]");
}
