//! What the fuzz targets share: how an input is read, and how a plan is carried through.

pub mod near;
pub mod round;

use serde_json::value::RawValue;

/// The parts of an input, which empty lines separate: bodies and queries that stay readable in a
/// seed. None of them holds an empty line in practice.
pub fn parts(input: &[u8]) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    let mut rest = input;
    while let Some(at) = rest.windows(2).position(|pair| pair == b"\n\n") {
        parts.push(&rest[..at]);
        rest = &rest[at + 2..];
    }
    parts.push(rest);
    parts
}

/// Whether `text` is JSON by the full grammar.
pub fn is_json(text: &[u8]) -> bool {
    serde_json::from_slice::<&RawValue>(text).is_ok()
}

/// Whether `text` is what a backend answers with: a JSON array of objects.
pub fn is_records(text: &[u8]) -> bool {
    serde_json::from_slice::<Vec<&RawValue>>(text)
        .is_ok_and(|rows| rows.iter().all(|row| row.get().starts_with('{')))
}
