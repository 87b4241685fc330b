//! The connections to one backend, kept between requests.

use std::collections::VecDeque;
use std::error::Error as _;
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tokio::time::{Instant, sleep_until, timeout_at};
use tower_service::Service;

use super::connection::Connection;
use super::exchange::{Exchange, Line};
use super::incoming::Incoming;
use super::patience::Limits;
use super::{Connector, Stream};
use crate::config::{BaseUrl, Protocol};
use crate::descriptors;
use crate::upstream::Failure;
use crate::upstream::sockets::{Purpose, Socket, Sockets};

/// An idle connection is given up before PuppetDB's own limit of 30 seconds would close it under a
/// request.
const IDLE: Duration = Duration::from_secs(20);

/// Connections to one backend: made when one is needed and none is idle, or has room.
#[derive(Debug)]
pub(in crate::upstream) struct Connections {
    connector: Connector,
    sockets: Sockets,
    kept: Arc<Kept>,
}

impl Connections {
    /// Connects to nobody yet. The idle ones of `others` are in common.
    pub(in crate::upstream) fn new(
        connector: Connector,
        sockets: &Sockets,
        others: Option<&Self>,
    ) -> Self {
        let kept = others.map_or_else(Arc::default, |others| Arc::clone(&others.kept));
        sockets.note(&kept);
        Self {
            connector,
            sockets: sockets.clone(),
            kept,
        }
    }

    /// What makes them.
    pub(in crate::upstream) fn connector(&self) -> &Connector {
        &self.connector
    }

    /// Sends a request to `url` and waits for the head of its answer, within `limits`.
    ///
    /// It is sent once more if the connection ended before an answer began: a backend may close a
    /// kept connection in the moment in which it is used again, and that is no failure of the
    /// backend. To repeat a POST is safe as well: it only carries a query.
    pub(in crate::upstream) async fn send(
        &self,
        url: &BaseUrl,
        request: Request<Full<Bytes>>,
        mut limits: Limits,
    ) -> Result<Response<Incoming>, Failure> {
        // What is rare is boxed, so that no other request makes room for it.
        let carrier = match self.kept.take() {
            Some(carrier) => carrier,
            None => Box::pin(self.connect(url, &mut limits)).await?,
        };
        let again = request.clone();
        match carrier.send(url, request, limits, &self.kept).await {
            Err(Failure::Unanswered(error)) if has_ended(&error) => {
                let carrier = Box::pin(self.connect(url, &mut limits)).await?;
                Box::pin(carrier.send(url, again, limits, &self.kept)).await
            }
            answered => answered,
        }
    }

    /// What is spoken on the connection that was made last.
    pub(in crate::upstream) fn spoken(&self) -> Option<Protocol> {
        self.kept.state().spoken
    }

    async fn connect(&self, url: &BaseUrl, limits: &mut Limits) -> Result<Carrier, Failure> {
        // Who finds another at it waits to share what becomes of that.
        let _turn = if self.connector.protocol == Protocol::Http2
            && self.spoken() != Some(Protocol::Http1)
        {
            let turn = timeout_at(limits.head, self.kept.making.lock()).await;
            Some(turn.map_err(|_| Failure::Timeout(limits.silence))?)
        } else {
            None
        };
        if let Some(exchange) = self.kept.share() {
            return Ok(Carrier::shared(exchange));
        }
        let (stream, socket) = self.reach(url, limits).await?;
        let protocol = self.connector.agreed(&stream);
        self.kept.state().spoken = Some(protocol);
        Ok(match protocol {
            Protocol::Http1 => Carrier::Own(Connection::over(stream, socket).await?),
            Protocol::Http2 => Carrier::shared(self.kept.add(Line::over(stream, socket).await?)),
        })
    }

    /// A stream to the backend, for which there may have to be waited: that is not the backend's time,
    /// so `limits` begin after it.
    async fn reach(&self, url: &BaseUrl, limits: &mut Limits) -> Result<(Stream, Socket), Failure> {
        let origin = url.origin().map_err(Failure::Unsendable)?;
        let wait = limits.silence;
        let began = Instant::now();
        let until = began + wait;
        let socket = self.sockets.take(limits.purpose, until).await;
        let socket = socket.ok_or(Failure::NoDescriptor(wait))?;
        limits.head += began.elapsed();
        loop {
            let mut connector = self.connector.clone();
            let connected = timeout_at(limits.head, async {
                poll_fn(|context| connector.poll_ready(context)).await?;
                connector.call(origin.clone()).await
            });
            match connected.await.map_err(|_| Failure::Timeout(wait))? {
                Ok(stream) => return Ok((stream, socket)),
                Err(error) if descriptors::are_lacking(&*error) => {
                    if limits.purpose == Purpose::Probe || Instant::now() >= until {
                        return Err(Failure::NoDescriptor(wait));
                    }
                    let since = Instant::now();
                    self.sockets.make_room().await;
                    limits.head += since.elapsed();
                }
                Err(error) => return Err(Failure::Unconnected(error)),
            }
        }
    }
}

/// A connection for one request.
enum Carrier {
    /// Its own.
    Own(Box<Connection>),
    /// One that others use as well.
    Shared(Box<Exchange>),
}

impl Carrier {
    fn shared(exchange: Exchange) -> Self {
        Self::Shared(Box::new(exchange))
    }

    async fn send(
        self,
        url: &BaseUrl,
        request: Request<Full<Bytes>>,
        limits: Limits,
        home: &Arc<Kept>,
    ) -> Result<Response<Incoming>, Failure> {
        match self {
            Self::Own(connection) => connection.send(request, limits, home).await,
            Self::Shared(exchange) => Box::pin(exchange.send(url, request, limits)).await,
        }
    }
}

/// Whether a connection ended before the first byte of an answer.
pub(in crate::upstream) fn has_ended(error: &hyper::Error) -> bool {
    let mut causes = std::iter::successors(error.source(), |cause| (*cause).source());
    error.is_incomplete_message() || error.is_canceled() || causes.any(is_end)
}

fn is_end(cause: &(dyn std::error::Error + 'static)) -> bool {
    let (io, has_left) = match cause.downcast_ref::<h2::Error>() {
        // What it leaves or refuses it has not looked at.
        Some(error) => (
            error.get_io(),
            error.is_remote()
                && (error.is_go_away() || error.reason() == Some(h2::Reason::REFUSED_STREAM)),
        ),
        None => (cause.downcast_ref(), false),
    };
    let is_gone = matches!(
        io.map(io::Error::kind),
        Some(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)
    );
    is_gone || has_left
}

/// Connections that can be used.
#[derive(Debug, Default)]
pub(in crate::upstream) struct Kept {
    state: Mutex<State>,
    /// Had by whoever makes a connection that others may share.
    making: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    /// Those for one request at a time, each since when; the last used is the last.
    idle: VecDeque<(Instant, Box<Connection>)>,
    /// Those for several.
    shared: Vec<Shared>,
    next: u64,
    spoken: Option<Protocol>,
    sweep: Sweep,
}

/// A connection that several requests use at one time.
#[derive(Debug)]
struct Shared {
    number: u64,
    line: Line,
    /// Those under way.
    requests: usize,
    /// When the last of them has ended.
    since: Instant,
}

/// Whether a task waits for connections to be idle for too long.
#[derive(Debug, Default, PartialEq, Eq)]
enum Sweep {
    #[default]
    Off,
    On,
}

impl State {
    /// Those shared ones that nobody uses: since when, and their numbers.
    fn idle_shared(&self) -> impl Iterator<Item = (Instant, u64)> {
        let idle = self.shared.iter().filter(|it| it.is_idle());
        idle.map(|it| (it.since, it.number))
    }

    fn take_shared(&mut self, number: u64) -> Option<Shared> {
        let at = self.shared.iter().position(|it| it.number == number)?;
        Some(self.shared.swap_remove(at))
    }
}

impl Shared {
    fn is_idle(&self) -> bool {
        self.requests == 0
    }

    fn is_fresh(&self) -> bool {
        !self.line.has_ended() && (!self.is_idle() || self.since.elapsed() < IDLE)
    }
}

impl Kept {
    /// The connection that was used last of those that can be used.
    fn take(self: &Arc<Self>) -> Option<Carrier> {
        loop {
            let Some((since, mut connection)) = self.state().idle.pop_back() else {
                return self.share().map(Carrier::shared);
            };
            if since.elapsed() < IDLE && connection.is_ready() {
                return Some(Carrier::Own(connection));
            }
        }
    }

    /// Since when that one is idle which is idle for longest.
    pub(in crate::upstream) fn idle_since(&self) -> Option<Instant> {
        let state = self.state();
        let idle = state.idle.front().map(|(since, _)| *since);
        idle.into_iter()
            .chain(state.idle_shared().map(|(since, _)| since))
            .min()
    }

    /// Ends the one that is idle for longest.
    pub(in crate::upstream) fn end_oldest(&self) {
        let mut state = self.state();
        let own = state.idle.front().map(|(since, _)| *since);
        let shared = state.idle_shared().min();
        let ended = match shared.filter(|(since, _)| own.is_none_or(|own| *since < own)) {
            Some((_, number)) => (None, state.take_shared(number)),
            None => (state.idle.pop_front(), None),
        };
        // To close it takes its time.
        drop(state);
        drop(ended);
    }

    /// One of the connections with room for one request more.
    fn share(self: &Arc<Self>) -> Option<Exchange> {
        let mut state = self.state();
        state.shared.retain(Shared::is_fresh);
        let has_room = |shared: &&mut Shared| shared.line.has_room_beside(shared.requests);
        let shared = state.shared.iter_mut().find(has_room)?;
        shared.requests += 1;
        let (line, number) = (shared.line.clone(), shared.number);
        Some(Exchange::new(line, number, Arc::clone(self)))
    }

    /// A request on a new connection, which others may share from now on.
    fn add(self: &Arc<Self>, line: Line) -> Exchange {
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        state.shared.push(Shared {
            number,
            line: line.clone(),
            requests: 1,
            since: Instant::now(),
        });
        Exchange::new(line, number, Arc::clone(self))
    }

    /// Takes in that a request on a shared connection has ended. One that is idle from now on is kept
    /// unless its file descriptor is wanted.
    pub(super) fn left(self: &Arc<Self>, number: u64) {
        let mut state = self.state();
        let Some(shared) = state.shared.iter_mut().find(|it| it.number == number) else {
            return;
        };
        shared.requests -= 1;
        shared.since = Instant::now();
        if !shared.is_idle() {
            return;
        }
        if shared.line.may_idle() {
            self.sweep(&mut state);
        } else {
            let ended = state.take_shared(number);
            drop(state);
            drop(ended);
        }
    }

    /// Sends no more requests by a shared connection.
    pub(super) fn give_up(&self, number: u64) {
        let ended = self.state().take_shared(number);
        drop(ended);
    }

    /// Keeps a connection that is idle from now on, unless its file descriptor is wanted.
    pub(super) fn keep(self: &Arc<Self>, mut connection: Box<Connection>) {
        let mut state = self.state();
        // Who waits for one says so before it looks for idle ones: it finds this, or this is not kept.
        if !connection.socket.may_idle() {
            drop(state);
            return;
        }
        state.idle.push_back((Instant::now(), connection));
        self.sweep(&mut state);
    }

    /// Sees to it that idle connections are ended.
    fn sweep(self: &Arc<Self>, state: &mut State) {
        if state.sweep == Sweep::Off {
            state.sweep = Sweep::On;
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
    }

    /// Ends the connections that have been idle for too long, and says when the next will have been.
    fn drop_idle(&self) -> Option<Instant> {
        let mut state = self.state();
        let fresh = state
            .idle
            .partition_point(|(since, _)| since.elapsed() >= IDLE);
        let old: Vec<_> = state.idle.drain(..fresh).collect();
        state.shared.retain(Shared::is_fresh);
        let next = state.idle.front().map(|(since, _)| *since);
        let shared = state.idle_shared().map(|(since, _)| since);
        let next = next.into_iter().chain(shared).min();
        if next.is_none() {
            state.sweep = Sweep::Off;
        }
        drop(state);
        // To close them takes its time.
        drop(old);
        next.map(|since| since + IDLE)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends what is idle for too long, until nothing is left.
async fn sweep(kept: Weak<Kept>) {
    let mut next = Instant::now() + IDLE;
    loop {
        sleep_until(next).await;
        match kept.upgrade().and_then(|kept| kept.drop_idle()) {
            Some(later) => next = later,
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use hyper_rustls::MaybeHttpsStream;
    use hyper_util::rt::TokioIo;
    use tokio::io::AsyncReadExt;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    /// A socket that is had, and a stream with its other end.
    async fn reached(sockets: &Sockets) -> (Stream, Socket, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await;
        let (backend, _) = listener.accept().await.unwrap();
        let stream = MaybeHttpsStream::Http(TokioIo::new(stream.unwrap()));
        let socket = sockets.take(Purpose::Request, Instant::now()).await;
        (stream, socket.unwrap(), backend)
    }

    async fn keep(kept: &Arc<Kept>, sockets: &Sockets, protocol: Protocol) -> TcpStream {
        let (stream, socket, backend) = reached(sockets).await;
        match protocol {
            Protocol::Http1 => kept.keep(Connection::over(stream, socket).await.unwrap()),
            Protocol::Http2 => drop(kept.add(Line::over(stream, socket).await.unwrap())),
        }
        backend
    }

    async fn is_ended(mut backend: TcpStream) -> bool {
        let mut greeting = Vec::new();
        backend.read_to_end(&mut greeting).await.is_ok()
    }

    #[tokio::test]
    async fn an_idle_connection_is_ended_before_puppetdb_would_end_it() {
        for protocol in [Protocol::Http1, Protocol::Http2] {
            let kept = Arc::<Kept>::default();
            let backend = keep(&kept, &Sockets::of(1, None), protocol).await;
            tokio::time::pause();
            let since = Instant::now();
            assert!(is_ended(backend).await);
            let lasted = since.elapsed();
            assert!(IDLE.abs_diff(lasted) < Duration::from_secs(1), "{lasted:?}");
            assert!(kept.take().is_none());
            tokio::time::resume();
        }
    }

    #[tokio::test]
    async fn an_idle_connection_makes_room_for_another_and_none_is_kept_while_somebody_waits() {
        for protocol in [Protocol::Http1, Protocol::Http2] {
            let (sockets, kept) = (Sockets::of(2, None), Arc::<Kept>::default());
            sockets.note(&kept);
            let (stream, socket, _backend) = reached(&sockets).await;
            let its_backend = keep(&kept, &sockets, protocol).await;
            let until = || Instant::now() + Duration::from_mins(1);
            let _third = sockets.take(Purpose::Request, until()).await.unwrap();
            assert!(is_ended(its_backend).await);
            let other = match protocol {
                Protocol::Http1 => Carrier::Own(Connection::over(stream, socket).await.unwrap()),
                Protocol::Http2 => {
                    Carrier::shared(kept.add(Line::over(stream, socket).await.unwrap()))
                }
            };
            let keeping = async {
                match other {
                    Carrier::Own(connection) => kept.keep(connection),
                    Carrier::Shared(exchange) => drop(exchange),
                }
            };
            let (fourth, ()) = tokio::join!(sockets.take(Purpose::Request, until()), keeping);
            assert!(fourth.is_some() && kept.take().is_none());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn probes_wait_for_nobody_and_their_connections_are_kept_if_there_is_room() {
        let sockets = Sockets::of(1, None);
        let taken = sockets.take(Purpose::Request, Instant::now()).await;
        let mut probe = sockets.take(Purpose::Probe, Instant::now()).await.unwrap();
        let until = Instant::now() + Duration::from_secs(1);
        assert!(sockets.take(Purpose::Request, until).await.is_none());
        assert!(!probe.may_idle());
        drop(taken);
        assert!(probe.may_idle());
        assert!(sockets.take(Purpose::Request, until).await.is_none());
    }
}
