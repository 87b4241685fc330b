//! What the records of an array have in common, so that it is compared instead of read again.

// As with the cursor.
#![allow(clippy::inline_always)]

use super::records::Span;

/// The keys of the last record, each with where its value belongs.
///
/// Records of one array have the same members in the same order, and a key is often longer than
/// its value. So the bytes that announce a member are guessed.
#[derive(Debug)]
pub(super) struct Shape([Announced; 8]);

/// A key with the bracket or comma before it and the colon after it.
#[derive(Debug, Clone, Copy)]
struct Announced {
    bytes: u128,
    /// The bytes that count, all ones.
    mask: u128,
    known: Known,
}

/// A member whose key is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Known {
    /// How many bytes announce it.
    pub(super) length: usize,
    /// Its place among the wanted members.
    pub(super) place: Option<usize>,
}

impl Default for Shape {
    fn default() -> Self {
        // No text has a byte where the mask has none.
        Self(
            [Announced {
                bytes: 1,
                mask: 0,
                known: Known {
                    length: 0,
                    place: None,
                },
            }; 8],
        )
    }
}

impl Shape {
    /// The member that `text` begins with, if it is announced as the last one at `member` was.
    #[inline(always)]
    pub(super) fn guess(&self, member: usize, text: &[u8]) -> Option<Known> {
        let announced = self.0.get(member)?;
        let begin = u128::from_le_bytes(*text.first_chunk()?);
        (begin & announced.mask == announced.bytes).then_some(announced.known)
    }

    /// Remembers the bytes that announced a member.
    pub(super) fn learn(&mut self, member: usize, bytes: &[u8], place: Option<usize>) -> Known {
        let known = Known {
            length: bytes.len(),
            place,
        };
        let mut padded = [0; 16];
        let mut mask = [0; 16];
        // Longer ones are always read.
        if let (Some(announced), Some(begin)) =
            (self.0.get_mut(member), padded.get_mut(..bytes.len()))
        {
            begin.copy_from_slice(bytes);
            mask[..bytes.len()].fill(0xff);
            *announced = Announced {
                bytes: u128::from_le_bytes(padded),
                mask: u128::from_le_bytes(mask),
                known,
            };
        }
        known
    }
}

/// The first members of the last record. Neighbours often have them alike: all facts of a node
/// begin with its certname and environment.
#[derive(Debug, Default)]
pub(super) struct Lead {
    /// Their text, and the byte after it, which tells that the last value is over.
    span: Span,
    /// The place of each among the wanted members, and its value.
    members: [(Option<usize>, Span); Lead::MEMBERS],
}

impl Lead {
    /// How many members it has.
    pub(super) const MEMBERS: usize = 2;

    /// Remembers a member of the record that begins at `start`.
    #[inline(always)]
    pub(super) fn learn(
        &mut self,
        member: usize,
        start: usize,
        place: Option<usize>,
        value: &Span,
    ) {
        if let Some(kept) = self.members.get_mut(member) {
            *kept = (place, value.clone());
            self.span = start..value.end + 1;
        }
    }

    /// Forgets a record that had no more than these members.
    pub(super) fn forget(&mut self) {
        self.span = 0..0;
    }

    /// The end of the same members at `start`, where the record begins alike. Their fields are set.
    #[inline(always)]
    pub(super) fn repeated(
        &self,
        text: &[u8],
        start: usize,
        fields: &mut [Option<Span>],
    ) -> Option<usize> {
        let lead = &text[self.span.clone()];
        if lead.is_empty() || !text[start..].starts_with(lead) {
            return None;
        }
        let shift = start - self.span.start;
        for (place, value) in &self.members {
            if let Some(place) = *place {
                fields[place] = Some(value.start + shift..value.end + shift);
            }
        }
        Some(start + lead.len() - 1)
    }
}
