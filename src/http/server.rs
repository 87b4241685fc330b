//! Accepting connections, and letting them end.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::body::Body;
use super::connection::{Pace, Watched};
use super::{Current, admin};
use crate::config::Config;
use crate::listener::{Audience, Listener};

/// Pause after a failed accept: the reason is mostly a lack of file descriptors, which ends when a
/// connection does.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How long clients may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// From the first byte of a request to the end of its head.
    pub(crate) header: Duration,
    /// Without any request.
    pub(crate) idle: Duration,
    /// For the answers under way when a listener closes.
    pub(crate) drain: Duration,
}

impl Patience {
    pub(crate) fn of(config: &Config) -> Self {
        Self {
            header: config.header_timeout,
            idle: config.idle_timeout,
            drain: config.shutdown_timeout,
        }
    }
}

/// How the end of a listener is told to it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ending {
    /// No new connections; those there are may end their answers.
    pub(crate) closed: CancellationToken,
    /// No connections at all.
    pub(crate) cut: CancellationToken,
}

/// Serves `listener` until it is told to close, then lets the answers under way end.
pub(crate) async fn serve(current: Arc<Current>, listener: Listener, ending: Ending) {
    let Listener {
        audience, socket, ..
    } = listener;
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            accepted = socket.accept() => accepted,
            () = ending.closed.cancelled() => break,
        };
        match accepted {
            Ok((stream, _)) => accept(&current, audience, stream, &graceful, ending.cut.clone()),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    // No new connections while the old ones end.
    drop(socket);
    let drain = current.app().patience().drain;
    tracing::info!(connections = graceful.count(), "draining");
    if tokio::time::timeout(drain, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!(after = ?drain, "answers still under way are cut off");
        ending.cut.cancel();
    }
}

fn accept(
    current: &Arc<Current>,
    audience: Audience,
    stream: TcpStream,
    graceful: &GracefulShutdown,
    cut: CancellationToken,
) {
    // Answers are written whole; waiting for more would only delay them.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY could not be set");
    }
    let patience = current.app().patience();
    let pace = Pace::new(patience.header, patience.idle);
    let io = TokioIo::new(Watched::new(stream, Arc::clone(&pace)));
    let current = Arc::clone(current);
    let service = {
        let pace = Arc::clone(&pace);
        service_fn(move |request| {
            answer(Arc::clone(&current), audience, Arc::clone(&pace), request)
        })
    };
    // The pace watches both times; hyper's one timer would end idle connections with the head's.
    let connection = http1::Builder::new()
        .header_read_timeout(None)
        .serve_connection(io, service);
    let connection = graceful.watch(connection);
    tokio::spawn(async move {
        tokio::select! {
            ended = connection => if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended badly");
            },
            () = pace.run_out() => {}
            () = cut.cancelled() => {}
        }
    });
}

async fn answer(
    current: Arc<Current>,
    audience: Audience,
    pace: Arc<Pace>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let busy = pace.request();
    let app = current.app();
    let response = match audience {
        Audience::Clients => app.answer(request).await,
        Audience::Operators => admin::answer(&app, request).await,
    };
    Ok(response.map(|body| body.holding(busy)))
}
