//! One connection to a backend, driven by whoever waits for what comes by it.
//!
//! A connection has no task of its own: where a small answer is handed from one task to another, to
//! wake the other costs more than the answer does.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use hyper::client::conn::http1;
use tokio::time::{Instant, Sleep, sleep_until};

use super::Stream;
use super::kept::Kept;
use crate::upstream::Failure;
use crate::upstream::sockets::{Purpose, Socket};

/// What a connection buffers at most. Many of them may be read at once, and what is read of a part is
/// noted at about its size.
const BUFFERED: usize = 128 << 10;

/// How long a backend may take.
#[derive(Debug, Clone, Copy)]
pub(in crate::upstream) struct Limits {
    /// When the head of its answer must be there.
    pub(in crate::upstream) head: Instant,
    /// The longest wait for the next part of the body.
    pub(in crate::upstream) silence: Duration,
    /// What it is asked for.
    pub(in crate::upstream) purpose: Purpose,
}

impl Limits {
    /// The same time for the head, from `since` on, as for each silence.
    pub(in crate::upstream) fn since(since: Instant, wait: Duration) -> Self {
        Self {
            head: since + wait,
            silence: wait,
            purpose: Purpose::Request,
        }
    }

    /// The same for a probe.
    pub(in crate::upstream) fn of_probe(wait: Duration) -> Self {
        Self {
            purpose: Purpose::Probe,
            ..Self::since(Instant::now(), wait)
        }
    }
}

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
            patience: Patience::new(),
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
        self.patience.silence = limits.silence;
        self.patience.until(limits.head);
        let polled =
            poll_fn(|context| self.poll_for(context, |context| answer.as_mut().poll(context)));
        let (head, body) = polled.await?.map_err(Failure::Unanswered)?.into_parts();
        self.patience.rest();
        let by = Some((self, Arc::clone(home)));
        let mut body = Incoming { body, by };
        if body.body.is_end_stream() {
            body.give_back();
        }
        Ok(Response::from_parts(head, body))
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

/// How long a silence may last.
///
/// The timer stays with the connection: to put it off costs nothing, while a new one would wake the
/// runtime's driver for each answer.
#[derive(Debug)]
struct Patience {
    timer: Pin<Box<Sleep>>,
    silence: Duration,
    stage: Stage,
}

#[derive(Debug, PartialEq, Eq)]
enum Stage {
    /// Something is waited for.
    Waiting,
    /// Nothing is, so that nothing is late.
    Resting,
}

impl Patience {
    fn new() -> Self {
        Self {
            timer: Box::pin(sleep_until(Instant::now())),
            silence: Duration::ZERO,
            stage: Stage::Resting,
        }
    }

    fn until(&mut self, deadline: Instant) {
        self.timer.as_mut().reset(deadline);
        self.stage = Stage::Waiting;
    }

    fn rest(&mut self) {
        self.stage = Stage::Resting;
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Failure> {
        if self.stage == Stage::Resting {
            self.until(Instant::now() + self.silence);
        }
        let silence = self.silence;
        self.timer
            .as_mut()
            .poll(context)
            .map(|()| Failure::Timeout(silence))
    }
}

/// The body of a backend's answer, as it comes. A silence that is too long is an error of it; dropped
/// before its end, it ends the connection.
#[derive(Debug)]
pub(in crate::upstream) struct Incoming {
    body: hyper::body::Incoming,
    /// The connection it comes by, until it has come whole, and where that is kept then.
    by: Option<(Box<Connection>, Arc<Kept>)>,
}

impl Incoming {
    fn give_back(&mut self) {
        if let Some((mut connection, home)) = self.by.take()
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
        let Some((connection, _)) = &mut this.by else {
            return Poll::Ready(None);
        };
        let body = &mut this.body;
        let polled =
            connection.poll_for(context, |context| Pin::new(&mut *body).poll_frame(context));
        let frame = match ready!(polled) {
            Ok(frame) => frame.map(|frame| frame.map_err(Failure::Cut)),
            Err(late) => Some(Err(late)),
        };
        connection.patience.rest();
        match &frame {
            Some(Ok(_)) if !this.body.is_end_stream() => {}
            Some(Ok(_)) | None => this.give_back(),
            Some(Err(_)) => this.by = None,
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.by.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
