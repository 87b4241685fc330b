use std::time::Duration;

use ureq::http::{HeaderMap, HeaderValue};

use super::super::ask::Ask;
use super::*;
use crate::http::Client;

fn answer(status: u16, total: Option<&'static str>, body: &str) -> Answer {
    let mut headers = HeaderMap::new();
    let kind = if status < 400 {
        "application/json;charset=utf-8"
    } else {
        "text/plain;charset=utf-8"
    };
    headers.insert("content-type", HeaderValue::from_static(kind));
    if let Some(total) = total {
        headers.insert("x-records", HeaderValue::from_static(total));
    }
    Answer {
        asked: String::new(),
        status,
        headers,
        body: body.to_owned(),
        took: Duration::ZERO,
    }
}

/// What differs between two 200s, where the union's whole is `whole`.
fn differ(line: &str, union: &str, got: &str, whole: &str) -> Vec<What> {
    let ask = Ask::parse(line).unwrap();
    // Nobody is asked: the questions here are AST.
    let shape = Shape::of(&ask, &Client::new("http://127.0.0.1:9")).unwrap();
    let found = compare(
        &shape,
        &answer(200, None, union),
        &answer(200, None, got),
        || Ok(answer(200, None, whole)),
    );
    found.unwrap().iter().map(|one| one.what).collect()
}

const ORDERED: &str = r#"nodes ? order_by=[{"field":"k"}]"#;
const CUT: &str = r#"nodes ? order_by=[{"field":"k"}] & limit=2"#;

#[test]
fn rows_are_a_multiset_and_numbers_keep_their_text() {
    for (union, got, what) in [
        (
            r#"[{"a":1,"b":2},{"a":2}]"#,
            r#"[{"a":2},{"b":2,"a":1}]"#,
            vec![],
        ),
        ("[1,1,2]", "[1,2,2]", vec![What::Rows]),
        ("[1,2]", "[1]", vec![What::Rows]),
        (r#"[{"a":1}]"#, r#"[{"a":1.0}]"#, vec![What::Rows]),
        (r#"[{"a":null}]"#, "[{}]", vec![What::Rows]),
        (
            r#"[{"a":9007199254740993}]"#,
            r#"[{"a":9007199254740992}]"#,
            vec![What::Rows],
        ),
        ("[]", "{}", vec![What::Body]),
        ("[]", "[ ]\n", vec![What::Body]),
        ("[]", "[", vec![What::Body]),
    ] {
        assert_eq!(differ("nodes", union, got, union), what, "{union} {got}");
    }
}

#[test]
fn an_asked_order_is_held_up_to_ties() {
    let union = r#"[{"k":1,"n":"a"},{"k":1,"n":"b"},{"k":2,"n":"c"}]"#;
    for (got, what) in [
        (
            r#"[{"k":1,"n":"b"},{"k":1,"n":"a"},{"k":2,"n":"c"}]"#,
            vec![],
        ),
        (
            r#"[{"k":1,"n":"a"},{"k":2,"n":"c"},{"k":1,"n":"b"}]"#,
            vec![What::Order],
        ),
    ] {
        assert_eq!(differ(ORDERED, union, got, union), what, "{got}");
    }
}

#[test]
fn a_tie_at_the_cut_may_show_any_of_the_tied() {
    let whole = r#"[{"k":1,"n":"a"},{"k":2,"n":"b"},{"k":2,"n":"c"},{"k":3,"n":"d"}]"#;
    let union = r#"[{"k":1,"n":"a"},{"k":2,"n":"b"}]"#;
    for (got, what) in [
        (r#"[{"k":1,"n":"a"},{"k":2,"n":"c"}]"#, vec![]),
        (r#"[{"k":1,"n":"a"},{"k":3,"n":"d"}]"#, vec![What::Order]),
        (r#"[{"k":1,"n":"a"},{"k":2,"n":"x"}]"#, vec![What::Rows]),
        (r#"[{"k":1,"n":"a"}]"#, vec![What::Order, What::Rows]),
    ] {
        assert_eq!(differ(CUT, union, got, whole), what, "{got}");
    }
}

#[test]
fn a_window_without_an_order_shows_as_many_of_the_whole() {
    let whole = r#"["a","b","c"]"#;
    for (got, what) in [
        (r#"["c","a"]"#, vec![]),
        (r#"["c","c"]"#, vec![What::Rows]),
        (r#"["c"]"#, vec![What::Rows]),
    ] {
        assert_eq!(
            differ("nodes ? limit=2", r#"["a","b"]"#, got, whole),
            what,
            "{got}"
        );
    }
}

#[test]
fn receipt_times_differ_but_not_whether_there_is_one_nor_their_order() {
    let union = r#"[{"n":"a","facts_timestamp":"2026-01-01T00:00:00.000Z"}]"#;
    let other = r#"[{"n":"a","facts_timestamp":"2026-02-02T00:00:00.000Z"}]"#;
    let none = r#"[{"n":"a","facts_timestamp":null}]"#;
    assert_eq!(differ("nodes", union, other, union), []);
    assert_eq!(differ("nodes", union, none, union), [What::Rows]);
    // Of another entity the column would be the agent's time.
    assert_eq!(differ("events", union, other, union), [What::Rows]);
    let by_receipt = r#"nodes ? order_by=[{"field":"facts_timestamp"}]"#;
    let rows = r#"[{"facts_timestamp":"2026-01-02"},{"facts_timestamp":"2026-01-01"}]"#;
    assert_eq!(differ(by_receipt, rows, rows, rows), [What::Order]);
}

#[test]
fn the_rows_of_a_log_keep_their_order_and_gathered_lists_have_none() {
    assert_eq!(differ("reports/h/logs", "[1,2]", "[2,1]", ""), [What::Rows]);
    let list = |inner: &str| format!(r#"[{{"resources":{{"href":"x","data":{inner}}}}}]"#);
    let (one, other) = (
        list(r#"[{"t":1,"tags":["a","b"]},{"t":2}]"#),
        list(r#"[{"t":2},{"tags":["b","a"],"t":1}]"#),
    );
    assert_eq!(differ("catalogs", &one, &other, &one), []);
    assert_eq!(differ("catalogs", &one, &list("[]"), &one), [What::Rows]);
}

#[test]
fn status_media_type_and_total_count_and_words_of_a_refusal_do_not() {
    let shape = Shape::of(
        &Ask::parse("nodes").unwrap(),
        &Client::new("http://127.0.0.1:9"),
    )
    .unwrap();
    let words = |union: &Answer, got: &Answer| -> Vec<What> {
        let found = compare(&shape, union, got, || unreachable!("there is no window"));
        found.unwrap().iter().map(|one| one.what).collect()
    };
    let rows = answer(200, Some("3"), "[]");
    assert_eq!(words(&rows, &answer(200, Some("4"), "[]")), [What::Total]);
    assert_eq!(words(&rows, &answer(200, None, "[]")), [What::Total]);
    assert_eq!(words(&rows, &answer(502, None, "")), [What::Status]);
    assert_eq!(words(&answer(400, None, "a"), &answer(400, None, "b")), []);
    let mut plain = answer(200, Some("3"), "[]");
    plain
        .headers
        .insert("content-type", HeaderValue::from_static("text/plain"));
    assert_eq!(words(&rows, &plain), [What::ContentType]);
}
