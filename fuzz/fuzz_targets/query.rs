//! Queries, as any text and as AST: what is rewritten reads back as what it was, and means what it
//! should to serde_json.

#![no_main]

use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;
use pdbmux_core::Refusal;
use pdbmux_core::query::{Ast, Query};
use pdbmux_fuzz::near::Words;
use serde_json::{Value, json};

const WORDS: Words = Words {
    keys: &["a"],
    scalars: &[
        r#""extract""#,
        r#""group_by""#,
        r#""function""#,
        r#""avg""#,
        r#""count""#,
        r#""name""#,
        r#""certname""#,
        r#""and""#,
        r#""from""#,
        r#""in""#,
        r#""select_facts""#,
        r#""é\u0022""#,
        "null",
        "1.0",
        "true",
    ],
};

/// A condition to add, the one that a report's events are found by.
const CLAUSE: &str = r#"["=","report","x"]"#;

fuzz_target!(|input: &[u8]| {
    if let Ok(text) = std::str::from_utf8(input) {
        check(text);
    }
    if let Ok(text) = WORDS.array(&mut Unstructured::new(input), 4) {
        check(&text);
    }
});

fn check(text: &str) {
    let json = serde_json::from_str::<Value>(text).ok();
    let query = match Query::read(Some(text)) {
        Ok(query) => query,
        Err(Refusal::QueryTooDeep { .. }) => return,
        Err(other) => panic!("{other}"),
    };
    let Query::Ast(ast) = &query else {
        assert!(
            !json.is_some_and(|json| json.is_array()),
            "an array is taken for text"
        );
        assert!(!query.projects() && !query.constrains_name() && query.extract().is_none());
        return;
    };
    assert_eq!(ast.text(), text);
    rewrites_to_itself(ast, json.as_ref());

    let narrowed = query.and(CLAUSE).expect("AST takes one more condition");
    match Query::read(Some(&narrowed)) {
        Err(Refusal::QueryTooDeep { .. }) => {}
        Ok(reread @ Query::Ast(_)) => {
            assert_eq!(reread.extract(), query.extract());
            assert_eq!(reread.projects(), query.projects());
        }
        other => panic!("{narrowed} reads as {other:?}"),
    }
    if let (Some(json), Ok(narrowed)) = (json, serde_json::from_str::<Value>(&narrowed)) {
        assert_eq!(narrowed, and(json, query.extract().is_some()));
    }
}

fn rewrites_to_itself(ast: &Ast, json: Option<&Value>) {
    let Some(extract) = ast.extract() else { return };
    let same = ast.with_extract(extract);
    match Query::read(Some(&same)) {
        Ok(reread) => assert_eq!(reread.extract(), Some(extract)),
        Err(refusal) => panic!("{same}: {refusal}"),
    }
    if let Some(json) = json {
        let mut expected = json.clone();
        if !expected[1].is_array() {
            expected[1] = json!([expected[1]]);
        }
        assert_eq!(serde_json::from_str::<Value>(&same).ok(), Some(expected));
    }
}

/// The query `json` with [`CLAUSE`], said with values.
fn and(mut json: Value, extracts: bool) -> Value {
    let clause: Value = serde_json::from_str(CLAUSE).expect("the clause is JSON");
    if !extracts {
        return json!(["and", clause, json]);
    }
    let items = json.as_array_mut().expect("AST is an array");
    match items.get(2) {
        Some(filter) if filter.is_null() => items[2] = clause,
        Some(filter) if filter[0] != "group_by" || items.len() == 4 => {
            items[2] = json!(["and", clause, filter])
        }
        _ => items.insert(2, clause),
    }
    json
}
