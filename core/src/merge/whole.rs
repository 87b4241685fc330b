//! Answers that are one value each: versions, clocks, metrics.

use crate::answer::{Answer, Pieces, Source};
use crate::json::{Members, ScanError};
use crate::merge::damage::{Damage, Damaged, sift};
use crate::merge::jolokia::{self, ReadRequest};
use crate::merge::{Merged, Outcome, version};
use crate::round::{Part, Reply, Verdict, verdict};

/// What is served of several bodies, told by their places among them.
struct Choice {
    served: Served,
    contributed: usize,
    damaged: Damaged,
}

enum Served {
    /// This one as it came.
    Verbatim(usize),
    /// A text made of several.
    Made(Vec<u8>),
    /// None is usable.
    Nothing,
}

/// The lowest version (R243).
pub(super) fn lowest_version(round: &[Part<'_>]) -> Merged {
    merge(round, |bodies| {
        let version::Lowest { winner, damaged } = version::lowest(bodies);
        let contributed = bodies.len() - damaged.len();
        let served = winner.map_or(Served::Nothing, |(at, _)| Served::Verbatim(at));
        Choice {
            served,
            contributed,
            damaged,
        }
    })
}

/// The first object in configured order (R246).
pub(super) fn first(round: &[Part<'_>]) -> Merged {
    merge(round, |bodies| {
        let (readable, damaged) = sift(bodies, |body| {
            let members = Members::new(body).collect::<Result<Vec<_>, ScanError>>();
            Ok::<_, Damage>(members.map(|_| ())?)
        });
        let served = readable
            .first()
            .map_or(Served::Nothing, |(at, ())| Served::Verbatim(*at));
        let contributed = readable.len();
        Choice {
            served,
            contributed,
            damaged,
        }
    })
}

/// The attributes of an MBean (R248).
pub(super) fn metrics(request: &ReadRequest, round: &[Part<'_>]) -> Merged {
    merge(round, |bodies| {
        let merged = jolokia::read(request, bodies);
        let served = match merged.body {
            jolokia::Body::Made(text) => Served::Made(text),
            jolokia::Body::Verbatim(at) => Served::Verbatim(at),
            jolokia::Body::Nothing => Served::Nothing,
        };
        Choice {
            served,
            contributed: merged.contributed.len(),
            damaged: merged.damaged,
        }
    })
}

fn merge(round: &[Part<'_>], choose: impl FnOnce(&[&[u8]]) -> Choice) -> Merged {
    let successes: Vec<_> = round
        .iter()
        .filter_map(|part| Some((part.backend, part.reply.filter(Reply::is_success)?.body)))
        .collect();
    let bodies: Vec<_> = successes.iter().map(|(_, body)| *body).collect();
    let Choice {
        served,
        contributed,
        damaged,
    } = choose(&bodies);
    let is_damaged = |at: usize| damaged.iter().any(|(index, _)| *index == at);
    let mut pieces = Pieces::default();
    let outcome = match served {
        Served::Made(text) => {
            pieces.push_made(&text);
            Outcome::Answer(Answer {
                pieces,
                total: None,
                contributed,
                dropped: 0,
            })
        }
        Served::Verbatim(at) => {
            // The answer counts readable bodies only.
            let place = (0..at).filter(|before| !is_damaged(*before)).count();
            let place = u16::try_from(place).unwrap_or(u16::MAX);
            pieces.push(Source::Reply(place), 0..bodies[at].len());
            Outcome::Answer(Answer {
                pieces,
                total: None,
                contributed,
                dropped: 0,
            })
        }
        Served::Nothing => {
            let statuses = round.iter().map(|part| {
                part.reply
                    .filter(|reply| !reply.is_success())
                    .map(|reply| reply.status)
            });
            match verdict(statuses) {
                Verdict::Replay(at) => Outcome::Replay(at),
                Verdict::Merge | Verdict::Nothing => Outcome::Nothing,
            }
        }
    };
    let damaged = damaged
        .into_iter()
        .map(|(at, damage)| (successes[at].0, damage))
        .collect();
    Merged { outcome, damaged }
}
