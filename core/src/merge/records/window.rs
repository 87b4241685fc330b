//! Whether a window is the window of the merged set, or more records must be asked for.
//!
//! Each backend is asked for its first `offset + limit` records. The merge drops those of nodes
//! that another backend wins, so what is left may be too few; and a node's copies may lie on both
//! sides of a backend's cut, so that the winner is not known yet (rulings 5 and 8, traps T12,
//! T17, T18).

use std::cmp::Ordering;

use crate::merge::owners::FreshnessMap;
use crate::merge::{Again, Reading};
use crate::paging::MAX_ROWS;
use crate::round::BackendId;

use super::scan::Scanned;
use super::{Kept, MergedSet, TextOrder};

/// How much more is asked for each time. A window is rarely short by more than the shared nodes.
const GROWTH: u32 = 4;

/// The backends to ask again before the window can be served; none when it is decided.
pub(super) fn undecided(
    set: &MergedSet<'_, '_>,
    limit_of: impl Fn(BackendId) -> Option<u32>,
    freshness: Option<&FreshnessMap>,
) -> Vec<Again> {
    let Some(needed) = set.plan.window.upstream_limit() else {
        return Vec::new();
    };
    let last_needed = set.kept.get(needed as usize - 1).copied();
    let mut again = Vec::new();
    for (reading, at) in set.readings.iter().zip(0u16..) {
        let backend = reading.backend;
        // A backend that delivered fewer records than it was asked for has no more.
        let Some(limit) = limit_of(backend).filter(|limit| reading.read.rows >= *limit as usize)
        else {
            continue;
        };
        let decided = match set.plan.text_order {
            TextOrder::Backend => last_needed.is_some(),
            TextOrder::Bytes if !cuts_by_certname(set, reading, at, freshness) => {
                again.push(Again {
                    backend,
                    limit: None,
                });
                continue;
            }
            TextOrder::Bytes => last_needed.is_some_and(|last| is_decided(set, last, reading)),
        };
        if decided {
            continue;
        }
        let limit = limit.checked_mul(GROWTH).filter(|more| *more <= MAX_ROWS);
        again.push(Again { backend, limit });
    }
    again
}

/// Whether a backend's cut is known to leave off none but records of nodes that come behind in the
/// order that is merged by.
///
/// Only led by certname do all copies of a node lie at the same place of every backend's order,
/// and only a database that sorts certnames by their bytes has that order. What one cut delivered
/// may be in order by chance, so the freshness map has to vouch for the whole list; the check
/// here is for nodes that are newer than the map.
fn cuts_by_certname(
    set: &MergedSet<'_, '_>,
    reading: &Reading<'_, Scanned>,
    at: u16,
    freshness: Option<&FreshnessMap>,
) -> bool {
    let certname = |entry| set.key(Kept::Records { reading: at, entry }, 0);
    set.plan.is_led_by_certname()
        && freshness.is_some_and(|map| map.lists_by_bytes(reading.backend))
        && (1..reading.read.entries.len())
            .all(|next| by_lead(set, certname(next - 1), certname(next)).is_le())
}

/// Whether all records up to `kept` are known, as far as `reading` could hold any.
///
/// The node at which a backend was cut off is not, unless it has one record: within a node, the
/// database may sort otherwise.
fn is_decided(set: &MergedSet<'_, '_>, kept: Kept, reading: &Reading<'_, Scanned>) -> bool {
    let last = reading.read.last.first().cloned().flatten();
    let last = last.map(|span| &reading.body[span]);
    match by_lead(set, set.key(kept, 0), last) {
        Ordering::Less => true,
        Ordering::Equal => set.plan.order.members().len() == 1,
        Ordering::Greater => false,
    }
}

/// Compares two values of the leading order member.
fn by_lead(set: &MergedSet<'_, '_>, a: Option<&[u8]>, b: Option<&[u8]>) -> Ordering {
    let order = &set.plan.order;
    order.compare(|at| a.filter(|_| at == 0), |at| b.filter(|_| at == 0))
}
