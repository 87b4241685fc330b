//! A store in memory: exact in what it evicts and in what it counts.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hashlink::LinkedHashMap;

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
        if entry.body.len() > self.budget {
            return;
        }
        let mut held = self.held();
        held.bytes += entry.body.len();
        if let Some(replaced) = held.entries.insert(key.to_owned(), entry) {
            held.bytes -= replaced.body.len();
            evicted.push(replaced);
        }
        while held.bytes > self.budget
            && let Some((_, unused)) = held.entries.pop_front()
        {
            held.bytes -= unused.body.len();
            evicted.push(unused);
        }
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
