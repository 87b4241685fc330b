//! The answer cache. Knows bytes and times, nothing of routes, merges or HTTP.

mod memory;
mod store;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use tokio::time::Instant;

pub(crate) use memory::Memory;
pub(crate) use store::{Entry, Stats, Store};

/// Answers that are served for a time without asking anyone, and after it if nobody answers.
#[derive(Debug)]
pub(crate) struct Cache<S> {
    store: S,
    ttl: Duration,
    fallbacks: Mutex<Fallbacks>,
}

/// What is known of stale entries that were served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Fallbacks {
    /// Whether the last answer was one (R200).
    pub(crate) serving: bool,
    /// How many there have been.
    pub(crate) count: u64,
    /// When the last of them was served.
    pub(crate) last: Option<SystemTime>,
}

impl<S: Store> Cache<S> {
    /// A cache of entries that are fresh for `ttl` (R206).
    pub(crate) fn new(store: S, ttl: Duration) -> Self {
        Self {
            store,
            ttl,
            fallbacks: Mutex::default(),
        }
    }

    /// How long an entry is fresh.
    pub(crate) fn ttl(&self) -> Duration {
        self.ttl
    }

    /// The entry under `key` if it is fresh (R210).
    pub(crate) async fn fresh(&self, key: &str) -> Option<Entry> {
        let entry = self.store.get(key).await?;
        self.is_fresh(&entry).then_some(entry)
    }

    /// Whether an entry is fresh.
    pub(crate) fn is_fresh(&self, entry: &Entry) -> bool {
        entry.age() < self.ttl
    }

    /// The entry under `key` however old it is, for when every backend fails (R211).
    pub(crate) async fn of_any_age(&self, key: &str) -> Option<Entry> {
        self.store.get(key).await
    }

    /// Whether an answer of `length` bytes is to be stored: not if it is too long (R216), and not
    /// if it lacks a backend that the stored one has all of (ruling 14).
    pub(crate) async fn takes(&self, key: &str, length: usize, is_complete: bool) -> bool {
        if length > self.store.longest() {
            return false;
        }
        is_complete
            || !self
                .store
                .get(key)
                .await
                .is_some_and(|entry| entry.is_complete())
    }

    /// Stores an answer.
    pub(crate) async fn put(&self, key: &str, entry: Entry) {
        self.store.put(key, entry).await;
    }

    /// Keeps the compressed body of the entry that was stored under `key` at `stored`.
    pub(crate) async fn add_gzip(&self, key: &str, stored: Instant, gzip: Bytes) {
        self.store.add_gzip(key, stored, gzip).await;
    }

    /// A live answer or a fresh entry was served.
    pub(crate) fn served_current(&self) {
        self.state().serving = false;
    }

    /// A stale entry was served.
    pub(crate) fn served_stale(&self) {
        let mut state = self.state();
        state.serving = true;
        state.count += 1;
        state.last = Some(SystemTime::now());
    }

    /// What is known of stale entries that were served.
    pub(crate) fn fallbacks(&self) -> Fallbacks {
        *self.state()
    }

    /// How much is stored.
    pub(crate) async fn stats(&self) -> Stats {
        self.store.stats(self.ttl).await
    }

    fn state(&self) -> MutexGuard<'_, Fallbacks> {
        self.fallbacks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const TTL: Duration = Duration::from_secs(30);

    fn entry(contributed: usize) -> Entry {
        Entry {
            body: "[]".into(),
            total: None,
            contributed,
            configured: 2,
            missing: Vec::new(),
            doubts: Vec::new(),
            stored: Instant::now(),
            gzip: None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn r210_r211_an_entry_is_fresh_for_its_time_and_kept_after_it() {
        let cache = Cache::new(Memory::new(100), TTL);
        cache.put("a", entry(2)).await;
        advance(Duration::from_millis(29_999)).await;
        assert!(cache.fresh("a").await.is_some());
        advance(Duration::from_millis(1)).await;
        assert_eq!(cache.fresh("a").await, None);
        advance(100 * TTL).await;
        assert_eq!(cache.fresh("a").await, None);
        let kept = cache.of_any_age("a").await.unwrap();
        assert_eq!(kept.age(), 101 * TTL);
        assert_eq!(cache.of_any_age("b").await, None);
    }

    #[tokio::test]
    async fn ruling_14_a_partial_answer_never_replaces_a_complete_one() {
        let cache = Cache::new(Memory::new(100), TTL);
        let takes = async |is_complete| cache.takes("a", 2, is_complete).await;
        assert_eq!((takes(true).await, takes(false).await), (true, true));
        cache.put("a", entry(1)).await;
        assert_eq!((takes(true).await, takes(false).await), (true, true));
        cache.put("a", entry(2)).await;
        assert_eq!((takes(true).await, takes(false).await), (true, false));
        assert!(cache.takes("b", 100, false).await);
        assert!(!cache.takes("b", 101, true).await);
    }

    /// Keeps the last answer, whatever it is of.
    #[derive(Debug, Default)]
    struct Last(Mutex<Option<Entry>>);

    impl Store for Last {
        const NAME: &'static str = "last";

        fn longest(&self) -> usize {
            10
        }

        async fn get(&self, _: &str) -> Option<Entry> {
            self.0.lock().unwrap().clone()
        }

        async fn put(&self, _: &str, entry: Entry) {
            *self.0.lock().unwrap() = Some(entry);
        }

        async fn add_gzip(&self, _: &str, _: Instant, _: Bytes) {}

        async fn stats(&self, _: Duration) -> Stats {
            Stats::default()
        }
    }

    #[tokio::test]
    async fn r227_where_entries_are_kept_is_for_the_store_to_say() {
        let cache = Cache::new(Last::default(), TTL);
        assert!(cache.fresh("a").await.is_none());
        cache.put("a", entry(2)).await;
        assert!(cache.fresh("b").await.is_some());
        assert!(!cache.takes("b", 2, false).await);
        assert!(!cache.takes("b", 11, true).await);
    }

    #[test]
    fn r200_serving_stale_lasts_until_the_next_current_answer() {
        let cache = Cache::new(Memory::new(100), TTL);
        assert_eq!(cache.fallbacks(), Fallbacks::default());
        cache.served_current();
        cache.served_stale();
        cache.served_stale();
        let now = cache.fallbacks();
        assert_eq!((now.serving, now.count), (true, 2));
        cache.served_current();
        let after = cache.fallbacks();
        assert_eq!(
            (after.serving, after.count, after.last),
            (false, 2, now.last)
        );
    }
}
