//! What is counted of one backend.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::Histogram;
use super::catalog::Catalog;
use super::names::{Words, words};

words! {
    /// What came of asking a backend, or why an answer was made without it.
    Outcome {
        /// A whole answer with a status of success.
        Ok = "ok",
        /// An answer with a status from 300 to 499.
        Refused = "refused",
        /// An answer with a status from 500 on.
        Error = "error",
        /// No connection.
        Unconnected = "unconnected",
        /// A connection that broke before the answer began.
        Unanswered = "unanswered",
        /// No encrypted connection, or one that the backend does not take.
        Tls = "tls",
        /// What the backend is to be told could not be had.
        Credentials = "credentials",
        /// Nothing came for as long as is waited.
        Timeout = "timeout",
        /// The answer broke off.
        Cut = "cut",
        /// The answer is not what such a question is answered with.
        Damaged = "damaged",
        /// The answer is encoded in a way that cannot be read.
        Encoding = "encoding",
        /// The answer is longer than is allowed.
        TooLong = "too_long",
        /// There was no memory for the answer.
        NoRoom = "no_room",
        /// It was asked as much as it may be, for as long as is waited.
        Busy = "busy",
        /// There was no file descriptor for a connection.
        NoDescriptor = "no_descriptor",
        /// The request does not fit the backend's URL.
        Unsendable = "unsendable",
        /// It could not say which nodes it has.
        Unlisted = "unlisted",
        /// It was not asked, being out of service.
        OutOfService = "out_of_service",
        /// Nobody waited for the end: the client left, or no more was needed.
        Abandoned = "abandoned",
    }
}

impl Outcome {
    /// What an answer with this status is, once it is whole.
    pub fn of_status(status: u16) -> Self {
        match status {
            ..300 => Self::Ok,
            300..500 => Self::Refused,
            500.. => Self::Error,
        }
    }
}

/// Bounds in seconds, from an answer out of memory to one that nobody waits for any more.
pub(super) const SECONDS: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
];

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfBackend {
    backend: String,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfOutcome {
    backend: String,
    outcome: &'static str,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfReason {
    backend: String,
    reason: &'static str,
}

/// The metrics of all backends.
#[derive(Debug)]
pub(super) struct Families {
    requests: Family<OfOutcome, Counter>,
    first_byte: Family<OfBackend, Histogram, fn() -> Histogram>,
    received: Family<OfBackend, Counter>,
    in_flight: Family<OfBackend, Gauge>,
    contributed: Family<OfBackend, Counter>,
    missing: Family<OfReason, Counter>,
}

/// The counts of one backend.
#[derive(Debug)]
pub struct Backend {
    requests: Vec<Counter>,
    first_byte: Histogram,
    received: Counter,
    in_flight: Gauge,
    contributed: Counter,
    missing: Vec<Counter>,
}

impl Families {
    pub(super) fn listed_in(catalog: &mut Catalog) -> Self {
        let families = Self {
            requests: Family::default(),
            first_byte: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            received: Family::default(),
            in_flight: Family::default(),
            contributed: Family::default(),
            missing: Family::default(),
        };
        catalog.add(
            "pdbmux_backend_requests",
            "Questions asked of a backend that have ended, by what came of them; probes are left out",
            &["backend", "outcome"],
            families.requests.clone(),
        );
        catalog.add(
            "pdbmux_backend_first_byte_seconds",
            "Time from a question to the head of the backend's answer",
            &["backend"],
            families.first_byte.clone(),
        );
        catalog.add(
            "pdbmux_backend_received_bytes",
            "Bytes of a backend's answers as they came, compressed where they were",
            &["backend"],
            families.received.clone(),
        );
        catalog.add(
            "pdbmux_backend_requests_in_flight",
            "Questions that a backend is answering",
            &["backend"],
            families.in_flight.clone(),
        );
        catalog.add(
            "pdbmux_backend_contributed",
            "Rounds of questions that a backend's answer went into",
            &["backend"],
            families.contributed.clone(),
        );
        catalog.add(
            "pdbmux_backend_missing",
            "Rounds of questions that came to an answer, or to none, without a backend, by why it was missing",
            &["backend", "reason"],
            families.missing.clone(),
        );
        families
    }

    pub(super) fn of(&self, name: &str) -> Arc<Backend> {
        let of_backend = OfBackend {
            backend: name.to_owned(),
        };
        let requests = Outcome::WORDS.iter().map(|outcome| {
            self.requests.get_or_create_owned(&OfOutcome {
                backend: name.to_owned(),
                outcome,
            })
        });
        let missing = Outcome::WORDS.iter().map(|reason| {
            self.missing.get_or_create_owned(&OfReason {
                backend: name.to_owned(),
                reason,
            })
        });
        Arc::new(Backend {
            requests: requests.collect(),
            first_byte: self.first_byte.get_or_create_owned(&of_backend),
            received: self.received.get_or_create_owned(&of_backend),
            in_flight: self.in_flight.get_or_create_owned(&of_backend),
            contributed: self.contributed.get_or_create_owned(&of_backend),
            missing: missing.collect(),
        })
    }
}

impl Backend {
    /// Counts a question, which has been abandoned unless it is told otherwise.
    pub fn asked(self: &Arc<Self>) -> Asking {
        self.in_flight.inc();
        Asking {
            backend: Arc::clone(self),
            outcome: Outcome::Abandoned,
        }
    }

    /// Counts a round that its answer went into.
    pub fn contributed(&self) {
        self.contributed.inc();
    }

    /// Counts a round without it.
    pub fn missing(&self, why: Outcome) {
        self.missing[why.at()].inc();
    }
}

/// A question under way. It is counted when this is dropped.
#[derive(Debug)]
pub struct Asking {
    backend: Arc<Backend>,
    outcome: Outcome,
}

impl Asking {
    /// The head of the answer has come.
    pub fn head(&self, after: Duration) {
        self.backend.first_byte.observe(after);
    }

    /// More of the answer has come.
    pub fn received(&self, bytes: usize) {
        self.backend.received.inc_by(bytes as u64);
    }

    /// What has come of it.
    pub fn ends(&mut self, outcome: Outcome) {
        self.outcome = outcome;
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.backend.in_flight.dec();
        self.backend.requests[self.outcome.at()].inc();
    }
}
