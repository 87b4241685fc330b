//! How complete the answers of merged fan-outs were, for `/healthz` (R197).

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// Whether a round had all that its answer is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Completeness {
    /// Nothing is missing.
    Full,
    /// A backend is missing, or all of them.
    Partial,
}

/// What the rounds so far were.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Seen {
    /// Of the last round, if there was one: its completeness, and how many backends contributed.
    pub(crate) last: Option<(Completeness, usize)>,
    /// Partial rounds since the start.
    pub(crate) partial_rounds: u64,
    /// When the last of them ended.
    pub(crate) last_partial: Option<SystemTime>,
}

/// The count of rounds.
#[derive(Debug, Default)]
pub(crate) struct Rounds(Mutex<Seen>);

impl Rounds {
    /// Counts a round that was asked of the backends just now. A query that all of them refused is
    /// none (R198): it says nothing about them.
    pub(crate) fn count(&self, completeness: Completeness, contributed: usize) {
        let mut seen = self.lock();
        seen.last = Some((completeness, contributed));
        if completeness == Completeness::Partial {
            seen.partial_rounds += 1;
            seen.last_partial = Some(SystemTime::now());
        }
    }

    pub(crate) fn seen(&self) -> Seen {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
