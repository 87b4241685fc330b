//! Any body: the query string made of it holds the values of the body, as a body of it does again,
//! and fits into a URL.

#![no_main]

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use pdbmux_core::params::Params;
use pdbmux_core::params::body::{from_form, from_json, to_json};
use pdbmux_fuzz::near::Words;
use serde_json::{Map, Value};

const MEMBERS: Words = Words {
    keys: &[
        "query",
        "\\u0071uery",
        "limit",
        "order_by",
        "counts_filter",
        "include_total",
        "a&=%+é",
    ],
    scalars: &[
        r#""[\"=\", \"a\", 1.50]""#,
        r#""nodes { a ~ '%&+' }""#,
        r#""\ud83d\ude00""#,
        r#""\ud800""#,
        "\"\"",
        "1.50e+3",
        "18446744073709551617",
        "true",
        "null",
    ],
};

fuzz_target!(|input: &[u8]| {
    check_json(input);
    check_form(input);
    if let Ok(body) = object(input) {
        check_json(body.as_bytes());
    }
});

fn object(input: &[u8]) -> Result<String> {
    MEMBERS.object(&mut Unstructured::new(input), 3)
}

fn check_json(body: &[u8]) {
    let Ok(query) = from_json(body) else {
        return;
    };
    assert_fits(&query);
    let Ok(params) = Params::read(&query) else {
        assert!(query.split('&').count() > 1000, "{query}");
        return;
    };
    // A number that no `Value` can hold makes this reader give up where pdbmux does not.
    if let Ok(members) = serde_json::from_slice::<Map<String, Value>>(body) {
        for (name, value) in &members {
            assert_eq!(
                params.get(name),
                expected(value, params.get(name)).as_deref(),
                "{name}"
            );
        }
    }
    let again = to_json(&params).and_then(|body| from_json(body.as_bytes()).ok());
    let Some(again) = again else {
        // A query string says the same in an object unless a list of it is none, and from a body
        // it always is one.
        panic!("{query} has no body");
    };
    let again = Params::read(&again).unwrap();
    for name in [
        "query",
        "limit",
        "offset",
        "order_by",
        "counts_filter",
        "origin",
    ] {
        assert_eq!(params.get(name), again.get(name), "{name}");
    }
    assert_eq!(
        params.is_true("include_total"),
        again.is_true("include_total")
    );
}

/// What a URL holds of a value: text as it is, else JSON that reads the same as `found`.
fn expected(value: &Value, found: Option<&str>) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => {
            let found = found.unwrap_or_default();
            let same = serde_json::from_str::<Value>(found).is_ok_and(|read| read == *other);
            Some(if same {
                found.to_owned()
            } else {
                other.to_string()
            })
        }
    }
}

fn check_form(form: &[u8]) {
    let Ok(query) = from_form("", form) else {
        return;
    };
    assert_fits(&query);
    assert_eq!(from_form("", query.as_bytes()), Ok(query.clone()));
    assert_eq!(from_form(&query, b""), Ok(query));
}

fn assert_fits(query: &str) {
    let fits = |byte: u8| byte.is_ascii_graphic() && !b"\"#<>\\^`{|}".contains(&byte);
    assert!(query.bytes().all(fits), "{query}");
}
