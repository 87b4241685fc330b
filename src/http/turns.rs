//! Backends that are asked in turn, until one succeeds.

use std::sync::Arc;

use futures_util::{StreamExt, future, stream};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, Response};
use pdbmux_core::merge::damage::Damage;
use pdbmux_core::plan::{Ask, Doubt, Turns, Uncertain};
use pdbmux_core::round::{BackendId, First, Verdict, speaker, verdict};
use pdbmux_core::settings::Strategy;
use tokio::time::Instant;

use super::body::Body;
use super::fan::{Conclusion, Without, split, status, with_skipped};
use super::respond;
use super::serve::App;
use super::stream::arriving;
use crate::upstream::{Asked, Failure, Incoming, Lack, Pool, Received, Turn};

/// What came of taking turns.
pub(super) enum Taken<T> {
    /// What was made of the first success, who had failed before it, and who was not asked for being
    /// out of service.
    Success(T, Without, Vec<BackendId>),
    /// Nobody succeeded; this refusal counts.
    Refused(Received),
    /// Nobody gave an answer that could be served.
    Nothing(Without),
    /// One that may have had the answer could not be asked, for lack of something here.
    Full(Lack),
}

impl App {
    /// Passes the first success on as it arrives.
    pub(super) async fn pass_on(
        self: &Arc<Self>,
        ask: &Ask,
        turns: &Turns,
        uncertain: Uncertain,
    ) -> Response<Body> {
        let Uncertain { priors, doubts } = uncertain;
        let foundation = match self.foundation(priors).await {
            Ok(foundation) => foundation,
            Err(conclusion) => return self.respond(conclusion),
        };
        let ask = &foundation.known.put_into(ask);
        let taken = self.take_turns(ask, turns, |backend, success| self.pass(backend, success));
        match taken.await {
            Taken::Success(passed, without, skipped) => {
                self.warn(&without);
                // Where the owner's word is final, whoever stands in for it has older data.
                let mut missing = match turns {
                    _ if turns.owner_speaks() => self.missing(&without),
                    Turns::OwnerFirst { .. } | Turns::Configured => Vec::new(),
                };
                missing.extend(foundation.missing);
                missing.sort_unstable();
                missing.dedup_by(|a, b| a.0 == b.0);
                let doubts = doubts.into_iter().chain(foundation.known.doubts());
                let mut doubts: Vec<_> = doubts.map(Doubt::reason).collect();
                doubts.extend(foundation.doubts);
                doubts.sort_unstable();
                doubts.dedup();
                let passed = respond::qualified(passed, &missing, &doubts);
                match turns {
                    // Any of them may have newer data of the node.
                    Turns::OwnerFirst { .. } => {
                        let lacking = self.missing(&with_skipped(without, &skipped));
                        respond::lacking(passed, lacking)
                    }
                    Turns::Configured => passed,
                }
            }
            Taken::Refused(received) => respond::replayed(&received, &self.addresses),
            Taken::Nothing(without) => self.nothing(&without),
            Taken::Full(lack) => self.respond(Conclusion::Full(lack)),
        }
    }

    /// Learns whether there is what a path names; the answer, if there is not.
    pub(super) async fn parent(&self, ask: &Ask, turns: &Turns) -> Option<Response<Body>> {
        let taken = self.take_turns(ask, turns, |_, success| self.upstream.receive(success));
        match taken.await {
            Taken::Success(_, without, _) => {
                self.warn(&without);
                None
            }
            Taken::Refused(received) => Some(respond::replayed(&received, &self.addresses)),
            Taken::Nothing(without) => Some(self.nothing(&without)),
            Taken::Full(lack) => Some(self.respond(Conclusion::Full(lack))),
        }
    }

    /// Asks one backend after the other until `take` can make something of a success.
    pub(super) async fn take_turns<T, R>(
        &self,
        ask: &Ask,
        turns: &Turns,
        take: impl Fn(BackendId, Response<Incoming>) -> R,
    ) -> Taken<T>
    where
        R: Future<Output = Result<T, Failure>>,
    {
        let mut round: Vec<Asked> = Vec::new();
        let pool = self.upstream.pool();
        let (order, first) = self.order(turns, &pool).await;
        for backend in order {
            let take = |success| take(backend, success);
            let (via, answered) = self.upstream.ask_one(backend, ask, take).await;
            let result = match answered {
                Ok(Turn::Success(taken)) => {
                    self.upstream.judge_turns(&round);
                    self.upstream.judge_successes(&[via]);
                    // To have nothing of what was asked is no failure.
                    let (_, mut without) = split(round);
                    without.retain(|(_, failure)| !matches!(failure, Failure::Status(404)));
                    return Taken::Success(taken, without, pool.skipped);
                }
                Ok(Turn::Refused(received)) => Ok(received),
                Err(failure) => Err(failure),
            };
            if let Some(lack) = result.as_ref().err().and_then(Failure::lack) {
                self.upstream.judge_turns(&round);
                return Taken::Full(lack);
            }
            let asked = Asked {
                via,
                ..Asked::new(backend, result)
            };
            // A server's error may be its own, which the next holder does not share.
            let is_final = status(&asked).is_some_and(|status| status < 500);
            round.push(asked);
            if is_final && first == First::Owner && turns.owner_speaks() {
                break;
            }
        }
        self.upstream.judge(&round);
        let statuses: Vec<_> = round.iter().map(status).collect();
        let replay = match turns {
            Turns::OwnerFirst { .. } => speaker(&statuses, first),
            Turns::Configured => match verdict(statuses) {
                Verdict::Replay(at) => Some(at),
                Verdict::Merge | Verdict::Nothing => None,
            },
        };
        if let Some(at) = replay
            && let asked = round.swap_remove(at)
            && let Ok(received) = asked.result
        {
            self.note_locked_out(asked.backend, received.status);
            return Taken::Refused(received);
        }
        let mut skipped = pool.skipped;
        skipped.retain(|backend| round.iter().all(|asked| asked.backend != *backend));
        Taken::Nothing(with_skipped(split(round).1, &skipped))
    }

    /// In which order backends take turns, and whether the first is known to be the owner.
    ///
    /// Those out of service are left out, with one exception: where no backend in service is known
    /// to have a node, they come last. Any of them may be the only one that has it, and would be
    /// wrongly called unknown.
    async fn order(&self, turns: &Turns, pool: &Pool) -> (Vec<BackendId>, First) {
        let mut order = match turns {
            Turns::OwnerFirst {
                certname,
                by: Strategy::Freshness,
            } => self.freshness.map().await.holders(certname),
            Turns::OwnerFirst {
                certname,
                by: Strategy::Exact,
            } => {
                // One that has come back may have the newest data of it.
                let since = Instant::now();
                let map = self.freshness.map().await;
                let map = self.freshness.covering(map, &pool.asked, since).await;
                map.holders(certname)
            }
            Turns::OwnerFirst {
                by: Strategy::Static,
                ..
            }
            | Turns::Configured => Vec::new(),
        };
        order.retain(|holder| pool.asked.contains(holder));
        let first = if order.is_empty() {
            First::Anyone
        } else {
            First::Owner
        };
        let last: &[_] = match (turns, first) {
            (Turns::OwnerFirst { .. }, First::Anyone) => &pool.skipped,
            (Turns::OwnerFirst { .. }, First::Owner) | (Turns::Configured, _) => &[],
        };
        for backend in pool.asked.iter().chain(last) {
            if !order.contains(backend) {
                order.push(*backend);
            }
        }
        (order, first)
    }

    /// Passes a success on, once its first bytes are there: until then a backend that breaks off,
    /// or sends neither JSON nor the script that metrics are wrapped in under `callback` (trap T75),
    /// has failed like any other and the next can take its turn (ruling 12).
    async fn pass(
        &self,
        backend: BackendId,
        response: Response<Incoming>,
    ) -> Result<Response<Body>, Failure> {
        let (head, mut body) = response.into_parts();
        let length = length(&head.headers);
        let first = self.upstream.next_bytes(&mut body).await.transpose()?;
        let first = first.unwrap_or_default();
        if !is_script(&head.headers) && !begins_as_json(&first) {
            let (line, column) = (1, 1);
            return Err(Failure::Damaged(Damage::Malformed { line, column }));
        }
        self.upstream.backend(backend).counts.contributed();
        let rest = arriving(Arc::clone(&self.upstream), body);
        let bytes = stream::once(future::ready(Ok(first))).chain(rest);
        Ok(respond::passed(&head.headers, Body::passing(bytes, length)))
    }
}

/// Whether `bytes` can be how a JSON text begins. The pages of proxies and servers in front of a
/// PuppetDB cannot, and neither can nothing.
fn begins_as_json(bytes: &[u8]) -> bool {
    match bytes.trim_ascii_start() {
        [] => !bytes.is_empty(),
        [first, ..] => matches!(
            first,
            b'[' | b'{' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n'
        ),
    }
}

fn is_script(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    content_type.is_some_and(|it| it.starts_with("text/javascript"))
}

fn length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
