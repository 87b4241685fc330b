//! Distinct counts of events.

use serde_json::json;

use super::backend::{Backend, exact};
use crate::harness::Pdbmux;
use crate::stub::Answer;

const COUNTS: &str = "/pdb/query/v4/event-counts";
const TOTALS: &str = "/pdb/query/v4/aggregate-event-counts";
const EVENTS: &str = "/pdb/query/v4/events";

async fn pair() -> (Backend, Backend, Pdbmux) {
    let a = Backend::holding(&[("m", 1)]).await;
    let b = Backend::holding(&[("n", 1)]).await;
    let mux = exact(&[&a, &b]).await;
    (a, b, mux)
}

/// What happened to `title` on a node.
fn event(status: &str, certname: &str, title: &str, corrective: &str) -> String {
    format!(
        r#"{{"status":"{status}","corrective_change":{corrective},"certname":"{certname}","resource_type":"File","resource_title":"{title}"}}"#
    )
}

fn counted(title: &str, counts: [u32; 4]) -> serde_json::Value {
    let [failures, skips, successes, noops] = counts;
    json!({
        "failures": failures, "skips": skips, "successes": successes, "noops": noops,
        "subject_type": "resource", "subject": {"type": "File", "title": title},
    })
}

#[tokio::test]
async fn t29_a_node_is_counted_once_for_each_status_whoever_tells_of_it() {
    let (a, b, mux) = pair().await;
    let (failed, skipped) = (
        event("failure", "n", "/x", "null"),
        event("skipped", "n", "/y", "null"),
    );
    let noop = event("noop", "m", "/x", "null");
    a.stub.on(EVENTS, format!("[{failed},{noop},{skipped}]"));
    let other = event("failure", "o", "/x", "null");
    let changed = event("success", "n", "/x", "null");
    b.stub.on(EVENTS, format!("[{failed},{other},{changed}]"));
    let parameters = [
        ("summarize_by", "resource"),
        ("count_by", "certname"),
        ("query", r#"["=","environment","e"]"#),
        ("order_by", r#"[{"field":"resource_title"}]"#),
        ("include_total", "true"),
    ];
    let response = mux.ask(COUNTS, &parameters).await;
    let x = counted("/x", [2, 0, 1, 1]);
    assert_eq!(response.json(), json!([x, counted("/y", [0, 1, 0, 0])]));
    assert_eq!(response.header("x-records"), Some("2"));
    let columns = r#""status","corrective_change","certname","resource_type","resource_title""#;
    let expected =
        format!(r#"["extract",[{columns}],["=","environment","e"],["group_by",{columns}]]"#);
    assert_eq!(a.queries(EVENTS), [Some(expected)]);
    // The filter is one of the nodes counted.
    let filtered = [
        &parameters[..2],
        &[("counts_filter", r#"[">","failures",1]"#)],
    ]
    .concat();
    assert_eq!(mux.ask(COUNTS, &filtered).await.json(), json!([x]));
}

#[tokio::test]
async fn an_edition_that_knows_corrective_changes_counts_them_apart() {
    let (a, b, mux) = pair().await;
    a.stub
        .on(EVENTS, format!("[{}]", event("success", "n", "/x", "true")));
    let others = [("success", "false"), ("noop", "null"), ("noop", "true")];
    let others = others.map(|(status, corrective)| event(status, "n", "/x", corrective));
    b.stub.on(EVENTS, format!("[{}]", others.join(",")));
    let parameters = [("summarize_by", "resource"), ("count_by", "certname")];
    let row = mux.ask(COUNTS, &parameters).await.json();
    assert_eq!(
        row,
        json!([{
            "failures": 0, "skips": 0, "intentional_successes": 1, "corrective_successes": 1,
            "intentional_noops": 1, "corrective_noops": 1,
            "subject_type": "resource", "subject": {"type": "File", "title": "/x"},
        }])
    );
}

#[tokio::test]
async fn t29_summaries_count_subjects_of_all_backends_once() {
    let (a, b, mux) = pair().await;
    let rows = |titles: &[(&str, [u32; 4])]| {
        json!(
            titles
                .iter()
                .map(|(title, counts)| counted(title, *counts))
                .collect::<Vec<_>>()
        )
        .to_string()
    };
    let of_a = rows(&[("/x", [1, 0, 2, 0]), ("/y", [0, 0, 1, 0])]);
    let of_b = rows(&[("/x", [1, 0, 0, 0]), ("/z", [3, 0, 0, 1])]);
    for (stub, rows) in [(&a.stub, of_a), (&b.stub, of_b)] {
        stub.makes(COUNTS, move |seen| {
            let by_resource = seen.param("summarize_by").as_deref() == Some("resource");
            Answer::json(if by_resource { &*rows } else { "[]" })
        });
    }
    let both = [("summarize_by", "certname,resource")];
    let nothing = json!({"summarize_by": "certname", "failures": 0, "skips": 0, "successes": 0,
        "noops": 0, "total": 0});
    let resources = json!({"summarize_by": "resource", "failures": 2, "skips": 0, "successes": 2,
        "noops": 1, "total": 3});
    let response = mux.ask(TOTALS, &both).await;
    assert_eq!(response.json(), json!([nothing, resources]));
    assert_eq!(response.backends(), Some("2/2"));
    // T30: one failure here and one there are two.
    let filtered = [
        ("summarize_by", "resource"),
        ("counts_filter", r#"[">=","failures",2]"#),
    ];
    let row = json!({"summarize_by": "resource", "failures": 2, "skips": 0, "successes": 1,
        "noops": 1, "total": 2});
    assert_eq!(mux.ask(TOTALS, &filtered).await.json(), json!([row]));
    let asked = a.stub.seen();
    let asked = asked.iter().filter(|it| it.target.starts_with(COUNTS));
    assert!(asked.clone().all(|it| it.param("counts_filter").is_none()));
}

#[tokio::test]
async fn a_backend_without_one_of_the_summaries_is_in_none_of_them() {
    let (a, b, mux) = pair().await;
    let row = |title: &str| json!([counted(title, [1, 0, 0, 0])]).to_string();
    a.stub.on(COUNTS, row("/x"));
    let of_b = row("/z");
    b.stub.makes(COUNTS, move |seen| {
        let by_resource = seen.param("summarize_by").as_deref() == Some("resource");
        Answer::json(if by_resource { &*of_b } else { "[{" })
    });
    let both = [("summarize_by", "resource,certname")];
    let response = mux.ask(TOTALS, &both).await;
    let totals: Vec<_> = response.json().as_array().unwrap().clone();
    assert!(totals.iter().all(|row| row["total"] == 1), "{totals:?}");
    assert_eq!(response.backends(), Some("1/2"));
    assert_eq!(response.missing(), ["pdb-b; reason=damaged"]);
}

#[tokio::test]
async fn summaries_of_different_backends_are_not_put_together() {
    let (a, b, mux) = pair().await;
    for (stub, fails) in [(&a.stub, "resource"), (&b.stub, "certname")] {
        stub.makes(COUNTS, move |seen| {
            if seen.param("summarize_by").as_deref() == Some(fails) {
                Answer::status(500, "ill")
            } else {
                Answer::json("[]")
            }
        });
    }
    let both = [("summarize_by", "resource,certname")];
    let response = mux.ask(TOTALS, &both).await;
    assert_eq!((response.status, response.text()), (500, "ill"));
}

#[tokio::test]
async fn what_puppetdb_refuses_reaches_it_as_it_came() {
    let (a, b, mux) = pair().await;
    for (path, parameters) in [
        (TOTALS, &[("summarize_by", "certname, resource")][..]),
        (TOTALS, &[("summarize_by", "certname"), ("limit", "1")]),
        (
            TOTALS,
            &[("summarize_by", "certname"), ("counts_filter", "[1")],
        ),
        (TOTALS, &[]),
        (COUNTS, &[("summarize_by", "x"), ("count_by", "certname")]),
        (
            COUNTS,
            &[
                ("summarize_by", "certname"),
                ("count_by", "certname"),
                ("x", "y"),
            ],
        ),
        (
            COUNTS,
            &[
                ("summarize_by", "certname"),
                ("count_by", "certname"),
                ("order_by", r#"[{"field":"subject"}]"#),
            ],
        ),
    ] {
        for stub in [&a.stub, &b.stub] {
            stub.on(path, Answer::status(400, "no"));
        }
        let response = mux.ask(path, parameters).await;
        assert_eq!(
            (response.status, response.text()),
            (400, "no"),
            "{parameters:?}"
        );
    }
}
