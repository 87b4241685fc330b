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
                    let mut array = ArrayPieces::new(&[]);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paging::OrderBy;
    use crate::query::Query;
    use crate::round::{BackendId, Reply};

    fn plan(extract: &str, order_by: &str, offset: u32, limit: Option<u32>) -> AggregateMerge {
        let query = Query::read(Some(extract)).unwrap();
        let (fold, _) = FoldPlan::new(query.extract().unwrap()).unwrap().unwrap();
        AggregateMerge {
            fold,
            order: RecordOrder::new(&OrderBy::parse(order_by).unwrap(), "nodes"),
            window: Window { offset, limit },
            total: Total::Counted,
        }
    }

    fn run(plan: &AggregateMerge, told: &[(u16, &str, Option<u64>)]) -> Merged {
        let parts: Vec<_> = (0..)
            .map(BackendId)
            .zip(told)
            .map(|(backend, &(status, body, total))| Part {
                backend,
                reply: Some(Reply {
                    status,
                    total,
                    body: body.as_bytes(),
                }),
            })
            .collect();
        merge(plan, &parts)
    }

    fn answer(merged: Merged) -> (String, Option<u64>, usize) {
        let Outcome::Answer(answer) = merged.outcome else {
            panic!("{merged:?}")
        };
        let text = String::from_utf8(answer.pieces.assemble(&[])).unwrap();
        (text, answer.total, answer.contributed)
    }

    const BY_STATUS: &str = r#"["extract",[["function","count"],"status"],["group_by","status"]]"#;
    const A: (u16, &str, Option<u64>) = (
        200,
        r#"[{"count":1,"status":"ok"},{"count":5,"status":null}]"#,
        Some(7),
    );
    const B: (u16, &str, Option<u64>) = (
        200,
        r#"[{"count":3,"status":"bad"},{"count":1,"status":"ok"}]"#,
        Some(9),
    );

    #[test]
    fn r136_r137_folded_rows_are_ordered_then_cut_and_counted_before() {
        let by_count = r#"[{"field":"count","order":"desc"}]"#;
        let by_status = r#"[{"field":"status"}]"#;
        let (ok, bad, null) = (
            r#"{"count":2,"status":"ok"}"#,
            r#"{"count":3,"status":"bad"}"#,
            r#"{"count":5,"status":null}"#,
        );
        for (order_by, offset, limit, expected) in [
            ("", 0, None, vec![ok, null, bad]),
            (by_count, 0, None, vec![null, bad, ok]),
            (by_count, 1, Some(1), vec![bad]),
            // Ruling 6: a null is the greatest.
            (by_status, 0, Some(2), vec![bad, ok]),
            (by_status, 2, None, vec![null]),
            (by_status, 3, None, vec![]),
        ] {
            let merged = run(&plan(BY_STATUS, order_by, offset, limit), &[A, B]);
            let expected = format!("[{}]", expected.join(","));
            assert_eq!(
                answer(merged),
                (expected, Some(3), 2),
                "{order_by} {offset}"
            );
        }
    }

    #[test]
    fn r140_survivors_are_combined_without_the_damaged() {
        let cut = (200, &A.1[..A.1.len() - 1], Some(7));
        let merged = run(&plan(BY_STATUS, "", 0, None), &[cut, (500, "ill", None), B]);
        assert_eq!(merged.damaged.len(), 1);
        assert_eq!(merged.damaged[0].0, BackendId(0));
        assert_eq!(answer(merged), (B.1.to_owned(), Some(2), 1));
    }

    #[test]
    fn r130_totals_of_rows_that_do_not_fold_are_added_if_all_are_known() {
        let mut plan = plan(
            r#"["extract",[["function","to_string","report_timestamp","Y"]]]"#,
            "",
            1,
            Some(1),
        );
        plan.total = Total::Added;
        let rows = |total| (200, r#"[{"to_string":"2026"},{"to_string":"2025"}]"#, total);
        let merged = run(&plan, &[rows(Some(4)), rows(Some(2))]);
        assert_eq!(
            answer(merged),
            (r#"[{"to_string":"2025"}]"#.to_owned(), Some(6), 2)
        );
        let merged = run(&plan, &[rows(Some(4)), rows(None)]);
        assert_eq!(answer(merged).1, None);
    }

    #[test]
    fn r017_r019_refusals_are_replayed_if_unanimous() {
        let plan = plan(BY_STATUS, "", 0, None);
        let refused = (400, "no", None);
        assert_eq!(run(&plan, &[refused, refused]).outcome, Outcome::Replay(0));
        let ill = (500, "ill", None);
        assert_eq!(run(&plan, &[refused, ill]).outcome, Outcome::Nothing);
    }

    #[test]
    fn numbers_beyond_what_is_summed_are_told() {
        let plan = plan(r#"["extract",[["function","sum","value"]]]"#, "", 0, None);
        let (one, vast) = (r#"[{"sum":1}]"#, r#"[{"sum":1e3000000}]"#);
        let merged = run(&plan, &[(200, one, None), (200, vast, None)]);
        assert!(
            matches!(merged.outcome, Outcome::Unfoldable(_)),
            "{merged:?}"
        );
    }
}
