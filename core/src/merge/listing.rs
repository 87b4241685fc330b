//! `/fact-names`: the union of flat lists, ordered and cut.

use crate::answer::{Answer, ArrayPieces};
use crate::json::{Elements, unquote};
use crate::merge::names::{Direction, union};
use crate::merge::records::Total;
use crate::merge::{Again, Merged, Outcome, whole};
use crate::paging::Window;
use crate::round::{Part, Reply};

/// How the lists of several backends become one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListMerge {
    /// The order of the merged list.
    pub direction: Direction,
    /// The part of it that is served.
    pub window: Window,
    /// The source fact's name, listed while injection is on (R091).
    pub source: Option<String>,
    /// What `X-Records` says: the size of the whole union, if anything (R090).
    pub total: Total,
}

/// Merges a round. `limits` are those sent to each part of it.
pub(super) fn merge(plan: &ListMerge, round: &[Part<'_>], limits: &[Option<u32>]) -> Merged {
    // A backend that was cut off while it lists by other rules may keep back names that belong
    // into the window (trap T12).
    let again: Vec<_> = round
        .iter()
        .zip(limits)
        .filter(|(part, limit)| limit.is_some_and(|limit| is_cut_elsewhere(plan, part, limit)))
        .map(|(part, _)| Again {
            backend: part.backend,
            limit: None,
        })
        .collect();
    whole::merge(round, |bodies| {
        let united = union(bodies, plan.direction, plan.source.as_deref());
        let contributed = bodies.len() - united.damaged.len();
        let outcome = united.names.map(|names| {
            if !again.is_empty() {
                return Outcome::AskAgain(again);
            }
            let mut array = ArrayPieces::new(&[]);
            for name in plan.window.cut(&names) {
                array.compose().push_made(name.as_bytes());
            }
            let total = match plan.total {
                Total::Unasked => None,
                Total::Added | Total::Counted => Some(names.len() as u64),
            };
            Outcome::Answer(Answer {
                pieces: array.finish(),
                total,
                contributed,
                dropped: 0,
            })
        });
        (outcome, united.damaged)
    })
}

fn is_cut_elsewhere(plan: &ListMerge, part: &Part<'_>, limit: u32) -> bool {
    let Some(reply) = part.reply.filter(Reply::is_success) else {
        return false;
    };
    let spans = Elements::new(reply.body).map_while(Result::ok);
    let names: Vec<_> = spans
        .filter_map(|span| unquote(&reply.body[span]))
        .collect();
    let ordered = match plan.direction {
        Direction::Asc => names.is_sorted(),
        Direction::Desc => names.is_sorted_by(|a, b| a >= b),
    };
    names.len() >= limit as usize && !ordered
}
