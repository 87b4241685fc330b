//! Accepting connections, and letting them end.

mod client;

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection::Pace;
use super::crowd::NoRoom;
use super::{Crowd, Current};
use crate::config::{Config, Transport};
use crate::listener::{Audience, Listener};
use client::Client;

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
    let connections = TaskTracker::new();
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
                        // Of its own: to look at one that all have in common takes turns.
                        closing: ending.closed.child_token(),
                        inside: crowd.enter(&pace, &leave),
                        pace,
                        leave,
                    };
                    match at.transport {
                        Transport::Plain => connections.spawn(client.plain(stream)),
                        Transport::Tls => connections.spawn(client.secure(stream)),
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
    connections.close();
    tracing::info!(connections = connections.len(), "draining");
    tokio::select! {
        () = connections.wait() => {}
        () = ending.cut.cancelled() => {}
        () = tokio::time::sleep(drain) => {
            tracing::warn!(after = ?drain, "answers still under way are cut off");
            ending.cut.cancel();
        }
    }
}
