//! What one backend answered to several questions.

use std::ops::Range;

use crate::round::{BackendId, Part, Reply};

/// The parts of one backend, in the order of its questions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group<'r, 'b> {
    parts: &'r [Part<'b>],
    /// Which of them speaks for all: the first that is no success, else the first.
    speaker: usize,
    /// The place of the first of them in the round.
    at: usize,
}

/// Divides a round by backend.
pub(super) fn by_backend<'r, 'b>(round: &'r [Part<'b>]) -> Vec<Group<'r, 'b>> {
    let mut at = 0;
    let groups = round.chunk_by(|a, b| a.backend == b.backend);
    groups
        .map(|parts| {
            let begins = at;
            at += parts.len();
            let is_bad = |part: &Part<'_>| !part.reply.is_some_and(|reply| reply.is_success());
            Group {
                parts,
                speaker: parts.iter().position(is_bad).unwrap_or(0),
                at: begins,
            }
        })
        .collect()
}

impl<'b> Group<'_, 'b> {
    /// Whose they are.
    pub(super) fn backend(&self) -> BackendId {
        self.parts[self.speaker].backend
    }

    /// The backend's parts as the answers to those of its questions that lie in `places` and that it
    /// was asked: what speaks for all where it did not answer all.
    pub(super) fn parts(&self, places: Range<usize>) -> Vec<Part<'b>> {
        let asked = places.start..places.end.min(self.parts.len());
        match self.answers() {
            Ok(_) if !asked.is_empty() => self.parts[asked].to_vec(),
            _ => vec![self.part(places.start)],
        }
    }

    /// The answers, if the backend answered all questions, and else what it said instead.
    pub(super) fn answers(&self) -> Result<impl Iterator<Item = Reply<'b>>, Part<'b>> {
        let speaker = self.parts[self.speaker];
        match speaker.reply {
            Some(reply) if reply.is_success() => {
                Ok(self.parts.iter().filter_map(|part| part.reply))
            }
            _ => Err(speaker),
        }
    }

    /// The backend's part as the answer to its question at `nth`: what speaks for all where it did
    /// not answer all.
    pub(super) fn part(&self, nth: usize) -> Part<'b> {
        match self.answers() {
            Ok(_) => self.parts.get(nth).copied().unwrap_or(Part {
                reply: None,
                ..self.parts[self.speaker]
            }),
            Err(speaker) => speaker,
        }
    }

    /// The place in the round of what speaks for all.
    pub(super) fn spoke_at(&self) -> usize {
        self.at + self.speaker
    }
}
