//! How many questions may be asked twice.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

/// What a question earns, and what a second asking of one costs: every tenth may be asked twice.
const EARNED: u32 = 1;
const COST: u32 = 10;
/// What can be saved up: a burst of ten.
const MOST: u32 = 10 * COST;

/// Holds second askings to a tenth of all, so that a backend which is slow under its load is not
/// asked for twice as much.
#[derive(Debug)]
pub(super) struct Budget(AtomicU32);

impl Budget {
    /// Enough for one, so that the first question can be asked twice.
    pub(super) fn new() -> Self {
        Self(AtomicU32::new(COST))
    }

    /// A question was asked.
    pub(super) fn earn(&self) {
        let saved = |saved: u32| (saved < MOST).then(|| saved + EARNED);
        // Full is full.
        let _ = self.0.fetch_update(Relaxed, Relaxed, saved);
    }

    /// Whether one may be asked twice, which is taken as done.
    pub(super) fn spend(&self) -> bool {
        let left = |saved: u32| saved.checked_sub(COST);
        self.0.fetch_update(Relaxed, Relaxed, left).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tenth_question_is_asked_twice_at_most_and_ten_in_a_burst() {
        let budget = Budget::new();
        let twice = |asked: usize| {
            let twice = |_: &usize| {
                budget.earn();
                budget.spend()
            };
            (0..asked).filter(twice).count()
        };
        assert_eq!(twice(1000), 101);
        for _ in 0..100_000 {
            budget.earn();
        }
        assert_eq!((0..100).filter(|_| budget.spend()).count(), 10);
    }
}
