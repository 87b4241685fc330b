//! Which backend has the newest data of a node.

mod census;
pub mod copies;
pub mod history;
mod shares;
mod time;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeSet, HashSet};
use std::hash::BuildHasher;

use hashbrown::HashTable;
use jiff::Timestamp;

use crate::json::{Kind, Records, ScanError, kind, quote, unquote};
use crate::paging::{ColumnKind, compare_values};
use crate::round::BackendId;

pub(super) use time::time;

pub use census::{Census, OfBackend};
pub(crate) use shares::{ALWAYS, CHUNK, NEVER, one_of};
pub use shares::{Share, Shares, Watched};

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
            hashbrown::hash_table::Entry::Occupied(found) => found.get().1,
            hashbrown::hash_table::Entry::Vacant(free) => {
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

/// The one spelling under which a certname is compared.
pub(crate) fn canonical(raw: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'\\', raw).is_none() {
        return Cow::Borrowed(raw);
    }
    unquote(raw).map_or(Cow::Borrowed(raw), |name| {
        Cow::Owned(quote(&name).into_bytes())
    })
}

/// How new a backend's data of a node is: when its newest report ended, then, where they were asked
/// for, when its facts and its catalog came. What never came is older than anything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp {
    report: Option<Timestamp>,
    facts: Option<Timestamp>,
    catalog: Option<Timestamp>,
}

impl Stamp {
    /// From a record's `report_timestamp` alone.
    pub(crate) fn of_report(raw: Option<&[u8]>) -> Self {
        Self {
            report: time(raw),
            ..Self::default()
        }
    }
}

/// For each certname, how new the data of each backend is (R044).
///
/// Built from the `/nodes` answers of the backends that gave one.
#[derive(Debug, Default)]
pub struct FreshnessMap {
    nodes: Vec<Node>,
    /// Places among these, by certname.
    certnames: HashTable<u32>,
    hasher: foldhash::fast::RandomState,
    contributors: BTreeSet<BackendId>,
    by_bytes: BTreeSet<BackendId>,
    held: Vec<(BackendId, Held)>,
}

/// The nodes of one contributor.
#[derive(Debug, Default)]
struct Held {
    nodes: u64,
    /// Those of them that it has deactivated, or let expire.
    inactive: HashSet<Box<[u8]>>,
}

/// A certname in its canonical spelling, and its holders.
type Node = (Box<[u8]>, Box<[(BackendId, Stamp)]>);

impl FreshnessMap {
    /// Builds the map from one `/nodes` body for each backend.
    ///
    /// A damaged body is left out and reported by its backend: that backend is then no
    /// contributor.
    pub fn build(bodies: &[(BackendId, &[u8])]) -> (Self, Vec<(BackendId, ScanError)>) {
        let mut names = Certnames::default();
        let mut stamps: Vec<Vec<(BackendId, Stamp)>> = Vec::new();
        let mut map = Self::default();
        let mut damaged = Vec::new();
        for &(backend, body) in bodies {
            match read_nodes(body) {
                Ok(Nodes {
                    stamps: nodes,
                    inactive,
                }) => {
                    map.contributors.insert(backend);
                    let inactive = inactive.into_iter().map(|name| canonical(name).into());
                    let held = Held {
                        nodes: nodes.len() as u64,
                        inactive: inactive.collect(),
                    };
                    map.held.push((backend, held));
                    if nodes.is_sorted_by(|(a, _), (b, _)| in_order(a, b)) {
                        map.by_bytes.insert(backend);
                    }
                    for (certname, stamp) in nodes {
                        let number = names.number(certname) as usize;
                        stamps.resize(names.len(), Vec::new());
                        stamps[number].push((backend, stamp));
                    }
                }
                Err(error) => damaged.push((backend, error)),
            }
        }
        for (name, stamps) in names.names.into_iter().zip(stamps) {
            let hash = map.hasher.hash_one(&*name);
            let number = u32::try_from(map.nodes.len()).unwrap_or(u32::MAX);
            map.nodes.push((name.into_owned().into(), stamps.into()));
            let (hasher, nodes) = (&map.hasher, &map.nodes);
            map.certnames.insert_unique(hash, number, |known| {
                hasher.hash_one(&*nodes[*known as usize].0)
            });
        }
        (map, damaged)
    }

    /// Whether the `/nodes` answer of `backend` is part of it.
    pub fn covers(&self, backend: BackendId) -> bool {
        self.contributors.contains(&backend)
    }

    /// Whether `backend`, asked to order all its nodes by certname, ordered them by bytes as pdbmux
    /// does (ruling 8). Then it does so with any of them.
    pub fn lists_by_bytes(&self, backend: BackendId) -> bool {
        self.by_bytes.contains(&backend)
    }

    /// How many nodes `backend` held when the map was built.
    pub fn held_by(&self, backend: BackendId) -> Option<u64> {
        self.held(backend).map(|held| held.nodes)
    }

    /// How many of them were active.
    pub(crate) fn active(&self, backend: BackendId) -> Option<u64> {
        let held = self.held(backend)?;
        held.nodes.checked_sub(held.inactive.len() as u64)
    }

    /// Whether `backend` held the node of the canonical spelling `name`, and it was inactive there.
    fn is_inactive(&self, name: &[u8], backend: BackendId) -> bool {
        self.held(backend)
            .is_some_and(|held| held.inactive.contains(name))
    }

    fn held(&self, backend: BackendId) -> Option<&Held> {
        let held = self.held.iter().find(|(holder, _)| *holder == backend);
        held.map(|(_, held)| held)
    }

    /// How many certnames it holds.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether it holds no certname.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The backends that hold `certname`, the one with the newest report first; ties in configured
    /// order (R031, R048).
    pub fn holders(&self, certname: &str) -> Vec<BackendId> {
        let mut holders = self.stamps(quote(certname).as_bytes()).to_vec();
        holders.sort_by(|a, b| first_is_owner(*a, *b));
        holders.into_iter().map(|(backend, _)| backend).collect()
    }

    /// How new the data of `backend` is for the certname with the canonical spelling `name`.
    pub(crate) fn stamp(&self, name: &[u8], backend: BackendId) -> Stamp {
        self.copy(name, backend).unwrap_or_default()
    }

    /// The same, if it holds that node at all.
    pub(crate) fn copy(&self, name: &[u8], backend: BackendId) -> Option<Stamp> {
        let holds = |(holder, _): &&(BackendId, Stamp)| *holder == backend;
        let held = self.stamps(name).iter().find(holds);
        held.map(|(_, stamp)| *stamp)
    }

    /// The place of the node of the canonical spelling `name` among those that it holds.
    pub(crate) fn number(&self, name: &[u8]) -> Option<u32> {
        let hash = self.hasher.hash_one(name);
        let is_it = |known: &u32| *self.nodes[*known as usize].0 == *name;
        self.certnames.find(hash, is_it).copied()
    }

    /// The certname at this place, in its canonical spelling.
    pub(crate) fn name(&self, number: u32) -> &[u8] {
        &self.nodes[number as usize].0
    }

    fn stamps(&self, name: &[u8]) -> &[(BackendId, Stamp)] {
        let number = self.number(name);
        number.map_or(&[], |number| &self.nodes[number as usize].1)
    }
}

/// Puts the owner's copy of a node before another: the newer one, then that of the backend that is
/// configured first (R031, R048).
fn first_is_owner(a: (BackendId, Stamp), b: (BackendId, Stamp)) -> Ordering {
    b.1.cmp(&a.1).then(a.0.cmp(&b.0))
}

fn in_order(a: &[u8], b: &[u8]) -> bool {
    compare_values(ColumnKind::Plain, a, b).is_le()
}

/// The nodes of a body.
struct Nodes<'b> {
    /// Each with its stamp.
    stamps: Vec<(&'b [u8], Stamp)>,
    /// Those that are inactive.
    inactive: Vec<&'b [u8]>,
}

fn read_nodes(body: &[u8]) -> Result<Nodes<'_>, ScanError> {
    let columns = [
        "certname",
        "report_timestamp",
        "facts_timestamp",
        "catalog_timestamp",
        "deactivated",
        "expired",
    ];
    let mut records = Records::new(body, &columns);
    let mut fields = [const { None }; 6];
    let mut nodes = Vec::new();
    let mut inactive = Vec::new();
    while records.next(&mut fields)?.is_some() {
        let text = |at: usize| fields[at].clone().map(|span| &body[span]);
        if let Some(certname) = text(0) {
            let stamp = Stamp {
                report: time(text(1)),
                facts: time(text(2)),
                catalog: time(text(3)),
            };
            nodes.push((certname, stamp));
            if [4, 5].into_iter().filter_map(text).any(is_given) {
                inactive.push(certname);
            }
        }
    }
    Ok(Nodes {
        stamps: nodes,
        inactive,
    })
}

fn is_given(raw: &[u8]) -> bool {
    kind(raw) != Kind::Null
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
    fn spellings_of_one_certname_are_one_node() {
        let (a, b) = (r#"[{"certname":"a\/b\u0041"}]"#, r#"[{"certname":"a/bA"}]"#);
        let (map, _) = FreshnessMap::build(&[(A, a.as_bytes()), (B, b.as_bytes())]);
        assert_eq!(map.len(), 1);
        assert_eq!(map.holders("a/bA"), [A, B]);
        assert_eq!(map.holders("unknown"), []);
    }
}
