//! Accepting connections, and letting them end.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::body::Body;
use super::connection::{Busy, Pace, Watched};
use super::crowd::{Inside, NoRoom};
use super::door::Peer;
use super::{App, Crowd, Current, admin, respond};
use crate::config::{Config, Transport};
use crate::listener::{Audience, Listener};

/// Most connections of operators: few look, and what they hold is not there for clients.
const MAX_OPERATORS: usize = 64;

/// How long clients may take, and how much their heads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// From the first byte of a request to the end of its head.
    pub(crate) header: Duration,
    /// Without any request.
    pub(crate) idle: Duration,
    /// For the answers under way when a listener closes.
    pub(crate) drain: Duration,
    /// The largest head of a request, in bytes.
    pub(crate) head: usize,
}

impl Patience {
    pub(crate) fn of(config: &Config) -> Self {
        Self {
            header: config.header_timeout,
            idle: config.idle_timeout,
            drain: config.shutdown_timeout,
            head: config.door.max_head_bytes,
        }
    }
}

/// How the end of a listener is told to it.
#[derive(Debug, Clone)]
pub(crate) struct Ending {
    /// No new connections; those there are may end their answers.
    pub(crate) closed: CancellationToken,
    /// No connections at all.
    pub(crate) cut: CancellationToken,
}

/// Serves `listener` until it is told to close, then lets the answers under way end. `crowd` is all who
/// are connected to listeners for the same audience.
pub(crate) async fn serve(
    current: Arc<Current>,
    listener: Listener,
    crowd: Arc<Crowd>,
    ending: Ending,
) {
    let Listener {
        at,
        audience,
        socket,
    } = listener;
    let graceful = GracefulShutdown::new();
    let wanted = current.app().upstream().descriptor_wanted();
    let accepting = async {
        loop {
            let accepted = tokio::select! {
                accepted = socket.accept() => accepted,
                () = wanted.notified(), if audience == Audience::Clients => {
                    crowd.make_room(&NoRoom::Unconnected).await;
                    continue;
                }
            };
            match accepted {
                Ok((stream, address)) => {
                    let app = current.app();
                    let most = match audience {
                        Audience::Clients => app.max_connections(),
                        Audience::Operators => MAX_OPERATORS,
                    };
                    crowd.room(most).await;
                    let patience = app.patience();
                    let pace = Pace::new(patience.header, patience.idle);
                    let leave = ending.cut.child_token();
                    let client = Client {
                        current: Arc::clone(&current),
                        audience,
                        address,
                        watcher: graceful.watcher(),
                        inside: crowd.enter(&pace, &leave),
                        pace,
                        leave,
                    };
                    match at.transport {
                        Transport::Plain => tokio::spawn(client.plain(stream)),
                        Transport::Tls => tokio::spawn(client.secure(stream)),
                    };
                }
                Err(why) => crowd.make_room(&NoRoom::NotAccepted(why)).await,
            }
        }
    };
    // Another may have the socket from now on: what comes then is for that one.
    tokio::select! {
        biased;
        () = ending.closed.cancelled() => {}
        () = accepting => {}
    }
    // No new connections while the old ones end.
    drop(socket);
    let drain = current.app().patience().drain;
    tracing::info!(connections = graceful.count(), "draining");
    tokio::select! {
        () = graceful.shutdown() => {}
        () = ending.cut.cancelled() => {}
        () = tokio::time::sleep(drain) => {
            tracing::warn!(after = ?drain, "answers still under way are cut off");
            ending.cut.cancel();
        }
    }
}

/// A connection that was accepted, beside its stream.
struct Client {
    current: Arc<Current>,
    audience: Audience,
    address: SocketAddr,
    /// Keeps the listener until the connection has ended.
    watcher: Watcher,
    /// When it comes and goes.
    pace: Arc<Pace>,
    /// That it has to end.
    leave: CancellationToken,
    /// Kept until its file descriptor is free.
    inside: Inside,
}

impl Client {
    async fn plain(self, stream: TcpStream) {
        send_at_once(&stream);
        let peer = self.current.app().door().peer(self.address);
        self.serve(stream, peer).await;
    }

    async fn secure(self, stream: TcpStream) {
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
        if let Some((peer, stream)) = secured {
            self.serve(stream, peer).await;
        }
    }

    async fn serve<S>(self, stream: S, peer: Arc<Peer>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Self {
            current,
            audience,
            watcher,
            pace,
            leave,
            inside,
            ..
        } = self;
        let app = current.app();
        let head = app.patience().head;
        let _counted = match audience {
            Audience::Clients => Some(app.metrics().connection()),
            Audience::Operators => None,
        };
        // Not kept beyond its own time.
        drop(app);
        let io = TokioIo::new(Watched::new(stream, Arc::clone(&pace)));
        let service = {
            let pace = Arc::clone(&pace);
            service_fn(move |request| {
                let busy = pace.request();
                answer(current.app(), audience, Arc::clone(&peer), busy, request)
            })
        };
        // The pace watches both times; hyper's one timer would end idle connections with the head's.
        let connection = http1::Builder::new()
            .header_read_timeout(None)
            .max_buf_size(head)
            .serve_connection(io, service);
        tokio::select! {
            ended = watcher.watch(connection) => if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended badly");
            },
            () = pace.run_out() => {}
            () = leave.cancelled() => {}
        }
        drop(inside);
    }
}

/// Answers are written whole; waiting for more would only delay them.
fn send_at_once(stream: &TcpStream) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY could not be set");
    }
}

async fn answer(
    app: Arc<App>,
    audience: Audience,
    peer: Arc<Peer>,
    busy: Busy,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let response = match audience {
        Audience::Clients => app.answer(peer, request).await,
        Audience::Operators => admin::answer(&app, request).await,
    };
    // Whoever asks again does so where there is no end in sight.
    let response = match audience {
        Audience::Clients if app.is_draining() => respond::last(response),
        Audience::Clients | Audience::Operators => response,
    };
    Ok(response.map(|body| body.holding(busy)))
}
