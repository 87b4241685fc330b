//! Whether a backend is in service, as its probes tell: a state machine without a clock.

pub mod ejection;
mod finding;
pub mod shared;
mod stamp;
#[cfg(test)]
mod tests;

use std::num::NonZeroU32;

pub use finding::{Finding, Trouble, judge};
pub use stamp::rfc3339;

/// How many probes in a row change anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thresholds {
    /// Unsuccessful ones that take a backend out of service (R172).
    pub failures: NonZeroU32,
    /// Good ones that bring it back (R173).
    pub successes: NonZeroU32,
}

/// What the probes make of a backend (R193).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// In service, and its probe is trusted.
    Healthy,
    /// Out of service.
    Unhealthy,
    /// In service, and not verified: its probe has failed often enough and was never answered.
    ProbeUnsupported,
    /// In service: no probe has told anything yet.
    Unprobed,
    /// In service: nobody probes.
    Unmonitored,
}

impl State {
    /// All states that there are.
    pub const ALL: [Self; 5] = [
        Self::Healthy,
        Self::Unhealthy,
        Self::ProbeUnsupported,
        Self::Unprobed,
        Self::Unmonitored,
    ];

    /// Its name in `/healthz`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Unhealthy => "unhealthy",
            Self::ProbeUnsupported => "probe_unsupported",
            Self::Unprobed => "unprobed",
            Self::Unmonitored => "unmonitored",
        }
    }

    /// Whether requests ask such a backend.
    pub fn in_service(self) -> bool {
        self != Self::Unhealthy
    }
}

/// A change worth a line in the log (R184).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transition {
    /// Out of service from now on.
    Down,
    /// In service again.
    Up,
    /// The failure threshold is reached and no probe was ever answered: nothing gates on them.
    Unsupported {
        /// The status that the probe was refused with, if it was (R168).
        refused: Option<u16>,
    },
    /// The first answer after that.
    Answered,
    /// A probe that used to be answered is refused with this status.
    NowRefused(u16),
}

/// One backend's health.
#[derive(Debug, Clone)]
pub struct Health {
    thresholds: Thresholds,
    /// The latch: whether a probe was ever answered. Never cleared (R165), so that no pattern of
    /// failures argues a dead backend back into service.
    answered: bool,
    down: bool,
    failures: u32,
    /// Those of `failures` that came before the latch was set, which gate nothing (R177).
    unlatched: u32,
    successes: u32,
    /// The last refusal of the run of failures.
    refused: Option<u16>,
    told: Told,
}

/// What the log has about a probe that was never answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Nothing,
    /// That it is not answered.
    Silence,
    /// That it is refused.
    Refusal,
}

impl Health {
    /// A backend that nobody has probed; it counts as healthy (R183).
    pub fn new(thresholds: Thresholds) -> Self {
        Self {
            thresholds,
            answered: false,
            down: false,
            failures: 0,
            unlatched: 0,
            successes: 0,
            refused: None,
            told: Told::Nothing,
        }
    }

    /// How many probes in a row change anything.
    pub fn thresholds(&self) -> Thresholds {
        self.thresholds
    }

    /// The same history under other thresholds, which count from the next probe on.
    #[must_use]
    pub fn under(self, thresholds: Thresholds) -> Self {
        Self { thresholds, ..self }
    }

    /// What the probes so far make of it.
    pub fn state(&self) -> State {
        if self.down {
            State::Unhealthy
        } else if self.answered {
            State::Healthy
        } else if self.told == Told::Nothing {
            State::Unprobed
        } else {
            State::ProbeUnsupported
        }
    }

    /// Unsuccessful probes since the last good one, whatever their kinds (R175, R176).
    pub fn consecutive_failures(&self) -> u32 {
        self.failures
    }

    /// Good probes since the last unsuccessful one.
    pub fn consecutive_successes(&self) -> u32 {
        self.successes
    }

    /// Takes in what a probe found; returns what has changed by it.
    pub fn observe(&mut self, finding: &Finding) -> Vec<Transition> {
        let mut changes = Vec::new();
        if finding.is_answer() && !self.answered {
            self.answered = true;
            self.unlatched = self.failures;
            if self.told != Told::Nothing {
                changes.push(Transition::Answered);
            }
        }
        match finding {
            Finding::Healthy => changes.extend(self.succeed()),
            Finding::Unhealthy(_) | Finding::Unanswered => changes.extend(self.fail()),
            Finding::Refused(status) => {
                // Once in a run of failures: a backend that alternates between kinds of failure
                // must not fill the log.
                let first = self.refused.replace(*status).is_none();
                if self.answered && first {
                    changes.push(Transition::NowRefused(*status));
                }
                changes.extend(self.fail());
            }
        }
        changes
    }

    fn succeed(&mut self) -> Option<Transition> {
        self.failures = 0;
        self.unlatched = 0;
        self.refused = None;
        self.successes = self.successes.saturating_add(1);
        let up = self.down && self.successes >= self.thresholds.successes.get();
        up.then(|| {
            self.down = false;
            Transition::Up
        })
    }

    fn fail(&mut self) -> Option<Transition> {
        self.successes = 0;
        self.failures = self.failures.saturating_add(1);
        let counted = self.failures.saturating_sub(self.unlatched);
        if counted < self.thresholds.failures.get() || self.down {
            return None;
        }
        if self.answered {
            self.down = true;
            return Some(Transition::Down);
        }
        // A backend that was silent at first and then refuses is told of once more: only the
        // refusal's status shows that the path is wrong.
        let told = match self.refused {
            None => Told::Silence,
            Some(_) => Told::Refusal,
        };
        let known = self.told == told || self.told == Told::Refusal;
        (!known).then(|| {
            self.told = told;
            Transition::Unsupported {
                refused: self.refused,
            }
        })
    }
}
