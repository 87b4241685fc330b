//! Any combination of functions, held against a small PuppetDB.

use std::collections::BTreeMap;

use pdbmux_core::merge::fold::{FoldPlan, Repeats};
use pdbmux_core::query::{Column, Extract};
use proptest::prelude::*;

use super::laws::{Decimal, decimal, sum, write};
use super::{check, plan, texts};

const NULL: &str = "null";

/// A record: the column that is grouped by and two numeric ones, each perhaps null.
type Record = (Option<u8>, Option<Decimal>, Option<Decimal>);

fn estate() -> impl Strategy<Value = Vec<Vec<Record>>> {
    let value = || proptest::option::weighted(0.8, decimal());
    let record = (proptest::option::of(0_u8..3), value(), value());
    proptest::collection::vec(proptest::collection::vec(record, 0..8), 1..4)
}

fn function(name: &str, args: &[&str]) -> Column {
    Column::Function {
        name: name.into(),
        args: args.iter().map(ToString::to_string).collect(),
    }
}

fn extract() -> impl Strategy<Value = Extract> {
    let names = prop::sample::select(vec!["count", "sum", "avg", "min", "max"]);
    let function = (names, prop::sample::select(vec!["a", "b"]))
        .prop_map(|(name, column)| function(name, &[column]));
    let column = prop_oneof![
        6 => function,
        1 => Just(self::function("count", &[])),
        1 => Just(Column::Plain("k".into())),
    ];
    (proptest::collection::vec(column, 0..7), any::<bool>()).prop_map(|(mut columns, grouped)| {
        let mut group_by = Vec::new();
        if grouped {
            group_by.push(Column::Plain("k".into()));
        } else {
            columns.retain(|column| matches!(column, Column::Function { .. }));
        }
        columns.push(self::function("max", &["a"]));
        Extract { columns, group_by }
    })
}

/// What a PuppetDB that holds `records` answers to `extract`.
fn answer(extract: &Extract, records: &[Record]) -> Vec<String> {
    let mut groups: BTreeMap<Option<u8>, Vec<Record>> = BTreeMap::new();
    if extract.group_by.is_empty() {
        groups.insert(None, records.to_vec());
    } else {
        for record in records {
            groups.entry(record.0).or_default().push(*record);
        }
    }
    groups.values().map(|group| row(extract, group)).collect()
}

fn row(extract: &Extract, group: &[Record]) -> String {
    let is_plain = |column: &&Column| matches!(column, Column::Plain(_));
    let (plain, functions): (Vec<_>, Vec<_>) = extract.columns.iter().partition(is_plain);
    let mut members: Vec<(String, String)> = Vec::new();
    for column in functions.into_iter().chain(plain) {
        let (name, value) = match column {
            Column::Plain(name) => (name, group[0].0.map_or(NULL.into(), |k| k.to_string())),
            Column::Function { name, args } => (name, computed(name, args, group)),
        };
        let mut free = name.clone();
        let mut nth = 1;
        while members.iter().any(|(taken, _)| *taken == free) {
            nth += 1;
            free = format!("{name}_{nth}");
        }
        members.push((free, value));
    }
    let members = members
        .iter()
        .map(|(name, value)| format!("\"{name}\":{value}"));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

fn computed(function: &str, args: &[String], group: &[Record]) -> String {
    let Some(column) = args.first() else {
        return group.len().to_string();
    };
    let value = |record: &Record| if column == "a" { record.1 } else { record.2 };
    let values: Vec<Decimal> = group.iter().filter_map(value).collect();
    // Always three decimals, since of equal values any spelling may win.
    let extreme = |value: Option<&Decimal>| value.map_or(NULL.into(), |&(it, _)| write((it, 3)));
    let total = sum(&values).map_or(NULL.into(), write);
    match function {
        "count" => values.len().to_string(),
        "sum" => total,
        "min" => extreme(values.iter().min()),
        "max" => extreme(values.iter().max()),
        _ => {
            // One average alone is held against PostgreSQL elsewhere.
            let body = format!(r#"[{{"sum":{total},"count":{}}}]"#, values.len());
            let average = texts(&plan(&["avg"], &[], &[]), &[&body]).remove(0);
            let average = average.strip_prefix(r#"{"avg":"#).unwrap();
            average.trim_end_matches('}').to_owned()
        }
    }
}

fn folded(extract: &Extract, parts: &[Vec<Record>]) -> Vec<String> {
    let (plan, forwarded) = FoldPlan::new(extract, Repeats::Named).unwrap().unwrap();
    let bodies: Vec<String> = parts
        .iter()
        .map(|part| format!("[{}]", answer(&forwarded, part).join(",")))
        .collect();
    let bodies: Vec<&str> = bodies.iter().map(String::as_str).collect();
    texts(&plan, &bodies)
}

proptest! {
    #[test]
    fn any_combination_of_functions_folds_to_the_answer_of_the_whole(
        extract in extract(), parts in estate()
    ) {
        let mut found = folded(&extract, &parts);
        let mut whole = answer(&extract, &parts.concat());
        found.sort();
        whole.sort();
        prop_assert_eq!(found, whole);
    }
}

#[test]
fn each_repeat_is_folded_by_itself() {
    let extract = Extract {
        columns: vec![
            function("count", &[]),
            function("avg", &["value"]),
            function("max", &["a"]),
            function("max", &["b"]),
        ],
        group_by: Vec::new(),
    };
    let (plan, _) = FoldPlan::new(&extract, Repeats::Named).unwrap().unwrap();
    check(
        &plan,
        &[
            r#"[{"count":10,"sum":100,"count_2":1,"max":1,"max_2":9}]"#,
            r#"[{"count":10,"sum":0,"count_2":9,"max":2,"max_2":8}]"#,
        ],
        r#"[{"count":20,"avg":10.0000000000000000,"max":2,"max_2":9}]"#,
    );
}

#[test]
fn row_functions_that_repeat_are_all_part_of_the_key() {
    let extract = Extract {
        columns: vec![
            function("count", &[]),
            function("to_string", &["end_time", "YYYY"]),
            function("to_string", &["end_time", "MM"]),
        ],
        group_by: vec![Column::Plain("end_time".into())],
    };
    let (plan, _) = FoldPlan::new(&extract, Repeats::Named).unwrap().unwrap();
    let row = |count: u8, month: &str| {
        format!(r#"{{"count":{count},"to_string":"2026","to_string_2":"{month}","end_time":0}}"#)
    };
    let bodies = [
        format!("[{},{}]", row(1, "01"), row(2, "02")),
        format!("[{}]", row(3, "02")),
    ];
    check(
        &plan,
        &bodies.each_ref().map(String::as_str),
        r#"[{"count":1,"to_string":"2026","to_string_2":"01"},{"count":5,"to_string":"2026","to_string_2":"02"}]"#,
    );
}
