//! `/fact-names`: the union of flat lists, ordered and cut.

use crate::answer::{Answer, ArrayPieces};
use crate::merge::names::union;
use crate::merge::records::Total;
use crate::merge::{Merged, Outcome, whole};
use crate::paging::{Direction, Window};
use crate::round::Part;

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

/// Merges a round of whole lists.
pub(super) fn merge(plan: &ListMerge, round: &[Part<'_>]) -> Merged {
    whole::merge(round, |bodies| {
        let united = union(bodies, plan.direction, plan.source.as_deref());
        let contributed = bodies.len() - united.damaged.len();
        let outcome = united.names.map(|names| {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::round::{BackendId, Reply};

    /// What is served of these lists, the total and how many contributed.
    fn served(
        plan: &ListMerge,
        told: &[Option<(u16, &str)>],
    ) -> Result<(String, Option<u64>, usize), Outcome> {
        let parts: Vec<_> = (0..)
            .map(BackendId)
            .zip(told)
            .map(|(backend, told)| Part {
                backend,
                reply: told.map(|(status, body)| Reply {
                    status,
                    total: Some(99),
                    body: body.as_bytes(),
                    scan: None,
                }),
            })
            .collect();
        match merge(plan, &parts).outcome {
            Outcome::Answer(answer) => {
                let text = String::from_utf8(answer.pieces.assemble(&[])).unwrap();
                Ok((text, answer.total, answer.contributed))
            }
            other => Err(other),
        }
    }

    fn plan(offset: u32, limit: Option<u32>) -> ListMerge {
        ListMerge {
            direction: Direction::Asc,
            window: Window { offset, limit },
            source: Some("b".into()),
            total: Total::Counted,
        }
    }

    const LISTS: [Option<(u16, &str)>; 2] =
        [Some((200, r#"["c","a"]"#)), Some((200, r#"["d","c"]"#))];

    #[test]
    fn r089_the_window_is_cut_from_the_union_and_r090_its_size_is_the_total() {
        for (offset, limit, expected) in [
            (0, None, r#"["a","b","c","d"]"#),
            (1, Some(2), r#"["b","c"]"#),
            (3, Some(5), r#"["d"]"#),
            (4, None, "[]"),
        ] {
            let expected = (expected.to_owned(), Some(4), 2);
            assert_eq!(served(&plan(offset, limit), &LISTS), Ok(expected));
        }
        let unasked = ListMerge {
            total: Total::Unasked,
            ..plan(0, None)
        };
        assert_eq!(served(&unasked, &LISTS).unwrap().1, None);
    }

    #[test]
    fn r008_survivors_are_united_and_r017_refusals_replayed_without_the_source_name() {
        let (whole, cut) = (LISTS[0], Some((200, r#"["z"#)));
        let (refused, ill) = (Some((400, "no")), Some((500, "ill")));
        let survivors = (r#"["a","b","c"]"#.to_owned(), Some(3), 1);
        for other in [cut, refused, ill, None] {
            let found = served(&plan(0, None), &[other, whole]);
            assert_eq!(found, Ok(survivors.clone()), "{other:?}");
        }
        for (told, expected) in [
            ([refused, refused], Outcome::Replay(0)),
            ([refused, ill], Outcome::Nothing),
            ([refused, None], Outcome::Nothing),
            ([cut, refused], Outcome::Nothing),
        ] {
            assert_eq!(served(&plan(0, None), &told), Err(expected), "{told:?}");
        }
    }
}
