//! The parts of a query of the root route, against a reading of the whole JSON tree.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests are tests"
)]

use pdbmux_core::query::Query;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Entity, query and parameters, as the wire notes tell how PuppetDB reads them (section 7.5).
type Parts = (String, Option<Value>, Vec<(&'static str, Value)>);

fn naive(root: &Value) -> Option<Parts> {
    let root = root.as_array()?;
    let ([from, entity], mut rest) = root.split_first_chunk()?;
    if from != "from" {
        return None;
    }
    let mut query = None;
    if let Some(first) = rest.first()
        && !is_clause(first)
    {
        rest = &rest[1..];
        match first {
            Value::Null => {}
            Value::Array(items) if !items.is_empty() => query = Some(first.clone()),
            _ => return None,
        }
    }
    let mut paging = Vec::new();
    for clause in rest {
        let items = clause.as_array()?;
        let (name, value) = match (items.first()?.as_str()?, items.len()) {
            ("limit", 2) => ("limit", rows(&items[1], 1)?),
            ("offset", 2) => ("offset", rows(&items[1], 0)?),
            ("order_by", 2) => ("order_by", order(&items[1])?),
            _ => return None,
        };
        if paging.iter().any(|(known, _)| *known == name) {
            return None;
        }
        paging.push((name, value));
    }
    Some((entity.as_str()?.to_owned(), query, paging))
}

fn is_clause(value: &Value) -> bool {
    let head = value.get(0).and_then(Value::as_str);
    matches!(head, Some("limit" | "offset" | "order_by"))
}

fn rows(value: &Value, least: u64) -> Option<Value> {
    let rows = value.as_u64().filter(|rows| *rows >= least)?;
    Some(json!(rows.min(2_147_483_647)))
}

fn order(value: &Value) -> Option<Value> {
    let items = value.as_array()?.iter().map(|item| match item {
        Value::String(field) => Some(json!({"field": field, "order": "asc"})),
        Value::Array(pair) => match &pair[..] {
            [Value::String(field), Value::String(order)] if order == "asc" || order == "desc" => {
                Some(json!({"field": field, "order": order}))
            }
            _ => None,
        },
        _ => None,
    });
    items.collect::<Option<Vec<_>>>().map(Value::from)
}

fn read(text: &str) -> Option<Parts> {
    let Query::Ast(ast) = Query::read(Some(text)).unwrap() else {
        panic!("{text} is an array");
    };
    let from = ast.from()?;
    let value = |text: &String| serde_json::from_str(text).unwrap();
    let paging = from.paging.iter();
    let paging = paging.map(|(name, text)| (*name, value(text))).collect();
    Some((from.entity, from.query.as_ref().map(value), paging))
}

/// One of these values, or now and then something else.
fn mostly(value: impl Strategy<Value = Value> + 'static) -> BoxedStrategy<Value> {
    prop_oneof![
        12 => value,
        1 => prop_oneof![
            Just(json!(null)),
            Just(json!([])),
            Just(json!({})),
            Just(json!("limit")),
            Just(json!(["limit"])),
            Just(json!(1.5)),
            Just(json!(-1)),
            Just(json!(true)),
        ],
    ]
    .boxed()
}

fn name() -> BoxedStrategy<Value> {
    prop_oneof![
        Just(json!("certname")),
        "[a-z\"\\\\é]{0,4}".prop_map(Value::from)
    ]
    .boxed()
}

fn clause() -> BoxedStrategy<Value> {
    let number =
        mostly(prop_oneof![0..4_u64, 2_147_483_646..2_147_483_649_u64].prop_map(Value::from));
    let direction = mostly(prop_oneof![Just(json!("asc")), Just(json!("desc"))]);
    let pair = (mostly(name()), direction).prop_map(|(field, order)| json!([field, order]));
    let order = prop::collection::vec(mostly(prop_oneof![name(), pair].boxed()), 0..3);
    prop_oneof![
        number.clone().prop_map(|rows| json!(["limit", rows])),
        number.prop_map(|rows| json!(["offset", rows])),
        mostly(order.prop_map(Value::from)).prop_map(|order| json!(["order_by", order])),
    ]
    .boxed()
}

fn condition() -> BoxedStrategy<Value> {
    let leaf = name().prop_map(|name| json!(["=", "name", name])).boxed();
    leaf.prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..3).prop_map(|all| {
                let mut and = vec![json!("and")];
                and.extend(all);
                Value::from(and)
            }),
            inner.prop_map(|inner| json!(["extract", ["certname"], inner])),
        ]
    })
    .boxed()
}

fn query() -> impl Strategy<Value = Value> {
    let parts = (
        mostly(Just(json!("from"))),
        mostly(name()),
        prop::option::of(mostly(condition())),
        prop::collection::vec(mostly(clause()), 0..4),
    );
    parts.prop_map(|(from, entity, condition, clauses)| {
        let mut root = vec![from, entity];
        root.extend(condition);
        root.extend(clauses);
        Value::from(root)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_query_of_the_root_route_is_read_like_the_whole_tree(query in query()) {
        let expected = naive(&query);
        prop_assert_eq!(read(&query.to_string()), expected.clone());
        prop_assert_eq!(read(&format!(" {query:#}\n")), expected);
    }
}
