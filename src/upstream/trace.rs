//! What one request asked of whom, noted for those who want to know (`X-Pdbmux-Explain`).
//!
//! A request carries its notes with its task, so that asking needs no hand in it: who is not
//! traced pays for one look.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pdbmux_core::merge::Fan;
use pdbmux_core::merge::owners::Share;
use pdbmux_core::plan::Sent;
use pdbmux_core::round::BackendId;
use tokio::time::Instant;

use super::MemberId;
use crate::request;

tokio::task_local! {
    static CURRENT: Arc<Trace>;
}

/// The notes of one request.
#[derive(Debug)]
pub struct Trace {
    since: Instant,
    notes: Mutex<Notes>,
}

/// What was noted.
#[derive(Debug, Clone, Default)]
pub struct Notes {
    /// The questions, in the order in which they were answered.
    pub steps: Vec<Step>,
    /// What each backend spoke for, as it was divided last.
    pub shares: Vec<(BackendId, Share)>,
    /// What was done in place of the plan, since lists would have been long.
    pub instead: Option<Arc<Fan>>,
}

/// One question to one backend.
#[derive(Debug, Clone)]
pub struct Step {
    /// Who was asked.
    pub member: MemberId,
    /// What.
    pub sent: Sent,
    /// How long after the request began.
    pub began: Duration,
    /// How long the answer took.
    pub took: Duration,
    /// What came back: the status, and the body if it was read here; or one word why nothing did.
    pub result: Result<(u16, Option<bytes::Bytes>), String>,
}

impl Trace {
    /// No notes yet.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            since: Instant::now(),
            notes: Mutex::default(),
        })
    }

    /// Runs `work`, whose questions are noted.
    pub async fn follow<T>(self: &Arc<Self>, work: impl Future<Output = T>) -> T {
        CURRENT.scope(Arc::clone(self), work).await
    }

    /// What was noted so far.
    pub fn notes(&self) -> Notes {
        let notes = self.notes.lock();
        notes.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, change: impl FnOnce(&mut Notes)) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut notes);
    }
}

/// Notes what a backend speaks for, if this request is traced.
pub fn note_share(backend: BackendId, share: &Share) {
    let noted = CURRENT.try_with(|trace| {
        trace.note(|notes| {
            notes.shares.retain(|(known, _)| *known != backend);
            notes.shares.push((backend, share.clone()));
        });
    });
    // Not traced.
    noted.unwrap_or_default();
}

/// Notes what is done in place of the plan, if this request is traced.
pub fn note_instead(instead: Option<&Arc<Fan>>) {
    let noted = CURRENT.try_with(|trace| {
        trace.note(|notes| notes.instead = instead.cloned());
    });
    // Not traced.
    noted.unwrap_or_default();
}

/// Notes a question, if this request is traced.
pub(super) fn note_asked(
    member: MemberId,
    sent: &Sent,
    began: Instant,
    result: impl Fn() -> Result<(u16, Option<bytes::Bytes>), String>,
) {
    let status = || result().map(|(status, _)| status);
    request::note(member.backend, member.index(), began, status);
    let noted = CURRENT.try_with(|trace| {
        let step = Step {
            member,
            sent: sent.clone(),
            began: began.duration_since(trace.since),
            took: began.elapsed(),
            result: result(),
        };
        trace.note(|notes| notes.steps.push(step));
    });
    // Not traced.
    noted.unwrap_or_default();
}
