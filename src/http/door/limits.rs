//! How many requests are answered at one time.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::Peer;
use crate::config::{DoorConfig, duration};
use crate::metrics::Shed;

/// The bounds on requests that are answered or wait.
#[derive(Debug)]
pub(super) struct Limits {
    queue: Option<Queue>,
    /// Most requests of one address; 0 is without bound.
    per_client: usize,
}

/// Places, and those who wait for one.
#[derive(Debug)]
struct Queue {
    free: Arc<Semaphore>,
    most: usize,
    waiting: AtomicUsize,
    longest: usize,
    patience: Duration,
}

/// What a request has while it is answered, up to the last byte.
#[derive(Debug, Default)]
pub(crate) struct Place {
    _free: Option<OwnedSemaphorePermit>,
    _counted: Option<Counted>,
}

/// A request in the count of its client.
#[derive(Debug)]
pub(super) struct Counted(Arc<Peer>);

/// Why there is no place. Its text is the answer's.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Crowd {
    /// Nobody left in time.
    #[error(
        "the {most} requests that max_in_flight allows are being answered, and none has ended for \
         {}",
        duration::format(.patience)
    )]
    Late {
        /// How many there may be.
        most: usize,
        /// How long was waited.
        patience: Duration,
    },
    /// As many wait as may.
    #[error(
        "the {most} requests that max_in_flight allows are being answered, and as many wait as \
         queue_length allows, {longest}"
    )]
    Long {
        /// How many there may be.
        most: usize,
        /// How many may wait.
        longest: usize,
        /// How long those wait at most.
        patience: Duration,
    },
    /// The client has as many requests under way as it may.
    #[error("the {0} requests that max_per_client allows to one client are under way")]
    Greedy(usize),
}

impl Limits {
    pub(super) fn of(config: &DoorConfig) -> Self {
        let most = config.max_in_flight;
        Self {
            queue: (most > 0).then(|| Queue {
                free: Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS))),
                most,
                waiting: AtomicUsize::new(0),
                longest: config.queue_length,
                patience: config.queue_timeout,
            }),
            per_client: config.max_per_client,
        }
    }

    /// A place for a request that is counted.
    pub(super) async fn place(&self, counted: Option<Counted>) -> Result<Place, Crowd> {
        let free = match &self.queue {
            None => None,
            Some(queue) => Some(queue.permit().await?),
        };
        Ok(Place {
            _free: free,
            _counted: counted,
        })
    }

    /// Counts a request of `peer`, if that is bounded.
    pub(super) fn count(&self, peer: &Arc<Peer>) -> Result<Option<Counted>, Crowd> {
        let Some(under_way) = peer.under_way() else {
            return Ok(None);
        };
        let more = |now: usize| (now < self.per_client).then_some(now + 1);
        match under_way.fetch_update(Relaxed, Relaxed, more) {
            Ok(_) => Ok(Some(Counted(Arc::clone(peer)))),
            Err(_) => Err(Crowd::Greedy(self.per_client)),
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if let Some(under_way) = self.0.under_way() {
            under_way.fetch_sub(1, Relaxed);
        }
    }
}

impl Queue {
    async fn permit(&self) -> Result<OwnedSemaphorePermit, Crowd> {
        if let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() {
            return Ok(permit);
        }
        let (most, longest, patience) = (self.most, self.longest, self.patience);
        let _waiting = Waiting::among(&self.waiting, longest).ok_or(Crowd::Long {
            most,
            longest,
            patience,
        })?;
        let permit = timeout(patience, Arc::clone(&self.free).acquire_owned()).await;
        let permit = permit.ok().and_then(Result::ok);
        permit.ok_or(Crowd::Late { most, patience })
    }
}

/// One who waits, until it is dropped.
struct Waiting<'q>(&'q AtomicUsize);

impl<'q> Waiting<'q> {
    fn among(waiting: &'q AtomicUsize, longest: usize) -> Option<Self> {
        let more = |now: usize| (now < longest).then_some(now + 1);
        let joined = waiting.fetch_update(Relaxed, Relaxed, more);
        // Not `then_some`: one that has not joined must not leave.
        joined.is_ok().then(|| Self(waiting))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Crowd {
    /// What there is too little of.
    pub(crate) fn lack(&self) -> Shed {
        match self {
            Self::Late { .. } => Shed::QueueTime,
            Self::Long { .. } => Shed::QueueLength,
            Self::Greedy(_) => Shed::PerClient,
        }
    }

    /// When a client may try again: once those who wait now are through, or gone.
    pub(crate) fn retry_after(&self) -> Duration {
        match self {
            Self::Late { patience, .. } | Self::Long { patience, .. } => *patience,
            Self::Greedy(_) => Duration::ZERO,
        }
        .max(Duration::from_secs(1))
    }
}

#[cfg(test)]
mod tests {
    use super::super::peer::{Peers, Shown};
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn whatever_ends_a_request_gives_its_place_back() {
        let config = DoorConfig {
            max_in_flight: 1,
            max_per_client: 2,
            queue_length: 1,
            ..DoorConfig::default()
        };
        let limits = Arc::new(Limits::of(&config));
        let peers = Peers::of(&config);
        let address = "10.0.0.1:1".parse().unwrap();
        let peer = Arc::new(Peer::new(&peers, address, Shown::Nothing));
        let place = async |limits: &Limits, peer: &Arc<Peer>| {
            let counted = limits.count(peer)?;
            limits.place(counted).await
        };
        for _ in 0..3 {
            // One that panics, and meanwhile one that waits in vain and one that leaves.
            let (panics, counts) = (Arc::clone(&limits), Arc::clone(&peer));
            let (tell, told) = tokio::sync::oneshot::channel();
            let panicking = tokio::spawn(async move {
                let _place = place(&panics, &counts).await.unwrap();
                let () = told.await.unwrap();
                panic!("of a test");
            });
            tokio::task::yield_now().await;
            let late = place(&limits, &peer).await.unwrap_err();
            assert!(matches!(late, Crowd::Late { .. }), "{late}");
            let leaves = timeout(Duration::ZERO, place(&limits, &peer)).await;
            assert!(leaves.is_err());
            tell.send(()).unwrap();
            assert!(panicking.await.unwrap_err().is_panic());
            drop(place(&limits, &peer).await.unwrap());
        }
    }
}
