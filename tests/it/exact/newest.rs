//! Distinct resources: of each only the newest event counts, whichever backend has it.

use serde_json::{Value, json};

use super::estate::{asked, estate};
use crate::harness::Pdbmux;
use crate::stub::{Answer, Stub};

const EVENTS: &str = "/pdb/query/v4/events";
const DISTINCT: [(&str, &str); 3] = [
    ("distinct_resources", "true"),
    ("distinct_start_time", "2024-05-01"),
    ("distinct_end_time", "2024-06-01"),
];

fn event(certname: &str, title: &str, day: u32, status: &str) -> Value {
    json!({
        "certname": certname, "resource_type": "File", "resource_title": title, "property": null,
        "name": null, "timestamp": format!("2024-05-{day:02}T10:00:00.000Z"), "report": day.to_string(),
        "status": status, "corrective_change": null, "containing_class": "Main",
    })
}

fn newest(certname: &str, title: &str, day: u32) -> Value {
    json!({
        "max": format!("2024-05-{day:02}T10:00:00.000Z"), "certname": certname,
        "resource_type": "File", "resource_title": title, "property": null, "name": null,
    })
}

/// Has these events and, asked for them, these times of the newest.
fn has(stub: &Stub, events: &[Value], times: &[Value]) {
    let (events, times) = (json!(events).to_string(), json!(times).to_string());
    stub.makes(EVENTS, move |seen| {
        let asks_times = seen.param("distinct_resources").is_none();
        Answer::json(if asks_times { &times } else { &events })
    });
}

/// `moved` went from the first to the second, where it skips what had failed; the others stayed.
async fn moved() -> ([Stub; 2], Pdbmux) {
    let ([a, b], mux) = estate([&[("moved", 1), ("x", 1)], &[("moved", 2), ("y", 1)]]).await;
    let of_a = [
        event("moved", "/f", 1, "failure"),
        event("moved", "/g", 1, "failure"),
        event("x", "/f", 1, "failure"),
    ];
    has(
        &a,
        &of_a,
        &[newest("moved", "/f", 1), newest("moved", "/g", 1)],
    );
    // The newer event of the file is not one that the client selects.
    has(
        &b,
        &[event("y", "/f", 1, "failure")],
        &[newest("moved", "/f", 2)],
    );
    ([a, b], mux)
}

#[tokio::test]
async fn t66_an_older_event_of_a_moved_node_counts_no_more() {
    let ([a, _b], mux) = moved().await;
    let query = r#"["=","status","failure"]"#;
    let parameters = [
        &DISTINCT[..],
        &[
            ("query", query),
            ("include_total", "true"),
            ("limit", "2"),
            ("order_by", r#"[{"field":"certname","order":"desc"}]"#),
        ],
    ]
    .concat();
    let response = mux.ask(EVENTS, &parameters).await;
    let expected = [
        event("y", "/f", 1, "failure"),
        event("x", "/f", 1, "failure"),
    ];
    assert_eq!(response.json(), json!(expected));
    assert_eq!(response.header("x-records"), Some("3"));
    assert_eq!(response.header("x-pdbmux-exact"), None);
    let times = concat!(
        r#"/events ["extract",[["function","max","timestamp"],"certname","resource_type","resource_title","property","name"],"#,
        r#"["and",["or",["in","certname",["array",["moved"]]]],"#,
        r#"["and",[">=","timestamp","2024-05-01"],["<=","timestamp","2024-06-01"]]],"#,
        r#"["group_by","certname","resource_type","resource_title","property","name"]]"#
    );
    let mut asked = asked(&a);
    asked.sort();
    assert_eq!(asked, [format!("/events {query}"), times.to_owned()]);
}

#[tokio::test]
async fn t66_counts_are_made_of_the_newest_events() {
    let (_stubs, mux) = moved().await;
    let of_resources = [&DISTINCT[..], &[("summarize_by", "resource")]].concat();
    let row = |title: &str, failures: u32| {
        json!({
            "failures": failures, "skips": 0, "successes": 0, "noops": 0,
            "subject_type": "resource", "subject": {"type": "File", "title": title},
        })
    };
    let counts = "/pdb/query/v4/event-counts";
    let response = mux.ask(counts, &of_resources).await;
    assert_eq!(response.json(), json!([row("/g", 1), row("/f", 2)]));
    assert_eq!(response.header("x-pdbmux-exact"), None);
    let filtered = [
        &of_resources[..],
        &[("counts_filter", r#"[">","failures",1]"#)],
    ]
    .concat();
    assert_eq!(
        mux.ask(counts, &filtered).await.json(),
        json!([row("/f", 2)])
    );
    let summed = [
        &DISTINCT[..],
        &[
            ("summarize_by", "certname,containing_class"),
            ("count_by", "certname"),
        ],
    ]
    .concat();
    let response = mux
        .ask("/pdb/query/v4/aggregate-event-counts", &summed)
        .await;
    let row = |by: &str, subjects: u32| {
        json!({
            "summarize_by": by, "failures": subjects, "skips": 0, "successes": 0, "noops": 0,
            "total": subjects,
        })
    };
    assert_eq!(
        response.json(),
        json!([row("certname", 3), row("containing_class", 1)])
    );
    assert_eq!(response.header("x-pdbmux-exact"), None);
}

#[tokio::test]
async fn where_no_node_is_held_twice_no_times_are_asked() {
    let ([a, b], mux) = estate([&[("x", 1)], &[("y", 1)]]).await;
    for stub in [&a, &b] {
        stub.on(EVENTS, "[]");
    }
    let counts = [&DISTINCT[..], &[("summarize_by", "resource")]].concat();
    for (path, parameters) in [
        (EVENTS, &DISTINCT[..]),
        ("/pdb/query/v4/event-counts", &counts),
        ("/pdb/query/v4/aggregate-event-counts", &counts),
    ] {
        assert_eq!(mux.ask(path, parameters).await.status, 200, "{path}");
    }
    assert_eq!(asked(&a), ["/events"; 3]);
}

#[tokio::test]
async fn a_backend_that_does_not_tell_its_times_has_failed() {
    let ([_a, b], mux) = moved().await;
    b.makes(EVENTS, |seen| match seen.param("distinct_resources") {
        Some(_) => Answer::json("[]"),
        None => Answer::status(500, "broken"),
    });
    let response = mux.ask(EVENTS, &DISTINCT).await;
    assert_eq!(response.backends(), Some("1/2"));
    assert_eq!(response.json().as_array().unwrap().len(), 3);
    for path in ["event-counts", "aggregate-event-counts"] {
        let parameters = [&DISTINCT[..], &[("summarize_by", "resource")]].concat();
        let response = mux.ask(&format!("/pdb/query/v4/{path}"), &parameters).await;
        assert_eq!(response.backends(), Some("1/2"), "{path}");
    }
}

#[tokio::test]
async fn what_depends_on_more_than_time_is_marked() {
    let ([a, b], mux) = estate([&[("x", 1)], &[("y", 1)]]).await;
    for stub in [&a, &b] {
        stub.on(EVENTS, "[]");
    }
    let latest = [
        &DISTINCT[..],
        &[("query", r#"["=","latest_report?",true]"#)],
    ]
    .concat();
    let response = mux.ask(EVENTS, &latest).await;
    assert_eq!(
        response.header("x-pdbmux-exact"),
        Some("no; reason=distinct-resources")
    );
    for stub in [&a, &b] {
        stub.on(EVENTS, Answer::status(400, "times are missing"));
    }
    let response = mux.ask(EVENTS, &DISTINCT[..2]).await;
    assert_eq!(response.text(), "times are missing");
}
