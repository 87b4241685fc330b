//! Records that are equal in what the backends agree on, put in our order here.

use crate::json::Span;
use crate::merge::owners::canonical;
use crate::merge::records::scan::Layout;
use crate::merge::records::writer::Writer;
use crate::paging::RecordOrder;

use super::nodes::Turn;
use super::once::{Once, Row};
use super::queues::Head;

/// Such records, as far as they have come.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// The text of the records, those of a backend that came together with commas between them.
    text: Vec<u8>,
    members: Vec<Member>,
    /// Where each record's order members lie in the text.
    places: Vec<Option<Span>>,
}

#[derive(Debug)]
struct Member {
    from: u16,
    what: What,
}

#[derive(Debug)]
enum What {
    Record {
        span: Span,
        /// Where its places begin.
        places: usize,
        /// Where what provenance looks at stands in the record.
        mark: Option<Span>,
        /// Which row it is, where all records are kept once.
        row: Option<Row>,
    },
    /// The synthetic fact of the node.
    Fact {
        certname: Vec<u8>,
        environment: Vec<u8>,
    },
}

impl Group {
    pub(super) fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Whether there are records here that are no equals of another, by `differs` from what the
    /// first of them is ordered by.
    pub(super) fn is_of_other<'g>(
        &'g self,
        differs: impl FnOnce(&dyn Fn(usize) -> Option<&'g [u8]>) -> bool,
    ) -> bool {
        !self.members.is_empty() && differs(&|at| self.place(0, at))
    }

    /// Adds a record, and the synthetic fact behind the first of a node.
    pub(super) fn push(
        &mut self,
        layout: &Layout<'_>,
        head: &Head<'_>,
        row: Option<Row>,
        turn: Turn,
        writer: &Writer<'_, '_>,
    ) {
        let record = head.span();
        if !self.text.is_empty() {
            self.text.push(b',');
        }
        let start = self.text.len();
        let moved = |span: Span| span.start - record.start + start..span.end - record.start + start;
        let places = self.places.len();
        let keys = layout.order.iter().map(|at| head.field(*at).map(moved));
        self.places.extend(keys);
        self.text.extend_from_slice(head.bytes());
        let mark = head.mark(layout);
        let what = What::Record {
            span: start..self.text.len(),
            places,
            mark: mark
                .clone()
                .map(|mark| mark.start - record.start..mark.end - record.start),
            row,
        };
        let from = head.from;
        self.members.push(Member { from, what });
        if turn == Turn::First && writer.writes_facts() {
            let what = What::Fact {
                certname: canonical(head.name(layout).unwrap_or(b"null")).into_owned(),
                environment: mark.map_or(&b"null"[..], |mark| &head.text[mark]).to_vec(),
            };
            self.members.push(Member { from, what });
        }
    }

    /// Writes all in `order` and is empty afterwards. `once` tells which records were served before.
    pub(super) fn write(
        &mut self,
        order: &RecordOrder,
        mut once: Option<&mut Once>,
        writer: &mut Writer<'_, '_>,
    ) {
        let mut sorted: Vec<&Member> = self.members.iter().collect();
        order.sort(&mut sorted, |member, at| match &member.what {
            What::Record { places, .. } => self.place(*places, at),
            What::Fact {
                certname,
                environment,
            } => {
                let member = (member.from, &*order.members()[at]);
                writer.fact_member(member, certname, environment)
            }
        });
        sorted.retain(|member| match &member.what {
            What::Fact { .. } => true,
            What::Record { row, .. } => {
                let is_kept = once
                    .as_mut()
                    .is_none_or(|once| once.serves(member.from, *row));
                is_kept && !writer.writes_facts_only()
            }
        });
        let mut rest = &sorted[..];
        while let [member, others @ ..] = rest {
            rest = others;
            match &member.what {
                What::Fact {
                    certname,
                    environment,
                } => writer.fact(member.from, certname, environment),
                What::Record { span, mark, .. } => {
                    let mut end = span.end;
                    while let [next, others @ ..] = rest
                        && let What::Record { span, .. } = &next.what
                        && next.from == member.from
                        && span.start == end + 1
                        && writer.takes_neighbours()
                    {
                        end = span.end;
                        rest = others;
                    }
                    writer.copy(member.from, &self.text[span.start..end], mark.clone());
                }
            }
        }
        self.text.clear();
        self.members.clear();
        self.places.clear();
    }

    fn place(&self, places: usize, at: usize) -> Option<&[u8]> {
        let span = self.places.get(places + at)?.clone();
        span.map(|span| &self.text[span])
    }
}
