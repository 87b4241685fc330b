//! Entities whose records belong to no node.

use serde_json::json;

use super::backend::{Backend, exact};
use crate::harness::Pdbmux;
use crate::stub::{Answer, Stub};

const ENVIRONMENTS: &str = "/pdb/query/v4/environments";
const PACKAGES: &str = "/pdb/query/v4/packages";
const PATHS: &str = "/pdb/query/v4/fact-paths";
const CONTENTS: &str = "/pdb/query/v4/fact-contents";
const NAMES: &str = "/pdb/query/v4/fact-names";
const MOVED: &str = r#"["or",["in","certname",["array",["moved"]]]]"#;

/// `moved` is newer in b, so that a's copy is stale.
async fn pair() -> (Backend, Backend, Pdbmux) {
    let a = Backend::holding(&[("kept", 1), ("moved", 1)]).await;
    let b = Backend::holding(&[("moved", 9), ("other", 1)]).await;
    let mux = exact(&[&a, &b]).await;
    (a, b, mux)
}

fn sorted(text: &str) -> Vec<String> {
    let rows: Vec<serde_json::Value> = serde_json::from_str(text).unwrap();
    let mut rows: Vec<_> = rows.iter().map(ToString::to_string).collect();
    rows.sort();
    rows
}

#[tokio::test]
async fn an_environment_is_listed_once_and_only_if_owned_data_or_a_report_names_it() {
    let (a, b, mux) = pair().await;
    a.stub
        .on(ENVIRONMENTS, r#"[{"name":"production"},{"name":"a"}]"#);
    b.stub
        .on(ENVIRONMENTS, r#"[{"name":"b"},{"name":"production"}]"#);
    let parameters = [
        ("query", r#"["~","name","."]"#),
        ("order_by", r#"[{"field":"name","order":"desc"}]"#),
        ("limit", "2"),
        ("include_total", "true"),
    ];
    let response = mux.ask(ENVIRONMENTS, &parameters).await;
    assert_eq!(response.ok(), r#"[{"name":"production"},{"name":"b"}]"#);
    assert_eq!(response.header("x-records"), Some("3"));
    assert_eq!(response.backends(), Some("2/2"));
    let owned = format!(r#"["not",{MOVED}]"#);
    let named = |entity: &str, condition: &str| {
        format!(r#"["in","name",["extract","environment",["select_{entity}",{condition}]]]"#)
    };
    let clause = [
        named("factsets", &owned),
        named("catalogs", &owned),
        named("reports", r#"["=","type","any"]"#),
    ];
    let expected = format!(r#"["and",["or",{}],["~","name","."]]"#, clause.join(","));
    assert_eq!(a.queries(ENVIRONMENTS), [Some(expected)]);
    // What is left off is only known once the lists are one.
    let seen = a.stub.seen();
    let asked = seen.iter().find(|it| it.target.starts_with(ENVIRONMENTS));
    assert_eq!(asked.unwrap().param("limit"), None);
}

#[tokio::test]
async fn where_no_node_is_held_twice_a_set_is_asked_for_as_it_came() {
    let a = Backend::holding(&[("m", 1)]).await;
    let b = Backend::holding(&[("n", 1)]).await;
    let mux = exact(&[&a, &b]).await;
    for path in [ENVIRONMENTS, PATHS] {
        a.stub
            .on(path, r#"[{"path":["p"],"type":"string","name":"p"}]"#);
        b.stub.on(path, "[]");
        let response = mux.ask(path, &[]).await;
        assert_eq!(
            response.ok(),
            r#"[{"path":["p"],"type":"string","name":"p"}]"#
        );
        assert_eq!(a.queries(path), [None]);
    }
    // Stubs fault what is not scripted: no fact content was asked for.
}

#[tokio::test]
async fn a_path_that_only_stale_copies_hold_is_not_listed() {
    let (a, b, mux) = pair().await;
    let row = |path: &str, of: &str| format!(r#"{{"type":"{of}","path":{path},"name":"n"}}"#);
    let (both, stale) = (
        row(r#"["n","both"]"#, "string"),
        row(r#"["n","gone"]"#, "string"),
    );
    let (index, key) = (row(r#"["n",0]"#, "integer"), row(r#"["n","0"]"#, "integer"));
    a.stub.on(PATHS, format!("[{both},{stale},{index},{key}]"));
    b.stub
        .on(PATHS, format!("[{}]", row(r#"["n","both"]"#, "float")));
    a.stub
        .on(CONTENTS, r#"[{"path":["n", "both"]},{"path":["n",0]}]"#);
    b.stub
        .on(CONTENTS, r#"[{"path":["n","both"]},{"path":["n","gone"]}]"#);
    let response = mux.ask(PATHS, &[("include_total", "true")]).await;
    let float = row(r#"["n","both"]"#, "float");
    // A number that is an index is not the text of it.
    assert_eq!(response.ok(), format!("[{both},{index},{float}]"));
    assert_eq!(response.header("x-records"), Some("3"));
    assert_eq!(a.queries(PATHS), [None]);
    let asked = a.stub.seen();
    let asked = asked.iter().find(|it| it.target.starts_with(CONTENTS));
    let living = format!(
        r#"["extract",["path"],["and",["not",{MOVED}],["=","node_state","any"]],["group_by","path","path_types"]]"#
    );
    assert_eq!(asked.unwrap().param("query"), Some(living));
}

#[tokio::test]
async fn the_paths_of_a_backend_without_stale_copies_are_right_as_it_lists_them() {
    let (a, b, mux) = pair().await;
    for stub in [&a.stub, &b.stub] {
        stub.on(PATHS, r#"[{"path":["p"],"type":"string"}]"#);
        stub.on(CONTENTS, r#"[{"path":["p"]}]"#);
    }
    assert_eq!(
        mux.ask(PATHS, &[]).await.json().as_array().unwrap().len(),
        1
    );
    let is_asked = |stub: &Stub| stub.seen().iter().any(|it| it.target.starts_with(CONTENTS));
    assert_eq!((is_asked(&a.stub), is_asked(&b.stub)), (true, false));
}

#[tokio::test]
async fn a_backend_that_answers_one_of_its_questions_only_has_failed() {
    for (which, failure) in [
        (&[CONTENTS][..], Answer::status(500, "ill")),
        (&[CONTENTS], Answer::json("[{")),
        (&[PATHS], Answer::status(500, "ill")),
        (&[PATHS], Answer::json("[1]")),
        (&[PATHS, CONTENTS], Answer::status(500, "ill")),
    ] {
        let (a, b, mux) = pair().await;
        for (stub, path) in [(&a.stub, r#"["a"]"#), (&b.stub, r#"["b"]"#)] {
            stub.on(PATHS, format!(r#"[{{"path":{path},"type":"string"}}]"#));
            stub.on(CONTENTS, format!(r#"[{{"path":{path}}}]"#));
        }
        for which in which {
            a.stub.on(which, failure.clone());
        }
        let response = mux.ask(PATHS, &[]).await;
        assert_eq!(response.ok(), r#"[{"path":["b"],"type":"string"}]"#);
        assert_eq!(response.backends(), Some("1/2"));
        assert_eq!(response.missing().len(), 1, "{:?}", response.missing());
    }
}

#[tokio::test]
async fn r017_what_all_refuse_is_replayed_though_a_question_beside_it_was_answered() {
    let (a, b, mux) = pair().await;
    for stub in [&a.stub, &b.stub] {
        stub.on(PATHS, Answer::status(400, "no such column"));
        stub.on(CONTENTS, "[]");
    }
    let response = mux.ask(PATHS, &[]).await;
    assert_eq!((response.status, response.text()), (400, "no such column"));
    b.stub.on(PATHS, Answer::status(500, "ill"));
    assert_eq!(mux.ask(PATHS, &[]).await.status, 502);
}

#[tokio::test]
async fn functions_are_computed_of_the_records_of_the_union() {
    let (a, b, mux) = pair().await;
    let row = |version: &str| {
        format!(
            r#"{{"count":1,"max":"{version}","package_name":"p","version":"{version}","provider":"apt"}}"#
        )
    };
    a.stub.on(PACKAGES, format!("[{},{}]", row("1"), row("2")));
    b.stub.on(PACKAGES, format!("[{},{}]", row("2"), row("3")));
    let query = r#"["extract",[["function","count"],["function","max","version"],"package_name"],["group_by","package_name"]]"#;
    let parameters = [("query", query), ("include_total", "true")];
    let response = mux.ask(PACKAGES, &parameters).await;
    assert_eq!(
        response.ok(),
        r#"[{"count":3,"max":"3","package_name":"p"}]"#
    );
    assert_eq!(response.header("x-records"), Some("1"));
    let asked = a.queries(PACKAGES).remove(0).unwrap();
    assert!(
        asked.starts_with(r#"["extract",[["function","count"],["function","max","version"],"package_name","version","provider"],["in","#),
        "{asked}"
    );
    assert!(
        asked.ends_with(r#",["group_by","package_name","version","provider"]]"#),
        "{asked}"
    );
}

#[tokio::test]
async fn functions_of_no_record_make_the_row_that_puppetdb_makes() {
    let (a, b, mux) = pair().await;
    for stub in [&a.stub, &b.stub] {
        stub.on(PACKAGES, "[]");
    }
    for (columns, grouped, expected) in [
        (r#"["function","count"]"#, false, r#"[{"count":0}]"#),
        (
            r#"["function","max","version"],["function","count","version"]"#,
            false,
            r#"[{"max":null,"count":0}]"#,
        ),
        (
            r#"["function","avg","version"]"#,
            false,
            r#"[{"avg":null}]"#,
        ),
        (r#"["function","count"],"version""#, true, "[]"),
    ] {
        let groups = if grouped {
            r#",["group_by","version"]"#
        } else {
            ""
        };
        let query = format!(r#"["extract",[{columns}]{groups}]"#);
        let response = mux.ask(PACKAGES, &[("query", &query)]).await;
        assert_eq!(response.ok(), expected, "{query}");
    }
}

#[tokio::test]
async fn a_query_that_every_puppetdb_refuses_is_not_made_a_good_one() {
    let (a, b, mux) = pair().await;
    for stub in [&a.stub, &b.stub] {
        stub.on(PACKAGES, Answer::status(500, "must appear in the GROUP BY"));
    }
    let query = r#"["extract",[["function","count"],"version"]]"#;
    assert_eq!(mux.ask(PACKAGES, &[("query", query)]).await.status, 500);
    let asked = a.queries(PACKAGES).remove(0).unwrap();
    assert!(!asked.contains("group_by"), "{asked}");
}

#[tokio::test]
async fn r091_t52_fact_names_are_those_of_owned_facts_that_hold_something() {
    let (a, b, mux) = pair().await;
    a.stub.on(NAMES, r#"["os","a"]"#);
    b.stub.on(NAMES, r#"["os","pdbmux_source"]"#);
    let response = mux.ask(NAMES, &[("include_total", "true")]).await;
    assert_eq!(response.ok(), r#"["a","os","pdbmux_source"]"#);
    assert_eq!(response.header("x-records"), Some("3"));
    let expected = format!(
        r#"["in","name",["extract","name",["select_facts",["and",["not",{MOVED}],["not",["or",["=","value",{{}}],["=","value",[]]]]]]]]"#
    );
    assert_eq!(a.queries(NAMES), [Some(expected)]);
}

#[tokio::test]
async fn t15_pages_of_a_set_hold_every_record_once() {
    let (a, b, mux) = pair().await;
    let row = |name: &str, version: &str| {
        format!(r#"{{"package_name":"{name}","version":"{version}","provider":"apt"}}"#)
    };
    a.stub.on(
        PACKAGES,
        format!("[{},{},{}]", row("z", "1"), row("b", "1"), row("a", "2")),
    );
    b.stub
        .on(PACKAGES, format!("[{},{}]", row("a", "10"), row("b", "1")));
    let mut walked = Vec::new();
    for offset in ["0", "2", "4"] {
        let page = [("limit", "2"), ("offset", offset)];
        let page = mux.ask(PACKAGES, &page).await.json();
        walked.extend(page.as_array().unwrap().iter().cloned());
    }
    let all = [row("a", "10"), row("a", "2"), row("b", "1"), row("z", "1")];
    let all: Vec<serde_json::Value> = all
        .iter()
        .map(|row| serde_json::from_str(row).unwrap())
        .collect();
    assert_eq!(json!(walked), json!(all));
    // What is ordered by and not projected is asked for, and taken out again.
    let query = [
        ("query", r#"["extract",["provider"]]"#),
        ("order_by", r#"[{"field":"version"}]"#),
    ];
    let rows = mux.ask(PACKAGES, &query).await;
    assert_eq!(sorted(rows.ok()), [r#"{"provider":"apt"}"#; 4]);
}
