//! `pdbmux drift`: which node lives where, whose copy is old, and whether the estate is where it
//! should be.
//!
//! Owners come from the freshness map, by the code that merges take them from. `ask` fetches,
//! all else is pure.

mod ask;
mod filter;
pub mod gate;
mod moved;
mod node;
mod question;
mod show;
mod span;
mod summary;

use std::collections::HashSet;

use jiff::Timestamp;
use pdbmux_core::merge::owners::FreshnessMap;
use pdbmux_core::round::BackendId;
use pdbmux_core::settings::Strategy;

pub(crate) use ask::list;
pub use ask::read;
pub use filter::{Filter, FilterError};
pub use node::{Behind, Node, NodeCopy, Why};
pub use question::{Moves, Question, QuestionError, Verdict};
pub use show::{Rows, csv, json, table};
pub use span::span;
pub use summary::{Counts, Summary};

/// All nodes of all backends, as they were at one time.
#[derive(Debug)]
pub struct Estate {
    /// When.
    pub at: Timestamp,
    /// The backends' names, in configured order.
    pub backends: Vec<String>,
    /// Those that are not in it, and why.
    pub missing: Vec<(BackendId, String)>,
    /// From when on a node counts as moved, and which have; `None` if nobody asked.
    pub moved: Option<Moved>,
    map: FreshnessMap,
    strategy: Strategy,
}

/// The nodes that have moved lately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// When lately began.
    pub since: Timestamp,
    /// Their certnames.
    pub nodes: HashSet<String>,
}

impl Estate {
    /// The estate as a map shows it; nobody has asked who moved. Whom the map does not cover is
    /// missing in it.
    pub fn of(
        map: FreshnessMap,
        backends: Vec<String>,
        strategy: Strategy,
        missing: Vec<(BackendId, String)>,
        at: Timestamp,
    ) -> Self {
        Self {
            at,
            backends,
            missing,
            moved: None,
            map,
            strategy,
        }
    }

    /// The nodes in the order of their certnames' bytes.
    pub fn nodes(&self) -> impl Iterator<Item = Node<'_>> {
        let copies = self.map.copies(self.strategy);
        copies.map(|copies| Node::of(copies, self.strategy, self.moved.as_ref()))
    }

    /// One node; `None` if no backend holds it.
    pub fn node(&self, certname: &str) -> Option<Node<'_>> {
        let copies = self.map.copies_of(certname, self.strategy)?;
        Some(Node::of(copies, self.strategy, self.moved.as_ref()))
    }

    /// The name of a backend.
    pub fn name(&self, backend: BackendId) -> &str {
        &self.backends[backend.index()]
    }

    /// The backend of this name.
    pub fn backend(&self, name: &str) -> Option<BackendId> {
        place(&self.backends, name)
    }

    /// How owners are chosen in it.
    pub fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// The nodes, counted.
    pub fn summary(&self) -> Summary {
        let moves = match self.moved {
            Some(_) => Moves::Asked,
            None => Moves::Unasked,
        };
        Summary::of(self.nodes(), self.backends.len(), moves)
    }

    /// The backends that are missing, each with the reason, as one sentence.
    ///
    /// # Errors
    ///
    /// Some are.
    pub fn whole(&self) -> Result<(), Incomplete> {
        if self.missing.is_empty() {
            return Ok(());
        }
        let missing = self.missing.iter();
        let each = missing.map(|(backend, why)| format!("{}: {why}", self.name(*backend)));
        Err(Incomplete(each.collect::<Vec<_>>().join("; ")))
    }
}

/// Backends that did not tell their nodes, so that nothing is known of the estate for sure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the estate could not be read whole: {0}")]
pub struct Incomplete(String);

fn place(backends: &[String], name: &str) -> Option<BackendId> {
    let at = backends.iter().position(|known| known == name)?;
    u16::try_from(at).ok().map(BackendId)
}

#[cfg(test)]
mod tests;
