//! Spans of time for people.

use jiff::SignedDuration;

/// A span in its two largest units: `3d 2h`, `45s`. Less than a second is in milliseconds.
pub fn span(time: SignedDuration) -> String {
    const UNITS: [(&str, i64); 4] = [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)];
    let seconds = time.as_secs();
    let Some(first) = UNITS.iter().position(|(_, size)| seconds >= *size) else {
        return format!("{}ms", time.as_millis());
    };
    let mut left = seconds;
    let parts = UNITS.iter().skip(first).take(2).map(|(unit, size)| {
        let number = left / size;
        left %= size;
        (number > 0).then(|| format!("{number}{unit}"))
    });
    parts.flatten().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_has_its_two_largest_units() {
        for (millis, text) in [
            (0, "0ms"),
            (999, "999ms"),
            (1_000, "1s"),
            (59_999, "59s"),
            (60_000, "1m"),
            (61_000, "1m 1s"),
            (3_600_000, "1h"),
            (3_601_000, "1h"),
            (86_399_000, "23h 59m"),
            (90_000_000, "1d 1h"),
            (2_000_000_000, "23d 3h"),
        ] {
            assert_eq!(span(SignedDuration::from_millis(millis)), text);
        }
    }
}
