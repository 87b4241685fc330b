//! Any `order_by` reads back as it is sent on, and any three values are totally ordered. The input
//! is an `order_by` and three values, an empty line between them.

#![no_main]

#[path = "../../core/tests/laws/order.rs"]
mod order;

use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;
use order::assert_total;
use pdbmux_core::paging::{ColumnKind, OrderBy, compare_values};
use pdbmux_fuzz::near::Words;
use pdbmux_fuzz::parts;

const KINDS: [ColumnKind; 5] = [
    ColumnKind::Plain,
    ColumnKind::Jsonb,
    ColumnKind::NullableJsonb,
    ColumnKind::JsonText,
    ColumnKind::FactPath,
];

const FIELDS: Words = Words {
    keys: &["field", "order"],
    scalars: &[
        r#""name""#,
        r#""asc""#,
        r#""DESC""#,
        r#""a.\u0022b""#,
        "null",
        "1",
    ],
};

const VALUES: Words = Words {
    keys: &["a", "b", "aa", "\\u0061", "é"],
    scalars: &[
        "1",
        "1.0",
        "10e-1",
        "-0.0",
        "0",
        "1e400",
        "\"a\"",
        "\"\\u0061\"",
        "\"1\"",
        "\"é~#\"",
        "\"\\ud800\"",
        "null",
        "true",
        "false",
        "\"2020-01-01T00:00:00.000Z\"",
    ],
};

fuzz_target!(|input: &[u8]| {
    let parts = parts(input);
    if let Ok(text) = std::str::from_utf8(parts[0]) {
        check_order_by(text);
    }
    if let [_, a, b, c, ..] = *parts {
        check_values(&[a, b, c]);
    }
    let mut input = Unstructured::new(input);
    if let Ok(text) = FIELDS.array(&mut input, 2) {
        check_order_by(&text);
    }
    let mut value = || VALUES.value(&mut input, 3);
    if let (Ok(a), Ok(b), Ok(c)) = (value(), value(), value()) {
        check_values(&[a.as_bytes(), b.as_bytes(), c.as_bytes()]);
    }
});

fn check_order_by(text: &str) {
    let Ok(order_by) = OrderBy::parse(text) else {
        return;
    };
    assert_eq!(OrderBy::parse(&order_by.to_json()).as_ref(), Ok(&order_by));
    let ordered = order_by.clone().and_then_by(&["certname", "name"]);
    assert!(ordered.fields.starts_with(&order_by.fields));
    for (at, field) in ordered.fields.iter().enumerate() {
        let again = ordered.fields[..at]
            .iter()
            .any(|earlier| earlier.field == field.field);
        assert!(!again, "{} comes twice", field.field);
    }
}

fn check_values(values: &[&[u8]; 3]) {
    for kind in KINDS {
        assert_total(values, |a, b| compare_values(kind, a, b));
    }
}
