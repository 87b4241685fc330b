//! Aggregates: folded by key, then ordered and cut.

use crate::answer::{Answer, ArrayPieces};
use crate::merge::fold::{FoldPlan, Rows, fold};
use crate::merge::records::Total;
use crate::merge::{Merged, Outcome, add_totals, read_round};
use crate::paging::{RecordOrder, Window};
use crate::round::{Part, Verdict};

/// How aggregate rows of several backends become one set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AggregateMerge {
    /// Which rows belong together and how their columns combine.
    pub fold: FoldPlan,
    /// The order of the folded rows.
    pub order: RecordOrder,
    /// The part of them that is served, cut after the fold (R136).
    pub window: Window,
    /// What `X-Records` says.
    pub total: Total,
}

/// Merges a round.
pub fn merge(plan: &AggregateMerge, round: &[Part<'_>]) -> Merged {
    let readings = read_round(round, |body| Rows::read(&plan.fold, body));
    let outcome = match readings.verdict {
        Verdict::Replay(at) => Outcome::Replay(at),
        Verdict::Nothing => Outcome::Nothing,
        Verdict::Merge => {
            let contributed = readings.good.len();
            let added = add_totals(&readings.good);
            let answers = readings
                .good
                .into_iter()
                .map(|reading| reading.read)
                .collect();
            match fold(&plan.fold, answers) {
                Err(error) => Outcome::Unfoldable(error),
                Ok(mut rows) => {
                    let members = plan.order.members();
                    rows.sort_by(|a, b| {
                        plan.order
                            .compare(|at| a.column(&members[at]), |at| b.column(&members[at]))
                    });
                    let mut array = ArrayPieces::new(&[], Vec::new());
                    for row in plan.window.cut(&rows) {
                        array.compose().push_made(row.bytes());
                    }
                    let total = match plan.total {
                        Total::Unasked => None,
                        Total::Added => added,
                        Total::Counted => Some(rows.len() as u64),
                    };
                    Outcome::Answer(Answer {
                        pieces: array.finish(),
                        total,
                        contributed,
                        dropped: 0,
                    })
                }
            }
        }
    };
    Merged {
        outcome,
        damaged: readings.damaged,
    }
}
