//! Exact sums and averages, spelled as PostgreSQL's `numeric` spells them.

use std::fmt;

use serde_json::Number;

/// `digits / 10^scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decimal {
    digits: i128,
    scale: u32,
}

impl Decimal {
    pub(crate) const ZERO: Self = Self {
        digits: 0,
        scale: 0,
    };

    /// The exact value of a number's shortest text; `None` beyond 38 digits.
    pub(crate) fn from_json(number: &Number) -> Option<Self> {
        let text = number.to_string();
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
            None => (text.as_str(), 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
        let scale = i64::try_from(fraction.len()).ok()? - exponent;
        match u32::try_from(scale) {
            Ok(scale) => Some(Self { digits, scale }),
            Err(_) => Some(Self {
                digits: digits.checked_mul(power(u32::try_from(-scale).ok()?)?)?,
                scale: 0,
            }),
        }
    }

    pub(crate) fn plus(self, other: Self) -> Option<Self> {
        let scale = self.scale.max(other.scale);
        let digits = self.scaled(scale)?.checked_add(other.scaled(scale)?)?;
        Some(Self { digits, scale })
    }

    /// This sum divided by `count` rows, with as many decimals as PostgreSQL's division gives.
    pub(crate) fn mean(self, count: u32) -> Option<Self> {
        let scale = self.quotient_scale(count);
        let (sum, count) = (self.scaled(scale)?, i128::from(count));
        let (quotient, rest) = (sum.checked_div(count)?, sum % count);
        // Half rounds away from zero.
        let carry = if rest.abs() * 2 >= count {
            rest.signum()
        } else {
            0
        };
        Some(Self {
            digits: quotient + carry,
            scale,
        })
    }

    fn scaled(self, scale: u32) -> Option<i128> {
        self.digits
            .checked_mul(power(scale.checked_sub(self.scale)?)?)
    }

    /// PostgreSQL's rule: at least 16 significant digits, counted in groups of four.
    fn quotient_scale(self, count: u32) -> u32 {
        let (weight, first) = self.leading_group();
        let (by_weight, by_first) = Self {
            digits: i128::from(count),
            scale: 0,
        }
        .leading_group();
        let weight = weight - by_weight - i64::from(first <= by_first);
        u32::try_from(16 - 4 * weight).unwrap_or(0).max(self.scale)
    }

    /// The first base-10000 digit that is not zero, and its place relative to the decimal point.
    fn leading_group(self) -> (i64, i128) {
        let (Some(unit), magnitude) = (power(self.scale), self.digits.abs()) else {
            return (0, 0);
        };
        let (mut group, mut rest, mut weight) = (magnitude / unit, magnitude % unit, 0);
        while group >= 10_000 {
            group /= 10_000;
            weight += 1;
        }
        while group == 0 && rest != 0 {
            let Some(next) = rest.checked_mul(10_000) else {
                break;
            };
            (group, rest) = (next / unit, next % unit);
            weight -= 1;
        }
        (weight, group)
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.digits < 0 { "-" } else { "" };
        let scale = usize::try_from(self.scale).unwrap_or(usize::MAX);
        let digits = self.digits.unsigned_abs().to_string();
        if scale == 0 {
            return write!(f, "{sign}{digits}");
        }
        let digits = format!("{digits:0>width$}", width = scale + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        write!(f, "{sign}{whole}.{fraction}")
    }
}

fn power(exponent: u32) -> Option<i128> {
    10_i128.checked_pow(exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Decimal {
        Decimal::from_json(&serde_json::from_str(text).unwrap()).unwrap()
    }

    #[test]
    fn sums_are_exact() {
        for (a, b, sum) in [
            ("1", "2", "3"),
            ("0.1", "0.2", "0.3"),
            ("9007199254740993", "1", "9007199254740994"),
            ("-1.5", "1", "-0.5"),
            ("1e21", "0.5", "1000000000000000000000.5"),
        ] {
            assert_eq!(number(a).plus(number(b)).unwrap().to_string(), sum);
        }
    }

    #[test]
    fn averages_have_the_scale_of_postgresql() {
        for (sum, count, mean) in [
            ("3001", 1, "3001.0000000000000000"),
            ("77", 6, "12.8333333333333333"),
            ("12", 1, "12.0000000000000000"),
            ("0", 1, "0.00000000000000000000"),
            ("2", 3, "0.66666666666666666667"),
            ("-2", 3, "-0.66666666666666666667"),
            ("123456789", 2, "61728394.500000000000"),
            ("0.3", 2, "0.15000000000000000000"),
        ] {
            assert_eq!(number(sum).mean(count).unwrap().to_string(), mean);
        }
    }
}
