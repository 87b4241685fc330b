//! Whose records of a node are served, where all that hold it come to it at the same time.

use std::borrow::Cow;
use std::sync::Arc;

use crate::merge::owners::{FreshnessMap, Stamp, canonical};
use crate::merge::records::Keep;
use crate::merge::records::scan::Layout;
use crate::round::BackendId;

use super::queues::Head;

/// The node whose records are being written, and what it takes to know whose they are.
#[derive(Debug)]
pub(super) struct Nodes {
    keep: Keep,
    sources: Vec<BackendId>,
    freshness: Option<Arc<FreshnessMap>>,
    current: Option<Node>,
}

#[derive(Debug)]
struct Node {
    /// Its certname as its first record spells it.
    raw: Vec<u8>,
    /// Whose records are served; `None` where copies do not compete.
    winner: Option<u16>,
    /// Whether one of them was.
    is_begun: bool,
}

/// What becomes of a record for being its backend's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// Another backend's are served.
    Lost,
    /// It is the first of its node that is served.
    First,
    /// It is served like others before it.
    Further,
}

impl Nodes {
    pub(super) fn new(
        keep: Keep,
        sources: &[BackendId],
        freshness: Option<Arc<FreshnessMap>>,
    ) -> Self {
        Self {
            keep,
            sources: sources.to_vec(),
            freshness,
            current: None,
        }
    }

    /// What becomes of the next record of the backend at `from`, which is about `raw`; `heads` are
    /// the next records of all that have not ended.
    pub(super) fn turn<'q, H: Iterator<Item = Head<'q>>>(
        &mut self,
        raw: &[u8],
        from: u16,
        layout: &Layout<'_>,
        heads: impl FnOnce() -> H,
    ) -> Turn {
        if let Keep::Each(_) = self.keep {
            return Turn::Further;
        }
        let is_known = |node: &Node| node.raw == raw || canonical(&node.raw) == canonical(raw);
        if !self.current.as_ref().is_some_and(is_known) {
            self.current = Some(Node {
                raw: raw.to_vec(),
                winner: self.winner(&canonical(raw), layout, heads()),
                is_begun: false,
            });
        }
        let Some(node) = &mut self.current else {
            return Turn::Further;
        };
        if node.winner.is_some_and(|winner| winner != from) {
            return Turn::Lost;
        }
        if std::mem::replace(&mut node.is_begun, true) {
            Turn::Further
        } else {
            Turn::First
        }
    }

    /// Who has the newest data of the node of the canonical spelling `name`, of those that have
    /// records of it; the first configured of equals.
    fn winner<'q>(
        &self,
        name: &[u8],
        layout: &Layout<'_>,
        heads: impl Iterator<Item = Head<'q>>,
    ) -> Option<u16> {
        let mut best: Option<(u16, Stamp)> = None;
        for head in heads {
            if head.name(layout).map(canonical) != Some(Cow::Borrowed(name)) {
                continue;
            }
            let stamp = match self.keep {
                Keep::Owned | Keep::OfOwner | Keep::Each(_) => return None,
                Keep::First => Stamp::default(),
                Keep::NewestReport => Stamp::of_report(layout.stamp.and_then(|at| head.value(at))),
                Keep::Freshest => {
                    let backend = self.sources[usize::from(head.from)];
                    let map = self.freshness.as_deref();
                    map.map(|map| map.stamp(name, backend)).unwrap_or_default()
                }
            };
            if best.is_none_or(|(_, newest)| stamp > newest) {
                best = Some((head.from, stamp));
            }
        }
        best.map(|(from, _)| from)
    }
}
