//! Aggregates over HTTP (R106-R142); their arithmetic is tested where it is done.

use serde_json::json;

use crate::harness::Pdbmux;
use crate::stub::{Answer, Stub};

const NODES: &str = "/pdb/query/v4/nodes";
const RESOURCES: &str = "/pdb/query/v4/resources";
const BY_TYPE: &str = r#"["extract",["type",["function","count"]],["group_by","type"]]"#;

async fn pair(a: &str, b: &str) -> (Stub, Stub, Pdbmux) {
    let (first, second) = (Stub::start().await, Stub::start().await);
    first.otherwise(a);
    second.otherwise(b);
    let mux = Pdbmux::start(&[&first, &second]).await;
    (first, second, mux)
}

#[tokio::test]
async fn r119_r120_an_average_is_asked_as_sum_and_count() {
    let (a, _b, mux) = pair(r#"[{"sum":10,"count":1}]"#, r#"[{"sum":18,"count":9}]"#).await;
    let query = r#"["extract",[["function","avg","line"]]]"#;
    let response = mux.ask(RESOURCES, &[("query", query)]).await;
    assert_eq!(response.json(), json!([{"avg": 2.8}]));
    let forwarded = a.only().param("query").unwrap();
    assert!(
        forwarded.contains(r#"["function","sum","line"]"#),
        "{forwarded}"
    );
    assert!(
        forwarded.contains(r#"["function","count","line"]"#),
        "{forwarded}"
    );
}

#[tokio::test]
async fn r125_r131_to_r134_what_cannot_be_combined_is_refused_by_name() {
    let a = Stub::start().await;
    let mux = Pdbmux::start(&[&a]).await;
    for (columns, culprit) in [
        (
            r#"["function","avg","line"],["function","sum","line"]"#,
            "avg",
        ),
        (r#"["function","avg","line"],["function","count"]"#, "avg"),
        (
            r#"["function","max","line"],["function","max","file"]"#,
            "max",
        ),
        (r#""count",["function","count"]"#, "count"),
        (r#"["function","median","line"]"#, "median"),
    ] {
        for path in [
            NODES,
            RESOURCES,
            "/pdb/query/v4/facts",
            "/pdb/query/v4/facts/os",
        ] {
            let query = format!(r#"["extract",[{columns}]]"#);
            let response = mux.ask(path, &[("query", &query)]).await;
            assert!(response.refusal().contains(culprit), "{}", response.text());
        }
    }
    assert_eq!(a.targets(), [""; 0]);
}

#[tokio::test]
async fn r135_to_r137_r148_rows_are_ordered_cut_and_counted_after_the_fold() {
    let (a, _b, mux) = pair(
        r#"[{"type":"File","count":5},{"type":"Exec","count":1}]"#,
        r#"[{"type":"User","count":4},{"type":"Exec","count":3}]"#,
    )
    .await;
    let order = r#"[{"field":"count","order":"desc"},{"field":"type"}]"#;
    let parameters = [
        ("query", BY_TYPE),
        ("order_by", order),
        ("limit", "2"),
        ("offset", "1"),
        ("include_total", "true"),
    ];
    let response = mux.ask(RESOURCES, &parameters).await;
    assert_eq!(
        response.json(),
        json!([{"type":"Exec","count":4},{"type":"User","count":4}])
    );
    assert_eq!(response.header("x-records"), Some("3"));
    let seen = a.only();
    for name in ["limit", "offset"] {
        assert_eq!(seen.param(name), None, "{name} was sent upstream");
    }
}

#[tokio::test]
async fn r138_other_resource_queries_pass_through() {
    let (_a, b, mux) = pair("[1]", "[2]").await;
    for query in [
        "",
        r#"["=","type","File"]"#,
        r#"["extract",["type"]]"#,
        "resources{}",
    ] {
        assert_eq!(mux.ask(RESOURCES, &[("query", query)]).await.ok(), "[1]");
    }
    assert_eq!(b.targets(), [""; 0]);
}

#[tokio::test]
async fn r140_survivors_are_combined() {
    let (a, _b, mux) = pair(r#"[{"count":2}]"#, r#"[{"count":3}]"#).await;
    let query = [("query", r#"["extract",[["function","count"]]]"#)];
    for trouble in [
        Answer::reset(),
        Answer::status(500, "oh"),
        Answer::json("{}"),
    ] {
        a.otherwise(trouble);
        let response = mux.ask(NODES, &query).await;
        assert_eq!(response.json(), json!([{"count": 3}]));
        assert_eq!(response.backends(), Some("1/2"));
    }
}

#[tokio::test]
async fn r141_aggregates_are_asked_every_time() {
    let (a, _b, mux) = pair(r#"[{"count":2}]"#, r#"[{"count":3}]"#).await;
    let query = [("query", r#"["extract",[["function","count"]]]"#)];
    for path in [
        NODES,
        RESOURCES,
        "/pdb/query/v4/facts",
        "/pdb/query/v4/facts/os",
    ] {
        let before = a.seen().len();
        for _ in 0..2 {
            let response = mux.ask(path, &query).await;
            assert_eq!(
                (response.ok(), response.header("x-cache")),
                (r#"[{"count":5}]"#, None)
            );
        }
        assert_eq!(a.seen().len(), before + 2);
    }
}
