//! The part of a result that the client asked for.

use super::PagingError;

/// The greatest `limit` and `offset` that PuppetDB takes.
pub const MAX_ROWS: u32 = i32::MAX.unsigned_abs();

/// Reads `limit`: 1 to [`MAX_ROWS`], with the spellings that PuppetDB takes (R150).
///
/// A sign and leading zeros are fine; blanks, fractions and exponents are not.
pub fn parse_limit(text: &str) -> Result<u32, PagingError> {
    rows(text)
        .filter(|&limit| limit > 0)
        .ok_or_else(|| PagingError::Limit(text.to_owned()))
}

/// Reads `offset`: 0 to [`MAX_ROWS`], spelled like a `limit` (R151).
pub fn parse_offset(text: &str) -> Result<u32, PagingError> {
    rows(text).ok_or_else(|| PagingError::Offset(text.to_owned()))
}

/// PuppetDB reads both as a Java `int`, whose spellings are those of Rust's `i32`.
fn rows(text: &str) -> Option<u32> {
    text.parse::<i32>().ok()?.try_into().ok()
}

/// A `limit` and an `offset`, cut from the merged and sorted set (R147). The default is everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Window {
    /// How many records of the merged set come before the first one served.
    pub offset: u32,
    /// How many records are served at most; `None` serves all that follow (R154).
    pub limit: Option<u32>,
}

impl Window {
    /// The `limit` to ask a backend for: everything up to the window's end, since what comes first
    /// in one backend may come later in the merged set (R146).
    ///
    /// `None` asks for all: the client set no limit, or the sum is more than a backend takes.
    pub fn upstream_limit(self) -> Option<u32> {
        self.offset
            .checked_add(self.limit?)
            .filter(|&end| end <= MAX_ROWS)
    }

    /// The records of the merged set that lie in this window.
    pub fn cut<T>(self, records: &[T]) -> &[T] {
        let rest = records.get(size(self.offset)..).unwrap_or_default();
        match self.limit {
            Some(limit) => rest.get(..size(limit)).unwrap_or(rest),
            None => rest,
        }
    }
}

/// A slice that is shorter than the count is what `get` answers with `None`, so a platform with
/// narrower indices needs no more care than this.
fn size(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r150_limit_takes_what_a_java_int_takes_above_zero() {
        let good = [
            ("1", 1),
            ("+3", 3),
            ("03", 3),
            ("+007", 7),
            ("2147483647", MAX_ROWS),
        ];
        for (text, expected) in good {
            assert_eq!(parse_limit(text), Ok(expected), "{text:?}");
        }
        let bad = [
            "",
            "0",
            "-0",
            "-1",
            "1.5",
            "3.0",
            "1e2",
            " 2",
            "2 ",
            "+",
            "-",
            "+-3",
            "2147483648",
            "99999999999999999999",
            "0x10",
            "1_000",
            "abc",
            "\"1\"",
        ];
        for text in bad {
            assert_eq!(parse_limit(text), Err(PagingError::Limit(text.to_owned())));
        }
    }

    #[test]
    fn r151_offset_takes_zero_too() {
        for (text, expected) in [("0", 0), ("-0", 0), ("00", 0), ("+12", 12)] {
            assert_eq!(parse_offset(text), Ok(expected), "{text:?}");
        }
        for text in ["", "-1", "1.0", " 1", "2147483648"] {
            assert_eq!(
                parse_offset(text),
                Err(PagingError::Offset(text.to_owned()))
            );
        }
    }

    #[test]
    fn a_refusal_names_the_value() {
        let error = parse_limit("1e2").unwrap_err();
        assert_eq!(
            error.to_string(),
            "limit takes a whole number from 1 to 2147483647, not '1e2'"
        );
    }

    #[test]
    fn r146_a_backend_is_asked_for_everything_up_to_the_end_of_the_window() {
        let cases = [
            (0, None, None),
            (7, None, None),
            (0, Some(5), Some(5)),
            (20, Some(10), Some(30)),
            (MAX_ROWS - 1, Some(1), Some(MAX_ROWS)),
            // T19: a backend would refuse the sum.
            (MAX_ROWS, Some(1), None),
            (MAX_ROWS, Some(MAX_ROWS), None),
            (u32::MAX, Some(u32::MAX), None),
        ];
        for (offset, limit, expected) in cases {
            let window = Window { offset, limit };
            assert_eq!(window.upstream_limit(), expected, "{window:?}");
        }
    }

    #[test]
    fn r147_the_window_is_cut_and_r154_no_limit_means_the_rest() {
        let records = [0, 1, 2, 3, 4];
        let cases: [(u32, Option<u32>, &[i32]); 7] = [
            (0, None, &[0, 1, 2, 3, 4]),
            (3, None, &[3, 4]),
            (1, Some(2), &[1, 2]),
            (4, Some(9), &[4]),
            (5, Some(1), &[]),
            (u32::MAX, Some(u32::MAX), &[]),
            (0, Some(u32::MAX), &[0, 1, 2, 3, 4]),
        ];
        for (offset, limit, expected) in cases {
            assert_eq!(Window { offset, limit }.cut(&records), expected);
        }
    }
}
