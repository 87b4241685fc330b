//! Whether a window is the window of the merged set, or more records must be asked for.
//!
//! Each backend is asked for its first `offset + limit` records. The merge drops those of nodes
//! that another backend wins, so what is left may be too few; and a node's copies may lie on both
//! sides of a backend's cut, so that the winner is not known yet (rulings 5 and 8, traps T12,
//! T17, T18).

use std::cmp::Ordering;

use crate::merge::Again;
use crate::merge::owners::FreshnessMap;
use crate::paging::MAX_ROWS;
use crate::round::BackendId;

use super::trust::CertnameOrder;
use super::{Kept, MergedSet, Read, TextOrder};

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
            TextOrder::Bytes => {
                let agreed = agreed_members(set, reading, at, freshness);
                if agreed == 0 {
                    again.push(Again {
                        backend,
                        limit: None,
                    });
                    continue;
                }
                last_needed.is_some_and(|last| is_decided(set, last, reading, agreed))
            }
        };
        if decided {
            continue;
        }
        let limit = limit.checked_mul(GROWTH).filter(|more| *more <= MAX_ROWS);
        again.push(Again { backend, limit });
    }
    again
}

/// By how many members, the leading ones, a backend's cut is known to be ours: it leaves off none
/// but records that come behind in the order that is merged by.
///
/// A certname is text, and only a database that sorts it by bytes has our order. What one cut
/// delivered may be in order by chance, so the freshness map has to vouch for the whole list; the
/// check here is for nodes that are newer than the map. Of copies that do not lie at the same place
/// of every backend's order, the first is served, wherever the others lie.
fn agreed_members(
    set: &MergedSet<'_, '_>,
    reading: &Read<'_>,
    at: u16,
    freshness: Option<&FreshnessMap>,
) -> usize {
    let agreed = set
        .plan
        .agreed_members(CertnameOrder::of(reading.backend, freshness));
    let in_order = (1..reading.read.entries.len()).all(|next| {
        compare(
            set,
            agreed,
            |m| key_of(set, at, next - 1, m),
            |m| key_of(set, at, next, m),
        )
        .is_le()
    });
    if in_order { agreed } else { 0 }
}

fn key_of<'s>(
    set: &'s MergedSet<'_, '_>,
    reading: u16,
    entry: usize,
    at: usize,
) -> Option<&'s [u8]> {
    set.key(Kept::Records { reading, entry }, at)
}

/// Whether all records up to `kept` are known, as far as `reading` could hold any.
///
/// Records that are equal in all agreed members to the last one delivered are not, unless those are
/// all members there are: the database may sort the others otherwise.
fn is_decided(set: &MergedSet<'_, '_>, kept: Kept, reading: &Read<'_>, agreed: usize) -> bool {
    let last = |at: usize| {
        let span = reading.read.last.get(at).cloned().flatten();
        span.map(|span| &reading.body[span])
    };
    match compare(set, agreed, |at| set.key(kept, at), last) {
        Ordering::Less => true,
        Ordering::Equal => set.plan.order.members().len() == agreed,
        Ordering::Greater => false,
    }
}

/// Compares by the leading `agreed` members alone.
fn compare<'v>(
    set: &MergedSet<'_, '_>,
    agreed: usize,
    a: impl Fn(usize) -> Option<&'v [u8]>,
    b: impl Fn(usize) -> Option<&'v [u8]>,
) -> Ordering {
    let among = |at: usize| at < agreed;
    set.plan.order.compare(
        |at| a(at).filter(|_| among(at)),
        |at| b(at).filter(|_| among(at)),
    )
}
