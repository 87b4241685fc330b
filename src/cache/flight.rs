//! Work that is done once for all who want it at the same time.

use std::collections::HashMap;
use std::future::{Future, pending};
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared, WeakShared};
use tokio_util::task::AbortOnDropHandle;

type Flight<T> = BoxFuture<'static, T>;

/// The flights under way, by key (R217).
///
/// A flight is a task of its own: no participant drives it, so one that leaves holds up nobody
/// (R218). It is owned by its participants and ends with the last of them (R219).
#[derive(Debug)]
pub(crate) struct Flights<T> {
    under_way: Arc<Mutex<UnderWay<T>>>,
}

#[derive(Debug)]
struct UnderWay<T> {
    flights: HashMap<String, (u64, WeakShared<Flight<T>>)>,
    /// How many flights there have been.
    started: u64,
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

    /// Takes part in the flight of `key`; `start` is called for it if there is none. A panic in it
    /// goes on in every participant.
    pub(crate) fn join<F>(&self, key: &str, start: impl FnOnce() -> F) -> Shared<Flight<T>>
    where
        F: Future<Output = T> + Send + 'static,
    {
        let mut under_way = lock(&self.under_way);
        if let Some(flight) = under_way
            .flights
            .get(key)
            .and_then(|(_, flight)| flight.upgrade())
        {
            return flight;
        }
        under_way.started += 1;
        let landing = Landing {
            under_way: Arc::clone(&self.under_way),
            key: key.to_owned(),
            number: under_way.started,
        };
        let task = AbortOnDropHandle::new(tokio::spawn(start()));
        let flight = async move {
            let _landing = landing;
            match task.await {
                Ok(done) => done,
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => resume_unwind(panic),
                    // The runtime is shutting down; nobody waits for the result any more.
                    Err(_) => pending().await,
                },
            }
        };
        let flight = flight.boxed().shared();
        let number = under_way.started;
        let weak = flight.downgrade();
        if let Some(weak) = weak {
            under_way.flights.insert(key.to_owned(), (number, weak));
        }
        flight
    }
}

/// Takes a flight off the list when it has ended, or its last participant has left.
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
    use std::panic::AssertUnwindSafe;
    use std::sync::atomic::{AtomicUsize, Ordering};

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
            assert_eq!(flight.await, 1);
        }
        assert_eq!(other.await, 7);
        assert_eq!(count(&flights), 0);
        gate.notify_one();
        assert_eq!(
            flights.join("a", start).await,
            2,
            "what has ended is not joined"
        );
    }

    #[tokio::test]
    async fn r218_whoever_leaves_takes_nothing_from_those_who_stay() {
        let flights = Flights::new();
        let (open, gate) = oneshot::channel::<()>();
        let mut first = flights.join("a", async || gate.await.is_ok());
        let second = flights.join("a", async || unreachable!());
        assert!((&mut first).now_or_never().is_none());
        drop(first);
        open.send(()).unwrap();
        assert!(second.await);
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
    async fn a_panic_reaches_the_participants_and_the_next_flight_is_free_of_it() {
        let flights = Flights::new();
        let broken = flights.join("a", async || -> u8 { panic!("on purpose") });
        assert!(AssertUnwindSafe(broken).catch_unwind().await.is_err());
        assert_eq!(flights.join("a", async || 1).await, 1);
    }
}
