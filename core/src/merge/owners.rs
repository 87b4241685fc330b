//! Which backend has the newest data of a node.

mod census;
pub mod copies;
pub mod history;
mod nodes;
mod shares;
mod stamps;
mod time;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::hash::BuildHasher;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::json::{ScanError, quote, unquote};
use crate::round::BackendId;
use copies::Held;
use nodes::{Names, part};
use stamps::Stamps;

pub(super) use time::time;

pub use census::{Census, OfBackend};
pub use nodes::{ArrivingNodes, Nodes};
pub(crate) use shares::{ALWAYS, CHUNK, NEVER, one_of};
pub use shares::{Share, Shares, Watched};
pub use stamps::Stamp;

/// A dense number for each certname seen, so that per-node state lives in plain vectors.
#[derive(Debug, Default)]
pub(crate) struct Certnames<'b> {
    names: Vec<Cow<'b, [u8]>>,
    /// Numbers with the hashes of their names: to grow must not visit every name again.
    numbers: HashTable<(u64, u32)>,
    hasher: foldhash::fast::RandomState,
}

impl<'b> Certnames<'b> {
    /// Makes room for as many names more.
    pub(crate) fn reserve(&mut self, names: usize) {
        self.names.reserve(names);
        self.numbers.reserve(names, |(hash, _)| *hash);
    }

    /// The number of `raw`, a JSON string. Spellings that differ in escapes only are one certname.
    pub(crate) fn number(&mut self, raw: &'b [u8]) -> u32 {
        self.numbered(canonical(raw), |name| name)
    }

    /// The same for text that does not stay: a name that is new is copied.
    pub(crate) fn keep(&mut self, raw: &[u8]) -> u32 {
        self.numbered(canonical(raw), |name| Cow::Owned(name.into_owned()))
    }

    fn numbered<'r>(
        &mut self,
        name: Cow<'r, [u8]>,
        keep: impl FnOnce(Cow<'r, [u8]>) -> Cow<'b, [u8]>,
    ) -> u32 {
        let hash = self.hasher.hash_one(&name);
        let Self { names, numbers, .. } = self;
        let is_known =
            |&(known, number): &(u64, u32)| known == hash && names[number as usize] == name;
        match numbers.entry(hash, is_known, |(hash, _)| *hash) {
            Entry::Occupied(found) => found.get().1,
            Entry::Vacant(free) => {
                // One answer cannot hold 2^32 certnames: it is bounded by its size in bytes.
                let number = u32::try_from(names.len()).unwrap_or(u32::MAX);
                free.insert((hash, number));
                names.push(keep(name));
                number
            }
        }
    }

    pub(crate) fn name(&self, number: u32) -> &[u8] {
        &self.names[number as usize]
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }
}

/// Whether there is a backslash. Certnames are short: to compare a few blocks costs less than setting
/// up a search.
fn has_escape(raw: &[u8]) -> bool {
    // All are compared at once, which to stop at the first would prevent.
    let is_in = |bytes: &[u8]| {
        bytes
            .iter()
            .fold(0, |found, byte| found | u8::from(*byte == b'\\'))
            != 0
    };
    match raw.last_chunk::<16>() {
        Some(last) => is_in(last) || raw.as_chunks::<16>().0.iter().any(|block| is_in(block)),
        None => is_in(raw),
    }
}

/// The one spelling under which a certname is compared.
pub(crate) fn canonical(raw: &[u8]) -> Cow<'_, [u8]> {
    if !has_escape(raw) {
        return Cow::Borrowed(raw);
    }
    unquote(raw).map_or(Cow::Borrowed(raw), |name| {
        Cow::Owned(quote(&name).into_bytes())
    })
}

/// For each certname, how new the data of each backend is (R044).
///
/// Built from the `/nodes` answers of the backends that gave one.
#[derive(Debug, Default)]
pub struct FreshnessMap {
    /// By number.
    names: Names,
    numbers: HashTable<u32>,
    hasher: foldhash::fast::RandomState,
    /// Where the copies of each node end, by its number; those of one node lie side by side.
    ends: Vec<usize>,
    holders: Vec<BackendId>,
    stamps: Stamps,
    /// In configured order.
    contributors: Vec<Contributor>,
}

/// A backend whose nodes are known.
#[derive(Debug)]
struct Contributor {
    backend: BackendId,
    nodes: u64,
    /// How many of them it has deactivated, or let expire.
    inactive: u64,
    by_bytes: bool,
}

impl FreshnessMap {
    /// Builds the map from one `/nodes` body for each backend.
    ///
    /// A damaged body is left out and reported by its backend: that backend is then no
    /// contributor.
    pub fn build(bodies: &[(BackendId, &[u8])]) -> (Self, Vec<(BackendId, ScanError)>) {
        let mut damaged = Vec::new();
        let read = bodies.iter().filter_map(|&(backend, body)| {
            let nodes = Nodes::read(backend, body);
            nodes.map_err(|error| damaged.push((backend, error))).ok()
        });
        let map = Self::of(read.collect());
        (map, damaged)
    }

    /// Builds it from the nodes of each backend that told them.
    pub fn of(mut lists: Vec<Nodes>) -> Self {
        lists.sort_by_key(|nodes| nodes.backend);
        let mut map = Self::default();
        let mut parts = Vec::with_capacity(lists.len());
        for nodes in lists {
            let numbers = map.number_all(&nodes.names);
            map.contributors.push(Contributor {
                backend: nodes.backend,
                nodes: nodes.count() as u64,
                inactive: nodes.inactive,
                by_bytes: nodes.by_bytes,
            });
            // Its names are known now: they take no room any more.
            parts.push((nodes.backend, numbers, nodes.stamps));
        }
        map.arrange(parts);
        map.names.shrink();
        map.stamps.shrink();
        map
    }

    /// The numbers of these certnames, given to those that have none yet.
    fn number_all(&mut self, names: &Names) -> Vec<u32> {
        let Self {
            names: known,
            numbers,
            hasher,
            ..
        } = self;
        let number = |name: &[u8]| {
            let is_it = |number: &u32| known.get(*number as usize) == name;
            let hash_of = |number: &u32| hasher.hash_one(known.get(*number as usize));
            match numbers.entry(hasher.hash_one(name), is_it, hash_of) {
                Entry::Occupied(found) => *found.get(),
                Entry::Vacant(free) => {
                    // An estate of 2^32 nodes is none.
                    let number = u32::try_from(known.len()).unwrap_or(u32::MAX);
                    free.insert(number);
                    known.push(name);
                    number
                }
            }
        };
        names.iter().map(number).collect()
    }

    /// Puts the copies of each node side by side, in configured order: `parts` are who holds them, the
    /// numbers of its nodes, and how new they are.
    fn arrange(&mut self, parts: Vec<(BackendId, Vec<u32>, Stamps)>) {
        self.ends = vec![0; self.names.len()];
        for number in parts.iter().flat_map(|(_, numbers, _)| numbers) {
            self.ends[*number as usize] += 1;
        }
        // Where each node's copies begin; every copy moves that on, to where they end at last.
        let mut copies = 0;
        for place in &mut self.ends {
            copies += std::mem::replace(place, copies);
        }
        self.holders = vec![BackendId(0); copies];
        for (backend, numbers, stamps) in parts {
            for (at, number) in numbers.into_iter().enumerate() {
                let place = &mut self.ends[number as usize];
                self.holders[*place] = backend;
                self.stamps.set(*place, stamps.stamp(at), stamps.state(at));
                *place += 1;
            }
        }
    }

    /// Whether the `/nodes` answer of `backend` is part of it.
    pub fn covers(&self, backend: BackendId) -> bool {
        self.contributor(backend).is_some()
    }

    /// Whether `backend`, asked to order all its nodes by certname, ordered them by bytes as pdbmux
    /// does (ruling 8). Then it does so with any of them.
    pub fn lists_by_bytes(&self, backend: BackendId) -> bool {
        let contributor = self.contributor(backend);
        contributor.is_some_and(|contributor| contributor.by_bytes)
    }

    /// How many nodes `backend` held when the map was built.
    pub fn held_by(&self, backend: BackendId) -> Option<u64> {
        let contributor = self.contributor(backend);
        contributor.map(|contributor| contributor.nodes)
    }

    /// How many of them were active.
    pub(crate) fn active(&self, backend: BackendId) -> Option<u64> {
        let contributor = self.contributor(backend)?;
        contributor.nodes.checked_sub(contributor.inactive)
    }

    fn contributor(&self, backend: BackendId) -> Option<&Contributor> {
        let mut contributors = self.contributors.iter();
        contributors.find(|contributor| contributor.backend == backend)
    }

    /// How many certnames it holds.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether it holds no certname.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The backends that hold `certname`, the one with the newest report first; ties in configured
    /// order (R031, R048).
    pub fn holders(&self, certname: &str) -> Vec<BackendId> {
        let number = self.number(quote(certname).as_bytes());
        let mut held: Vec<_> = number.map_or(Vec::new(), |number| self.held(number).collect());
        held.sort_by(|a, b| first_is_owner((a.backend, a.stamp), (b.backend, b.stamp)));
        held.into_iter().map(|held| held.backend).collect()
    }

    /// How new the data of `backend` is for the certname with the canonical spelling `name`.
    pub(crate) fn stamp(&self, name: &[u8], backend: BackendId) -> Stamp {
        self.copy(name, backend).unwrap_or_default()
    }

    /// The same, if it holds that node at all.
    pub(crate) fn copy(&self, name: &[u8], backend: BackendId) -> Option<Stamp> {
        let mut places = part(&self.ends, self.number(name)? as usize);
        let place = places.find(|place| self.holders[*place] == backend);
        place.map(|place| self.stamps.stamp(place))
    }

    /// The place of the node of the canonical spelling `name` among those that it holds.
    pub(crate) fn number(&self, name: &[u8]) -> Option<u32> {
        let hash = self.hasher.hash_one(name);
        let is_it = |known: &u32| self.name(*known) == name;
        self.numbers.find(hash, is_it).copied()
    }

    /// The certname at this place, in its canonical spelling.
    pub(crate) fn name(&self, number: u32) -> &[u8] {
        self.names.get(number as usize)
    }

    /// The copies of the node at this place, in configured order.
    fn held(&self, number: u32) -> impl Iterator<Item = Held> + Clone {
        part(&self.ends, number as usize).map(|place| Held {
            backend: self.holders[place],
            stamp: self.stamps.stamp(place),
            state: self.stamps.state(place),
        })
    }

    /// The places of all nodes.
    fn numbers(&self) -> impl Iterator<Item = u32> {
        (0..).take(self.len())
    }
}

/// Puts the owner's copy of a node before another: the newer one, then that of the backend that is
/// configured first (R031, R048).
fn first_is_owner(a: (BackendId, Stamp), b: (BackendId, Stamp)) -> Ordering {
    b.1.cmp(&a.1).then(a.0.cmp(&b.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: BackendId = BackendId(0);
    const B: BackendId = BackendId(1);

    fn node(certname: &str, timestamp: &str) -> String {
        let timestamp = if timestamp.is_empty() {
            "null".into()
        } else {
            quote(timestamp)
        };
        format!(r#"{{"certname":"{certname}","report_timestamp":{timestamp}}}"#)
    }

    #[test]
    fn r031_r048_the_newest_report_comes_first_and_ties_keep_the_configured_order() {
        let cases = [
            (
                "2026-01-01T00:00:00.000Z",
                "2026-01-01T00:00:00.001Z",
                [B, A],
            ),
            (
                "2026-01-01T00:00:00.001Z",
                "2026-01-01T00:00:00.000Z",
                [A, B],
            ),
            (
                "2026-01-01T00:00:00.000Z",
                "2026-01-01T00:00:00.000Z",
                [A, B],
            ),
            ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00.5Z", [B, A]),
            ("2026-01-01T00:00:00Z", "2025-12-31T23:30:00-01:00", [B, A]),
            ("", "2026-01-01T00:00:00Z", [B, A]),
            ("2026-01-01T00:00:00Z", "", [A, B]),
            ("", "", [A, B]),
            ("garbage", "2026-01-01T00:00:00Z", [B, A]),
        ];
        for (a, b, expected) in cases {
            let (a, b) = (format!("[{}]", node("n", a)), format!("[{}]", node("n", b)));
            // Whatever arrives first, the configured order decides.
            for bodies in [
                [(A, a.as_bytes()), (B, b.as_bytes())],
                [(B, b.as_bytes()), (A, a.as_bytes())],
            ] {
                let (map, damaged) = FreshnessMap::build(&bodies);
                assert!(damaged.is_empty());
                assert_eq!(map.holders("n"), expected, "{a} {b}");
            }
        }
    }

    #[test]
    fn a_damaged_body_is_no_contribution() {
        let body = format!("[{}]", node("n", ""));
        let (map, damaged) =
            FreshnessMap::build(&[(A, &body.as_bytes()[..20]), (B, body.as_bytes())]);
        assert_eq!(damaged.len(), 1);
        assert!(!map.covers(A) && map.covers(B));
        assert_eq!(map.holders("n"), [B]);
    }

    #[test]
    fn t12_a_backend_lists_by_bytes_only_if_its_whole_list_does() {
        for (certnames, expected) in [
            (&[][..], true),
            (&["a"], true),
            (&["A", "Z", "a", "é"], true),
            (&["a-1", "a1"], true),
            // As a language orders them.
            (&["a1", "a-1"], false),
            (&["a", "B", "c"], false),
            (&["é", "z"], false),
            // Compared by their characters, not by how they are escaped.
            (&["a\\/b", "a0b"], true),
            (&["a0b", "a\\/b"], false),
        ] {
            let nodes: Vec<_> = certnames.iter().map(|name| node(name, "")).collect();
            let body = format!("[{}]", nodes.join(","));
            let (map, _) = FreshnessMap::build(&[(A, b"[]"), (B, body.as_bytes())]);
            assert_eq!(map.lists_by_bytes(B), expected, "{certnames:?}");
        }
        let (map, _) = FreshnessMap::build(&[(B, b"[{]")]);
        assert!(!map.lists_by_bytes(A) && !map.lists_by_bytes(B));
    }

    #[test]
    fn certnames_have_dense_numbers() {
        let mut names = Certnames::default();
        let raw: [&[u8]; 5] = [b"\"a\"", b"\"b\"", br#""\u0061""#, b"7", b"\"b\""];
        assert_eq!(raw.map(|raw| names.number(raw)), [0, 1, 0, 2, 1]);
        assert_eq!(names.len(), 3);
        assert_eq!(names.name(1), b"\"b\"");
    }

    #[test]
    fn an_escape_is_seen_wherever_it_stands() {
        for length in 0..50 {
            let plain = vec![b'a'; length];
            assert!(!has_escape(&plain), "{length}");
            for at in 0..length {
                let mut escaped = plain.clone();
                escaped[at] = b'\\';
                assert!(has_escape(&escaped), "{at} of {length}");
            }
        }
    }

    #[test]
    fn spellings_of_one_certname_are_one_node() {
        let (a, b) = (r#"[{"certname":"a\/b\u0041"}]"#, r#"[{"certname":"a/bA"}]"#);
        let (map, _) = FreshnessMap::build(&[(A, a.as_bytes()), (B, b.as_bytes())]);
        assert_eq!(map.len(), 1);
        assert_eq!(map.holders("a/bA"), [A, B]);
        assert_eq!(map.holders("unknown"), []);
    }
}
