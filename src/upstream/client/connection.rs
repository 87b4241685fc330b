//! One connection of HTTP/1.1 to a backend, driven by whoever waits for what comes by it.
//!
//! A connection has no task of its own: where a small answer is handed from one task to another, to
//! wake the other costs more than the answer does.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::Full;
use hyper::client::conn::http1;

use super::Stream;
use super::incoming::{By, Incoming};
use super::kept::Kept;
use super::patience::{Limits, Patience, Reader};
use crate::upstream::Failure;
use crate::upstream::sockets::Socket;

/// What a connection buffers at most. Many of them may be read at once, and what is read of a part is
/// noted at about its size.
const BUFFERED: usize = 128 << 10;

/// A connection by which one request at a time is sent.
#[derive(Debug)]
pub(super) struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    /// What reads and writes, until the connection ends.
    driver: Option<http1::Connection<Stream, Full<Bytes>>>,
    patience: Patience,
    /// Its file descriptor among those of all; free once the connection is closed.
    pub(super) socket: Socket,
}

impl Connection {
    /// Takes over what was connected.
    pub(super) async fn over(stream: Stream, socket: Socket) -> Result<Box<Self>, Failure> {
        let (sender, driver) = http1::Builder::new()
            .max_buf_size(BUFFERED)
            .handshake(stream)
            .await
            .map_err(Failure::Unanswered)?;
        Ok(Box::new(Self {
            sender,
            driver: Some(driver),
            patience: Patience::new(Reader::Waiter),
            socket,
        }))
    }

    /// Whether another request can be sent, as far as it is known on this side.
    pub(super) fn is_ready(&mut self) -> bool {
        self.drive(&mut quiet());
        self.driver.is_some() && self.sender.is_ready()
    }

    /// Sends a request and waits for the head of its answer. The connection is kept in `home` once the
    /// body is whole.
    pub(super) async fn send(
        mut self: Box<Self>,
        request: Request<Full<Bytes>>,
        limits: Limits,
        home: &Arc<Kept>,
    ) -> Result<Response<Incoming>, Failure> {
        let mut answer = pin!(self.sender.send_request(request));
        self.patience.begin(limits);
        let polled =
            poll_fn(|context| self.poll_for(context, |context| answer.as_mut().poll(context)));
        let answer = polled.await?.map_err(Failure::Unanswered)?;
        self.patience.rest();
        let home = Arc::clone(home);
        Ok(Incoming::of(answer, By::Connection(self, home)))
    }

    /// The next of a body that comes by this connection.
    pub(super) fn poll_frame(
        &mut self,
        body: &mut hyper::body::Incoming,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        let polled = self.poll_for(context, |context| Pin::new(&mut *body).poll_frame(context));
        let frame = match ready!(polled) {
            Ok(frame) => frame.map(|frame| frame.map_err(Failure::Cut)),
            Err(late) => Some(Err(late)),
        };
        self.patience.rest();
        Poll::Ready(frame)
    }

    /// Drives the connection until it has what `wanted` waits for, or patience runs out.
    ///
    /// What is wanted comes by the driver alone, so only the driver wakes the task, and only once
    /// nothing is left to be done: a task that wakes itself makes the runtime wake another thread.
    fn poll_for<T>(
        &mut self,
        context: &mut Context<'_>,
        mut wanted: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<Result<T, Failure>> {
        let mut quiet = quiet();
        // The driver reads no body that nobody waits for: so that comes first.
        let mut came = wanted(&mut quiet);
        if came.is_pending() {
            self.drive(&mut quiet);
            came = wanted(&mut quiet);
        }
        if came.is_pending() {
            self.drive(context);
            came = wanted(&mut quiet);
        }
        match came {
            Poll::Ready(came) => Poll::Ready(Ok(came)),
            Poll::Pending => self.patience.poll(context).map(Err),
        }
    }

    fn drive(&mut self, context: &mut Context<'_>) {
        if let Some(driver) = &mut self.driver
            && Pin::new(driver).poll(context).is_ready()
        {
            // How it ended is told to whoever waits for an answer or its body.
            self.driver = None;
        }
    }
}

/// Wakes nobody.
fn quiet() -> Context<'static> {
    Context::from_waker(Waker::noop())
}
