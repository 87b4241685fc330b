//! Where it is told what was done for requests: to a collector of traces, by OTLP over HTTP.

use std::fmt;
use std::str::FromStr;

use super::access::{self, Access};
use super::key::{Bears, Key, Setter};
use super::url::BaseUrl;
use super::value::ValueError;

/// Where spans are sent. The keys have the names of the fields, with `otlp_` before them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OtlpConfig {
    /// The collector, without `/v1/traces`; nobody if not set.
    pub endpoint: Option<BaseUrl>,
    /// How it is reached: only headers are set.
    pub access: Access,
    /// How many of the requests are recorded whose client does not say; all if not set.
    pub sample: Option<Ratio>,
}

/// A part of a whole, in millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ratio(u32);

const WHOLE: u32 = 1_000_000;

impl Ratio {
    /// The same part of all numbers that there are: those below this one.
    pub fn of_numbers(self) -> u64 {
        let part = u128::from(u64::MAX) * u128::from(self.0) / u128::from(WHOLE);
        u64::try_from(part).unwrap_or(u64::MAX)
    }
}

impl FromStr for Ratio {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        match text.parse::<f64>() {
            Ok(number) if (0.0..=1.0).contains(&number) => {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "it lies between 0 and a million"
                )]
                let millionths = (number * f64::from(WHOLE)).round() as u32;
                Ok(Self(millionths))
            }
            Ok(_) | Err(_) => Err(ValueError::NotRatio),
        }
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (f64::from(self.0) / f64::from(WHOLE)).fmt(f)
    }
}

impl OtlpConfig {
    /// A key that is set, and one that it needs and that is not.
    pub(super) fn lacking(&self) -> Option<(&'static str, &'static str)> {
        let is_set = [
            ("otlp_headers", self.access.headers.is_some()),
            ("otlp_sample", self.sample.is_some()),
        ];
        let mut set = is_set.into_iter().filter(|(_, is_set)| *is_set);
        let (key, _) = set.next().filter(|_| self.endpoint.is_none())?;
        Some((key, "otlp_endpoint"))
    }
}

/// What a key is set to, where there is something to be set.
fn built<T>(value: T) -> Result<T, ValueError> {
    if cfg!(feature = "otlp") {
        Ok(value)
    } else {
        Err(ValueError::NotBuilt("otlp"))
    }
}

const fn key(name: &'static str, hint: &'static str, doc: &'static str) -> Key {
    Key {
        name,
        hint,
        doc,
        flag: None,
        choices: &[],
        bears: Bears::Beside,
        set: Setter::Scalar(|_, _| Ok(())),
        show: |_| String::new(),
    }
}

/// The collector.
pub(super) const ENDPOINT: Key = Key {
    set: Setter::Scalar(|config, text| {
        config.otlp.endpoint = built(Some(text.parse()?))?;
        Ok(())
    }),
    show: |config| {
        let endpoint = config.otlp.endpoint.as_ref();
        endpoint.map_or_else(String::new, ToString::to_string)
    },
    ..key(
        "otlp_endpoint",
        "URL",
        "Collector of traces that is told of each request and of each question to a backend, by OTLP \
         over HTTP, such as http://collector:4318. Only a build with the cargo feature otlp takes it.",
    )
};

/// What it is told in the head of a request.
pub(super) const HEADERS: Key = Key {
    set: Setter::Scalar(|config, text| {
        (access::HEADERS.set)(&mut config.otlp.access, text)?;
        built(())
    }),
    show: |config| access::HEADERS.show(&config.otlp.access),
    ..key(
        "otlp_headers",
        "NAME=SECRET,...",
        "Headers of every request to that collector. A secret is file:PATH or env:NAME.",
    )
};

/// How much it is told of.
pub(super) const SAMPLE: Key = Key {
    set: Setter::Scalar(|config, text| {
        config.otlp.sample = built(Some(text.parse()?))?;
        Ok(())
    }),
    show: |config| {
        let sample = config.otlp.sample.as_ref();
        sample.map_or_else(String::new, ToString::to_string)
    },
    ..key(
        "otlp_sample",
        "RATIO",
        "Part of the requests that it is told of, from 0 to 1. Those whose traceparent says whether \
         they are recorded are not counted; without it all are.",
    )
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_a_number_from_0_to_1() {
        for (text, millionths) in [
            ("0", Some(0)),
            ("1", Some(WHOLE)),
            ("0.25", Some(250_000)),
            (".5", Some(500_000)),
            ("1e-6", Some(1)),
            ("1.1", None),
            ("-0.1", None),
            ("NaN", None),
            ("50%", None),
        ] {
            assert_eq!(text.parse().ok(), millionths.map(Ratio), "{text}");
        }
        assert_eq!(Ratio(0).of_numbers(), 0);
        assert_eq!(Ratio(WHOLE).of_numbers(), u64::MAX);
        assert_eq!(Ratio(WHOLE / 2).of_numbers(), u64::MAX / 2);
    }
}
