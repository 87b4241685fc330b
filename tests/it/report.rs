//! What hangs below a report, over HTTP (R102-R104, ruling 1, D13).

use crate::harness::{Pdbmux, SHORT};
use crate::stub::{Answer, Stub};

const LOGS: &str = "/pdb/query/v4/reports/a%2Db/logs";
const METRICS: &str = "/pdb/query/v4/reports/a%2Db/metrics";
const OF_REPORT: &str = "/pdb/query/v4/reports/a%2Db/events";
const ALL: [&str; 3] = [LOGS, METRICS, OF_REPORT];
const EVENTS: &str = "/pdb/query/v4/events";

const NONE: &str = "{\n  \"error\" : \"No information is known about report a-b\"\n}";

fn lost() -> Answer {
    let json = [("Content-Type", "application/json;charset=utf-8")];
    Answer::with(404, &json, NONE)
}

async fn pair(a: impl Into<Answer>, b: impl Into<Answer>) -> (Stub, Stub, Pdbmux) {
    let (first, second) = (Stub::start().await, Stub::start().await);
    let (a, b) = (a.into(), b.into());
    for path in ALL {
        first.on(path, a.clone());
        second.on(path, b.clone());
    }
    let mux = Pdbmux::with(&[&first, &second], |config| config.timeout = 2 * SHORT).await;
    (first, second, mux)
}

#[tokio::test]
async fn r102_r104_the_holder_is_served_verbatim_wherever_it_stands() {
    let body = "[ {\n  \"level\" : \"info\", \"x\":1.0\n} ]";
    for (a, b) in [
        (lost(), Answer::json(body)),
        (Answer::json(body), lost()),
        // 7.x redirects what it does not know.
        (Answer::with(302, &[], ""), Answer::json(body)),
    ] {
        let (first, second, mux) = pair(a, b).await;
        for path in ALL {
            let response = mux.get(path).await;
            assert_eq!(response.ok(), body, "{path}");
            assert_eq!(
                response.header("content-type"),
                Some("application/json;charset=utf-8")
            );
            // A backend that does not hold it is not missed.
            assert_eq!(response.missing(), [""; 0]);
            assert_eq!(response.backends(), Some("1/2"));
        }
        assert_eq!(first.targets(), ALL, "raw paths");
        assert_eq!(second.targets(), ALL);
    }
}

#[tokio::test]
async fn r008_a_backend_that_may_have_held_it_is_missed() {
    for (trouble, reason) in [
        (Answer::status(500, "oh"), "status-500"),
        (Answer::json("[1"), "damaged"),
        (Answer::hung(), "timeout"),
    ] {
        let (_a, _b, mux) = pair(trouble, "[1]").await;
        for path in ALL {
            let response = mux.get(path).await;
            assert_eq!(response.ok(), "[1]");
            assert_eq!(response.missing(), [format!("pdb-a; reason={reason}")]);
        }
    }
}

#[tokio::test]
async fn r103_r231_none_holds_it_in_puppetdbs_own_words() {
    let page = [("Content-Type", "text/html")];
    let page = Answer::with(404, &page, "<html>not here</html>");
    for (a, b) in [(lost(), lost()), (page, lost())] {
        let (_a, _b, mux) = pair(a, b).await;
        for path in ALL {
            let response = mux.get(path).await;
            assert_eq!((response.status, response.text()), (404, NONE), "{path}");
            let content_type = response.header("content-type");
            assert_eq!(content_type, Some("application/json;charset=utf-8"));
        }
    }
}

#[tokio::test]
async fn ruling_1_the_holders_own_error_is_replayed() {
    for status in [400, 403, 503] {
        let own = Answer::status(status, "the holder's words");
        for (a, b) in [(lost(), own.clone()), (own.clone(), lost())] {
            let (_a, _b, mux) = pair(a, b).await;
            for path in ALL {
                let response = mux.get(path).await;
                assert_eq!(
                    (response.status, response.text()),
                    (status, "the holder's words")
                );
            }
        }
    }
    let (_a, _b, mux) = pair(lost(), Answer::status(500, "oh")).await;
    assert_eq!(mux.get(LOGS).await.status, 500, "no other way to ask");
}

#[tokio::test]
async fn r020_a_silent_backend_may_be_the_holder() {
    for silent in [Answer::reset(), Answer::hung(), Answer::json("<html>")] {
        let (_a, _b, mux) = pair(lost(), silent).await;
        for path in ALL {
            let response = mux.get(path).await;
            assert_eq!(response.status, 502, "{path}");
            let [missing] = response.missing()[..] else {
                panic!("{response:#?}")
            };
            assert!(missing.starts_with("pdb-b; "), "{missing}");
        }
    }
}

#[tokio::test]
async fn d13_events_that_the_holders_version_cannot_list_come_from_the_events() {
    let (a, b, mux) = pair(lost(), Answer::status(500, "does not match schema")).await;
    let event = r#"{"report":"a-b","resource_type":"File","status":"success"}"#;
    a.on(EVENTS, "[]");
    b.on(EVENTS, Answer::counted(1, format!("[{event}]")));
    for (query, forwarded) in [
        (None, r#"["=","report","a-b"]"#),
        (
            Some(r#"["=","status","success"]"#),
            r#"["and",["=","report","a-b"],["=","status","success"]]"#,
        ),
        (
            Some(r#"["extract",[["function","count"]],["=","status","success"]]"#),
            r#"["extract",[["function","count"]],["and",["=","report","a-b"],["=","status","success"]]]"#,
        ),
    ] {
        let parameters: Vec<_> = query.map(|query| ("query", query)).into_iter().collect();
        if query.is_some_and(|query| query.contains("count")) {
            a.on(EVENTS, r#"[{"count":0}]"#);
            b.on(EVENTS, r#"[{"count":1}]"#);
            let response = mux.ask(OF_REPORT, &parameters).await;
            assert_eq!(response.ok(), r#"[{"count":1}]"#);
        } else {
            let response = mux.ask(OF_REPORT, &parameters).await;
            assert_eq!(response.ok(), format!("[{event}]"));
            assert_eq!(response.backends(), Some("2/2"));
        }
        for stub in [&a, &b] {
            let seen = stub.seen();
            assert!(seen[seen.len() - 2].target.starts_with(OF_REPORT));
            let last = seen.last().unwrap();
            assert!(last.target.starts_with(EVENTS));
            assert_eq!(last.param("query").as_deref(), Some(forwarded));
        }
    }
}

#[tokio::test]
async fn d13_those_events_are_projected_paged_and_laid_out_like_any() {
    let (a, b, mux) = pair(lost(), Answer::status(500, "does not match schema")).await;
    let row = |title: &str| {
        format!(
            r#"{{"resource_title":"{title}","report":"a-b","resource_type":"F","property":null,"timestamp":"t","status":"success","new_value":null,"old_value":null,"message":null}}"#
        )
    };
    let body = format!("[{},{}]", row("a"), row("b"));
    a.on(EVENTS, &body);
    b.on(EVENTS, &body);
    let parameters = [
        ("query", r#"["extract",["resource_title"]]"#),
        ("limit", "1"),
        ("offset", "1"),
        ("include_total", "true"),
        ("pretty", "true"),
    ];
    let response = mux.ask(OF_REPORT, &parameters).await;
    assert_eq!(response.ok(), "[ {\n  \"resource_title\" : \"b\"\n} ]");
    let last = a.seen().pop().unwrap();
    assert!(last.target.starts_with(EVENTS));
    assert_eq!(last.param("offset"), None);
    let query = last.param("query").unwrap();
    assert!(
        query.starts_with(r#"["extract",["resource_title","report","#)
            && query.ends_with(r#"],["=","report","a-b"]]"#),
        "{query}"
    );
}

#[tokio::test]
async fn d13_a_refusal_of_the_events_is_replayed() {
    let (a, b, mux) = pair(lost(), Answer::status(500, "does not match schema")).await;
    for stub in [&a, &b] {
        stub.on(EVENTS, Answer::status(400, "'x' is not a queryable object"));
    }
    let query = [("query", r#"["=","x","y"]"#)];
    let response = mux.ask(OF_REPORT, &query).await;
    assert_eq!(
        (response.status, response.text()),
        (400, "'x' is not a queryable object")
    );
    // What is no AST cannot be narrowed: the fault stays the holder's.
    let response = mux.ask(OF_REPORT, &[("query", "events{}")]).await;
    assert_eq!(
        (response.status, response.text()),
        (500, "does not match schema")
    );
}
