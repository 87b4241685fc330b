//! Records: which of the copies of each are kept, then order, window and provenance.
//!
//! `/nodes` and the `/facts` family keep one winner for each certname. They differ in two things
//! only: where the age of a node's data is read from, and what names the winner in the answer.
//! `/reports` and `/events` are history, of which every record is kept, once.

mod scan;
mod stream;
mod trust;
mod window;
mod writer;

use std::borrow::Cow;
use std::collections::HashMap;

use crate::answer::{Answer, ArrayPieces};
use crate::json::Span;
use crate::merge::owners::{FreshnessMap, Stamp};
use crate::merge::{Context, Merged, Outcome, Reading, add_totals, read_replies};
use crate::paging::{RecordOrder, Window};
use crate::provenance::{Mark, Provenance};
use crate::round::{BackendId, Part, Verdict};

use scan::{Scanned, Subjects};
use trust::CertnameOrder;
use writer::{Marks, Writer};

pub use scan::Scan;
pub use stream::{Known, Sorted, Stream};
pub(crate) use writer::strip;

/// How the records of several backends become one set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordMerge {
    /// Which of the copies of a record are kept.
    pub keep: Keep,
    /// The order of the merged set; empty for the order in which the backends sent it.
    pub order: RecordOrder,
    /// Whose idea of that order holds.
    pub text_order: TextOrder,
    /// The part of the merged set that is served.
    pub window: Window,
    /// Columns that were asked for beside the client's own, taken out again.
    pub strip: Vec<String>,
    /// What is done about the source fact.
    pub provenance: Provenance,
    /// What `X-Records` says.
    pub total: Total,
}

impl RecordMerge {
    /// Whether its records can be written while they arrive: nothing that comes later changes where
    /// one of them stands. Of those that are ordered here, [`Self::arrives_in_order`] tells whether
    /// they can be; if not, they are written while bodies that were put in order are read. Others
    /// may need to know first who holds which node ([`Self::streams_by_holders`]).
    pub fn can_stream(&self) -> bool {
        let is_whole = self.window == Window::default() && self.total != Total::Counted;
        is_whole && (!self.is_ordered_here() || self.takes_sorted())
    }

    /// Whether a record waits until all that hold its node have sent theirs, since they tell
    /// themselves which of them is the newest. Before it is known who those are, all would wait.
    pub fn streams_by_holders(&self) -> bool {
        self.keep == Keep::NewestReport && !self.is_ordered_here()
    }

    /// Whether its records are put in order here.
    pub fn is_ordered_here(&self) -> bool {
        !self.order.members().is_empty() && self.text_order == TextOrder::Bytes
    }

    /// Whether its records can be merged as they are read of bodies that were put in order one by one
    /// ([`Sorted`]).
    pub fn takes_sorted(&self) -> bool {
        let leads = self.order.members().first().map(String::as_str);
        let is_by_node = leads == Some("certname");
        let competes = matches!(self.keep, Keep::NewestReport | Keep::Freshest | Keep::First);
        self.is_ordered_here() && (is_by_node || !(self.marks_nodes() || competes))
    }

    /// Whether each node is given a fact of its own.
    fn marks_nodes(&self) -> bool {
        matches!(self.provenance.mark, Mark::Fact | Mark::FactsOnly)
    }

    /// Whether the freshness map tells if the backends' order is known to be ours.
    pub fn order_needs_freshness(&self) -> bool {
        let [unknown, ours] =
            [CertnameOrder::Unknown, CertnameOrder::Ours].map(|order| self.agreed_with(order));
        self.is_ordered_here() && unknown == 0 && ours > 0
    }

    /// Whether what `sources` send is known to come in our order, given the freshness map.
    pub fn arrives_in_order(
        &self,
        sources: &[BackendId],
        freshness: Option<&FreshnessMap>,
    ) -> bool {
        self.agreed_among(sources, freshness) > 0
    }

    /// By how many members, the leading ones, the order of all `sources` is known to be ours.
    fn agreed_among(&self, sources: &[BackendId], freshness: Option<&FreshnessMap>) -> usize {
        let each = sources.iter();
        let each = each.map(|backend| self.agreed_with(CertnameOrder::of(*backend, freshness)));
        each.min().unwrap_or_default()
    }

    /// The same of one backend, as far as that is of use for records that arrive: a node's synthetic
    /// fact is known when its first record is, so that certname must lead.
    fn agreed_with(&self, certnames: CertnameOrder) -> usize {
        let agreed = self.agreed_members(certnames);
        let leads = self.order.members().first();
        match self.provenance.mark {
            Mark::Fact | Mark::FactsOnly if leads.is_none_or(|lead| lead != "certname") => 0,
            // What else it is ordered by is read from the fact too.
            Mark::Fact | Mark::FactsOnly => agreed.min(1),
            Mark::Nothing | Mark::Key => agreed,
        }
    }

    /// Whether neighbours of one node can be written as one: nothing is done to each of them.
    fn takes_neighbours(&self) -> bool {
        self.strip.is_empty() && self.provenance.mark != Mark::Key
    }

    /// Whether the freshness map is of use: for the owners, or to know whether a backend's cut can
    /// be relied on.
    pub fn needs_freshness(&self) -> bool {
        match self.keep {
            Keep::Freshest => true,
            Keep::First => false,
            Keep::NewestReport | Keep::Owned | Keep::OfOwner | Keep::Each(_) => {
                self.text_order == TextOrder::Bytes
                    && self.window.upstream_limit().is_some()
                    && self
                        .order
                        .members()
                        .first()
                        .is_some_and(|lead| lead == "certname")
            }
        }
    }
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
    /// All that came: each backend was asked only for what it speaks for.
    Owned,
    /// Those of nodes that the backend owns: it may have sent others' too.
    OfOwner,
    /// Each record once, however many backends have it; these columns tell records apart. A row
    /// that one backend lists twice stays twice (ruling 3).
    Each(&'static [&'static str]),
}

impl Keep {
    /// The columns that tell what a record is about.
    fn identity(self) -> &'static [&'static str] {
        match self {
            Self::NewestReport | Self::Freshest | Self::First | Self::Owned | Self::OfOwner => {
                &["certname"]
            }
            Self::Each(identity) => identity,
        }
    }
}

/// By what text is compared where records are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextOrder {
    /// By whatever the only backend's database compares it by: what it sends is in order.
    Backend,
    /// By bytes (ruling 8). A backend's own cut counts only where that is known to be the same.
    Bytes,
}

/// What `X-Records` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Total {
    /// It was not asked for.
    Unasked,
    /// The backends' own totals, added: an upper bound where records are held twice (R149).
    Added,
    /// The number of the backends' records before the window, all of which are known here.
    Counted,
}

impl Total {
    /// Counted here, if `asked`.
    pub(crate) fn counted_if(asked: bool) -> Self {
        if asked { Self::Counted } else { Self::Unasked }
    }
}

/// Merges a round. `limits` are those sent to each part of it.
pub fn merge(
    plan: &RecordMerge,
    round: &[Part<'_>],
    limits: &[Option<u32>],
    context: Context<'_>,
) -> Merged {
    let readings = read_replies(round, |reply| Scanned::of(plan, reply));
    let outcome = match readings.verdict {
        Verdict::Replay(at) => Outcome::Replay(at),
        Verdict::Nothing => Outcome::Nothing,
        Verdict::Merge => {
            let subjects = Subjects::numbered(&readings.good);
            let set = MergedSet::new(plan, &readings.good, &subjects, context);
            let limit_of = |backend| {
                let mut asked = round.iter().zip(limits);
                asked.find_map(|(part, limit)| limit.filter(|_| part.backend == backend))
            };
            let again = window::undecided(&set, limit_of, context.freshness);
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

/// What was read of one backend's answer.
type Read<'b> = Reading<'b, Cow<'b, Scanned>>;

/// The records of the winners, in the answer's order.
struct MergedSet<'p, 'b> {
    plan: &'p RecordMerge,
    readings: &'p [Read<'b>],
    subjects: &'p Subjects<'b>,
    marks: Marks,
    kept: Vec<Kept>,
}

/// What is kept of an entry of the reading at `reading`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    /// Its records.
    Records { reading: u16, entry: usize },
    /// The synthetic fact of its node.
    Fact { reading: u16, entry: usize },
}

impl<'p, 'b> MergedSet<'p, 'b> {
    fn new(
        plan: &'p RecordMerge,
        readings: &'p [Read<'b>],
        subjects: &'p Subjects<'b>,
        context: Context<'p>,
    ) -> Self {
        let names = &subjects.names;
        let winners = winners(plan, readings, subjects, context);
        let sources = readings.iter().map(|reading| reading.backend);
        let marks = Marks::of(plan, sources, context.backends);
        let keeps_records = plan.provenance.mark != Mark::FactsOnly;
        let mut marked = vec![
            false;
            if marks.facts.is_empty() {
                0
            } else {
                names.len()
            }
        ];
        let entries = readings.iter().map(|reading| reading.read.entries.len());
        let mut kept = Vec::with_capacity(entries.sum());
        for ((from, entries), reading) in readings.iter().zip(&subjects.entries).zip(0u16..) {
            let others = match plan.keep {
                Keep::OfOwner => context.stale(from.backend),
                _ => None,
            };
            let is_others =
                |subject: u32| others.is_some_and(|it| it.contains(names.name(subject)));
            for (subject, entry) in entries.iter().zip(0..) {
                if subject.is_some_and(is_others) {
                    continue;
                }
                let winner = subject.and_then(|subject| winners.get(subject as usize));
                if winner.is_some_and(|winner| *winner != reading) {
                    continue;
                }
                if keeps_records {
                    kept.push(Kept::Records { reading, entry });
                }
                if let Some(subject) = *subject
                    && let Some(marked) = marked.get_mut(subject as usize)
                    && !std::mem::replace(marked, true)
                {
                    kept.push(Kept::Fact { reading, entry });
                }
            }
        }
        let mut set = Self {
            plan,
            readings,
            subjects,
            marks,
            kept,
        };
        set.sort();
        if let Keep::Each(_) = plan.keep {
            set.keep_each();
        }
        set
    }

    fn sort(&mut self) {
        if self.plan.order.members().is_empty() || self.plan.text_order == TextOrder::Backend {
            return;
        }
        let mut kept = std::mem::take(&mut self.kept);
        self.plan
            .order
            .sort(&mut kept, |kept, at| self.key(*kept, at));
        self.kept = kept;
    }

    /// Drops copies of a record that came from another backend before. A row that one backend lists
    /// n times stays n times, and copies elsewhere add to that only what they list more.
    fn keep_each(&mut self) {
        let mut served = vec![0u32; self.subjects.len()];
        let mut seen: HashMap<(u32, u16), u32> = HashMap::new();
        let mut kept = std::mem::take(&mut self.kept);
        kept.retain(|kept| {
            let (Kept::Records { reading, entry } | Kept::Fact { reading, entry }) = *kept;
            let Some(subject) = self.subjects.of(reading, entry) else {
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

    fn entry(&self, reading: u16, entry: usize) -> (&Read<'b>, &Span) {
        let reading = &self.readings[usize::from(reading)];
        (reading, &reading.read.entries[entry])
    }

    /// What the synthetic fact of an entry's node takes from its records: certname, environment.
    fn fact_parts(&self, reading: u16, entry: usize) -> (&[u8], &[u8]) {
        let subject = self.subjects.of(reading, entry);
        let certname = subject.map(|number| self.subjects.names.name(number));
        let (reading, _) = self.entry(reading, entry);
        let environment = reading.read.mark(entry).map(|span| &reading.body[span]);
        (certname.unwrap_or(b"null"), environment.unwrap_or(b"null"))
    }

    /// The raw value of the `at`th order member of what is kept.
    fn key(&self, kept: Kept, at: usize) -> Option<&[u8]> {
        match kept {
            Kept::Records { reading, entry } => {
                let reading = &self.readings[usize::from(reading)];
                let span = reading.read.order_key(entry, at)?;
                Some(&reading.body[span])
            }
            Kept::Fact { reading, entry } => {
                let (certname, environment) = self.fact_parts(reading, entry);
                let member = &self.plan.order.members()[at];
                self.marks.facts[usize::from(reading)].member(member, certname, environment)
            }
        }
    }

    fn render(&self) -> Answer {
        let bodies: Vec<&[u8]> = self.readings.iter().map(|reading| reading.body).collect();
        let window = self.plan.window.cut(&self.kept);
        let mut array = ArrayPieces::new(&bodies);
        array.reserve(window.len().min(scan::FEW));
        let mut writer = Writer::new(self.plan, &self.marks, array);
        for kept in window {
            match *kept {
                Kept::Fact { reading, entry } => {
                    let (certname, environment) = self.fact_parts(reading, entry);
                    writer.fact(reading, certname, environment);
                }
                Kept::Records { reading: at, entry } => {
                    let (reading, span) = self.entry(at, entry);
                    writer.records(at, at, span, reading.read.mark(entry));
                }
            }
        }
        let total = match self.plan.total {
            Total::Unasked => None,
            Total::Added => add_totals(self.readings),
            Total::Counted => {
                let is_record = |kept: &&Kept| matches!(kept, Kept::Records { .. });
                Some(self.kept.iter().filter(is_record).count() as u64)
            }
        };
        let dropped = self
            .readings
            .iter()
            .map(|reading| reading.read.dropped)
            .sum();
        Answer {
            pieces: writer.array().finish(),
            total,
            contributed: self.readings.len(),
            dropped,
        }
    }
}

/// The place among the readings of each certname's winner; empty where records do not compete.
fn winners(
    plan: &RecordMerge,
    readings: &[Read<'_>],
    subjects: &Subjects<'_>,
    context: Context<'_>,
) -> Vec<u16> {
    if let Keep::Owned | Keep::OfOwner | Keep::Each(_) = plan.keep {
        return Vec::new();
    }
    // Times are read, and looked up, of nodes alone that compete.
    let stamp = |certname: u32, at: u16, entry: usize| {
        let reading = &readings[usize::from(at)];
        match plan.keep {
            Keep::NewestReport => {
                let time = reading.read.stamp(entry);
                Stamp::of_report(time.map(|span| &reading.body[span]))
            }
            Keep::Freshest => {
                let name = subjects.names.name(certname);
                let map = context.freshness;
                map.map(|map| map.stamp(name, reading.backend))
                    .unwrap_or_default()
            }
            Keep::First | Keep::Owned | Keep::OfOwner | Keep::Each(_) => Stamp::default(),
        }
    };
    let mut best: Vec<Option<Best>> = vec![None; subjects.names.len()];
    for (entries, at) in subjects.entries.iter().zip(0u16..) {
        for (subject, entry) in entries.iter().zip(0..) {
            let Some(certname) = *subject else {
                continue;
            };
            let best = &mut best[certname as usize];
            match best {
                // What one backend says of a node differs from record to record only in its times.
                Some(it) if it.reading == at && plan.keep != Keep::NewestReport => {}
                Some(it) => {
                    let newest = it
                        .stamp
                        .get_or_insert_with(|| stamp(certname, it.reading, it.entry));
                    let stamp = stamp(certname, at, entry);
                    if stamp > *newest {
                        *it = Best {
                            reading: at,
                            entry,
                            stamp: Some(stamp),
                        };
                    }
                }
                None => {
                    *best = Some(Best {
                        reading: at,
                        entry,
                        stamp: None,
                    });
                }
            }
        }
    }
    best.into_iter()
        .map(|best| best.map_or(0, |it| it.reading))
        .collect()
}

/// The newest entry so far of a node.
#[derive(Clone, Copy)]
struct Best {
    reading: u16,
    entry: usize,
    /// How new it is, once that was asked.
    stamp: Option<Stamp>,
}
