//! A merged answer, made of ranges of what the backends sent.

mod pretty;

use crate::json::Span;

pub(crate) use pretty::pretty;

/// Where a run of bytes lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// In the body of the reply at this place of the round.
    Reply(u16),
    /// In the bytes made here.
    Made,
}

/// A run of bytes of the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Where the bytes lie.
    pub source: Source,
    /// Their range there.
    pub span: Span,
}

/// The body of an answer as a list of ranges: nothing that a backend sent is copied.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pieces {
    /// The ranges, in the order of the answer.
    pub list: Vec<Piece>,
    /// The bytes that [`Source::Made`] ranges lie in.
    pub made: Vec<u8>,
}

impl Pieces {
    /// Appends a range; it joins the one before where the two touch.
    pub(crate) fn push(&mut self, source: Source, span: Span) {
        match self.list.last_mut() {
            _ if span.is_empty() => {}
            Some(last) if last.source == source && last.span.end == span.start => {
                last.span.end = span.end;
            }
            _ => self.list.push(Piece { source, span }),
        }
    }

    /// Appends bytes made here.
    #[inline]
    pub(crate) fn push_made(&mut self, bytes: &[u8]) {
        let start = self.made.len();
        self.made.extend_from_slice(bytes);
        self.push(Source::Made, start..self.made.len());
    }

    /// Length of the whole answer in bytes.
    pub fn len(&self) -> usize {
        self.list.iter().map(|piece| piece.span.len()).sum()
    }

    /// Whether the answer has no byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of `piece`, given the bodies of the round.
    pub fn bytes<'b>(&'b self, piece: &Piece, bodies: &[&'b [u8]]) -> &'b [u8] {
        let whole = match piece.source {
            Source::Reply(at) => bodies[usize::from(at)],
            Source::Made => &self.made,
        };
        &whole[piece.span.clone()]
    }

    /// The whole answer in one buffer.
    pub fn assemble(&self, bodies: &[&[u8]]) -> Vec<u8> {
        let mut whole = Vec::with_capacity(self.len());
        for piece in &self.list {
            whole.extend_from_slice(self.bytes(piece, bodies));
        }
        whole
    }
}

/// Builds a JSON array out of elements that lie in several bodies.
///
/// Neighbours in one body stay one range, with the separators that the backend put between them.
#[derive(Debug)]
pub(crate) struct ArrayPieces<'b> {
    bodies: &'b [&'b [u8]],
    pieces: Pieces,
    /// The last element, if it lies whole in one body.
    last: Option<(u16, Span)>,
    first: bool,
}

impl<'b> ArrayPieces<'b> {
    /// Begins an array over `bodies`.
    pub(crate) fn new(bodies: &'b [&'b [u8]]) -> Self {
        let mut pieces = Pieces::default();
        pieces.push_made(b"[");
        Self {
            bodies,
            pieces,
            last: None,
            first: true,
        }
    }

    /// Makes room for as many elements more.
    pub(crate) fn reserve(&mut self, elements: usize) {
        // Most are a range each, with something made between them: a separator, a key.
        self.pieces.list.reserve(2 * elements);
        self.pieces.made.reserve(32 * elements);
    }

    /// Goes on with an array whose beginning was written before; `written` tells whether there is an
    /// element in it.
    pub(crate) fn resume(bodies: &'b [&'b [u8]], written: bool) -> Self {
        Self {
            bodies,
            pieces: Pieces::default(),
            last: None,
            first: !written,
        }
    }

    /// What was written of an array that goes on, and whether there is an element in it by now.
    pub(crate) fn pause(self) -> (Pieces, bool) {
        let is_begun = self.is_begun();
        (self.pieces, is_begun)
    }

    /// Whether there is an element in it.
    pub(crate) fn is_begun(&self) -> bool {
        !self.first
    }

    /// Appends elements that were written elsewhere, with the separator before them.
    pub(crate) fn append(&mut self, text: &[u8]) {
        self.last = None;
        self.first = false;
        self.pieces.push_made(text);
    }

    /// The body at `at`.
    pub(crate) fn body(&self, at: u16) -> &'b [u8] {
        self.bodies[usize::from(at)]
    }

    /// Appends an element of the body at `at`, or several neighbours as one range.
    pub(crate) fn element(&mut self, at: u16, span: Span) {
        let begin = match &self.last {
            Some((body, last))
                if *body == at && only_separators(self.body(at), last.end, span.start) =>
            {
                last.end
            }
            _ => {
                self.separate();
                span.start
            }
        };
        self.pieces.push(Source::Reply(at), begin..span.end);
        self.last = Some((at, span));
    }

    /// Appends an element that the caller puts together from parts.
    pub(crate) fn compose(&mut self) -> &mut Pieces {
        self.separate();
        self.last = None;
        &mut self.pieces
    }

    fn separate(&mut self) {
        if !self.first {
            self.pieces.push_made(b",");
        }
        self.first = false;
    }

    pub(crate) fn finish(mut self) -> Pieces {
        self.pieces.push_made(b"]");
        self.pieces
    }
}

/// Whether `text` has nothing between elements of an array from `from` up to `to`.
pub(crate) fn only_separators(text: &[u8], from: usize, to: usize) -> bool {
    let gap = text.get(from..to);
    gap.is_some_and(|gap| {
        gap.iter()
            .all(|byte| matches!(byte, b',' | b' ' | b'\n' | b'\r' | b'\t'))
    })
}

/// What a merge made of a round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The body.
    pub pieces: Pieces,
    /// The value of `X-Records`, if it is to be sent (R013).
    pub total: Option<u64>,
    /// How many backends' answers went into it (R014).
    pub contributed: usize,
    /// How many upstream records bore the source fact's name and were dropped (R070).
    pub dropped: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_one_body_stay_one_range() {
        let bodies: [&[u8]; 2] = [b"[1, 2,3]", b"[4]"];
        let mut array = ArrayPieces::new(&bodies);
        array.element(0, 1..2);
        array.element(0, 4..5);
        array.element(1, 1..2);
        array.element(0, 6..7);
        array.compose().push_made(b"{}");
        array.element(0, 1..2);
        let pieces = array.finish();
        assert_eq!(pieces.assemble(&bodies), b"[1, 2,4,3,{},1]");
        assert_eq!(pieces.len(), 15);
        assert_eq!(
            pieces.list[1],
            Piece {
                source: Source::Reply(0),
                span: 1..5
            }
        );
    }

    #[test]
    fn elements_between_others_are_never_joined() {
        let bodies: [&[u8]; 1] = [b"[1,2,3]"];
        let mut array = ArrayPieces::new(&bodies);
        array.element(0, 1..2);
        array.element(0, 5..6);
        array.element(0, 3..4);
        assert_eq!(array.finish().assemble(&bodies), b"[1,3,2]");
    }

    #[test]
    fn no_element_is_an_empty_array() {
        assert_eq!(ArrayPieces::new(&[]).finish().assemble(&[]), b"[]");
    }
}
