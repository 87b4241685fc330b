//! Requests by HTTP/2: several of them share a connection, which therefore has a task of its own.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::HOST;
use http::{Request, Response, Uri, Version};
use http_body::{Body, Frame};
use http_body_util::Full;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::TokioExecutor;

use super::Stream;
use super::heard::{Heard, Listening};
use super::incoming::{By, Incoming};
use super::kept::Kept;
use super::patience::{Limits, Patience, Reader};
use crate::config::BaseUrl;
use crate::upstream::Failure;
use crate::upstream::sockets::Socket;

/// What may come of an answer before it is read, in bytes: beyond that the backend waits.
const STREAM_WINDOW: u32 = 256 << 10;
/// The same for all answers of a connection, which is no bound: one that is not read may wait for
/// another to be.
const CONNECTION_WINDOW: u32 = 1 << 30;
/// The largest head of an answer, in bytes.
const HEAD: u32 = 128 << 10;
/// How many requests that were taken back are remembered for what still comes of them. More of them at
/// one time make the backend seem to break the protocol.
const TAKEN_BACK: usize = 1000;
/// Requests that a backend takes at one time, until it has told; RFC 9113, 6.5.2, advises to take no
/// fewer.
const FIRST_ROOM: usize = 100;

/// What hands requests to a connection and knows how many it takes; `None` once that has ended.
type Driver = Option<http2::Connection<Listening, Full<Bytes>, TokioExecutor>>;

/// A connection, as those know it who send by it. It lives until none of them is left.
#[derive(Clone)]
pub(super) struct Line {
    sender: SendRequest<Full<Bytes>>,
    driver: Arc<Mutex<Driver>>,
    heard: Heard,
    /// Its file descriptor among those of all; free once the connection is closed.
    socket: Arc<Mutex<Socket>>,
}

impl Line {
    /// Takes over what was connected.
    pub(super) async fn over(stream: Stream, socket: Socket) -> Result<Self, Failure> {
        let (stream, heard) = Listening::new(stream);
        let (sender, driver) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(HEAD)
            .max_concurrent_reset_streams(TAKEN_BACK)
            .initial_max_send_streams(FIRST_ROOM)
            .handshake(stream)
            .await
            .map_err(Failure::Unanswered)?;
        let driver = Arc::new(Mutex::new(Some(driver)));
        let socket = Arc::new(Mutex::new(socket));
        tokio::spawn(drive(Arc::clone(&driver), Arc::clone(&socket)));
        Ok(Self {
            sender,
            driver,
            heard,
            socket,
        })
    }

    /// Whether it may be kept though nobody uses it.
    pub(super) fn may_idle(&self) -> bool {
        lock(&self.socket).may_idle()
    }

    /// Whether it is known to have ended.
    pub(super) fn has_ended(&self) -> bool {
        self.sender.is_closed()
    }

    /// Whether its backend takes one request more beside so many.
    pub(super) fn has_room_beside(&self, requests: usize) -> bool {
        let driver = lock(&self.driver);
        let most = driver
            .as_ref()
            .map(http2::Connection::current_max_send_streams);
        most.is_some_and(|most| requests < most)
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").finish_non_exhaustive()
    }
}

/// Keeps the socket for as long as the connection is there.
async fn drive(driver: Arc<Mutex<Driver>>, _socket: Arc<Mutex<Socket>>) {
    let ended = poll_fn(|context| {
        let mut driver = lock(&driver);
        let Some(running) = &mut *driver else {
            return Poll::Ready(Ok(()));
        };
        let ended = ready!(Pin::new(running).poll(context));
        *driver = None;
        Poll::Ready(ended)
    });
    // Whoever has a request under way is told as well.
    if let Err(error) = ended.await {
        tracing::debug!(%error, "a connection to a backend ended badly");
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One request on a connection. Dropped before its end, it is taken back.
#[derive(Debug)]
pub(super) struct Exchange {
    line: Line,
    /// The connection among those that are kept.
    number: u64,
    home: Arc<Kept>,
    patience: Patience,
}

impl Exchange {
    /// One that is counted under `number` in `home`.
    pub(super) fn new(line: Line, number: u64, home: Arc<Kept>) -> Self {
        Self {
            line,
            number,
            home,
            patience: Patience::new(Reader::Other),
        }
    }

    /// Sends the request and waits for the head of its answer.
    pub(super) async fn send(
        mut self: Box<Self>,
        url: &BaseUrl,
        request: Request<Full<Bytes>>,
        limits: Limits,
    ) -> Result<Response<Incoming>, Failure> {
        let request = addressed(url, request).map_err(Failure::Unsendable)?;
        let mut answer = pin!(self.line.sender.send_request(request));
        self.patience.begin(limits);
        let answer = poll_fn(|context| match answer.as_mut().poll(context) {
            Poll::Ready(answer) => Poll::Ready(Ok(answer)),
            Poll::Pending => self.patience.poll(context).map(Err),
        });
        match answer.await {
            Ok(Ok(answer)) => {
                self.patience.rest();
                Ok(Incoming::of(answer, By::Exchange(self)))
            }
            Ok(Err(error)) => Err(self.failed(Failure::Unanswered(error))),
            Err(late) => Err(self.failed(late)),
        }
    }

    /// The next of a body that comes by this exchange.
    pub(super) fn poll_frame(
        &mut self,
        body: &mut hyper::body::Incoming,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        let frame = match Pin::new(&mut *body).poll_frame(context) {
            Poll::Ready(Some(frame)) => Some(frame.map_err(Failure::Cut)),
            // To hyper an answer that is taken back without a reason has ended well.
            Poll::Ready(None) if !body.is_end_stream() => Some(Err(Failure::TakenBack)),
            Poll::Ready(None) => None,
            Poll::Pending => Some(Err(ready!(self.patience.poll(context)))),
        };
        self.patience.rest();
        Poll::Ready(frame.map(|frame| frame.map_err(|failure| self.failed(failure))))
    }

    /// Takes in that no more requests should come this way: the connection may be dead, and nobody
    /// would tell.
    fn failed(&self, failure: Failure) -> Failure {
        self.home.give_up(self.number);
        match (self.line.heard.trouble(), failure) {
            (Some(trouble), Failure::Unanswered(_)) => Failure::Unconnected(trouble.into()),
            (_, Failure::Unanswered(error)) if is_no_http2(&error) => Failure::NoHttp2,
            (_, failure) => failure,
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.home.left(self.number);
    }
}

/// The request with what HTTP/2 has in the place of `Host`.
fn addressed<B>(url: &BaseUrl, mut request: Request<B>) -> Result<Request<B>, http::Error> {
    let mut whole = url.origin()?.into_parts();
    whole.path_and_query = request.uri().path_and_query().cloned();
    *request.uri_mut() = Uri::from_parts(whole)?;
    *request.version_mut() = Version::HTTP_2;
    request.headers_mut().remove(HOST);
    Ok(request)
}

/// Whether what came was no frame of HTTP/2 at all: a word of HTTP/1.1 reads as an endless one.
fn is_no_http2(error: &hyper::Error) -> bool {
    let cause = std::error::Error::source(error).and_then(|it| it.downcast_ref::<h2::Error>());
    cause.is_some_and(|it| it.is_library() && it.reason() == Some(h2::Reason::FRAME_SIZE_ERROR))
}
