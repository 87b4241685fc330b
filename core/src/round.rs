//! What the backends said, and what a round of answers means.

use crate::merge::records::Scan;

/// A backend by its place in the configured order, which is the only tie-break (R003).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BackendId(pub u16);

impl BackendId {
    /// The place as an index into the configured backends.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// One backend's complete HTTP answer.
#[derive(Debug, Clone, Copy)]
pub struct Reply<'b> {
    /// Its status.
    pub status: u16,
    /// Its `X-Records`, where it sent one that is a number.
    pub total: Option<u64>,
    /// Its body, whole.
    pub body: &'b [u8],
    /// What was read of that body when it came ([`Fan::scan`](crate::merge::Fan::scan)), if
    /// anything was; a merge reads the others itself.
    pub scan: Option<&'b Scan>,
}

impl<'b> Reply<'b> {
    /// The same answer with another body, which nothing was read of yet.
    pub(crate) fn with_body<'o>(self, body: &'o [u8]) -> Reply<'o>
    where
        'b: 'o,
    {
        Reply {
            body,
            scan: None,
            ..self
        }
    }

    /// Whether it answers the question.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// The status that a backend's answer stands for.
///
/// PuppetDB before 8.6 redirects unroutable paths to its dashboard where newer ones answer 404
/// (trap T46): a redirect is never followed and means "no such thing here".
pub fn effective_status(status: u16) -> u16 {
    if (300..400).contains(&status) {
        404
    } else {
        status
    }
}

/// A backend's part of a round: its answer, or nothing usable. Why there is nothing is the
/// business of whoever asked.
#[derive(Debug, Clone, Copy)]
pub struct Part<'b> {
    /// Who was asked.
    pub backend: BackendId,
    /// What came back.
    pub reply: Option<Reply<'b>>,
}

/// What a round of peers means (R008, R009, R017-R021).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// At least one backend answered the question: these answers are merged.
    Merge,
    /// Every backend refused with the same status: the answer at this place of the round is
    /// replayed.
    Replay(usize),
    /// Nothing to serve: they disagree, or some gave no answer and none succeeded.
    Nothing,
}

/// The verdict on a round of peers, given each part's status in configured order, `None` for a
/// backend that gave nothing usable.
pub fn verdict(statuses: impl IntoIterator<Item = Option<u16>>) -> Verdict {
    let mut agreed = None;
    let mut disagree = false;
    for status in statuses {
        match status {
            Some(200..300) => return Verdict::Merge,
            Some(status) if *agreed.get_or_insert(status) == status => {}
            Some(_) | None => disagree = true,
        }
    }
    if disagree || agreed.is_none() {
        Verdict::Nothing
    } else {
        Verdict::Replay(0)
    }
}

/// Who is asked first on a route that one backend answers for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum First {
    /// The owner of the node.
    Owner,
    /// The first in configured order, since no owner is known.
    Anyone,
}

/// Which answer is served when backends were asked in turn and none succeeded, given each one's
/// status in the order of asking (R231-R236).
///
/// An owner that answers has the last word. Where none is known it is the first *holder*, and a 404
/// says that a backend holds nothing (R239): another's refusal goes before it.
pub fn speaker(statuses: &[Option<u16>], first: First) -> Option<usize> {
    let answered = |status: &Option<u16>| status.is_some();
    let holds = |status: &Option<u16>| status.is_some_and(|status| status != 404);
    let holder = match first {
        First::Owner => None,
        First::Anyone => statuses.iter().position(holds),
    };
    holder.or_else(|| statuses.iter().position(answered))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r231_to_r239_the_owner_speaks_or_else_the_first_holder() {
        use First::{Anyone, Owner};
        type Case<'c> = (First, &'c [Option<u16>], Option<usize>);
        let cases: &[Case<'_>] = &[
            (Owner, &[Some(500), Some(404)], Some(0)),
            (Owner, &[Some(404), Some(500)], Some(0)),
            (Owner, &[Some(500), Some(503)], Some(0)),
            (Owner, &[None, Some(404)], Some(1)),
            (Owner, &[None, None], None),
            (Anyone, &[Some(404), Some(500)], Some(1)),
            (Anyone, &[Some(404), Some(404)], Some(0)),
            (Anyone, &[None, Some(404)], Some(1)),
            (Anyone, &[Some(400), Some(500)], Some(0)),
            (Anyone, &[None, None], None),
        ];
        for (first, statuses, expected) in cases {
            assert_eq!(
                speaker(statuses, *first),
                *expected,
                "{first:?} {statuses:?}"
            );
        }
    }

    #[test]
    fn r017_to_r020_only_a_unanimous_refusal_is_replayed() {
        let cases: &[(&[Option<u16>], Verdict)] = &[
            (&[Some(200), Some(200)], Verdict::Merge),
            (&[Some(400), Some(200)], Verdict::Merge),
            (&[None, Some(200)], Verdict::Merge),
            (&[Some(400), Some(400)], Verdict::Replay(0)),
            (&[Some(500), Some(500)], Verdict::Replay(0)),
            (&[Some(400)], Verdict::Replay(0)),
            (&[Some(400), Some(500)], Verdict::Nothing),
            (&[Some(400), None], Verdict::Nothing),
            (&[None, Some(400)], Verdict::Nothing),
            (&[None, None], Verdict::Nothing),
            (&[], Verdict::Nothing),
        ];
        for (statuses, expected) in cases {
            assert_eq!(verdict(statuses.iter().copied()), *expected, "{statuses:?}");
        }
    }

    #[test]
    fn t46_a_redirect_counts_as_not_found() {
        assert_eq!(
            [302, 301, 404, 200].map(effective_status),
            [404, 404, 404, 200]
        );
    }
}
