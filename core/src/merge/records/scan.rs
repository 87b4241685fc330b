//! Reading one backend's records as far as a merge needs them.

use std::collections::HashMap;

use crate::json::{Records, ScanError, Span, spells};
use crate::merge::fold::Canonical;
use crate::merge::owners::Certnames;
use crate::provenance::Mark;

use super::{Keep, RecordMerge, Total};

/// Room is made for so many records at once: growing costs a short list more than a long one.
pub(super) const FEW: usize = 4096;

/// Which members are read from each record, and what for.
pub(super) struct Layout<'p> {
    keys: Vec<&'p str>,
    /// The members that tell what a record is about.
    pub(super) identity: Vec<usize>,
    /// Where the time of the node's report stands.
    pub(super) stamp: Option<usize>,
    /// The name under which upstream facts are dropped, and where it stands.
    dropped_name: Option<(usize, &'p str)>,
    /// The member that provenance looks at: the environment, or a source key already there.
    pub(super) mark: Option<usize>,
    pub(super) order: Vec<usize>,
    /// Whether neighbours of one certname are kept as one entry.
    grouped: bool,
}

/// One record, or neighbours of one certname.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// What it is about, if it says so.
    pub(super) subject: Option<u32>,
    pub(super) span: Span,
}

/// What was read of a record that stands alone.
pub(super) struct Found<'t> {
    /// What it is about, as far as one member says that.
    pub(super) name: Option<&'t [u8]>,
    /// The time of the node's report, where the layout has it.
    pub(super) stamp: Option<&'t [u8]>,
    /// Where what provenance looks at stands.
    pub(super) mark: Option<Span>,
}

/// What was read of one reply.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Scanned {
    pub(super) entries: Vec<Entry>,
    /// For each entry the places of the mark and of the report's time, if the layout has them, then
    /// those of the order members.
    places: Vec<Option<Span>>,
    /// How many places an entry has, and how many of them are the mark's and the time's.
    each: usize,
    marks: usize,
    stamps: usize,
    /// Records delivered, dropped ones included.
    pub(super) rows: usize,
    /// Records that bore the source fact's name.
    pub(super) dropped: usize,
    /// The order members of the last record delivered.
    pub(super) last: Vec<Option<Span>>,
}

/// Numbers for what the records of a round are about.
#[derive(Debug, Default)]
pub(super) struct Subjects<'b> {
    /// Of subjects that one string names: a certname, a report's hash.
    pub(super) names: Certnames<'b>,
    /// Of rows that several columns tell apart, by value: versions of PuppetDB need not spell JSON
    /// inside a column alike (trap T38).
    rows: HashMap<Vec<Canonical<'b>>, u32>,
}

impl<'b> Subjects<'b> {
    pub(super) fn len(&self) -> usize {
        self.names.len() + self.rows.len()
    }

    fn row(&mut self, columns: impl Iterator<Item = Option<&'b [u8]>>) -> u32 {
        let key = columns
            .map(|raw| Canonical::new(raw.unwrap_or_default()))
            .collect();
        // An answer cannot hold 2^32 rows: it is bounded by its size in bytes.
        let next = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
        *self.rows.entry(key).or_insert(next)
    }
}

impl Scanned {
    pub(super) fn mark(&self, entry: usize) -> Option<Span> {
        self.place(entry, 0, self.marks > 0)
    }

    /// Where the time of the node's report stands, where it is read from records.
    pub(super) fn stamp(&self, entry: usize) -> Option<Span> {
        self.place(entry, self.marks, self.stamps > 0)
    }

    pub(super) fn order_key(&self, entry: usize, at: usize) -> Option<Span> {
        self.place(entry, self.marks + self.stamps + at, true)
    }

    fn place(&self, entry: usize, at: usize, is_kept: bool) -> Option<Span> {
        is_kept.then(|| self.places[entry * self.each + at].clone())?
    }
}

impl<'p> Layout<'p> {
    pub(super) fn of(plan: &'p RecordMerge) -> Self {
        let mut keys = Vec::new();
        let mut place = |key: &'p str| {
            keys.iter()
                .position(|known| *known == key)
                .unwrap_or_else(|| {
                    keys.push(key);
                    keys.len() - 1
                })
        };
        let identity = plan
            .keep
            .identity()
            .iter()
            .map(|name| place(name))
            .collect();
        let name = plan.provenance.name.as_deref();
        let by_node = matches!(
            plan.keep,
            Keep::Freshest | Keep::First | Keep::Owned | Keep::OfOwner
        );
        let stamp = match plan.keep {
            Keep::NewestReport => Some(place("report_timestamp")),
            Keep::Freshest | Keep::First | Keep::Owned | Keep::OfOwner | Keep::Each(_) => None,
        };
        // A name that only pdbmux asked for decides nothing that the client sees (R069).
        let sees_name = plan.strip.iter().all(|column| column != "name");
        let replaces = match plan.keep {
            Keep::Freshest | Keep::First => true,
            // Where pdbmux puts no fact of its own, a real one of that name is a record like others.
            Keep::Owned | Keep::OfOwner => {
                matches!(plan.provenance.mark, Mark::Fact | Mark::FactsOnly)
            }
            Keep::NewestReport | Keep::Each(_) => false,
        };
        let dropped_name = name
            .filter(|_| replaces && sees_name)
            .map(|name| (place("name"), name));
        let mark = match (plan.provenance.mark, name) {
            (Mark::Fact | Mark::FactsOnly, _) => Some(place("environment")),
            (Mark::Key, Some(name)) => Some(place(name)),
            (Mark::Key, None) | (Mark::Nothing, _) => None,
        };
        let order: Vec<_> = plan
            .order
            .members()
            .iter()
            .map(|member| place(member))
            .collect();
        // Records that are to be counted stay apart.
        let is_counted = plan.total == Total::Counted;
        let grouped = by_node && order.is_empty() && plan.takes_neighbours() && !is_counted;
        Self {
            keys,
            identity,
            stamp,
            dropped_name,
            mark,
            order,
            grouped,
        }
    }

    /// The members that are read from each record.
    pub(super) fn keys(&self) -> &[&'p str] {
        &self.keys
    }

    /// What a record, whose members lie at `fields` of `text`, is about and what provenance looks at
    /// in it; `None` if it is dropped for its name.
    pub(super) fn found<'t>(&self, text: &'t [u8], fields: &[Option<Span>]) -> Option<Found<'t>> {
        let raw = |at: usize| fields.get(at)?.clone().map(|span| &text[span]);
        let is_dropped = self
            .dropped_name
            .is_some_and(|(at, name)| raw(at).is_some_and(|raw| spells(raw, name)));
        (!is_dropped).then(|| Found {
            name: self.identity.first().and_then(|at| raw(*at)),
            stamp: self.stamp.and_then(raw),
            mark: self.mark.and_then(|at| fields.get(at)?.clone()),
        })
    }

    /// Reads a backend's body.
    pub(super) fn scan<'b>(
        &self,
        body: &'b [u8],
        subjects: &mut Subjects<'b>,
    ) -> Result<Scanned, ScanError> {
        let mut fields = vec![None; self.keys.len()];
        let mut records = Records::new(body, &self.keys);
        let (marks, stamps) = (self.mark.iter().len(), self.stamp.iter().len());
        let mut scanned = Scanned {
            marks,
            stamps,
            each: marks + stamps + self.order.len(),
            ..Scanned::default()
        };
        // The subject of the record before: neighbours are mostly of one node.
        let mut before: Option<(&[u8], u32)> = None;
        let mut joinable = false;
        while let Some(span) = records.next(&mut fields)? {
            scanned.rows += 1;
            let text = |at: usize| fields[at].clone().map(|span: Span| &body[span]);
            if self
                .dropped_name
                .is_some_and(|(at, name)| text(at).is_some_and(|raw| spells(raw, name)))
            {
                scanned.dropped += 1;
                joinable = false;
                continue;
            }
            let subject = match *self.identity {
                [single] => match (text(single), before) {
                    (Some(raw), Some((known, number))) if known == raw => Some(number),
                    (raw, _) => {
                        joinable = false;
                        before = raw.map(|raw| (raw, subjects.names.number(raw)));
                        before.map(|(_, number)| number)
                    }
                },
                ref several => Some(subjects.row(several.iter().map(|at| text(*at)))),
            };
            if let Some(last) = scanned.entries.last_mut().filter(|_| joinable) {
                last.span.end = span.end;
                continue;
            }
            joinable = self.grouped && subject.is_some();
            if scanned.entries.is_empty() && !self.grouped {
                // As many as there are if all are as long; a longer list grows with less ado.
                let records = (body.len() / (span.len() + 1)).min(FEW);
                scanned.entries.reserve(records);
                scanned.places.reserve(records * scanned.each);
                subjects.names.reserve(records);
            }
            scanned.entries.push(Entry { subject, span });
            let wanted = self.mark.iter().chain(&self.stamp).chain(&self.order);
            scanned.places.extend(wanted.map(|at| fields[*at].clone()));
        }
        if scanned.rows > 0 {
            scanned.last = self.order.iter().map(|at| fields[*at].clone()).collect();
        }
        Ok(scanned)
    }
}
