//! PQL: translated by a backend, then planned.

use super::estate::{asked, estate};
use crate::client::request;
use crate::stub::Answer;

const ROOT: &str = "/pdb/query/v4";
const FACTS: &str = "/pdb/query/v4/facts";
const PQL: &str = "facts { name = \"f\" }";
const AST: &str = r#"[ "from", "facts", [ "=", "name", "f" ] ]"#;

#[tokio::test]
async fn t41_pql_is_translated_once_and_answered_by_all() {
    let ([a, b], mux) = estate([&[("x", 1)], &[("y", 1)]]).await;
    a.on(ROOT, AST).on(FACTS, r#"[{"certname":"x"}]"#);
    b.on(FACTS, r#"[{"certname":"y"}]"#);
    for _ in 0..2 {
        let response = mux.ask(ROOT, &[("query", PQL)]).await;
        assert_eq!(response.ok(), r#"[{"certname":"x"},{"certname":"y"}]"#);
        assert_eq!(response.header("x-pdbmux-exact"), None);
    }
    let seen = a.seen();
    let translations: Vec<_> = seen
        .iter()
        .filter(|seen| seen.param("ast_only").is_some())
        .collect();
    assert_eq!(translations.len(), 1, "{seen:#?}");
    assert_eq!(translations[0].param("query").as_deref(), Some(PQL));
    assert_eq!(asked(&b), [r#"/facts [ "=", "name", "f" ]"#; 2]);
}

#[tokio::test]
async fn the_next_backend_translates_where_the_first_does_not() {
    for first in [
        Answer::status(503, "down"),
        Answer::status(400, "unknown function"),
        Answer::json("[ \"from\","),
        Answer::json("{}"),
        Answer::reset(),
    ] {
        let ([a, b], mux) = estate([&[("x", 1)], &[("y", 1)]]).await;
        a.on(ROOT, first).on(FACTS, "[]");
        b.on(ROOT, AST).on(FACTS, "[]");
        assert_eq!(mux.ask(ROOT, &[("query", PQL)]).await.ok(), "[]");
    }
}

#[tokio::test]
async fn a_refusal_by_all_is_replayed_and_not_remembered() {
    let ([a, b], mux) = estate([&[("x", 1)], &[("y", 1)]]).await;
    let refusal = "PQL parse error at line 1, column 6:\n\nfacts [\n     ^";
    for stub in [&a, &b] {
        stub.on(ROOT, Answer::status(400, refusal));
    }
    let response = mux.ask(ROOT, &[("query", "facts [")]).await;
    assert_eq!((response.status, response.text()), (400, refusal));
    a.on(ROOT, AST).on(FACTS, "[]");
    b.on(FACTS, "[]");
    assert_eq!(mux.ask(ROOT, &[("query", "facts [")]).await.ok(), "[]");
}

#[tokio::test]
async fn without_a_translation_there_is_no_answer() {
    let ([a, b], mux) = estate([&[("x", 1)], &[("y", 1)]]).await;
    a.on(ROOT, Answer::status(503, "down"));
    b.on(ROOT, Answer::status(400, "refused"));
    let response = mux.ask(ROOT, &[("query", PQL)]).await;
    assert_eq!(response.status, 502);
    assert_eq!(
        response.missing(),
        ["pdb-a; reason=status-503", "pdb-b; reason=status-400"]
    );
}

#[tokio::test]
async fn a_client_that_wants_the_translation_gets_it() {
    let ([a, b], mux) = estate([&[("x", 1)], &[("y", 1)]]).await;
    a.on(ROOT, AST);
    for query in [PQL, AST] {
        let response = mux
            .ask(ROOT, &[("query", query), ("ast_only", "true")])
            .await;
        assert_eq!(response.ok(), AST);
        assert_eq!(response.header("x-pdbmux-exact"), None);
    }
    assert_eq!(asked(&b), [""; 0]);
}

#[tokio::test]
async fn a_post_is_translated_like_a_get() {
    let ([a, b], mux) = estate([&[("x", 1)], &[("y", 1)]]).await;
    a.on(ROOT, AST).on(FACTS, r#"[{"certname":"x"}]"#);
    b.on(FACTS, "[]");
    let body = serde_json::json!({ "query": PQL, "limit": 1 }).to_string();
    let mut client = mux.connect().await;
    let head = request("POST", ROOT).replacen(
        "\r\n",
        &format!(
            "\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        ),
        1,
    );
    client.send(head + &body).await;
    assert_eq!(client.response().await.ok(), r#"[{"certname":"x"}]"#);
}
