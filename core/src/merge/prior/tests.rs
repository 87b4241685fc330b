use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::merge::Merge;

fn prior(columns: &[(&str, &str)]) -> Prior {
    let pair = |(outer, inner): &(&str, &str)| ((*outer).to_owned(), (*inner).to_owned());
    Prior {
        clause: "[\"here\"]".to_owned(),
        columns: columns.iter().map(pair).collect(),
        fan: Fan::new(Ask::own("/", &[]), Merge::First),
        doubts: vec![Doubt::SubquerySeesOneBackend],
    }
}

fn known(columns: &[(&str, &str)], body: &str) -> Option<(String, String)> {
    let known = prior(columns).read(body.as_bytes()).unwrap();
    known.map(|known| (known.affirmed, known.denied))
}

#[test]
fn rows_become_lists_of_what_their_column_takes() {
    let value = ("value", "value");
    for (columns, body, expected) in [
        (
            ("certname", "c"),
            r#"[{"c":"b"},{"x":1,"c":"a"},{"c":"b"}]"#,
            r#"["or",["in","certname",["array",["a","b"]]]]"#,
        ),
        (
            ("line", "line"),
            r#"[{"line":7},{"line":12}]"#,
            r#"["or",["=","line",12],["=","line",7]]"#,
        ),
        (
            ("noop", "noop"),
            r#"[{"noop":true}]"#,
            r#"["=","noop",true]"#,
        ),
        (
            ("path", "path"),
            r#"[{"path":["os","family"]},{"path":["a",0]}]"#,
            r#"["or",["in","path",["array",[["a",0],["os","family"]]]]]"#,
        ),
        // Null is a value among those of facts.
        (
            value,
            r#"[{"value":1},{"value":null},{"value":{"a":[]}},{"value":"x"}]"#,
            r#"["or",["null?","value",true],["or",["in","value",["array",["x",1,{"a":[]}]]]]]"#,
        ),
        (
            ("value", "certname"),
            r#"[{"certname":"x"}]"#,
            r#"["or",["in","value",["array",["x"]]]]"#,
        ),
        (
            ("title", "title"),
            "[]",
            r#"["and",["null?","title",true],["null?","title",false]]"#,
        ),
    ] {
        let (affirmed, denied) = known(&[columns], body).unwrap();
        assert_eq!((&*affirmed, &*denied), (expected, expected), "{columns:?}");
    }
}

#[test]
fn t26_the_column_with_the_most_values_is_listed_for_each_row_of_the_others() {
    let columns = [("type", "type"), ("title", "title")];
    let body = r#"[{"type":"A","title":"x"},{"type":"A","title":"y"},{"type":"B","title":"z"}]"#;
    let expected = concat!(
        r#"["or",["and",["or",["in","type",["array",["A"]]]],["or",["in","title",["array",["x","y"]]]]],"#,
        r#"["and",["or",["in","type",["array",["B"]]]],["or",["in","title",["array",["z"]]]]]]"#
    );
    let (affirmed, denied) = known(&columns, body).unwrap();
    assert_eq!((&*affirmed, &*denied), (expected, expected));
}

#[test]
fn a_null_in_the_rows_makes_every_not_unknown() {
    let never = r#"["and",["null?","title",true],["null?","title",false]]"#;
    let x = r#"["or",["in","title",["array",["x"]]]]"#;
    let denied = format!(r#"["or",{x},["not",{never}]]"#);
    assert_eq!(
        known(&[("title", "title")], r#"[{"title":null},{"title":"x"}]"#),
        Some((x.to_owned(), denied))
    );
    // In a row it makes unknown what equals the rest of the row.
    let columns = [("type", "type"), ("title", "title")];
    let rows = r#"[{"type":"A","title":null}]"#;
    let (affirmed, denied) = known(&columns, rows).unwrap();
    assert!(affirmed.contains("null?"));
    assert!(
        denied.ends_with(r#",["or",["in","type",["array",["A"]]]]]"#),
        "{denied}"
    );
}

#[test]
fn what_no_query_can_say_stays_unknown() {
    let strings = |count| {
        let row = |at| format!(r#"{{"c":"{at}"}}"#);
        format!("[{}]", (0..count).map(row).collect::<Vec<_>>().join(","))
    };
    let numbers = |count| {
        let row = |at| format!(r#"{{"c":{at}}}"#);
        format!("[{}]", (0..count).map(row).collect::<Vec<_>>().join(","))
    };
    for (columns, body, is_known) in [
        (("tags", "tags"), r#"[{"tags":["a"]}]"#.to_owned(), false),
        (("title", "value"), r#"[{"value":"a"}]"#.to_owned(), true),
        (("title", "value"), r#"[{"value":5}]"#.to_owned(), false),
        (("a", "c"), strings(MOST_VALUES), true),
        (("a", "c"), strings(MOST_VALUES + 1), false),
        (("a", "c"), numbers(MOST_CLAUSES), true),
        (("a", "c"), numbers(MOST_CLAUSES + 1), false),
    ] {
        assert_eq!(known(&[columns], &body).is_some(), is_known, "{columns:?}");
    }
    assert!(prior(&[("a", "c")]).read(b"[{").is_err());
}

#[test]
fn unknown_subqueries_stay_and_are_doubted() {
    let query =
        r#"["and",["subquery","facts",["=","a",1]],["not",["subquery","facts",["=","b",1]]]]"#;
    let fan = Fan::new(
        Ask::own("/pdb/query/v4/nodes", &[("query", query)]),
        Merge::First,
    );
    let of = |clause: &str| Prior {
        clause: clause.to_owned(),
        ..prior(&[("certname", "certname")])
    };
    let (a, b) = (
        r#"["subquery","facts",["=","a",1]]"#,
        r#"["subquery","facts",["=","b",1]]"#,
    );
    let known = of(a).read(br#"[{"certname":"n"}]"#).unwrap();
    let fan = fan.with_known(&Foreknown(vec![(of(a), known), (of(b), None)]));
    let expected = r#"["and",["or",["in","certname",["array",["n"]]]],["not",["subquery","facts",["=","b",1]]]]"#;
    let ask = Ask::own("/pdb/query/v4/nodes", &[("query", expected)]);
    assert_eq!(fan.ask.target(), ask.target());
    assert_eq!(fan.doubts, [Doubt::SubquerySeesOneBackend]);
}

/// What a condition comes to for a record, as SQL has it: `None` is unknown.
fn evaluated(condition: &Value, record: &[(&str, Value)]) -> Option<bool> {
    let items = condition.as_array().unwrap();
    let (operator, operands) = items.split_first().unwrap();
    let all = || operands.iter().map(|it| evaluated(it, record));
    let value = || {
        let column = operands[0].as_str().unwrap();
        &record.iter().find(|(name, _)| *name == column).unwrap().1
    };
    match operator.as_str().unwrap() {
        "and" => all().fold(Some(true), both_hold),
        "or" => all().fold(Some(false), either_holds),
        "not" => evaluated(&operands[0], record).map(|holds| !holds),
        "null?" => Some(value().is_null() == operands[1].as_bool().unwrap()),
        "=" => equal(value(), &operands[1]),
        "in" => {
            let listed = operands[1][1].as_array().unwrap().iter();
            listed
                .map(|it| equal(value(), it))
                .fold(Some(false), either_holds)
        }
        other => panic!("{other}"),
    }
}

fn equal(a: &Value, b: &Value) -> Option<bool> {
    (!a.is_null() && !b.is_null()).then(|| a == b)
}

fn both_hold(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn either_holds(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    both_hold(a.map(|it| !it), b.map(|it| !it)).map(|it| !it)
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        3 => "[x-z]".prop_map(|text| json!(text)),
        1 => (0..3).prop_map(|number| json!(number)),
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(|flag| json!(flag)),
    ]
}

proptest! {
    /// A record is kept for a clause or for its contrary just when PostgreSQL would keep it for the
    /// subquery, whatever is null.
    #[test]
    fn what_stands_in_the_place_of_a_subquery_decides_as_it_does(
        rows in prop::collection::vec((value(), value(), value()), 0..6),
        record in (value(), value(), value()),
        width in 1..4_usize,
    ) {
        let columns = &[("a", "x"), ("b", "y"), ("c", "z")][..width];
        let body: Vec<_> = rows.iter().map(|(x, y, z)| json!({"x": x, "y": y, "z": z})).collect();
        let record = [("a", record.0), ("b", record.1), ("c", record.2)];
        let equals = |row: &Value| {
            let columns = columns.iter().zip(&record);
            columns.map(|((_, inner), (_, outer))| equal(outer, &row[inner])).fold(Some(true), both_hold)
        };
        let expected = body.iter().map(equals).fold(Some(false), either_holds);
        let (affirmed, denied) = known(columns, &json!(body).to_string()).unwrap();
        let affirmed = evaluated(&serde_json::from_str(&affirmed).unwrap(), &record);
        let denied = evaluated(&serde_json::from_str(&denied).unwrap(), &record);
        prop_assert_eq!(affirmed == Some(true), expected == Some(true));
        prop_assert_eq!(denied == Some(false), expected == Some(false));
    }
}
