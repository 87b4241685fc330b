//! The bodies of answers as they arrive.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http_body::{Body, Frame, SizeHint};
use tokio::task::coop;

use super::places::Place;
use super::question::Question;
use super::{Failure, client};
use crate::gzip::Gunzip;
use crate::metrics::Outcome;

/// The body of an answer as it arrives, decompressed. An error in it is the last that it gives.
#[derive(Debug)]
pub struct Incoming {
    sent: client::Incoming,
    coding: Coding,
    counted: Option<Counted>,
    /// Longest wait for the next part of it.
    pub(super) timeout: Duration,
    /// Among those of its backend, until it is read or given up.
    pub(super) place: Option<Place>,
}

/// The question that is answered, and what it has come to once the body is whole.
#[derive(Debug)]
struct Counted {
    asking: Question,
    whole: Outcome,
}

#[derive(Debug)]
enum Coding {
    Identity,
    Gzip(Box<Gunzip>),
}

impl Incoming {
    /// The answer with its body decompressed, and without the headers that say how it was sent. A
    /// coding that nobody asked for is read all the same, if it can be.
    pub(super) fn of(
        response: Response<client::Incoming>,
        timeout: Duration,
    ) -> Result<Response<Self>, Failure> {
        let (mut head, sent) = response.into_parts();
        let coding = match head.headers.get(CONTENT_ENCODING) {
            None => Coding::Identity,
            Some(it) if it.as_bytes().eq_ignore_ascii_case(b"identity") => Coding::Identity,
            Some(it) if is_gzip(it.as_bytes()) => Coding::Gzip(Box::new(Gunzip::new())),
            Some(other) => {
                let other = String::from_utf8_lossy(other.as_bytes()).into_owned();
                return Err(Failure::Encoding(other));
            }
        };
        head.headers.remove(CONTENT_ENCODING);
        if let Coding::Gzip(_) = coding {
            head.headers.remove(CONTENT_LENGTH);
        }
        Ok(Response::from_parts(
            head,
            Self {
                sent,
                coding,
                counted: None,
                timeout,
                place: None,
            },
        ))
    }

    /// Takes in whose answer it is; that has come to `whole` if the body comes to its end.
    pub(super) fn counted(&mut self, mut asking: Question, whole: Outcome) {
        if self.sent.is_end_stream() {
            asking.ends(whole);
        }
        self.counted = Some(Counted { asking, whole });
    }

    /// Takes in that the body is of no use, and gives back why.
    pub(super) fn given_up(&mut self, why: Failure) -> Failure {
        if let Some(counted) = &mut self.counted {
            counted.asking.ends(why.outcome());
        }
        why
    }

    /// Takes in what came of the connection.
    fn count(&mut self, frame: Option<&Result<Frame<Bytes>, Failure>>) {
        let is_over = self.sent.is_end_stream();
        let Some(Counted { asking, whole }) = &mut self.counted else {
            return;
        };
        match frame {
            Some(Ok(frame)) => asking.received(frame.data_ref().map_or(0, Bytes::len)),
            Some(Err(failure)) => asking.ends(failure.outcome()),
            None => {}
        }
        if is_over && !matches!(frame, Some(Err(_))) {
            asking.ends(*whole);
        }
    }
}

fn is_gzip(coding: &[u8]) -> bool {
    // RFC 9110, 8.4.1.3.
    coding.eq_ignore_ascii_case(b"gzip") || coding.eq_ignore_ascii_case(b"x-gzip")
}

impl Body for Incoming {
    type Data = Bytes;
    type Error = Failure;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        let this = self.get_mut();
        loop {
            let turn = match &mut this.coding {
                Coding::Identity => None,
                Coding::Gzip(gunzip) => {
                    // A few compressed bytes can be work for long, which others of this worker wait
                    // for.
                    let turn = ready!(coop::poll_proceed(context));
                    if let Some(piece) = gunzip.piece().transpose() {
                        turn.made_progress();
                        let piece = piece.map_err(|damage| this.given_up(Failure::Gzip(damage)));
                        return Poll::Ready(Some(piece.map(Frame::data)));
                    }
                    Some(turn)
                }
            };
            let frame = ready!(Pin::new(&mut this.sent).poll_frame(context));
            this.count(frame.as_ref());
            let Coding::Gzip(gunzip) = &mut this.coding else {
                return Poll::Ready(frame);
            };
            match frame {
                Some(Ok(frame)) => gunzip.feed(frame.into_data().unwrap_or_default()),
                Some(Err(failure)) => return Poll::Ready(Some(Err(failure))),
                None => {
                    let end = gunzip.end().map_err(Failure::Gzip);
                    return Poll::Ready(end.err().map(|failure| Err(this.given_up(failure))));
                }
            }
            if let Some(turn) = turn {
                turn.made_progress();
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.coding {
            Coding::Identity => self.sent.size_hint(),
            Coding::Gzip(_) => SizeHint::default(),
        }
    }
}
