//! Reading one backend's records as far as a merge needs them.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::json::{Records, ScanError, Span, check_utf8, spells};
use crate::merge::Reading;
use crate::merge::fold::Canonical;
use crate::merge::owners::Certnames;
use crate::provenance::Mark;
use crate::round::Reply;

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

/// What a merge of records reads of one body by itself.
#[derive(Debug, Clone)]
pub struct Scan(Result<Scanned, ScanError>);

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
    /// Where each entry lies: one record, or neighbours of one certname.
    pub(super) entries: Vec<Span>,
    /// For each entry the places of the members that tell what it is about, of the mark and of the
    /// report's time, if the layout has them, then those of the order members.
    places: Vec<Option<Span>>,
    /// How many places an entry has, and how many of them are those of each kind.
    each: usize,
    identities: usize,
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
    /// What each entry of each reading is about, if it says so.
    pub(super) entries: Vec<Vec<Option<u32>>>,
}

impl<'b> Subjects<'b> {
    /// Numbers what the entries of `readings` are about.
    pub(super) fn numbered(readings: &[Reading<'b, Cow<'_, Scanned>>]) -> Self {
        let mut subjects = Self::default();
        for reading in readings {
            let entries = subjects.number(reading.body, &reading.read);
            subjects.entries.push(entries);
        }
        subjects
    }

    fn number(&mut self, body: &'b [u8], scanned: &Scanned) -> Vec<Option<u32>> {
        let entries = scanned.entries.len();
        if scanned.identities == 1 {
            self.names.reserve(entries.min(FEW));
        }
        let text = |place: &Option<Span>| place.clone().map(|span| &body[span]);
        // Neighbours are mostly of one node.
        let mut before: Option<(&[u8], u32)> = None;
        let subject = |entry| match scanned.identity(entry) {
            [single] => {
                let raw = text(single)?;
                let known = before.filter(|(known, _)| *known == raw);
                let (_, number) =
                    *before.insert(known.unwrap_or_else(|| (raw, self.names.number(raw))));
                Some(number)
            }
            several => Some(self.row(several.iter().map(text))),
        };
        (0..entries).map(subject).collect()
    }

    fn row(&mut self, columns: impl Iterator<Item = Option<&'b [u8]>>) -> u32 {
        let key = columns
            .map(|raw| Canonical::new(raw.unwrap_or_default()))
            .collect();
        // An answer cannot hold 2^32 rows: it is bounded by its size in bytes.
        let next = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
        *self.rows.entry(key).or_insert(next)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.names.len() + self.rows.len()
    }

    /// What an entry of the reading at `reading` is about, if it says so.
    pub(super) fn of(&self, reading: u16, entry: usize) -> Option<u32> {
        self.entries[usize::from(reading)][entry]
    }
}

impl Scan {
    /// Reads `body` as far as `plan` needs it.
    pub(crate) fn of(plan: &RecordMerge, body: &[u8]) -> Self {
        let layout = Layout::of(plan);
        Self(check_utf8(body).and_then(|()| layout.scan(body)))
    }

    /// How many records there are, if the body is none that is damaged.
    pub(crate) fn rows(&self) -> Option<usize> {
        self.0.as_ref().ok().map(|scanned| scanned.rows)
    }
}

impl Scanned {
    /// What `plan` needs of a reply, of which that may have been read before.
    pub(super) fn of<'b>(plan: &RecordMerge, reply: Reply<'b>) -> Result<Cow<'b, Self>, ScanError> {
        match reply.scan {
            Some(Scan(scanned)) => scanned.as_ref().map(Cow::Borrowed).map_err(|error| *error),
            None => Scan::of(plan, reply.body).0.map(Cow::Owned),
        }
    }

    /// Where the members that tell what an entry is about stand.
    fn identity(&self, entry: usize) -> &[Option<Span>] {
        &self.places[entry * self.each..][..self.identities]
    }

    pub(super) fn mark(&self, entry: usize) -> Option<Span> {
        self.place(entry, self.identities, self.marks > 0)
    }

    /// Where the time of the node's report stands, where it is read from records.
    pub(super) fn stamp(&self, entry: usize) -> Option<Span> {
        self.place(entry, self.identities + self.marks, self.stamps > 0)
    }

    pub(super) fn order_key(&self, entry: usize, at: usize) -> Option<Span> {
        self.place(entry, self.identities + self.marks + self.stamps + at, true)
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
    fn scan(&self, body: &[u8]) -> Result<Scanned, ScanError> {
        let mut fields = vec![None; self.keys.len()];
        let mut records = Records::new(body, &self.keys);
        let kept: Vec<usize> = self
            .identity
            .iter()
            .chain(&self.mark)
            .copied()
            .chain(self.stamp)
            .chain(self.order.iter().copied())
            .collect();
        let mut scanned = Scanned {
            identities: self.identity.len(),
            marks: self.mark.iter().len(),
            stamps: self.stamp.iter().len(),
            each: kept.len(),
            ..Scanned::default()
        };
        // The name that more records are joined by: that of the entry before.
        let mut joined: Option<&[u8]> = None;
        while let Some(span) = records.next(&mut fields)? {
            scanned.rows += 1;
            let text = |at: usize| fields[at].clone().map(|span: Span| &body[span]);
            if self
                .dropped_name
                .is_some_and(|(at, name)| text(at).is_some_and(|raw| spells(raw, name)))
            {
                scanned.dropped += 1;
                joined = None;
                continue;
            }
            if self.grouped {
                let name = self.identity.first().and_then(|at| text(*at));
                let is_joined = joined.is_some() && joined == name;
                joined = name;
                if let Some(last) = scanned.entries.last_mut().filter(|_| is_joined) {
                    last.end = span.end;
                    continue;
                }
            } else if scanned.entries.is_empty() {
                // As many as there are if all are as long; a longer list grows with less ado.
                let records = (body.len() / (span.len() + 1)).min(FEW);
                scanned.entries.reserve(records);
                scanned.places.reserve(records * scanned.each);
            }
            scanned.entries.push(span);
            let places = kept.iter().map(|at| fields[*at].clone());
            scanned.places.extend(places);
        }
        if scanned.rows > 0 {
            scanned.last = self.order.iter().map(|at| fields[*at].clone()).collect();
        }
        Ok(scanned)
    }
}
