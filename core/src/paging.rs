//! limit, offset and order_by: read, pushed down, applied to the merged set.
//!
//! A request's [`OrderBy`] and [`Window`] say what the client wants.

mod error;
mod order_by;
mod window;

pub use error::PagingError;
pub use order_by::{Direction, OrderBy, OrderField};
pub use window::{MAX_ROWS, Window, parse_limit, parse_offset};

/// Reads `include_total` or any other boolean parameter: true if it says "true" in any case, false
/// for all else. There is no wrong value.
pub fn parse_bool(text: &str) -> bool {
    text.eq_ignore_ascii_case("true")
}

#[cfg(test)]
mod tests {
    use super::parse_bool;

    #[test]
    fn only_the_word_true_is_true() {
        let cases = [
            ("true", true),
            ("TRUE", true),
            ("tRue", true),
            ("false", false),
            ("", false),
            ("1", false),
            ("yes", false),
            (" true", false),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_bool(text), expected, "{text:?}");
        }
    }
}
