//! What the scanner finds in a text, and what serde_json finds there. Shared with the fuzz target.

use std::fmt;

use pdbmux_core::json::{Elements, Level, Members, Records, ScanError, Span};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members that are asked for.
pub(crate) const KEYS: [&str; 3] = ["certname", "name", "é\""];

/// A record's span and its fields, for [`KEYS`].
pub(crate) type Record = (Span, [Option<Span>; KEYS.len()]);

/// What all levels of the scanner find alike.
fn alike<T: fmt::Debug + PartialEq>(mut find: impl FnMut(Level) -> T) -> T {
    let plain = find(Level::PLAIN);
    for level in Level::all() {
        assert_eq!(find(level), plain, "{level:?}");
    }
    plain
}

/// All records of `text` with their fields.
pub(crate) fn records(text: &[u8]) -> Result<Vec<Record>, ScanError> {
    alike(|level| {
        let mut reader = Records::new(text, &KEYS).on(level);
        // Spans of an earlier use, which every record must clear.
        let mut fields = [const { Some(7..8) }; KEYS.len()];
        let mut found = Vec::new();
        while let Some(record) = reader.next(&mut fields)? {
            found.push((record, fields.clone()));
        }
        Ok(found)
    })
}

/// All elements of `text`.
pub(crate) fn elements(text: &[u8]) -> Result<Vec<Span>, ScanError> {
    alike(|level| Elements::new(text).on(level).collect())
}

/// All members of `text`.
pub(crate) fn members(text: &[u8]) -> Result<Vec<(Span, Span)>, ScanError> {
    alike(|level| Members::new(text).on(level).collect())
}

/// An object as serde_json reads it: every member in order, the values unread.
struct Object<'t>(Vec<(String, &'t RawValue)>);

impl<'de: 't, 't> Deserialize<'de> for Object<'t> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                std::iter::from_fn(|| map.next_entry().transpose()).collect()
            }
        }
        from.deserialize_map(Pairs).map(Object)
    }
}

/// Where `part` lies in `text`, of which it is a slice.
fn span_in(text: &[u8], part: &RawValue) -> Span {
    let part = part.get();
    let start = part.as_ptr().addr() - text.as_ptr().addr();
    start..start + part.len()
}

/// [`elements`] by serde_json, or `None` where it refuses the text.
pub(crate) fn oracle_elements(text: &[u8]) -> Option<Vec<Span>> {
    let values: Vec<&RawValue> = serde_json::from_slice(text).ok()?;
    Some(
        values
            .into_iter()
            .map(|value| span_in(text, value))
            .collect(),
    )
}

/// [`members`] by serde_json, the keys unquoted.
pub(crate) fn oracle_members(text: &[u8]) -> Option<Vec<(String, Span)>> {
    let Object(members) = serde_json::from_slice(text).ok()?;
    let spans = members
        .into_iter()
        .map(|(key, value)| (key, span_in(text, value)));
    Some(spans.collect())
}

/// [`records`] by serde_json.
pub(crate) fn oracle_records(text: &[u8]) -> Option<Vec<Record>> {
    let raw: Vec<&RawValue> = serde_json::from_slice(text).ok()?;
    raw.into_iter()
        .map(|record| {
            let Object(members) = serde_json::from_str(record.get()).ok()?;
            let last = |wanted| members.iter().rev().find(|(key, _)| key == wanted);
            let fields = KEYS.map(|key| last(key).map(|(_, value)| span_in(text, value)));
            Some((span_in(text, record), fields))
        })
        .collect()
}
