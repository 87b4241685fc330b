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
        let outcome =
            winner.map(|(at, _)| verbatim(bodies, at, &damaged, bodies.len() - damaged.len()));
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
            .map(|(at, ())| verbatim(bodies, *at, &damaged, readable.len()));
        (outcome, damaged)
    })
}

/// Metrics, combined (R248-R261).
pub(super) fn metrics(metrics: &Metrics, round: &[Part<'_>]) -> Merged {
    merge(round, |bodies| {
        let mut merged = metrics.merge(bodies);
        let contributed = merged.contributed.len();
        if contributed > 0 {
            let skipped = merged
                .skipped
                .iter()
                .map(|at| (*at, Damage::ReportsAnError));
            merged.damaged.extend(skipped);
        }
        let outcome = match merged.body {
            jolokia::Body::Nothing => None,
            jolokia::Body::Verbatim(at) => Some(verbatim(bodies, at, &merged.damaged, contributed)),
            jolokia::Body::Made(text) => {
                let mut pieces = Pieces::default();
                pieces.push_made(&text);
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
fn verbatim(bodies: &[&[u8]], at: usize, damaged: &Damaged, contributed: usize) -> Outcome {
    // An answer counts readable bodies only.
    let before = (0..at).filter(|before| damaged.iter().all(|(index, _)| index != before));
    let place = u16::try_from(before.count()).unwrap_or(u16::MAX);
    let mut pieces = Pieces::default();
    pieces.push(Source::Reply(place), 0..bodies[at].len());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::jolokia::ReadRequest;
    use crate::round::BackendId;

    /// A backend's status and body; `None` if it gave nothing.
    type Told<'t> = Option<(u16, &'t str)>;

    fn round<'t>(told: &[Told<'t>]) -> Vec<Part<'t>> {
        (0..)
            .map(BackendId)
            .zip(told)
            .map(|(backend, told)| Part {
                backend,
                reply: told.map(|(status, body)| Reply {
                    status,
                    total: None,
                    body: body.as_bytes(),
                    scan: None,
                }),
            })
            .collect()
    }

    /// What is served, as text, how many contributed, and which backends were damaged.
    fn told(merge: fn(&[Part<'_>]) -> Merged, told: &[Told<'_>]) -> (String, usize, Vec<u16>) {
        let round = round(told);
        let merged = merge(&round);
        let damaged: Vec<u16> = merged
            .damaged
            .iter()
            .map(|(backend, _)| backend.0)
            .collect();
        // The bodies that an answer counts: successes that could be read.
        let bodies: Vec<_> = round
            .iter()
            .filter(|part| !damaged.contains(&part.backend.0))
            .filter_map(|part| Some(part.reply.filter(Reply::is_success)?.body))
            .collect();
        let (text, contributed) = match merged.outcome {
            Outcome::Answer(answer) => {
                let text = answer.pieces.assemble(&bodies);
                (String::from_utf8(text).unwrap(), answer.contributed)
            }
            Outcome::Replay(at) => (format!("replay {at}"), 0),
            Outcome::Nothing => ("nothing".to_owned(), 0),
            other => panic!("{other:?}"),
        };
        (text, contributed, damaged)
    }

    const HIGH: Told<'static> = Some((200, r#"{"version":"8.15.0"}"#));
    const LOW: Told<'static> = Some((200, r#"{ "version" : "8.9.0" }"#));
    const CUT: Told<'static> = Some((200, r#"{"version":"8."#));
    const HTML: Told<'static> = Some((200, "<html>"));
    const LOST: Told<'static> = Some((404, "no"));
    const ILL: Told<'static> = Some((500, "ill"));

    #[test]
    fn r243_r245_the_lowest_version_is_served_as_it_came() {
        let cases: [(&[Told<'_>], &str, usize, &[u16]); 8] = [
            (&[HIGH, LOW], r#"{ "version" : "8.9.0" }"#, 2, &[]),
            (&[HIGH, HIGH], r#"{"version":"8.15.0"}"#, 2, &[]),
            // Places are those among the readable bodies.
            (
                &[CUT, None, HIGH, HTML, LOW],
                r#"{ "version" : "8.9.0" }"#,
                2,
                &[0, 3],
            ),
            (&[LOST, LOW], r#"{ "version" : "8.9.0" }"#, 1, &[]),
            (&[LOST, LOST], "replay 0", 0, &[]),
            (&[LOST, ILL], "nothing", 0, &[]),
            // A damaged success agrees with no refusal (ruling 12).
            (&[CUT, LOST], "nothing", 0, &[0]),
            (&[CUT], "nothing", 0, &[0]),
        ];
        for (answers, text, contributed, damaged) in cases {
            let expected = (text.to_owned(), contributed, damaged.to_vec());
            assert_eq!(told(lowest_version, answers), expected, "{answers:?}");
        }
    }

    #[test]
    fn r246_the_first_readable_clock_in_configured_order_is_served() {
        let (a, b) = (Some((200, "{\"a\":1}")), Some((200, "{\"b\":2}")));
        let cases: [(&[Told<'_>], &str, &[u16]); 6] = [
            (&[a, b], "{\"a\":1}", &[]),
            (&[None, b], "{\"b\":2}", &[]),
            (&[ILL, b, a], "{\"b\":2}", &[]),
            (&[HTML, b], "{\"b\":2}", &[0]),
            (&[ILL, ILL], "replay 0", &[]),
            (&[None, ILL], "nothing", &[]),
        ];
        for (answers, text, damaged) in cases {
            let (served, _, dropped) = told(first, answers);
            assert_eq!((served.as_str(), &*dropped), (text, damaged), "{answers:?}");
        }
    }

    #[test]
    fn r248_r256_r257_metrics_are_made_of_good_envelopes_or_replayed() {
        let read: fn(&[Part<'_>]) -> Merged = |round| {
            let request = Metrics::Read(ReadRequest::from_path("java.lang:type=Memory"));
            metrics(&request, round)
        };
        let good = |value: &'static str| Some((200, value));
        let one = good(r#"{"value":{"x":1},"timestamp":5,"status":200}"#);
        let two = good(r#"{"value":{"x":2},"timestamp":9,"status":200}"#);
        let sick = good(r#"{"status":404,"error":"gone"}"#);
        let cases: [(&[Told<'_>], &str, usize, &[u16]); 6] = [
            (
                &[one, two],
                r#"{"value":{"x":3},"timestamp":9,"status":200}"#,
                2,
                &[],
            ),
            (&[sick, two], two.unwrap().1, 1, &[0]),
            (&[CUT, sick, sick], sick.unwrap().1, 0, &[0]),
            (&[HTML, two], two.unwrap().1, 1, &[0]),
            (&[LOST, LOST], "replay 0", 0, &[]),
            (&[None, HTML], "nothing", 0, &[1]),
        ];
        for (answers, text, contributed, damaged) in cases {
            let expected = (text.to_owned(), contributed, damaged.to_vec());
            assert_eq!(told(read, answers), expected, "{answers:?}");
        }
    }
}
