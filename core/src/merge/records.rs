//! Records of nodes: one winner for each certname, then order, window and provenance.
//!
//! `/nodes` and the `/facts` family differ in two things only: where the age of a node's data is
//! read from, and what names the winner in the answer.

mod scan;
mod window;

use std::collections::HashMap;

use crate::answer::{Answer, ArrayPieces, Source};
use crate::json::Members;
use crate::merge::owners::{Certnames, Stamp};
use crate::merge::{Context, Merged, Outcome, Reading, add_totals, read_round};
use crate::paging::{RecordOrder, Window};
use crate::provenance::{Mark, NodeKey, Provenance, fact_record};
use crate::round::{BackendId, Part, Verdict};

use scan::{Entry, Layout, Scanned, Subjects};

/// How the records of several backends become one set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordMerge {
    /// Which of the copies of a record are kept.
    pub keep: Keep,
    /// The order of the merged set; empty for the order in which the backends sent it.
    pub order: RecordOrder,
    /// The part of the merged set that is served.
    pub window: Window,
    /// Columns that were asked for beside the client's own, taken out again.
    pub strip: Vec<String>,
    /// What is done about the source fact.
    pub provenance: Provenance,
    /// What `X-Records` says.
    pub total: Total,
}

/// Which of the copies of a record are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Those of the backend whose record of the node has the newest `report_timestamp` (R031).
    NewestReport,
    /// Those of the backend that has the node's newest report by the freshness map (R043). A node
    /// that the map does not hold goes to the first configured backend that returned it (R046).
    Freshest,
    /// Those of the first configured backend that returned the node (R045).
    First,
    /// Each record once, however many backends have it; these columns tell records apart. A row
    /// that one backend lists twice stays twice (ruling 3).
    Each(&'static [&'static str]),
}

impl Keep {
    /// The columns that tell what a record is about.
    fn identity(self) -> &'static [&'static str] {
        match self {
            Self::NewestReport | Self::Freshest | Self::First => &["certname"],
            Self::Each(identity) => identity,
        }
    }
}

/// What `X-Records` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Total {
    /// It was not asked for.
    Unasked,
    /// The backends' own totals, added: an upper bound where nodes are held twice (R149).
    Added,
    /// The number of records before the window, all of which were made here.
    Counted,
}

/// Merges a round. `limits` are those sent to each part of it.
pub fn merge(
    plan: &RecordMerge,
    round: &[Part<'_>],
    limits: &[Option<u32>],
    context: Context<'_>,
) -> Merged {
    let layout = Layout::of(plan);
    let mut subjects = Subjects::default();
    let readings = read_round(round, |body| layout.scan(body, &mut subjects));
    let outcome = match readings.verdict {
        Verdict::Replay(at) => Outcome::Replay(at),
        Verdict::Nothing => Outcome::Nothing,
        Verdict::Merge => {
            let set = MergedSet::new(plan, &layout, &readings.good, &subjects, context);
            let limit_of = |reading: &Reading<'_, _>| {
                let at = round
                    .iter()
                    .position(|part| part.backend == reading.backend);
                at.and_then(|at| limits[at])
            };
            let again = window::undecided(plan, &set, limit_of);
            if again.is_empty() {
                Outcome::Answer(set.render())
            } else {
                Outcome::AskAgain(again)
            }
        }
    };
    Merged {
        outcome,
        damaged: readings.damaged,
    }
}

/// The records of the winners, in the answer's order.
struct MergedSet<'p, 'b> {
    plan: &'p RecordMerge,
    readings: &'p [Reading<'b, Scanned>],
    /// The synthetic facts, which are read like one more reply.
    made: Vec<u8>,
    made_entries: Scanned,
    kept: Vec<Kept>,
    backends: &'p [String],
}

/// One kept entry: of the reading at `reading`, or a synthetic one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    Read { reading: u16, entry: usize },
    Made { entry: usize },
}

impl<'p, 'b> MergedSet<'p, 'b> {
    fn new(
        plan: &'p RecordMerge,
        layout: &Layout<'_>,
        readings: &'p [Reading<'b, Scanned>],
        subjects: &Subjects<'b>,
        context: Context<'p>,
    ) -> Self {
        let names = &subjects.names;
        let winners = winners(plan, readings, names, context);
        let mut facts = SourceFacts::new(plan, names, context.backends);
        let mut kept = Vec::new();
        for (reading, at) in readings.iter().zip(0u16..) {
            for (index, entry) in reading.read.entries.iter().enumerate() {
                let read = Kept::Read {
                    reading: at,
                    entry: index,
                };
                let Some(subject) = entry.subject.filter(|_| !winners.is_empty()) else {
                    kept.push(read);
                    continue;
                };
                if winners[subject as usize] != at {
                    continue;
                }
                if !matches!(plan.provenance.mark, Mark::FactsOnly(_)) {
                    kept.push(read);
                }
                let environment = reading.read.mark(entry).map(|span| &reading.body[span]);
                kept.extend(facts.add(subject, reading.backend, environment));
            }
        }
        let made = facts.finish();
        // The text was written here: were it unreadable, no synthetic record would be served.
        let made_entries = layout.scan_made(&made).unwrap_or_default();
        let backends = context.backends;
        let mut set = Self {
            plan,
            readings,
            made,
            made_entries,
            kept,
            backends,
        };
        set.sort();
        if let Keep::Each(_) = plan.keep {
            set.keep_each(subjects.len());
        }
        set
    }

    /// Drops copies of a record that came from another backend before. A row that one backend lists
    /// n times stays n times, and copies elsewhere add to that only what they list more.
    fn keep_each(&mut self, subjects: usize) {
        let mut served = vec![0u32; subjects];
        let mut seen: HashMap<(u32, u16), u32> = HashMap::new();
        let mut kept = std::mem::take(&mut self.kept);
        kept.retain(|kept| {
            let Kept::Read { reading, .. } = *kept else {
                return true;
            };
            let Some(subject) = self.entry(*kept).1.subject else {
                return true;
            };
            let seen = seen.entry((subject, reading)).or_default();
            *seen += 1;
            let served = &mut served[subject as usize];
            let more = *seen > *served;
            *served += u32::from(more);
            more
        });
        self.kept = kept;
    }

    fn sort(&mut self) {
        if self.plan.order.members().is_empty() {
            return;
        }
        let mut kept = std::mem::take(&mut self.kept);
        kept.sort_by(|a, b| {
            self.plan
                .order
                .compare(|at| self.key(*a, at), |at| self.key(*b, at))
        });
        self.kept = kept;
    }

    fn entry(&self, kept: Kept) -> (&Scanned, &Entry, &[u8], Source) {
        match kept {
            Kept::Read { reading, entry } => {
                let read = &self.readings[usize::from(reading)];
                (
                    &read.read,
                    &read.read.entries[entry],
                    read.body,
                    Source::Reply(reading),
                )
            }
            Kept::Made { entry } => (
                &self.made_entries,
                &self.made_entries.entries[entry],
                &self.made,
                Source::Made,
            ),
        }
    }

    /// The raw value of the `at`th order field of a kept record.
    fn key(&self, kept: Kept, at: usize) -> Option<&[u8]> {
        let (scanned, entry, body, _) = self.entry(kept);
        scanned.order_key(entry, at).map(|span| &body[span])
    }

    fn render(self) -> Answer {
        let bodies: Vec<&[u8]> = self.readings.iter().map(|reading| reading.body).collect();
        let keys = self.node_keys();
        let mut array = ArrayPieces::new(&bodies, self.made.clone());
        for kept in self.plan.window.cut(&self.kept) {
            let (scanned, entry, body, source) = self.entry(*kept);
            let key = match *kept {
                Kept::Read { reading, .. } => keys.get(usize::from(reading)),
                Kept::Made { .. } => None,
            };
            if !self.plan.strip.is_empty() {
                let text = strip(&body[entry.span.clone()], &self.plan.strip);
                array.compose().push_made(&text);
            } else if let Some(key) = key {
                key.add(
                    array.compose(),
                    source,
                    &entry.span,
                    scanned.mark(entry),
                    body,
                );
            } else {
                array.element(source, entry.span.clone());
            }
        }
        let total = match self.plan.total {
            Total::Unasked => None,
            Total::Added => add_totals(self.readings),
            Total::Counted => Some(self.kept.len() as u64),
        };
        let dropped = self
            .readings
            .iter()
            .map(|reading| reading.read.dropped)
            .sum();
        Answer {
            pieces: array.finish(),
            total,
            contributed: self.readings.len(),
            dropped,
        }
    }

    /// The key that each reading's node records are given, if they are given one.
    fn node_keys(&self) -> Vec<NodeKey> {
        let Provenance {
            mark: Mark::Key,
            name: Some(name),
        } = &self.plan.provenance
        else {
            return Vec::new();
        };
        let backend = |reading: &Reading<'_, _>| &self.backends[reading.backend.index()];
        self.readings
            .iter()
            .map(|reading| NodeKey::new(name, backend(reading)))
            .collect()
    }
}

/// The synthetic facts of a merged set, written as one JSON array.
struct SourceFacts<'p, 'b> {
    name: &'p str,
    mark: Mark,
    names: &'p Certnames<'b>,
    backends: &'p [String],
    marked: Vec<bool>,
    written: usize,
    text: Vec<u8>,
}

impl<'p, 'b> SourceFacts<'p, 'b> {
    fn new(plan: &'p RecordMerge, names: &'p Certnames<'b>, backends: &'p [String]) -> Self {
        Self {
            name: plan.provenance.name.as_deref().unwrap_or_default(),
            mark: plan.provenance.mark,
            names,
            backends,
            marked: vec![false; names.len()],
            written: 0,
            text: Vec::new(),
        }
    }

    /// Writes the fact of a certname, the first time that it is seen.
    fn add(
        &mut self,
        certname: u32,
        winner: BackendId,
        environment: Option<&[u8]>,
    ) -> Option<Kept> {
        let wanted = match self.mark {
            Mark::Nothing | Mark::Key => false,
            Mark::Fact | Mark::FactsOnly(None) => true,
            Mark::FactsOnly(Some(only)) => only == winner,
        };
        if !wanted || std::mem::replace(&mut self.marked[certname as usize], true) {
            return None;
        }
        self.text.push(if self.written == 0 { b'[' } else { b',' });
        let certname = self.names.name(certname);
        let backend = &self.backends[winner.index()];
        fact_record(&mut self.text, certname, environment, self.name, backend);
        self.written += 1;
        Some(Kept::Made {
            entry: self.written - 1,
        })
    }

    fn finish(mut self) -> Vec<u8> {
        if self.written > 0 {
            self.text.push(b']');
        }
        self.text
    }
}

/// The place among the readings of each certname's winner; empty where records do not compete.
fn winners(
    plan: &RecordMerge,
    readings: &[Reading<'_, Scanned>],
    names: &Certnames<'_>,
    context: Context<'_>,
) -> Vec<u16> {
    if let Keep::Each(_) = plan.keep {
        return Vec::new();
    }
    let mut best: Vec<Option<(u16, Stamp)>> = vec![None; names.len()];
    for (reading, at) in readings.iter().zip(0u16..) {
        for entry in &reading.read.entries {
            let Some(certname) = entry.subject else {
                continue;
            };
            let best = &mut best[certname as usize];
            let stamp = match plan.keep {
                Keep::NewestReport => entry.stamp,
                Keep::Freshest if best.is_some_and(|(winner, _)| winner == at) => continue,
                Keep::Freshest => {
                    let name = names.name(certname);
                    context
                        .freshness
                        .and_then(|map| map.stamp(name, reading.backend))
                }
                Keep::First | Keep::Each(_) => None,
            };
            if best.is_none_or(|(_, newest)| stamp > newest) {
                *best = Some((at, stamp));
            }
        }
    }
    best.into_iter()
        .map(|best| best.map_or(0, |(at, _)| at))
        .collect()
}

/// `record` without the members that `columns` names; the other members keep their bytes.
pub(crate) fn strip(record: &[u8], columns: &[String]) -> Vec<u8> {
    let mut text = Vec::with_capacity(record.len());
    text.push(b'{');
    for (key, value) in Members::new(record).flatten() {
        let name = crate::json::unquote(&record[key.clone()]);
        if name.is_some_and(|name| columns.iter().any(|column| *column == name)) {
            continue;
        }
        if text.len() > 1 {
            text.push(b',');
        }
        text.extend_from_slice(&record[key.start..value.end]);
    }
    text.push(b'}');
    text
}
