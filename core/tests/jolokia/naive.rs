//! The merge against a slow and obvious one, and the laws it keeps.

#![allow(clippy::float_cmp)] // the numbers are few quarters, so that doubles hold them exactly

use pdbmux_core::merge::jolokia::{Body, ReadRequest, list, mbean, mbeans_index, read};
use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{bytes, made, value};

/// Merges by the plain wording of the rules.
fn naive(values: &[&Value], name: &str, memory: bool, average: bool) -> Value {
    if values.iter().all(|value| value.is_object()) {
        let is_memory =
            |v: &&Value| v.get("used").is_some() && v.get("committed").is_some() && !average;
        let memory = memory || values.iter().any(is_memory);
        let keys = values
            .iter()
            .filter_map(|value| value.as_object())
            .flat_map(Map::keys);
        return keys
            .map(|key| {
                let members: Vec<_> = values.iter().filter_map(|value| value.get(key)).collect();
                (key.clone(), naive(&members, key, memory, average))
            })
            .collect();
    }
    let Some(mut numbers): Option<Vec<f64>> = values.iter().map(|v| v.as_f64()).collect() else {
        return values[0].clone();
    };
    let mean =
        |numbers: &[f64]| numbers.iter().sum::<f64>() / numbers.iter().map(|_| 1.0).sum::<f64>();
    let name = name.to_lowercase();
    json!(if name == "min" {
        numbers.into_iter().fold(f64::INFINITY, f64::min)
    } else if ["max", "uptime", "starttime"].contains(&name.as_str()) && !(name == "max" && memory)
    {
        numbers.into_iter().fold(f64::NEG_INFINITY, f64::max)
    } else if ["mean", "median", "stddev"].contains(&name.as_str()) || name.ends_with("percentile")
    {
        mean(&numbers)
    } else {
        let first = numbers[0];
        numbers.retain(|number| {
            if average {
                *number >= 0.0
            } else {
                *number != -1.0
            }
        });
        match (numbers.len(), average) {
            (0, _) => first,
            (_, true) => mean(&numbers),
            (_, false) => numbers.iter().sum(),
        }
    })
}

/// Whether two values are equal, numbers up to the last digits of a double.
fn alike(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(_), Value::Number(_)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            (a - b).abs() <= 1e-12 * a.abs().max(b.abs())
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| alike(a, b)))
        }
        _ => a == b,
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let number = || {
        prop_oneof![
            (-3i32..100).prop_map(Value::from),
            (-8i32..400).prop_map(|quarters| Value::from(f64::from(quarters) / 4.0)),
        ]
    };
    let leaf = prop_oneof![
        8 => number(),
        1 => any::<bool>().prop_map(Value::from),
        1 => "[a/\"é]{0,2}".prop_map(Value::from),
        1 => Just(Value::Null),
        1 => prop::collection::vec(number(), 0..2).prop_map(Value::from),
    ];
    let key = prop::sample::select(vec![
        "Value",
        "Count",
        "min",
        "Max",
        "max",
        "used",
        "committed",
        "Mean",
        "UPTIME",
        "99thPercentile",
        "a/\"b",
    ]);
    leaf.prop_recursive(3, 24, 6, move |inner| {
        prop::collection::btree_map(key.clone(), inner, 0..6).prop_map(|members| {
            let members = members
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value));
            Value::Object(members.collect())
        })
    })
}

/// The keys of every object, however deep, as paths.
fn paths(value: &Value, path: &str, out: &mut Vec<String>) {
    for (key, member) in value.as_object().into_iter().flatten() {
        let path = format!("{path}/{key}");
        paths(member, &path, out);
        out.push(path);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_merge_equals_the_naive_one(
        values in prop::collection::vec(any_value(), 2..5),
        average in any::<bool>(),
        name in prop::sample::select(vec!["Value", "Max", "MIN", "median"]),
    ) {
        let path = format!("a:name={}/{name}", if average { "pct-x" } else { "num-x" });
        let texts: Vec<_> = values.iter().map(Value::to_string).collect();
        let texts: Vec<_> = texts.iter().map(String::as_str).collect();
        let merged: Value = serde_json::from_str(&value(&path, &texts)).unwrap();
        let values: Vec<_> = values.iter().collect();
        let expected = naive(&values, name, false, average);
        prop_assert!(alike(&merged, &expected), "{} instead of {}", merged, expected);
    }

    #[test]
    fn one_backend_in_is_the_same_bytes_out_and_empty_ones_change_nothing(object in any_value()) {
        prop_assume!(object.is_object());
        let (text, empty) = (object.to_string(), String::from("{ }"));
        prop_assert_eq!(mbean("a", &bytes(&[&text])).body, Body::Verbatim(0));
        prop_assert_eq!(made(mbean("a", &bytes(&[&text, &empty]))), text.clone());
        prop_assert_eq!(made(mbeans_index(&bytes(&[&text, &text]))), text);
    }

    #[test]
    fn listings_unite_the_same_keys_in_any_order_of_backends(
        mut listings in prop::collection::vec(any_value().prop_filter("an object of leaves", leaves_only), 2..4),
    ) {
        let mut keys = [Vec::new(), Vec::new()];
        for keys in &mut keys {
            let texts: Vec<_> = listings.iter().map(Value::to_string).collect();
            let merged: Value = serde_json::from_str(&made(mbeans_index(&bytes(&texts)))).unwrap();
            paths(&merged, "", keys);
            keys.sort();
            listings.reverse();
        }
        prop_assert_eq!(&keys[0], &keys[1]);
    }

    #[test]
    fn whatever_bytes_come_nothing_panics(
        bodies in prop::collection::vec(
            prop_oneof![
                prop::collection::vec(any::<u8>(), 0..64),
                "[{}\\[\\]\":,a\\\\u0d8/eE.+\\- 1tn]{0,32}".prop_map(String::into_bytes),
                "\\{\"(value|status|Max)\":(\\{\"\\\\?[ua/]\":)?[0-9e.\\-]{0,6}\\}?,\"status\":20[0-9]\\}".prop_map(String::into_bytes),
            ],
            0..4,
        ),
        path in "[a:=/!%*,?é2FC]{0,12}",
    ) {
        let bodies: Vec<&[u8]> = bodies.iter().map(Vec::as_slice).collect();
        for merged in [
            read(&ReadRequest::from_path(&path), &bodies),
            read(&ReadRequest::default(), &bodies),
            list(&bodies),
            mbeans_index(&bodies),
            mbean(&path, &bodies),
        ] {
            let told = merged.contributed.len() + merged.skipped.len() + merged.damaged.len();
            prop_assert_eq!(told, bodies.len());
            if let Body::Made(body) = merged.body {
                prop_assert!(serde_json::from_slice::<&RawValue>(&body).is_ok());
            }
        }
    }
}

/// Whether `value` is an object of leaves: where objects meet leaves, the first decides what is
/// below, and the union is not one of sets.
fn leaves_only(value: &Value) -> bool {
    value
        .as_object()
        .is_some_and(|object| object.values().all(|member| !member.is_object()))
}
