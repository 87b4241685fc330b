//! A position in JSON text and the steps it can take.

// Left to itself the compiler shares these steps between their callers, and the price of the calls
// exceeds that of the steps: 11 instructions a byte of facts against 8.
#![allow(clippy::inline_always)]

use memchr::memchr2;

use super::error::{ScanError, ScanProblem};
use super::nesting::Nesting;
use super::records::Span;
use super::simd::{Level, marks};

/// A position in JSON text. Every step leaves it after what was read.
///
/// The steps are inlined, and what they call takes and gives plain offsets, so that a caller's own
/// copy of the cursor stays in registers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'b> {
    bytes: &'b [u8],
    at: usize,
    level: Level,
}

/// A member's key.
pub(crate) struct Key {
    /// Where the key lies, quotes included.
    pub(crate) span: Span,
    /// Whether its text between the quotes is what it spells.
    pub(crate) spelling: Spelling,
}

/// Whether a string can be compared byte by byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// The string has no escapes.
    Plain,
    /// The string may have escapes.
    Escaped,
}

impl<'b> Cursor<'b> {
    pub(crate) fn new(bytes: &'b [u8], at: usize, level: Level) -> Self {
        Self { bytes, at, level }
    }

    /// The same position for a reader with other instructions.
    pub(crate) fn on(self, level: Level) -> Self {
        Self { level, ..self }
    }

    /// What is not consumed yet.
    #[inline(always)]
    pub(crate) fn rest(&self) -> &'b [u8] {
        &self.bytes[self.at..]
    }

    /// Consumes `length` bytes that the caller knows.
    #[inline(always)]
    pub(crate) fn skip(&mut self, length: usize) {
        self.at += length;
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// The next byte that is not white space, not consumed.
    #[inline(always)]
    pub(crate) fn peek(&mut self) -> Result<u8, ScanError> {
        match self.bytes.get(self.at) {
            Some(&byte) if byte > b' ' => Ok(byte),
            _ => {
                let (at, byte) = past_blanks(self.bytes, self.at)?;
                self.at = at;
                Ok(byte)
            }
        }
    }

    /// Consumes `byte`, which must come next after white space.
    #[inline(always)]
    pub(crate) fn expect(&mut self, byte: u8) -> Result<(), ScanError> {
        if self.peek()? == byte {
            self.at += 1;
            return Ok(());
        }
        Err(error(self.bytes, self.at))
    }

    /// Consumes one of two bytes and says whether it was the first.
    #[inline(always)]
    pub(crate) fn either(&mut self, first: u8, second: u8) -> Result<bool, ScanError> {
        let byte = self.peek()?;
        if byte == first || byte == second {
            self.at += 1;
            return Ok(byte == first);
        }
        Err(error(self.bytes, self.at))
    }

    /// Refuses anything but white space up to the end.
    pub(crate) fn end(&mut self) -> Result<(), ScanError> {
        match self.peek() {
            Ok(_) => Err(error(self.bytes, self.at)),
            Err(error) if error.problem == ScanProblem::Truncated => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Consumes a member's key and its colon.
    #[inline(always)]
    pub(crate) fn key(&mut self) -> Result<Key, ScanError> {
        self.expect(b'"')?;
        let start = self.at - 1;
        let spelling = self.rest_of_string()?;
        let span = start..self.at;
        self.expect(b':')?;
        Ok(Key { span, spelling })
    }

    /// Consumes up to and including the closing quote.
    #[inline(always)]
    fn rest_of_string(&mut self) -> Result<Spelling, ScanError> {
        // Most strings are short: some steps of a block cost less than setting up a search.
        let rest = &self.bytes[self.at..];
        for block in rest.as_chunks::<16>().0.iter().take(4) {
            let marks = marks(block);
            if marks == 0 {
                self.at += 16;
                continue;
            }
            let first = marks.trailing_zeros() as usize;
            self.at += first;
            if block[first & 15] == b'"' {
                self.at += 1;
                return Ok(Spelling::Plain);
            }
            break;
        }
        self.at = long_string(self.bytes, self.at)?;
        Ok(Spelling::Escaped)
    }

    /// Consumes one value of any kind and gives its span.
    #[inline(always)]
    pub(crate) fn value(&mut self) -> Result<Span, ScanError> {
        let byte = self.peek()?;
        let start = self.at;
        match byte {
            b'{' | b'[' => self.at = container(self.bytes, self.at, self.level)?,
            _ => self.leaf(byte)?,
        }
        Ok(start..self.at)
    }

    /// Consumes a string, number or literal that begins with `byte`.
    #[inline(always)]
    fn leaf(&mut self, byte: u8) -> Result<(), ScanError> {
        match byte {
            b'"' => {
                self.at += 1;
                self.rest_of_string()?;
            }
            b'-' | b'0'..=b'9' => self.at = number(self.bytes, self.at)?,
            b't' => self.at = literal(self.bytes, self.at, b"true")?,
            b'f' => self.at = literal(self.bytes, self.at, b"false")?,
            b'n' => self.at = literal(self.bytes, self.at, b"null")?,
            _ => return Err(error(self.bytes, self.at)),
        }
        Ok(())
    }
}

// What follows takes a text and a position in it and gives the position after what was read.

/// Refuses the byte at `at`, or the end of the text there.
#[cold]
fn error(bytes: &[u8], at: usize) -> ScanError {
    let problem = match bytes.get(at) {
        Some(&byte) => ScanProblem::Unexpected(byte),
        None => ScanProblem::Truncated,
    };
    ScanError { at, problem }
}

/// The next byte from `at` on that is not white space, and where it is.
#[inline(never)]
fn past_blanks(bytes: &[u8], mut at: usize) -> Result<(usize, u8), ScanError> {
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b' ' | b'\n' | b'\r' | b'\t' => at += 1,
            0..b' ' => break,
            _ => return Ok((at, byte)),
        }
    }
    Err(error(bytes, at))
}

/// The end of a string, from any place in it that is not inside an escape.
#[inline(never)]
fn long_string(bytes: &[u8], mut at: usize) -> Result<usize, ScanError> {
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let Some(i) = memchr2(b'"', b'\\', rest) else {
            return Err(error(bytes, bytes.len()));
        };
        if rest[i] == b'"' {
            return Ok(at + i + 1);
        }
        // The escaped byte is skipped whatever it is: it may be a quote.
        at += i + 2;
    }
}

#[inline(always)]
fn literal(bytes: &[u8], at: usize, word: &[u8]) -> Result<usize, ScanError> {
    let rest = &bytes[at..];
    if rest.starts_with(word) {
        return Ok(at + word.len());
    }
    let same = rest.iter().zip(word).take_while(|(a, b)| a == b).count();
    Err(error(bytes, at + same))
}

fn number(bytes: &[u8], at: usize) -> Result<usize, ScanError> {
    let rest = &bytes[at..];
    let length = rest
        .iter()
        .position(|b| !matches!(b, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'))
        .unwrap_or(rest.len());
    // No number ends in a sign, a point or an exponent's letter.
    if rest[..length].last().is_some_and(u8::is_ascii_digit) {
        return Ok(at + length);
    }
    Err(error(bytes, at + length))
}

/// Whether a string, number or literal is at `at`, and behind it what may come after one.
#[cfg(any(
    target_arch = "x86_64",
    all(target_arch = "aarch64", target_endian = "little")
))]
pub(super) fn is_scalar(bytes: &[u8], at: usize) -> bool {
    let mut cursor = Cursor::new(bytes, at, Level::PLAIN);
    let Ok(first) = cursor.peek() else {
        return false;
    };
    let behind = cursor.leaf(first).ok().and_then(|()| bytes.get(cursor.at));
    matches!(
        behind,
        Some(b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t')
    )
}

/// A whole container, whose bracket is at `at`: brackets, commas and colons at every level.
#[inline(never)]
fn container(bytes: &[u8], at: usize, level: Level) -> Result<usize, ScanError> {
    match level.container(bytes, at) {
        Some(end) => Ok(end),
        None => plain_container(bytes, at),
    }
}

/// The same byte by byte, which finds what is wrong.
#[inline(never)]
fn plain_container(bytes: &[u8], at: usize) -> Result<usize, ScanError> {
    let mut cursor = Cursor::new(bytes, at, Level::PLAIN);
    let mut around = Nesting::default();
    let mut close = closing(bytes[at]);
    cursor.at += 1;
    let mut byte = cursor.peek()?;
    let mut empty = byte == close;
    loop {
        // A value of the innermost container, if it has one.
        if !empty {
            if close == b'}' {
                cursor.key()?;
                byte = cursor.peek()?;
            }
            if matches!(byte, b'{' | b'[') {
                around.push(close).ok_or(ScanError {
                    at: cursor.at,
                    problem: ScanProblem::TooDeep,
                })?;
                close = closing(byte);
                cursor.at += 1;
                byte = cursor.peek()?;
                empty = byte == close;
                continue;
            }
            cursor.leaf(byte)?;
        }
        // What ends here ends a value of the container around it.
        while !cursor.either(b',', close)? {
            match around.pop() {
                Some(outer) => close = outer,
                None => return Ok(cursor.at),
            }
        }
        byte = cursor.peek()?;
        empty = false;
    }
}

/// The bracket that closes what `open` began.
fn closing(open: u8) -> u8 {
    if open == b'{' { b'}' } else { b']' }
}
