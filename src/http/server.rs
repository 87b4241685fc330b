//! Accepting connections, and letting them end.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::App;
use super::body::Body;
use super::connection::{Pace, Watched};
use crate::config::Config;

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
    /// For the answers under way when the daemon stops.
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

/// Serves `listener` until `shutdown`, then lets the answers under way end.
pub(crate) async fn serve(
    app: Arc<App>,
    listener: TcpListener,
    patience: Patience,
    shutdown: impl Future<Output = ()>,
) {
    let graceful = GracefulShutdown::new();
    let cut = CancellationToken::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut shutdown => break,
        };
        match accepted {
            Ok((stream, _)) => accept(&app, stream, patience, &graceful, cut.clone()),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    // No new connections while the old ones end.
    drop(listener);
    app.drain();
    tracing::info!(connections = graceful.count(), "draining");
    if tokio::time::timeout(patience.drain, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!(after = ?patience.drain, "answers still under way are cut off");
        cut.cancel();
    }
}

fn accept(
    app: &Arc<App>,
    stream: TcpStream,
    patience: Patience,
    graceful: &GracefulShutdown,
    cut: CancellationToken,
) {
    // Answers are written whole; waiting for more would only delay them.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY could not be set");
    }
    let pace = Pace::new(patience.header, patience.idle);
    let io = TokioIo::new(Watched::new(stream, Arc::clone(&pace)));
    let app = Arc::clone(app);
    let service = {
        let pace = Arc::clone(&pace);
        service_fn(move |request| answer(Arc::clone(&app), Arc::clone(&pace), request))
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
    app: Arc<App>,
    pace: Arc<Pace>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let busy = pace.request();
    let response = app.answer(request).await;
    Ok(response.map(|body| body.holding(busy)))
}
