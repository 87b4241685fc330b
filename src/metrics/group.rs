//! What is counted of PuppetDBs that stand in for one another.

use std::sync::Arc;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

use super::catalog::Catalog;
use super::names::{Words, words};

words! {
    /// Why another of a group answered than the one that was asked first.
    TakeOver {
        /// That one failed.
        Failure = "failure",
        /// Its answer was damaged.
        Damaged = "damaged",
    }
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfBackend {
    backend: String,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfTakeOver {
    backend: String,
    reason: &'static str,
}

/// The metrics of all groups.
#[derive(Debug)]
pub(super) struct Families {
    hedges: Family<OfBackend, Counter>,
    won: Family<OfBackend, Counter>,
    withheld: Family<OfBackend, Counter>,
    take_overs: Family<OfTakeOver, Counter>,
}

/// The counts of one group; by default they go nowhere.
#[derive(Debug, Default)]
pub struct Group {
    hedges: Counter,
    won: Counter,
    withheld: Counter,
    take_overs: [Counter; TakeOver::WORDS.len()],
}

impl Families {
    pub(super) fn listed_in(catalog: &mut Catalog) -> Self {
        let mut of_backends = |name, help| {
            let family = Family::<OfBackend, Counter>::default();
            catalog.add(name, help, &["backend"], family.clone());
            family
        };
        let hedges = of_backends(
            "pdbmux_hedges",
            "Questions that a second of a group was asked as well, since the first had not begun to answer within hedge_after",
        );
        let won = of_backends(
            "pdbmux_hedges_won",
            "Those of them that the second answered",
        );
        let withheld = of_backends(
            "pdbmux_hedges_withheld",
            "Questions that no second of a group was asked, slow as the first was, since one in ten had been asked twice",
        );
        let take_overs = Family::default();
        catalog.add(
            "pdbmux_take_overs",
            "Questions that another of a group answered than the one that was asked first, by what had become of that one",
            &["backend", "reason"],
            Family::clone(&take_overs),
        );
        Self {
            hedges,
            won,
            withheld,
            take_overs,
        }
    }

    pub(super) fn of(&self, name: &str) -> Arc<Group> {
        let group = OfBackend {
            backend: name.to_owned(),
        };
        let taken_over = |why: TakeOver| {
            self.take_overs.get_or_create_owned(&OfTakeOver {
                backend: name.to_owned(),
                reason: why.word(),
            })
        };
        Arc::new(Group {
            hedges: self.hedges.get_or_create_owned(&group),
            won: self.won.get_or_create_owned(&group),
            withheld: self.withheld.get_or_create_owned(&group),
            take_overs: [TakeOver::Failure, TakeOver::Damaged].map(taken_over),
        })
    }
}

impl Group {
    /// Counts a question that a second is asked as well.
    pub fn hedged(&self) {
        self.hedges.inc();
    }

    /// Counts one of them that the second answers.
    pub fn hedge_won(&self) {
        self.won.inc();
    }

    /// Counts a question that is asked of one alone, though it is slow.
    pub fn not_hedged(&self) {
        self.withheld.inc();
    }

    /// Counts a question that another answers.
    pub fn taken_over(&self, why: TakeOver) {
        self.take_overs[why.at()].inc();
    }
}
