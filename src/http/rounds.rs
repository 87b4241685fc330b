//! How complete the answers of merged fan-outs were, for `/healthz` (R197).

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use super::fan::Conclusion;

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
    /// Counts a request for which the backends were asked just now, in however many rounds. A query
    /// that all of them refused is none (R198): it says nothing about them.
    pub(super) fn count_request(&self, conclusion: &Conclusion) {
        match conclusion {
            Conclusion::Answer { standing, .. } | Conclusion::Stream { standing, .. } => {
                let completeness = if standing.missing.is_empty() {
                    Completeness::Full
                } else {
                    Completeness::Partial
                };
                self.count(completeness, standing.contributed);
            }
            Conclusion::Replay(received) if received.status < 500 => {}
            Conclusion::Replay(_) | Conclusion::Nothing(_) => self.count(Completeness::Partial, 0),
            // Neither tells of a backend.
            Conclusion::Unfoldable(_) | Conclusion::Full(_) => {}
        }
    }

    /// Counts that something was asked of the backends, and how complete the answer was.
    pub(super) fn count(&self, completeness: Completeness, contributed: usize) {
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
