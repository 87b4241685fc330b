//! Durations as Go writes them (R273): `10s`, `1m30s`, `1.5s`, `100ms`, `0`.

use std::time::Duration;

/// The longest duration Go can hold, in nanoseconds: about 292 years.
const LONGEST: u128 = i64::MAX as u128;

/// Units with their length in nanoseconds, in the order the formatter tries them.
const UNITS: [(&str, u128); 8] = [
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ns", 1),
];

/// Why a text is no duration. Reads on after the value it speaks of.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Digits alone: seconds are meant more often than not, but guessing is refused.
    #[error("has no unit: write {0}s for seconds")]
    NoUnit(String),
    /// Letters after a number that are no unit.
    #[error("has the unknown unit {0:?}: the units are ns, us, ms, s, m and h")]
    UnknownUnit(String),
    /// A minus sign.
    #[error("is negative: a duration cannot be")]
    Negative,
    /// More than Go's range.
    #[error("is longer than 292 years")]
    TooLong,
    /// Anything else.
    #[error("is not a duration: write 30s, 1m30s or 250ms")]
    Malformed,
    /// Zero where it would mean "never" or "all the time".
    #[error("must be more than 0")]
    Zero,
}

/// Reads a duration; units may repeat and come in any order (`1h1h` is two hours).
pub(super) fn parse(text: &str) -> Result<Duration, DurationError> {
    if text.starts_with('-') {
        return Err(DurationError::Negative);
    }
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err(DurationError::Malformed);
    }
    let mut total = 0;
    while !rest.is_empty() {
        let (length, after) = component(rest)?;
        total += length;
        // Checked at every step, so that no sum of components can overflow.
        if total > LONGEST {
            return Err(DurationError::TooLong);
        }
        rest = after;
    }
    u64::try_from(total)
        .map(Duration::from_nanos)
        .map_err(|_| DurationError::TooLong)
}

/// Reads a duration that must be more than zero.
pub(crate) fn parse_positive(text: &str) -> Result<Duration, DurationError> {
    match parse(text)? {
        Duration::ZERO => Err(DurationError::Zero),
        some => Ok(some),
    }
}

/// Reads one number with its unit; gives nanoseconds and what follows.
fn component(text: &str) -> Result<(u128, &str), DurationError> {
    let (whole, rest) = digits(text);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => digits(rest),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(DurationError::Malformed);
    }
    let end = rest
        .find(|c: char| c == '.' || c.is_ascii_digit())
        .unwrap_or(rest.len());
    let (unit, after) = rest.split_at(end);
    if unit.is_empty() {
        let number = &text[..text.len() - rest.len()];
        return Err(DurationError::NoUnit(number.to_owned()));
    }
    let Some(&(_, nanos)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(DurationError::UnknownUnit(unit.to_owned()));
    };
    // 19 digits hold the whole range, so that the product below stays far inside u128.
    let whole = whole.trim_start_matches('0');
    if whole.len() > 19 {
        return Err(DurationError::TooLong);
    }
    // Digits below a nanosecond are cut off, as Go does.
    let fraction = &fraction[..fraction.len().min(18)];
    let scale = fraction.bytes().fold(1, |scale: u128, _| scale * 10);
    Ok((
        number(whole) * nanos + number(fraction) * nanos / scale,
        after,
    ))
}

fn digits(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

fn number(digits: &str) -> u128 {
    digits
        .bytes()
        .fold(0, |n, digit| n * 10 + u128::from(digit - b'0'))
}

/// Writes a duration in its shortest spelling: `30s`, `1m30s`, `1.5s`, `250ms`, `0s`.
pub(crate) fn format(duration: &Duration) -> String {
    let [(_, hour), (_, minute), smaller @ ..] = UNITS;
    let nanos = duration.as_nanos();
    let (hours, minutes, rest) = (nanos / hour, nanos % hour / minute, nanos % minute);
    let part = |count: u128, unit: &str| match count {
        0 => String::new(),
        count => format!("{count}{unit}"),
    };
    let rest = match smaller.iter().find(|(_, unit)| rest >= *unit) {
        Some((name, unit)) => decimal(rest, *unit) + name,
        None if nanos == 0 => "0s".to_owned(),
        None => String::new(),
    };
    part(hours, "h") + &part(minutes, "m") + &rest
}

/// `value / unit` as an exact decimal; `unit` is a power of ten.
fn decimal(value: u128, unit: u128) -> String {
    let (whole, fraction) = (value / unit, value % unit);
    if fraction == 0 {
        return whole.to_string();
    }
    let width = unit.to_string().len() - 1;
    format!("{whole}.{fraction:0width$}")
        .trim_end_matches('0')
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r273_durations_are_read_as_go_reads_them() {
        for (text, nanos) in [
            ("0", 0),
            ("+0", 0),
            ("0s", 0),
            ("10s", 10_000_000_000),
            ("+10s", 10_000_000_000),
            ("1m30s", 90_000_000_000),
            ("30s1m", 90_000_000_000),
            ("1h1h", 7_200_000_000_000),
            ("1.5s", 1_500_000_000),
            ("1.s", 1_000_000_000),
            (".5s", 500_000_000),
            ("100ms", 100_000_000),
            ("1us", 1_000),
            ("1µs", 1_000),
            ("1μs", 1_000),
            ("1ns", 1),
            ("0.9ns", 0),
            ("0.3333333333333333333333h", 1_200_000_000_000 - 1),
            ("00000000000000000000001s", 1_000_000_000),
            ("9223372036854775807ns", 9_223_372_036_854_775_807),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_nanos(nanos)), "{text}");
        }
    }

    #[test]
    fn r273_what_go_refuses_is_refused() {
        use DurationError::{Malformed, Negative, NoUnit, TooLong, UnknownUnit};
        let unit = |unit: &str| UnknownUnit(unit.to_owned());
        for (text, why) in [
            ("30", NoUnit("30".to_owned())),
            ("1.5", NoUnit("1.5".to_owned())),
            ("1m30", NoUnit("30".to_owned())),
            ("1d", unit("d")),
            ("1 hour", unit(" hour")),
            ("1M", unit("M")),
            ("10s ", unit("s ")),
            ("-5s", Negative),
            ("-0", Negative),
            ("", Malformed),
            ("+", Malformed),
            (".", Malformed),
            (".s", Malformed),
            ("s", Malformed),
            ("1s-1s", unit("s-")),
            ("٣s", Malformed),
            ("9223372036854775808ns", TooLong),
            ("2562048h", TooLong),
            ("99999999999999999999h", TooLong),
            ("2562047h2562047h", TooLong),
        ] {
            assert_eq!(parse(text), Err(why), "{text}");
        }
    }

    #[test]
    fn zero_is_refused_where_it_has_no_meaning() {
        assert_eq!(parse_positive("0"), Err(DurationError::Zero));
        assert_eq!(parse_positive("1ns"), Ok(Duration::from_nanos(1)));
    }

    #[test]
    fn durations_are_written_in_their_shortest_spelling() {
        for (nanos, text) in [
            (0, "0s"),
            (1, "1ns"),
            (1_500, "1.5us"),
            (100_000_000, "100ms"),
            (1_500_000_000, "1.5s"),
            (30_000_000_000, "30s"),
            (90_000_000_000, "1m30s"),
            (600_000_000_000, "10m"),
            (3_600_000_000_000, "1h"),
            (3_605_000_000_001, "1h5.000000001s"),
            (60_001_000_000, "1m1ms"),
        ] {
            assert_eq!(format(&Duration::from_nanos(nanos)), text);
        }
    }

    #[test]
    fn what_is_written_reads_back_the_same() {
        // A stride prime to the units, so that every mix of them comes by.
        for nanos in (0..9_000_000_000_000_000).step_by(900_000_000_007) {
            let duration = Duration::from_nanos(nanos);
            assert_eq!(parse(&format(&duration)), Ok(duration), "{nanos}");
        }
    }
}
