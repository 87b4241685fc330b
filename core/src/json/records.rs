//! Iteration over one level of an array or object, by spans.

// As with the cursor.
#![allow(clippy::inline_always)]

use super::cursor::{Cursor, Key, Spelling};
use super::error::ScanError;
use super::neighbour::Neighbour;
use super::shape::{Known, Shape};
use super::simd::Level;
use super::text::unquote;

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

#[derive(Debug, Clone, Copy)]
pub(super) enum State {
    /// Nothing was read yet.
    Before,
    /// A value was read; a comma or the end comes next.
    Inside,
    /// Iteration is over.
    Done,
    /// The text was refused. Only [`Records`] remembers why; an iterator is just over.
    Refused(ScanError),
}

impl<'b> Elements<'b> {
    /// Begins to read `text`, which must hold one JSON array.
    pub fn new(text: &'b [u8]) -> Self {
        Self {
            cursor: Cursor::new(text, 0, Level::best()),
            state: State::Before,
        }
    }

    /// Reads with the instructions of `level` instead of the best.
    #[must_use]
    pub fn on(self, level: Level) -> Self {
        let cursor = self.cursor.on(level);
        Self { cursor, ..self }
    }

    /// Moves to the next element; `false` when the array and the text are over.
    #[inline(always)]
    fn advance(&mut self) -> Result<bool, ScanError> {
        let mut cursor = self.cursor;
        let more = match self.state {
            State::Inside => cursor.either(b',', b']')?,
            State::Before => {
                cursor.expect(b'[')?;
                cursor.peek()? != b']' || cursor.either(b',', b']')?
            }
            State::Done => return Ok(false),
            State::Refused(error) => return Err(error),
        };
        if more {
            self.state = State::Inside;
        } else {
            cursor.end()?;
            self.state = State::Done;
        }
        self.cursor = cursor;
        Ok(more)
    }

    fn element(&mut self) -> Result<Option<Span>, ScanError> {
        if self.advance()? {
            return self.cursor.value().map(Some);
        }
        Ok(None)
    }
}

impl Iterator for Elements<'_> {
    type Item = Result<Span, ScanError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.element();
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
    shape: Shape,
    last: Neighbour,
}

impl<'b, 'k> Records<'b, 'k> {
    /// Begins to read `text`, which must hold one JSON array of objects. `keys` are the names of
    /// the wanted members.
    pub fn new(text: &'b [u8], keys: &'k [&'k str]) -> Self {
        Self {
            text,
            elements: Elements::new(text),
            keys,
            shape: Shape::default(),
            last: Neighbour::default(),
        }
    }

    /// Reads with the instructions of `level` instead of the best.
    #[must_use]
    pub fn on(self, level: Level) -> Self {
        let elements = self.elements.on(level);
        Self { elements, ..self }
    }

    /// Goes on at `at` of a text whose array began elsewhere, with what was seen of its records.
    pub(super) fn resume(
        text: &'b [u8],
        at: usize,
        state: State,
        keys: &'k [&'k str],
        shape: Shape,
    ) -> Self {
        let cursor = Cursor::new(text, at, Level::best());
        Self {
            text,
            elements: Elements { cursor, state },
            keys,
            shape,
            last: Neighbour::default(),
        }
    }

    /// What was seen of the records.
    pub(super) fn into_shape(self) -> Shape {
        self.shape
    }

    /// Reads the next record and gives its span, or `None` after the last one.
    ///
    /// `fields` has a place for each wanted key, in their order; it is set to the span of that
    /// member's value, or to `None` if the record lacks it. Of a repeated member the last counts,
    /// as in most JSON readers. A text once refused stays refused, with the same error.
    ///
    /// # Panics
    /// If `fields` is shorter than the keys.
    pub fn next(&mut self, fields: &mut [Option<Span>]) -> Result<Option<Span>, ScanError> {
        let next = self.record(fields);
        if let Err(error) = next {
            self.elements.state = State::Refused(error);
        }
        next
    }

    fn record(&mut self, fields: &mut [Option<Span>]) -> Result<Option<Span>, ScanError> {
        if !self.elements.advance()? {
            return Ok(None);
        }
        fields.fill(None);
        let mut cursor = self.elements.cursor;
        cursor.peek()?;
        let start = cursor.at();
        let mut member = 0;
        loop {
            let mut known = None;
            if let Some(same) = self.last.same(self.text, cursor.at(), member, fields) {
                cursor.skip(same.length);
                (member, known) = (same.member, same.known);
            }
            let start = cursor.at();
            let known = match known {
                Some(known) => {
                    cursor.skip(known.length);
                    known
                }
                None => match self.member(&mut cursor, member)? {
                    Some(known) => known,
                    None => break,
                },
            };
            let value = cursor.value()?;
            self.last.learn(member, start, known, &value);
            if let Some(place) = known.place {
                fields[place] = Some(value);
            }
            member += 1;
        }
        self.last.ends(self.text, member);
        self.elements.cursor = cursor;
        Ok(Some(start..cursor.at()))
    }

    /// Consumes what announces the record's next member, or the end of the record.
    #[inline]
    fn member(
        &mut self,
        cursor: &mut Cursor<'b>,
        member: usize,
    ) -> Result<Option<Known>, ScanError> {
        if let Some(known) = self.shape.guess(member, cursor.rest()) {
            cursor.skip(known.length);
            return Ok(Some(known));
        }
        let before = cursor.at();
        if member == 0 {
            cursor.expect(b'{')?;
        }
        if (member > 0 || cursor.peek()? == b'}') && !cursor.either(b',', b'}')? {
            return Ok(None);
        }
        let key = cursor.key()?;
        let place = self.keys.iter().position(|name| key.is(name, self.text));
        Ok(Some(self.shape.learn(
            member,
            &self.text[before..cursor.at()],
            place,
        )))
    }
}

impl Key {
    /// Whether this key of `text` spells `name`.
    #[inline]
    fn is(&self, name: &str, text: &[u8]) -> bool {
        let raw = &text[self.span.clone()];
        match self.spelling {
            Spelling::Plain => raw[1..raw.len() - 1] == *name.as_bytes(),
            Spelling::Escaped => unquote(raw).is_some_and(|key| key == name),
        }
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
            cursor: Cursor::new(text, 0, Level::best()),
            state: State::Before,
        }
    }

    /// Reads with the instructions of `level` instead of the best.
    #[must_use]
    pub fn on(self, level: Level) -> Self {
        let cursor = self.cursor.on(level);
        Self { cursor, ..self }
    }

    fn member(&mut self) -> Result<Option<(Span, Span)>, ScanError> {
        let cursor = &mut self.cursor;
        let more = match self.state {
            State::Done => return Ok(None),
            State::Refused(error) => return Err(error),
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
        let key = cursor.key()?;
        Ok(Some((key.span, cursor.value()?)))
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
