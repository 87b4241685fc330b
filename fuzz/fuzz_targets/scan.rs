//! The record scanner on any bytes: it never panics, finds the same at all levels and however the
//! text is cut into chunks, and wherever serde_json accepts a text it accepts it too and finds the
//! same spans.

#![no_main]

#[path = "../../core/tests/scan/oracle.rs"]
mod oracle;

use std::fmt::Debug;

use libfuzzer_sys::fuzz_target;
use pdbmux_core::json::{Arriving, ScanError, ScanProblem, check_utf8, kind, unquote};

/// Fails unless the scanner agrees with serde_json, which follows any depth.
fn compare<T: Debug + PartialEq>(found: Result<T, ScanError>, expected: Option<T>) {
    match (found, expected) {
        (Err(error), Some(_)) if error.problem == ScanProblem::TooDeep => {}
        (found, Some(expected)) => assert_eq!(found, Ok(expected)),
        (_, None) => {}
    }
}

/// The texts of all records, of a text that arrives in chunks of this size.
fn arriving(text: &[u8], size: usize) -> Result<Vec<Vec<u8>>, ScanError> {
    let mut arriving = Arriving::default();
    let mut found = Vec::new();
    for chunk in text.chunks(size) {
        arriving.feed(&oracle::KEYS, chunk, |record| {
            found.push(record.text[record.span].to_vec())
        })?;
    }
    arriving.finish().map(|()| found)
}

fuzz_target!(|text: &[u8]| {
    let utf8 = std::str::from_utf8(text).map_err(|error| error.valid_up_to());
    assert_eq!(check_utf8(text).map_err(|error| error.at), utf8.map(drop));

    let records = oracle::records(text);
    for (record, fields) in records.iter().flatten() {
        assert!(text[record.clone()].starts_with(b"{") && text[record.clone()].ends_with(b"}"));
        for field in fields.iter().flatten() {
            assert!(
                record.start < field.start && field.start < field.end && field.end < record.end
            );
        }
    }
    let bytes: Result<Vec<Vec<u8>>, _> = records.clone().map(|records| {
        let spans = records.into_iter().map(|(span, _)| span);
        spans.map(|span| text[span].to_vec()).collect()
    });
    for size in [1, 7, 64, 100] {
        assert_eq!(arriving(text, size), bytes, "in chunks of {size}");
    }
    compare(records, oracle::oracle_records(text));

    let elements = oracle::elements(text);
    for element in elements.iter().flatten() {
        let raw = &text[element.clone()];
        let _ = (kind(raw), unquote(raw));
    }
    compare(elements, oracle::oracle_elements(text));

    let members = oracle::members(text).map(|members| {
        let unquoted = members.into_iter().map(|(key, value)| {
            let key = unquote(&text[key])?.into_owned();
            Some((key, value))
        });
        unquoted.collect::<Option<Vec<_>>>()
    });
    compare(members, oracle::oracle_members(text).map(Some));
});
