//! Numbers, combined exactly.

use std::borrow::Cow;
use std::str::FromStr;

use bigdecimal::{BigDecimal, RoundingMode, Signed, Zero};

use super::rule::Rule;
use crate::json::{Kind, kind, unquote};

/// Texts and exponents beyond this are not computed with: a double needs 341 places, and
/// `1e3000000 + 1` would cost three million digits.
const MAX_DIGITS: usize = 400;

/// Digits of a printed decimal. `1e300 + 1e-300` would have 600, of which nobody needs the last.
const DECIMAL_DIGITS: u64 = 100;

/// What a mean that does not end is rounded to: as many digits as tell any two doubles apart.
const MEAN_DIGITS: i64 = 17;

/// A number as a fraction over a positive divisor, so that the mean of ratios stays exact until it is printed.
struct Number<'b> {
    raw: &'b str,
    value: BigDecimal,
    divisor: BigDecimal,
}

/// Whether an answer that is a whole number is printed as `3` or `3.0`. Clients with a typed store
/// must not see a rate turn into an integer when it happens to be one.
#[derive(Clone, Copy)]
enum Spelling {
    Integer,
    Decimal,
}

/// Combines the JSON values `raws`, in configured order, under `rule`.
///
/// If one of them is not a number, or beyond what is computed with, the first is taken (R255). A
/// value that is itself the answer, such as a minimum or the only known one, keeps its bytes.
pub(super) fn combine<'b>(rule: Rule, raws: &[&'b str]) -> Cow<'b, str> {
    let first = Cow::Borrowed(raws.first().copied().unwrap_or_default());
    let numbers: Option<Vec<_>> = raws.iter().map(|raw| Number::read(raw, rule)).collect();
    let Some(mut numbers) = numbers else {
        return first;
    };
    numbers.retain(|number| !number.is_unknown(rule));
    let known = match numbers.as_slice() {
        [] => return first,
        [only] => return Cow::Borrowed(only.raw),
        known => known,
    };
    match rule {
        Rule::First => first,
        Rule::Min => Cow::Borrowed(first_of(known, |number, best| number.value < best.value)),
        Rule::Max => Cow::Borrowed(first_of(known, |number, best| number.value > best.value)),
        Rule::Sum => Cow::Owned(print(&sum(known).0, spelling(known))),
        Rule::Mean | Rule::GaugeMean => Cow::Owned(print(&mean(known), spelling(known))),
    }
}

/// Reads a JSON number that is small enough to compute with.
pub(super) fn parse(raw: &str) -> Option<BigDecimal> {
    if kind(raw.as_bytes()) != Kind::Number || raw.len() > MAX_DIGITS {
        return None;
    }
    let value = BigDecimal::from_str(raw).ok()?;
    let (_, scale) = value.as_bigint_and_scale();
    usize::try_from(scale.unsigned_abs())
        .is_ok_and(|scale| scale <= MAX_DIGITS)
        .then_some(value)
}

impl<'b> Number<'b> {
    fn read(raw: &'b str, rule: Rule) -> Option<Self> {
        let (value, divisor) = match (rule, kind(raw.as_bytes())) {
            (Rule::First, _) => return None,
            (Rule::GaugeMean, Kind::String) => ratio(raw)?,
            _ => (parse(raw)?, BigDecimal::from(1)),
        };
        Some(Self {
            raw,
            value,
            divisor,
        })
    }

    /// Whether this stands for "unknown" (T72): `-1` in a sum; anything below zero in a gauge that
    /// is a quotient, since the `-1` was divided.
    fn is_unknown(&self, rule: Rule) -> bool {
        match rule {
            Rule::Sum => self.value == -1,
            Rule::GaugeMean => self.value.is_negative(),
            Rule::First | Rule::Min | Rule::Max | Rule::Mean => false,
        }
    }
}

/// Reads a ratio as PuppetDB's gauges spell it, `"12345\/67"`. The divisor is above zero.
fn ratio(raw: &str) -> Option<(BigDecimal, BigDecimal)> {
    let text = unquote(raw.as_bytes())?;
    let (value, divisor) = text.split_once('/')?;
    let integer = |text: &str| {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let digits = digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| parse(text)).flatten()
    };
    let divisor = integer(divisor).filter(BigDecimal::is_positive)?;
    Some((integer(value)?, divisor))
}

/// The first number that no other one beats.
fn first_of<'b>(
    numbers: &[Number<'b>],
    beats: impl Fn(&Number<'b>, &Number<'b>) -> bool,
) -> &'b str {
    numbers
        .iter()
        .reduce(|best, number| if beats(number, best) { number } else { best })
        .map_or("", |best| best.raw)
}

fn sum(numbers: &[Number<'_>]) -> (BigDecimal, BigDecimal) {
    let nothing = (BigDecimal::zero(), BigDecimal::from(1));
    numbers.iter().fold(nothing, |(value, divisor), number| {
        (
            &value * &number.divisor + &number.value * &divisor,
            &divisor * &number.divisor,
        )
    })
}

/// The exact mean where its digits end, else rounded, never before the point.
fn mean(numbers: &[Number<'_>]) -> BigDecimal {
    let (value, divisor) = sum(numbers);
    let count = numbers.iter().fold(BigDecimal::zero(), |n, _| n + 1);
    let divisor = divisor * count;
    let mean = &value / &divisor;
    if &mean * &divisor == value {
        return mean;
    }
    let places = MEAN_DIGITS - 1 - mean.order_of_magnitude();
    mean.with_scale_round(places.max(0), RoundingMode::HalfEven)
}

fn spelling(numbers: &[Number<'_>]) -> Spelling {
    let decimal = |number: &Number<'_>| number.raw.contains(['.', 'e', 'E']);
    if numbers.iter().any(decimal) {
        Spelling::Decimal
    } else {
        Spelling::Integer
    }
}

/// Prints a number as JSON: plain between `1e-7` and `1e21`, as browsers do, and wherever that is
/// no longer than with an exponent. Integers are always plain.
fn print(value: &BigDecimal, spelling: Spelling) -> String {
    let value = match spelling {
        Spelling::Decimal if value.digits() > DECIMAL_DIGITS => value.with_prec(DECIMAL_DIGITS),
        Spelling::Integer | Spelling::Decimal => value.clone(),
    };
    let value = value.normalized();
    let plain = match spelling {
        Spelling::Integer if value.is_integer() => return value.to_plain_string(),
        Spelling::Decimal if value.is_integer() => value.to_plain_string() + ".0",
        Spelling::Integer | Spelling::Decimal => value.to_plain_string(),
    };
    if value.is_zero() || (-7..21).contains(&value.order_of_magnitude()) {
        return plain;
    }
    let short = value.to_scientific_notation();
    if short.len() < plain.len() {
        short
    } else {
        plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rule: Rule, cases: &[(&[&str], &str)]) {
        for (raws, expected) in cases {
            assert_eq!(combine(rule, raws), *expected, "{rule:?} of {raws:?}");
        }
    }

    #[test]
    fn r250_sums_are_exact() {
        check(
            Rule::Sum,
            &[
                (&["1", "2"], "3"),
                (&["0.1", "0.2"], "0.3"),
                (&["1.5", "1.5"], "3.0"),
                (&["1", "2.0"], "3.0"),
                (&["0", "0"], "0"),
                (&["-0.0", "0.0"], "0.0"),
                (&["9223372036854775807", "1"], "9223372036854775808"),
                (
                    &["123456789012345678901234567890", "1"],
                    "123456789012345678901234567891",
                ),
                (
                    &["100000000000000000000000", "100000000000000000000000"],
                    "200000000000000000000000",
                ),
                (&["1.0E10", "1"], "10000000001.0"),
                (
                    &["1.7976931348623157E308", "1.7976931348623157E308"],
                    "3.5953862697246314e308",
                ),
                (&["4.9E-324", "4.9E-324"], "9.8e-324"),
                (&["5", "-3"], "2"),
                (&["1e300", "1e-300"], "1e300"),
            ],
        );
    }

    #[test]
    fn t72_an_unknown_is_not_added_while_another_is_known() {
        check(
            Rule::Sum,
            &[
                (&["-1", "5", "6"], "11"),
                (&["5", "-1"], "5"),
                (&["-1", "5E0"], "5E0"),
                (&["-1", "-1"], "-1"),
                (&["-1.0", "-1"], "-1.0"),
                (&["-2", "5"], "3"),
            ],
        );
        check(Rule::Min, &[(&["-1", "5"], "-1")]);
        check(Rule::Mean, &[(&["-1", "5"], "2")]);
    }

    #[test]
    fn r251_r252_bounds_keep_their_spelling_and_the_first_of_equals() {
        check(
            Rule::Min,
            &[(&["2", "1.50", "3"], "1.50"), (&["1.0", "1"], "1.0")],
        );
        check(
            Rule::Max,
            &[(&["2", "1.5", "3E0", "3"], "3E0"), (&["-2", "-1"], "-1")],
        );
    }

    #[test]
    fn r253_means_are_unweighted_and_exact_where_they_end() {
        check(
            Rule::Mean,
            &[
                (&["1", "2"], "1.5"),
                (&["2", "4"], "3"),
                (&["2.0", "4"], "3.0"),
                (&["0.1", "0.2"], "0.15"),
                (&["1", "2", "2"], "1.6666666666666667"),
                (&["1", "0", "0"], "0.33333333333333333"),
                (&["0", "-1", "-1"], "-0.66666666666666667"),
                (
                    &[
                        "0.1234567890123456789",
                        "0.1234567890123456789",
                        "0.1234567890123456789",
                    ],
                    "0.1234567890123456789",
                ),
                (
                    &[
                        "100000000000000000000000000001",
                        "100000000000000000000000000002",
                    ],
                    "100000000000000000000000000001.5",
                ),
                (&["100000000000000000000", "0", "0"], "33333333333333333333"),
                (&["1e-10", "0", "0"], "3.3333333333333333e-11"),
            ],
        );
    }

    #[test]
    fn t71_the_ratios_of_a_gauge_are_numbers() {
        check(
            Rule::GaugeMean,
            &[
                (&[r#""1\/3""#, r#""2\/3""#], "0.5"),
                (&[r#""1/3""#, "1"], "0.66666666666666667"),
                (&[r#""1/2""#, r#""3/2""#], "1"),
                (&["0.25", r#""1/4""#], "0.25"),
                (&[r#""-1\/9""#, r#""5\/2""#], r#""5\/2""#),
                (&[r#""-1\/9""#, "2", "4"], "3"),
                (&[r#""-1\/9""#, r#""-1\/8""#], r#""-1\/9""#),
                (&[r#""1/0""#, "2"], r#""1/0""#),
                (&[r#""n/a""#, "2"], r#""n/a""#),
                (&["2", r#""/""#], "2"),
                (&["2", r#""4""#], "2"),
            ],
        );
        check(Rule::Sum, &[(&[r#""1/3""#, "1"], r#""1/3""#)]);
    }

    #[test]
    fn r255_what_is_not_a_number_everywhere_is_the_first_backends() {
        for rule in [
            Rule::First,
            Rule::Sum,
            Rule::Min,
            Rule::Max,
            Rule::Mean,
            Rule::GaugeMean,
        ] {
            check(
                rule,
                &[
                    (&[r#""a""#, r#""b""#], r#""a""#),
                    (&["true", "false"], "true"),
                    (&["[1]", "[2]"], "[1]"),
                    (&["null", "5"], "null"),
                    (&["5", "null", "6"], "5"),
                    (&["5", "{}"], "5"),
                ],
            );
        }
    }

    #[test]
    fn numbers_beyond_computing_with_are_left_alone() {
        let long = "1".repeat(MAX_DIGITS + 1);
        for hostile in ["1e3000000", "1e-3000000", "1e99999999999999999999", &long] {
            check(
                Rule::Sum,
                &[(&["7", hostile], "7"), (&[hostile, "7"], hostile)],
            );
        }
    }
}
