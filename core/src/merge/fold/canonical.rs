//! JSON values as jsonb compares them: by value, whatever the spelling.

use std::borrow::Cow;

use super::number::Number;
use crate::json::{Elements, Kind, Members, kind, unquote};

/// Parts nested deeper than this are compared by their bytes. Every level is scanned once for each
/// level around it, so a bound keeps the work linear in the text and off the stack's end.
const MAX_DEPTH: usize = 32;

/// A value that is equal to every other spelling of itself: white space, order of members, escapes
/// and `1` for `1.0` make no difference (T38).
///
/// Values of different kinds order as in jsonb; text orders by bytes (ruling 8).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Canonical<'b> {
    Null,
    String(Cow<'b, str>),
    Number(Number),
    Bool(bool),
    Array(Vec<Canonical<'b>>),
    /// Sorted by name.
    Object(Vec<(Cow<'b, str>, Canonical<'b>)>),
    /// Too deep, or no PostgreSQL could have stored it.
    Bytes(&'b [u8]),
}

impl<'b> Canonical<'b> {
    /// The value of `raw`, as the scanner found it.
    pub(crate) fn new(raw: &'b [u8]) -> Self {
        Self::within(raw, MAX_DEPTH)
    }

    fn within(raw: &'b [u8], depth: usize) -> Self {
        let value = match kind(raw) {
            Kind::Null => Some(Self::Null),
            Kind::Bool => Some(Self::Bool(raw.starts_with(b"t"))),
            Kind::Number => Number::parse(raw).map(Self::Number),
            Kind::String => unquote(raw).map(Self::String),
            Kind::Array => Self::array(raw, depth),
            Kind::Object => Self::object(raw, depth),
        };
        value.unwrap_or(Self::Bytes(raw))
    }

    fn array(raw: &'b [u8], depth: usize) -> Option<Self> {
        let depth = depth.checked_sub(1)?;
        Elements::new(raw)
            .map(|span| Some(Self::within(&raw[span.ok()?], depth)))
            .collect::<Option<_>>()
            .map(Self::Array)
    }

    fn object(raw: &'b [u8], depth: usize) -> Option<Self> {
        let depth = depth.checked_sub(1)?;
        Members::new(raw)
            .map(|member| {
                let (key, value) = member.ok()?;
                Some((unquote(&raw[key])?, Self::within(&raw[value], depth)))
            })
            .collect::<Option<_>>()
            .map(|members| Self::Object(by_name(members)))
    }
}

/// Sorts members by name. Of a repeated one the last counts, as in jsonb.
pub(super) fn by_name<V>(mut members: Vec<(Cow<'_, str>, V)>) -> Vec<(Cow<'_, str>, V)> {
    members.sort_by(|(a, _), (b, _)| a.cmp(b));
    members.dedup_by(|later, kept| {
        let repeated = later.0 == kept.0;
        if repeated {
            std::mem::swap(later, kept);
        }
        repeated
    });
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Canonical<'_> {
        Canonical::new(text.as_bytes())
    }

    #[test]
    fn spelling_makes_no_difference() {
        for (a, b) in [
            (r#"{"a": 1, "b":[true]}"#, r#"{"b":[true],"a":1.0}"#),
            (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
            (r#""\u00e9\/""#, r#""é/""#),
            ("1", "1.00"),
            ("1E2", "100"),
            ("1e-2", "0.01"),
            ("-0.0", "0"),
            ("[ ]", "[]"),
            ("{ }", "{}"),
        ] {
            assert_eq!(value(a), value(b), "{a} and {b}");
        }
    }

    #[test]
    fn different_values_stay_apart() {
        for (a, b) in [
            ("null", "false"),
            ("null", r#""""#),
            ("null", r#""null""#),
            ("1", r#""1""#),
            ("1", "true"),
            ("10", "1"),
            ("0.1", "0.01"),
            ("1", "-1"),
            ("9007199254740993", "9007199254740992"),
            ("[1,2]", "[2,1]"),
            ("[1]", "[[1]]"),
            ("[]", "{}"),
            (r#"{"a":null}"#, "{}"),
        ] {
            assert_ne!(value(a), value(b), "{a} and {b}");
        }
    }

    #[test]
    fn values_order_as_in_jsonb() {
        let ascending = [
            "null", r#""A""#, r#""a""#, r#""é""#, "-1e3", "-2.5", "0", "0.001", "9", "10", "1e2",
            "false", "true", "[]", "[1]", "{}",
        ];
        assert!(ascending.is_sorted_by(|a, b| value(a) < value(b)));
    }

    #[test]
    fn deep_and_unreadable_parts_compare_by_their_bytes() {
        let deep = |inner: &str| format!("{}{inner}{}", "[".repeat(1000), "]".repeat(1000));
        assert_eq!(value(&deep("1")), value(&deep("1")));
        assert_ne!(value(&deep("1")), value(&deep("2")));
        assert_eq!(value(r#""\ud800""#), Canonical::Bytes(br#""\ud800""#));
        assert_eq!(
            value("1e9999999999999999999999"),
            value("1e9999999999999999999999")
        );
    }
}
