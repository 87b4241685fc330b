//! JSON numbers as texts: their value for comparing, and whether PostgreSQL could hold them.

use std::cmp::Ordering;

/// Digits that `numeric` holds before and after the decimal point.
pub(super) const MAX_BEFORE: i64 = 131_072;
const MAX_AFTER: i64 = 16_383;
/// Exponents beyond this are not read at all. Far above every limit, and sums of it with lengths
/// of texts cannot overflow.
const MAX_EXPONENT: u64 = 1 << 40;

/// Why numbers could not be added or compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberError {
    /// No `numeric` can hold it.
    OutOfRange,
    /// The work allowed to one fold is used up.
    TooMuchWork,
}

/// The value of a number, for comparing. Cheap whatever its exponent: nothing is written out.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Number {
    negative: bool,
    /// Without leading or trailing zeros; empty for zero.
    digits: Vec<u8>,
    /// Where the decimal point is: the value is 0.DIGITS times ten to this power.
    point: i64,
}

/// The text of a number taken apart.
struct Parts<'t> {
    negative: bool,
    whole: &'t [u8],
    fraction: &'t [u8],
    exponent: i64,
}

impl<'t> Parts<'t> {
    fn parse(raw: &'t [u8]) -> Option<Self> {
        let (negative, rest) = raw
            .strip_prefix(b"-")
            .map_or((false, raw), |rest| (true, rest));
        let (mantissa, exponent) = match rest.iter().position(|b| matches!(b, b'e' | b'E')) {
            Some(e) => (
                &rest[..e],
                std::str::from_utf8(&rest[e + 1..]).ok()?.parse().ok()?,
            ),
            None => (rest, 0_i64),
        };
        let (whole, fraction) = match mantissa.iter().position(|&b| b == b'.') {
            Some(point) => (&mantissa[..point], &mantissa[point + 1..]),
            None => (mantissa, &[][..]),
        };
        let digits = |text: &[u8]| text.iter().all(u8::is_ascii_digit);
        let readable = !whole.is_empty()
            && digits(whole)
            && digits(fraction)
            && exponent.unsigned_abs() <= MAX_EXPONENT;
        readable.then_some(Self {
            negative,
            whole,
            fraction,
            exponent,
        })
    }

    /// Digits after the point that PostgreSQL would show.
    fn scale(&self) -> i64 {
        length(self.fraction).saturating_sub(self.exponent).max(0)
    }

    fn number(&self) -> Number {
        let mut digits = [self.whole, self.fraction].concat();
        let zeros = digits.iter().take_while(|&&b| b == b'0').count();
        let point = length(self.whole) + self.exponent - length(&digits[..zeros]);
        digits.drain(..zeros);
        let significant = digits.iter().rposition(|&b| b != b'0').map_or(0, |i| i + 1);
        digits.truncate(significant);
        let zero = digits.is_empty();
        Number {
            negative: self.negative && !zero,
            digits,
            point: if zero { 0 } else { point },
        }
    }
}

pub(super) fn length(text: &[u8]) -> i64 {
    i64::try_from(text.len()).unwrap_or(i64::MAX >> 1)
}

impl Number {
    /// Reads a JSON number; `None` if it is none or its exponent is beyond reason.
    pub(super) fn parse(raw: &[u8]) -> Option<Self> {
        Parts::parse(raw).map(|parts| parts.number())
    }

    fn signum(&self) -> i8 {
        match (self.digits.is_empty(), self.negative) {
            (true, _) => 0,
            (false, false) => 1,
            (false, true) => -1,
        }
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        let magnitude =
            || (self.point, self.digits.as_slice()).cmp(&(other.point, other.digits.as_slice()));
        self.signum().cmp(&other.signum()).then_with(|| {
            if self.negative {
                magnitude().reverse()
            } else {
                magnitude()
            }
        })
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Digits before and after the point of a JSON number, if a `numeric` can hold it.
pub(super) fn in_range(raw: &[u8]) -> Result<(i64, i64), NumberError> {
    let parts = Parts::parse(raw).ok_or(NumberError::OutOfRange)?;
    let (before, after) = (parts.number().point.max(0), parts.scale());
    if before > MAX_BEFORE || after > MAX_AFTER {
        return Err(NumberError::OutOfRange);
    }
    Ok((before, after))
}
