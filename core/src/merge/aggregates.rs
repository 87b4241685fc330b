//! Aggregates: folded by key, then filtered, ordered and cut.

mod filter;

use crate::answer::{Answer, ArrayPieces};
use crate::json::quote;
use crate::merge::fold::{FoldPlan, Rows, fold};
use crate::merge::records::Total;
use crate::merge::{Context, Merged, Outcome, Readings, add_totals, read_round};
use crate::paging::{RecordOrder, Window};
use crate::round::{Part, Verdict};

pub use filter::CountsFilter;

/// How aggregate rows of several backends become one set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AggregateMerge {
    /// Which rows belong together and how their columns combine.
    pub fold: FoldPlan,
    /// Which of the folded rows there are.
    pub filter: Option<CountsFilter>,
    /// The order of the folded rows.
    pub order: RecordOrder,
    /// The part of them that is served, cut after the fold (R136).
    pub window: Window,
    /// What `X-Records` says.
    pub total: Total,
    /// The name of the source fact, if rows are told apart by it.
    pub source: Option<String>,
}

/// Merges a round.
pub fn merge(plan: &AggregateMerge, round: &[Part<'_>], context: Context<'_>) -> Merged {
    let readings = read_round(round, |body| Rows::read(&plan.fold, body));
    if let Some(source) = &plan.source {
        return by_source(plan, source, round, &readings, context);
    }
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
                    if let Some(filter) = &plan.filter {
                        rows.retain(|row| filter.passes(row));
                    }
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

/// Merges a round whose rows are told apart by the backend too: as before, with the source in each
/// of them. Rows that count nothing are none: where there is no other key a backend sends one.
fn by_source(
    plan: &AggregateMerge,
    source: &str,
    round: &[Part<'_>],
    readings: &Readings<'_, Rows<'_>>,
    context: Context<'_>,
) -> Merged {
    let told: Vec<_> = readings
        .good
        .iter()
        .map(|reading| {
            let backend = quote(&context.backends[reading.backend.index()]);
            let member = format!("{}:{backend}", quote(source));
            (reading.backend, reading.read.with(&member, &plan.fold))
        })
        .collect();
    let told_by = |backend| told.iter().find(|(id, _)| *id == backend);
    let round: Vec<_> = round
        .iter()
        .map(|part| match told_by(part.backend) {
            None => *part,
            Some((_, body)) => Part {
                backend: part.backend,
                reply: part.reply.map(|reply| reply.with_body(body)),
            },
        })
        .collect();
    let plan = AggregateMerge {
        source: None,
        ..plan.clone()
    };
    let mut merged = merge(&plan, &round, context);
    // The rows were made here: what was read before is what is damaged.
    merged.damaged.clone_from(&readings.damaged);
    merged.detached(&round)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::fold::Repeats;
    use crate::paging::OrderBy;
    use crate::query::Query;
    use crate::round::{BackendId, Reply};

    fn plan(extract: &str, order_by: &str, offset: u32, limit: Option<u32>) -> AggregateMerge {
        let query = Query::read(Some(extract)).unwrap();
        let (fold, _) = FoldPlan::new(query.extract().unwrap(), Repeats::Refused)
            .unwrap()
            .unwrap();
        AggregateMerge {
            fold,
            filter: None,
            order: RecordOrder::new(&OrderBy::parse(order_by).unwrap(), "nodes"),
            window: Window { offset, limit },
            total: Total::Counted,
            source: None,
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
                    scan: None,
                }),
            })
            .collect();
        let context = Context {
            backends: &[],
            freshness: None,
            shares: None,
        };
        merge(plan, &parts, context)
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
    fn ruling_7_rows_are_ordered_by_what_they_are_folded_to_shown_or_not() {
        let by_average = r#"["extract",[["function","avg","x"],"k"],["group_by","k"]]"#;
        let averages = [
            (
                200,
                r#"[{"sum":10,"count":1,"k":"a"},{"sum":9,"count":1,"k":"b"}]"#,
                None,
            ),
            // Counting each backend's own average, "a" would come first.
            (
                200,
                r#"[{"sum":0,"count":9,"k":"a"},{"sum":3,"count":1,"k":"b"}]"#,
                None,
            ),
        ];
        let unseen = r#"["extract",[["function","count"]],["group_by","k"]]"#;
        let counts = [
            (200, r#"[{"count":1,"k":"b"},{"count":2,"k":"a"}]"#, None),
            (200, r#"[{"count":5,"k":"c"},{"count":1,"k":null}]"#, None),
        ];
        for (extract, order_by, told, expected) in [
            (
                by_average,
                r#"[{"field":"avg","order":"desc"}]"#,
                averages,
                r#"[{"avg":6.0,"k":"b"},{"avg":1.0,"k":"a"}]"#,
            ),
            (
                by_average,
                r#"[{"field":"avg"}]"#,
                averages,
                r#"[{"avg":1.0,"k":"a"},{"avg":6.0,"k":"b"}]"#,
            ),
            (
                unseen,
                r#"[{"field":"k"}]"#,
                counts,
                r#"[{"count":2},{"count":1},{"count":5},{"count":1}]"#,
            ),
            (
                unseen,
                r#"[{"field":"count","order":"desc"},{"field":"k","order":"desc"}]"#,
                counts,
                r#"[{"count":5},{"count":2},{"count":1},{"count":1}]"#,
            ),
        ] {
            let (text, total, _) = answer(run(&plan(extract, order_by, 0, None), &told));
            let found: serde_json::Value = serde_json::from_str(&text).unwrap();
            let expected: serde_json::Value = serde_json::from_str(expected).unwrap();
            assert_eq!(found.as_array().unwrap().len() as u64, total.unwrap());
            for (found, expected) in found
                .as_array()
                .unwrap()
                .iter()
                .zip(expected.as_array().unwrap())
            {
                assert_eq!(found["k"], expected["k"], "{text}");
                for name in ["avg", "count"] {
                    assert_eq!(found[name].as_f64(), expected[name].as_f64(), "{text}");
                }
            }
        }
    }

    #[test]
    fn t30_added_counts_are_filtered_then_cut_and_counted() {
        let row = |failures: u32, title: &str| {
            format!(
                r#"{{"failures":{failures},"subject_type":"certname","subject":{{"title":"{title}"}}}}"#
            )
        };
        let (a, b) = (
            format!("[{},{},{}]", row(1, "both"), row(2, "two"), row(0, "none")),
            format!(
                "[{},{}]",
                row(1, "both"),
                r#"{"skips":1,"subject":"skips only"}"#
            ),
        );
        for (filter, expected) in [
            (r#"[">","failures",1]"#, vec![row(2, "both"), row(2, "two")]),
            (
                r#"[">=","failures",2.0]"#,
                vec![row(2, "both"), row(2, "two")],
            ),
            (r#"["=","failures",1]"#, vec![]),
            (r#"["<","failures",2]"#, vec![row(0, "none")]),
            (r#"["<=","failures",0]"#, vec![row(0, "none")]),
        ] {
            let mut plan = AggregateMerge {
                fold: FoldPlan::event_counts(),
                filter: CountsFilter::parse(filter),
                order: RecordOrder::default(),
                window: Window::default(),
                total: Total::Counted,
                source: None,
            };
            let told = [(200, &*a, None), (200, &*b, None)];
            let count = Some(expected.len() as u64);
            let whole = format!("[{}]", expected.join(","));
            assert_eq!(answer(run(&plan, &told)), (whole, count, 2), "{filter}");
            plan.window = Window {
                offset: 1,
                limit: Some(1),
            };
            let page = expected.get(1).cloned().unwrap_or_default();
            assert_eq!(
                answer(run(&plan, &told)),
                (format!("[{page}]"), count, 2),
                "{filter}"
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
