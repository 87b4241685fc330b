//! Records of a text that arrives in chunks.

use super::boundary::Boundary;
use super::cursor::Cursor;
use super::error::{ScanError, ScanProblem};
use super::records::{Records, Span, State};
use super::shape::Shape;
use super::simd::Level;

/// The records of an array of objects, as far as they have arrived.
///
/// A record is read where its chunk holds it. Only one that lies across chunks is copied, and
/// nothing is kept of a record once the next has come. What is found is what [`Records`] finds in
/// the whole text, however it is cut; a text is refused as there, if not always by the first chunk
/// that shows why.
#[derive(Debug)]
pub struct Arriving {
    shape: Shape,
    state: State,
    /// What has come since the last whole record.
    carried: Vec<u8>,
    /// Where in that the next record ends, once it does.
    boundary: Boundary,
    /// How many bytes came before that.
    passed: usize,
}

/// A whole record.
#[derive(Debug)]
pub struct Arrived<'r> {
    /// The text that it lies in.
    pub text: &'r [u8],
    /// Whose text that is.
    pub origin: Origin,
    /// Where it lies in that text.
    pub span: Span,
    /// Where the wanted members lie in it, as [`Records::next`] says.
    pub fields: &'r [Option<Span>],
}

/// Where a record lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// In the chunk that was fed.
    Chunk,
    /// Across chunks; its text is a copy.
    Copy,
}

impl Default for Arriving {
    fn default() -> Self {
        Self {
            shape: Shape::default(),
            state: State::Before,
            carried: Vec::new(),
            boundary: Boundary::new(&State::Before),
            passed: 0,
        }
    }
}

impl Arriving {
    /// How many bytes of a record that has not ended yet are kept.
    pub fn carried(&self) -> usize {
        self.carried.len()
    }

    /// Reads the next chunk of a text that must hold one JSON array of objects, and calls `each` for
    /// every record that ends in it. `keys` are the names of the wanted members, the same each time.
    ///
    /// A text once refused stays refused, with the same error.
    pub fn feed(
        &mut self,
        keys: &[&str],
        chunk: &[u8],
        mut each: impl FnMut(Arrived<'_>),
    ) -> Result<(), ScanError> {
        let mut at = 0;
        while !self.carried.is_empty() {
            let rest = &chunk[at..];
            let Some(length) = self.boundary.find(rest) else {
                self.carried.extend_from_slice(rest);
                return Ok(());
            };
            self.carried.extend_from_slice(&rest[..length]);
            at += length;
            let mut carried = std::mem::take(&mut self.carried);
            let read = self.read(keys, &carried, 0, Origin::Copy, &mut each)?;
            carried.drain(..read);
            self.carried = carried;
        }
        let read = self.read(keys, chunk, at, Origin::Chunk, &mut each)?;
        let rest = &chunk[read..];
        self.carried.extend_from_slice(rest);
        self.boundary = Boundary::new(&self.state);
        self.boundary.find(rest);
        Ok(())
    }

    /// Ends the text, which must be whole.
    pub fn finish(&mut self) -> Result<(), ScanError> {
        let error = ScanError {
            at: self.passed + self.carried.len(),
            problem: ScanProblem::Truncated,
        };
        let carried = std::mem::take(&mut self.carried);
        // It was learnt with members in mind that are not wanted here.
        self.shape = Shape::default();
        self.read(&[], &carried, 0, Origin::Copy, &mut |_| ())?;
        match self.state {
            State::Done => Ok(()),
            State::Before | State::Inside | State::Refused(_) => Err(error),
        }
    }

    /// Reads the whole records of `text` from `at` on, and gives the end of the last one.
    fn read(
        &mut self,
        keys: &[&str],
        text: &[u8],
        at: usize,
        origin: Origin,
        each: &mut impl FnMut(Arrived<'_>),
    ) -> Result<usize, ScanError> {
        if let State::Refused(error) = self.state {
            return Err(error);
        }
        if let State::Done = self.state {
            let end = Cursor::new(text, at, Level::PLAIN).end();
            end.map_err(|error| self.refuse(error, at))?;
            self.passed += text.len() - at;
            return Ok(text.len());
        }
        let shape = std::mem::take(&mut self.shape);
        let mut records = Records::resume(text, at, self.state, keys, shape);
        let mut fields = vec![None; keys.len()];
        let mut end = at;
        loop {
            match records.next(&mut fields) {
                Ok(Some(span)) => {
                    self.state = State::Inside;
                    end = span.end;
                    let fields = &fields[..];
                    each(Arrived {
                        text,
                        origin,
                        span,
                        fields,
                    });
                }
                Ok(None) => {
                    self.state = State::Done;
                    end = text.len();
                    break;
                }
                Err(error) if error.problem == ScanProblem::Truncated => break,
                Err(error) => return Err(self.refuse(error, at)),
            }
        }
        self.shape = records.into_shape();
        self.passed += end - at;
        Ok(end)
    }

    /// Refuses the text for an error that was found in a part of it, read from `at` on.
    fn refuse(&mut self, error: ScanError, at: usize) -> ScanError {
        let error = ScanError {
            at: self.passed + error.at - at,
            problem: error.problem,
        };
        self.state = State::Refused(error);
        error
    }
}
