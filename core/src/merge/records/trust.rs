//! How far the order in which a backend sends records is known to be ours.

use crate::merge::owners::FreshnessMap;
use crate::round::BackendId;

use super::{Keep, RecordMerge};

/// Columns that every database orders alike: times, hashes, and words in lower case.
const AGREED: [&str; 11] = [
    "end_time",
    "start_time",
    "producer_timestamp",
    "receive_time",
    "hash",
    "status",
    "timestamp",
    "run_start_time",
    "run_end_time",
    "report_receive_time",
    "report",
];

/// Whether a backend's certnames stand in our order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CertnameOrder {
    /// As far as is known: they are ordered by bytes.
    Ours,
    /// Perhaps not: they are text, and only a database that sorts it by bytes has our order.
    Unknown,
}

impl CertnameOrder {
    /// What the freshness map, which asks for all nodes in order, shows of `backend`.
    pub(super) fn of(backend: BackendId, map: Option<&FreshnessMap>) -> Self {
        match map {
            Some(map) if map.lists_by_bytes(backend) => Self::Ours,
            _ => Self::Unknown,
        }
    }
}

impl RecordMerge {
    /// By how many members, the leading ones, the order of a backend is known to be ours.
    ///
    /// Where copies of a node compete they must also lie at the same place of every backend's order,
    /// which is so only if certname leads it.
    pub(super) fn agreed_members(&self, certnames: CertnameOrder) -> usize {
        let is_certname = |member: &str| certnames == CertnameOrder::Ours && member == "certname";
        let is_ours = |member: &&String| match self.keep {
            Keep::Owned | Keep::OfOwner | Keep::Each(_) => {
                AGREED.contains(&&***member) || is_certname(member)
            }
            Keep::NewestReport | Keep::Freshest | Keep::First => is_certname(member),
        };
        self.order.members().iter().take_while(is_ours).count()
    }
}
