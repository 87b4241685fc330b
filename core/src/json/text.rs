//! Single values: their kind, and strings in and out of their quotes.

use std::borrow::Cow;

use super::error::{ScanError, ScanProblem};

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

/// The characters of `raw`, a string with its quotes, or `None` if it is not a valid JSON string or
/// has no characters: UTF-8 that is broken, or an escaped half of a surrogate pair.
///
/// Borrows when there is nothing to unescape, which is nearly always.
pub fn unquote(raw: &[u8]) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if !inner
        .iter()
        .any(|byte| matches!(byte, b'"' | b'\\' | 0..b' '))
    {
        return std::str::from_utf8(inner).ok().map(Cow::Borrowed);
    }
    serde_json::from_slice(raw).ok().map(Cow::Owned)
}

/// `text` as a JSON string, quotes included.
pub fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// How many bytes are looked at at once for one that is not ASCII.
const ASCII: usize = 256;

/// Refuses a text that is not UTF-8, which JSON must be and a merged answer claims to be (R012).
///
/// The scanner never asks: it splits at ASCII bytes only, so it never cuts a character in two.
pub fn check_utf8(text: &[u8]) -> Result<(), ScanError> {
    // Most is ASCII, which takes less to tell.
    let (blocks, _) = text.as_chunks::<ASCII>();
    let ascii = blocks.iter().take_while(|block| block.is_ascii()).count() * ASCII;
    let Err(error) = std::str::from_utf8(&text[ascii..]) else {
        return Ok(());
    };
    let at = ascii + error.valid_up_to();
    let problem = match (error.error_len(), text.get(at)) {
        (Some(_), Some(&byte)) => ScanProblem::Unexpected(byte),
        _ => ScanProblem::Truncated,
    };
    Err(ScanError { at, problem })
}

/// Whether `raw` is a JSON string of just these characters, however they are escaped.
pub(crate) fn spells(raw: &[u8], characters: &str) -> bool {
    let inner = raw
        .strip_prefix(b"\"")
        .and_then(|rest| rest.strip_suffix(b"\""));
    inner.is_some_and(|inner| {
        inner == characters.as_bytes()
            // An escape is longer than what it stands for.
            || (inner.len() > characters.len()
                && memchr::memchr(b'\\', inner).is_some()
                && unquote(raw).is_some_and(|text| text == characters))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_tells_its_kind_by_its_first_byte() {
        let cases = [
            ("null", Kind::Null),
            ("true", Kind::Bool),
            ("false", Kind::Bool),
            ("0", Kind::Number),
            ("9.5", Kind::Number),
            ("-1", Kind::Number),
            (r#""1""#, Kind::String),
            ("[1]", Kind::Array),
            ("{}", Kind::Object),
            ("", Kind::Null),
        ];
        for (raw, expected) in cases {
            assert_eq!(kind(raw.as_bytes()), expected, "{raw}");
        }
    }

    #[test]
    fn a_string_is_unquoted_only_if_it_is_valid_and_has_characters() {
        let cases: &[(&[u8], Option<&str>)] = &[
            (br#""""#, Some("")),
            (br#""a b""#, Some("a b")),
            ("\"é€😀\u{7f}\"".as_bytes(), Some("é€😀\u{7f}")),
            (br#""\"\\\/\b\f\n\r\t""#, Some("\"\\/\u{8}\u{c}\n\r\t")),
            (br#""\u00e9\u0000\uD83D\ude00""#, Some("é\0😀")),
            (b"", None),
            (b"\"", None),
            (b"a", None),
            (b"\"a", None),
            (b"1", None),
            (br#""\""#, None),
            (br#""a"b""#, None),
            (br#""a" "b""#, None),
            (br#""\x""#, None),
            (br#""\u12""#, None),
            (br#""\ud800""#, None),
            (b"\"a\nb\"", None),
            (b"\"\0\"", None),
            (b"\"\xff\"", None),
            (b"\"\\n\xff\"", None),
        ];
        for &(raw, expected) in cases {
            let shown = String::from_utf8_lossy(raw);
            assert_eq!(unquote(raw).as_deref(), expected, "{shown}");
        }
    }

    #[test]
    fn a_string_without_escapes_is_borrowed() {
        assert!(matches!(unquote(br#""abc""#), Some(Cow::Borrowed("abc"))));
    }

    #[test]
    fn what_is_quoted_unquotes_to_the_same() {
        for text in ["", "a", "\"\\/\0\n\u{1f}", "é😀"] {
            assert_eq!(unquote(quote(text).as_bytes()).as_deref(), Some(text));
        }
    }

    #[test]
    fn ruling_12_a_text_that_is_not_utf8_is_refused_at_its_first_bad_byte() {
        for text in ["", "[\"é€😀\"]"] {
            assert_eq!(check_utf8(text.as_bytes()), Ok(()), "{text}");
        }
        let cases: &[(&[u8], usize, ScanProblem)] = &[
            (b"a\xffb", 1, ScanProblem::Unexpected(0xff)),
            // An overlong slash, half of a surrogate pair, and Latin-1.
            (b"\xc0\xaf", 0, ScanProblem::Unexpected(0xc0)),
            (b"a\xed\xa0\x80", 1, ScanProblem::Unexpected(0xed)),
            (b"caf\xe9s", 3, ScanProblem::Unexpected(0xe9)),
            (b"ab\xe2\x82", 2, ScanProblem::Truncated),
        ];
        // Wherever it stands in what is looked at at once.
        for before in (0..2 * ASCII + 2).map(|length| vec![b' '; length]) {
            for &(text, at, problem) in cases {
                let (text, at) = ([&*before, text].concat(), before.len() + at);
                let error = ScanError { at, problem };
                assert_eq!(check_utf8(&text), Err(error), "{text:?}");
            }
            let sound = [&*before, "é€😀".as_bytes()].concat();
            assert_eq!(check_utf8(&sound), Ok(()));
        }
    }
}
