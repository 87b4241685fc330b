//! What the records of an array have in common, so that it is compared instead of read again.

// As with the cursor.
#![allow(clippy::inline_always)]

/// The keys of the last record, each with where its value belongs.
///
/// Records of one array have the same members in the same order, and a key is often longer than
/// its value. So the bytes that announce a member are guessed.
#[derive(Debug)]
pub(super) struct Shape([Announced; MEMBERS]);

/// How many members are guessed: those of a node, a report or an event.
const MEMBERS: usize = 24;

/// The most bytes that are guessed, in blocks: PuppetDB's longest keys of records.
const BLOCKS: usize = 3;

/// How long a block is.
const BLOCK: usize = size_of::<u128>();

/// A key with the bracket or comma before it and the colon after it.
#[derive(Debug, Clone, Copy)]
struct Announced {
    blocks: [u128; BLOCKS],
    /// The bytes that count, all ones.
    masks: [u128; BLOCKS],
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

impl Known {
    /// A member that was never seen.
    pub(super) const NOTHING: Self = Self {
        length: 0,
        place: None,
    };
}

impl Announced {
    /// What no text begins with: it has a byte where the mask has none.
    const NEVER: Self = Self {
        blocks: [1; BLOCKS],
        masks: [0; BLOCKS],
        known: Known::NOTHING,
    };

    /// `None` for what is too long.
    fn by(bytes: &[u8], known: Known) -> Option<Self> {
        let mut text = [0; BLOCKS * BLOCK];
        let mut mask = [0; BLOCKS * BLOCK];
        text.get_mut(..bytes.len())?.copy_from_slice(bytes);
        mask.get_mut(..bytes.len())?.fill(0xff);
        Some(Self {
            blocks: blocks(&text),
            masks: blocks(&mask),
            known,
        })
    }

    #[inline(always)]
    fn begins(&self, text: &[u8]) -> bool {
        let Some(first) = text.first_chunk() else {
            return false;
        };
        if u128::from_le_bytes(*first) & self.masks[0] != self.blocks[0] {
            return false;
        }
        self.known.length <= BLOCK || self.goes_on(text)
    }

    #[inline(always)]
    fn goes_on(&self, text: &[u8]) -> bool {
        let Some(text) = text.first_chunk() else {
            return false;
        };
        let [_, second, third] = blocks(text);
        second & self.masks[1] == self.blocks[1] && third & self.masks[2] == self.blocks[2]
    }
}

#[inline(always)]
fn blocks(bytes: &[u8; BLOCKS * BLOCK]) -> [u128; BLOCKS] {
    let mut blocks = [0; BLOCKS];
    for (block, bytes) in blocks.iter_mut().zip(bytes.as_chunks().0) {
        *block = u128::from_le_bytes(*bytes);
    }
    blocks
}

impl Default for Shape {
    fn default() -> Self {
        Self([Announced::NEVER; MEMBERS])
    }
}

impl Shape {
    /// The member that `text` begins with, if it is announced as the last one at `member` was.
    #[inline(always)]
    pub(super) fn guess(&self, member: usize, text: &[u8]) -> Option<Known> {
        let announced = self.0.get(member)?;
        announced.begins(text).then_some(announced.known)
    }

    /// Remembers the bytes that announced a member.
    pub(super) fn learn(&mut self, member: usize, bytes: &[u8], place: Option<usize>) -> Known {
        let known = Known {
            length: bytes.len(),
            place,
        };
        // What is too long is always read.
        if let Some(guess) = self.0.get_mut(member)
            && let Some(announced) = Announced::by(bytes, known)
        {
            *guess = announced;
        }
        known
    }
}
