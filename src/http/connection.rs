//! How long a client may keep a connection without using it.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::config::Protocol;

/// What a client of HTTP/2 begins with (RFC 9113, 3.4); in no request of HTTP/1.1 is that right.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// How much is read before it is known which of them is spoken, in bytes: mostly a whole head.
const FIRST: usize = 4 << 10;

/// Where a connection stands, and when its client's patience runs out.
#[derive(Debug)]
pub(crate) struct Pace {
    header: Duration,
    idle: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    stage: Stage,
    since: Instant,
    /// Requests under way.
    requests: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing came since the last answer.
    Idle,
    /// A request's head has begun to come.
    Head,
    /// A request is being answered.
    Busy,
}

impl Pace {
    pub(crate) fn new(header: Duration, idle: Duration) -> Arc<Self> {
        let state = State {
            stage: Stage::Idle,
            since: Instant::now(),
            requests: 0,
        };
        Arc::new(Self {
            header,
            idle,
            state: Mutex::new(state),
        })
    }

    /// Ends when the connection has been idle, or its request's head incomplete, for too long.
    pub(crate) async fn run_out(&self) {
        // A look at least this often is in time for whatever stage is entered meanwhile. To move a
        // timer at each stage would wake the runtime's driver for each request.
        let step = self.header.min(self.idle);
        loop {
            let now = Instant::now();
            let next = match self.deadline() {
                Some(deadline) if deadline <= now => return,
                Some(deadline) => deadline.min(now + step),
                None => now + step,
            };
            tokio::time::sleep_until(next).await;
        }
    }

    /// Ends when nothing has been asked for this long, from now on.
    pub(crate) async fn rests(&self, time: Duration) {
        let from = Instant::now();
        loop {
            let now = Instant::now();
            let next = match self.idle_since() {
                Some(since) => since.max(from) + time,
                None => now + time,
            };
            if next <= now {
                return;
            }
            tokio::time::sleep_until(next).await;
        }
    }

    /// A request has come whole; the connection is in use until the guard is dropped.
    pub(crate) fn request(self: &Arc<Self>) -> Busy {
        self.state().requests += 1;
        self.enter(Stage::Busy);
        Busy(Arc::clone(self))
    }

    /// Since when nothing is asked, if nothing is.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let state = self.state();
        (state.stage == Stage::Idle).then_some(state.since)
    }

    fn deadline(&self) -> Option<Instant> {
        let state = self.state();
        match state.stage {
            Stage::Idle => Some(state.since + self.idle),
            Stage::Head => Some(state.since + self.header),
            Stage::Busy => None,
        }
    }

    fn bytes_came(&self) {
        if self.state().stage == Stage::Idle {
            self.enter(Stage::Head);
        }
    }

    fn enter(&self, stage: Stage) {
        let mut now = self.state();
        now.stage = stage;
        now.since = Instant::now();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Held while a request is answered, up to the last byte.
#[derive(Debug)]
pub(crate) struct Busy(Arc<Pace>);

impl Drop for Busy {
    fn drop(&mut self) {
        let left = {
            let mut state = self.0.state();
            state.requests -= 1;
            state.requests
        };
        if left == 0 {
            self.0.enter(Stage::Idle);
        }
    }
}

/// A stream that tells its [`Pace`] when bytes come.
#[derive(Debug)]
pub(crate) struct Watched<S> {
    stream: S,
    /// What was read of it already.
    ahead: Bytes,
    pace: Option<Arc<Pace>>,
}

impl<S> Watched<S> {
    pub(crate) fn new(stream: S, pace: Arc<Pace>) -> Self {
        Self {
            stream,
            ahead: Bytes::new(),
            pace: Some(pace),
        }
    }

    /// The same, which tells nobody: what comes by HTTP/2 may be anything but a request.
    pub(crate) fn unwatched(mut self) -> Self {
        if let Some(pace) = self.pace.take() {
            pace.enter(Stage::Idle);
        }
        self
    }
}

impl<S: AsyncRead + Unpin> Watched<S> {
    /// What the client speaks, by its first bytes. They are still there to be read.
    pub(crate) async fn protocol(&mut self) -> io::Result<Protocol> {
        let mut ahead = BytesMut::with_capacity(FIRST);
        loop {
            let more = self.read_buf(&mut ahead).await?;
            let begins = PREFACE.iter().zip(&ahead).all(|(one, other)| one == other);
            let protocol = match ahead.len() {
                length if begins && length >= PREFACE.len() => Protocol::Http2,
                _ if begins && more > 0 => continue,
                _ => Protocol::Http1,
            };
            self.ahead = ahead.freeze();
            return Ok(protocol);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.ahead.is_empty() {
            let length = self.ahead.len().min(buffer.remaining());
            buffer.put_slice(&self.ahead[..length]);
            self.ahead.advance(length);
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before
            && let Some(pace) = &self.pace
        {
            pace.bytes_came();
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Duration = Duration::from_secs(10);
    const IDLE: Duration = Duration::from_secs(75);

    async fn lasts(pace: &Pace) -> Duration {
        let start = Instant::now();
        pace.run_out().await;
        start.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_lasts_for_the_idle_time() {
        let pace = Pace::new(HEADER, IDLE);
        assert_eq!(lasts(&pace).await, IDLE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_dripping_head_lasts_for_the_header_time_from_its_first_byte() {
        let pace = Pace::new(HEADER, IDLE);
        pace.bytes_came();
        let start = Instant::now();
        let dripping = async {
            loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
                pace.bytes_came();
            }
        };
        tokio::select! {
            () = pace.run_out() => {}
            () = dripping => {}
        }
        assert_eq!(start.elapsed(), HEADER);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_under_way_has_no_limit_and_the_idle_time_begins_after_the_last() {
        let pace = Pace::new(HEADER, IDLE);
        let (first, second) = (pace.request(), pace.request());
        let start = Instant::now();
        let answering = async {
            tokio::time::sleep(Duration::from_secs(1000)).await;
            drop(first);
            tokio::time::sleep(Duration::from_secs(1000)).await;
            drop(second);
        };
        tokio::join!(answering, pace.run_out());
        assert_eq!(start.elapsed(), Duration::from_secs(2000) + IDLE);
    }
}
