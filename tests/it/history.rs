//! `/reports` and `/events` over HTTP (R093-R101, R149, rulings 3 and 5).

use crate::client::Response;
use crate::harness::Pdbmux;
use crate::stub::{Answer, Seen, Stub};

const REPORTS: &str = "/pdb/query/v4/reports";
const EVENTS: &str = "/pdb/query/v4/events";

async fn pair(path: &str, a: &[String], b: &[String]) -> (Stub, Stub, Pdbmux) {
    let (first, second) = (Stub::start().await, Stub::start().await);
    for (stub, rows) in [(&first, a), (&second, b)] {
        let body = format!("[{}]", rows.join(","));
        stub.on(path, Answer::counted(rows.len() as u64, body));
    }
    let mux = Pdbmux::start(&[&first, &second]).await;
    (first, second, mux)
}

fn report(hash: &str, received: u32) -> String {
    format!(
        r#"{{"hash":"{hash}","certname":"n","status":"changed","receive_time":"2026-01-01T00:00:{received:02}.000Z"}}"#
    )
}

/// An event of a title, as the backend stores it that received it then.
fn event(title: &str, value: &str, received: u32) -> String {
    format!(
        r#"{{"certname":"n","report":"r","resource_type":"File","resource_title":"{title}","property":"mode","timestamp":"2026-01-01T00:00:00.000Z","status":"success","new_value":{value},"old_value":null,"message":null,"report_receive_time":"2026-01-01T00:00:{received:02}.000Z"}}"#
    )
}

fn titles(response: &Response) -> Vec<String> {
    response.ok();
    let rows = response.json();
    let title = |row: &serde_json::Value| row["resource_title"].as_str().unwrap().to_owned();
    rows.as_array().unwrap().iter().map(title).collect()
}

#[tokio::test]
async fn r093_r095_each_report_is_served_once_in_the_first_backends_bytes() {
    let (a, b) = (
        [report("h1", 1), report("h2", 2)],
        [report("h2", 9), report("h3", 3)],
    );
    let (first, _b, mux) = pair(REPORTS, &a, &b).await;
    let response = mux.ask(REPORTS, &[("include_total", "true")]).await;
    assert_eq!(response.ok(), format!("[{},{},{}]", a[0], a[1], b[1]));
    // R149: an upper bound.
    assert_eq!(response.header("x-records"), Some("4"));
    assert_eq!(response.backends(), Some("2/2"));
    assert_eq!(response.missing(), [""; 0]);
    // Nobody's ownership is looked up for history.
    assert_eq!(first.targets(), [format!("{REPORTS}?include_total=true")]);
}

#[tokio::test]
async fn t27_a_total_that_a_backend_did_not_send_is_not_made_up() {
    let (_a, b, mux) = pair(REPORTS, &[report("h1", 1)], &[]).await;
    b.on(REPORTS, "[]");
    let response = mux.ask(REPORTS, &[("include_total", "true")]).await;
    assert_eq!(response.header("x-records"), None);
}

#[tokio::test]
async fn r094_ruling_3_an_event_is_one_however_it_was_received_and_spelled() {
    let a = [
        event("a", r#"{"x": 1, "y": 2}"#, 1),
        event("twice", "1", 1),
        event("twice", "1", 1),
    ];
    let b = [
        event("a", r#"{"y":2,"x":1.0}"#, 5),
        event("twice", "1", 5),
        event("b", "1", 5),
    ];
    let (_a, _b, mux) = pair(EVENTS, &a, &b).await;
    let response = mux.get(EVENTS).await;
    assert_eq!(
        response.ok(),
        format!("[{},{},{},{}]", a[0], a[1], a[2], b[2])
    );
}

#[tokio::test]
async fn ruling_3_t4_t5_a_projection_loses_no_row_and_shows_no_column_more() {
    for (path, query, forwarded, a, b, expected) in [
        (
            REPORTS,
            r#"["extract",["status"],["=","certname","n"]]"#,
            r#"["extract",["status","hash"],["=","certname","n"]]"#,
            r#"[{"status":"changed","hash":"h1"},{"status":"changed","hash":"h2"}]"#,
            r#"[{"status":"changed","hash":"h2"},{"status":"failed","hash":"h3"}]"#,
            r#"[{"status":"changed"},{"status":"changed"},{"status":"failed"}]"#,
        ),
        (
            EVENTS,
            r#"["extract",["status"]]"#,
            r#"["extract",["status","report","resource_type","resource_title","property","timestamp","new_value","old_value","message"]]"#,
            r#"[{"status":"success","report":"r","resource_title":"a"},{"status":"success","report":"r","resource_title":"b"}]"#,
            r#"[{"status":"success","report":"r","resource_title":"b"}]"#,
            r#"[{"status":"success"},{"status":"success"}]"#,
        ),
    ] {
        let (first, second) = (Stub::start().await, Stub::start().await);
        first.on(path, a);
        second.on(path, b);
        let mux = Pdbmux::start(&[&first, &second]).await;
        let response = mux.ask(path, &[("query", query)]).await;
        assert_eq!(response.ok(), expected);
        assert_eq!(first.only().param("query").as_deref(), Some(forwarded));
        // R097: what holds the identity is not rewritten.
        let whole = mux.ask(path, &[("query", forwarded)]).await;
        assert!(whole.ok().starts_with(&a[..a.len() - 1]), "{path}");
    }
}

#[tokio::test]
async fn r096_r146_history_is_ordered_and_cut_across_backends() {
    let rows = |rows: &[(&str, u32)]| -> Vec<String> {
        rows.iter().map(|(hash, at)| report(hash, *at)).collect()
    };
    // By time of receipt, the copies of h2 lie far apart.
    let (a, b) = (
        rows(&[("h1", 1), ("h2", 2), ("h4", 4)]),
        rows(&[("h3", 3), ("h5", 5), ("h2", 9)]),
    );
    let (first, second) = (Stub::start().await, Stub::start().await);
    for (stub, rows) in [(&first, a), (&second, b)] {
        stub.makes(REPORTS, move |seen: &Seen| {
            assert_eq!(seen.param("offset"), None, "R146");
            let limit = seen.param("limit").unwrap().parse().unwrap_or(usize::MAX);
            let rows = &rows[..limit.min(rows.len())];
            Answer::json(format!("[{}]", rows.join(",")))
        });
    }
    let mux = Pdbmux::start(&[&first, &second]).await;
    let order = r#"[{"field":"receive_time"}]"#;
    for size in [1, 2, 7] {
        let mut walked = Vec::new();
        for page in 0..=5 / size {
            let (limit, offset) = (size.to_string(), (page * size).to_string());
            let page = [("limit", &*limit), ("offset", &offset), ("order_by", order)];
            let page = mux.ask(REPORTS, &page).await.json();
            let hashes = page.as_array().unwrap().iter();
            walked.extend(hashes.map(|row| row["hash"].as_str().unwrap().to_owned()));
        }
        assert_eq!(walked, ["h1", "h2", "h3", "h4", "h5"], "pages of {size}");
    }
    // Ties are broken by what tells reports apart, upstream too (T16).
    let tied = r#"[{"field":"receive_time","order":"asc"},{"field":"hash","order":"asc"}]"#;
    let asked = first.seen()[0].param("order_by");
    assert_eq!(asked.as_deref(), Some(tied));
}

#[tokio::test]
async fn r098_functions_on_history_are_combined() {
    for path in [REPORTS, EVENTS] {
        let rows = |count: u32| [format!(r#"{{"count":{count},"status":"x"}}"#)];
        let (a, _b, mux) = pair(path, &rows(2), &rows(3)).await;
        let query = r#"["extract",[["function","count"],"status"],["group_by","status"]]"#;
        let parameters = [("query", query), ("include_total", "true"), ("limit", "5")];
        let response = mux.ask(path, &parameters).await;
        assert_eq!(response.ok(), r#"[{"count":5,"status":"x"}]"#);
        assert_eq!(response.header("x-records"), Some("1"));
        assert_eq!(a.only().param("limit"), None, "R135");
    }
}

#[tokio::test]
async fn r099_r100_r101_distinct_resources_and_functions() {
    let distinct = [
        ("distinct_resources", "true"),
        ("distinct_start_time", "0"),
        ("distinct_end_time", "2026-01-01T00:00:00Z"),
    ];
    let count = ("query", r#"["extract",[["function","count"]]]"#);
    let (a, _b, mux) = pair(EVENTS, &[event("a", "1", 1)], &[]).await;
    let refused = mux.ask(EVENTS, &[&distinct[..], &[count]].concat()).await;
    assert!(refused.refusal().contains("distinct_resources"));
    assert_eq!(a.targets(), [""; 0]);
    let served = mux.ask(EVENTS, &distinct).await;
    assert_eq!(titles(&served), ["a"]);
    let seen = a.only();
    for (name, value) in distinct {
        assert_eq!(seen.param(name).as_deref(), Some(value));
    }
    // Elsewhere it is the backends' to refuse.
    let (a, b, mux) = pair(REPORTS, &[], &[]).await;
    for stub in [&a, &b] {
        stub.on(REPORTS, Answer::status(400, "Unsupported query parameter"));
    }
    let replayed = mux.ask(REPORTS, &[distinct[0], count]).await;
    assert_eq!(replayed.text(), "Unsupported query parameter");
}

#[tokio::test]
async fn r008_r017_r019_survivors_are_served_and_refusals_replayed() {
    for path in [REPORTS, EVENTS] {
        let (a, b, mux) = pair(path, &[], &[event("a", "1", 1)]).await;
        for (trouble, reason) in [
            (Answer::reset(), "unreachable"),
            (Answer::status(404, "no"), "status-404"),
            (Answer::json(r#"[{"hash":1}"#), "damaged"),
        ] {
            a.on(path, trouble);
            let response = mux.get(path).await;
            assert_eq!(titles(&response), ["a"]);
            assert_eq!(response.backends(), Some("1/2"));
            let missing = response.missing();
            assert_eq!(missing.len(), 1);
            assert!(
                reason == "unreachable" || missing[0] == format!("pdb-a; reason={reason}"),
                "{missing:?}"
            );
        }
        a.on(path, Answer::status(400, "first"));
        b.on(path, Answer::status(400, "second"));
        let response = mux.get(path).await;
        assert_eq!((response.status, response.text()), (400, "first"));
        b.on(path, Answer::status(500, "second"));
        assert_eq!(mux.get(path).await.status, 502);
    }
}

#[tokio::test]
async fn r150_r152_paging_is_checked_before_anyone_is_asked() {
    let (a, _b, mux) = pair(REPORTS, &[], &[]).await;
    for path in [
        REPORTS,
        EVENTS,
        "/pdb/query/v4/event-counts",
        "/pdb/query/v4/fact-names",
        "/pdb/query/v4/reports/h/events",
    ] {
        for (name, value) in [("limit", "0"), ("offset", "-1"), ("order_by", "x")] {
            let response = mux.ask(path, &[(name, value)]).await;
            assert!(response.refusal().contains(name), "{path}");
        }
    }
    assert_eq!(a.targets(), [""; 0]);
}

#[tokio::test]
async fn t64_a_pretty_answer_is_laid_out_here() {
    let (a, b, mux) = pair(
        EVENTS,
        &[r#"{"report":"r","new_value":{"a": [1, {}]}}"#.to_owned()],
        &[r#"{"report":"s"}"#.to_owned()],
    )
    .await;
    let response = mux.ask(EVENTS, &[("pretty", "TRUE")]).await;
    assert_eq!(
        response.ok(),
        "[ {\n  \"report\" : \"r\",\n  \"new_value\" : {\n    \"a\" : [ 1, { } ]\n  }\n}, {\n  \"report\" : \"s\"\n} ]"
    );
    assert_eq!(a.targets(), [EVENTS]);
    let none = r#"["=","certname","none"]"#;
    a.on(EVENTS, "[]");
    b.on(EVENTS, "[]");
    let parameters = [("pretty", "true"), ("query", none)];
    assert_eq!(mux.ask(EVENTS, &parameters).await.ok(), "[ ]");
}
