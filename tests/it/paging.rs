//! Order and window of merged sets (R143-R154, rulings 5-8).

use serde_json::Value;

use crate::facts::fact;
use crate::harness::Pdbmux;
use crate::stub::{Answer, Seen, Stub};

const NODES: &str = "/pdb/query/v4/nodes";
const FACTS: &str = "/pdb/query/v4/facts";
const OLD: &str = "2024-05-01T00:00:00Z";
const NEW: &str = "2024-05-02T00:00:00Z";

/// A backend of these nodes that pages as PuppetDB does, ordered by certname.
async fn paging(nodes: &[(&str, u32)]) -> Stub {
    let stub = Stub::start().await;
    let mut nodes: Vec<_> = nodes
        .iter()
        .map(|(certname, day)| {
            (
                (*certname).to_owned(),
                format!("2024-05-{day:02}T00:00:00.000Z"),
            )
        })
        .collect();
    nodes.sort();
    stub.makes(NODES, move |seen: &Seen| {
        let limit = seen
            .param("limit")
            .map_or(usize::MAX, |limit| limit.parse().unwrap());
        assert_eq!(seen.param("offset"), None, "R146");
        let rows: Vec<_> = nodes
            .iter()
            .take(limit)
            .map(|(certname, at)| {
                format!(r#"{{"certname":"{certname}","report_timestamp":"{at}"}}"#)
            })
            .collect();
        Answer::counted(nodes.len() as u64, format!("[{}]", rows.join(",")))
    });
    stub
}

async fn certnames(mux: &Pdbmux, parameters: &[(&str, &str)]) -> Vec<String> {
    let response = mux.ask(NODES, parameters).await;
    response.ok();
    let records = response.json();
    let name = |record: &Value| record["certname"].as_str().unwrap().to_owned();
    records.as_array().unwrap().iter().map(name).collect()
}

#[tokio::test]
async fn r143_r144_the_merged_set_is_sorted_stably() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    a.on(
        NODES,
        r#"[{"certname":"n1","x":2,"y":"b"},{"certname":"n2","x":1,"y":"b"}]"#,
    );
    b.on(
        NODES,
        r#"[{"certname":"n3","x":10,"y":"a"},{"certname":"n4","x":1,"y":"b"}]"#,
    );
    let mux = Pdbmux::start(&[&a, &b]).await;
    for (order, expected) in [
        (r#"[{"field":"x"}]"#, ["n2", "n4", "n1", "n3"]),
        (
            r#"[{"field":"x","order":"desc"}]"#,
            ["n3", "n1", "n2", "n4"],
        ),
        (
            r#"[{"field":"y","order":"desc"},{"field":"x","order":"asc"}]"#,
            ["n2", "n4", "n1", "n3"],
        ),
        (
            r#"[{"field":"certname","order":"DESC"}]"#,
            ["n4", "n3", "n2", "n1"],
        ),
        ("[]", ["n1", "n2", "n3", "n4"]),
        ("", ["n1", "n2", "n3", "n4"]),
    ] {
        assert_eq!(
            certnames(&mux, &[("order_by", order)]).await,
            expected,
            "{order}"
        );
    }
}

#[tokio::test]
async fn r145_missing_sorts_first_and_null_as_in_puppetdb() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    a.on(
        NODES,
        r#"[{"certname":"null","x":null},{"certname":"one","x":1}]"#,
    );
    b.on(NODES, r#"[{"certname":"none"},{"certname":"two","x":2}]"#);
    let mux = Pdbmux::start(&[&a, &b]).await;
    let up = [("order_by", r#"[{"field":"x"}]"#)];
    assert_eq!(certnames(&mux, &up).await, ["none", "one", "two", "null"]);
    let down = certnames(&mux, &[("order_by", r#"[{"field":"x","order":"desc"}]"#)]).await;
    let place = |name: &str| down.iter().position(|known| known == name).unwrap();
    assert!(
        place("null") < place("two") && place("two") < place("one"),
        "{down:?}"
    );
}

#[tokio::test]
async fn r146_r147_backends_are_asked_for_the_whole_window_and_it_is_cut_here() {
    let a = paging(&[("n1", 1), ("n3", 1), ("n5", 1), ("n7", 1)]).await;
    let b = paging(&[("n2", 1), ("n4", 1), ("n6", 1)]).await;
    let mux = Pdbmux::start(&[&a, &b]).await;
    let page = [("limit", "2"), ("offset", "1"), ("include_total", "true")];
    assert_eq!(certnames(&mux, &page).await, ["n2", "n3"]);
    for stub in [&a, &b] {
        let seen = stub.only();
        assert_eq!(seen.param("limit").as_deref(), Some("3"));
        assert_eq!(seen.param("include_total").as_deref(), Some("true"));
        // Pages are cut from one total order, upstream too (T15).
        assert!(seen.param("order_by").unwrap().contains("certname"));
    }
    assert_eq!(certnames(&mux, &[("offset", "5")]).await, ["n6", "n7"]);
    assert_eq!(
        a.seen().pop().unwrap().param("limit"),
        None,
        "an offset alone needs them all"
    );
    assert_eq!(
        certnames(&mux, &[("offset", "50"), ("limit", "5")]).await,
        [""; 0]
    );
}

#[tokio::test]
async fn r149_totals_are_added_unless_a_backend_sent_none() {
    let (a, b) = (
        paging(&[("n1", 1), ("n2", 1)]).await,
        paging(&[("n2", 2)]).await,
    );
    let mux = Pdbmux::start(&[&a, &b]).await;
    let page = [("limit", "1"), ("include_total", "true")];
    assert_eq!(mux.ask(NODES, &page).await.header("x-records"), Some("3"));
    b.on(NODES, "[]");
    assert_eq!(
        mux.ask(NODES, &page).await.header("x-records"),
        None,
        "T27: it would be wrong"
    );
}

#[tokio::test]
async fn r150_to_r152_malformed_paging_is_refused_before_anyone_is_asked() {
    let a = Stub::start().await;
    let mux = Pdbmux::start(&[&a]).await;
    for (name, values) in [
        (
            "limit",
            &[
                "0",
                "-1",
                "x",
                "",
                "1.5",
                "1e3",
                " 1",
                "99999999999999999999",
            ][..],
        ),
        ("offset", &["-1", "x", "", "1.5", "99999999999999999999"]),
        (
            "order_by",
            &[
                "certname",
                "[1]",
                r#"["certname"]"#,
                r#"[{"order":"asc"}]"#,
                r#"[{"field":"x","order":"up"}]"#,
                "[{",
            ],
        ),
    ] {
        for value in values {
            for path in [
                NODES,
                FACTS,
                "/pdb/query/v4/facts/os",
                "/pdb/query/v4/facts/pdbmux_source",
            ] {
                let response = mux.ask(path, &[(name, value)]).await;
                let sentence = response.refusal();
                assert!(sentence.contains(name), "{name}={value}: {sentence}");
            }
        }
    }
    assert_eq!(a.targets(), [""; 0]);
}

#[tokio::test]
async fn r153_pages_hold_each_record_once() {
    // The nodes of the second third are shared, and each backend loses every other of them.
    let names: Vec<_> = (0..30).map(|n| format!("n{n:02}")).collect();
    let hold = |range: std::ops::Range<usize>, shift: u32| -> Vec<(&str, u32)> {
        let days = (shift..).map(|n| 1 + n % 2);
        names[range].iter().map(|name| &**name).zip(days).collect()
    };
    let (a, b) = (
        paging(&hold(0..20, 0)).await,
        paging(&hold(10..30, 1)).await,
    );
    let mux = Pdbmux::start(&[&a, &b]).await;
    for size in [1, 3, 7, 30, 100] {
        let mut all = Vec::new();
        for page in 0..=30 / size {
            let (limit, offset) = (size.to_string(), (page * size).to_string());
            all.extend(certnames(&mux, &[("limit", &limit), ("offset", &offset)]).await);
        }
        assert_eq!(all, names, "pages of {size}");
    }
}

/// A backend that holds facts of these names for each of these nodes, and pages and orders them as
/// PuppetDB does.
async fn paging_facts(nodes: &[(&str, &str)], names: &[&str]) -> Stub {
    let stub = Stub::start().await;
    let records = |name: &&str| {
        let record = |(certname, _): &(&str, &str)| fact(certname, name, "x");
        nodes.iter().map(record).collect::<Vec<_>>()
    };
    let by_name: Vec<_> = names.iter().flat_map(records).collect();
    let mut by_certname = by_name.clone();
    by_certname.sort();
    stub.fresh(nodes).makes(FACTS, move |seen: &Seen| {
        let order = seen.param("order_by").unwrap_or_default();
        if order.starts_with(r#"[{"field":"name""#) {
            page(&by_name, seen)
        } else {
            page(&by_certname, seen)
        }
    });
    stub
}

/// The first of `rows`, as far as the request's limit.
fn page(rows: &[String], seen: &Seen) -> Answer {
    let limit = seen.param("limit");
    let limit = limit.map_or(rows.len(), |limit| limit.parse().unwrap());
    Answer::json(format!("[{}]", rows[..limit.min(rows.len())].join(",")))
}

#[tokio::test]
async fn r153_t17_pages_of_facts_hold_each_record_once_the_synthetic_ones_too() {
    // Where the second owns a node it has one fact of it; the first's four are dropped, so windows
    // run short and more must be asked for (ruling 5, T17).
    let a = paging_facts(
        &[("n1", OLD), ("n2", NEW), ("n3", OLD), ("n5", NEW)],
        &["a", "b", "c", "d"],
    )
    .await;
    let b = paging_facts(
        &[("n1", NEW), ("n2", OLD), ("n3", NEW), ("n4", OLD)],
        &["os"],
    )
    .await;
    let mux = Pdbmux::start(&[&a, &b]).await;
    for order in [
        r#"[{"field":"certname"},{"field":"name"}]"#,
        r#"[{"field":"name"},{"field":"certname"}]"#,
    ] {
        let all = mux.ask(FACTS, &[("order_by", order)]).await.json();
        let all = all.as_array().unwrap();
        assert_eq!(all.len(), 16);
        for size in [1, 3, 5, 16] {
            let mut paged = Vec::new();
            for page in 0..=16 / size {
                let (limit, offset) = (size.to_string(), (page * size).to_string());
                let page = [("limit", &*limit), ("offset", &offset), ("order_by", order)];
                let rows = mux.ask(FACTS, &page).await.json();
                paged.extend(rows.as_array().unwrap().iter().cloned());
            }
            assert_eq!(&paged, all, "pages of {size} by {order}");
        }
    }
}

#[tokio::test]
async fn ruling_5_a_window_left_short_by_the_merge_is_filled() {
    let a = paging_facts(
        &[("n1", OLD), ("n2", NEW), ("n3", NEW)],
        &["a", "b", "c", "d"],
    )
    .await;
    let b = paging_facts(&[("n1", NEW), ("n2", OLD), ("n3", OLD)], &["os"]).await;
    let mux = Pdbmux::with(&[&a, &b], |config| config.source_fact_enabled = false).await;
    let window = mux.ask(FACTS, &[("limit", "3")]).await;
    // All three rows that the first backend sends at first are of a node that it lost.
    let expected = [
        fact("n1", "os", "x"),
        fact("n2", "a", "x"),
        fact("n2", "b", "x"),
    ];
    assert_eq!(window.ok(), format!("[{}]", expected.join(",")));
}

#[tokio::test]
async fn t18_a_stale_copy_inside_a_window_is_not_served() {
    // By ascending time the stale copy of n1 leads its backend while the fresh one is far behind.
    let (a, b) = (Stub::start().await, Stub::start().await);
    let node = |certname: &str, at: &str| {
        format!(r#"{{"certname":"{certname}","report_timestamp":"{at}"}}"#)
    };
    let first = [
        node("n1", "2024-05-01T00:00:00Z"),
        node("n2", "2024-05-03T00:00:00Z"),
    ];
    let second = [
        node("n3", "2024-05-02T00:00:00Z"),
        node("n1", "2024-05-04T00:00:00Z"),
    ];
    a.makes(NODES, move |seen: &Seen| page(&first, seen));
    b.makes(NODES, move |seen: &Seen| page(&second, seen));
    let mux = Pdbmux::start(&[&a, &b]).await;
    let first = [
        ("order_by", r#"[{"field":"report_timestamp"}]"#),
        ("limit", "1"),
    ];
    assert_eq!(certnames(&mux, &first).await, ["n3"]);
}

#[tokio::test]
async fn ruling_5_a_backend_that_fails_when_asked_again_is_missing_and_not_half_used() {
    let a = Stub::start().await;
    a.makes(NODES, |seen: &Seen| match seen.param("limit").as_deref() {
        Some("1") => {
            Answer::json(r#"[{"certname":"n1","report_timestamp":"2024-05-01T00:00:00Z"}]"#)
        }
        _ => Answer::status(500, "oh"),
    });
    let b = paging(&[("n1", 9), ("n2", 9)]).await;
    let mux = Pdbmux::start(&[&a, &b]).await;
    let order = [
        (
            "order_by",
            r#"[{"field":"report_timestamp","order":"asc"}]"#,
        ),
        ("limit", "1"),
    ];
    let response = mux.ask(NODES, &order).await;
    assert!(response.ok().contains(r#""pdbmux_source":"pdb-b""#));
    assert_eq!(response.missing(), ["pdb-a; reason=status-500"]);
}

#[tokio::test]
async fn r154_without_a_limit_all_are_served() {
    let (a, b) = (
        paging(&[("n1", 1), ("n2", 1)]).await,
        paging(&[("n3", 1)]).await,
    );
    let mux = Pdbmux::start(&[&a, &b]).await;
    assert_eq!(certnames(&mux, &[]).await, ["n1", "n2", "n3"]);
    assert_eq!(a.targets(), [NODES]);
}

#[tokio::test]
async fn t11_a_sort_column_outside_the_projection_is_asked_for_and_taken_out() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    b.on(NODES, "[]");
    a.on(
        NODES,
        r#"[{"certname":"n1","report_timestamp":"2024-05-01T00:00:00Z"},{"certname":"n2","report_timestamp":"2024-05-02T00:00:00Z"}]"#,
    );
    let mux = Pdbmux::start(&[&a, &b]).await;
    let parameters = [
        ("query", r#"["extract",["certname"]]"#),
        (
            "order_by",
            r#"[{"field":"report_timestamp","order":"desc"}]"#,
        ),
    ];
    let response = mux.ask(NODES, &parameters).await;
    assert_eq!(response.ok(), r#"[{"certname":"n2"},{"certname":"n1"}]"#);
}
