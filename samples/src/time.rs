//! Instants as PuppetDB writes them: UTC, always three decimals.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

const MILLIS_A_DAY: i64 = 86_400_000;

/// An instant in milliseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The instant `millis` milliseconds after (or, if negative, before) the epoch.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// The instant `millis` milliseconds later; negative goes back.
    #[must_use]
    pub const fn plus_millis(self, millis: i64) -> Self {
        Self(self.0.saturating_add(millis))
    }

    /// The instant `minutes` earlier.
    #[must_use]
    pub const fn minus_minutes(self, minutes: i64) -> Self {
        Self(self.0.saturating_sub(minutes.saturating_mul(60_000)))
    }

    /// Whole seconds since the epoch, as Jolokia stamps its envelopes.
    pub const fn seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// Reads the ISO 8601 forms that clients send: a date, or a date and a time parted by `T` or a
    /// blank, with any number of decimals and `Z`, an offset or nothing (UTC) behind it.
    pub fn parse(text: &str) -> Option<Self> {
        let (date, time) = match text.split_once(['T', ' ']) {
            Some((date, time)) => (date, time),
            None => (text, "00:00:00Z"),
        };
        let mut parts = date.splitn(3, '-').map(digits);
        let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
        if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
            return None;
        }
        let zone = time.find(['Z', '+', '-']).unwrap_or(time.len());
        let (clock, zone) = time.split_at(zone);
        let millis = days_from_civil(year, month, day) * MILLIS_A_DAY + clock_millis(clock)?;
        Some(Self(millis - zone_millis(zone)?))
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil_from_days(self.0.div_euclid(MILLIS_A_DAY));
        let millis = self.0.rem_euclid(MILLIS_A_DAY);
        let (seconds, millis) = (millis / 1000, millis % 1000);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z"
        )
    }
}

fn digits(text: &str) -> Option<i64> {
    let plain = (1..=6).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

fn clock_millis(clock: &str) -> Option<i64> {
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    if fraction.is_empty() || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let millis = digits(&format!("{fraction:0<3}")[..3])?;
    let mut parts = clock.splitn(3, ':').map(digits);
    let (hour, minute) = (parts.next()??, parts.next()??);
    let second = parts.next().unwrap_or(Some(0))?;
    (hour < 24 && minute < 60 && second < 60)
        .then_some(((hour * 60 + minute) * 60 + second) * 1000 + millis)
}

fn zone_millis(zone: &str) -> Option<i64> {
    if zone.is_empty() || zone == "Z" {
        return Some(0);
    }
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let (hours, minutes) = match zone[1..].split_once(':') {
        Some(pair) => pair,
        None => zone[1..].split_at_checked(2)?,
    };
    let minutes = if minutes.is_empty() { "0" } else { minutes };
    Some(sign * (digits(hours)? * 60 + digits(minutes)?) * 60_000)
}

// The two conversions below count in 400-year eras that begin on 1 March, so that the leap day is
// the last day of its year and needs no case of its own.

fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = era * 400 + year + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_written_in_utc_with_three_decimals() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_014, "2000-02-29T00:00:00.014Z"),
            (1_794_528_060_014, "2026-11-13T00:01:00.014Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(Timestamp(millis).to_string(), text);
            assert_eq!(Timestamp::parse(text), Some(Timestamp(millis)));
        }
    }

    #[test]
    fn the_spellings_of_clients_are_read() {
        for (text, canonical) in [
            ("2026-11-13", "2026-11-13T00:00:00.000Z"),
            ("2026-11-13 00:00:00.000000Z", "2026-11-13T00:00:00.000Z"),
            ("2026-11-13T10:00:00+02:00", "2026-11-13T08:00:00.000Z"),
            ("2026-11-13T10:00:00-0130", "2026-11-13T11:30:00.000Z"),
            ("2026-11-13T10:00", "2026-11-13T10:00:00.000Z"),
        ] {
            assert_eq!(
                Timestamp::parse(text).map(|t| t.to_string()).as_deref(),
                Some(canonical)
            );
        }
        for text in [
            "",
            "yesterday",
            "2026-13-01",
            "2026-11-13T25:00",
            "2026-11-13T10:00:00.",
        ] {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
    }
}
