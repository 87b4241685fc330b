//! The records before, of which the next one repeats most: all facts of a node have its certname, and
//! nodes have most members alike. What is the same is compared, not read again.

// As with the cursor.
#![allow(clippy::inline_always)]

use super::records::Span;
use super::shape::Known;

/// Where the members that records repeat lie, each in the last record that was read for it.
#[derive(Debug)]
pub(super) struct Neighbour {
    members: [Member; MEMBERS],
    /// The runs of members that may come again, each at its first one's place.
    runs: [Run; MEMBERS],
    /// A bit for each member that is known to differ from record to record. It is always read, and
    /// where it lies is not kept.
    varying: u32,
    /// A bit for each of the others that the last record has.
    repeating: u32,
    /// A bit for each member that begins where the one before it ends.
    joined: u32,
    /// How many records came before.
    records: usize,
    /// Whether the runs are no longer those of the members.
    is_changed: bool,
}

/// How many members are kept: those of a node, a report or an event.
const MEMBERS: usize = 24;

#[derive(Debug, Clone, Copy)]
struct Member {
    /// Where it is announced, by a bracket or comma.
    start: usize,
    known: Known,
    /// Where its value begins and ends.
    value: (usize, usize),
    /// The record in which its value was another. If the next one's is another again, it varies.
    differed: usize,
}

/// Members that may come again and lie together.
#[derive(Debug, Clone, Copy)]
struct Run {
    /// Where they begin and end.
    start: usize,
    end: usize,
    /// How far what must be the same goes: over the byte behind them, which ends a number, or over
    /// all that announces a member that varies. 0 for no run.
    reach: usize,
    /// The member behind them, and what announces it, if that is among what must be the same.
    next: usize,
    known: Option<Known>,
    /// A bit for each member that is wanted.
    wanted: u32,
}

/// What a record has as an earlier one had it.
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
            runs: [Run::NONE; MEMBERS],
            varying: 0,
            repeating: 0,
            joined: 0,
            // A member that never differed has not done so in the record before.
            records: 2,
            is_changed: false,
        }
    }
}

impl Neighbour {
    /// Compares what is at `at` of `text`, from the record's member `member` on, with the members that
    /// may come again there and lie together, if there are any. The fields of those that are the same
    /// are set.
    #[inline(always)]
    pub(super) fn same(
        &mut self,
        text: &[u8],
        at: usize,
        member: usize,
        fields: &mut [Option<Span>],
    ) -> Option<Same> {
        let run = self.runs.get(member)?;
        if run.reach > 0 && text[at..].starts_with(&text[run.start..run.reach]) {
            let mut wanted = run.wanted;
            while wanted != 0 {
                let number = wanted.trailing_zeros() as usize;
                self.members[number].place(at - run.start, fields);
                wanted &= wanted - 1;
            }
            return Some(Same {
                member: run.next,
                length: run.end - run.start,
                known: run.known,
            });
        }
        (self.repeating >> member & 1 == 1).then(|| self.moved(text, at, member, fields))
    }

    /// The same, member by member. Those that are the same are kept where they are now, so that they
    /// still lie beside one that is not.
    #[inline(never)]
    fn moved(
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
        let members = self.together(member);
        let (Some(first), Some(last)) = (members.first(), members.last()) else {
            return same;
        };
        let shift = at - first.start;
        let alike = first.start + common(&text[at..], &text[first.start..=last.value.1]);
        for number in member..member + members.len() {
            let member = &mut self.members[number];
            if member.value.1 >= alike {
                let announced = member.start + member.known.length;
                same.known = (announced <= alike).then_some(member.known);
                if member.differed + 1 == self.records {
                    self.varying |= 1 << number;
                }
                member.differed = self.records;
                break;
            }
            member.place(shift, fields);
            member.start += shift;
            member.value = (member.value.0 + shift, member.value.1 + shift);
            same.member += 1;
            same.length = member.value.1 - at;
            self.join(number);
        }
        same
    }

    /// The members from `member` on that may come again and lie together.
    fn together(&self, member: usize) -> &[Member] {
        let (repeating, joined) = (self.repeating >> member, self.joined >> member);
        let count = (repeating & (joined | 1)).trailing_ones() as usize;
        &self.members[member..member + count]
    }

    /// Remembers a member of the record that is read now, in place of an earlier one's.
    #[inline(always)]
    pub(super) fn learn(&mut self, member: usize, start: usize, known: Known, value: &Span) {
        if member < MEMBERS && self.varying >> member & 1 == 0 {
            let kept = &mut self.members[member];
            kept.start = start;
            kept.known = known;
            kept.value = (value.start, value.end);
            self.join(member);
        }
    }

    /// Notes whether a member lies behind the one before it, now that it has moved.
    fn join(&mut self, member: usize) {
        let before = member.checked_sub(1).map(|before| &self.members[before]);
        let is_joined = before.is_some_and(|it| it.value.1 == self.members[member].start);
        self.joined = self.joined & !(1 << member) | u32::from(is_joined) << member;
        self.is_changed = true;
    }

    /// The record of `text` that was read is the last one now, with as many members.
    #[inline(always)]
    pub(super) fn ends(&mut self, text: &[u8], count: usize) {
        let repeating = !(u32::MAX << count.min(MEMBERS)) & !self.varying;
        if self.is_changed || repeating != self.repeating {
            let before = self.count();
            self.runs[..before].fill(Run::NONE);
            self.repeating = repeating;
            self.run(text);
        }
        self.records += 1;
    }

    /// Behind how many members none may come again.
    fn count(&self) -> usize {
        (u32::BITS - self.repeating.leading_zeros()) as usize
    }

    /// Finds the runs anew.
    #[inline(never)]
    fn run(&mut self, text: &[u8]) {
        self.is_changed = false;
        let mut member = 0;
        while member < self.count() {
            let members = self.together(member);
            let (Some(first), Some(last)) = (members.first(), members.last()) else {
                member += 1;
                continue;
            };
            let mut run = Run {
                start: first.start,
                end: last.value.1,
                reach: last.value.1 + 1,
                next: member + members.len(),
                ..Run::NONE
            };
            for (kept, number) in members.iter().zip(member..) {
                run.wanted |= u32::from(kept.known.place.is_some()) << number;
            }
            if self.varying >> run.next & 1 == 1 {
                let Member { start, known, .. } = self.members[run.next];
                let announced = &text[start..start + known.length];
                if text[run.end..].starts_with(announced) {
                    run.reach = run.end + known.length;
                    run.known = Some(known);
                }
            }
            self.runs[member] = run;
            member = run.next;
        }
    }
}

impl Run {
    const NONE: Self = Self {
        start: 0,
        end: 0,
        reach: 0,
        next: 0,
        known: None,
        wanted: 0,
    };
}

impl Member {
    /// Sets its field, if it is wanted, where it came again, so much further.
    #[inline(always)]
    fn place(&self, shift: usize, fields: &mut [Option<Span>]) {
        if let Some(place) = self.known.place {
            fields[place] = Some(self.value.0 + shift..self.value.1 + shift);
        }
    }
}

/// With how many bytes both begin.
fn common(text: &[u8], other: &[u8]) -> usize {
    let mut alike = 0;
    for (a, b) in text.as_chunks().0.iter().zip(other.as_chunks().0) {
        let differ = u128::from_le_bytes(*a) ^ u128::from_le_bytes(*b);
        if differ != 0 {
            return alike + differ.trailing_zeros() as usize / 8;
        }
        alike += size_of::<u128>();
    }
    let mut rest = text.iter().zip(other).skip(alike);
    let differ = rest.position(|(a, b)| a != b);
    differ.map_or_else(|| text.len().min(other.len()), |differ| alike + differ)
}
