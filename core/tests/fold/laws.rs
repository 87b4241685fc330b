//! Laws of folding, held against slow and obvious versions.

use std::collections::BTreeMap;

use pdbmux_core::merge::fold::{FoldPlan, Rows, fold};
use proptest::prelude::*;
use serde_json::{Map, Value};

use super::{folded, plan, texts};

/// A value in thousandths with the number of decimals it is written with, 0 to 3.
pub(super) type Decimal = (i128, u32);

pub(super) fn decimal() -> impl Strategy<Value = Decimal> {
    (-100_000_i128..100_000, 0_u32..=3)
        .prop_map(|(digits, scale)| (digits * 10_i128.pow(3 - scale), scale))
}

pub(super) fn write((thousandths, scale): Decimal) -> String {
    let digits = thousandths.unsigned_abs() / 10_u128.pow(3 - scale);
    let unit = 10_u128.pow(scale);
    let sign = if thousandths < 0 { "-" } else { "" };
    if scale == 0 {
        return format!("{sign}{digits}");
    }
    let width = scale as usize;
    format!("{sign}{}.{:0width$}", digits / unit, digits % unit)
}

/// A record of an estate: its group, which may be null, and its value, which may be, too.
type Record = (Option<u8>, Option<Decimal>);

fn estate() -> impl Strategy<Value = Vec<Vec<Record>>> {
    let record = (
        proptest::option::of(0_u8..4),
        proptest::option::weighted(0.8, decimal()),
    );
    proptest::collection::vec(proptest::collection::vec(record, 0..12), 1..5)
}

/// The values of each group.
fn grouped(records: &[Record]) -> BTreeMap<Option<u8>, Vec<Decimal>> {
    let mut groups: BTreeMap<_, Vec<Decimal>> = BTreeMap::new();
    for &(name, value) in records {
        groups.entry(name).or_default().extend(value);
    }
    groups
}

/// The sum of `values` and the scale PostgreSQL gives it; none for no values.
pub(super) fn sum(values: &[Decimal]) -> Option<Decimal> {
    let scale = values.iter().map(|&(_, scale)| scale).max()?;
    Some((values.iter().map(|&(value, _)| value).sum(), scale))
}

/// What a backend that holds `records` answers.
fn answer(records: &[Record]) -> String {
    let number = |value: Option<String>| value.unwrap_or_else(|| "null".into());
    let rows: Vec<String> = grouped(records)
        .into_iter()
        .map(|(name, values)| {
            // Always three decimals, since of equal values any spelling may win.
            let extreme = |value: Option<i128>| number(value.map(|value| write((value, 3))));
            format!(
                r#"{{"count":{},"sum":{},"min":{},"max":{},"name":{}}}"#,
                values.len(),
                number(sum(&values).map(write)),
                extreme(values.iter().map(|&(value, _)| value).min()),
                extreme(values.iter().map(|&(value, _)| value).max()),
                number(name.map(|name| name.to_string())),
            )
        })
        .collect();
    format!("[{}]", rows.join(","))
}

fn by_name(plan: &FoldPlan, bodies: &[String]) -> BTreeMap<String, String> {
    let bodies: Vec<&str> = bodies.iter().map(String::as_str).collect();
    let text = |raw: &[u8]| String::from_utf8(raw.to_vec()).unwrap();
    folded(plan, &bodies)
        .unwrap()
        .iter()
        .map(|row| (text(row.column("name").unwrap()), text(row.bytes())))
        .collect()
}

/// JSON without fractions: the oracle's library keeps those as floats.
fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2_i64..3).prop_map(Value::from),
        "[a\"é]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 6, 2, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::btree_map("[ab]", inner, 0..3)
                .prop_map(|members| members.into_iter().collect()),
        ]
    })
}

/// Event counts of one backend: every subject once, counts now and then null or absent.
fn event_counts() -> impl Strategy<Value = Vec<Value>> {
    let counts = proptest::collection::btree_map(
        prop_oneof![Just("failures"), Just("skips"), Just("noops")],
        proptest::option::of(0_i64..1000),
        0..4,
    );
    proptest::collection::vec((json(), counts), 0..6).prop_map(|rows| {
        let mut unique: Vec<Value> = Vec::new();
        for (subject, counts) in rows {
            if unique.iter().any(|row| row["subject"] == subject) {
                continue;
            }
            let mut row: Map<String, Value> = counts
                .into_iter()
                .map(|(name, count)| (name.into(), count.into()))
                .collect();
            row.insert("subject".into(), subject);
            row.insert("subject_type".into(), "certname".into());
            unique.push(row.into());
        }
        unique
    })
}

/// The obvious way to add event counts up.
fn added(answers: &[Vec<Value>]) -> Vec<Value> {
    let mut rows: Vec<Value> = Vec::new();
    for row in answers.iter().flatten() {
        let Some(same) = rows.iter_mut().find(|r| r["subject"] == row["subject"]) else {
            rows.push(row.clone());
            continue;
        };
        for (name, count) in row.as_object().unwrap() {
            if let Some(count) = count.as_i64().filter(|_| name != "subject") {
                same[name] = (count + same[name].as_i64().unwrap_or(0)).into();
            } else if same.get(name).is_none() {
                same[name] = Value::Null;
            }
        }
    }
    rows
}

/// The answers as text, every other one with members in another layout.
fn bodies(answers: &[Vec<Value>]) -> Vec<String> {
    answers
        .iter()
        .enumerate()
        .map(|(backend, rows)| match backend % 2 {
            0 => serde_json::to_string(rows).unwrap(),
            _ => serde_json::to_string_pretty(rows).unwrap(),
        })
        .collect()
}

fn values(answers: &[Vec<Value>]) -> Vec<Value> {
    let bodies = bodies(answers);
    let bodies: Vec<&str> = bodies.iter().map(String::as_str).collect();
    texts(&FoldPlan::event_counts(), &bodies)
        .iter()
        .map(|row| serde_json::from_str(row).unwrap())
        .collect()
}

proptest! {
    #[test]
    fn an_estate_in_parts_folds_to_the_answer_of_the_whole(parts in estate()) {
        let plan = plan(&["count", "sum", "min", "max"], &["name"], &["name"]);
        let split: Vec<String> = parts.iter().map(|part| answer(part)).collect();
        prop_assert_eq!(by_name(&plan, &split), by_name(&plan, &[answer(&parts.concat())]));
    }

    #[test]
    fn averages_are_the_exact_quotient_rounded_once(parts in estate()) {
        let plan = plan(&["avg", "min", "max"], &["name"], &["name"]);
        let split: Vec<String> = parts.iter().map(|part| answer(part)).collect();
        let split: Vec<&str> = split.iter().map(String::as_str).collect();
        let mut expected = grouped(&parts.concat());
        for row in folded(&plan, &split).unwrap() {
            let name: Option<u8> = serde_json::from_slice(row.column("name").unwrap()).unwrap();
            let group = expected.remove(&name).unwrap();
            let average = str::from_utf8(row.column("avg").unwrap()).unwrap();
            let Some((thousandths, _)) = sum(&group) else {
                prop_assert_eq!(average, "null");
                continue;
            };
            let (mantissa, exponent) = average.split_once('E').unwrap_or((average, "0"));
            let fraction = mantissa.split_once('.').map_or("", |(_, fraction)| fraction);
            let exponent: i128 = exponent.parse().unwrap();
            let scale = u32::try_from(fraction.len() as i128 - exponent).unwrap();
            let digits: i128 = mantissa.replace('.', "").parse().unwrap();
            // |digits / 10^scale - thousandths / 1000 / count| is at most half of 10^-scale.
            let unit = 1000 * group.len() as i128;
            let miss = digits * unit - thousandths * 10_i128.pow(scale);
            prop_assert!(2 * miss.abs() <= unit, "{} of {:?}", average, group);
        }
        prop_assert!(expected.is_empty());
    }

    #[test]
    fn counts_are_what_adding_them_one_by_one_gives(
        answers in proptest::collection::vec(event_counts(), 0..4)
    ) {
        prop_assert_eq!(values(&answers), added(&answers));
    }

    #[test]
    fn the_order_of_backends_changes_no_value(
        (answers, shuffled) in proptest::collection::vec(event_counts(), 0..4)
            .prop_flat_map(|answers| (Just(answers.clone()), Just(answers).prop_shuffle()))
    ) {
        let sorted = |answers: &[Vec<Value>]| {
            let mut rows: Vec<String> = values(answers).iter().map(Value::to_string).collect();
            rows.sort();
            rows
        };
        prop_assert_eq!(sorted(&answers), sorted(&shuffled));
    }

    #[test]
    fn one_backend_in_is_the_same_bytes_out(rows in event_counts(), place in 0_usize..3) {
        let rows: Vec<String> = rows
            .iter()
            .map(|row| serde_json::to_string_pretty(row).unwrap())
            .collect();
        let body = format!("[{}]", rows.join(" , "));
        let mut among_empty = ["[]"; 3];
        among_empty[place] = &body;
        prop_assert_eq!(&texts(&FoldPlan::event_counts(), &[&body]), &rows);
        prop_assert_eq!(&texts(&FoldPlan::event_counts(), &among_empty), &rows);
    }

    #[test]
    fn a_body_cut_anywhere_is_damaged(parts in estate(), cut in any::<prop::sample::Index>()) {
        let plan = plan(&["count", "sum", "min", "max"], &["name"], &["name"]);
        let body = answer(&parts.concat());
        let cut = &body.as_bytes()[..cut.index(body.len())];
        prop_assert!(Rows::read(&plan, cut).is_err());
    }

    #[test]
    fn no_body_makes_folding_panic(
        bodies in proptest::collection::vec(
            "\\[(\\{\"(sum|count|max|name)\":[-0-9.eE\"a{}\\[\\]]{1,8}\\}){0,1}\\]?", 0..4
        )
    ) {
        for plan in [plan(&["avg", "max"], &["name"], &["os"]), FoldPlan::event_counts()] {
            let answers = bodies
                .iter()
                .filter_map(|body| Rows::read(&plan, body.as_bytes()).ok())
                .collect();
            // Folded or refused: either is an answer.
            let _ = fold(&plan, answers);
        }
    }
}
