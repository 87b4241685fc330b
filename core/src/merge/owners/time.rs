//! Times as PuppetDB writes them.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;

use crate::json::{Kind, kind, unquote};

/// Reads a time. What is no time counts as never.
pub(in crate::merge) fn time(raw: Option<&[u8]>) -> Option<Timestamp> {
    let raw = raw.filter(|raw| kind(raw) == Kind::String)?;
    usual(raw).or_else(|| unquote(raw)?.parse().ok())
}

/// The one form in which PuppetDB writes times (`"2026-01-31T12:00:00.000Z"`), of which a merge reads
/// one to three for each node: the parser of all forms takes some ten times as long.
fn usual(raw: &[u8]) -> Option<Timestamp> {
    let [b'"', y @ .., b'.', f1, f2, f3, b'Z', b'"'] = raw else {
        return None;
    };
    let [
        y1,
        y2,
        y3,
        y4,
        b'-',
        o1,
        o2,
        b'-',
        d1,
        d2,
        b'T',
        h1,
        h2,
        b':',
        m1,
        m2,
        b':',
        s1,
        s2,
    ] = *y
    else {
        return None;
    };
    let pair = |tens: u8, ones: u8| Some(digit(tens)? * 10 + digit(ones)?);
    let two = |high: i8, low: i8| i16::from(high) * 100 + i16::from(low);
    let time = DateTime::new(
        two(pair(y1, y2)?, pair(y3, y4)?),
        pair(o1, o2)?,
        pair(d1, d2)?,
        pair(h1, h2)?,
        pair(m1, m2)?,
        pair(s1, s2)?,
        i32::from(two(digit(*f1)?, pair(*f2, *f3)?)) * 1_000_000,
    );
    Offset::UTC.to_timestamp(time.ok()?).ok()
}

fn digit(byte: u8) -> Option<i8> {
    let digit = byte.wrapping_sub(b'0');
    (digit < 10).then_some(digit.cast_signed())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> Option<Timestamp> {
        text.parse().ok()
    }

    proptest! {
        #[test]
        fn the_usual_form_is_read_as_the_parser_of_all_forms_reads_it(
            text in "[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9]\\.[0-9]{3}Z",
        ) {
            let quoted = format!("\"{text}\"");
            prop_assert_eq!(time(Some(quoted.as_bytes())), parsed(&text));
        }
    }

    #[test]
    fn the_form_that_puppetdb_writes_is_read_without_the_parser() {
        let text = "2026-01-31T12:34:56.789Z";
        let raw = format!("\"{text}\"");
        assert_eq!(usual(raw.as_bytes()), parsed(text));
        assert!(usual(raw.as_bytes()).is_some());
    }

    #[test]
    fn other_forms_are_read_too_and_what_is_no_time_is_never() {
        for (raw, text) in [
            (r#""2026-01-31T12:34:56Z""#, "2026-01-31T12:34:56Z"),
            (
                r#""2026-01-31T12:34:56.7891Z""#,
                "2026-01-31T12:34:56.7891Z",
            ),
            (
                r#""2026-01-31T12:34:56.789+01:00""#,
                "2026-01-31T11:34:56.789Z",
            ),
            (
                r#""2026-01-31\u005412:34:56.789Z""#,
                "2026-01-31T12:34:56.789Z",
            ),
        ] {
            assert!(parsed(text).is_some());
            assert_eq!(time(Some(raw.as_bytes())), parsed(text), "{raw}");
        }
        for raw in [
            "null",
            "1",
            r#""""#,
            r#""2026-02-30T12:34:56.789Z""#,
            r#""2026-01-31""#,
        ] {
            assert_eq!(time(Some(raw.as_bytes())), None, "{raw}");
        }
        assert_eq!(time(None), None);
    }
}
