//! The last requests that are worth a look: slow ones, and those whose answer lacks a backend.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Serialize;

use super::lock;

/// The status that is written where a client left before there was one. Nobody is ever sent it.
pub(crate) const LEFT: u16 = 499;

/// How many of each kind are kept.
const KEPT: usize = 50;

/// What became of one request.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Story {
    /// When its answer was written, RFC 3339.
    pub time: String,
    /// The address that it came from.
    pub client: String,
    /// The name in the certificate that it showed, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whom it was let in as: a user, whose token it bore, or a name in its certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Its method.
    pub method: String,
    /// Its path with the query, as they came; a token in it is left out.
    pub target: String,
    /// The status of the answer.
    pub status: u16,
    /// Bytes of the answer's body.
    pub bytes: u64,
    /// Seconds to the last byte.
    pub duration: f64,
    /// Seconds until the answer began.
    pub first_byte: f64,
    /// What the cache had to do with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<&'static str>,
    /// How many backends contributed, of how many, as in `X-Backends`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backends: Option<String>,
    /// The others, each with one word why, as in `X-Pdbmux-Missing`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// What was asked of backends for it, where that was noted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<Took>,
    /// Whether the client left, or the answer broke off, before its end.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// Its id, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// How long a backend took for one question.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Took {
    /// The backend's name.
    pub backend: String,
    /// The name of the one that was asked, if the backend is a group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// Seconds from the beginning of the request to that of the question.
    pub began: f64,
    /// Seconds that the answer took.
    pub took: f64,
    /// Its status, or one word why there was none.
    pub answer: String,
}

impl Story {
    /// What was asked of whom, in words.
    pub fn asked(&self) -> String {
        let asked = self.asked.iter().map(Took::to_string);
        asked.collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Took {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            backend,
            member,
            began,
            took,
            answer,
        } = self;
        // A member as it is configured.
        f.write_str(backend)?;
        if let Some(member) = member {
            write!(f, "/{member}")?;
        }
        write!(f, " {answer} {took}s from {began}s")
    }
}

/// The last of them, the newest first.
#[derive(Debug, Default)]
pub struct Recent {
    slow: Ring,
    partial: Ring,
}

#[derive(Debug, Default)]
struct Ring(Mutex<VecDeque<Arc<Story>>>);

impl Recent {
    /// Keeps a request that took long.
    pub fn keep_slow(&self, story: &Arc<Story>) {
        self.slow.keep(story);
    }

    /// Keeps a request whose answer lacks a backend.
    pub fn keep_partial(&self, story: &Arc<Story>) {
        self.partial.keep(story);
    }

    /// The requests that took long.
    pub fn slow(&self) -> Vec<Arc<Story>> {
        self.slow.kept()
    }

    /// The requests whose answer lacks a backend.
    pub fn partial(&self) -> Vec<Arc<Story>> {
        self.partial.kept()
    }
}

impl Ring {
    fn keep(&self, story: &Arc<Story>) {
        let mut kept = lock(&self.0);
        kept.truncate(KEPT - 1);
        kept.push_front(Arc::clone(story));
    }

    fn kept(&self) -> Vec<Arc<Story>> {
        lock(&self.0).iter().cloned().collect()
    }
}

/// A duration in seconds, to a tenth of a millisecond.
pub(crate) fn seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 10_000.0).round() / 10_000.0
}

/// A path with a query, but for the value of a token, which is a password.
pub(crate) fn without_tokens(target: &str) -> String {
    let Some((path, query)) = target.split_once('?') else {
        return target.to_owned();
    };
    let pairs = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, _)) if is_token(name) => format!("{name}=..."),
        _ => pair.to_owned(),
    });
    format!("{path}?{}", pairs.collect::<Vec<_>>().join("&"))
}

fn is_token(name: &str) -> bool {
    let name = percent_encoding::percent_decode_str(name).decode_utf8_lossy();
    name.eq_ignore_ascii_case("token")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_told_but_for_a_token() {
        for (target, told) in [
            ("/pdb/query/v4/nodes", "/pdb/query/v4/nodes"),
            ("/a%2Fb?query=%5B%5D", "/a%2Fb?query=%5B%5D"),
            ("/a?token=secret&b=1", "/a?token=...&b=1"),
            ("/a?b&%74OKEN=secret", "/a?b&%74OKEN=..."),
            ("/a?tokens=1&", "/a?tokens=1&"),
        ] {
            assert_eq!(without_tokens(target), told);
        }
    }
}
