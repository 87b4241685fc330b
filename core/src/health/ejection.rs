//! Whether a backend is left out because requests fared badly with it: a state machine without a
//! clock.
//!
//! Probes see whether a backend says that it is well; only requests see whether it answers queries. So
//! the two are kept apart: a good probe ends no ejection.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

/// No ejection is longer than so many times the first.
const GROWTH: u32 = 8;
/// Nor longer than this, whatever is configured.
const LONGEST: Duration = Duration::from_hours(24);

/// When a backend is ejected, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// Failures in a row that eject it.
    pub failures: NonZeroU32,
    /// How long it is out the first time. Each trial that fails doubles it.
    pub time: Duration,
}

/// How a request fared with a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It answered the question.
    Success,
    /// It gave nothing that could be used, though it is not the question's fault.
    Failure,
}

/// How a backend stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Requests ask it.
    In,
    /// They do not.
    Out,
    /// Its time is over: one request may try it.
    Due,
    /// One does.
    OnTrial,
}

/// A change worth a line in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It has failed too often and is out for so long.
    Ejected(Duration),
    /// It has failed its trial and is out for so long.
    StaysOut(Duration),
    /// It has answered and is in again.
    Readmitted,
}

/// What requests make of one backend.
#[derive(Debug, Clone)]
pub struct Ejection {
    terms: Terms,
    stage: Stage,
    /// Since when it is at this stage. What was asked before tells nothing any more: a request that
    /// took long must not decide a trial.
    since: Instant,
    /// Failures in a row.
    run: u32,
    /// Ejections without a success between.
    times: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    In,
    /// Until then.
    Out(Instant),
    /// Until then; a trial of which nothing is heard gives way to another.
    OnTrial(Instant),
}

impl Ejection {
    /// A backend that has not been asked yet, at `now`.
    pub fn new(terms: Terms, now: Instant) -> Self {
        Self {
            terms,
            stage: Stage::In,
            since: now,
            run: 0,
            times: 0,
        }
    }

    /// How it stands at `now`.
    pub fn place(&self, now: Instant) -> Place {
        match self.stage {
            Stage::In => Place::In,
            Stage::Out(until) | Stage::OnTrial(until) if until <= now => Place::Due,
            Stage::Out(_) => Place::Out,
            Stage::OnTrial(_) => Place::OnTrial,
        }
    }

    /// Until when it is out, or its trial has time.
    pub fn until(&self) -> Option<Instant> {
        match self.stage {
            Stage::In => None,
            Stage::Out(until) | Stage::OnTrial(until) => Some(until),
        }
    }

    /// Begins its trial, if that is due; others do not ask it for as long as that takes, `patience` at
    /// most.
    pub fn try_out(&mut self, now: Instant, patience: Duration) -> bool {
        let is_due = self.place(now) == Place::Due;
        if is_due {
            self.stage = Stage::OnTrial(later(now, patience));
            self.since = now;
        }
        is_due
    }

    /// Makes its trial due at once: there is reason to think that it is well again.
    pub fn hasten(&mut self, now: Instant) {
        if let Stage::Out(until) = &mut self.stage {
            *until = now.min(*until);
        }
    }

    /// Takes in how a request fared that asked it at `asked`. An ejection lasts up to a quarter longer
    /// by `jitter`, so that not all that ejected a backend try it at the same time.
    pub fn observe(
        &mut self,
        outcome: Outcome,
        asked: Instant,
        now: Instant,
        jitter: u8,
    ) -> Option<Change> {
        if asked < self.since {
            return None;
        }
        match (self.stage, outcome) {
            (Stage::In, Outcome::Success) => {
                self.run = 0;
                None
            }
            (Stage::In, Outcome::Failure) => {
                self.run += 1;
                let is_enough = self.run >= self.terms.failures.get();
                is_enough.then(|| Change::Ejected(self.eject(now, jitter)))
            }
            // It was asked since nobody else was there to be.
            (Stage::Out(_), Outcome::Failure) => None,
            (Stage::Out(_) | Stage::OnTrial(_), Outcome::Success) => {
                *self = Self::new(self.terms, now);
                Some(Change::Readmitted)
            }
            (Stage::OnTrial(_), Outcome::Failure) => {
                Some(Change::StaysOut(self.eject(now, jitter)))
            }
        }
    }

    fn eject(&mut self, now: Instant, jitter: u8) -> Duration {
        let growth = 2u32.saturating_pow(self.times).min(GROWTH);
        let time = self.terms.time.min(LONGEST) * growth;
        let time = (time + time / 1024 * u32::from(jitter)).min(LONGEST);
        self.stage = Stage::Out(later(now, time));
        self.since = now;
        self.run = 0;
        self.times = self.times.saturating_add(1);
        time
    }
}

/// A moment that is `time` later, which the clock may not reach.
fn later(now: Instant, time: Duration) -> Instant {
    now.checked_add(time).unwrap_or(now)
}

#[cfg(test)]
mod tests;
