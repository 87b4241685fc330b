//! The record before, of which the next one repeats most: all facts of a node have its certname, and
//! nodes have most members alike. What is the same is compared, not read again.

// As with the cursor.
#![allow(clippy::inline_always)]

use super::records::Span;
use super::shape::Known;

/// Where the members of the last record lie that are worth a comparison.
#[derive(Debug)]
pub(super) struct Neighbour {
    members: [Member; MEMBERS],
    /// A bit for each member that is known to differ from record to record. It is always read, and
    /// where it lies is not kept.
    varying: u32,
    /// A bit for each of the others that the last record has.
    repeating: u32,
}

/// How many members are kept: those of a node, a report or an event.
const MEMBERS: usize = 24;

/// A member that has differed so often in a row is one that varies.
const VARIES: u8 = 2;

#[derive(Debug, Clone, Copy)]
struct Member {
    /// Where it is announced, by a bracket or comma.
    start: usize,
    known: Known,
    /// Where its value begins and ends.
    value: (usize, usize),
    /// How often in a row its value was another.
    differed: u8,
}

/// What a record has as the last one had it.
pub(super) struct Same {
    /// Its first member that differs, if only in its value.
    pub(super) member: usize,
    /// How many bytes come before that.
    pub(super) length: usize,
    /// What announces it, if that is known to be the same.
    pub(super) known: Option<Known>,
}

impl Default for Neighbour {
    fn default() -> Self {
        let none = Member {
            start: 0,
            known: Known::NOTHING,
            value: (0, 0),
            differed: 0,
        };
        Self {
            members: [none; MEMBERS],
            varying: 0,
            repeating: 0,
        }
    }
}

impl Neighbour {
    /// Whether the last record has a member at this place that may come again.
    #[inline(always)]
    pub(super) fn repeats(&self, member: usize) -> bool {
        member < MEMBERS && self.repeating >> member & 1 == 1
    }

    /// Compares what is at `at` of `text`, from the record's member `member` on, which
    /// [`repeats`](Self::repeats), with those of the last record that may come again. The fields of the
    /// members that are the same are set.
    ///
    /// A member is the same if the byte behind it is, too: that one ends a number.
    #[inline(always)]
    pub(super) fn same(
        &mut self,
        text: &[u8],
        at: usize,
        member: usize,
        fields: &mut [Option<Span>],
    ) -> Same {
        let mut same = Same {
            member,
            length: 0,
            known: None,
        };
        let repeating = (self.repeating >> member).trailing_ones() as usize;
        let members = self.members.get_mut(member..member + repeating);
        let members = members.unwrap_or_default();
        let (Some(first), Some(last)) = (members.first(), members.last()) else {
            return same;
        };
        let (start, end) = (first.start, last.value.1);
        let shift = at - start;
        let rest = &text[at..];
        let last = &text[start..=end];
        if rest.starts_with(last) {
            for member in members {
                member.moved(shift, fields);
            }
            same.member += repeating;
            same.length = end - start;
            return same;
        }
        let alike = start + common(rest, last);
        for member in members {
            if member.value.1 >= alike {
                let announced = member.start + member.known.length;
                same.known = (announced <= alike).then_some(member.known);
                member.differed += 1;
                if member.differed == VARIES {
                    self.varying |= 1 << same.member;
                }
                break;
            }
            member.moved(shift, fields);
            same.member += 1;
            same.length = member.value.1 - at;
        }
        same
    }

    /// Remembers a member of the record that is read now, in place of the last one's.
    #[inline(always)]
    pub(super) fn learn(&mut self, member: usize, start: usize, known: Known, value: &Span) {
        if member < MEMBERS && self.varying >> member & 1 == 0 {
            let kept = &mut self.members[member];
            kept.start = start;
            kept.known = known;
            kept.value = (value.start, value.end);
        }
    }

    /// The record that was read is the last one now, with as many members.
    #[inline(always)]
    pub(super) fn ends(&mut self, count: usize) {
        self.repeating = !(u32::MAX << count.min(MEMBERS)) & !self.varying;
    }
}

impl Member {
    /// Moves it to where it came again, and sets its field.
    #[inline(always)]
    fn moved(&mut self, shift: usize, fields: &mut [Option<Span>]) {
        self.start += shift;
        self.value = (self.value.0 + shift, self.value.1 + shift);
        self.differed = 0;
        if let Some(place) = self.known.place {
            fields[place] = Some(self.value.0..self.value.1);
        }
    }
}

/// With how many bytes both begin.
fn common(text: &[u8], other: &[u8]) -> usize {
    let differ = text.iter().zip(other).position(|(a, b)| a != b);
    differ.unwrap_or_else(|| text.len().min(other.len()))
}
