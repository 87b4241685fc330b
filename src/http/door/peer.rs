//! Who is at the other side of a connection.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::config::DoorConfig;

/// The addresses that have connections, each with its requests under way. Only kept where they are
/// counted.
#[derive(Debug)]
pub(super) struct Peers(Option<Mutex<HashMap<IpAddr, Arc<AtomicUsize>>>>);

/// The other side of a connection.
#[derive(Debug)]
pub(crate) struct Peer {
    address: IpAddr,
    shown: Shown,
    /// Requests of its address that are under way, on all its connections; `None` if they are not
    /// counted.
    under_way: Option<Arc<AtomicUsize>>,
    peers: Arc<Peers>,
}

/// What the other side has shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Shown {
    /// Its connection is not encrypted, so that it could show nothing.
    Nothing,
    /// A certificate of these names; of none if it has shown none.
    Certificate(Vec<Arc<str>>),
}

impl Peers {
    pub(super) fn of(config: &DoorConfig) -> Arc<Self> {
        Arc::new(Self((config.max_per_client > 0).then(Mutex::default)))
    }

    fn counts(&self) -> Option<MutexGuard<'_, HashMap<IpAddr, Arc<AtomicUsize>>>> {
        let counts = self.0.as_ref()?;
        Some(counts.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Peer {
    pub(super) fn new(peers: &Arc<Peers>, address: SocketAddr, shown: Shown) -> Self {
        // A listener on every IPv6 interface sees IPv4 ones as a part of those.
        let address = address.ip().to_canonical();
        let counts = peers.counts();
        let under_way = counts.map(|mut counts| Arc::clone(counts.entry(address).or_default()));
        Self {
            address,
            shown,
            under_way,
            peers: Arc::clone(peers),
        }
    }

    /// Where it is.
    pub(crate) fn address(&self) -> IpAddr {
        self.address
    }

    /// The first name of the certificate that it has shown.
    pub(crate) fn name(&self) -> Option<&str> {
        match &self.shown {
            Shown::Nothing => None,
            Shown::Certificate(names) => names.first().map(|name| &**name),
        }
    }

    /// What it has shown.
    pub(super) fn shown(&self) -> &Shown {
        &self.shown
    }

    /// How many requests of its address are under way, where that is counted.
    pub(super) fn under_way(&self) -> Option<&AtomicUsize> {
        self.under_way.as_deref()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if let Some(own) = self.under_way.take()
            && let Some(mut counts) = self.peers.counts()
            // Its own and the map's: under the lock nobody takes another.
            && Arc::strong_count(&own) == 2
        {
            counts.remove(&self.address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_kept_for_as_long_as_it_has_a_connection() {
        let config = DoorConfig {
            max_per_client: 1,
            ..DoorConfig::default()
        };
        let peers = Peers::of(&config);
        let peer = |address: &str| Peer::new(&peers, address.parse().unwrap(), Shown::Nothing);
        let kept = || peers.counts().unwrap().len();
        let first = peer("10.0.0.1:1");
        let second = peer("[::ffff:10.0.0.1]:2");
        let other = peer("[::1]:2");
        assert_eq!(kept(), 2);
        drop(first);
        assert_eq!(kept(), 2);
        drop((second, other));
        assert_eq!(kept(), 0);
        assert!(Peers::of(&DoorConfig::default()).counts().is_none());
    }
}
