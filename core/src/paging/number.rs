//! Exact comparison of JSON numbers by their text.

use std::cmp::Ordering;

/// Compares two JSON numbers by value, whatever their size, scale or spelling: `1.0` equals `1` and
/// `1e0`, and 9007199254740993 is greater than 9007199254740992.
///
/// No number is ever expanded, so that `1e1000000000` costs no more than it is long. Exponents
/// beyond 64 bits count as that bound.
pub(super) fn compare_numbers(a: &[u8], b: &[u8]) -> Ordering {
    let (a, b) = (Decimal::read(a), Decimal::read(b));
    let magnitude = || {
        let digits = || a.digits().cmp(b.digits());
        a.magnitude.cmp(&b.magnitude).then_with(digits)
    };
    a.sign.cmp(&b.sign).then_with(|| match a.sign {
        Sign::Negative => magnitude().reverse(),
        Sign::Zero => Ordering::Equal,
        Sign::Positive => magnitude(),
    })
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sign {
    Negative,
    Zero,
    Positive,
}

/// A number as its significant digits and the place of the first of them.
struct Decimal<'r> {
    sign: Sign,
    /// The power of ten that the first significant digit stands for.
    magnitude: i64,
    /// From the first to the last digit that is not zero; a decimal point may be among them.
    significant: &'r [u8],
}

impl<'r> Decimal<'r> {
    /// Reads `raw`, of which the scanner has only seen that it is made of a number's characters. A
    /// damaged number is read as something, always the same.
    fn read(raw: &'r [u8]) -> Self {
        let (sign, raw) = match raw.strip_prefix(b"-") {
            Some(rest) => (Sign::Negative, rest),
            None => (Sign::Positive, raw),
        };
        let e = position(raw, |b| matches!(b, b'e' | b'E'));
        let (mantissa, exponent) = raw.split_at(e);
        let first = position(mantissa, |b| matches!(b, b'1'..=b'9'));
        let Some(last) = mantissa.iter().rposition(|b| matches!(b, b'1'..=b'9')) else {
            return Self {
                sign: Sign::Zero,
                magnitude: 0,
                significant: b"",
            };
        };
        let point = position(mantissa, |b| b == b'.');
        let place = if first < point {
            distance(first, point) - 1
        } else {
            -distance(point, first)
        };
        Self {
            sign,
            magnitude: read_exponent(exponent).saturating_add(place),
            significant: &mantissa[first..=last],
        }
    }

    fn digits(&self) -> impl Iterator<Item = u8> {
        let bytes = self.significant.iter().copied();
        bytes.filter(u8::is_ascii_digit)
    }
}

/// Index of the first byte that `wanted` accepts, or the length.
fn position(text: &[u8], wanted: impl Fn(u8) -> bool) -> usize {
    let found = text.iter().position(|&b| wanted(b));
    found.unwrap_or(text.len())
}

fn distance(from: usize, to: usize) -> i64 {
    i64::try_from(to - from).unwrap_or(i64::MAX)
}

/// Reads `e` and what follows it; no exponent is zero.
fn read_exponent(text: &[u8]) -> i64 {
    let text = std::str::from_utf8(text).unwrap_or_default();
    let digits = text.get(1..).unwrap_or_default();
    digits
        .parse()
        .unwrap_or_else(|error: std::num::ParseIntError| match error.kind() {
            std::num::IntErrorKind::PosOverflow => i64::MAX,
            std::num::IntErrorKind::NegOverflow => i64::MIN,
            _ => 0,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_compare_by_value() {
        // Each line is one value in all its spellings, the lines ascend.
        let lines: [&[&str]; 22] = [
            &["-1e99999999999999999999"],
            &["-1e400", "-10e399"],
            &["-9007199254740993"],
            &["-9007199254740992", "-9007199254740992.000"],
            &["-10"],
            &["-9"],
            &["-1.5", "-15e-1"],
            &["-1"],
            &["-1e-400"],
            &[
                "0",
                "-0",
                "0.0",
                "-0.00",
                "0e5",
                "0e-5",
                "-0E+99999999999999999999",
            ],
            &["1e-99999999999999999999"],
            &["1e-400"],
            &["0.05", "5e-2", "0.050"],
            &["0.5", "5e-1", "0.0005e3"],
            &["1", "1.0", "1e0", "10e-1", "0.1E+1", "100.00e-2"],
            &["1.000000000000000000000000000001"],
            &["9"],
            &["10", "1e1", "1E+1"],
            &["9007199254740992"],
            &[
                "9007199254740993",
                "9007199254740993.0",
                "9.007199254740993e15",
            ],
            &["18446744073709551616"],
            &["1e400"],
        ];
        let ranked = lines
            .iter()
            .enumerate()
            .flat_map(|(rank, line)| line.iter().map(move |text| (rank, *text)));
        for (rank_a, a) in ranked.clone() {
            for (rank_b, b) in ranked.clone() {
                let expected = rank_a.cmp(&rank_b);
                assert_eq!(
                    compare_numbers(a.as_bytes(), b.as_bytes()),
                    expected,
                    "{a} {b}"
                );
            }
        }
    }

    #[test]
    fn damaged_numbers_do_not_panic() {
        for text in [
            "", "-", "--1", "1e", "1e+", "e5", "1.2.3", "1-2", ".5", "+1", "1e5e5",
        ] {
            assert_eq!(
                compare_numbers(text.as_bytes(), text.as_bytes()),
                Ordering::Equal
            );
            assert_ne!(compare_numbers(text.as_bytes(), b"7e77"), Ordering::Equal);
        }
    }
}
