//! Ordering and paging against slow oracles, and the laws they must keep.

// Helpers of tests may fail a test like the tests themselves.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use bigdecimal::BigDecimal;
use pdbmux_core::paging::{
    ColumnKind, Direction, OrderBy, OrderField, RecordOrder, Window, compare_values, parse_limit,
    parse_offset,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

#[path = "laws/order.rs"]
mod order;

const KINDS: [ColumnKind; 5] = [
    ColumnKind::Plain,
    ColumnKind::Jsonb,
    ColumnKind::NullableJsonb,
    ColumnKind::JsonText,
    ColumnKind::FactPath,
];

/// A JSON value as its meaning and one of its spellings.
#[derive(Debug, Clone)]
enum Json {
    Null,
    Bool(bool),
    Number(String),
    String(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

/// The order of `jsonb`, said by a derive: variants ascend, containers compare by size first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Null,
    String(String),
    Number(BigDecimal),
    Bool(bool),
    Array(usize, Vec<Key>),
    Object(usize, Vec<(String, Key)>),
}

impl Json {
    fn key(&self) -> Key {
        match self {
            Json::Null => Key::Null,
            Json::Bool(value) => Key::Bool(*value),
            Json::Number(text) => Key::Number(text.parse().unwrap()),
            Json::String(text) => Key::String(text.clone()),
            Json::Array(items) => Key::Array(items.len(), items.iter().map(Json::key).collect()),
            Json::Object(members) => {
                let stored: BTreeMap<_, _> = members
                    .iter()
                    .map(|(key, value)| ((key.len(), key.clone()), value.key()))
                    .collect();
                let stored = stored.into_iter().map(|((_, key), value)| (key, value));
                let stored: Vec<_> = stored.collect();
                Key::Object(stored.len(), stored)
            }
        }
    }

    fn spell(&self) -> String {
        match self {
            Json::Null => "null".to_owned(),
            Json::Bool(value) => value.to_string(),
            Json::Number(text) => text.clone(),
            Json::String(text) => spell_string(text),
            Json::Array(items) => {
                let items: Vec<_> = items.iter().map(Json::spell).collect();
                format!("[{}]", items.join(" , "))
            }
            Json::Object(members) => {
                let members = members.iter();
                let members = members.map(|(k, v)| format!("{}: {}", spell_string(k), v.spell()));
                format!("{{{}}}", members.collect::<Vec<_>>().join(","))
            }
        }
    }
}

/// Spells every `a` as an escape, so that text and spelling sort differently.
fn spell_string(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.replace('a', "\\u0061")
}

fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        (-3i64..4).prop_map(|n| n.to_string()),
        any::<i64>().prop_map(|n| n.to_string()),
        (select(vec!["", "-"]), 0u128.., 0u32..50, -30i32..30).prop_map(|(sign, n, zeros, e)| {
            format!("{sign}{n}.{:01$}e{e}", n % 10, zeros as usize + 1)
        }),
        (-20i64..20, 0u8..3, -2i32..3).prop_map(|(n, tenths, e)| format!("{n}.{tenths}0E{e}")),
    ]
}

fn string() -> impl Strategy<Value = String> {
    prop_oneof!["[abAé!]{0,3}", any::<String>()]
}

fn json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        number().prop_map(Json::Number),
        string().prop_map(Json::String),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let member = ("[abé]{0,2}", inner.clone());
        prop_oneof![
            vec(inner, 0..4).prop_map(Json::Array),
            vec(member, 0..4).prop_map(Json::Object),
        ]
    })
}

/// Bytes that look like JSON to a comparison that only reads the first of them.
fn garbage() -> impl Strategy<Value = Vec<u8>> {
    let pieces = vec![
        "\"", "\\", "\\u00", "[", "]", "{", "}", ",", ":", "a", "#", "~", "-", "1", "0", ".", "e",
        "null", "true", " ", "\u{e9}",
    ];
    prop_oneof![
        vec(any::<u8>(), 0..12),
        vec(select(pieces), 0..12).prop_map(|pieces| pieces.concat().into_bytes()),
    ]
}

proptest! {
    #[test]
    fn jsonb_agrees_with_the_derived_order(a in json(), b in json()) {
        let top = |json: &Json| (!matches!(json, Json::Array(items) if items.is_empty()), json.key());
        let order = compare_values(ColumnKind::Jsonb, a.spell().as_bytes(), b.spell().as_bytes());
        prop_assert_eq!(order, top(&a).cmp(&top(&b)), "{} {}", a.spell(), b.spell());
    }

    #[test]
    fn plain_scalars_agree_with_the_derived_order(a in json(), b in json()) {
        let plain = |json: &Json| match json.key() {
            Key::Null => (true, Key::Null),
            key => (false, key),
        };
        let containers = matches!((&a, &b), (Json::Array(_), Json::Array(_)));
        prop_assume!(!containers);
        let order = compare_values(ColumnKind::Plain, a.spell().as_bytes(), b.spell().as_bytes());
        prop_assert_eq!(order, plain(&a).cmp(&plain(&b)), "{} {}", a.spell(), b.spell());
    }

    #[test]
    fn any_json_is_totally_ordered(a in json(), b in json(), c in json()) {
        let texts = [a, b, c].map(|json| json.spell().into_bytes());
        for kind in KINDS {
            order::assert_total(&texts, |a, b| compare_values(kind, a, b));
        }
    }

    #[test]
    fn any_bytes_are_totally_ordered(a in garbage(), b in garbage(), c in garbage()) {
        let texts = [a, b, c];
        for kind in KINDS {
            order::assert_total(&texts, |a, b| compare_values(kind, a, b));
        }
    }

    #[test]
    fn r143_sorting_agrees_with_a_stable_sort_of_keys(
        records in vec((proptest::option::of(json()), proptest::option::of(-2i8..3)), 0..24),
        directions in select(&[(Direction::Asc, Direction::Desc), (Direction::Desc, Direction::Asc)][..]),
    ) {
        let order_by = OrderBy {
            fields: vec![
                OrderField { field: "line".to_owned(), direction: directions.0 },
                OrderField { field: "value".to_owned(), direction: directions.1 },
            ],
        };
        let texts: Vec<_> = records
            .iter()
            .map(|(value, line)| [line.map(|n| n.to_string()), value.as_ref().map(Json::spell)])
            .collect();
        let member = |&row: &usize, index: usize| texts[row][index].as_deref().map(str::as_bytes);
        let order = RecordOrder::new(&order_by, "facts");
        prop_assert_eq!(order.members(), ["line", "value"]);
        let mut sorted: Vec<usize> = (0..records.len()).collect();
        order.sort(&mut sorted, member);

        // The oracle sorts by the last field first and moves what is absent to the front.
        let mut expected: Vec<usize> = (0..records.len()).collect();
        let top = |json: &Json| (!matches!(json, Json::Array(i) if i.is_empty()), json.key());
        expected.sort_by_key(|&row| records[row].0.as_ref().map(top));
        if directions.1 == Direction::Desc {
            expected = descending(expected, |row| records[row].0.as_ref().map(top));
        }
        expected.sort_by_key(|&row| records[row].1);
        if directions.0 == Direction::Desc {
            expected = descending(expected, |row| records[row].1);
        }
        prop_assert_eq!(sorted, expected);
    }

    #[test]
    fn r152_any_text_is_parsed_or_refused(text in any::<String>(), picks in vec(any::<Index>(), 0..12)) {
        let pieces = [
            "[", "]", "{", "}", ",", ":", "\"field\"", "\"order\"", "\"asc\"", "\"x\"", "null", "1", " ",
        ];
        let json: String = picks.iter().map(|pick| *pick.get(&pieces)).collect();
        for text in [text, json] {
            if let Ok(order_by) = OrderBy::parse(&text) {
                prop_assert_eq!(OrderBy::parse(&order_by.to_json()), Ok(order_by));
            }
            let _ = (parse_limit(&text), parse_offset(&text));
        }
    }

    #[test]
    fn r150_every_number_in_range_is_taken(n in any::<i64>()) {
        let taken = u32::try_from(n).ok().filter(|n| *n <= i32::MAX.unsigned_abs());
        prop_assert_eq!(parse_offset(&n.to_string()).ok(), taken);
        prop_assert_eq!(parse_limit(&n.to_string()).ok(), taken.filter(|n| *n > 0));
    }

    #[test]
    fn r153_pages_in_turn_yield_each_record_once(records in vec(any::<u8>(), 0..40), limit in 1u32..9) {
        let mut seen = Vec::new();
        for page in 0.. {
            let window = Window { offset: page * limit, limit: Some(limit) };
            let cut = window.cut(&records);
            if cut.is_empty() {
                break;
            }
            seen.extend_from_slice(cut);
        }
        prop_assert_eq!(seen, records);
    }

    #[test]
    fn r146_what_backends_are_asked_for_is_enough(
        backends in vec(vec(0u8..20, 0..20), 1..4),
        offset in 0u32..12,
        limit in 1u32..12,
    ) {
        let window = Window { offset, limit: Some(limit) };
        let asked = window.upstream_limit().unwrap() as usize;
        let (mut whole, mut sent) = (Vec::new(), Vec::new());
        for mut records in backends {
            records.sort_unstable();
            whole.extend_from_slice(&records);
            records.truncate(asked);
            sent.extend(records);
        }
        whole.sort_unstable();
        sent.sort_unstable();
        prop_assert_eq!(window.cut(&sent), window.cut(&whole));
    }
}

/// Reverses `rows`, ascending by `key`, where ties keep their order and absent keys stay in front.
fn descending<K: Ord>(rows: Vec<usize>, key: impl Fn(usize) -> Option<K>) -> Vec<usize> {
    let (absent, present): (Vec<_>, Vec<_>) = rows.into_iter().partition(|&row| key(row).is_none());
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for row in present {
        match groups.last_mut() {
            Some(group) if key(group[0]) == key(row) => group.push(row),
            _ => groups.push(vec![row]),
        }
    }
    groups.reverse();
    absent
        .into_iter()
        .chain(groups.into_iter().flatten())
        .collect()
}
