//! All copies of all nodes, for whoever looks at the estate instead of at one answer.

use std::borrow::Cow;

use jiff::Timestamp;

use super::{FreshnessMap, Stamp, first_is_owner};
use crate::json::unquote;
use crate::round::BackendId;
use crate::settings::Strategy;

/// What a backend was told of a node, each with a time of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// A report.
    Report,
    /// Its facts.
    Facts,
    /// Its catalog.
    Catalog,
}

impl Told {
    /// All of it, in the order in which it decides who owns a node.
    pub const ALL: [Self; 3] = [Self::Report, Self::Facts, Self::Catalog];
}

/// Whether a backend takes a node for active.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum State {
    /// It does.
    #[default]
    Active,
    /// It has deactivated it, or let it expire.
    Inactive,
}

/// One backend's copy of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// Whose.
    pub backend: BackendId,
    /// How new it is.
    pub stamp: Stamp,
    /// Whether the node is active there.
    pub state: State,
}

/// A node and all copies of it, the owner's first, then the newer before the older.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copies<'m> {
    /// The certname.
    pub certname: Cow<'m, str>,
    /// At least one.
    pub held: Vec<Held>,
}

impl Stamp {
    /// When the newest of this came; `None` if it never did, or was not asked for.
    pub fn of(&self, told: Told) -> Option<Timestamp> {
        let when = match told {
            Told::Report => self.report,
            Told::Facts => self.facts,
            Told::Catalog => self.catalog,
        };
        when.time()
    }

    /// What of it counts under `strategy`: the rest decides nothing.
    #[must_use]
    pub fn under(self, strategy: Strategy) -> Self {
        match strategy {
            Strategy::Exact => self,
            Strategy::Freshness => Self {
                report: self.report,
                ..Self::default()
            },
            Strategy::Static => Self::default(),
        }
    }

    /// The first time by which two copies differ; `None` if they are level.
    pub fn differs(&self, other: &Self) -> Option<Told> {
        Told::ALL
            .into_iter()
            .find(|told| self.of(*told) != other.of(*told))
    }
}

impl FreshnessMap {
    /// All nodes in the order of their certnames' bytes, with the owners that `strategy` gives them.
    pub fn copies(&self, strategy: Strategy) -> impl Iterator<Item = Copies<'_>> {
        let mut order: Vec<_> = self.numbers().collect();
        order.sort_unstable_by_key(|number| self.name(*number));
        order.into_iter().map(move |number| {
            let name = self.name(number);
            let mut held: Vec<_> = self.held(number).collect();
            let counted = |held: &Held| (held.backend, held.stamp.under(strategy));
            held.sort_by(|a, b| first_is_owner(counted(a), counted(b)));
            let certname = unquote(name).unwrap_or_else(|| String::from_utf8_lossy(name));
            Copies { certname, held }
        })
    }

    /// The node of this certname and its copies; `None` if no backend holds it.
    pub fn copies_of(&self, certname: &str, strategy: Strategy) -> Option<Copies<'_>> {
        // Looked up seldom, and by people.
        self.copies(strategy).find(|it| it.certname == certname)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
    use proptest::strategy::Strategy;

    use super::{BackendId, FreshnessMap, State, Told};
    use crate::settings::Strategy as By;

    fn body(nodes: &[(u8, Option<u8>, Option<u8>, bool)]) -> String {
        let time = |at: Option<u8>| at.map(|at| format!("2026-01-01T00:00:{at:02}.000Z"));
        let mut seen = std::collections::BTreeSet::new();
        let nodes = nodes.iter().filter(|node| seen.insert(node.0));
        let nodes: Vec<_> = nodes
            .map(|(name, report, facts, active)| {
                serde_json::json!({
                    "certname": format!("n{name}"),
                    "report_timestamp": time(*report),
                    "facts_timestamp": time(*facts),
                    "deactivated": (!active).then_some("2026-01-01T00:00:00.000Z"),
                })
            })
            .collect();
        serde_json::to_string(&nodes).unwrap()
    }

    fn backend() -> impl Strategy<Value = String> {
        let node = (
            0..6u8,
            proptest::option::of(0..3u8),
            proptest::option::of(0..3u8),
            any::<bool>(),
        );
        proptest::collection::vec(node, 0..6).prop_map(|nodes| body(&nodes))
    }

    proptest! {
        #[test]
        fn the_first_copy_is_the_one_that_an_exact_merge_takes(
            bodies in proptest::collection::vec(backend(), 1..4),
        ) {
            let ids = || (0..).map(BackendId);
            let parts: Vec<_> = ids().zip(bodies.iter().map(String::as_bytes)).collect();
            let (map, damaged) = FreshnessMap::build(&parts);
            prop_assert!(damaged.is_empty());
            let among: Vec<_> = ids().take(bodies.len()).collect();
            let names: Vec<_> = among.iter().map(|id| format!("pdb-{}", id.0)).collect();
            let shares = map.shares(&among, None, &names, 100);
            for copies in map.copies(By::Exact) {
                let holders: Vec<_> = copies.held.iter().map(|held| held.backend).collect();
                prop_assert_eq!(&holders, &map.holders(&copies.certname));
                for (at, held) in copies.held.iter().enumerate() {
                    let share = shares.of(held.backend).unwrap();
                    let stale = share.stale().any(|name| name == copies.certname);
                    prop_assert_eq!(stale, at > 0);
                }
            }
            let owned: usize = among.iter().filter_map(|id| Some(shares.of(*id)?.nodes())).sum();
            prop_assert_eq!(map.copies(By::Exact).count(), owned);
        }
    }

    #[test]
    fn each_strategy_has_its_own_owner() {
        const A: BackendId = BackendId(0);
        const B: BackendId = BackendId(1);
        let owner = |a: String, b: String, by| {
            let bodies = [(A, a.as_bytes()), (B, b.as_bytes())];
            let (map, _) = FreshnessMap::build(&bodies);
            map.copies_of("n1", by).unwrap().held[0].backend
        };
        // Reports that are level, and facts that are newer in the second.
        let (a, b) = (
            || body(&[(1, Some(1), Some(1), true)]),
            || body(&[(1, Some(1), Some(2), false)]),
        );
        for (by, expected) in [(By::Exact, B), (By::Freshness, A), (By::Static, A)] {
            assert_eq!(owner(a(), b(), by), expected, "{by:?}");
        }
        let newer = || body(&[(1, Some(2), None, true)]);
        for (by, expected) in [(By::Exact, B), (By::Freshness, B), (By::Static, A)] {
            assert_eq!(owner(a(), newer(), by), expected, "{by:?}");
        }
    }

    #[test]
    fn copies_come_by_certname_with_their_state_and_what_tells_them_apart() {
        let (a, b) = (
            body(&[(2, Some(1), None, false), (1, None, None, true)]),
            body(&[(2, Some(1), Some(3), true)]),
        );
        let bodies = [(BackendId(0), a.as_bytes()), (BackendId(1), b.as_bytes())];
        let (map, _) = FreshnessMap::build(&bodies);
        let all: Vec<_> = map.copies(By::Exact).collect();
        let names: Vec<_> = all.iter().map(|copies| &*copies.certname).collect();
        assert_eq!(names, ["n1", "n2"]);
        let states: Vec<_> = all[1].held.iter().map(|held| held.state).collect();
        assert_eq!(states, [State::Active, State::Inactive]);
        let (owner, other) = (all[1].held[0].stamp, all[1].held[1].stamp);
        assert_eq!(owner.differs(&other), Some(Told::Facts));
        assert_eq!(
            owner
                .under(By::Freshness)
                .differs(&other.under(By::Freshness)),
            None
        );
        assert_eq!(map.copies_of("n3", By::Exact), None);
    }
}
