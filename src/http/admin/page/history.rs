//! Who owned how many nodes, minute by minute, for a day.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};

/// How many samples are kept, and how far they are apart at least.
const KEPT: usize = 24 * 60;
const APART: SignedDuration = SignedDuration::from_secs(60);

/// The owned nodes of each backend over time.
#[derive(Debug, Clone, Default)]
pub struct History {
    names: Vec<String>,
    samples: VecDeque<Sample>,
}

/// The owned nodes at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// When.
    pub at: Timestamp,
    /// Of each backend, in the order of the names.
    pub owned: Vec<u64>,
}

impl History {
    /// Nothing yet, of these backends.
    pub fn of(names: Vec<String>) -> Self {
        Self {
            names,
            samples: VecDeque::new(),
        }
    }

    /// Keeps a sample. One that comes within a minute of the last takes its place, with its time.
    pub fn keep(&mut self, at: Timestamp, owned: Vec<u64>) {
        if let Some(last) = self.samples.back_mut()
            && at.duration_since(last.at) < APART
        {
            last.owned = owned;
            return;
        }
        if self.samples.len() == KEPT {
            self.samples.pop_front();
        }
        self.samples.push_back(Sample { at, owned });
    }

    /// The backends' names.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The samples, the oldest first.
    pub fn samples(&self) -> impl DoubleEndedIterator<Item = &Sample> + ExactSizeIterator {
        self.samples.iter()
    }
}
