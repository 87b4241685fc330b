//! A position in JSON text and the steps it can take.

use memchr::memchr2;

use super::Span;

/// Containers nested deeper than this are refused: no PuppetDB entity comes near it, and a bound
/// keeps a hostile body from costing memory.
pub(crate) const MAX_DEPTH: usize = 1024;

/// Why a text was refused, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{problem} at byte {at}")]
pub struct ScanError {
    /// Offset from the beginning of the scanned text, in bytes.
    pub at: usize,
    /// What was wrong there.
    pub problem: ScanProblem,
}

/// What kind of damage the scanner met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ScanProblem {
    /// The text ended inside a value.
    #[error("the text ends too early")]
    Truncated,
    /// A byte that JSON does not allow at this place.
    #[error("unexpected byte 0x{0:02x}")]
    Unexpected(u8),
    /// More levels of nesting than pdbmux follows.
    #[error("nested too deeply")]
    TooDeep,
}

/// A position in JSON text. Every step leaves it after what was read.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Cursor<'b> {
    pub(crate) fn new(bytes: &'b [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    fn error(&self) -> ScanError {
        let problem = self
            .bytes
            .get(self.at)
            .map_or(ScanProblem::Truncated, |&b| ScanProblem::Unexpected(b));
        ScanError {
            at: self.at,
            problem,
        }
    }

    /// The next byte that is not white space, not consumed.
    pub(crate) fn peek(&mut self) -> Result<u8, ScanError> {
        while let Some(&byte) = self.bytes.get(self.at) {
            if byte > b' ' {
                return Ok(byte);
            }
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Err(self.error());
            }
            self.at += 1;
        }
        Err(self.error())
    }

    /// Consumes `byte`, which must come next after white space.
    pub(crate) fn expect(&mut self, byte: u8) -> Result<(), ScanError> {
        if self.peek()? == byte {
            self.at += 1;
            return Ok(());
        }
        Err(self.error())
    }

    /// Consumes one of two bytes and says whether it was the first.
    pub(crate) fn either(&mut self, first: u8, second: u8) -> Result<bool, ScanError> {
        let byte = self.peek()?;
        if byte == first || byte == second {
            self.at += 1;
            return Ok(byte == first);
        }
        Err(self.error())
    }

    /// Refuses anything but white space up to the end.
    pub(crate) fn end(&mut self) -> Result<(), ScanError> {
        match self.peek() {
            Err(ScanError {
                problem: ScanProblem::Truncated,
                ..
            }) => Ok(()),
            _ => Err(self.error()),
        }
    }

    /// Consumes a string and gives its span, quotes included.
    pub(crate) fn string(&mut self) -> Result<Span, ScanError> {
        self.expect(b'"')?;
        let start = self.at - 1;
        self.rest_of_string()?;
        Ok(start..self.at)
    }

    /// Consumes up to and including the closing quote.
    fn rest_of_string(&mut self) -> Result<(), ScanError> {
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            match memchr2(b'"', b'\\', rest) {
                Some(i) if rest[i] == b'"' => {
                    self.at += i + 1;
                    return Ok(());
                }
                // The escaped byte is skipped whatever it is: it may be a quote.
                Some(i) if i + 1 < rest.len() => self.at += i + 2,
                _ => {
                    self.at = self.bytes.len();
                    return Err(self.error());
                }
            }
        }
    }

    /// Consumes one value of any kind and gives its span.
    pub(crate) fn value(&mut self) -> Result<Span, ScanError> {
        let byte = self.peek()?;
        let start = self.at;
        match byte {
            b'{' | b'[' => self.container()?,
            _ => self.leaf(byte)?,
        }
        Ok(start..self.at)
    }

    /// Consumes a string, number or literal that begins with `byte`.
    fn leaf(&mut self, byte: u8) -> Result<(), ScanError> {
        match byte {
            b'"' => {
                self.at += 1;
                self.rest_of_string()
            }
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.literal(b"true"),
            b'f' => self.literal(b"false"),
            b'n' => self.literal(b"null"),
            _ => Err(self.error()),
        }
    }

    fn literal(&mut self, word: &[u8]) -> Result<(), ScanError> {
        for &expected in word {
            if self.bytes.get(self.at) != Some(&expected) {
                return Err(self.error());
            }
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), ScanError> {
        let rest = &self.bytes[self.at..];
        let length = rest
            .iter()
            .position(|b| !matches!(b, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'))
            .unwrap_or(rest.len());
        self.at += length;
        // A lone sign, or a text that ends here: a longer number may have been cut.
        if rest[length - 1].is_ascii_digit() {
            Ok(())
        } else {
            Err(self.error())
        }
    }

    /// Consumes a whole object or array, checking brackets, commas and colons at every level.
    fn container(&mut self) -> Result<(), ScanError> {
        let mut open = Nesting::default();
        loop {
            // Here a container begins.
            let object = self.either(b'{', b'[')?;
            if !open.push(object) {
                return Err(ScanError {
                    at: self.at - 1,
                    problem: ScanProblem::TooDeep,
                });
            }
            let mut first = true;
            // Values of the innermost container, until one of them is a container itself.
            loop {
                let Some(in_object) = open.innermost() else {
                    return Ok(());
                };
                let close = if in_object { b'}' } else { b']' };
                let mut byte = self.peek()?;
                if byte == close {
                    self.at += 1;
                    open.pop();
                    first = false;
                    continue;
                }
                if !first {
                    self.expect(b',')?;
                    byte = self.peek()?;
                }
                if in_object {
                    self.string()?;
                    self.expect(b':')?;
                    byte = self.peek()?;
                }
                if matches!(byte, b'{' | b'[') {
                    break;
                }
                self.leaf(byte)?;
                first = false;
            }
        }
    }
}

/// The kinds of the open containers, a bit each.
#[derive(Default)]
struct Nesting {
    objects: [u64; MAX_DEPTH / 64],
    depth: usize,
}

impl Nesting {
    fn push(&mut self, object: bool) -> bool {
        let Some(word) = self.objects.get_mut(self.depth / 64) else {
            return false;
        };
        let bit = 1 << (self.depth % 64);
        *word = if object { *word | bit } else { *word & !bit };
        self.depth += 1;
        true
    }

    fn pop(&mut self) {
        self.depth -= 1;
    }

    fn innermost(&self) -> Option<bool> {
        let top = self.depth.checked_sub(1)?;
        Some(self.objects[top / 64] >> (top % 64) & 1 == 1)
    }
}
