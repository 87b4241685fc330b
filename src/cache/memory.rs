//! A store in memory: exact in what it evicts and in what it counts.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use hashlink::LinkedHashMap;
use tokio::time::Instant;

use super::store::{Entry, Stats, Store};

/// Entries within a budget of bytes of their bodies; keys and heads are not counted (R214).
#[derive(Debug)]
pub(crate) struct Memory {
    budget: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    /// The one unused for longest comes first.
    entries: LinkedHashMap<String, Entry>,
    bytes: usize,
}

impl Memory {
    /// A store for `budget` bytes of bodies.
    pub(crate) fn new(budget: usize) -> Self {
        Self {
            budget,
            held: Mutex::default(),
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// Takes out those unused for longest, until the rest fits into `budget`.
    fn shrink(&mut self, budget: usize, evicted: &mut Vec<Entry>) {
        while self.bytes > budget
            && let Some((_, unused)) = self.entries.pop_front()
        {
            self.bytes -= unused.size();
            evicted.push(unused);
        }
    }
}

impl Store for Memory {
    const NAME: &'static str = "memory";

    fn longest(&self) -> usize {
        self.budget
    }

    async fn get(&self, key: &str) -> Option<Entry> {
        let mut held = self.held();
        held.entries.to_back(key).cloned()
    }

    async fn put(&self, key: &str, entry: Entry) {
        // Bodies are dropped after the lock is.
        let mut evicted = Vec::new();
        if entry.size() > self.budget {
            return;
        }
        let mut held = self.held();
        held.bytes += entry.size();
        if let Some(replaced) = held.entries.insert(key.to_owned(), entry) {
            held.bytes -= replaced.size();
            evicted.push(replaced);
        }
        held.shrink(self.budget, &mut evicted);
    }

    async fn add_gzip(&self, key: &str, stored: Instant, gzip: Bytes) {
        let mut evicted = Vec::new();
        let mut held = self.held();
        let Some(entry) = held.entries.to_back(key) else {
            return;
        };
        let is_another = entry.stored != stored;
        if is_another || entry.gzip.is_some() || entry.size() + gzip.len() > self.budget {
            return;
        }
        let more = gzip.len();
        entry.gzip = Some(gzip);
        held.bytes += more;
        held.shrink(self.budget, &mut evicted);
    }

    async fn stats(&self, ttl: Duration) -> Stats {
        let held = self.held();
        Stats {
            entries: held.entries.len(),
            stale_entries: held.entries.values().filter(|e| e.age() >= ttl).count(),
            bytes: held.bytes,
        }
    }
}

#[cfg(test)]
mod tests;
