//! Single values: their kind, and strings in and out of their quotes.

use std::borrow::Cow;

/// The kind of a JSON value, told by its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// Any number
    Number,
    /// A string
    String,
    /// An array
    Array,
    /// An object
    Object,
}

/// Tells the kind of `raw`, a value as the scanner found it. An empty text counts as null.
pub fn kind(raw: &[u8]) -> Kind {
    match raw.first() {
        Some(b'"') => Kind::String,
        Some(b'{') => Kind::Object,
        Some(b'[') => Kind::Array,
        Some(b't' | b'f') => Kind::Bool,
        Some(b'-' | b'0'..=b'9') => Kind::Number,
        _ => Kind::Null,
    }
}

/// The characters of `raw`, a string with its quotes, or `None` if it is not a valid JSON string.
///
/// Borrows when there is nothing to unescape, which is nearly always.
pub fn unquote(raw: &[u8]) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if memchr::memchr(b'\\', inner).is_none() {
        return std::str::from_utf8(inner).ok().map(Cow::Borrowed);
    }
    serde_json::from_slice(raw).ok().map(Cow::Owned)
}

/// `text` as a JSON string, quotes included.
pub fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Whether `raw`, a key with its quotes, spells `name`. Escaped spellings count.
pub(crate) fn key_is(raw: &[u8], name: &str) -> bool {
    let inner = &raw[1..raw.len() - 1];
    inner == name.as_bytes()
        || (memchr::memchr(b'\\', inner).is_some() && unquote(raw).is_some_and(|key| key == name))
}
