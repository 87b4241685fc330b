//! W3C Trace Context: a request that is part of a trace stays one at the backends.

use std::ops::Range;

use http::{HeaderMap, HeaderName, HeaderValue};

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// Where the ids lie in a `traceparent`, and where the flags do.
const TRACE_ID: Range<usize> = 3..35;
const PARENT_ID: Range<usize> = 36..52;
const FLAGS: Range<usize> = 53..55;
/// The length of one, as version 00 writes it.
const LENGTH: usize = 55;

/// The flag of those that are recorded.
#[cfg(feature = "otlp")]
const SAMPLED: u8 = 1;

/// The trace that a request is part of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TraceContext {
    /// Its id.
    pub(crate) trace: u128,
    /// The span of the client, if the trace is the client's.
    pub(crate) parent: Option<u64>,
    flags: u8,
    /// What others keep there, passed on as it is.
    state: Vec<HeaderValue>,
}

impl TraceContext {
    /// A trace that begins here.
    #[cfg(feature = "otlp")]
    pub(crate) fn begun(trace: u128, is_sampled: bool) -> Self {
        Self {
            trace,
            parent: None,
            flags: if is_sampled { SAMPLED } else { 0 },
            state: Vec::new(),
        }
    }

    /// Whether whoever began the trace has it recorded.
    #[cfg(feature = "otlp")]
    pub(crate) fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// What a client tells. Anything that is no trace context counts as none, as the standard says.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let mut told = headers.get_all(TRACEPARENT).iter();
        let (parent, None) = (told.next()?.as_bytes(), told.next()) else {
            return None;
        };
        if !is_sound(parent) {
            return None;
        }
        let digits = |range: Range<usize>| str::from_utf8(&parent[range]).ok();
        Some(Self {
            trace: u128::from_str_radix(digits(TRACE_ID)?, 16).ok()?,
            parent: u64::from_str_radix(digits(PARENT_ID)?, 16).ok(),
            flags: u8::from_str_radix(digits(FLAGS)?, 16).ok()?,
            state: headers.get_all(TRACESTATE).iter().cloned().collect(),
        })
    }

    /// Tells a backend, under the id of the question's own span.
    pub(super) fn add_to(&self, headers: &mut HeaderMap, span: u64) {
        let Self { trace, flags, .. } = self;
        let parent = format!("00-{trace:032x}-{span:016x}-{flags:02x}");
        // Digits and dashes are such a value.
        if let Ok(parent) = HeaderValue::try_from(parent) {
            headers.insert(TRACEPARENT, parent);
            for state in &self.state {
                headers.append(TRACESTATE, state.clone());
            }
        }
    }
}

/// Whether it is a `traceparent`. One of a later version may go on after the flags.
fn is_sound(parent: &[u8]) -> bool {
    let is_hex = |range: Range<usize>| {
        let digits = &parent[range];
        let is_digit = |digit: &u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
        digits.iter().all(is_digit)
    };
    let is_zero = |range: Range<usize>| parent[range].iter().all(|digit| *digit == b'0');
    let ends_right = match parent.get(LENGTH) {
        None => parent.len() == LENGTH,
        Some(next) => *next == b'-' && !parent.starts_with(b"00"),
    };
    ends_right
        && [2, 35, 52].iter().all(|at| parent[*at] == b'-')
        && [0..2, TRACE_ID, PARENT_ID, FLAGS].into_iter().all(is_hex)
        && !parent.starts_with(b"ff")
        && !is_zero(TRACE_ID)
        && !is_zero(PARENT_ID)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn of(lines: &[(&'static str, &str)]) -> Option<TraceContext> {
        let lines = lines.iter();
        let headers = lines.map(|(name, value)| {
            let name = HeaderName::from_static(name);
            (name, HeaderValue::from_str(value).unwrap())
        });
        TraceContext::of(&headers.collect::<MultiMap>().0)
    }

    #[derive(Default)]
    struct MultiMap(HeaderMap);

    impl FromIterator<(HeaderName, HeaderValue)> for MultiMap {
        fn from_iter<I: IntoIterator<Item = (HeaderName, HeaderValue)>>(lines: I) -> Self {
            let mut map = HeaderMap::new();
            for (name, value) in lines {
                map.append(name, value);
            }
            Self(map)
        }
    }

    #[test]
    fn what_is_no_trace_context_counts_as_none() {
        let later = GOOD.replacen("00", "cc", 1);
        for (parent, sound) in [
            (GOOD, true),
            (&*format!("{GOOD}-more"), false),
            (&later, true),
            (&format!("{later}-more"), true),
            (&format!("{later}more"), false),
            (&GOOD.replacen("00", "ff", 1), false),
            (&GOOD.to_uppercase(), false),
            (&GOOD[..54], false),
            (
                &GOOD.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
                false,
            ),
            (&GOOD.replace("00f067aa0ba902b7", &"0".repeat(16)), false),
            (&GOOD.replace('-', "_"), false),
            ("", false),
        ] {
            assert_eq!(of(&[("traceparent", parent)]).is_some(), sound, "{parent}");
        }
        let twice = [("traceparent", GOOD), ("traceparent", GOOD)];
        assert_eq!(of(&twice), None);
        assert_eq!(of(&[("tracestate", "a=1")]), None);
    }

    #[test]
    fn a_question_is_told_under_its_own_span_in_the_same_trace() {
        let context = of(&[
            ("traceparent", GOOD),
            ("tracestate", "a=1"),
            ("tracestate", "b=2"),
        ])
        .unwrap();
        let mut headers = HeaderMap::new();
        context.add_to(&mut headers, 0xabc);
        let state: Vec<_> = headers.get_all(TRACESTATE).iter().cloned().collect();
        assert_eq!(state, ["a=1", "b=2"]);
        let sent = headers[TRACEPARENT].to_str().unwrap();
        assert_eq!(sent, GOOD.replace("00f067aa0ba902b7", "0000000000000abc"));
        assert!(is_sound(sent.as_bytes()));
    }
}
