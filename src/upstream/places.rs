//! How many questions a backend is asked at one time.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

/// The places of one backend.
#[derive(Debug, Clone)]
pub(super) struct Places(Option<Bounded>);

#[derive(Debug, Clone)]
struct Bounded {
    all: Arc<Semaphore>,
    /// All but one, for the questions that others may be asked beside.
    longer: Arc<Semaphore>,
}

/// What becomes of a question once it has its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stay {
    /// It may keep the place while its request waits for another answer of the same backend: whose
    /// data is newest, say. Such questions never take the last place, so that the other is answered.
    Long,
    /// Its answer is read whole at once, whatever else is under way.
    Short,
}

/// A place, had until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    _permits: [Option<OwnedSemaphorePermit>; 2],
}

impl Places {
    /// So many; 0 is without bound.
    pub(super) fn of(most: usize) -> Self {
        let of = |places: usize| Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS)));
        Self((most > 0).then(|| Bounded {
            all: of(most),
            longer: of(most - 1),
        }))
    }

    /// Whether there is a bound.
    pub(super) fn are_bounded(&self) -> bool {
        self.0.is_some()
    }

    /// Whether there is a place at the moment.
    pub(super) fn is_free(&self, stay: Stay) -> bool {
        self.0.as_ref().is_none_or(|Bounded { all, longer }| {
            let longer = stay == Stay::Short || longer.available_permits() > 0;
            longer && all.available_permits() > 0
        })
    }

    /// A place, if there comes to be one in time. Who waits first has it first.
    pub(super) async fn take(&self, stay: Stay, until: Instant) -> Option<Place> {
        let Some(Bounded { all, longer }) = &self.0 else {
            return Some(Place {
                _permits: [None, None],
            });
        };
        let first = match stay {
            Stay::Long => Some(permit(longer, until).await?),
            Stay::Short => None,
        };
        let second = permit(all, until).await?;
        Some(Place {
            _permits: [first, Some(second)],
        })
    }
}

async fn permit(places: &Arc<Semaphore>, until: Instant) -> Option<OwnedSemaphorePermit> {
    // Mostly there is one, and then no timer is set.
    if let Ok(permit) = Arc::clone(places).try_acquire_owned() {
        return Some(permit);
    }
    let permit = timeout_at(until, Arc::clone(places).acquire_owned()).await;
    permit.ok()?.ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn long_questions_leave_one_place_to_short_ones_and_all_places_come_back() {
        let places = Places::of(3);
        let until = || Instant::now() + Duration::from_secs(1);
        let long = [
            places.take(Stay::Long, until()).await.unwrap(),
            places.take(Stay::Long, until()).await.unwrap(),
        ];
        assert!(places.take(Stay::Long, until()).await.is_none());
        let short = places.take(Stay::Short, until()).await.unwrap();
        let since = Instant::now();
        assert!(places.take(Stay::Short, until()).await.is_none());
        assert_eq!(since.elapsed(), Duration::from_secs(1));
        drop(long);
        let mut all = vec![short];
        for _ in 0..2 {
            all.push(places.take(Stay::Short, until()).await.unwrap());
        }
        // A long one that waits for the last place has it once another leaves.
        let waiting = async { places.take(Stay::Long, until()).await };
        let leaving = async { drop(all.pop()) };
        let (waited, ()) = tokio::join!(waiting, leaving);
        assert!(waited.is_some());
    }

    #[tokio::test]
    async fn without_a_bound_there_is_always_a_place() {
        let places = Places::of(0);
        for _ in 0..1000 {
            assert!(places.take(Stay::Long, Instant::now()).await.is_some());
        }
    }
}
