//! Whose records of a node are served, while nobody has sent all of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::json::Span;
use crate::merge::owners::{Certnames, FreshnessMap, Stamp, canonical};
use crate::merge::records::{Keep, RecordMerge};
use crate::round::BackendId;

/// How many bytes may wait before only those are read whom they wait for.
const SLACK: usize = 1 << 20;

/// What is known so far.
#[derive(Debug)]
pub(super) struct Choice {
    keep: Keep,
    /// Whether it matters which node a record is of.
    is_by_node: bool,
    /// Whether several records can wait as one.
    joins: bool,
    freshness: Option<Arc<FreshnessMap>>,
    sources: Vec<Source>,
    /// The last name and its number: neighbours are mostly of one node.
    before: (Vec<u8>, u32),
    /// Numbers the nodes that it holds: streams share it, and each would need the same names.
    known: Option<Arc<FreshnessMap>>,
    /// Numbers what is not known there, behind those.
    names: Certnames<'static>,
    /// By number.
    subjects: Vec<Subject>,
    held: BTreeMap<u32, Vec<Held>>,
    held_bytes: usize,
}

#[derive(Debug)]
struct Source {
    backend: BackendId,
    ended: bool,
    /// How many subjects have records that wait for it.
    awaited: usize,
}

/// What records are about.
#[derive(Debug, Clone, Default)]
struct Subject {
    /// Whether any record of it has come.
    is_met: bool,
    /// Whose records are served, once one of them was.
    winner: Option<u16>,
    /// Whose go before all that may still come.
    expected: u16,
    /// Whether it was served at all.
    begun: bool,
}

/// What is known of a backend's copy of a node. The greatest goes before the others; of equals it is
/// the first configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// There is none, as far as is known.
    Absent,
    /// It is that new.
    Copy(Stamp),
    /// It may be newer than any other.
    Unknown,
}

/// A record, or several that are done the same to.
#[derive(Debug)]
pub(super) struct Record<'r> {
    pub(super) from: u16,
    pub(super) bytes: &'r [u8],
    /// Where what provenance looks at stands in the first.
    pub(super) mark: Option<Span>,
    /// The time of the node's report as the record tells it, where that decides.
    pub(super) stamp: Option<&'r [u8]>,
}

/// Records that wait.
#[derive(Debug)]
pub(super) struct Held {
    from: u16,
    bytes: Vec<u8>,
    mark: Option<Span>,
    stamp: Stamp,
}

impl Held {
    pub(super) fn record(&self) -> Record<'_> {
        Record {
            from: self.from,
            bytes: &self.bytes,
            mark: self.mark.clone(),
            stamp: None,
        }
    }
}

/// What becomes of records that have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Serve,
    Drop,
    /// They wait: a copy that goes before them may still come.
    Hold,
}

impl Choice {
    pub(super) fn new(
        plan: &RecordMerge,
        sources: &[BackendId],
        freshness: Option<Arc<FreshnessMap>>,
    ) -> Self {
        let sources = sources.iter().map(|backend| Source {
            backend: *backend,
            ended: false,
            awaited: 0,
        });
        let competes = match plan.keep {
            Keep::First | Keep::Freshest | Keep::NewestReport => true,
            Keep::Owned | Keep::OfOwner | Keep::Each(_) => false,
        };
        let is_by_node = competes || plan.marks_nodes();
        let known = freshness.clone().filter(|_| is_by_node);
        Self {
            keep: plan.keep,
            is_by_node,
            // What a node's own record tells is that record's.
            joins: plan.takes_neighbours() && plan.keep != Keep::NewestReport,
            subjects: vec![Subject::default(); known.as_ref().map_or(0, |map| map.len())],
            known,
            freshness,
            sources: sources.collect(),
            before: (Vec::new(), 0),
            names: Certnames::default(),
            held: BTreeMap::new(),
            held_bytes: 0,
        }
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Whose records are of use now. Once much waits, that of others could only wait as well.
    pub(super) fn wanted(&self) -> Vec<u16> {
        let is_full = self.held_bytes > SLACK;
        let sources = self.sources.iter().zip(0..);
        let wanted =
            sources.filter(|(source, _)| !source.ended && (!is_full || source.awaited > 0));
        wanted.map(|(_, at)| at).collect()
    }

    /// The number of the node that `raw` names, if that matters.
    pub(super) fn number(&mut self, raw: &[u8]) -> Option<u32> {
        if !self.is_by_node {
            return None;
        }
        if self.before.0 == raw {
            return Some(self.before.1);
        }
        let known = self.known.as_deref();
        let number = known.and_then(|map| map.number(&canonical(raw)));
        let number = number.unwrap_or_else(|| self.names.keep(raw) + self.known_names());
        self.before.0.clear();
        self.before.0.extend_from_slice(raw);
        self.before.1 = number;
        let at = number as usize;
        if at == self.subjects.len() {
            self.subjects.push(Subject::default());
        }
        if !std::mem::replace(&mut self.subjects[at].is_met, true) {
            self.subjects[at].expected = self.expected(number);
        }
        Some(number)
    }

    fn known_names(&self) -> u32 {
        let names = self.known.as_ref().map_or(0, |map| map.len());
        u32::try_from(names).unwrap_or(u32::MAX)
    }

    pub(super) fn name(&self, number: u32) -> &[u8] {
        match (&self.known, number.checked_sub(self.known_names())) {
            (Some(map), None) => map.name(number),
            (_, own) => self.names.name(own.unwrap_or_default()),
        }
    }

    /// Whether nothing of it was served before.
    pub(super) fn is_first(&mut self, number: u32) -> bool {
        !std::mem::replace(&mut self.subjects[number as usize].begun, true)
    }

    /// What becomes of records of `number` that the backend at `from` sent.
    pub(super) fn fate(&mut self, from: u16, number: u32) -> Fate {
        let subject = &self.subjects[number as usize];
        match (self.keep, subject.winner) {
            (Keep::Owned | Keep::OfOwner | Keep::Each(_), _) => return Fate::Serve,
            (_, Some(winner)) if winner == from => return Fate::Serve,
            (_, Some(_)) => return Fate::Drop,
            // What the copy itself tells is compared with what is known of the others'.
            (Keep::NewestReport, None) if !self.is_only(from, number) => return Fate::Hold,
            (Keep::First | Keep::Freshest, None) if subject.expected != from => return Fate::Hold,
            (Keep::NewestReport | Keep::First | Keep::Freshest, None) => {}
        }
        self.subjects[number as usize].winner = Some(from);
        if let Some(dropped) = self.held.remove(&number) {
            self.sources[usize::from(from)].awaited -= 1;
            self.forget(&dropped);
        }
        Fate::Serve
    }

    /// Whether no backend but the one at `from` has sent records of `number`, or may yet.
    fn is_only(&self, from: u16, number: u32) -> bool {
        let mut others = self
            .sources
            .iter()
            .zip(0u16..)
            .filter(|(_, at)| *at != from);
        !self.held.contains_key(&number)
            && others.all(|(source, _)| {
                source.ended || self.rank(number, source.backend) == Rank::Absent
            })
    }

    /// Keeps records until it is known whether they are served, and gives those that are by now.
    pub(super) fn hold(&mut self, number: u32, record: &Record<'_>) -> Vec<Held> {
        let held = self.held.entry(number).or_default();
        if held.is_empty() {
            let expected = self.subjects[number as usize].expected;
            self.sources[usize::from(expected)].awaited += 1;
        }
        self.held_bytes += record.bytes.len();
        if let Some(last) = held
            .last_mut()
            .filter(|last| self.joins && last.from == record.from)
        {
            self.held_bytes += 1;
            last.bytes.push(b',');
            last.bytes.extend_from_slice(record.bytes);
            return Vec::new();
        }
        held.push(Held {
            from: record.from,
            bytes: record.bytes.to_vec(),
            mark: record.mark.clone(),
            stamp: Stamp::of_report(record.stamp),
        });
        match self.keep {
            Keep::NewestReport => self.settle(number),
            Keep::First | Keep::Freshest | Keep::Owned | Keep::OfOwner | Keep::Each(_) => {
                Vec::new()
            }
        }
    }

    /// Notes that the backend at `from` sends nothing more, and gives the records that only waited
    /// for it.
    pub(super) fn end(&mut self, from: u16) -> Vec<(u32, Vec<Held>)> {
        self.sources[usize::from(from)].ended = true;
        self.decide(|subject| subject.expected == from)
    }

    /// Goes by `map` from now on, and gives the records that need not wait by it.
    pub(super) fn learn(&mut self, map: Arc<FreshnessMap>) -> Vec<(u32, Vec<Held>)> {
        self.freshness = Some(map);
        self.decide(|_| true)
    }

    /// Decides anew about the waiting records of subjects, and gives those that are served.
    fn decide(&mut self, concerns: impl Fn(&Subject) -> bool) -> Vec<(u32, Vec<Held>)> {
        let held = self.held.keys().copied();
        let waiting: Vec<_> = held
            .filter(|number| concerns(&self.subjects[*number as usize]))
            .collect();
        let settled = waiting.into_iter();
        settled
            .map(|number| (number, self.settle(number)))
            .filter(|(_, served)| !served.is_empty())
            .collect()
    }

    /// Decides anew whom the waiting records of `number` wait for, and gives those that are served if
    /// that one has sent them.
    fn settle(&mut self, number: u32) -> Vec<Held> {
        let expected = self.expected(number);
        let subject = &mut self.subjects[number as usize];
        let before = std::mem::replace(&mut subject.expected, expected);
        self.sources[usize::from(before)].awaited -= 1;
        if !has_sent(self.held.get(&number), expected) {
            self.sources[usize::from(expected)].awaited += 1;
            return Vec::new();
        }
        subject.winner = Some(expected);
        let mut held = self.held.remove(&number).unwrap_or_default();
        self.forget(&held);
        held.retain(|held| held.from == expected);
        held
    }

    fn forget(&mut self, held: &[Held]) {
        self.held_bytes -= held.iter().map(|held| held.bytes.len()).sum::<usize>();
    }

    /// Which of the backends that have sent records of `number`, or may yet, goes before the others.
    fn expected(&self, number: u32) -> u16 {
        let held = self.held.get(&number);
        let may = self.sources.iter().zip(0u16..);
        let may = may.filter(|(source, at)| !source.ended || has_sent(held, *at));
        let rank = |source: &Source, at| {
            let told = self.told(held, at);
            told.unwrap_or_else(|| self.rank(number, source.backend))
        };
        let mut best: Option<(Rank, u16)> = None;
        for (source, at) in may {
            let rank = rank(source, at);
            if best.is_none_or(|(known, _)| rank > known) {
                best = Some((rank, at));
            }
        }
        best.map_or(0, |(_, at)| at)
    }

    /// How new the copy of the backend at `from` is as its records tell, where that decides and they
    /// have come.
    fn told(&self, held: Option<&Vec<Held>>, from: u16) -> Option<Rank> {
        let own = held?.iter().filter(|held| held.from == from);
        let newest = own.map(|held| held.stamp).max();
        newest
            .filter(|_| self.keep == Keep::NewestReport)
            .map(Rank::Copy)
    }

    /// What is known of a copy that may come. Where the configured order is all that counts, those
    /// known to have the node go before those that may have it by now: else all but the first backend
    /// would wait for its end, as they do until a map has been learnt.
    fn rank(&self, number: u32, backend: BackendId) -> Rank {
        let map = self.freshness.as_deref();
        let copy = map.and_then(|map| map.copy(self.name(number), backend));
        match (self.keep, copy) {
            (Keep::First, Some(_)) => Rank::Copy(Stamp::default()),
            (Keep::NewestReport, Some(stamp)) => Rank::Copy(stamp),
            (Keep::NewestReport, None) if !map.is_some_and(|map| map.covers(backend)) => {
                Rank::Unknown
            }
            (Keep::First | Keep::NewestReport, None) => Rank::Absent,
            (Keep::Freshest | Keep::Owned | Keep::OfOwner | Keep::Each(_), copy) => {
                Rank::Copy(copy.unwrap_or_default())
            }
        }
    }
}

fn has_sent(held: Option<&Vec<Held>>, from: u16) -> bool {
    held.is_some_and(|held| held.iter().any(|held| held.from == from))
}
