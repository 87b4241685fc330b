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

use super::Connector;
use super::connection::{Connection, Incoming, Limits};
use crate::config::BaseUrl;
use crate::descriptors;
use crate::upstream::Failure;
use crate::upstream::sockets::{Purpose, Sockets};

/// An idle connection is given up before PuppetDB's own limit of 30 seconds would close it under a
/// request.
const IDLE: Duration = Duration::from_secs(20);

/// Connections to one backend: made when one is needed and none is idle.
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
        let connection = match self.kept.take() {
            Some(connection) => connection,
            None => Box::pin(self.connect(url, &mut limits)).await?,
        };
        let again = request.clone();
        match connection.send(request, limits, &self.kept).await {
            Err(Failure::Unanswered(error)) if has_ended(&error) => {
                let connection = Box::pin(self.connect(url, &mut limits)).await?;
                Box::pin(connection.send(again, limits, &self.kept)).await
            }
            answered => answered,
        }
    }

    /// A new connection, for which there may have to be waited: that is not the backend's time, so
    /// `limits` begin after it.
    async fn connect(
        &self,
        url: &BaseUrl,
        limits: &mut Limits,
    ) -> Result<Box<Connection>, Failure> {
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
                Ok(stream) => return Connection::over(stream, socket).await,
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

/// Whether a connection ended before the first byte of an answer.
pub(in crate::upstream) fn has_ended(error: &hyper::Error) -> bool {
    let mut causes = std::iter::successors(error.source(), |cause| (*cause).source());
    error.is_incomplete_message()
        || error.is_canceled()
        || causes.any(|cause| {
            let io = cause.downcast_ref::<io::Error>().map(io::Error::kind);
            matches!(
                io,
                Some(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)
            )
        })
}

/// Connections that are idle.
#[derive(Debug, Default)]
pub(in crate::upstream) struct Kept(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Each since when; the last used is the last.
    idle: VecDeque<(Instant, Box<Connection>)>,
    sweep: Sweep,
}

/// Whether a task waits for connections to be idle for too long.
#[derive(Debug, Default, PartialEq, Eq)]
enum Sweep {
    #[default]
    Off,
    On,
}

impl Kept {
    /// The connection that was used last of those that can be used.
    fn take(&self) -> Option<Box<Connection>> {
        loop {
            let (since, mut connection) = self.state().idle.pop_back()?;
            if since.elapsed() < IDLE && connection.is_ready() {
                return Some(connection);
            }
        }
    }

    /// Since when that one is idle which is idle for longest.
    pub(in crate::upstream) fn idle_since(&self) -> Option<Instant> {
        self.state().idle.front().map(|(since, _)| *since)
    }

    /// Ends the one that is idle for longest.
    pub(in crate::upstream) fn end_oldest(&self) {
        let oldest = self.state().idle.pop_front();
        // To close it takes its time.
        drop(oldest);
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
        let next = state.idle.front().map(|(since, _)| *since + IDLE);
        if next.is_none() {
            state.sweep = Sweep::Off;
        }
        drop(state);
        // To close them takes its time.
        drop(old);
        next
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// A connection that has one of these sockets, and its other end.
    async fn connection(sockets: &Sockets) -> (Box<Connection>, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await;
        let (backend, _) = listener.accept().await.unwrap();
        let stream = MaybeHttpsStream::Http(TokioIo::new(stream.unwrap()));
        let socket = sockets.take(Purpose::Request, Instant::now()).await;
        let connection = Connection::over(stream, socket.unwrap()).await;
        (connection.unwrap(), backend)
    }

    #[tokio::test]
    async fn an_idle_connection_is_ended_before_puppetdb_would_end_it() {
        let (connection, mut backend) = connection(&Sockets::of(1, None)).await;
        let kept = Arc::<Kept>::default();
        kept.keep(connection);
        tokio::time::pause();
        let since = Instant::now();
        assert_eq!(backend.read(&mut [0]).await.unwrap(), 0);
        let lasted = since.elapsed();
        assert!(IDLE.abs_diff(lasted) < Duration::from_secs(1), "{lasted:?}");
        assert!(kept.take().is_none());
    }

    #[tokio::test]
    async fn an_idle_connection_makes_room_for_another_and_none_is_kept_while_somebody_waits() {
        let (sockets, kept) = (Sockets::of(2, None), Arc::<Kept>::default());
        sockets.note(&kept);
        let (oldest, mut its_backend) = connection(&sockets).await;
        let (other, _backend) = connection(&sockets).await;
        kept.keep(oldest);
        let until = || Instant::now() + Duration::from_mins(1);
        let _third = sockets.take(Purpose::Request, until()).await.unwrap();
        assert_eq!(its_backend.read(&mut [0]).await.unwrap(), 0);
        let keeping = async { kept.keep(other) };
        let (fourth, ()) = tokio::join!(sockets.take(Purpose::Request, until()), keeping);
        assert!(fourth.is_some() && kept.take().is_none());
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
