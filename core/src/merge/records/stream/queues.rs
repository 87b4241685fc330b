//! Records that come in the order in which they are written.
//!
//! Of every backend the next record must be known, or that there is none; then the least of these is
//! the next one of the answer. Where the backends' order is ours only in its leading members,
//! records that are equal in these are gathered and put in order ([`Group`]).
//!
//! Copies of a node compete only where certname leads the order. All that hold it then have come to
//! it at the same time, and which of them is the winner is known by who they are.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::json::{Arrived, Origin, Span};
use crate::merge::damage::Damage;
use crate::merge::owners::{FreshnessMap, canonical};
use crate::merge::records::scan::Layout;
use crate::merge::records::writer::Writer;
use crate::merge::records::{Keep, RecordMerge};
use crate::paging::RecordOrder;
use crate::round::BackendId;

use super::Body;
use super::group::Group;
use super::nodes::{Nodes, Turn};
use super::once::Once;

/// What has come of all backends and was not written yet.
#[derive(Debug)]
pub(super) struct Queues {
    heads: Heads,
    /// Whose record comes next, where that needs no comparison.
    next: Option<u16>,
    nodes: Nodes,
    /// Which records were served before, where all are kept once.
    once: Option<Once>,
    /// Records that are put in order, where the backends' order is not enough.
    group: Option<Group>,
}

/// The next records of all backends.
#[derive(Debug)]
struct Heads {
    order: Order,
    queues: Vec<Queue>,
}

/// What is ordered by, and how far the backends agree on that.
#[derive(Debug)]
struct Order {
    by: RecordOrder,
    /// How many of the leading members these are.
    agreed: usize,
}

/// The records of one backend that come next.
#[derive(Debug, Default)]
struct Queue {
    rows: Vec<Row>,
    /// Where the members that the layout wants lie, of each row.
    fields: Vec<Option<Span>>,
    /// Which row is the next.
    at: usize,
    /// The text of records that lie across parts.
    aside: Vec<u8>,
    /// What the last record was ordered by, if there was one.
    before: Option<Vec<Option<Vec<u8>>>>,
    has_ended: bool,
}

#[derive(Debug)]
struct Row {
    origin: Origin,
    span: Span,
    /// Whether it is the same as the one before it in all that the backends agree on.
    is_same: bool,
}

/// A record where it lies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head<'q> {
    pub(super) from: u16,
    origin: Origin,
    pub(super) text: &'q [u8],
    span: &'q Span,
    fields: &'q [Option<Span>],
}

impl<'q> Head<'q> {
    /// The record's own bytes.
    pub(super) fn bytes(&self) -> &'q [u8] {
        &self.text[self.span.clone()]
    }

    /// The raw value of a member by its place in the layout.
    pub(super) fn value(&self, at: usize) -> Option<&'q [u8]> {
        self.field(at).map(|span| &self.text[span])
    }

    /// Where that lies in its text.
    pub(super) fn field(&self, at: usize) -> Option<Span> {
        self.fields.get(at)?.clone()
    }

    /// Where the record lies in its text.
    pub(super) fn span(&self) -> &'q Span {
        self.span
    }

    /// The raw value of the `at`th order member.
    pub(super) fn key(&self, layout: &Layout<'_>, at: usize) -> Option<&'q [u8]> {
        self.value(layout.order[at])
    }

    /// Where what provenance looks at stands in its text.
    pub(super) fn mark(&self, layout: &Layout<'_>) -> Option<Span> {
        layout.mark.and_then(|at| self.field(at))
    }

    /// What it is about, as it spells it.
    pub(super) fn name(&self, layout: &Layout<'_>) -> Option<&'q [u8]> {
        layout.identity.first().and_then(|at| self.value(*at))
    }
}

impl Order {
    /// Compares by the members that the backends agree on.
    fn compare<'v>(
        &self,
        a: impl Fn(usize) -> Option<&'v [u8]>,
        b: impl Fn(usize) -> Option<&'v [u8]>,
    ) -> Ordering {
        let among = |at: usize| at < self.agreed;
        self.by.compare(
            |at| a(at).filter(|_| among(at)),
            |at| b(at).filter(|_| among(at)),
        )
    }
}

impl Queue {
    /// The next record, if it has come; `part` is the last part of the body.
    fn head<'q>(&'q self, from: u16, part: &'q [u8]) -> Option<Head<'q>> {
        self.row(self.at, from, part)
    }

    fn row<'q>(&'q self, at: usize, from: u16, part: &'q [u8]) -> Option<Head<'q>> {
        let row = self.rows.get(at)?;
        let width = self.fields.len() / self.rows.len();
        Some(Head {
            from,
            origin: row.origin,
            text: match row.origin {
                Origin::Chunk => part,
                Origin::Copy => &self.aside,
            },
            span: &row.span,
            fields: &self.fields[at * width..][..width],
        })
    }

    /// Whether its next record must come before anything is decided.
    fn is_awaited(&self) -> bool {
        self.at == self.rows.len() && !self.has_ended
    }

    fn clear(&mut self) {
        self.rows.clear();
        self.fields.clear();
        self.aside.clear();
        self.at = 0;
    }

    fn push(&mut self, arrived: &Arrived<'_>) {
        let record = arrived.span.clone();
        let start = match arrived.origin {
            Origin::Chunk => record.start,
            Origin::Copy => self.aside.len(),
        };
        let moved =
            |span: &Span| span.start - record.start + start..span.end - record.start + start;
        let fields = arrived.fields.iter();
        self.fields
            .extend(fields.map(|field| field.as_ref().map(moved)));
        self.rows.push(Row {
            origin: arrived.origin,
            span: moved(&record),
            is_same: false,
        });
        if arrived.origin == Origin::Copy {
            self.aside.extend_from_slice(&arrived.text[record]);
        }
    }

    /// Looks whether the records of a part stand in order, and which are the same in that.
    fn check(
        &mut self,
        order: &Order,
        layout: &Layout<'_>,
        from: u16,
        part: &[u8],
    ) -> Result<(), Damage> {
        let mut before = self.before.take();
        for at in 0..self.rows.len() {
            let (Some(head), last) = (
                self.row(at, from, part),
                at.checked_sub(1)
                    .and_then(|last| self.row(last, from, part)),
            ) else {
                break;
            };
            let key = |m: usize| head.key(layout, m);
            let known = |m: usize| match (&last, &before) {
                (Some(last), _) => last.key(layout, m),
                (None, Some(before)) => before.get(m)?.as_deref(),
                (None, None) => None,
            };
            let is_next = last.is_some() || before.is_some();
            let is_same = is_next && (0..order.agreed).all(|m| known(m) == key(m));
            if is_next && !is_same && order.compare(known, key).is_gt() {
                return Err(Damage::NotInOrder);
            }
            self.rows[at].is_same = is_same;
        }
        if let Some(last) = self.rows.len().checked_sub(1)
            && let Some(last) = self.row(last, from, part)
        {
            let keys = (0..order.agreed).map(|m| last.key(layout, m).map(<[u8]>::to_vec));
            before = Some(keys.collect());
        }
        self.before = before;
        Ok(())
    }
}

impl Heads {
    fn of<'q>(&'q self, from: u16, parts: &[&'q [u8]]) -> Option<Head<'q>> {
        let at = usize::from(from);
        self.queues[at].head(from, parts[at])
    }

    /// All that are known.
    fn all<'q>(&'q self, parts: &'q [&'q [u8]]) -> impl Iterator<Item = Head<'q>> {
        let queues = (0u16..).take(self.queues.len());
        queues.filter_map(|from| self.of(from, parts))
    }

    /// Whose record comes next, if that is decided; of equals it is the first configured.
    fn least(&self, layout: &Layout<'_>, parts: &[&[u8]]) -> Option<u16> {
        if self.queues.iter().any(Queue::is_awaited) {
            return None;
        }
        let least = self.all(parts).reduce(|least, head| {
            let key = |m: usize| head.key(layout, m);
            match self.order.compare(key, |m| least.key(layout, m)) {
                Ordering::Less => head,
                Ordering::Equal | Ordering::Greater => least,
            }
        });
        least.map(|head| head.from)
    }

    /// Goes past the next record of `from`. Tells whether the one behind it is the same in all that
    /// the backends agree on: then it comes next of all.
    fn step(&mut self, from: u16) -> bool {
        let queue = &mut self.queues[usize::from(from)];
        queue.at += 1;
        queue.rows.get(queue.at).is_some_and(|next| next.is_same)
    }
}

impl Queues {
    /// Nothing has come yet of `sources`, whose order is ours in the `agreed` leading members.
    pub(super) fn new(
        plan: &RecordMerge,
        sources: &[BackendId],
        freshness: Option<Arc<FreshnessMap>>,
        agreed: usize,
    ) -> Self {
        let order = Order {
            agreed,
            by: plan.order.clone(),
        };
        Self {
            once: match plan.keep {
                Keep::Each(_) => Some(Once::new(sources.len())),
                _ => None,
            },
            group: (order.agreed < order.by.members().len()).then(Group::default),
            heads: Heads {
                order,
                queues: sources.iter().map(|_| Queue::default()).collect(),
            },
            nodes: Nodes::new(plan.keep, sources, freshness),
            next: None,
        }
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.group.as_ref().map_or(0, Group::bytes) + self.once.as_ref().map_or(0, Once::bytes)
    }

    pub(super) fn wanted(&self) -> Vec<u16> {
        let queues = self.heads.queues.iter().zip(0..);
        let wanted = queues.filter(|(queue, _)| queue.is_awaited());
        wanted.map(|(_, at)| at).collect()
    }

    /// Queues the records of the next `part` of the backend at `from`, all of whose records before
    /// have been taken.
    pub(super) fn feed(
        &mut self,
        from: u16,
        part: &[u8],
        body: Body<'_, '_>,
    ) -> Result<(), Damage> {
        let Heads { order, queues } = &mut self.heads;
        let queue = &mut queues[usize::from(from)];
        let layout = body.layout;
        queue.clear();
        body.read(part, |arrived, _| queue.push(arrived))?;
        queue.check(order, layout, from, part)
    }

    /// Notes that the backend at `from` sends nothing more.
    pub(super) fn end(&mut self, from: u16) {
        self.heads.queues[usize::from(from)].has_ended = true;
    }

    /// Writes as much as is decided; `parts` are those that were fed last.
    pub(super) fn write(
        &mut self,
        layout: &Layout<'_>,
        parts: &[&[u8]],
        writer: &mut Writer<'_, '_>,
    ) {
        let next = |queues: &mut Self| {
            let same = queues.next.take();
            same.or_else(|| queues.heads.least(layout, parts))
        };
        while let Some(from) = next(self) {
            self.take(from, layout, parts, writer);
            self.next = self.heads.step(from).then_some(from);
        }
        if let Some(group) = &mut self.group
            && self.heads.queues.iter().all(|queue| queue.has_ended)
        {
            group.write(&self.heads.order.by, self.once.as_mut(), writer);
        }
    }

    /// Writes the next record of `from`, or gathers it, or leaves it out.
    fn take(
        &mut self,
        from: u16,
        layout: &Layout<'_>,
        parts: &[&[u8]],
        writer: &mut Writer<'_, '_>,
    ) {
        let Some(head) = self.heads.of(from, parts) else {
            return;
        };
        let name = head.name(layout);
        let turn = name.map_or(Turn::Further, |name| {
            self.nodes
                .turn(name, from, layout, || self.heads.all(parts))
        });
        if turn == Turn::Lost {
            return;
        }
        let once = self.once.as_mut();
        let row = once
            .as_ref()
            .and_then(|once| once.row(layout, |at| head.value(at)));
        let Some(group) = &mut self.group else {
            if once.is_none_or(|once| once.serves(from, row)) {
                write(layout, &head, turn, writer);
            }
            return;
        };
        let order = &self.heads.order;
        if group.is_of_other(|first| order.compare(first, |m| head.key(layout, m)).is_ne()) {
            group.write(&order.by, once, writer);
        }
        group.push(layout, &head, row, turn, writer);
    }
}

/// Writes a record, and its node's synthetic fact behind the first.
fn write(layout: &Layout<'_>, head: &Head<'_>, turn: Turn, writer: &mut Writer<'_, '_>) {
    let (mark, span) = (head.mark(layout), head.span);
    match head.origin {
        _ if writer.writes_facts_only() => {}
        Origin::Chunk => writer.records(head.from, head.from, span, mark.clone()),
        Origin::Copy => {
            let mark = mark.clone();
            let within = mark.map(|mark| mark.start - span.start..mark.end - span.start);
            writer.copy(head.from, head.bytes(), within);
        }
    }
    if turn == Turn::First {
        let environment = mark.map_or(&b"null"[..], |mark| &head.text[mark]);
        let certname = canonical(head.name(layout).unwrap_or(b"null"));
        writer.fact(head.from, &certname, environment);
    }
}
