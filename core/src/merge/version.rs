//! The lowest version of several.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value};

use super::damage::{Damage, Damaged, sift};

/// The version of a PuppetDB, such as `8.15.0`, `9.0.0-beta1` or `8.8.2-SNAPSHOT`.
///
/// The order is total:
/// 1. What stands before the first dash is compared dot by dot: numbers by their value, whatever
///    their length, words by their bytes, a number below any word (R244 leaves the mixed case to
///    text order, under which `9 < 10 < 1a < 9`). If one ends first it is the lower.
/// 2. Of two equal releases, the one with a suffix after a dash is the lower (ruling 11).
/// 3. Suffixes are compared the same way, but also cut at dashes and between digits and letters:
///    `beta2` is below `beta10`.
/// 4. What is left differs in spelling only (`8.01`, `8.1`) and is ordered by its bytes, so that
///    equal versions are equal texts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Version(String);

impl Version {
    /// The version as its backend wrote it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its first two numbers, such as 8 and 15; `None` where it does not begin with two.
    pub fn numbers(&self) -> Option<(u32, u32)> {
        let mut parts = self.0.split(['.', '-']);
        let mut next = || parts.next()?.parse().ok();
        Some((next()?, next()?))
    }

    /// Whether a PuppetDB of this version takes the parameter `origin`: 6.19 and 7.6 were the first
    /// (section 13 of the wire notes).
    pub fn takes_origin(&self) -> bool {
        match self.numbers() {
            Some((6, minor)) => minor >= 19,
            Some(numbers) => numbers >= (7, 6),
            None => false,
        }
    }

    fn parts(&self) -> (&str, Option<&str>) {
        match self.0.split_once('-') {
            Some((release, suffix)) => (release, Some(suffix)),
            None => (&self.0, None),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that does not begin with a digit, and so is no version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a version")]
pub struct NotAVersion(pub String);

impl FromStr for Version {
    type Err = NotAVersion;

    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        if text.starts_with(|first: char| first.is_ascii_digit()) {
            Ok(Self(text.to_owned()))
        } else {
            Err(NotAVersion(text.to_owned()))
        }
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        let (release, suffix) = self.parts();
        let (other_release, other_suffix) = other.parts();
        release
            .split('.')
            .map(|text| Segment::of(text.as_bytes()))
            .cmp(
                other_release
                    .split('.')
                    .map(|text| Segment::of(text.as_bytes())),
            )
            .then_with(|| match (suffix, other_suffix) {
                (None, None) => Ordering::Equal,
                (None, Some(_)) => Ordering::Greater,
                (Some(_), None) => Ordering::Less,
                (Some(suffix), Some(other)) => suffix_segments(suffix).cmp(suffix_segments(other)),
            })
            .then_with(|| self.0.cmp(&other.0))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A run of a version. The derived order is the rule: numbers before words, and of numbers without
/// leading zeros the longer is the larger.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Segment<'v> {
    Number { length: usize, digits: &'v [u8] },
    Word(&'v [u8]),
}

impl<'v> Segment<'v> {
    fn of(text: &'v [u8]) -> Self {
        if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
            return Self::Word(text);
        }
        let zeros = text.iter().take_while(|digit| **digit == b'0').count();
        let digits = &text[zeros..];
        Self::Number {
            length: digits.len(),
            digits,
        }
    }
}

fn suffix_segments(suffix: &str) -> impl Iterator<Item = Segment<'_>> {
    suffix
        .split(['.', '-'])
        .flat_map(|part| {
            part.as_bytes()
                .chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit())
        })
        .map(Segment::of)
}

/// The lowest version that several backends state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lowest {
    /// Which body states it, the first of several that do, and the version itself. That body is
    /// the answer, byte for byte. `None` if no body states a version.
    pub winner: Option<(usize, Version)>,
    /// The bodies that state no version (R245).
    pub damaged: Damaged,
}

/// Finds the lowest version among bodies of `/pdb/meta/v1/version`, given in configured order
/// (R243).
pub fn lowest(bodies: &[&[u8]]) -> Lowest {
    let (versions, damaged) = sift(bodies, read);
    // Of equal minima `min_by` gives the first.
    let winner = versions.into_iter().min_by(|(_, a), (_, b)| a.cmp(b));
    Lowest { winner, damaged }
}

/// The version that a body of `/pdb/meta/v1/version` states.
///
/// # Errors
///
/// It states none (R245).
pub fn read(body: &[u8]) -> Result<Version, Damage> {
    let body: Map<String, Value> =
        serde_json::from_slice(body).map_err(|error| Damage::of(&error, Damage::NotAVersion))?;
    body.get("version")
        .and_then(Value::as_str)
        .and_then(|text| text.parse().ok())
        .ok_or(Damage::NotAVersion)
}
