//! How the nodes are spread over the backends.

use super::copies::Held;
use super::{FreshnessMap, first_is_owner};
use crate::round::BackendId;

/// How many nodes there are, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Census {
    /// Certnames that any backend holds, in any state.
    pub nodes: usize,
    /// Those that several hold.
    pub shared: usize,
    /// The backends that are part of the map, in configured order.
    pub backends: Vec<OfBackend>,
}

/// The nodes of one backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfBackend {
    /// Which one it is.
    pub backend: BackendId,
    /// Nodes that it has the newest data of; ties go to the first in configured order (R048).
    pub owned: usize,
    /// The others that it holds.
    pub stale: usize,
}

impl FreshnessMap {
    /// Counts the nodes of each backend.
    pub fn census(&self) -> Census {
        let mut backends: Vec<_> = self
            .contributors
            .iter()
            .map(|contributor| OfBackend {
                backend: contributor.backend,
                owned: 0,
                stale: 0,
            })
            .collect();
        let mut shared = 0;
        for number in self.numbers() {
            let held = self.held(number);
            shared += usize::from(held.clone().nth(1).is_some());
            let copies = held.clone().map(|held| (held.backend, held.stamp));
            let owner = copies.min_by(|a, b| first_is_owner(*a, *b));
            let owner = owner.map(|(backend, _)| backend);
            for Held {
                backend: holder, ..
            } in held
            {
                let Ok(at) = backends.binary_search_by_key(&holder, |of| of.backend) else {
                    continue;
                };
                let is_owner = owner == Some(holder);
                let of = &mut backends[at];
                *(if is_owner {
                    &mut of.owned
                } else {
                    &mut of.stale
                }) += 1;
            }
        }
        Census {
            nodes: self.len(),
            shared,
            backends,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r048_a_node_is_owned_once_and_every_other_copy_is_stale() {
        let node = |name: &str, day: &str| {
            format!(r#"{{"certname":"{name}","report_timestamp":"2026-01-{day}T00:00:00Z"}}"#)
        };
        let list = |nodes: &[(&str, &str)]| {
            let nodes = nodes.iter().map(|(name, day)| node(name, day));
            format!("[{}]", nodes.collect::<Vec<_>>().join(","))
        };
        let a = list(&[("one", "01"), ("two", "02"), ("three", "02"), ("tie", "05")]);
        let b = list(&[("two", "03"), ("three", "03"), ("tie", "05")]);
        let bodies = [
            (BackendId(0), a.as_bytes()),
            (BackendId(1), b.as_bytes()),
            (BackendId(2), b"[]".as_slice()),
        ];
        let census = FreshnessMap::build(&bodies).0.census();
        let of = |backend, owned, stale| OfBackend {
            backend: BackendId(backend),
            owned,
            stale,
        };
        assert_eq!(
            census,
            Census {
                nodes: 4,
                shared: 3,
                backends: vec![of(0, 2, 2), of(1, 2, 1), of(2, 0, 0)],
            }
        );
    }
}
