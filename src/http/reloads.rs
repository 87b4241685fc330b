//! What became of reading the configuration again.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// How often the configuration was read again, and what came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reload {
    /// How often it was taken; that of the start is not counted.
    pub(crate) generation: u64,
    /// How often it was tried.
    pub(crate) attempts: u64,
    /// When it was last tried, if it was.
    pub(crate) last_attempt: Option<SystemTime>,
    /// When it was last taken, if it was.
    pub(crate) last_success: Option<SystemTime>,
    /// Why it was not at the last attempt, if so. For operators: it may name addresses.
    pub(crate) last_error: Option<String>,
}

/// The count of reloads.
#[derive(Debug, Default)]
pub(crate) struct Reloads(Mutex<Reload>);

impl Reloads {
    /// Counts an attempt that ended now: the configuration was taken, or why not.
    pub(crate) fn count(&self, outcome: Result<(), String>) {
        let now = SystemTime::now();
        let mut reload = self.lock();
        reload.attempts += 1;
        reload.last_attempt = Some(now);
        if outcome.is_ok() {
            reload.generation += 1;
            reload.last_success = Some(now);
        }
        reload.last_error = outcome.err();
    }

    /// What there has been so far.
    pub(crate) fn seen(&self) -> Reload {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Reload> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
