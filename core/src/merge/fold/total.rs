//! Sums and averages as PostgreSQL's `numeric` makes them: exact, with a display scale.

use std::fmt;

use bigdecimal::num_bigint::{BigInt, Sign};
use bigdecimal::{BigDecimal, Signed, Zero};

use super::number::{MAX_BEFORE, NumberError, in_range, length};

#[cfg(test)]
mod postgres;

/// A quotient has at least this many significant digits and at most that many after the point
/// (`NUMERIC_MIN_SIG_DIGITS`, `NUMERIC_MAX_DISPLAY_SCALE`).
const MIN_SIGNIFICANT: i64 = 16;
const MAX_QUOTIENT_SCALE: i64 = 1000;

/// The work that one fold may still do.
///
/// `1e131071` is eight bytes and a legal `numeric`: without a bound on the sum over all rows, a
/// small hostile body would keep a processor busy for hours.
#[derive(Debug)]
pub(super) struct Effort(u64);

impl Default for Effort {
    /// Enough for tens of millions of numbers as they are met, or for a few of the longest.
    fn default() -> Self {
        Self(1 << 36)
    }
}

impl Effort {
    /// Accounts for arithmetic on numbers of `digits` digits, whose conversion from and to text is
    /// quadratic.
    fn spend(&mut self, digits: i64) -> Result<(), NumberError> {
        let digits = digits.unsigned_abs();
        self.0 = self
            .0
            .checked_sub(digits.saturating_mul(digits))
            .ok_or(NumberError::TooMuchWork)?;
        Ok(())
    }
}

/// An exact sum. Shows as PuppetDB shows a `numeric`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Total {
    /// Nearly every sum.
    Integer(i128),
    /// Any other, its scale never negative.
    Decimal(BigDecimal),
}

impl Total {
    /// Reads a JSON number, which must be one that a `numeric` can hold.
    pub(super) fn parse(raw: &[u8], effort: &mut Effort) -> Result<Self, NumberError> {
        let text = std::str::from_utf8(raw).map_err(|_| NumberError::OutOfRange)?;
        if let Ok(integer) = text.parse() {
            return Ok(Self::Integer(integer));
        }
        let (before, after) = in_range(raw)?;
        effort.spend(before + after)?;
        let decimal: BigDecimal = text.parse().map_err(|_| NumberError::OutOfRange)?;
        let scale = decimal.fractional_digit_count().max(0);
        Ok(Self::Decimal(decimal.with_scale(scale)))
    }

    /// The sum of both, with the larger of their scales.
    ///
    /// It may leave the range of `numeric`: PostgreSQL looks at the end of a sum only, so that the
    /// order of its parts does not matter.
    pub(super) fn add(self, other: Self, effort: &mut Effort) -> Result<Self, NumberError> {
        if let (Self::Integer(a), Self::Integer(b)) = (&self, &other)
            && let Some(sum) = a.checked_add(*b)
        {
            return Ok(Self::Integer(sum));
        }
        let (a, b) = (self.into_decimal(), other.into_decimal());
        let scale = a.fractional_digit_count().max(b.fractional_digit_count());
        effort.spend(before(&a).max(before(&b)).max(0) + scale)?;
        // By value: of references to a zero and another, bigdecimal gives another scale.
        Ok(Self::Decimal(a + b))
    }

    /// Whether a `numeric` can hold it.
    pub(super) fn check(&self) -> Result<(), NumberError> {
        match self {
            Self::Decimal(decimal) if before(decimal) > MAX_BEFORE => Err(NumberError::OutOfRange),
            Self::Integer(_) | Self::Decimal(_) => Ok(()),
        }
    }

    /// This sum divided by `count`, to the digit as PostgreSQL's `avg`; `None` if `count` is zero.
    pub(super) fn divide(
        self,
        count: Self,
        effort: &mut Effort,
    ) -> Result<Option<Self>, NumberError> {
        let (sum, count) = (self.into_decimal(), count.into_decimal());
        if count.is_zero() {
            return Ok(None);
        }
        let scale = quotient_scale(&sum, &count);
        effort.spend(before(&sum).max(0) + scale.max(sum.fractional_digit_count()))?;
        let ((sum, sum_scale), (count, count_scale)) =
            (sum.into_bigint_and_scale(), count.into_bigint_and_scale());
        let shift = scale + count_scale - sum_scale;
        let power = u32::try_from(shift.unsigned_abs()).map_err(|_| NumberError::OutOfRange)?;
        let power = BigInt::from(10).pow(power);
        let (numerator, divisor) = if shift < 0 {
            (sum, count * power)
        } else {
            (sum * power, count)
        };
        let negative = (numerator.sign() == Sign::Minus) != (divisor.sign() == Sign::Minus);
        let (numerator, divisor) = (numerator.abs(), divisor.abs());
        let mut quotient = &numerator / &divisor;
        // Halves round away from zero.
        if (numerator - &quotient * &divisor) * 2 >= divisor {
            quotient += 1;
        }
        let quotient = if negative { -quotient } else { quotient };
        Ok(Some(Self::Decimal(BigDecimal::new(quotient, scale))))
    }

    fn into_decimal(self) -> BigDecimal {
        match self {
            Self::Integer(integer) => BigDecimal::from(integer),
            Self::Decimal(decimal) => decimal,
        }
    }
}

/// Digits before the point; negative for a fraction that begins with zeros.
fn before(decimal: &BigDecimal) -> i64 {
    i64::try_from(decimal.digits()).unwrap_or(i64::MAX) - decimal.fractional_digit_count()
}

/// How many digits after the point PostgreSQL gives a quotient (`select_div_scale` in its
/// `numeric.c`): enough for 16 significant ones, by an estimate made on digits to base 10,000, and
/// not fewer than either operand shows.
fn quotient_scale(dividend: &BigDecimal, divisor: &BigDecimal) -> i64 {
    let (weight, first) = leading_group(dividend);
    let (divisor_weight, divisor_first) = leading_group(divisor);
    let mut quotient_weight = weight - divisor_weight;
    if first <= divisor_first {
        quotient_weight -= 1;
    }
    (MIN_SIGNIFICANT - quotient_weight * 4)
        .max(dividend.fractional_digit_count())
        .max(divisor.fractional_digit_count())
        .clamp(0, MAX_QUOTIENT_SCALE)
}

/// The leading digit to base 10,000 and its power; zero is zero to the power of zero.
fn leading_group(decimal: &BigDecimal) -> (i64, u32) {
    if decimal.is_zero() {
        return (0, 0);
    }
    let digits = decimal.as_bigint_and_scale().0.magnitude().to_string();
    let top = length(digits.as_bytes()) - 1 - decimal.fractional_digit_count();
    let in_group = 1 + usize::try_from(top.rem_euclid(4)).unwrap_or(0);
    let first = digits
        .bytes()
        .chain(std::iter::repeat(b'0'))
        .take(in_group)
        .fold(0, |group, digit| group * 10 + u32::from(digit - b'0'));
    (top.div_euclid(4), first)
}

impl fmt::Display for Total {
    /// PuppetDB hands a `numeric` to Java's `BigDecimal` and prints that: as PostgreSQL would
    /// print it, but fractions that begin with more than five zeros after the point have an
    /// exponent. The scale shows in both: `0.00`, `0E-20`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimal = match self {
            Self::Integer(integer) => return write!(f, "{integer}"),
            Self::Decimal(decimal) => decimal,
        };
        let (integer, scale) = decimal.as_bigint_and_scale();
        if integer.sign() == Sign::Minus {
            f.write_str("-")?;
        }
        let digits = integer.magnitude().to_string();
        let exponent = length(digits.as_bytes()) - 1 - scale;
        if exponent < -6 {
            let (first, rest) = digits.split_at(1);
            let point = if rest.is_empty() { "" } else { "." };
            return write!(f, "{first}{point}{rest}E{exponent}");
        }
        let scale = usize::try_from(scale).unwrap_or(0);
        let width = scale + 1;
        let padded = format!("{digits:0>width$}");
        let (whole, fraction) = padded.split_at(padded.len() - scale);
        let point = if fraction.is_empty() { "" } else { "." };
        write!(f, "{whole}{point}{fraction}")
    }
}
