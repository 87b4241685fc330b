//! The bodies of answers as they arrive.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::task::coop;

use super::places::Place;
use super::{Failure, client};
use crate::gzip::Gunzip;

/// The body of an answer as it arrives, decompressed. An error in it is the last that it gives.
#[derive(Debug)]
pub struct Incoming {
    sent: client::Incoming,
    coding: Coding,
    /// What was read of it already.
    ahead: Option<Bytes>,
    /// Longest wait for the next part of it.
    pub(super) timeout: Duration,
    /// Among those of its backend, until it is read or given up.
    pub(super) place: Option<Place>,
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
                ahead: None,
                timeout,
                place: None,
            },
        ))
    }

    /// Reads the first bytes, which then are still there to be read.
    pub(super) async fn read_ahead(&mut self) -> Result<(), Failure> {
        while self.ahead.is_none()
            && let Some(frame) = self.frame().await.transpose()?
        {
            self.ahead = frame.into_data().ok();
        }
        Ok(())
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
        let Self {
            sent,
            coding,
            ahead,
            ..
        } = self.get_mut();
        if let Some(bytes) = ahead.take() {
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        let mut sent = Pin::new(sent);
        let Coding::Gzip(gunzip) = coding else {
            return sent.poll_frame(context);
        };
        loop {
            // A few compressed bytes can be work for long, which others of this worker wait for.
            let turn = ready!(coop::poll_proceed(context));
            if let Some(piece) = gunzip.piece().map_err(Failure::Gzip).transpose() {
                turn.made_progress();
                return Poll::Ready(Some(piece.map(Frame::data)));
            }
            match ready!(sent.as_mut().poll_frame(context)) {
                Some(Ok(frame)) => gunzip.feed(frame.into_data().unwrap_or_default()),
                Some(Err(failure)) => return Poll::Ready(Some(Err(failure))),
                None => {
                    let end = gunzip.end().map_err(Failure::Gzip);
                    return Poll::Ready(end.err().map(Err));
                }
            }
            turn.made_progress();
        }
    }

    fn size_hint(&self) -> SizeHint {
        let ahead = self.ahead.as_ref().map_or(0, |bytes| bytes.len() as u64);
        let sent = self.sent.size_hint();
        match (&self.coding, sent.exact()) {
            (Coding::Identity, Some(length)) => SizeHint::with_exact(ahead + length),
            (Coding::Identity, None) => sent,
            (Coding::Gzip(_), _) => SizeHint::default(),
        }
    }
}
