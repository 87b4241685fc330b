use serde_json::json;

use super::backend::{Backend, exact};
use crate::stub::{Answer, Seen};

const REPORTS: &str = "/pdb/query/v4/reports";
const COUNT: &str = r#"["extract",[["function","count"]]]"#;

/// Answers for the reports of the one node `n`, each a hash and the minute it was made in.
fn reports(backend: &Backend, reports: &'static [(&str, u32)]) {
    let time = |minute: u32| format!("2026-01-01T00:{minute:02}:00.000Z");
    backend.stub.makes(REPORTS, move |seen: &Seen| {
        let query = seen.param("query").unwrap_or_default();
        let minutes = reports.iter().map(|(_, minute)| *minute);
        let body = if query.contains("\"min\"") {
            let (first, last) = (minutes.clone().min().unwrap(), minutes.max().unwrap());
            json!([{
                "certname": "n", "count": reports.len(),
                "min": time(first), "max": time(last), "max_2": time(last),
            }])
        } else if query.starts_with(r#"["extract",["certname","hash"]"#) {
            let rows = reports
                .iter()
                .map(|(hash, _)| json!({"certname": "n", "hash": hash}));
            rows.collect()
        } else {
            let is_left_out = |hash: &str| {
                query.contains(&format!("\"{hash}\""))
                    || query.contains(r#"["not",["or",["in","certname""#)
            };
            let left = reports.iter().filter(|(hash, _)| !is_left_out(hash));
            if query.contains("\"count\"") {
                json!([{"count": left.count()}])
            } else {
                left.map(|(hash, _)| json!({"hash": hash})).collect()
            }
        };
        Answer::json(body.to_string())
    });
}

#[tokio::test]
async fn a_report_that_two_backends_have_counts_once() {
    for (in_a, in_b, expected) in [
        (&[("w", 1), ("x", 2)][..], &[("y", 3)][..], 3),
        (&[("w", 1), ("x", 2)], &[("x", 2), ("y", 3)], 3),
        (&[("w", 1), ("x", 2)], &[("w", 1), ("x", 2), ("y", 3)], 3),
        (&[("w", 1), ("z", 4)], &[("y", 3)], 3),
    ] {
        let a = Backend::holding(&[("n", 1)]).await;
        let b = Backend::holding(&[("n", 9)]).await;
        reports(&a, in_a);
        reports(&b, in_b);
        let mux = exact(&[&a, &b]).await;
        let counted = mux.ask(REPORTS, &[("query", COUNT)]).await.json();
        assert_eq!(counted, json!([{"count": expected}]), "{in_a:?} {in_b:?}");
        let listed = mux.ask(REPORTS, &[]).await.json();
        assert_eq!(listed.as_array().unwrap().len(), expected);
    }
}

#[tokio::test]
async fn the_latest_reports_are_their_owners_and_need_no_look_at_history() {
    let a = Backend::holding(&[("n", 1)]).await;
    let b = Backend::holding(&[("n", 9)]).await;
    reports(&a, &[("w", 1)]);
    reports(&b, &[("y", 3)]);
    let mux = exact(&[&a, &b]).await;
    let latest = r#"["=", "latest_report?", true]"#;
    assert_eq!(mux.ask(REPORTS, &[("query", latest)]).await.status, 200);
    let asked = a.queries(REPORTS);
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert!(
        asked[0]
            .as_ref()
            .unwrap()
            .starts_with(r#"["and",["=","certname",""],"#)
    );
}

#[tokio::test]
async fn a_backend_that_cannot_tell_its_history_is_missing() {
    let a = Backend::holding(&[("n", 1)]).await;
    let b = Backend::holding(&[("n", 9)]).await;
    reports(&a, &[("w", 1)]);
    b.stub.on(REPORTS, Answer::status(500, "ill"));
    let mux = exact(&[&a, &b]).await;
    let response = mux.ask(REPORTS, &[("query", COUNT)]).await;
    assert_eq!(response.json(), json!([{"count": 1}]));
    assert_eq!(
        response.header("x-pdbmux-missing"),
        Some("pdb-b; reason=unlisted")
    );
}
