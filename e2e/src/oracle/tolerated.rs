//! The differences that are allowed, each with its reason. Whatever else differs is a fault.
//!
//! Besides these, [`super::compare`] never looks at receipt times (each PuppetDB stamps its own,
//! wire 4.1), at the order of members and of lists that PostgreSQL gathers in no order, nor at
//! the words of a refusal (they differ between versions, wire 13).

use crate::http::Answer;

use super::ask::Ask;
use super::compare::{Difference, What};
use super::shape::Shape;

/// A difference that was found, and what is needed to judge it.
#[derive(Debug)]
pub struct Found<'a> {
    /// The question.
    pub ask: &'a Ask,
    /// What it is about.
    pub shape: &'a Shape,
    /// The union's answer.
    pub union: &'a Answer,
    /// pdbmux's answer.
    pub got: &'a Answer,
    /// What each backend says to the same question itself.
    pub backends: &'a [Answer],
    /// How the two differ.
    pub differences: &'a [Difference],
}

/// A difference that is allowed.
#[derive(Debug)]
pub struct Tolerated {
    /// A short name, for the report.
    pub name: &'static str,
    /// Why it is no fault.
    pub reason: &'static str,
    /// Whether it explains all of what was found.
    pub covers: fn(&Found<'_>) -> bool,
}

/// All of them; the first that covers a difference explains it.
pub static TOLERATED: &[Tolerated] = &[
    Tolerated {
        name: "the versions disagree",
        reason: "PuppetDBs of different versions refuse the same mistake with different statuses \
                 (wire 13); pdbmux answers one backend's, or 502 where they are not unanimous",
        covers: |found| {
            let mut statuses = found.backends.iter().map(|answer| answer.status);
            let unanimous = found
                .backends
                .windows(2)
                .all(|pair| pair[0].status == pair[1].status);
            found.union.status >= 400
                && statuses.all(|status| status >= 400)
                && !unanimous
                && (found.got.status == 502
                    || found
                        .backends
                        .iter()
                        .any(|answer| answer.status == found.got.status))
        },
    },
    Tolerated {
        name: "events of a report",
        reason: "/reports/<hash>/events is broken in every PuppetDB since 6.22 (500, T3); pdbmux \
                 answers it from /events",
        covers: |found| {
            found.union.status == 500
                && found.got.status == 200
                && found.ask.path.contains("/reports/")
                && found.ask.path.ends_with("/events")
        },
    },
    Tolerated {
        name: "a column of a dropped join",
        reason: "ordering or grouping by a column that is not projected is a 500 where it stands \
                 in another table (T11); pdbmux projects it and takes it out again",
        covers: |found| {
            found.union.status == 500
                && found.got.status == 200
                && found.union.body.contains("missing FROM-clause entry")
        },
    },
];

/// What explains a difference, if anything does.
pub fn explanation(found: &Found<'_>) -> Option<&'static Tolerated> {
    TOLERATED.iter().find(|one| (one.covers)(found))
}

/// What pdbmux itself says is not exact about an answer, and why.
pub fn mark(got: &Answer) -> Option<&str> {
    got.header("x-pdbmux-exact")
        .filter(|said| said.starts_with("no"))
}

/// Whether the status alone differs, as it does where one of the two refuses.
pub fn is_refusal(differences: &[Difference]) -> bool {
    differences.iter().all(|one| one.what == What::Status)
}
