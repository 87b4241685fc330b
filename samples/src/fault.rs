//! Why a request gets no rows, in PuppetDB's three statuses.

use std::fmt;

/// A request that PuppetDB, or this sample of one, does not answer with data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// `400`: the query is wrong, or asks for something the sample does not evaluate.
    Refused(String),
    /// `404`: the parent or the single record does not exist.
    Absent {
        /// PuppetDB's word for what is missing, such as `node`.
        kind: &'static str,
        /// The key that was asked for.
        id: String,
    },
    /// `500`: a mistake that PuppetDB leaves to its database to find.
    Broken(String),
}

impl Fault {
    /// A `400` for a form that a real PuppetDB would have evaluated.
    pub(crate) fn unsupported(what: impl fmt::Display) -> Self {
        Self::Refused(format!("This sample PuppetDB does not evaluate {what}"))
    }
}
