//! The file descriptors of connections to backends: how many there may be at one time, and who makes
//! room where there are none.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::poll;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout_at};

use super::client::Kept;

/// Time between two attempts to have one of the system.
const PAUSE: Duration = Duration::from_millis(50);

/// Those of all backends.
#[derive(Debug, Clone)]
pub(super) struct Sockets(Arc<State>);

#[derive(Debug)]
struct State {
    free: Arc<Semaphore>,
    /// How many there are in all.
    most: usize,
    /// Who waits for one: nothing is kept idle meanwhile.
    waiting: AtomicUsize,
    /// Where idle connections are kept.
    kept: Mutex<Vec<Weak<Kept>>>,
    /// Told when the system has none left.
    wanted: Arc<Notify>,
}

/// One of them, had until it is dropped.
#[derive(Debug)]
pub(super) struct Socket {
    of: Sockets,
    /// None if it is one of those that are set aside.
    counted: Option<OwnedSemaphorePermit>,
}

/// For what a socket is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// For a request: it waits for its turn.
    Request,
    /// To see how a backend is, which is done in time whatever requests do.
    Probe,
}

impl Sockets {
    /// So many; those of `before` if they are as many.
    pub(super) fn of(most: usize, before: Option<&Self>) -> Self {
        let most = most.min(Semaphore::MAX_PERMITS);
        match before {
            Some(before) if before.0.most == most => before.clone(),
            _ => Self(Arc::new(State {
                free: Arc::new(Semaphore::new(most)),
                most,
                waiting: AtomicUsize::new(0),
                kept: Mutex::default(),
                wanted: before.map_or_else(Arc::default, |before| Arc::clone(&before.0.wanted)),
            })),
        }
    }

    /// Told when the system has no descriptor left for a connection.
    pub(super) fn wanted(&self) -> Arc<Notify> {
        Arc::clone(&self.0.wanted)
    }

    /// Takes in where idle connections are kept, which make room for others.
    pub(super) fn note(&self, kept: &Arc<Kept>) {
        let mut known = self.kept();
        known.retain(|it| it.strong_count() > 0);
        let kept = Arc::downgrade(kept);
        if !known.iter().any(|it| it.ptr_eq(&kept)) {
            known.push(kept);
        }
    }

    /// One of them, if there comes to be one in time. Who waits first has it first, and the connection
    /// that has been idle for longest goes for that.
    pub(super) async fn take(&self, purpose: Purpose, until: Instant) -> Option<Socket> {
        let counted = match purpose {
            Purpose::Probe => None,
            Purpose::Request => Some(self.counted(until).await?),
        };
        Some(Socket {
            of: self.clone(),
            counted,
        })
    }

    async fn counted(&self, until: Instant) -> Option<OwnedSemaphorePermit> {
        if let Ok(permit) = Arc::clone(&self.0.free).try_acquire_owned() {
            return Some(permit);
        }
        let _waiting = Waiting::new(&self.0.waiting);
        let mut permit = Box::pin(Arc::clone(&self.0.free).acquire_owned());
        // In the queue before one is given up: nobody else has that then.
        if poll!(&mut permit).is_pending() {
            self.end_idle();
        }
        timeout_at(until, permit).await.ok()?.ok()
    }

    /// Lets others make room where the system has no descriptor left, and waits for a moment.
    pub(super) async fn make_room(&self) {
        self.end_idle();
        self.0.wanted.notify_one();
        sleep(PAUSE).await;
    }

    /// Ends the connection that has been idle for longest, if there is one.
    fn end_idle(&self) {
        let kept: Vec<_> = self.kept().iter().filter_map(Weak::upgrade).collect();
        let oldest = kept
            .iter()
            .filter_map(|kept| Some((kept.idle_since()?, kept)));
        if let Some((_, kept)) = oldest.min_by_key(|(since, _)| *since) {
            kept.end_oldest();
        }
    }

    fn kept(&self) -> MutexGuard<'_, Vec<Weak<Kept>>> {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Socket {
    /// Whether its connection may be kept though it is idle: nobody waits for a socket, and it is one
    /// that is counted.
    pub(super) fn may_idle(&mut self) -> bool {
        let State { waiting, free, .. } = &*self.of.0;
        if self.counted.is_none() {
            self.counted = Arc::clone(free).try_acquire_owned().ok();
        }
        self.counted.is_some() && waiting.load(Relaxed) == 0
    }
}

/// Counts among those who wait for as long as it is there.
struct Waiting<'c>(&'c AtomicUsize);

impl<'c> Waiting<'c> {
    fn new(count: &'c AtomicUsize) -> Self {
        count.fetch_add(1, Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
