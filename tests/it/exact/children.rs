//! Routes below a node, a catalog, an environment, a producer or a report.

use super::estate::{asked, estate};
use crate::stub::{Answer, Stub};

fn nothing(kind: &str) -> Answer {
    let headers = [("Content-Type", "application/json;charset=utf-8")];
    let body = format!("{{\n  \"error\" : \"No information is known about {kind} n\"\n}}");
    Answer::with(404, &headers, body)
}

fn both(stubs: &[Stub; 2], path: &str, answers: [Answer; 2]) {
    for (stub, answer) in stubs.iter().zip(answers) {
        stub.on(path, answer);
    }
}

const CHILDREN: [&str; 8] = [
    "/pdb/query/v4/nodes/n",
    "/pdb/query/v4/nodes/n/facts",
    "/pdb/query/v4/factsets/n",
    "/pdb/query/v4/catalogs/n",
    "/pdb/query/v4/catalogs/n/resources/File",
    "/pdb/query/v4/package-inventory/n",
    "/pdb/query/v4/producers/p/factsets/n",
    "/pdb/query/v4/producers/p/catalogs/n/resources",
];

#[tokio::test]
async fn the_owners_answer_is_final_also_its_404() {
    let (stubs, mux) = estate([&[("n", 1)], &[("n", 2)]]).await;
    for path in CHILDREN {
        both(&stubs, path, [Answer::json("[1]"), nothing("node")]);
        let response = mux.get(path).await;
        assert_eq!(response.status, 404, "{path}");
        assert!(response.text().contains("No information"), "{path}");
    }
    assert_eq!(asked(&stubs[0]), [""; 0]);
}

#[tokio::test]
async fn the_next_holder_answers_for_an_owner_that_fails_and_the_owner_is_named() {
    for failure in [Answer::reset(), Answer::status(503, "maintenance")] {
        let (stubs, mux) = estate([&[("n", 1)], &[("n", 2)]]).await;
        for path in CHILDREN {
            both(&stubs, path, [Answer::json("[1]"), failure.clone()]);
            let response = mux.get(path).await;
            assert_eq!(response.ok(), "[1]", "{path}");
            let [missing] = response.missing()[..] else {
                panic!("{response:#?}");
            };
            assert!(missing.starts_with("pdb-b; reason="), "{missing}");
        }
    }
}

#[tokio::test]
async fn t51_the_edges_below_a_catalog_are_those_of_all() {
    let (stubs, mux) = estate([&[("n", 1), ("x", 1)], &[("n", 2)]]).await;
    both(
        &stubs,
        "/pdb/query/v4/catalogs/n/resources",
        [nothing("catalog"), Answer::json("[{}]")],
    );
    both(
        &stubs,
        "/pdb/query/v4/edges",
        [
            Answer::json(r#"[{"certname":"x"}]"#),
            Answer::json(r#"[{"certname":"n"}]"#),
        ],
    );
    let response = mux.get("/pdb/query/v4/catalogs/n/edges").await;
    assert_eq!(response.ok(), r#"[{"certname":"x"},{"certname":"n"}]"#);
    let stale = r#"["not",["or",["in","certname",["array",["n"]]]]]"#;
    assert_eq!(asked(&stubs[0]), [format!("/edges {stale}")]);
    // Without the catalog, PuppetDB's own refusal.
    both(
        &stubs,
        "/pdb/query/v4/catalogs/n/resources",
        [Answer::json("[{}]"), nothing("catalog")],
    );
    let response = mux.get("/pdb/query/v4/catalogs/n/edges").await;
    assert_eq!(response.status, 404);
    assert!(response.text().contains("catalog n"));
}

#[tokio::test]
async fn t44_whoever_knows_a_parent_answers_and_404_needs_all() {
    for path in ["/pdb/query/v4/environments/n", "/pdb/query/v4/producers/n"] {
        let (stubs, mux) = estate([&[("x", 1)], &[("y", 2)]]).await;
        both(
            &stubs,
            path,
            [
                nothing("environment"),
                Answer::json("{\n  \"name\" : \"n\"\n}"),
            ],
        );
        assert_eq!(
            mux.get(path).await.ok(),
            "{\n  \"name\" : \"n\"\n}",
            "{path}"
        );
        both(
            &stubs,
            path,
            [nothing("environment"), nothing("environment")],
        );
        assert_eq!(mux.get(path).await.status, 404, "{path}");
        both(&stubs, path, [nothing("environment"), Answer::reset()]);
        assert_eq!(mux.get(path).await.status, 502, "{path}");
    }
}

#[tokio::test]
async fn t44_records_below_a_parent_come_from_all_who_know_it() {
    for path in [
        "/pdb/query/v4/environments/n/facts",
        "/pdb/query/v4/environments/n/resources/File",
        "/pdb/query/v4/producers/n/factsets",
    ] {
        let (stubs, mux) = estate([&[("x", 1)], &[("y", 2)]]).await;
        both(
            &stubs,
            path,
            [
                nothing("environment"),
                Answer::json(r#"[{"certname":"y"}]"#),
            ],
        );
        let response = mux.get(path).await;
        assert_eq!(response.ok(), r#"[{"certname":"y"}]"#, "{path}");
        assert_eq!(response.missing(), [""; 0], "{path}");
        both(
            &stubs,
            path,
            [nothing("environment"), nothing("environment")],
        );
        assert_eq!(mux.get(path).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn what_hangs_below_a_report_comes_from_whoever_holds_it() {
    let (stubs, mux) = estate([&[("x", 1)], &[("y", 2)]]).await;
    for child in ["logs", "metrics"] {
        let own = format!("/pdb/query/v4/reports/h/{child}");
        both(
            &stubs,
            &own,
            [nothing("report"), Answer::json(r#"[{"a":1}]"#)],
        );
        for parent in ["environments/n", "producers/n"] {
            let parent = format!("/pdb/query/v4/{parent}");
            let path = format!("{parent}/reports/h/{child}");
            both(
                &stubs,
                &parent,
                [Answer::json(r#"{"name":"n"}"#), nothing("parent")],
            );
            assert_eq!(mux.get(&path).await.ok(), r#"[{"a":1}]"#, "{path}");
            both(&stubs, &parent, [nothing("parent"), nothing("parent")]);
            let response = mux.get(&path).await;
            assert!(response.text().contains("parent n"), "{response:#?}");
        }
        assert_eq!(mux.get(&own).await.ok(), r#"[{"a":1}]"#);
    }
}

#[tokio::test]
async fn t26_a_subquery_that_cannot_be_asked_apart_is_marked() {
    let (stubs, mux) = estate([&[("n", 1)], &[("n", 2)]]).await;
    let path = "/pdb/query/v4/nodes/n/facts";
    both(&stubs, path, [Answer::json("[]"), Answer::json("[]")]);
    let query = r#"["in","name",["from","fact_names",["extract","name"]]]"#;
    let response = mux.ask(path, &[("query", query)]).await;
    assert_eq!(
        response.header("x-pdbmux-exact"),
        Some("no; reason=subquery-sees-one-backend")
    );
    assert_eq!(mux.get(path).await.header("x-pdbmux-exact"), None);
}
