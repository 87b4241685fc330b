//! What requests learn of the backends, beside the probes: those that fail again and again are left
//! out for a time.

use std::hash::{BuildHasher, RandomState};

use pdbmux_core::health::ejection::{Change, Outcome};
use pdbmux_core::round::{Verdict, verdict};
use tokio::time::Instant;

use super::{Asked, Failure, MemberId, Upstream};

/// By which PuppetDB an answer came, or did not come, and when it was asked.
#[derive(Debug, Clone, Copy)]
pub struct Via {
    pub(super) member: MemberId,
    pub(super) asked: Instant,
    pub(super) role: Role,
}

/// As what a PuppetDB was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// As the one that speaks for its group, or for itself.
    Speaker,
    /// In the place of one of its group whose answer turned out to be of no use.
    StandIn,
}

/// By whom an answer came, or did not come, and its status, or why there is none.
type Fared<'f> = (Option<Via>, Result<u16, &'f Failure>);

impl Upstream {
    /// Learns from a round. A server's error on which all agree is taken for the question's fault.
    pub fn judge(&self, round: &[Asked]) {
        self.judge_each(round.iter().map(fared));
    }

    /// The same, where no more is known of each part than by whom it came and how it fared: the status,
    /// or why there is none.
    pub(super) fn judge_each<'f>(&self, round: impl Iterator<Item = Fared<'f>> + Clone) {
        if !self.monitor.ejects() {
            return;
        }
        let statuses = round.clone().map(|(_, result)| result.ok());
        let agree = matches!(verdict(statuses), Verdict::Replay(_));
        for (via, result) in round {
            if let (Some(via), Some(outcome)) = (via, outcome(result))
                && !(agree && result.is_ok())
            {
                self.learn_by(via, outcome);
            }
        }
    }

    /// Learns from backends that failed before another succeeded.
    pub fn judge_turns(&self, failed: &[Asked]) {
        for (via, result) in failed.iter().map(fared) {
            if let (Some(via), Some(outcome)) = (via, outcome(result)) {
                self.learn_by(via, outcome);
            }
        }
    }

    /// Learns from answers that came whole, as far as they were passed on.
    pub fn judge_successes(&self, vias: &[Option<Via>]) {
        for via in vias.iter().flatten() {
            self.learn_by(*via, Outcome::Success);
        }
    }

    /// Learns from an answer that broke off.
    pub fn judge_failure(&self, via: Option<Via>, failure: &Failure) {
        if let Some(via) = via.filter(|_| failure.is_of_backend()) {
            self.learn_by(via, Outcome::Failure);
        }
    }

    /// Learns how one question fared, and tells what changes by it.
    pub(super) fn learn_by(&self, via: Via, outcome: Outcome) {
        if !self.monitor.ejects() {
            return;
        }
        let Some(change) = self.monitor.fared(via, outcome, jitter()) else {
            return;
        };
        let group = self.backend(via.member.backend).group();
        let backend = self.member(via.member).name.as_str();
        match change {
            Change::Ejected(time) => tracing::warn!(
                backend,
                group,
                ?time,
                "a backend is left out for a time: requests failed with it one after the other"
            ),
            Change::StaysOut(time) => tracing::warn!(
                backend,
                group,
                ?time,
                "a backend stays left out: the request that tried it failed"
            ),
            Change::Readmitted => {
                tracing::info!(backend, group, "a backend that was left out is asked again");
            }
        }
    }
}

/// How a question fared, if that tells anything of the backend. To be refused is no failure of it, and
/// says too little to be a success: what is refused may not have come to the database.
fn outcome(result: Result<u16, &Failure>) -> Option<Outcome> {
    match result {
        Ok(200..300) => Some(Outcome::Success),
        Ok(500..) => Some(Outcome::Failure),
        Ok(_) => None,
        Err(failure) => failure.is_of_backend().then_some(Outcome::Failure),
    }
}

fn fared(asked: &Asked) -> Fared<'_> {
    let status = asked.result.as_ref().map(|received| received.status);
    (asked.via, status)
}

/// Some number. The standard library seeds its hashes anew each time.
fn jitter() -> u8 {
    let [number, ..] = RandomState::new().hash_one(()).to_le_bytes();
    number
}
