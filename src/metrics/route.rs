//! What is counted of the answers at one place of the table of routes.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pdbmux_core::route::{Caching, ROUTES};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

use super::backend::SECONDS;
use super::catalog::Catalog;
use super::names::Words;
use super::{Answered, Histogram, Method, Status, Tier};

/// Bounds in seconds of a merge: from a few records to a few gigabytes.
const MERGE: &[f64] = &[
    0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0,
];

/// Where a request is answered. It stands for all paths that are answered alike, so that what clients
/// ask for makes no series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// This row of the table of routes.
    Row(usize),
    /// `/healthz`.
    Health,
    /// `/livez`.
    Live,
    /// `/readyz`.
    Ready,
    /// Nowhere: the path is not served.
    Unknown,
}

impl Place {
    /// Those that are no row.
    const OTHERS: [&'static str; 4] = ["/healthz", "/livez", "/readyz", "unknown"];

    fn at(self) -> usize {
        match self {
            Self::Row(number) => number,
            Self::Health => ROUTES.len(),
            Self::Live => ROUTES.len() + 1,
            Self::Ready => ROUTES.len() + 2,
            Self::Unknown => ROUTES.len() + 3,
        }
    }
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfRoute {
    route: &'static str,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfRequest {
    route: &'static str,
    method: &'static str,
    code: &'static str,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfCache {
    route: &'static str,
    result: &'static str,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfDoubt {
    route: &'static str,
    reason: &'static str,
}

/// The metrics of all places.
#[derive(Debug, Clone)]
struct Families {
    requests: Family<OfRequest, Counter>,
    duration: Family<OfRoute, Histogram, fn() -> Histogram>,
    merge: Family<OfRoute, Histogram, fn() -> Histogram>,
    partial: Family<OfRoute, Counter>,
    refused: Family<OfRoute, Counter>,
    cache: Family<OfCache, Counter>,
    coalesced: Family<OfRoute, Counter>,
    doubts: Family<OfDoubt, Counter>,
}

/// The counts of all places. A series is made when there is something to count: most places are
/// never asked for.
#[derive(Debug)]
pub(super) struct Routes(Vec<Arc<Route>>);

/// The counts of one place.
#[derive(Debug)]
pub struct Route {
    label: &'static str,
    caching: Caching,
    families: Families,
    requests: [[OnceLock<Counter>; Status::WORDS.len()]; Method::WORDS.len()],
    duration: OnceLock<Histogram>,
    merge: OnceLock<Histogram>,
    partial: OnceLock<Counter>,
    refused: OnceLock<Counter>,
    cache: OnceLock<Vec<Counter>>,
    coalesced: OnceLock<Counter>,
}

impl Routes {
    pub(super) fn listed_in(catalog: &mut Catalog) -> Self {
        let families = Families::listed_in(catalog);
        let rows = ROUTES.iter().map(|row| (row.path, row.caching));
        let others = Place::OTHERS.map(|label| (label, Caching::Live));
        let of = |(label, caching)| {
            Arc::new(Route {
                label,
                caching,
                families: families.clone(),
                requests: Default::default(),
                duration: OnceLock::new(),
                merge: OnceLock::new(),
                partial: OnceLock::new(),
                refused: OnceLock::new(),
                cache: OnceLock::new(),
                coalesced: OnceLock::new(),
            })
        };
        Self(rows.chain(others).map(of).collect())
    }

    pub(super) fn at(&self, place: Place) -> &Arc<Route> {
        &self.0[place.at()]
    }
}

impl Families {
    fn listed_in(catalog: &mut Catalog) -> Self {
        let families = Self {
            requests: Family::default(),
            duration: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            merge: Family::new_with_constructor(|| Histogram::new(MERGE)),
            partial: Family::default(),
            refused: Family::default(),
            cache: Family::default(),
            coalesced: Family::default(),
            doubts: Family::default(),
        };
        catalog.add(
            "pdbmux_http_requests",
            "Requests that were answered, by the row of the table of routes, never by path",
            &["route", "method", "code"],
            families.requests.clone(),
        );
        catalog.add(
            "pdbmux_http_request_duration_seconds",
            "Time from a request to the last byte of its answer",
            &["route"],
            families.duration.clone(),
        );
        catalog.add(
            "pdbmux_merge_seconds",
            "Time that it took to merge a round of answers that are there",
            &["route"],
            families.merge.clone(),
        );
        catalog.add(
            "pdbmux_partial_answers",
            "Successful answers that were made without some backend",
            &["route"],
            families.partial.clone(),
        );
        catalog.add(
            "pdbmux_refused_partial_answers",
            "Answers that were refused since they would have been made without some backend",
            &["route"],
            families.refused.clone(),
        );
        catalog.add(
            "pdbmux_cache_results",
            "Successful answers on routes that can be cached, by what the cache had to do with them",
            &["route", "result"],
            families.cache.clone(),
        );
        catalog.add(
            "pdbmux_coalesced",
            "Requests that waited for a round which another had begun",
            &["route"],
            families.coalesced.clone(),
        );
        catalog.add(
            "pdbmux_doubtful_answers",
            "Answers under merge: exact that may differ from one PuppetDB's, by why",
            &["route", "reason"],
            families.doubts.clone(),
        );
        families
    }
}

impl Route {
    /// Counts an answer whose last byte is written, after so long.
    pub fn answered(&self, method: Method, status: Status, after: Duration) {
        let Self {
            label, families, ..
        } = self;
        let requests = self.requests[method.at()][status.at()].get_or_init(|| {
            families.requests.get_or_create_owned(&OfRequest {
                route: label,
                method: method.word(),
                code: status.word(),
            })
        });
        requests.inc();
        let duration = || families.duration.get_or_create_owned(&self.labels());
        self.duration.get_or_init(duration).observe(after);
    }

    /// The row of the table of routes, or another word for the place.
    pub fn label(&self) -> &'static str {
        self.label
    }

    /// Whether some answers of it are kept in the cache.
    pub fn is_cached(&self) -> bool {
        self.caching == Caching::Kept
    }

    /// Counts how whole an answer is. The series begin with the first answer, whole or not: that a
    /// counter rises is not seen where it was not there before.
    pub fn completed(&self, how: Answered) {
        let partial = || self.families.partial.get_or_create_owned(&self.labels());
        let partial = self.partial.get_or_init(partial);
        let refused = || self.families.refused.get_or_create_owned(&self.labels());
        let refused = self.refused.get_or_init(refused);
        match how {
            Answered::Whole => {}
            Answered::Partial => {
                partial.inc();
            }
            Answered::Refused => {
                refused.inc();
            }
        }
    }

    /// Counts what the cache had to do with a successful answer. All series begin at once.
    pub fn cached(&self, tier: Tier) {
        let all = || {
            Tier::WORDS.iter().map(|result| {
                self.families.cache.get_or_create_owned(&OfCache {
                    route: self.label,
                    result,
                })
            })
        };
        self.cache.get_or_init(|| all().collect())[tier.at()].inc();
    }

    /// Counts a request that waits for another's round.
    pub fn coalesced(&self) {
        let coalesced = || self.families.coalesced.get_or_create_owned(&self.labels());
        self.coalesced.get_or_init(coalesced).inc();
    }

    /// Counts a merge that took so long.
    pub fn merged(&self, took: Duration) {
        let merge = || self.families.merge.get_or_create_owned(&self.labels());
        self.merge.get_or_init(merge).observe(took);
    }

    /// Counts a reason to doubt an answer, one of few words.
    pub fn doubted(&self, reason: &'static str) {
        let labels = OfDoubt {
            route: self.label,
            reason,
        };
        self.families.doubts.get_or_create(&labels).inc();
    }

    fn labels(&self) -> OfRoute {
        OfRoute { route: self.label }
    }
}
