//! Moments as text.

use std::time::SystemTime;

use jiff::Timestamp;

/// A moment in RFC 3339, in UTC and whole milliseconds as PuppetDB writes its own; `None` for one
/// that has no such form, some thousands of years from here.
pub fn rfc3339(moment: SystemTime) -> Option<String> {
    let moment = Timestamp::try_from(moment).ok()?;
    Some(format!("{moment:.3}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn moments_have_milliseconds_and_an_offset() {
        let at = |millis| rfc3339(SystemTime::UNIX_EPOCH + Duration::from_millis(millis));
        assert_eq!(at(0).as_deref(), Some("1970-01-01T00:00:00.000Z"));
        assert_eq!(
            at(1_714_557_600_007).as_deref(),
            Some("2024-05-01T10:00:00.007Z")
        );
    }
}
