//! Refusals and failures: what is replayed, and what is a 502 (R017-R029, ruling 1).

use crate::harness::{Pdbmux, target};
use crate::stub::{Answer, Stub};

const NODES: &str = "/pdb/query/v4/nodes";

/// Routes that are asked of peers, one of each kind.
const PEERS: [&str; 16] = [
    NODES,
    "/pdb/query/v4/facts",
    "/pdb/query/v4/facts/os",
    "/pdb/query/v4/resources",
    "/pdb/query/v4/environments",
    "/pdb/meta/v1/version",
    "/pdb/meta/v1/server-time",
    "/metrics/v2/read/java.lang:type=Memory",
    "/metrics/v2/list",
    "/metrics/v1/mbeans",
    "/metrics/v1/mbeans/java.lang%3Atype%3DMemory",
    "/pdb/query/v4/fact-names",
    "/pdb/query/v4/reports",
    "/pdb/query/v4/events",
    "/pdb/query/v4/event-counts",
    "/pdb/query/v4/aggregate-event-counts",
];

async fn pair(a: Answer, b: Answer) -> (Stub, Stub, Pdbmux) {
    let (first, second) = (Stub::start().await, Stub::start().await);
    first.otherwise(a);
    second.otherwise(b);
    let mux = Pdbmux::start(&[&first, &second]).await;
    (first, second, mux)
}

#[tokio::test]
async fn r017_r021_r027_a_status_all_agree_on_is_replayed_on_every_peer_route() {
    for status in [400, 401, 403, 404, 405, 408, 429, 500, 501, 502, 503] {
        let a = Answer::with(status, &[("Content-Type", "text/x-a")], "the first's words");
        let b = Answer::with(
            status,
            &[("Content-Type", "text/x-b")],
            "the second's words",
        );
        let (_a, _b, mux) = pair(a, b).await;
        for path in PEERS {
            let response = mux.get(path).await;
            assert_eq!(
                (response.status, response.text()),
                (status, "the first's words"),
                "{path}"
            );
            assert_eq!(response.header("content-type"), Some("text/x-a"));
        }
    }
}

#[tokio::test]
async fn t57_a_refusal_without_a_type_is_replayed_as_text() {
    let down = Answer::with(503, &[], "PuppetDB is currently down. Try again later.");
    let (_a, _b, mux) = pair(down.clone(), down).await;
    for path in PEERS {
        let response = mux.get(path).await;
        assert_eq!(response.status, 503);
        assert_eq!(
            response.header("content-type"),
            Some("text/plain;charset=utf-8")
        );
    }
}

#[tokio::test]
async fn r018_a_replayed_body_tells_no_address() {
    let a = Stub::start().await;
    let port = a.address().port();
    let body = format!(
        "see http://127.0.0.1:{port}/pdb, HTTP://127.0.0.1:{port}, 127.0.0.1:{port} or 127.0.0.1; \
         http:\\/\\/127.0.0.1:{port}\\/x http%3A%2F%2F127.0.0.1%3A{port}/"
    );
    a.otherwise(Answer::status(500, &body));
    let mux = Pdbmux::start(&[&a]).await;
    for path in PEERS.into_iter().chain(["/pdb/query/v4/nodes/n"]) {
        let response = mux.get(path).await;
        assert_eq!(
            response.text(),
            "see puppetdb/pdb, puppetdb, puppetdb or puppetdb; puppetdb\\/x puppetdb/"
        );
    }
}

#[tokio::test]
async fn r019_disagreement_is_502() {
    let (_a, _b, mux) = pair(Answer::status(400, "no"), Answer::status(500, "oh")).await;
    for path in PEERS {
        let response = mux.get(path).await;
        assert_eq!(response.status, 502, "{path}");
        assert_eq!(
            response.missing(),
            ["pdb-a; reason=status-400", "pdb-b; reason=status-500"]
        );
    }
}

#[tokio::test]
async fn r020_a_refusal_beside_silence_is_502_in_either_order() {
    for (a, b) in [
        (Answer::status(400, "no"), Answer::reset()),
        (Answer::reset(), Answer::status(400, "no")),
    ] {
        let (_a, _b, mux) = pair(a, b).await;
        for path in PEERS {
            assert_eq!(mux.get(path).await.status, 502, "{path}");
        }
    }
}

#[tokio::test]
async fn r022_an_unknown_field_is_explained_in_puppetdbs_own_words() {
    let words = "'nosuch' is not a queryable object for nodes. Known queryable objects are [...]";
    let (_a, _b, mux) = pair(Answer::status(400, words), Answer::status(400, words)).await;
    let query = [("query", r#"["=","nosuch",1]"#)];
    let response = mux.ask(NODES, &query).await;
    assert_eq!(response.refusal(), words);
}

#[tokio::test]
async fn r024_r026_neither_refusals_nor_failures_are_kept() {
    for trouble in [
        Answer::status(400, "no"),
        Answer::status(500, "oh"),
        Answer::reset(),
    ] {
        let (a, b, mux) = pair(trouble.clone(), trouble).await;
        for path in PEERS {
            assert!(mux.get(path).await.status >= 400);
        }
        for stub in [&a, &b] {
            stub.on(NODES, "[]");
        }
        assert_eq!(mux.get(NODES).await.ok(), "[]");
    }
}

#[tokio::test]
async fn r028_a_refusal_beside_a_success_is_a_partial_answer() {
    let (_a, b, mux) = pair(Answer::status(400, "no"), Answer::status(400, "no")).await;
    b.on(NODES, r#"[{"certname":"n"}]"#);
    let response = mux.get(NODES).await;
    assert!(response.ok().contains(r#""certname":"n""#));
    assert_eq!(response.backends(), Some("1/2"));
    assert_eq!(response.missing(), ["pdb-a; reason=status-400"]);
}

#[tokio::test]
async fn r029_what_pdbmux_refuses_itself_reaches_no_backend() {
    let a = Stub::start().await;
    let mux = Pdbmux::start(&[&a]).await;
    let double = r#"["extract",[["function","count"],["function","count"]]]"#;
    for (path, parameter, value, culprit) in [
        (NODES, "limit", "0", "limit"),
        (NODES, "offset", "-1", "offset"),
        (NODES, "order_by", "certname", "order_by"),
        (NODES, "query", double, "count"),
        ("/pdb/query/v4/facts/os", "limit", "x", "limit"),
        ("/pdb/query/v4/resources", "query", double, "count"),
    ] {
        let response = mux.ask(path, &[(parameter, value)]).await;
        let sentence = response.refusal();
        assert!(sentence.contains(culprit), "{sentence}");
        assert!(!sentence.ends_with('.') && !sentence.contains('\n'));
    }
    assert_eq!(a.targets(), [""; 0]);
}

async fn nested(depth: usize) {
    let a = Stub::start().await;
    let mux = Pdbmux::start(&[&a]).await;
    let query = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    for path in [NODES, "/pdb/query/v4/facts", "/pdb/query/v4/resources"] {
        let response = mux.ask(path, &[("query", &query)]).await;
        assert!(response.refusal().contains("nested deeper"));
    }
    assert_eq!(a.targets(), [""; 0]);
}

#[tokio::test]
async fn r029_a_query_nested_beyond_what_is_followed_is_refused() {
    nested(129).await;
}

#[tokio::test]
async fn r029_a_query_nested_beyond_all_measure_is_refused_too() {
    nested(5_000).await;
}

#[tokio::test]
async fn t46_a_redirect_is_a_404_and_is_not_followed() {
    let away = Stub::start().await;
    let location = format!("{}/pdb/dashboard/index.html", away.url());
    let redirect = Answer::with(302, &[("Location", &location)], "");
    let (_a, _b, mux) = pair(redirect.clone(), redirect).await;
    for path in PEERS.into_iter().chain(["/pdb/query/v4/nodes/n"]) {
        let response = mux.get(path).await;
        assert_eq!(
            (response.status, response.header("location")),
            (404, None),
            "{path}"
        );
    }
    assert_eq!(away.targets(), [""; 0]);
}

#[tokio::test]
async fn writes_answer_501_in_one_sentence_whatever_the_method() {
    let a = Stub::start().await;
    let mux = Pdbmux::start(&[&a]).await;
    for path in [
        "/pdb/cmd/v1",
        "/pdb/cmd/v1?command=x",
        "/pdb/admin/v1/archive",
        "/pdb/admin",
    ] {
        for method in ["GET", "POST", "PUT"] {
            let mut client = mux.connect().await;
            let head = format!("{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
            client.send(head).await;
            let response = client.response().await;
            assert_eq!(response.status, 501, "{method} {path}");
            assert!(response.text().contains("only reads"));
        }
    }
    assert_eq!(a.targets(), [""; 0]);
}

#[tokio::test]
async fn unknown_paths_are_404_and_reach_no_backend() {
    let a = Stub::start().await;
    let mux = Pdbmux::start(&[&a]).await;
    for path in [
        "/",
        "/favicon.ico",
        "/pdb",
        "/pdb/query/v3/nodes",
        "/pdb/dashboard",
        "/status/v1/services",
        "/v4/nodes",
        "//pdb/query/v4/nodes",
    ] {
        let response = mux.get(path).await;
        assert_eq!(response.status, 404, "{path}");
    }
    let response = mux.get(&target("/nosuch", &[("limit", "x")])).await;
    assert_eq!(response.status, 404);
    assert_eq!(a.targets(), [""; 0]);
}
