//! `/event-counts` and `/aggregate-event-counts` over HTTP (R105-R110, R137).

use crate::harness::Pdbmux;
use crate::stub::{Answer, Stub};

const COUNTS: &str = "/pdb/query/v4/event-counts";
const SUMMARIES: &str = "/pdb/query/v4/aggregate-event-counts";

async fn pair(path: &str, a: &str, b: &str) -> (Stub, Stub, Pdbmux) {
    let (first, second) = (Stub::start().await, Stub::start().await);
    first.on(path, Answer::counted(70, a));
    second.on(path, Answer::counted(7, b));
    let mux = Pdbmux::start(&[&first, &second]).await;
    (first, second, mux)
}

fn count(failures: u32, title: &str) -> String {
    format!(
        r#"{{"failures":{failures},"subject_type":"resource","subject":{{"type":"File","title":"{title}"}}}}"#
    )
}

fn list(rows: &[String]) -> String {
    format!("[{}]", rows.join(","))
}

#[tokio::test]
async fn r107_r109_one_row_a_subject_with_its_counts_added() {
    let spaced =
        r#"{"failures":2,"subject_type":"resource","subject":{"title": "b","type":"File"}}"#;
    let (a, b) = (
        list(&[count(1, "a"), count(3, "b")]),
        list(&[spaced.to_owned(), count(4, "c")]),
    );
    let (first, _b, mux) = pair(COUNTS, &a, &b).await;
    let parameters = [
        ("summarize_by", "resource"),
        ("query", r#"["=","noop",true]"#),
    ];
    let response = mux.ask(COUNTS, &parameters).await;
    let expected = list(&[count(1, "a"), count(5, "b"), count(4, "c")]);
    assert_eq!(response.ok(), expected);
    assert_eq!(response.backends(), Some("2/2"));
    assert_eq!(response.header("x-records"), None);
    let seen = first.only();
    for (name, value) in parameters {
        assert_eq!(seen.param(name).as_deref(), Some(value), "R005");
    }
}

#[tokio::test]
async fn t40_editions_that_count_otherwise_have_the_union_of_their_columns() {
    let row = |counts: &str| {
        format!(r#"[{{{counts},"subject_type":"certname","subject":{{"title":"n"}}}}]"#)
    };
    let a = row(r#""failures":1,"successes":2"#);
    let b = row(r#""failures":1,"intentional_successes":3"#);
    let (_a, _b, mux) = pair(COUNTS, &a, &b).await;
    let response = mux.ask(COUNTS, &[("summarize_by", "certname")]).await;
    let counts = &response.json()[0];
    for (name, expected) in [
        ("failures", 2),
        ("successes", 2),
        ("intentional_successes", 3),
    ] {
        assert_eq!(counts[name], expected, "{name}");
    }
}

#[tokio::test]
async fn r136_r137_t22_t31_subjects_are_ordered_cut_and_counted_after_the_fold() {
    let a = list(&[count(1, "b"), count(9, "c")]);
    let b = list(&[count(7, "a"), count(2, "b")]);
    let (first, _b, mux) = pair(COUNTS, &a, &b).await;
    let ordered = [
        (r#"[{"field":"resource_title"}]"#, ["a", "b", "c"]),
        (
            r#"[{"field":"resource_title","order":"desc"}]"#,
            ["c", "b", "a"],
        ),
        (r#"[{"field":"failures"}]"#, ["b", "a", "c"]),
        (
            r#"[{"field":"resource_type"},{"field":"failures","order":"desc"}]"#,
            ["c", "a", "b"],
        ),
    ];
    for (order, titles) in ordered {
        let parameters = [
            ("summarize_by", "resource"),
            ("order_by", order),
            ("limit", "2"),
            ("offset", "1"),
            ("include_total", "true"),
        ];
        let response = mux.ask(COUNTS, &parameters).await;
        response.ok();
        let rows = response.json();
        let served: Vec<_> = rows.as_array().unwrap().iter().collect();
        assert_eq!(served.len(), 2);
        for (row, title) in served.iter().zip(&titles[1..]) {
            assert_eq!(row["subject"]["title"], **title, "{order}");
        }
        assert_eq!(response.header("x-records"), Some("3"));
        let seen = first.seen().pop().unwrap();
        assert_eq!(seen.param("order_by").as_deref(), Some(order));
        for name in ["limit", "offset", "include_total"] {
            assert_eq!(seen.param(name), None, "{name} was sent upstream");
        }
    }
}

#[tokio::test]
async fn t30_counts_are_filtered_when_they_are_whole() {
    let a = list(&[count(1, "both"), count(1, "one")]);
    let (first, _b, mux) = pair(COUNTS, &a, &list(&[count(1, "both")])).await;
    let parameters = [
        ("summarize_by", "resource"),
        ("counts_filter", r#"[">","failures",1]"#),
        ("include_total", "true"),
    ];
    let response = mux.ask(COUNTS, &parameters).await;
    assert_eq!(response.ok(), list(&[count(2, "both")]));
    assert_eq!(response.header("x-records"), Some("1"));
    assert_eq!(first.only().param("counts_filter"), None);
}

#[tokio::test]
async fn r108_r110_summaries_are_added_and_their_parameters_are_the_backends_to_refuse() {
    let summary = |by: &str, failures: u32| {
        format!(r#"{{"summarize_by":"{by}","failures":{failures},"total":9}}"#)
    };
    let a = list(&[summary("resource", 1), summary("certname", 2)]);
    let b = list(&[summary("certname", 3)]);
    let (first, second, mux) = pair(SUMMARIES, &a, &b).await;
    let target = format!("{SUMMARIES}?summarize_by=certname,resource");
    let response = mux.get(&target).await;
    let added = r#"{"summarize_by":"certname","failures":5,"total":18}"#;
    assert_eq!(
        response.ok(),
        list(&[summary("resource", 1), added.to_owned()])
    );
    assert_eq!(first.targets(), [target]);
    let words = "Unsupported query parameter 'limit'";
    for stub in [&first, &second] {
        stub.on(SUMMARIES, Answer::status(400, words));
    }
    for parameter in ["limit=x", "order_by=x", "include_total=true", "pretty=true"] {
        let target = format!("{SUMMARIES}?summarize_by=certname&{parameter}");
        let response = mux.get(&target).await;
        assert_eq!((response.status, response.text()), (400, words));
        assert_eq!(first.targets().pop(), Some(target));
    }
}

#[tokio::test]
async fn r140_r142_survivors_are_combined_and_what_is_no_count_is_damage() {
    let text = r#"[{"failures":"1"}]"#;
    for (path, whole) in [
        (COUNTS, list(&[count(1, "a")])),
        (
            SUMMARIES,
            r#"[{"summarize_by":"certname","failures":1}]"#.to_owned(),
        ),
    ] {
        let (a, _b, mux) = pair(path, text, &whole).await;
        for (trouble, reason) in [
            (Answer::json(text), "damaged"),
            (Answer::status(503, "oh"), "status-503"),
        ] {
            a.on(path, trouble);
            let response = mux.get(path).await;
            assert_eq!(response.ok(), whole);
            assert_eq!(response.backends(), Some("1/2"), "{path}");
            assert_eq!(response.missing(), [format!("pdb-a; reason={reason}")]);
        }
    }
}

#[tokio::test]
async fn t64_pretty_counts_are_laid_out_here() {
    let (a, _b, mux) = pair(COUNTS, &list(&[count(1, "a")]), "[]").await;
    let response = mux
        .ask(COUNTS, &[("summarize_by", "resource"), ("pretty", "true")])
        .await;
    let expected = concat!(
        "[ {\n  \"failures\" : 1,\n  \"subject_type\" : \"resource\",\n  \"subject\" : {\n",
        "    \"type\" : \"File\",\n    \"title\" : \"a\"\n  }\n} ]"
    );
    assert_eq!(response.ok(), expected);
    assert_eq!(a.only().param("pretty"), None);
}
