//! A question to a PuppetDB from its beginning to its end, as it is counted and recorded.

use std::time::Duration;

use pdbmux_core::plan::Sent;

use super::{Member, Upstream};
use crate::metrics::{Asking, Outcome};
use crate::request;
use crate::spans::Asked;

/// A question under way. It ends when this is dropped, and has been abandoned unless it is told
/// otherwise.
#[derive(Debug)]
pub(super) struct Question {
    counted: Asking,
    /// `None` if it is not recorded.
    span: Option<Asked>,
}

impl Upstream {
    /// Begins a question to `member`.
    pub(super) fn asks(&self, member: &Member, sent: &Sent) -> Question {
        let span = request::recorded(|recording| {
            let backend = self.backend(member.id.backend);
            let name = backend.group().map(|_| member.name.as_str());
            recording.asks(&backend.name, name, &member.url, sent)
        });
        Question {
            counted: member.counts.asked(),
            span,
        }
    }
}

impl Question {
    /// The id of its span, if it is recorded.
    pub(super) fn span(&self) -> Option<u64> {
        self.span.as_ref().map(Asked::id)
    }

    /// The head of the answer has come, with this status.
    pub(super) fn head(&mut self, status: u16, after: Duration) {
        self.counted.head(after);
        if let Some(span) = &mut self.span {
            span.head(status, after);
        }
    }

    /// More of the answer has come.
    pub(super) fn received(&mut self, bytes: usize) {
        self.counted.received(bytes);
        if let Some(span) = &mut self.span {
            span.received(bytes);
        }
    }

    /// What has come of it.
    pub(super) fn ends(&mut self, outcome: Outcome) {
        self.counted.ends(outcome);
        if let Some(span) = &mut self.span {
            span.ends(outcome);
        }
    }
}
