//! Laws of parameters in a body: what a POST says is what its GET says.

// Helpers of tests may fail a test like the tests themselves.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use pdbmux_core::params::Params;
use pdbmux_core::params::body::{from_form, from_json, to_json};
use proptest::prelude::*;

/// Names that have types of their own, and others.
const NAMES: [&str; 10] = [
    "query",
    "limit",
    "offset",
    "order_by",
    "counts_filter",
    "include_total",
    "pretty",
    "summarize_by",
    "origin",
    "a b\"&=%+é",
];

fn is_array(name: &str) -> bool {
    matches!(name, "order_by" | "counts_filter")
}

fn is_switch(name: &str) -> bool {
    matches!(name, "include_total" | "pretty")
}

/// JSON with blanks and numbers that a tree of values would not keep.
fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?",
        any::<String>().prop_map(|text| serde_json::Value::from(text).to_string()),
        Just("\"\\u00e9\\/\\ud83d\\ude00\"".to_owned()),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| array(inner).boxed())
}

fn array(item: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    let item = (item, "[ \n\t]{0,2}").prop_map(|(item, blanks)| format!("{blanks}{item}{blanks}"));
    proptest::collection::vec(item, 0..4).prop_map(|items| format!("[{}]", items.join(",")))
}

/// Values as texts, each name at most once; those that must be arrays are.
fn values() -> impl Strategy<Value = BTreeMap<&'static str, String>> {
    let text = prop_oneof![
        any::<String>(),
        json(),
        "[+-]?[0-9]{0,12}",
        "(true|TRUE|false|1)?"
    ];
    let one = (proptest::sample::select(&NAMES[..]), text, array(json()));
    proptest::collection::vec(one, 0..6).prop_map(|pairs| {
        let pairs = pairs.into_iter().map(|(name, text, array)| {
            let value = if is_array(name) { array } else { text };
            (name, value)
        });
        pairs.collect()
    })
}

fn encoded(values: &BTreeMap<&'static str, String>) -> String {
    form_urlencoded::Serializer::new(String::new())
        .extend_pairs(values)
        .finish()
}

fn read(query: &str) -> BTreeMap<&'static str, String> {
    let params = Params::read(query).unwrap();
    let value = |name| Some((name, params.get(name)?.to_owned()));
    NAMES.into_iter().filter_map(value).collect()
}

proptest! {
    #[test]
    fn parameters_survive_from_get_to_post_and_back(values in values()) {
        let query = encoded(&values);
        let body = to_json(&Params::read(&query).unwrap()).unwrap();
        let object: serde_json::Value = serde_json::from_str(&body).unwrap();
        prop_assert_eq!(object.as_object().unwrap().len(), values.len());
        let back = from_json(body.as_bytes()).unwrap();
        let mut expected = values;
        for (name, value) in &mut expected {
            // All that is not true is false.
            if is_switch(name) {
                *value = value.eq_ignore_ascii_case("true").to_string();
            }
        }
        prop_assert_eq!(read(&back), expected);
    }

    #[test]
    fn parameters_survive_in_a_form(values in values(), others in values()) {
        let form = encoded(&values);
        prop_assert_eq!(read(&from_form("", form.as_bytes()).unwrap()), values.clone());
        let both = from_form(&encoded(&others), form.as_bytes()).unwrap();
        let single = |name: &&str| values.contains_key(name) != others.contains_key(name);
        let expected: BTreeMap<_, _> = values
            .iter()
            .chain(&others)
            .filter(|(name, _)| single(name))
            .map(|(name, value)| (*name, value.clone()))
            .collect();
        prop_assert_eq!(read(&both), expected);
    }

    #[test]
    fn a_query_reads_the_same_as_text_and_as_an_array(query in array(json())) {
        let text = serde_json::Value::from(query.as_str()).to_string();
        for value in [&query, &text] {
            let body = format!("{{\"query\" :\n{value}}}");
            let read = read(&from_json(body.as_bytes()).unwrap());
            prop_assert_eq!(read.get("query"), Some(&query));
        }
    }

    #[test]
    fn no_body_is_too_strange(body in any::<Vec<u8>>(), text in ".*") {
        for bytes in [&body[..], text.as_bytes()] {
            if let Ok(query) = from_json(bytes) {
                prop_assert!(Params::read(&query).is_ok());
            }
            if let Ok(query) = from_form("", bytes) {
                prop_assert!(Params::read(&query).is_ok());
            }
        }
    }
}
