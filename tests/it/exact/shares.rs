use serde_json::json;

use super::backend::{Backend, INVENTORY, NODES, exact, of_stubs};
use crate::stub::{Answer, Stub};

const COUNT: &str = r#"["extract",[["function","count"]]]"#;
const NEVER: &str = r#"["=","certname",""]"#;
const ALWAYS: &str = r#"["null?","certname",false]"#;

/// `moved` is newer in b, `kept` in a; each has one more.
async fn pair() -> (Backend, Backend) {
    let a = Backend::holding(&[("only-a", 1), ("kept", 5), ("moved", 1)]).await;
    let b = Backend::holding(&[("kept", 1), ("moved", 9), ("only-b", 1)]).await;
    (a, b)
}

#[tokio::test]
async fn each_node_comes_from_its_owner_and_counts_once() {
    let (a, b) = pair().await;
    let mux = exact(&[&a, &b]).await;
    let response = mux.ask(INVENTORY, &[("include_total", "true")]).await;
    let mut rows: Vec<_> = response.json().as_array().unwrap().clone();
    rows.sort_by_key(|row| row["certname"].to_string());
    let expected = [("kept", 5), ("moved", 9), ("only-a", 1), ("only-b", 1)];
    let expected = expected.map(|(name, minute)| json!({"certname": name, "minute": minute}));
    assert_eq!(rows, expected);
    assert_eq!(response.header("x-records"), Some("4"));
    assert_eq!(response.header("x-backends"), Some("2/2"));
    let counted = mux.ask(NODES, &[("query", COUNT)]).await;
    assert_eq!(counted.json(), json!([{"count": 4}]));
}

#[tokio::test]
async fn where_no_node_is_held_twice_the_question_goes_up_as_it_came() {
    let a = Backend::holding(&[("m", 1)]).await;
    let b = Backend::holding(&[("n", 1)]).await;
    let mux = exact(&[&a, &b]).await;
    for query in [None, Some(r#"["~", "certname", "."]"#)] {
        let parameters: Vec<_> = query.iter().map(|query| ("query", *query)).collect();
        assert_eq!(mux.ask(INVENTORY, &parameters).await.status, 200);
    }
    for backend in [&a, &b] {
        let asked = backend.queries(INVENTORY);
        assert_eq!(asked, [None, Some(r#"["~", "certname", "."]"#.to_owned())]);
    }
}

#[tokio::test]
async fn the_next_holder_speaks_for_the_nodes_of_a_backend_that_fails() {
    for failure in [Answer::status(500, "ill"), Answer::json("[{")] {
        let (a, b) = pair().await;
        b.stub.on(INVENTORY, failure);
        let mux = exact(&[&a, &b]).await;
        let response = mux.ask(INVENTORY, &[]).await;
        let names: Vec<_> = response.json().as_array().unwrap().clone();
        assert_eq!(names.len(), 3, "all that a has: {names:?}");
        assert_eq!(response.header("x-backends"), Some("1/2"));
        let missing = response.header("x-pdbmux-missing").unwrap();
        assert!(missing.starts_with("pdb-b; reason="), "{missing}");
        // Asked for its own first, then for all that it has.
        assert_eq!(a.queries(INVENTORY).len(), 2);
        assert_eq!(a.queries(INVENTORY)[1], None);
    }
}

#[tokio::test]
async fn a_node_that_appears_in_a_second_backend_is_not_counted_twice() {
    let a = Backend::holding(&[("n", 1)]).await;
    let b = Backend::holding(&[("m", 1)]).await;
    let mux = exact(&[&a, &b]).await;
    let count = async || mux.ask(NODES, &[("query", COUNT)]).await.json();
    assert_eq!(count().await, json!([{"count": 2}]));
    // While it is remembered who has what.
    b.gains("n", 2);
    assert_eq!(count().await, json!([{"count": 2}]));
    let rows = mux.ask(INVENTORY, &[]).await.json();
    assert!(
        rows.as_array()
            .unwrap()
            .contains(&json!({"certname": "n", "minute": 2}))
    );
}

#[tokio::test]
async fn a_list_of_all_nodes_itself_shows_whether_some_came() {
    let a = Backend::holding(&[("moved", 1), ("only-a", 1)]).await;
    let b = Backend::holding(&[("moved", 2), ("only-b", 1)]).await;
    let mux = exact(&[&a, &b]).await;
    let list = async |parameters: &[(&str, &str)]| {
        let rows = mux.ask(NODES, parameters).await.json();
        let rows = rows.as_array().unwrap().iter();
        let names = rows.map(|row| row["certname"].as_str().unwrap().to_owned());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    };
    assert_eq!(list(&[]).await, ["moved", "only-a", "only-b"]);
    assert_eq!((a.counts(), b.counts()), (0, 0));
    // The rows of a part of them, or of some columns, are not so many.
    list(&[("limit", "9"), ("order_by", r#"[{"field":"certname"}]"#)]).await;
    list(&[("query", r#"["~","certname","."]"#)]).await;
    assert_eq!((a.counts(), b.counts()), (2, 2));

    a.gains("late", 1);
    assert_eq!(list(&[]).await, ["late", "moved", "only-a", "only-b"]);
    b.gains("only-a", 2);
    assert_eq!(list(&[]).await, ["late", "moved", "only-a", "only-b"]);
    a.loses("late");
    assert_eq!(list(&[]).await, ["moved", "only-a", "only-b"]);
}

#[tokio::test]
async fn a_backend_that_is_told_its_nodes_by_name_is_asked_for_their_number() {
    for held in [&[("x", 1), ("y", 1)][..], &[("own", 1), ("x", 1), ("y", 1)]] {
        let a = Backend::holding(&[("x", 9), ("y", 9), ("z", 9)]).await;
        let b = Backend::holding(held).await;
        let mux = exact(&[&a, &b]).await;
        let list = async || mux.ask(NODES, &[]).await.json().as_array().unwrap().len();
        let before = list().await;
        b.gains("late", 1);
        assert_eq!(list().await, before + 1, "{held:?}");
    }
}

#[tokio::test]
async fn a_backend_that_cannot_list_its_nodes_speaks_for_none() {
    let (a, b) = pair().await;
    b.stub.on(NODES, Answer::status(500, "ill"));
    let mux = exact(&[&a, &b]).await;
    let response = mux.ask(INVENTORY, &[]).await;
    assert_eq!(response.json().as_array().unwrap().len(), 3);
    assert_eq!(
        response.header("x-pdbmux-missing"),
        Some("pdb-b; reason=unlisted")
    );
    assert_eq!(
        b.queries(INVENTORY),
        [],
        "what it says could not be told apart"
    );
}

#[tokio::test]
async fn what_all_refuse_is_replayed_and_nothing_is_made_of_failures() {
    let (a, b) = pair().await;
    for backend in [&a, &b] {
        backend
            .stub
            .on(INVENTORY, Answer::status(400, "no such column"));
    }
    let mux = exact(&[&a, &b]).await;
    let response = mux.ask(INVENTORY, &[("query", r#"["=","x",1]"#)]).await;
    assert_eq!((response.status, response.text()), (400, "no such column"));
    b.stub.on(INVENTORY, Answer::status(500, "ill"));
    assert_eq!(mux.ask(INVENTORY, &[]).await.status, 502);
}

#[tokio::test]
async fn a_refusal_speaks_of_the_question_as_it_came() {
    let (a, b) = pair().await;
    for backend in [&a, &b] {
        backend.stub.makes(INVENTORY, |seen| {
            Answer::status(400, &seen.param("query").unwrap_or_default())
        });
    }
    let mux = exact(&[&a, &b]).await;
    let said = async |query: &str| {
        let response = mux.ask(INVENTORY, &[("query", query)]).await;
        assert_eq!(response.status, 400);
        response.text().to_owned()
    };
    let query = r#"["=", "x",1]"#;
    assert_eq!(said(query).await, query);
    assert_eq!(a.queries(INVENTORY).len(), 2, "its share, and once more");
    // That no backend knows the source fact is not why it was refused.
    let of_source = r#"["and",["=","pdbmux_source","pdb-a"],["=","x",1]]"#;
    let narrowed = said(of_source).await;
    assert!(narrowed.contains(r#"["=","x",1]"#), "{narrowed}");
    assert!(!narrowed.contains("pdbmux_source"), "{narrowed}");
}

#[tokio::test]
async fn a_refusal_of_those_that_are_left_names_the_others() {
    let (a, b) = pair().await;
    a.stub.on(INVENTORY, Answer::status(400, "no such column"));
    b.stub.on(NODES, Answer::status(500, "ill"));
    let mux = exact(&[&a, &b]).await;
    let response = mux.ask(INVENTORY, &[]).await;
    assert_eq!(response.status, 502);
    assert!(response.text().contains("pdb-b: unlisted"), "{response:?}");
}

#[tokio::test]
async fn what_is_said_of_nodes_that_do_not_stay_is_marked() {
    let (a, b) = pair().await;
    let mux = exact(&[&a, &b]).await;
    assert_eq!(mux.ask(INVENTORY, &[]).await.header("x-pdbmux-exact"), None);
    // However often they are listed, b has one more by then.
    b.stub.makes(NODES, |seen| {
        let is_census = seen.target == pdbmux_core::plan::census_ask().target();
        Answer::json(if is_census {
            r#"[{"count":4}]"#
        } else {
            r#"[{"certname":"n","report_timestamp":"2026-01-01T00:09:00.000Z"}]"#
        })
    });
    let response = mux.ask(INVENTORY, &[]).await;
    assert_eq!(response.status, 200);
    assert_eq!(
        response.header("x-pdbmux-exact"),
        Some("no; reason=estate-changes")
    );
}

#[tokio::test]
async fn the_source_is_a_constant_of_each_backend() {
    let (a, b) = pair().await;
    let mux = exact(&[&a, &b]).await;
    let rows = mux
        .ask(INVENTORY, &[("query", r#"["=","pdbmux_source","pdb-b"]"#)])
        .await;
    let rows = rows.json().as_array().unwrap().clone();
    assert_eq!(rows.len(), 2, "{rows:?}");
    let grouped =
        r#"["extract",[["function","count"],"pdbmux_source"],["group_by","pdbmux_source"]]"#;
    let rows = mux.ask(NODES, &[("query", grouped)]).await.json();
    let expected = json!([
        {"pdbmux_source": "pdb-a", "count": 2},
        {"pdbmux_source": "pdb-b", "count": 2},
    ]);
    assert_eq!(rows, expected);
    // A group without a node is none, though a backend sends a row.
    let grouped = grouped.replace(r#"],["group"#, r#"],["=","pdbmux_source","pdb-a"],["group"#);
    let rows = mux.ask(NODES, &[("query", &grouped)]).await.json();
    assert_eq!(rows, json!([{"pdbmux_source": "pdb-a", "count": 2}]));
    let projected = r#"["extract",["certname","pdbmux_source"]]"#;
    let rows = mux.ask(INVENTORY, &[("query", projected)]).await.json();
    let moved = rows
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["certname"] == "moved");
    assert_eq!(moved.unwrap()["pdbmux_source"], "pdb-b");
}

#[tokio::test]
async fn the_owner_has_the_last_word_on_its_node_as_long_as_it_answers() {
    let (a, b) = pair().await;
    let catalog = "/pdb/query/v4/catalogs/moved";
    let none = "{\"error\":\"No information is known about catalog moved\"}";
    a.stub.on(catalog, Answer::json("{\"old\":true}"));
    b.stub.on(catalog, Answer::status(404, none));
    let mux = exact(&[&a, &b]).await;
    let response = mux.get(catalog).await;
    assert_eq!((response.status, response.text()), (404, none));
    // While it is out, the next holder owns.
    b.stub.on(catalog, Answer::status(503, "starting"));
    assert_eq!(mux.get(catalog).await.json(), json!({"old": true}));
}

#[tokio::test]
async fn one_backend_is_asked_as_it_came() {
    let a = Backend::holding(&[("n", 1)]).await;
    let mux = exact(&[&a]).await;
    assert_eq!(
        mux.ask(NODES, &[("query", COUNT)]).await.json(),
        json!([{"count": 1}])
    );
    assert_eq!(a.queries(NODES), [Some(COUNT.to_owned())]);
    let gone = Stub::closed();
    let mux = of_stubs(&[&gone]).await;
    assert_eq!(mux.ask(NODES, &[("query", COUNT)]).await.status, 502);
}

#[tokio::test]
async fn all_get_a_condition_where_one_does() {
    // PuppetDB makes something else of a query with a condition than of one without.
    let a = Backend::holding(&[("n", 1)]).await;
    let b = Backend::holding(&[("n", 2)]).await;
    let mux = exact(&[&a, &b]).await;
    assert_eq!(mux.ask(INVENTORY, &[]).await.status, 200);
    assert_eq!(a.queries(INVENTORY), [Some(NEVER.to_owned())]);
    assert_eq!(b.queries(INVENTORY), [Some(ALWAYS.to_owned())]);
}
