//! Iteration over one level of an array or object, by spans.

use super::cursor::{Cursor, ScanError};
use super::text::key_is;

/// Where a value lies in the scanned text: byte offsets, end excluded.
pub type Span = std::ops::Range<usize>;

/// The elements of an array, in order, each as the span of its text.
///
/// The whole text must be that one array: anything after it is an error, and so is a text that ends
/// early. After an error or the end, iteration is over.
#[derive(Debug)]
pub struct Elements<'b> {
    cursor: Cursor<'b>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Before,
    Inside,
    Done,
}

impl<'b> Elements<'b> {
    /// Begins to read `text`, which must hold one JSON array.
    pub fn new(text: &'b [u8]) -> Self {
        Self {
            cursor: Cursor::new(text, 0),
            state: State::Before,
        }
    }

    /// Moves to the next element; `false` when the array and the text are over.
    fn advance(&mut self) -> Result<bool, ScanError> {
        let more = match self.state {
            State::Done => return Ok(false),
            State::Before => {
                self.cursor.expect(b'[')?;
                if self.cursor.peek()? == b']' {
                    self.cursor.either(b',', b']')?
                } else {
                    true
                }
            }
            State::Inside => self.cursor.either(b',', b']')?,
        };
        if more {
            self.state = State::Inside;
        } else {
            self.cursor.end()?;
            self.state = State::Done;
        }
        Ok(more)
    }
}

impl Iterator for Elements<'_> {
    type Item = Result<Span, ScanError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = match self.advance() {
            Ok(true) => self.cursor.value().map(Some),
            Ok(false) => Ok(None),
            Err(error) => Err(error),
        };
        if next.is_err() {
            self.state = State::Done;
        }
        next.transpose()
    }
}

/// The records of an array of objects, with the members that a decision needs.
#[derive(Debug)]
pub struct Records<'b, 'k> {
    text: &'b [u8],
    elements: Elements<'b>,
    keys: &'k [&'k str],
}

impl<'b, 'k> Records<'b, 'k> {
    /// Begins to read `text`, which must hold one JSON array of objects. `keys` are the names of
    /// the wanted members.
    pub fn new(text: &'b [u8], keys: &'k [&'k str]) -> Self {
        Self {
            text,
            elements: Elements::new(text),
            keys,
        }
    }

    /// Reads the next record and gives its span, or `None` after the last one.
    ///
    /// `fields` has a place for each wanted key, in their order; it is set to the span of that
    /// member's value, or to `None` if the record lacks it. Of a repeated member the last counts,
    /// as in most JSON readers. After an error the reader must not be used again.
    ///
    /// # Panics
    /// If `fields` is shorter than the keys.
    pub fn next(&mut self, fields: &mut [Option<Span>]) -> Result<Option<Span>, ScanError> {
        if !self.elements.advance()? {
            return Ok(None);
        }
        fields.fill(None);
        let cursor = &mut self.elements.cursor;
        cursor.expect(b'{')?;
        let start = cursor.at() - 1;
        let mut more = cursor.peek()? != b'}' || cursor.either(b',', b'}')?;
        while more {
            let key = cursor.string()?;
            cursor.expect(b':')?;
            let value = cursor.value()?;
            let key = &self.text[key];
            if let Some(place) = self.keys.iter().position(|wanted| key_is(key, wanted)) {
                fields[place] = Some(value);
            }
            more = cursor.either(b',', b'}')?;
        }
        Ok(Some(start..cursor.at()))
    }
}

/// The members of an object, in order, each as the spans of its key (quotes included) and value.
///
/// The whole text must be that one object.
#[derive(Debug)]
pub struct Members<'b> {
    cursor: Cursor<'b>,
    state: State,
}

impl<'b> Members<'b> {
    /// Begins to read `text`, which must hold one JSON object.
    pub fn new(text: &'b [u8]) -> Self {
        Self {
            cursor: Cursor::new(text, 0),
            state: State::Before,
        }
    }

    fn member(&mut self) -> Result<Option<(Span, Span)>, ScanError> {
        let cursor = &mut self.cursor;
        let more = match self.state {
            State::Done => return Ok(None),
            State::Before => {
                cursor.expect(b'{')?;
                cursor.peek()? != b'}' || cursor.either(b',', b'}')?
            }
            State::Inside => cursor.either(b',', b'}')?,
        };
        if !more {
            cursor.end()?;
            self.state = State::Done;
            return Ok(None);
        }
        self.state = State::Inside;
        let key = cursor.string()?;
        cursor.expect(b':')?;
        Ok(Some((key, cursor.value()?)))
    }
}

impl Iterator for Members<'_> {
    type Item = Result<(Span, Span), ScanError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.member();
        if next.is_err() {
            self.state = State::Done;
        }
        next.transpose()
    }
}
