//! The nodes of one backend, read while its answer arrives.

use std::ops::Range;

use super::canonical;
use super::copies::State;
use super::stamps::{Stamp, Stamps, When};
use crate::json::{Arriving, Kind, ScanError, kind};
use crate::paging::{ColumnKind, compare_values};
use crate::round::BackendId;

/// What is read of each record.
const COLUMNS: [&str; 6] = [
    "certname",
    "report_timestamp",
    "facts_timestamp",
    "catalog_timestamp",
    "deactivated",
    "expired",
];

/// Certnames in their canonical spelling, one behind the other.
#[derive(Debug, Default)]
pub(super) struct Names {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Names {
    pub(super) fn push(&mut self, name: &[u8]) {
        self.text.extend_from_slice(name);
        self.ends.push(self.text.len());
    }

    pub(super) fn get(&self, at: usize) -> &[u8] {
        &self.text[part(&self.ends, at)]
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|at| self.get(at))
    }

    fn last(&self) -> Option<&[u8]> {
        Some(self.get(self.len().checked_sub(1)?))
    }

    fn size(&self) -> usize {
        self.text.len() + size_of_val(&*self.ends)
    }

    /// Gives back what there is room for beyond them.
    pub(super) fn shrink(&mut self) {
        self.text.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}

/// Where a part lies, if each begins where the one before ends.
pub(super) fn part(ends: &[usize], at: usize) -> Range<usize> {
    let start = at.checked_sub(1).map_or(0, |before| ends[before]);
    start..ends[at]
}

/// What the freshness map takes of one backend's answer to `/nodes`.
#[derive(Debug)]
pub struct Nodes {
    pub(super) backend: BackendId,
    pub(super) names: Names,
    /// By the places of the names.
    pub(super) stamps: Stamps,
    /// How many are inactive.
    pub(super) inactive: u64,
    /// Whether they came in the order of their bytes.
    pub(super) by_bytes: bool,
}

impl Nodes {
    fn push(&mut self, name: &[u8], stamp: Stamp, state: State) {
        let is_behind = |last| compare_values(ColumnKind::Plain, last, name).is_le();
        self.by_bytes &= self.names.last().is_none_or(is_behind);
        self.inactive += u64::from(state == State::Inactive);
        self.stamps.set(self.names.len(), stamp, state);
        self.names.push(name);
    }

    /// Reads a body that is there whole.
    ///
    /// # Errors
    /// Why the body is no array of objects.
    pub fn read(backend: BackendId, body: &[u8]) -> Result<Self, ScanError> {
        let mut arriving = ArrivingNodes::of(backend);
        arriving.feed(body)?;
        arriving.finish()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.names.len()
    }
}

/// The same, as far as the answer has come. Of the text itself no more is kept than a record that has
/// not ended.
#[derive(Debug)]
pub struct ArrivingNodes {
    text: Arriving,
    nodes: Nodes,
}

impl ArrivingNodes {
    /// Of the answer of `backend` nothing has come yet.
    pub fn of(backend: BackendId) -> Self {
        Self {
            text: Arriving::default(),
            nodes: Nodes {
                backend,
                names: Names::default(),
                stamps: Stamps::default(),
                inactive: 0,
                by_bytes: true,
            },
        }
    }

    /// Takes in what has come next.
    ///
    /// # Errors
    /// Why the text can be no array of objects; then nothing becomes of it any more.
    pub fn feed(&mut self, chunk: &[u8]) -> Result<(), ScanError> {
        let Self { text, nodes } = self;
        text.feed(&COLUMNS, chunk, |record| {
            let [certname, report, facts, catalog, states @ ..] = record.fields else {
                return;
            };
            let text = |span: &Option<_>| span.clone().map(|span: Range<usize>| &record.text[span]);
            let Some(certname) = text(certname) else {
                return;
            };
            let stamp = Stamp {
                report: When::read(text(report)),
                facts: When::read(text(facts)),
                catalog: When::read(text(catalog)),
            };
            let is_inactive = states.iter().filter_map(text).any(is_given);
            let state = if is_inactive {
                State::Inactive
            } else {
                State::Active
            };
            nodes.push(&canonical(certname), stamp, state);
        })
    }

    /// How many bytes are kept of it.
    pub fn held(&self) -> usize {
        self.text.carried() + self.nodes.names.size() + self.nodes.stamps.size()
    }

    /// Ends the answer.
    ///
    /// # Errors
    /// Why it is no array of objects, or that it is not whole.
    pub fn finish(mut self) -> Result<Nodes, ScanError> {
        self.text.finish()?;
        // What others still send is waited for.
        self.nodes.names.shrink();
        self.nodes.stamps.shrink();
        Ok(self.nodes)
    }
}

fn is_given(raw: &[u8]) -> bool {
    kind(raw) != Kind::Null
}
