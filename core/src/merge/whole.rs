//! Answers that are one value each: versions, clocks, metrics, lists of names.

use crate::answer::{Answer, Pieces, Source};
use crate::json::{Members, ScanError};
use crate::merge::damage::{Damage, Damaged, sift};
use crate::merge::jolokia::{self, Metrics};
use crate::merge::{Merged, Outcome, version};
use crate::round::{Part, Reply, Verdict, verdict};

/// The lowest version (R243).
pub(super) fn lowest_version(round: &[Part<'_>]) -> Merged {
    merge(round, |bodies| {
        let version::Lowest { winner, damaged } = version::lowest(bodies);
        let outcome = winner.map(|(at, _)| verbatim(bodies, at, &damaged));
        (outcome, damaged)
    })
}

/// The first object in configured order (R246).
pub(super) fn first(round: &[Part<'_>]) -> Merged {
    merge(round, |bodies| {
        let (readable, damaged) = sift(bodies, |body| {
            let members = Members::new(body).collect::<Result<Vec<_>, ScanError>>();
            Ok::<_, Damage>(members.map(|_| ())?)
        });
        let outcome = readable
            .first()
            .map(|(at, ())| verbatim(bodies, *at, &damaged));
        (outcome, damaged)
    })
}

/// Metrics, combined (R248-R261).
pub(super) fn metrics(metrics: &Metrics, round: &[Part<'_>]) -> Merged {
    merge(round, |bodies| {
        let merged = metrics.merge(bodies);
        let outcome = match merged.body {
            jolokia::Body::Nothing => None,
            jolokia::Body::Verbatim(at) => Some(verbatim(bodies, at, &merged.damaged)),
            jolokia::Body::Made(text) => {
                let mut pieces = Pieces::default();
                pieces.push_made(&text);
                let contributed = merged.contributed.len();
                Some(Outcome::Answer(Answer {
                    pieces,
                    total: None,
                    contributed,
                    dropped: 0,
                }))
            }
        };
        (outcome, merged.damaged)
    })
}

/// Serves the body at `at` as it came.
fn verbatim(bodies: &[&[u8]], at: usize, damaged: &Damaged) -> Outcome {
    // An answer counts readable bodies only.
    let before = (0..at).filter(|before| damaged.iter().all(|(index, _)| index != before));
    let place = u16::try_from(before.count()).unwrap_or(u16::MAX);
    let mut pieces = Pieces::default();
    pieces.push(Source::Reply(place), 0..bodies[at].len());
    let contributed = bodies.len() - damaged.len();
    Outcome::Answer(Answer {
        pieces,
        total: None,
        contributed,
        dropped: 0,
    })
}

/// Merges the successes of a round. `merge` is given their bodies and says what is served, if
/// anything, and which bodies are damaged; places are those in the list it was given.
pub(super) fn merge(
    round: &[Part<'_>],
    merge: impl FnOnce(&[&[u8]]) -> (Option<Outcome>, Damaged),
) -> Merged {
    let success = |part: &Part<'_>| part.reply.as_ref().is_some_and(Reply::is_success);
    let successes: Vec<_> = round.iter().filter(|part| success(part)).collect();
    let bodies: Vec<_> = successes
        .iter()
        .filter_map(|part| part.reply)
        .map(|reply| reply.body)
        .collect();
    let (outcome, damaged) = merge(&bodies);
    let outcome = outcome.unwrap_or_else(|| {
        // Whatever succeeded was damaged, and so gave nothing.
        let statuses = round.iter().map(|part| {
            part.reply
                .filter(|reply| !reply.is_success())
                .map(|reply| reply.status)
        });
        match verdict(statuses) {
            Verdict::Replay(at) => Outcome::Replay(at),
            Verdict::Merge | Verdict::Nothing => Outcome::Nothing,
        }
    });
    let damaged = damaged
        .into_iter()
        .map(|(at, damage)| (successes[at].backend, damage))
        .collect();
    Merged { outcome, damaged }
}
