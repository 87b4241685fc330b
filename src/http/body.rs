//! Bodies of answers.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt};
use http_body::{Frame, SizeHint};
use pdbmux_core::answer::{Piece, Pieces, Source};

use super::connection::Busy;
use super::door::Place;
use super::seeing::Watch;
use crate::upstream::Failure;

/// Runs of at least this many bytes are sent from where they lie; shorter ones are gathered, since a
/// write of many tiny parts costs more than their copy.
const SLICE: usize = 8 << 10;
/// Size of the buffers that short runs are gathered in.
const GATHER: usize = 64 << 10;

/// The body of an answer.
pub(crate) struct Body {
    kind: Kind,
    /// Kept until the last byte is handed over.
    busy: Option<Busy>,
    /// As is this.
    place: Place,
    /// Told of what is handed over, up to the end.
    watch: Option<Box<Watch>>,
}

enum Kind {
    /// Known whole, as what is left of it.
    Whole { parts: VecDeque<Bytes>, left: u64 },
    /// Passed on as it arrives. An error in it breaks the connection, so that no client takes a
    /// shortened answer for a whole one.
    Passing {
        bytes: BoxStream<'static, Result<Bytes, Failure>>,
        length: Option<u64>,
        /// Why it breaks off, until what came before is written.
        failure: Option<Box<Failure>>,
    },
}

impl Body {
    /// A text known whole.
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::parts(VecDeque::from([bytes.into()]))
    }

    /// The pieces of a merged answer; `bodies` are those of the round.
    pub(crate) fn pieces(pieces: Pieces, bodies: &[Bytes]) -> Self {
        Self::parts(gather(pieces, bodies))
    }

    /// Parts of a body known whole.
    pub(crate) fn parts(parts: VecDeque<Bytes>) -> Self {
        let left = parts.iter().map(|part| part.len() as u64).sum();
        Self {
            kind: Kind::Whole { parts, left },
            busy: None,
            place: Place::default(),
            watch: None,
        }
    }

    /// A body that is passed on as it arrives; `length` if it is known.
    pub(crate) fn passing(
        bytes: impl Stream<Item = Result<Bytes, Failure>> + Send + 'static,
        length: Option<u64>,
    ) -> Self {
        Self {
            kind: Kind::Passing {
                bytes: bytes.boxed(),
                length,
                failure: None,
            },
            busy: None,
            place: Place::default(),
            watch: None,
        }
    }

    /// All of it, if it is known whole and at most `longest` bytes.
    pub(crate) fn into_whole(self, longest: usize) -> Result<Bytes, Self> {
        match self.kind {
            Kind::Whole { mut parts, left } if left <= longest as u64 => Ok(match parts.len() {
                1 => parts.pop_front().unwrap_or_default(),
                _ => parts.into_iter().collect::<Vec<_>>().concat().into(),
            }),
            _ => Err(self),
        }
    }

    /// The same body, telling `watch` how it goes.
    pub(crate) fn watched(mut self, watch: Box<Watch>) -> Self {
        self.watch = Some(watch);
        self
    }

    /// The same body, keeping `place` until it ends.
    pub(crate) fn keeping(mut self, place: Place) -> Self {
        self.place = place;
        self
    }

    /// The same body, keeping `busy` until it ends.
    pub(crate) fn holding(mut self, busy: Busy) -> Self {
        self.busy = Some(busy);
        self
    }
}

/// The parts in which a body is sent, given the bodies of the round.
pub(crate) fn gather(pieces: Pieces, bodies: &[Bytes]) -> VecDeque<Bytes> {
    gather_list(&pieces.list, &Bytes::from(pieces.made), bodies)
}

/// The same, but a few pieces at a time, so that never much of them is copied.
pub(crate) fn gather_slowly(pieces: Pieces, bodies: Vec<Bytes>) -> impl Iterator<Item = Bytes> {
    let made = Bytes::from(pieces.made);
    let mut list = pieces.list.into_iter();
    let batches = std::iter::from_fn(move || {
        let mut length = 0;
        let mut batch = Vec::new();
        while length < GATHER {
            let Some(piece) = list.next() else {
                break;
            };
            length += piece.span.len();
            batch.push(piece);
        }
        (!batch.is_empty()).then(|| gather_list(&batch, &made, &bodies))
    });
    batches.flatten()
}

fn gather_list(list: &[Piece], made: &Bytes, bodies: &[Bytes]) -> VecDeque<Bytes> {
    let mut parts = VecDeque::new();
    let mut gathered = Vec::new();
    let mut left: usize = list.iter().map(|piece| piece.span.len()).sum();
    for piece in list {
        let whole = match piece.source {
            Source::Reply(at) => &bodies[usize::from(at)],
            Source::Made => made,
        };
        let (span, length) = (piece.span.clone(), piece.span.len());
        if length >= SLICE || gathered.len() + length > GATHER {
            flush(&mut gathered, &mut parts);
        }
        if length >= SLICE {
            parts.push_back(whole.slice(span));
        } else {
            if gathered.is_empty() {
                gathered.reserve_exact(left.min(GATHER));
            }
            gathered.extend_from_slice(&whole[span]);
        }
        left -= length;
    }
    flush(&mut gathered, &mut parts);
    parts
}

fn flush(gathered: &mut Vec<u8>, parts: &mut VecDeque<Bytes>) {
    if !gathered.is_empty() {
        parts.push_back(Bytes::from(std::mem::take(gathered)));
    }
}

impl Kind {
    fn poll_part(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Failure>>> {
        match self {
            Self::Whole { parts, left } => Poll::Ready(parts.pop_front().map(|part| {
                *left -= part.len() as u64;
                Ok(part)
            })),
            Self::Passing { bytes, failure, .. } => {
                if let Some(failure) = failure.take() {
                    return Poll::Ready(Some(Err(*failure)));
                }
                match ready!(bytes.poll_next_unpin(context)) {
                    Some(Err(why)) => {
                        // A body that fails ends the connection with all that is not written by
                        // then, the head included; one that waits has it written.
                        *failure = Some(Box::new(why));
                        context.waker().wake_by_ref();
                        Poll::Pending
                    }
                    part => Poll::Ready(part),
                }
            }
        }
    }

    /// Whether it is known that nothing is left.
    fn is_over(&self) -> bool {
        matches!(self, Self::Whole { parts, .. } if parts.is_empty())
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Failure;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        let Self { kind, watch, .. } = &mut *self;
        let Some(watch) = watch else {
            return kind.poll_part(context).map_ok(Frame::data);
        };
        let part = ready!(watch.step(|| kind.poll_part(context)));
        match &part {
            Some(Ok(part)) => watch.hands_over(part.len()),
            Some(Err(_)) => {}
            None => watch.ends(),
        }
        Poll::Ready(part.map(|part| part.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.kind.is_over()
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Whole { left, .. } => SizeHint::with_exact(*left),
            Kind::Passing {
                length: Some(length),
                ..
            } => SizeHint::with_exact(*length),
            Kind::Passing { length: None, .. } => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use pdbmux_core::answer::Piece;

    use super::*;

    #[test]
    fn short_pieces_are_gathered_and_long_ones_sent_from_where_they_lie() {
        let body = Bytes::from(vec![b'x'; 2 * SLICE]);
        let made: Vec<u8> = (0..=255).cycle().take(GATHER + SLICE).collect();
        let piece = |source, span| Piece { source, span };
        let mut list = vec![piece(Source::Made, 0..3), piece(Source::Reply(0), 0..SLICE)];
        list.extend((0..made.len()).map(|at| piece(Source::Made, at..at + 1)));
        let whole = [&made[..3], &body[..SLICE], &made[..]].concat();

        let parts = gather(Pieces { list, made }, std::slice::from_ref(&body));

        let lengths: Vec<_> = parts.iter().map(Bytes::len).collect();
        assert_eq!(lengths, [3, SLICE, GATHER, SLICE]);
        assert_eq!(parts[1].as_ptr(), body.as_ptr());
        assert_eq!(parts.into_iter().flatten().collect::<Vec<u8>>(), whole);
    }
}
