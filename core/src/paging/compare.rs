//! Comparison of two JSON values by their text, in PostgreSQL's order.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::ColumnKind;
use super::number::compare_numbers;
use crate::json::{Elements, Kind, Members, kind, unquote};

/// Containers nested deeper than this compare by their bytes. Facts come nowhere near it, and a
/// bound keeps a hostile value from costing stack or more than this many scans of its text.
const MAX_DEPTH: u32 = 64;

/// Compares two values of one column, ascending (rulings 6 and 8). Both are raw JSON as the scanner
/// found it.
///
/// Nothing is allocated for numbers, literals, arrays and strings without escapes. Whatever the
/// bytes, damaged JSON included, the answers fit together, so that it is safe to sort by them.
pub fn compare_values(column: ColumnKind, a: &[u8], b: &[u8]) -> Ordering {
    match column {
        ColumnKind::Jsonb => compare_jsonb(a, b),
        ColumnKind::JsonText => a.cmp(b),
        ColumnKind::NullableJsonb => nulls_last(a, b, compare_jsonb),
        ColumnKind::Plain => nulls_last(a, b, |a, b| match (kind(a), kind(b)) {
            (Kind::Array, Kind::Array) => compare_text_arrays(a, b, 0),
            _ => compare_nested(a, b, 0),
        }),
        ColumnKind::PathDepth => {
            nulls_last(a, b, |a, b| elements(a).count().cmp(&elements(b).count()))
        }
        ColumnKind::FactPath => nulls_last(a, b, |a, b| encode_path(a).cmp(&encode_path(b))),
    }
}

/// An SQL null equals itself and is greater than anything else.
fn nulls_last(a: &[u8], b: &[u8], values: fn(&[u8], &[u8]) -> Ordering) -> Ordering {
    match (kind(a), kind(b)) {
        (Kind::Null, Kind::Null) => Ordering::Equal,
        (Kind::Null, _) => Ordering::Greater,
        (_, Kind::Null) => Ordering::Less,
        _ => values(a, b),
    }
}

/// Whole `jsonb` values. An empty array comes before everything else, but only at the top: there
/// PostgreSQL keeps a scalar as an array of one and compares lengths before kinds.
fn compare_jsonb(a: &[u8], b: &[u8]) -> Ordering {
    let filled = |raw| !is_empty_array(raw);
    let order = filled(a).cmp(&filled(b));
    order.then_with(|| compare_nested(a, b, 0))
}

fn is_empty_array(raw: &[u8]) -> bool {
    kind(raw) == Kind::Array && elements(raw).next().is_none()
}

/// Values inside a `jsonb` container: by kind, then by value.
fn compare_nested(a: &[u8], b: &[u8], depth: u32) -> Ordering {
    let of_a = kind(a);
    let order = rank(of_a).cmp(&rank(kind(b)));
    order.then_with(|| match of_a {
        Kind::Null => Ordering::Equal,
        Kind::String => text(a).cmp(&text(b)),
        Kind::Number => compare_numbers(a, b),
        // `false` and `true` are in order as text, too.
        Kind::Bool => a.cmp(b),
        Kind::Array | Kind::Object if depth == MAX_DEPTH => a.cmp(b),
        Kind::Array => compare_arrays(a, b, depth + 1),
        Kind::Object => compare_objects(a, b, depth + 1),
    })
}

fn rank(kind: Kind) -> u8 {
    match kind {
        Kind::Null => 0,
        Kind::String => 1,
        Kind::Number => 2,
        Kind::Bool => 3,
        Kind::Array => 4,
        Kind::Object => 5,
    }
}

/// `jsonb` arrays: by length, then element by element.
fn compare_arrays(a: &[u8], b: &[u8], depth: u32) -> Ordering {
    let order = elements(a).count().cmp(&elements(b).count());
    order.then_with(|| {
        let pairs = elements(a).zip(elements(b));
        first_difference(pairs.map(|(a, b)| compare_nested(a, b, depth)))
    })
}

/// `jsonb` objects: by number of members, then member by member in the order they are stored.
///
/// That order is by length of the key, but the keys met at the same place compare as text: `{"aa"}`
/// comes before `{"b"}`.
fn compare_objects(a: &[u8], b: &[u8], depth: u32) -> Ordering {
    let (a, b) = (stored_members(a), stored_members(b));
    let order = a.len().cmp(&b.len());
    order.then_with(|| {
        let pairs = a.iter().zip(&b);
        first_difference(pairs.map(|((key_a, a), (key_b, b))| {
            let order = key_a.cmp(key_b);
            order.then_with(|| compare_nested(a, b, depth))
        }))
    })
}

/// The members of an object as `jsonb` stores them: the last of a repeated key, short keys first.
fn stored_members(raw: &[u8]) -> Vec<(Cow<'_, [u8]>, &[u8])> {
    let members = Members::new(raw).map_while(Result::ok);
    let mut members: Vec<_> = members
        .map(|(key, value)| (text(&raw[key]), &raw[value]))
        .collect();
    members.sort_by(|(a, _), (b, _)| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    members.dedup_by(|later, kept| {
        let same = later.0 == kept.0;
        if same {
            kept.1 = later.1;
        }
        same
    });
    members
}

/// Columns of type `text[]`: element by element as text, the numbers in a fact's path included; of
/// two that agree the shorter comes first. A null element is the greatest.
fn compare_text_arrays(a: &[u8], b: &[u8], depth: u32) -> Ordering {
    let pairs = elements(a).zip(elements(b));
    let order = first_difference(pairs.map(|(a, b)| match (kind(a), kind(b)) {
        (Kind::Array, Kind::Array) if depth < MAX_DEPTH => compare_text_arrays(a, b, depth + 1),
        (of_a, of_b) => {
            let class = |kind| (kind == Kind::Null, kind == Kind::Array);
            let order = class(of_a).cmp(&class(of_b));
            order.then_with(|| text(a).cmp(&text(b)))
        }
    }));
    order.then_with(|| elements(a).count().cmp(&elements(b).count()))
}

/// A fact's path as PuppetDB stores it in `fact_paths`: joined by `#~`, with digits that are a key
/// in quotes and a delimiter inside a key escaped.
fn encode_path(raw: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(raw.len());
    for (index, element) in elements(raw).enumerate() {
        if index > 0 {
            path.extend_from_slice(b"#~");
        }
        let key = text(element);
        if kind(element) != Kind::String {
            path.extend_from_slice(&key);
        } else if key.iter().all(u8::is_ascii_digit) {
            path.push(b'"');
            path.extend_from_slice(&key);
            path.push(b'"');
        } else {
            escape_delimiters(&key, &mut path);
        }
    }
    path
}

/// Writes `key` with `\#\` for each `#` that a `~` follows, directly or after backslashes.
fn escape_delimiters(mut key: &[u8], path: &mut Vec<u8>) {
    while let Some((&byte, rest)) = key.split_first() {
        if byte == b'#' && rest.iter().find(|&&b| b != b'\\') == Some(&b'~') {
            path.extend_from_slice(br"\#\");
        } else {
            path.push(byte);
        }
        key = rest;
    }
}

/// The elements of an array up to its end or the first damage.
fn elements(raw: &[u8]) -> impl Iterator<Item = &[u8]> {
    Elements::new(raw)
        .map_while(Result::ok)
        .map(|span| &raw[span])
}

/// The characters of a string as bytes; anything else, broken strings included, as it is written.
fn text(raw: &[u8]) -> Cow<'_, [u8]> {
    let inner = raw.strip_prefix(b"\"").and_then(|r| r.strip_suffix(b"\""));
    let inner = inner.unwrap_or(raw);
    if memchr::memchr(b'\\', inner).is_none() {
        return Cow::Borrowed(inner);
    }
    match unquote(raw) {
        Some(Cow::Owned(text)) => Cow::Owned(text.into_bytes()),
        Some(Cow::Borrowed(text)) => Cow::Borrowed(text.as_bytes()),
        None => Cow::Borrowed(inner),
    }
}

fn first_difference(mut orders: impl Iterator<Item = Ordering>) -> Ordering {
    orders
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}
