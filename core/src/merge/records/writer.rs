//! Writing the records that are kept, with what the plan adds to them and takes out.

use crate::answer::{ArrayPieces, Source};
use crate::json::{Members, Span};
use crate::provenance::{Mark, NodeKey, SourceFact};
use crate::round::BackendId;

use super::RecordMerge;

/// What records are marked with, by the place of their backend among those that answer.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// The synthetic fact of each backend's nodes, where the plan wants it.
    pub(super) facts: Vec<SourceFact>,
    /// The key that each backend's node records are given, where the plan wants it.
    keys: Vec<NodeKey>,
}

impl Marks {
    /// The marks of `sources`, given the names of all backends.
    pub(super) fn of(
        plan: &RecordMerge,
        sources: impl Iterator<Item = BackendId>,
        names: &[String],
    ) -> Self {
        let Some(name) = plan.provenance.name.as_deref() else {
            return Self::default();
        };
        let sources = sources.map(|backend| &*names[backend.index()]);
        let (mut facts, mut keys) = (Vec::new(), Vec::new());
        match plan.provenance.mark {
            Mark::Fact | Mark::FactsOnly => {
                facts = sources
                    .map(|backend| SourceFact::new(name, backend))
                    .collect();
            }
            Mark::Key => keys = sources.map(|backend| NodeKey::new(name, backend)).collect(),
            Mark::Nothing => {}
        }
        Self { facts, keys }
    }
}

/// Writes records into an array.
pub(super) struct Writer<'p, 'b> {
    plan: &'p RecordMerge,
    marks: &'p Marks,
    array: ArrayPieces<'b>,
}

impl<'p, 'b> Writer<'p, 'b> {
    pub(super) fn new(plan: &'p RecordMerge, marks: &'p Marks, array: ArrayPieces<'b>) -> Self {
        Self { plan, marks, array }
    }

    /// The records at `span` of the body at `body`, which the backend at `from` sent. `present` is
    /// the value of a key of the source's name that is there already.
    pub(super) fn records(&mut self, body: u16, from: u16, span: &Span, present: Option<Span>) {
        let whole = self.array.body(body);
        let key = self.marks.keys.get(usize::from(from));
        if !self.plan.strip.is_empty() {
            let text = strip(&whole[span.clone()], &self.plan.strip);
            let text = match key {
                Some(key) => key.added_to(text),
                None => text,
            };
            self.array.compose().push_made(&text);
        } else if let Some(key) = key {
            key.add(
                self.array.compose(),
                Source::Reply(body),
                span,
                present,
                whole,
            );
        } else {
            self.array.element(body, span.clone());
        }
    }

    /// Whether nodes are given a synthetic fact.
    pub(super) fn writes_facts(&self) -> bool {
        !self.marks.facts.is_empty()
    }

    /// Whether nothing but these is written.
    pub(super) fn writes_facts_only(&self) -> bool {
        self.plan.provenance.mark == Mark::FactsOnly
    }

    /// The same of records that lie in none of the bodies.
    pub(super) fn copy(&mut self, from: u16, records: &[u8], present: Option<Span>) {
        let bodies = [records];
        let array = ArrayPieces::resume(&bodies, self.array.is_begun());
        let mut aside = Writer::new(self.plan, self.marks, array);
        aside.records(0, from, &(0..records.len()), present);
        let text = aside.array.pause().0.assemble(&bodies);
        self.array.append(&text);
    }

    /// The synthetic fact of a node that the backend at `from` wins.
    pub(super) fn fact(&mut self, from: u16, certname: &[u8], environment: &[u8]) {
        if let Some(fact) = self.marks.facts.get(usize::from(from)) {
            fact.add(self.array.compose(), certname, environment);
        }
    }

    /// The raw value of a member of that fact.
    pub(super) fn fact_member<'f>(
        &'f self,
        (from, member): (u16, &str),
        certname: &'f [u8],
        environment: &'f [u8],
    ) -> Option<&'f [u8]> {
        let fact = self.marks.facts.get(usize::from(from))?;
        fact.member(member, certname, environment)
    }

    /// Whether neighbours can be written as one.
    pub(super) fn takes_neighbours(&self) -> bool {
        self.plan.takes_neighbours()
    }

    pub(super) fn array(self) -> ArrayPieces<'b> {
        self.array
    }
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
