//! Work that is done once for all who want it at the same time.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The flights under way, by key (R217).
#[derive(Debug)]
pub(crate) struct Flights<T> {
    under_way: Arc<Mutex<UnderWay<T>>>,
}

#[derive(Debug)]
struct UnderWay<T> {
    flights: HashMap<String, (u64, Weak<Flight<T>>)>,
    /// How many flights there have been.
    started: u64,
}

/// A flight, as those hold it who take part in it.
///
/// It is a task of its own: no participant drives it, so one that leaves holds up nobody (R218). It
/// is owned by its participants and ends with the last of them (R219).
#[derive(Debug)]
pub(crate) struct Flight<T> {
    task: JoinHandle<()>,
    landed: watch::Receiver<Option<T>>,
}

impl<T: Clone + Send + Sync + 'static> Flights<T> {
    /// None under way.
    pub(crate) fn new() -> Self {
        let none = UnderWay {
            flights: HashMap::new(),
            started: 0,
        };
        Self {
            under_way: Arc::new(Mutex::new(none)),
        }
    }

    /// Takes part in the flight of `key`, until what this returns is dropped; `start` is called for
    /// it if there is none.
    pub(crate) fn join<F>(&self, key: &str, start: impl FnOnce() -> F) -> Arc<Flight<T>>
    where
        F: Future<Output = T> + Send + 'static,
    {
        let mut under_way = lock(&self.under_way);
        let joined = under_way.flights.get(key);
        if let Some(flight) = joined.and_then(|(_, flight)| flight.upgrade()) {
            return flight;
        }
        let work = start();
        under_way.started += 1;
        let number = under_way.started;
        let landing = Landing {
            under_way: Arc::clone(&self.under_way),
            key: key.to_owned(),
            number,
        };
        let (land, landed) = watch::channel(None);
        let task = tokio::spawn(async move {
            // Goes after `landing`, also where the work panics: who hears of the end of a flight
            // must not find it on the list any more.
            let land = land;
            let landing = landing;
            let done = work.await;
            drop(landing);
            land.send_replace(Some(done));
        });
        let flight = Arc::new(Flight { task, landed });
        let listed = (number, Arc::downgrade(&flight));
        under_way.flights.insert(key.to_owned(), listed);
        flight
    }
}

impl<T: Clone> Flight<T> {
    /// Waits for what came of it; `None` if it ended in a panic.
    pub(crate) async fn landed(&self) -> Option<T> {
        let mut landed = self.landed.clone();
        landed.wait_for(Option::is_some).await.ok()?.clone()
    }
}

impl<T> Drop for Flight<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Takes a flight off the list when it has ended, or was ended with its last participant.
#[derive(Debug)]
struct Landing<T> {
    under_way: Arc<Mutex<UnderWay<T>>>,
    key: String,
    number: u64,
}

impl<T> Drop for Landing<T> {
    fn drop(&mut self) {
        let mut under_way = lock(&self.under_way);
        // The next flight of this key may have begun already.
        if under_way
            .flights
            .get(&self.key)
            .is_some_and(|(number, _)| *number == self.number)
        {
            under_way.flights.remove(&self.key);
        }
    }
}

fn lock<T>(under_way: &Mutex<UnderWay<T>>) -> MutexGuard<'_, UnderWay<T>> {
    under_way.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::FutureExt;
    use tokio::sync::{Notify, oneshot};

    use super::*;

    fn count<T>(flights: &Flights<T>) -> usize {
        lock(&flights.under_way).flights.len()
    }

    #[tokio::test]
    async fn r217_all_who_want_the_same_share_one_flight() {
        let flights = Flights::new();
        let (started, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let start = || {
            let (started, gate) = (Arc::clone(&started), Arc::clone(&gate));
            async move {
                gate.notified().await;
                started.fetch_add(1, Ordering::Relaxed) + 1
            }
        };
        let all: Vec<_> = (0..1000).map(|_| flights.join("a", start)).collect();
        let other = flights.join("b", async || 7);
        assert_eq!(count(&flights), 2);
        gate.notify_one();
        for flight in all {
            assert_eq!(flight.landed().await, Some(1));
        }
        assert_eq!(other.landed().await, Some(7));
        assert_eq!(count(&flights), 0);
        gate.notify_one();
        assert_eq!(
            flights.join("a", start).landed().await,
            Some(2),
            "what has ended is not joined"
        );
    }

    #[tokio::test]
    async fn r218_whoever_leaves_takes_nothing_from_those_who_stay() {
        let flights = Flights::new();
        let (open, gate) = oneshot::channel::<()>();
        let first = flights.join("a", async || gate.await.is_ok());
        let second = flights.join("a", async || unreachable!());
        assert!(first.landed().now_or_never().is_none());
        drop(first);
        open.send(()).unwrap();
        assert_eq!(second.landed().await, Some(true));
    }

    #[tokio::test]
    async fn r219_a_flight_ends_with_its_last_participant() {
        let flights = Flights::<()>::new();
        let (mut alive, ended) = oneshot::channel::<()>();
        let one = flights.join("a", async || {
            let _ended = ended;
            pending::<()>().await;
        });
        let other = flights.join("a", async || unreachable!());
        drop(one);
        tokio::task::yield_now().await;
        assert!(!alive.is_closed());
        drop(other);
        alive.closed().await;
        assert_eq!(count(&flights), 0);
    }

    #[tokio::test]
    async fn a_panic_ends_the_wait_of_all_and_the_next_flight_is_free_of_it() {
        let flights = Flights::new();
        let broken = flights.join("a", async || -> u8 { panic!("on purpose") });
        let other = flights.join("a", async || unreachable!());
        assert_eq!(broken.landed().await, None);
        assert_eq!(flights.join("a", async || 1).landed().await, Some(1));
        assert_eq!(other.landed().await, None);
    }
}
