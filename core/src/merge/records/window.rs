//! Whether a window is the window of the merged set, or more records must be asked for.
//!
//! Each backend is asked for its first `offset + limit` records. The merge drops those of nodes
//! that another backend wins, so what is left may be too few; and a node's copies may lie on both
//! sides of a backend's cut, so that the winner is not known yet (rulings 5 and 8, traps T12,
//! T17, T18).

use crate::merge::{Again, Reading};

use super::scan::Scanned;
use super::{Keep, Kept, MergedSet, RecordMerge};

/// How much more is asked for each time. A window is rarely short by more than the shared nodes.
const GROWTH: u32 = 4;

/// The backends to ask again before the window can be served; none when it is decided.
pub(super) fn undecided(
    plan: &RecordMerge,
    set: &MergedSet<'_, '_>,
    limit_of: impl Fn(&Reading<'_, Scanned>) -> Option<u32>,
) -> Vec<Again> {
    // A backend that delivered fewer records than it was asked for has no more.
    let cut: Vec<_> = set
        .readings
        .iter()
        .zip(0u16..)
        .filter_map(|(reading, at)| {
            let limit = limit_of(reading)?;
            (reading.read.rows >= limit as usize).then_some((reading, at, limit))
        })
        .collect();
    let Some(needed) = plan.window.upstream_limit() else {
        return Vec::new();
    };
    // Ordered by certname, all copies of a node lie at the same place of every backend's order.
    let by_certname = plan
        .order
        .members()
        .first()
        .is_some_and(|first| first == "certname");
    // Of copies of one record the one that comes first is served, so they may lie anywhere.
    let comparable = by_certname || set.readings.len() == 1 || matches!(plan.keep, Keep::Each(_));
    if !comparable
        || cut
            .iter()
            .any(|(reading, at, _)| !in_our_order(set, reading, *at))
    {
        return cut
            .iter()
            .map(|(reading, ..)| Again {
                backend: reading.backend,
                limit: None,
            })
            .collect();
    }
    let last_needed = set.kept.get(needed as usize - 1);
    cut.iter()
        .filter(|(reading, ..)| last_needed.is_none_or(|last| lies_behind(set, *last, reading)))
        .map(|(reading, _, limit)| Again {
            backend: reading.backend,
            limit: limit.checked_mul(GROWTH),
        })
        .collect()
}

/// Whether a record lies behind the last one that `reading` delivered.
fn lies_behind(set: &MergedSet<'_, '_>, kept: Kept, reading: &Reading<'_, Scanned>) -> bool {
    let last = |at: usize| {
        let span = reading.read.last.get(at).cloned().flatten();
        span.map(|span| &reading.body[span])
    };
    set.plan.order.compare(|at| set.key(kept, at), last).is_gt()
}

/// Whether a backend delivered in the order that is merged by. One whose database sorts text by a
/// language's rules does not, and then its cut is not ours.
fn in_our_order(set: &MergedSet<'_, '_>, reading: &Reading<'_, Scanned>, at: u16) -> bool {
    let entry = |entry| Kept::Read { reading: at, entry };
    (1..reading.read.entries.len()).all(|next| {
        let order = &set.plan.order;
        order
            .compare(
                |at| set.key(entry(next - 1), at),
                |at| set.key(entry(next), at),
            )
            .is_le()
    })
}
