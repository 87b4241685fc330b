//! Records of nodes: one winner for each certname, then order, window and provenance.
//!
//! `/nodes` and the `/facts` family differ in two things only: where the age of a node's data is
//! read from, and what names the winner in the answer.

mod scan;
mod window;

use crate::answer::{Answer, ArrayPieces, Source};
use crate::json::Members;
use crate::merge::owners::{Certnames, Stamp};
use crate::merge::{Context, Merged, Outcome, Reading, add_totals, read_round};
use crate::paging::{RecordOrder, Window};
use crate::provenance::{Mark, NodeKey, Provenance, fact_record};
use crate::round::{Part, Verdict};

use scan::{Entry, Layout, Scanned};

/// How the records of several backends become one set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordMerge {
    /// Where the age of a node's data is read from.
    pub age: Age,
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

/// Where the age of a node's data is read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Age {
    /// From each record's own `report_timestamp` (R031).
    OwnReport,
    /// From the freshness map (R043). A node that it does not hold goes to the first configured
    /// backend that returned it (R046).
    FreshnessMap,
    /// From nowhere: the first configured backend that returned a node wins (R045).
    Unknown,
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
    let mut names = Certnames::default();
    let readings = read_round(round, |body| layout.scan(body, &mut names));
    let outcome = match readings.verdict {
        Verdict::Replay(at) => Outcome::Replay(at),
        Verdict::Nothing => Outcome::Nothing,
        Verdict::Merge => {
            let set = MergedSet::new(plan, &layout, &readings.good, &names, context);
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
        names: &Certnames<'b>,
        context: Context<'p>,
    ) -> Self {
        let winners = winners(plan, readings, names, context);
        let facts_of = match plan.provenance.mark {
            Mark::Fact | Mark::FactsOnly(None) => Some(None),
            Mark::FactsOnly(backend) => Some(backend),
            Mark::Nothing | Mark::Key => None,
        };
        let mut made = Vec::new();
        let mut marked = vec![facts_of.is_none(); names.len()];
        let mut marks = 0;
        let mut kept = Vec::new();
        for (reading, at) in readings.iter().zip(0u16..) {
            for (index, entry) in reading.read.entries.iter().enumerate() {
                let Some(certname) = entry.certname else {
                    kept.push(Kept::Read {
                        reading: at,
                        entry: index,
                    });
                    continue;
                };
                if winners[certname as usize] != at {
                    continue;
                }
                if !matches!(plan.provenance.mark, Mark::FactsOnly(_)) {
                    kept.push(Kept::Read {
                        reading: at,
                        entry: index,
                    });
                }
                let seen = std::mem::replace(&mut marked[certname as usize], true);
                if seen
                    || facts_of
                        .flatten()
                        .is_some_and(|only| only != reading.backend)
                {
                    continue;
                }
                let environment = reading.read.mark(entry).map(|span| &reading.body[span]);
                let backend = &context.backends[reading.backend.index()];
                made.push(if marks == 0 { b'[' } else { b',' });
                let name = plan.provenance.name.as_deref().unwrap_or_default();
                fact_record(&mut made, names.name(certname), environment, name, backend);
                kept.push(Kept::Made { entry: marks });
                marks += 1;
            }
        }
        if marks > 0 {
            made.push(b']');
        }
        // The text was written above: were it unreadable, no synthetic record would be served.
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
        set
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

/// The place among the readings of each certname's winner.
fn winners(
    plan: &RecordMerge,
    readings: &[Reading<'_, Scanned>],
    names: &Certnames<'_>,
    context: Context<'_>,
) -> Vec<u16> {
    let mut best: Vec<Option<(u16, Stamp)>> = vec![None; names.len()];
    for (reading, at) in readings.iter().zip(0u16..) {
        for entry in &reading.read.entries {
            let Some(certname) = entry.certname else {
                continue;
            };
            let best = &mut best[certname as usize];
            let stamp = match plan.age {
                Age::OwnReport => entry.stamp,
                Age::Unknown => None,
                Age::FreshnessMap if best.is_some_and(|(winner, _)| winner == at) => continue,
                Age::FreshnessMap => {
                    let name = names.name(certname);
                    context
                        .freshness
                        .and_then(|map| map.stamp(name, reading.backend))
                }
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
