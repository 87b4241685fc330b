//! Containers, 64 bytes at a time.
//!
//! A block of text becomes masks, in which bit i tells of byte i: which bytes are quotes, commas,
//! brackets. All else is arithmetic on masks. What JSON allows to stand side by side depends on
//! little: after a comma comes a key in an object and a value in an array, after a colon a value,
//! after a key a colon, after a value a comma or the bracket that closes what is open. So only
//! brackets are looked at one by one, to know which kind is open where; commas, colons, strings and
//! numbers are checked 64 bytes at a time, however many there are.
//!
//! Everything accepted here is what the plain scanner accepts. What is refused may be sound, and is
//! left to that one, which also tells what is wrong: escapes outside of strings or more than 64
//! levels are not worth being told apart here.

// As with the cursor; and what is not inlined would not be compiled for the caller's instructions.
#![allow(clippy::inline_always)]

use std::ops::ControlFlow;

use super::cursor::is_scalar;

/// A block of text in vector registers.
pub(super) trait Vector: Copy {
    /// Takes a block.
    fn load(block: &[u8; 64]) -> Self;

    /// Which bytes are `byte`.
    fn are(self, byte: u8) -> u64;

    /// Which bytes are `byte` once their bit 5 is set. That makes one of the brackets `[` and `{`,
    /// and of `]` and `}`, and of no other byte.
    fn are_either(self, byte: u8) -> u64;

    /// Which bytes are decimal digits.
    fn are_digits(self) -> u64;
}

/// The end of the container at `at`, if it is found to be sound.
#[inline(always)]
pub(super) fn container<V: Vector>(text: &[u8], mut at: usize) -> Option<usize> {
    // The container is itself a value that is due.
    let mut open = Open {
        due: 1,
        value_due: 1,
        ..Open::default()
    };
    let mut last = [b' '; 64];
    loop {
        let rest = text.get(at..)?;
        let block = rest.first_chunk().unwrap_or_else(|| {
            last[..rest.len()].copy_from_slice(rest);
            &last
        });
        match open.read::<V>(text, at, block) {
            ControlFlow::Continue(()) => at += 64,
            ControlFlow::Break(end) => return end.map(|bit| at + bit as usize + 1),
        }
    }
}

/// What is open at the end of a block. Where it tells of one bit, that is the lowest.
#[derive(Default)]
struct Open {
    /// All ones in a string.
    string: u64,
    /// A string that is open is a key.
    key: u64,
    /// The next byte is escaped.
    escape: u64,
    /// A number or word may go on.
    scalar: u64,
    /// Where that began.
    scalar_at: usize,
    /// What comes next follows an opening bracket.
    opened: u64,
    /// What comes next is a key or a value.
    due: u64,
    /// It is a value.
    value_due: u64,
    /// It is a colon.
    colon_due: u64,
    /// The kinds of the open containers, innermost lowest: an object is a one.
    kinds: u64,
    /// How many there are.
    depth: u32,
}

impl Open {
    /// Reads the block at `at` of `text`. Breaks with the place in it of the bracket that ends the
    /// container, or with nothing if the block is refused.
    #[inline(always)]
    fn read<V: Vector>(
        &mut self,
        text: &[u8],
        at: usize,
        block: &[u8; 64],
    ) -> ControlFlow<Option<u32>> {
        let bytes = V::load(block);
        let quotes = self.unescaped(bytes.are(b'"'), bytes.are(b'\\'));
        // The opening quote is part of the string, the closing one is not.
        let strings = parities(quotes) ^ self.string;
        self.string = all_or_none(strings >> 63);
        let outside = !(strings | quotes);
        let commas = bytes.are(b',') & outside;
        let colons = bytes.are(b':') & outside;
        let opening = bytes.are_either(b'{') & outside;
        let closing = bytes.are_either(b'}') & outside;

        let Some(Brackets { objects, end }) = self.brackets(block, opening, closing) else {
            return ControlFlow::Break(None);
        };
        // What is behind the end does not count.
        let inside = end.map_or(u64::MAX, |bit| u64::MAX >> (63 - bit));

        let mut scalars = outside & !(commas | colons | opening | closing);
        let mut odd = scalars & !bytes.are_digits();
        let mut blanks = 0;
        if odd != 0 {
            let spaces = bytes.are(b' ') | bytes.are(b'\t');
            blanks = (spaces | bytes.are(b'\n') | bytes.are(b'\r')) & outside;
            scalars &= !blanks;
            odd &= inside & !blanks;
        }
        let goes_on = self.scalar & scalars;
        let begin = scalars & !(scalars << 1 | self.scalar);
        if odd != 0 {
            let before = (goes_on != 0).then_some(self.scalar_at);
            if !are_scalars(text, at, before, begin, scalars, odd) {
                return ControlFlow::Break(None);
            }
        }
        self.scalar = scalars >> 63;
        let length = scalars.leading_ones() as usize;
        if length < 64 || goes_on == 0 {
            self.scalar_at = at + 64 - length;
        }

        let after = |ends: u64, carry: &mut u64| {
            let next = ends << 1 | *carry;
            *carry = ends >> 63;
            if blanks == 0 {
                return next;
            }
            // Added to a run of blanks, the bit before it comes out behind it.
            let (sum, over) = blanks.overflowing_add(next & blanks);
            *carry |= u64::from(over);
            (next | sum) & !blanks
        };
        let opened = after(opening, &mut self.opened);
        let due = after(opening | commas | colons, &mut self.due);
        let values = (opening | commas) & !objects | colons;
        let value_due = after(values, &mut self.value_due);
        // The bit of a key's opening quote comes out of the string at its closing one.
        let keys = quotes & strings & due & !value_due;
        let (sum, over) = strings.overflowing_add(keys);
        let (sum, over_too) = sum.overflowing_add(self.key);
        self.key = u64::from(over | over_too);
        let colon_due = after(sum & quotes & !strings, &mut self.colon_due);

        let unquoted = opening | begin;
        let starts = unquoted | quotes & strings;
        let wrong =
            colons ^ colon_due | unquoted & !value_due | (starts ^ due) & !(closing & opened);
        if wrong & inside != 0 {
            return ControlFlow::Break(None);
        }
        match end {
            Some(_) => ControlFlow::Break(end),
            None => ControlFlow::Continue(()),
        }
    }

    /// The quotes that no backslash escapes.
    #[inline(always)]
    fn unescaped(&mut self, quotes: u64, backslashes: u64) -> u64 {
        const ODD: u64 = 0xAAAA_AAAA_AAAA_AAAA;
        if backslashes | self.escape == 0 {
            return quotes;
        }
        // Of a run of backslashes every second one escapes. Subtracting the starts of runs makes
        // even and odd ones differ; this is simdjson's way.
        let starts = backslashes & !self.escape;
        let alternating = ((starts << 1) | ODD).wrapping_sub(starts) ^ ODD;
        let escaped = alternating ^ (backslashes | self.escape);
        self.escape = (alternating & backslashes) >> 63;
        quotes & !escaped
    }

    /// Follows the brackets of a block.
    #[inline(always)]
    fn brackets(&mut self, block: &[u8; 64], opening: u64, closing: u64) -> Option<Brackets> {
        let mut objects = all_or_none(self.kinds & 1);
        let mut rest = opening | closing;
        let mut wrong = 0;
        while rest != 0 {
            let bit = rest.trailing_zeros();
            let kind = u64::from(block[bit as usize & 63] >> 5 & 1);
            let opens = opening >> bit & 1;
            wrong |= (self.kinds ^ kind) & !opens;
            // No branch: which way a bracket looks is hard to foretell.
            self.kinds = if opens == 1 {
                self.kinds << 1 | kind
            } else {
                self.kinds >> 1
            };
            self.depth = if opens == 1 {
                self.depth + 1
            } else {
                self.depth - 1
            };
            objects ^= (objects ^ all_or_none(self.kinds & 1)) & (u64::MAX << bit);
            if self.depth.wrapping_sub(1) >= 64 {
                let is_end = self.depth == 0 && wrong & 1 == 0;
                return is_end.then_some(Brackets {
                    objects,
                    end: Some(bit),
                });
            }
            rest &= rest - 1;
        }
        (wrong & 1 == 0).then_some(Brackets { objects, end: None })
    }
}

/// What the brackets of a block tell.
struct Brackets {
    /// Bytes inside of objects, from an opening bracket on and without the closing one.
    objects: u64,
    /// Where the outermost container ends.
    end: Option<u32>,
}

/// Whether those numbers and words of a block that have `odd` bytes, no digits, are sound. They
/// begin where `begin` is set, and one of them `before` the block.
#[cold]
#[inline(never)]
fn are_scalars(
    text: &[u8],
    at: usize,
    before: Option<usize>,
    begin: u64,
    scalars: u64,
    odd: u64,
) -> bool {
    // Added to its first bit, a run of ones becomes zeros.
    let is_odd =
        |first: u64| scalars & !scalars.wrapping_add(first) & first.wrapping_neg() & odd != 0;
    let mut rest = begin;
    if before.is_some_and(|before| is_odd(1) && !is_scalar(text, before)) {
        return false;
    }
    while rest != 0 {
        let first = rest & rest.wrapping_neg();
        if is_odd(first) && !is_scalar(text, at + first.trailing_zeros() as usize) {
            return false;
        }
        rest ^= first;
    }
    true
}

/// For each bit, whether the number of ones up to it is odd.
#[inline(always)]
fn parities(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

/// All ones for a one, none for a zero.
#[inline(always)]
fn all_or_none(bit: u64) -> u64 {
    bit.wrapping_neg()
}
