//! How many nodes there are, by what is known of their owners.

use crate::merge::aggregates::{self, AggregateMerge};
use crate::merge::{Context, Fan, Merged, Outcome};
use crate::plan::census;
use crate::round::{Part, Reply};

/// The number of active nodes, which the freshness map knows as well as any backend does: all that
/// each is asked for is whether it still has as many of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    /// How the owned nodes of each backend become the answer.
    pub then: AggregateMerge,
    /// What is asked if a backend has not.
    pub otherwise: Box<Fan>,
}

/// Merges a round.
pub(super) fn merge(plan: &Tally, round: &[Part<'_>], context: Context<'_>) -> Merged {
    let counts: Option<Vec<_>> = round.iter().map(|part| counted(part, context)).collect();
    let Some(bodies) = counts else {
        return Merged {
            outcome: Outcome::Instead(plan.otherwise.clone()),
            damaged: Vec::new(),
        };
    };
    let owned: Vec<_> = round
        .iter()
        .zip(&bodies)
        .map(|(part, body)| Part {
            backend: part.backend,
            reply: part.reply.map(|reply| reply.with_body(body.as_bytes())),
        })
        .collect();
    aggregates::merge(&plan.then, &owned, context).detached(&owned)
}

/// The row of a backend that has as many active nodes as the map says.
fn counted(part: &Part<'_>, context: Context<'_>) -> Option<String> {
    let reply = part.reply.filter(Reply::is_success)?;
    let active = census(reply.body)?;
    let known = context.freshness?.active(part.backend)?;
    let share = context.shares?.of(part.backend)?;
    (active == known).then(|| format!("[{{\"count\":{}}}]", share.active()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::Merge;
    use crate::merge::fold::{FoldPlan, Repeats};
    use crate::merge::owners::FreshnessMap;
    use crate::merge::records::Total;
    use crate::paging::{RecordOrder, Window};
    use crate::plan::census_ask;
    use crate::query::Query;
    use crate::round::BackendId;

    const COUNT: &str = r#"["extract",[["function","count"]]]"#;

    fn tally() -> Tally {
        let query = Query::read(Some(COUNT)).unwrap();
        let (fold, _) = FoldPlan::new(query.extract().unwrap(), Repeats::Named)
            .unwrap()
            .unwrap();
        Tally {
            then: AggregateMerge {
                fold,
                filter: None,
                order: RecordOrder::default(),
                window: Window::default(),
                total: Total::Counted,
                source: None,
            },
            otherwise: Box::new(Fan::new(census_ask(), Merge::First)),
        }
    }

    /// What comes of it if the backends tell these numbers: an answer, or none yet.
    fn told(rows: [&str; 2]) -> Option<String> {
        let (a, b) = (BackendId(0), BackendId(1));
        let node = |name: &str, day: u32, gone: &str| {
            format!(
                r#"{{"certname":"{name}","report_timestamp":"2026-01-{day:02}T00:00:00Z","deactivated":{gone},"expired":null}}"#
            )
        };
        let gone = "\"2026-02-01T00:00:00Z\"";
        let bodies = [
            [
                node("both", 1, "null"),
                node("left", 1, "null"),
                node("a", 1, gone),
            ],
            [
                node("both", 2, "null"),
                node("left", 2, gone),
                node("b", 1, "null"),
            ],
        ];
        let bodies = bodies.map(|nodes| format!("[{}]", nodes.join(",")));
        let [of_a, of_b] = &bodies;
        let (map, _) = FreshnessMap::build(&[(a, of_a.as_bytes()), (b, of_b.as_bytes())]);
        let names = ["pdb-a".to_owned(), "pdb-b".to_owned()];
        let shares = map.shares(&[a, b], None, &names, usize::MAX);
        let round: Vec<_> = [a, b]
            .into_iter()
            .zip(&rows)
            .map(|(backend, body)| Part {
                backend,
                reply: Some(Reply {
                    status: 200,
                    total: None,
                    body: body.as_bytes(),
                    scan: None,
                }),
            })
            .collect();
        let context = Context {
            backends: &names,
            freshness: Some(&map),
            shares: Some(&shares),
        };
        match merge(&tally(), &round, context).outcome {
            Outcome::Answer(answer) => {
                assert_eq!(answer.total, Some(1));
                Some(String::from_utf8(answer.pieces.assemble(&[])).unwrap())
            }
            Outcome::Instead(_) => None,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn active_nodes_are_counted_by_their_owners_if_no_backend_has_others_by_now() {
        let as_known = r#"[{"count":2}]"#;
        let answer = told([as_known, as_known]);
        assert_eq!(answer.as_deref(), Some(r#"[{"count":2}]"#), "both and b");
        for changed in [r#"[{"count":3}]"#, r#"[{"count":1}]"#, "[]", "[{"] {
            assert_eq!(told([as_known, changed]), None, "{changed}");
            assert_eq!(told([changed, as_known]), None, "{changed}");
        }
    }
}
