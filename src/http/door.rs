//! What stands between a connection and the answers: who is let in, and how many at one time.

mod limits;
mod peer;

use std::net::SocketAddr;
use std::sync::Arc;

use http::Response;

use self::limits::Limits;
use self::peer::Peers;
use super::body::Body;
use super::respond;
use crate::config::Config;

pub(crate) use limits::{Crowd, Place};
pub(crate) use peer::Peer;

/// Lets requests in, as it is configured.
#[derive(Debug)]
pub(crate) struct Door {
    peers: Arc<Peers>,
    limits: Limits,
}

impl Door {
    /// As it is configured.
    pub(crate) fn of(config: &Config) -> Self {
        Self {
            peers: Peers::of(&config.door),
            limits: Limits::of(&config.door),
        }
    }

    /// The other side of a connection from `address`.
    pub(crate) fn peer(&self, address: SocketAddr) -> Arc<Peer> {
        Arc::new(Peer::new(&self.peers, address))
    }

    /// A place for a request of `peer`, or the answer to it if there is none. To wait for one is left
    /// off by dropping the future.
    pub(super) async fn admit(&self, peer: &Arc<Peer>) -> Result<Place, Response<Body>> {
        let place = self.limits.place(peer).await;
        place.map_err(|crowd| respond::door::crowded(&crowd))
    }
}
