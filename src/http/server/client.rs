//! One connection of a client, from its first byte to its last.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::super::body::Body;
use super::super::connection::{Pace, Watched};
use super::super::crowd::Inside;
use super::super::door::Peer;
use super::super::{App, Current, admin, respond};
use crate::config::Protocol;
use crate::listener::Audience;

/// Most requests at one time on one connection of HTTP/2. More are refused by what the client was told
/// when it connected; it can ask on another connection.
const MAX_STREAMS: u32 = 100;
/// Requests that a client may take back before they were looked at; one more ends its connection.
const MAX_TAKEN_BACK: usize = 20;
/// Requests of a connection that are so wrong that they have no answer; one more ends it.
const MAX_WRONG: usize = 100;
/// What may come of one request's body before it is read, in bytes.
const STREAM_WINDOW: u32 = 16 << 10;
/// The same for all bodies of a connection: one that waits for its place holds up no other.
const CONNECTION_WINDOW: u32 = MAX_STREAMS * STREAM_WINDOW;
/// What waits to be sent of one answer before more of it is made, in bytes: beyond that a slow client
/// slows the backends.
const SEND_BUFFER: usize = 64 << 10;
/// How long a client has to take in that its connection ends, once nothing is asked on it, or to ask
/// the first on a new one.
const GOODBYE: Duration = Duration::from_secs(1);

/// A connection that was accepted, beside its stream.
pub(super) struct Client {
    pub(super) current: Arc<Current>,
    pub(super) audience: Audience,
    pub(super) address: SocketAddr,
    /// When it comes and goes.
    pub(super) pace: Arc<Pace>,
    /// That it takes no more requests than those under way.
    pub(super) closing: CancellationToken,
    /// That it has to end.
    pub(super) leave: CancellationToken,
    /// Kept until its file descriptor is free.
    pub(super) inside: Inside,
}

impl Client {
    pub(super) async fn plain(self, stream: TcpStream) {
        send_at_once(&stream);
        let peer = self.current.app().door().peer(self.address);
        self.serve(stream, None, peer).await;
    }

    pub(super) async fn secure(self, stream: TcpStream) {
        send_at_once(&stream);
        let app = self.current.app();
        let secure = app
            .door()
            .secure(stream, self.address, app.patience().header);
        let secured = tokio::select! {
            secured = secure => secured,
            () = self.leave.cancelled() => None,
        };
        // Not kept beyond its own time.
        drop(app);
        if let Some((peer, protocol, stream)) = secured {
            self.serve(stream, Some(protocol), peer).await;
        }
    }

    /// Serves it by the protocol that was agreed on, or that its first bytes tell.
    async fn serve<S>(self, stream: S, agreed: Option<Protocol>, peer: Arc<Peer>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let _counted = match self.audience {
            Audience::Clients => Some(self.current.app().metrics().connection()),
            Audience::Operators => None,
        };
        let mut stream = Watched::new(stream, Arc::clone(&self.pace));
        let mut patience = pin!(self.pace.run_out());
        let agreed = match agreed {
            Some(_) => agreed,
            None => self.begun(&mut stream, patience.as_mut()).await,
        };
        let Some(protocol) = agreed else {
            return;
        };
        match protocol {
            Protocol::Http1 => tokio::select! {
                () = self.http1(stream, &peer) => {}
                () = patience => {}
                () = self.leave.cancelled() => {}
            },
            // Rare: boxed, so that no other connection makes room for it.
            Protocol::Http2 => tokio::select! {
                () = Box::pin(self.http2(stream, &peer, patience)) => {}
                () = self.leave.cancelled() => {}
            },
        }
        drop(self.inside);
    }

    /// What the client begins with; `None` if it does not begin. What it sends on a connection that
    /// was just made is still answered where no more are taken: nobody else would.
    async fn begun<S>(
        &self,
        stream: &mut Watched<S>,
        patience: Pin<&mut impl Future<Output = ()>>,
    ) -> Option<Protocol>
    where
        S: AsyncRead + Unpin,
    {
        let late = async {
            self.closing.cancelled().await;
            tokio::time::sleep(GOODBYE).await;
        };
        let protocol = tokio::select! {
            protocol = stream.protocol() => protocol,
            () = patience => return None,
            () = late => return None,
            () = self.leave.cancelled() => return None,
        };
        protocol.inspect_err(ended_badly).ok()
    }

    async fn http1<S>(&self, stream: Watched<S>, peer: &Arc<Peer>)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let audience = self.audience;
        let service = service_fn(|request| {
            let busy = self.pace.request();
            let (app, peer) = (self.current.app(), Arc::clone(peer));
            async move {
                let response = answer(&app, audience, peer, request).await;
                let response = if ends_connections(&app, audience) {
                    respond::last(response)
                } else {
                    response
                };
                Ok::<_, Infallible>(response.map(|body| body.holding(busy)))
            }
        });
        // The pace watches both times; hyper's one timer would end idle connections with the head's.
        let connection = http1::Builder::new()
            .header_read_timeout(None)
            .max_buf_size(self.max_head())
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = pin!(connection);
        let ended = tokio::select! {
            // First: a connection that is told to end before it has read anything closes at once.
            biased;
            ended = connection.as_mut() => ended,
            () = self.closing.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            ended_badly(&error);
        }
    }

    /// Each request is a task of its own here, which ends when its client takes the request back.
    async fn http2<S>(
        &self,
        stream: Watched<S>,
        peer: &Arc<Peer>,
        patience: Pin<&mut impl Future<Output = ()>>,
    ) where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let audience = self.audience;
        let service = service_fn(|request: Request<Incoming>| {
            let busy = self.pace.request();
            let (app, peer) = (self.current.app(), Arc::clone(peer));
            let closing = self.closing.clone();
            async move {
                let is_head = request.method() == Method::HEAD;
                let response = answer(&app, audience, peer, request).await;
                if ends_connections(&app, audience) {
                    closing.cancel();
                }
                let response = if is_head {
                    respond::bare(response)
                } else {
                    response
                };
                Ok::<_, Infallible>(response.map(|body| body.holding(busy)))
            }
        });
        let connection = http2::Builder::new(TokioExecutor::new())
            .max_header_list_size(u32::try_from(self.max_head()).unwrap_or(u32::MAX))
            .max_concurrent_streams(MAX_STREAMS)
            .max_pending_accept_reset_streams(MAX_TAKEN_BACK)
            .max_local_error_reset_streams(MAX_WRONG)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_send_buf_size(SEND_BUFFER)
            .serve_connection(TokioIo::new(stream.unwatched()), service);
        let mut connection = pin!(connection);
        let leaving = async {
            tokio::select! {
                () = self.closing.cancelled() => {}
                () = patience => {}
            }
        };
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = leaving => {
                connection.as_mut().graceful_shutdown();
                // One that is gone never says that it has taken this in.
                tokio::select! {
                    ended = connection => ended,
                    () = self.pace.rests(GOODBYE) => return,
                }
            }
        };
        if let Err(error) = ended {
            ended_badly(&error);
        }
    }

    fn max_head(&self) -> usize {
        self.current.app().patience().head
    }
}

/// Answers are written whole; waiting for more would only delay them.
fn send_at_once(stream: &TcpStream) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY could not be set");
    }
}

fn ended_badly<E: std::error::Error>(error: &E) {
    tracing::debug!(%error, "a connection ended badly");
}

async fn answer(
    app: &Arc<App>,
    audience: Audience,
    peer: Arc<Peer>,
    request: Request<Incoming>,
) -> Response<Body> {
    match audience {
        Audience::Clients => app.answer(peer, request).await,
        Audience::Operators => admin::answer(app, request).await,
    }
}

/// Whether whoever asks again is to do so where there is no end in sight.
fn ends_connections(app: &App, audience: Audience) -> bool {
    match audience {
        Audience::Clients => app.is_draining(),
        Audience::Operators => false,
    }
}
