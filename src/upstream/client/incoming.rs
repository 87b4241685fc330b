//! The body of a backend's answer, whatever connection it comes by.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::Response;
use http_body::{Body, Frame, SizeHint};

use super::connection::Connection;
use super::exchange::Exchange;
use super::kept::Kept;
use crate::upstream::Failure;

/// The body of a backend's answer, as it comes. A silence that is too long is an error of it. Dropped
/// before its end, it ends its connection, or takes the request back where others are on that.
#[derive(Debug)]
pub(in crate::upstream) struct Incoming {
    body: hyper::body::Incoming,
    by: By,
}

/// What a body comes by.
#[derive(Debug)]
pub(super) enum By {
    /// Nothing any more.
    Nothing,
    /// A connection of its own, and where that is kept once the body has come whole.
    Connection(Box<Connection>, Arc<Kept>),
    /// A connection that others use as well.
    Exchange(Box<Exchange>),
}

impl Incoming {
    /// The body of an answer whose head has come.
    pub(super) fn of(answer: Response<hyper::body::Incoming>, by: By) -> Response<Self> {
        answer.map(|body| {
            let mut body = Self { body, by };
            if body.body.is_end_stream() {
                body.give_back();
            }
            body
        })
    }

    fn give_back(&mut self) {
        if let By::Connection(mut connection, home) = std::mem::replace(&mut self.by, By::Nothing)
            && connection.is_ready()
        {
            home.keep(connection);
        }
    }
}

impl Body for Incoming {
    type Data = Bytes;
    type Error = Failure;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        let this = self.get_mut();
        let body = &mut this.body;
        let frame = match &mut this.by {
            By::Nothing => return Poll::Ready(None),
            By::Connection(connection, _) => ready!(connection.poll_frame(body, context)),
            By::Exchange(exchange) => ready!(exchange.poll_frame(body, context)),
        };
        match &frame {
            Some(Ok(_)) if !this.body.is_end_stream() => {}
            Some(Ok(_)) | None => this.give_back(),
            Some(Err(_)) => this.by = By::Nothing,
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.by, By::Nothing)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
