//! One node: who owns it and why, and how old the other copies are.

use std::borrow::Cow;

use jiff::SignedDuration;
use pdbmux_core::merge::owners::Stamp;
use pdbmux_core::merge::owners::copies::{Copies, State, Told};
use pdbmux_core::round::BackendId;
use pdbmux_core::settings::Strategy;

use super::Moved;

/// Facts and catalogs bear the time at which each PuppetDB stored them, so that what is sent to two
/// of them at once is apart by a little.
const AT_ONCE: SignedDuration = SignedDuration::from_mins(1);

/// A node and its copies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node<'e> {
    /// Its certname.
    pub certname: Cow<'e, str>,
    /// The owner's copy first; at least one.
    pub copies: Vec<NodeCopy>,
    /// Why the owner owns it.
    pub why: Why,
    /// Whether it moved lately; `None` if nobody asked.
    pub moved: Option<bool>,
}

/// One backend's copy of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeCopy {
    /// Whose.
    pub backend: BackendId,
    /// How new it is.
    pub stamp: Stamp,
    /// Whether the node is active there.
    pub state: State,
    /// How old it is beside the newest copy.
    pub behind: Behind,
}

/// Why a backend owns a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// No other backend has it.
    Only,
    /// This of it is newer than in any other backend.
    Newest(Told),
    /// Nothing that counts is newer elsewhere, and it is the first in the configured order.
    First,
}

/// How old a copy is beside the newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behind {
    /// As new.
    Level,
    /// Its newest of this kind is older by that much.
    By(Told, SignedDuration),
    /// It never got one of this kind.
    Never(Told),
}

impl Behind {
    fn of(copy: &Stamp, newest: &Stamp) -> Self {
        let Some(told) = copy.differs(newest) else {
            return Self::Level;
        };
        match (copy.of(told), newest.of(told)) {
            (Some(copy), Some(newest)) => Self::By(told, newest.duration_since(copy)),
            (None, _) | (_, None) => Self::Never(told),
        }
    }

    /// Whether the node reports to another backend by now. What was sent to both at once is not.
    pub fn is_stale(self) -> bool {
        match self {
            Self::Level => false,
            Self::Never(_) | Self::By(Told::Report, _) => true,
            Self::By(Told::Facts | Told::Catalog, time) => time > AT_ONCE,
        }
    }
}

impl<'e> Node<'e> {
    /// Judges the copies of a node, of which the first is the owner's.
    pub(super) fn of(copies: Copies<'e>, strategy: Strategy, moved: Option<&Moved>) -> Self {
        let Copies { certname, held } = copies;
        let stamps = || held.iter().map(|held| held.stamp);
        let newest = stamps().max().unwrap_or_default();
        let mut counted = stamps().map(|stamp| stamp.under(strategy));
        let why = match (counted.next(), counted.next()) {
            (Some(owner), Some(next)) => owner.differs(&next).map_or(Why::First, Why::Newest),
            _ => Why::Only,
        };
        let copies = held.iter().map(|held| NodeCopy {
            backend: held.backend,
            stamp: held.stamp,
            state: held.state,
            behind: Behind::of(&held.stamp, &newest),
        });
        Self {
            copies: copies.collect(),
            why,
            moved: moved.map(|moved| moved.nodes.contains(&*certname)),
            certname,
        }
    }

    /// The owner's copy.
    pub fn owner(&self) -> &NodeCopy {
        &self.copies[0]
    }

    /// Whether more than one backend has it.
    pub fn is_shared(&self) -> bool {
        self.copies.len() > 1
    }

    /// Whether some copy of it is stale.
    pub fn is_stale(&self) -> bool {
        self.copies.iter().any(|copy| copy.behind.is_stale())
    }

    /// Whether its owner takes it for active.
    pub fn is_active(&self) -> bool {
        self.owner().state == State::Active
    }

    /// The copy of a backend.
    pub fn copy(&self, backend: BackendId) -> Option<&NodeCopy> {
        self.copies.iter().find(|copy| copy.backend == backend)
    }
}
