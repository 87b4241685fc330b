//! W3C Trace Context: a request that is part of a trace stays one at the backends.

use http::{HeaderMap, HeaderName, HeaderValue};

use super::id::{hex, unique};

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// Where the trace's id lies in a `traceparent`, and where the flags do.
const TRACE_ID: std::ops::Range<usize> = 3..35;
const FLAGS: std::ops::Range<usize> = 53..55;
/// The length of one, as version 00 writes it.
const LENGTH: usize = 55;

/// The trace that a request is part of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TraceContext {
    trace_id: [u8; 32],
    flags: [u8; 2],
    /// What others keep there, passed on as it is.
    state: Vec<HeaderValue>,
}

impl TraceContext {
    /// What a client tells. Anything that is no trace context counts as none, as the standard says.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let mut told = headers.get_all(TRACEPARENT).iter();
        let (parent, None) = (told.next()?.as_bytes(), told.next()) else {
            return None;
        };
        if !is_sound(parent) {
            return None;
        }
        Some(Self {
            trace_id: parent[TRACE_ID].try_into().ok()?,
            flags: parent[FLAGS].try_into().ok()?,
            state: headers.get_all(TRACESTATE).iter().cloned().collect(),
        })
    }

    /// Tells a backend, under an id of the question's own.
    pub(super) fn add_to(&self, headers: &mut HeaderMap) {
        let span = hex(unique());
        let parent = [b"00-", &self.trace_id[..], b"-", &span, b"-", &self.flags].concat();
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
    let is_hex = |range: std::ops::Range<usize>| {
        let digits = &parent[range];
        let is_digit = |digit: &u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
        digits.iter().all(is_digit)
    };
    let is_zero = |range: std::ops::Range<usize>| parent[range].iter().all(|digit| *digit == b'0');
    let ends_right = match parent.get(LENGTH) {
        None => parent.len() == LENGTH,
        Some(next) => *next == b'-' && !parent.starts_with(b"00"),
    };
    let span = 36..52;
    ends_right
        && [2, 35, 52].iter().all(|at| parent[*at] == b'-')
        && [0..2, TRACE_ID, span.clone(), FLAGS]
            .into_iter()
            .all(is_hex)
        && !parent.starts_with(b"ff")
        && !is_zero(TRACE_ID)
        && !is_zero(span)
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
    fn each_question_is_a_span_of_its_own_in_the_same_trace() {
        let context = of(&[
            ("traceparent", GOOD),
            ("tracestate", "a=1"),
            ("tracestate", "b=2"),
        ])
        .unwrap();
        let sent = || {
            let mut headers = HeaderMap::new();
            context.add_to(&mut headers);
            let state: Vec<_> = headers.get_all(TRACESTATE).iter().cloned().collect();
            assert_eq!(state, ["a=1", "b=2"]);
            headers[TRACEPARENT].to_str().unwrap().to_owned()
        };
        let (one, other) = (sent(), sent());
        assert_ne!(one, other);
        assert_ne!(one, GOOD);
        for sent in [one, other] {
            assert!(is_sound(sent.as_bytes()), "{sent}");
            assert_eq!((&sent[..35], &sent[52..]), (&GOOD[..35], "-01"));
        }
    }
}
