//! Answers of the metrics endpoints.
//!
//! Objects are united key by key. Where all backends have a number, it is combined as the names of
//! its attribute and MBean ask for (R250-R254); everything else is the first backend's (R255). What
//! is not combined keeps its bytes: the answer is the first backend's text with values replaced in
//! it and members added to it.
//!
//! Bodies are given in configured order, and an index always means a place in that list.

mod envelope;
mod number;
mod request;
mod rule;
mod tree;

pub use request::ReadRequest;

use percent_encoding::percent_decode_str;
use serde_json::value::RawValue;

use self::envelope::{Answer, Envelope};
use self::rule::Place;
use self::tree::Tree;
use super::damage::{Damage, Damaged, Readable, sift};

/// What a metrics request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Metrics {
    /// `/metrics/v2/read/...`
    Read(ReadRequest),
    /// `/metrics/v2/list[/...]`
    List,
    /// `/metrics/v1/mbeans`
    MBeans,
    /// `/metrics/v1/mbeans/<mbean>`: the raw last part of the path.
    MBean(String),
}

impl Metrics {
    /// Merges the answers to it.
    pub fn merge(&self, bodies: &[&[u8]]) -> Merged {
        match self {
            Self::Read(request) => read(request, bodies),
            Self::List => list(bodies),
            Self::MBeans => mbeans_index(bodies),
            Self::MBean(name) => mbean(name, bodies),
        }
    }
}

/// What the bodies of one metrics request become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// What to serve.
    pub body: Body,
    /// The bodies that `body` is made of.
    pub contributed: Vec<usize>,
    /// The bodies that report an error of Jolokia's inside an HTTP 200 (R256).
    pub skipped: Vec<usize>,
    /// The bodies that are not what the route promises.
    pub damaged: Damaged,
}

/// What to serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// A body made of several.
    Made(Vec<u8>),
    /// The body at this index as it came: the only good one or, if there is none, the first that
    /// reports an error (R257).
    Verbatim(usize),
    /// No body is usable.
    Nothing,
}

/// Merges answers of `/metrics/v2/read` (R248-R257, R261).
///
/// `request` says which MBean and attribute were read, which a bare value does not. If it says
/// nothing ([`ReadRequest::default`]), the first good answer's own `request` is believed.
pub fn read(request: &ReadRequest, bodies: &[&[u8]]) -> Merged {
    envelopes(bodies, |good| {
        let told;
        let request = if request.is_unknown() {
            told = envelope::request(good);
            &told
        } else {
            request
        };
        envelope::merge(good, request.place())
    })
}

/// Merges answers of `/metrics/v2/list` and what lies below it (R259).
///
/// The trees are united; of leaves, and of a value that is no tree at all because the client asked
/// for another shape (T75), the first backend's is taken.
pub fn list(bodies: &[&[u8]]) -> Merged {
    envelopes(bodies, |good| envelope::merge(good, Place::Listing))
}

/// Unites answers of `/metrics/v1/mbeans`, objects of name and link (R260). The first link wins.
pub fn mbeans_index(bodies: &[&[u8]]) -> Merged {
    objects(bodies, Place::Listing)
}

/// Merges answers of `/metrics/v1/mbeans/<mbean>`, objects of attributes without an envelope, as
/// [`read`] does (R260).
///
/// `mbean` is the last part of the raw path, still percent-encoded.
pub fn mbean(mbean: &str, bodies: &[&[u8]]) -> Merged {
    let mbean = percent_decode_str(mbean).decode_utf8_lossy();
    objects(bodies, Place::of_mbean(&mbean, ""))
}

fn envelopes(bodies: &[&[u8]], join: impl FnOnce(&[Envelope<'_>]) -> String) -> Merged {
    let (answers, damaged) = sift(bodies, Answer::read);
    let mut good = Vec::new();
    let mut skipped = Vec::new();
    for (index, answer) in answers {
        match answer {
            Answer::Value(envelope) => good.push((index, envelope)),
            Answer::Error => skipped.push(index),
        }
    }
    merged(good, skipped, damaged, join)
}

fn objects(bodies: &[&[u8]], place: Place<'_>) -> Merged {
    let (good, damaged) = sift(bodies, |body| match Tree::read(valid(body)?)? {
        tree @ Tree::Object(_) => Ok(tree),
        Tree::Leaf(_) => Err(Damage::NotAnObject),
    });
    merged(good, Vec::new(), damaged, |trees| {
        let trees: Vec<_> = trees.iter().collect();
        let mut out = String::new();
        tree::merge(&trees, place, &mut out);
        out
    })
}

fn merged<T>(
    good: Readable<T>,
    skipped: Vec<usize>,
    damaged: Damaged,
    join: impl FnOnce(&[T]) -> String,
) -> Merged {
    let (contributed, good): (Vec<_>, Vec<_>) = good.into_iter().unzip();
    let body = match (contributed.as_slice(), skipped.as_slice()) {
        ([], []) => Body::Nothing,
        ([], [first, ..]) | ([first], _) => Body::Verbatim(*first),
        _ => Body::Made(join(&good).into_bytes()),
    };
    Merged {
        body,
        contributed,
        skipped,
        damaged,
    }
}

/// The text of a body, checked by the full grammar: what the merge compares and computes with must
/// be sound, and these bodies are small.
fn valid(body: &[u8]) -> Result<&str, Damage> {
    serde_json::from_slice::<&RawValue>(body)
        .map(RawValue::get)
        .map_err(|error| Damage::of(&error, Damage::NotAnObject))
}
