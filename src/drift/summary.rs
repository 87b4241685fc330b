//! The estate in numbers.

use pdbmux_core::round::BackendId;
use serde::Serialize;

use super::{Moves, Node};

/// Nodes by what they are, in one backend or in all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// It has a copy of them; in all, the certnames.
    pub held: u64,
    /// It owns them.
    pub owned: u64,
    /// It owns them, and takes them for active.
    pub active: u64,
    /// It owns them, and takes them for inactive.
    pub inactive: u64,
    /// No other backend has them.
    pub only: u64,
    /// Another backend has them too.
    pub shared: u64,
    /// Its copy of them is stale; in all, some copy is.
    pub stale: u64,
    /// They moved to it lately; `None` if nobody asked.
    pub moved: Option<u64>,
}

/// The counts of each backend, in configured order, and of all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// One for each backend.
    pub backends: Vec<Counts>,
    /// Each node once.
    pub all: Counts,
}

impl Summary {
    /// Counts the nodes of so many backends, where `moves` were asked for or not.
    pub(super) fn of<'e>(
        nodes: impl Iterator<Item = Node<'e>>,
        backends: usize,
        moves: Moves,
    ) -> Self {
        let none = Counts {
            moved: match moves {
                Moves::Asked => Some(0),
                Moves::Unasked => None,
            },
            ..Counts::default()
        };
        let mut summary = Self {
            backends: vec![none; backends],
            all: none,
        };
        for node in nodes {
            summary.all.held += 1;
            count(&mut summary.all.stale, node.is_stale());
            summary.all.own(&node);
            for (at, copy) in node.copies.iter().enumerate() {
                let of = &mut summary.backends[copy.backend.index()];
                of.held += 1;
                count(&mut of.stale, copy.behind.is_stale());
                if at == 0 {
                    of.own(&node);
                } else {
                    of.shared += 1;
                }
            }
        }
        summary
    }

    /// The counts of a backend.
    pub fn of_backend(&self, backend: BackendId) -> &Counts {
        &self.backends[backend.index()]
    }
}

impl Counts {
    fn own(&mut self, node: &Node<'_>) {
        self.owned += 1;
        count(&mut self.active, node.is_active());
        count(&mut self.inactive, !node.is_active());
        count(&mut self.shared, node.is_shared());
        count(&mut self.only, !node.is_shared());
        if let (Some(all), Some(moved)) = (&mut self.moved, node.moved) {
            count(all, moved);
        }
    }
}

fn count(number: &mut u64, counts: bool) {
    *number += u64::from(counts);
}
