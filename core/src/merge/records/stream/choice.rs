//! Whose records of a node are served, while nobody has sent all of them.

use std::collections::{BTreeMap, HashMap};
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
    /// How often each backend sent a record of which all copies count once.
    seen: HashMap<(u32, u16), u32>,
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
    /// How many of its records were served, where all copies count once.
    served: u32,
}

/// A record, or several that are done the same to.
#[derive(Debug)]
pub(super) struct Record<'r> {
    pub(super) from: u16,
    pub(super) bytes: &'r [u8],
    /// Where what provenance looks at stands in the first.
    pub(super) mark: Option<Span>,
}

/// Records that wait.
#[derive(Debug)]
pub(super) struct Held {
    from: u16,
    bytes: Vec<u8>,
    mark: Option<Span>,
}

impl Held {
    pub(super) fn record(&self) -> Record<'_> {
        Record {
            from: self.from,
            bytes: &self.bytes,
            mark: self.mark.clone(),
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
        let is_by_node = !matches!(plan.keep, Keep::Each(_));
        let known = freshness.clone().filter(|_| is_by_node);
        let sources = sources.iter().map(|backend| Source {
            backend: *backend,
            ended: false,
            awaited: 0,
        });
        Self {
            keep: plan.keep,
            joins: plan.takes_neighbours(),
            known: known.clone(),
            freshness,
            sources: sources.collect(),
            before: (Vec::new(), 0),
            names: Certnames::default(),
            subjects: vec![Subject::default(); known.map_or(0, |map| map.len())],
            held: BTreeMap::new(),
            held_bytes: 0,
            seen: HashMap::new(),
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

    /// The number of what records are about, which `raw` names.
    pub(super) fn number(&mut self, raw: &[u8]) -> u32 {
        if self.before.0 == raw {
            return self.before.1;
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
        number
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
        let subject = &mut self.subjects[number as usize];
        match self.keep {
            Keep::Owned => Fate::Serve,
            // A row that one backend lists several times is served as often, and copies elsewhere
            // add to that only what they list more.
            Keep::Each(_) => {
                let seen = self.seen.entry((number, from)).or_default();
                *seen += 1;
                if *seen <= subject.served {
                    return Fate::Drop;
                }
                subject.served += 1;
                Fate::Serve
            }
            Keep::First | Keep::Freshest | Keep::NewestReport | Keep::OfOwner => {
                match subject.winner {
                    Some(winner) if winner == from => Fate::Serve,
                    Some(_) => Fate::Drop,
                    None if subject.expected == from => {
                        subject.winner = Some(from);
                        if let Some(dropped) = self.held.remove(&number) {
                            self.sources[usize::from(from)].awaited -= 1;
                            self.forget(&dropped);
                        }
                        Fate::Serve
                    }
                    None => Fate::Hold,
                }
            }
        }
    }

    /// Keeps records until it is known whether they are served.
    pub(super) fn hold(&mut self, number: Option<u32>, record: &Record<'_>) {
        let Some(number) = number else {
            return;
        };
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
            return;
        }
        held.push(Held {
            from: record.from,
            bytes: record.bytes.to_vec(),
            mark: record.mark.clone(),
        });
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

    /// Decides anew whom the waiting records of subjects wait for, and gives those that are served.
    fn decide(&mut self, concerns: impl Fn(&Subject) -> bool) -> Vec<(u32, Vec<Held>)> {
        let held = self.held.keys().copied();
        let waiting: Vec<_> = held
            .filter(|number| concerns(&self.subjects[*number as usize]))
            .collect();
        let mut served = Vec::new();
        for number in waiting {
            let expected = self.expected(number);
            let subject = &mut self.subjects[number as usize];
            let before = std::mem::replace(&mut subject.expected, expected);
            self.sources[usize::from(before)].awaited -= 1;
            if !has_sent(self.held.get(&number), expected) {
                self.sources[usize::from(expected)].awaited += 1;
                continue;
            }
            subject.winner = Some(expected);
            let held = self.held.remove(&number).unwrap_or_default();
            self.forget(&held);
            let winner = held.into_iter().filter(|held| held.from == expected);
            served.push((number, winner.collect()));
        }
        served
    }

    fn forget(&mut self, held: &[Held]) {
        self.held_bytes -= held.iter().map(|held| held.bytes.len()).sum::<usize>();
    }

    /// Which of the backends that have sent records of `number`, or may yet, goes before the others.
    fn expected(&self, number: u32) -> u16 {
        let held = self.held.get(&number);
        let may = self.sources.iter().zip(0u16..);
        let mut may = may.filter(|(source, at)| !source.ended || has_sent(held, *at));
        let Some((first, at)) = may.next() else {
            return 0;
        };
        let mut best = (self.rank(number, first.backend), at);
        for (source, at) in may {
            let rank = self.rank(number, source.backend);
            if rank > best.0 {
                best = (rank, at);
            }
        }
        best.1
    }

    /// By what backends are compared; ties keep the configured order. Where that order is all that
    /// counts, those known to have the node go before those that may have it by now: else all but
    /// the first backend would wait for its end, as they do until a map has been learnt.
    fn rank(&self, number: u32, backend: BackendId) -> (bool, Stamp) {
        let name = self.name(number);
        let map = self.freshness.as_deref();
        match self.keep {
            Keep::First => (
                map.is_some_and(|map| map.holds(name, backend)),
                Stamp::default(),
            ),
            _ => (
                false,
                map.map(|map| map.stamp(name, backend)).unwrap_or_default(),
            ),
        }
    }
}

fn has_sent(held: Option<&Vec<Held>>, from: u16) -> bool {
    held.is_some_and(|held| held.iter().any(|held| held.from == from))
}
