//! A question to all backends: asked, merged, and asked again for what is missing.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pdbmux_core::answer::Pieces;
use pdbmux_core::merge::fold::FoldError;
use pdbmux_core::merge::owners::{FreshnessMap, Shares};
use pdbmux_core::merge::records::{Known, RecordMerge};
use pdbmux_core::merge::{Context, Fan, Merged, Outcome};
use pdbmux_core::plan::{Ask, Doubt};
use pdbmux_core::round::BackendId;
use tokio::time::Instant;

use super::reading::to_read;
use super::respond::Standing;
use super::serve::App;
use super::stream::{AHEAD, Begun, Streamed};
use crate::upstream::{Asked, Failure, Lack, Pool, Received, Room};
use crate::{request, work};

/// What a round came to.
#[derive(Debug, Clone)]
pub(super) enum Conclusion {
    /// A merged answer, its pieces lying in these bodies.
    Answer {
        standing: Standing,
        pieces: Pieces,
        bodies: Vec<Bytes>,
    },
    /// A merged answer that is written while the backends' answers arrive.
    Stream {
        standing: Standing,
        streamed: Streamed,
    },
    /// An answer that all agree on is passed on.
    Replay(Received),
    /// No usable answer, from whom and why.
    Nothing(Vec<(String, String)>),
    /// Sound answers that cannot become one.
    Unfoldable(FoldError),
    /// None, for lack of something here.
    Full(Lack),
}

/// Backends that an answer is made without, and why.
pub(super) type Without = Vec<(BackendId, Failure)>;

/// What came of asking.
pub(super) struct Gathered {
    /// The parts of the round, in configured order.
    pub(super) round: Vec<Asked>,
    /// What each of them was asked.
    pub(super) asks: Vec<Ask>,
    /// Who was not asked.
    pub(super) skipped: Vec<BackendId>,
    /// Whose data is newest, where that decides something.
    pub(super) map: Option<Arc<FreshnessMap>>,
    /// What asking has shown to be doubtful.
    pub(super) doubts: Vec<Doubt>,
    /// Who owns what, where the nodes were divided.
    pub(super) shares: Option<Arc<Shares>>,
    /// What was done in place of the plan, by these shares.
    pub(super) instead: Option<Arc<Fan>>,
}

impl App {
    /// Answers a request from all backends in service. An answer need not be held whole: what is longer
    /// than `room` bytes is written while it arrives, if it can be.
    pub(super) async fn fan_within(self: &Arc<Self>, fan: Fan, room: usize) -> Conclusion {
        let conclusion = self.ask_all(fan, room).await;
        self.rounds.count_request(&conclusion);
        conclusion
    }

    /// Asks all backends in service and merges what they answer. First it is asked what the question's
    /// subqueries come to, where that is no matter of one backend.
    pub(super) async fn ask_all(self: &Arc<Self>, fan: Fan, room: usize) -> Conclusion {
        if fan.priors.is_empty() {
            self.round(fan, room).await
        } else {
            Box::pin(self.after_priors(fan, room)).await
        }
    }

    async fn round(self: &Arc<Self>, fan: Fan, room: usize) -> Conclusion {
        let _held = Arc::clone(&self.held);
        let fan = Arc::new(fan);
        let room = fan.streamed().map_or(usize::MAX, |_| room);
        let since = Instant::now();
        // Backends that failed, so that others have to speak for their nodes.
        let mut failed = Vec::new();
        'division: loop {
            let mut gathered = if fan.is_undivided() {
                self.gather(&fan, since, room).await
            } else {
                self.gather_shares(&fan, since, room, &mut failed).await
            };
            let done = gathered.instead.clone().unwrap_or_else(|| Arc::clone(&fan));
            while let Some(plan) = done.streamed()
                && gathered.round.iter().any(|asked| asked.rest.is_some())
            {
                match self.begin(plan, &mut gathered, since, room).await {
                    Ok(None) => {}
                    Ok(Some(begun)) => {
                        gathered.round.append(&mut failed);
                        return self.conclude_stream(&fan, gathered, begun);
                    }
                    Err(waited) => return Conclusion::Full(Lack::Memory(waited)),
                }
                if !fan.is_undivided() {
                    let known = failed.len();
                    let bad = |asked: &mut Asked| asked.result.is_err();
                    failed.extend(gathered.round.extract_if(.., bad));
                    if failed.len() > known {
                        continue 'division;
                    }
                }
            }
            let (mut gathered, merged) = self.settle(&done, gathered).await;
            if let Outcome::Instead(instead) = merged.outcome {
                return Box::pin(self.ask_all(*instead, usize::MAX)).await;
            }
            // In a group another may have taken over.
            let damaged = merged.damaged.clone();
            let is_damaged = |asked: &Asked| damaged.iter().any(|(id, _)| *id == asked.backend);
            let is_lost = |asked: &Asked| is_damaged(asked) && !asked.is_success();
            if fan.is_undivided() || !gathered.round.iter().any(is_lost) {
                let merged = self.unanimous(&fan, &mut gathered, merged, &failed).await;
                gathered.round.append(&mut failed);
                gathered.round.sort_by_key(|asked| asked.backend);
                return self.conclude(&done, gathered, merged);
            }
            failed.extend(gathered.round.into_iter().filter(is_lost));
        }
    }

    /// Begins to write what comes of a round, if that can be. Otherwise the round has changed: it is
    /// there whole, or something of it turned out to be damaged. If there was no memory for it, how
    /// long that was waited for.
    async fn begin(
        self: &Arc<Self>,
        plan: &RecordMerge,
        gathered: &mut Gathered,
        since: Instant,
        room: usize,
    ) -> Result<Option<Begun>, Duration> {
        let comes_as_written = self.comes_as_written(plan, gathered, since).await;
        let (round, asks) = (&mut gathered.round, &gathered.asks);
        let known = Known {
            backends: &self.settings.backends,
            freshness: gathered.map.as_ref(),
            shares: gathered.shares.as_ref(),
        };
        let begun = if comes_as_written {
            let hold = if plan.is_ordered_here() {
                Some(self.upstream.hold(AHEAD).await?)
            } else {
                None
            };
            self.begin_stream(plan, round, known, hold).await
        } else {
            let before = failures(round);
            self.upstream.receive_rest(round, asks).await;
            if failures(round) > before || !plan.is_ordered_here() {
                return Ok(None);
            }
            self.begin_sorted(plan, round, known).await
        };
        match begun {
            Ok(begun) => Ok(Some(begun)),
            Err(mut damaged) => {
                damaged.retain(|(backend, damage)| !self.distrust(*backend, *damage));
                let replaced = self
                    .upstream
                    .replace_damaged(round, asks, &damaged, Room::of(room));
                // Rare: boxed, so that no other request makes room for it.
                Box::pin(replaced).await;
                Ok(None)
            }
        }
    }

    /// What was merged, a refusal being none unless those agree that failed before. It is made to
    /// speak of the question as it was put to pdbmux, without the nodes that were added to it.
    async fn unanimous(
        &self,
        fan: &Fan,
        gathered: &mut Gathered,
        mut merged: Merged,
        failed: &[Asked],
    ) -> Merged {
        let Outcome::Replay(at) = merged.outcome else {
            return merged;
        };
        if !failed.is_empty() {
            merged.outcome = Outcome::Nothing;
            return merged;
        }
        let (Some(ask), Some(part)) = (gathered.asks.get(at), gathered.round.get_mut(at)) else {
            return merged;
        };
        let refused = status(part).filter(|status| (400..500).contains(status));
        if refused.is_some() && ask.target() != fan.ask.target() {
            let question = [(part.backend, fan.ask.clone())];
            let again = self.upstream.fan_out(&question).await.pop();
            // One about the source fact, which no backend knows, would speak of the wrong thing.
            if let Some(again) = again.filter(|again| status(again) == refused)
                && !self.names_source(&again)
            {
                *part = again;
            }
        }
        merged
    }

    fn names_source(&self, asked: &Asked) -> bool {
        let body = asked.result.as_ref().map(|received| &received.body);
        let text = body.map(|body| String::from_utf8_lossy(body));
        let source = self.settings.source.as_deref();
        text.is_ok_and(|text| source.is_some_and(|source| text.contains(source)))
    }

    /// Asks every backend the same.
    async fn gather(&self, fan: &Arc<Fan>, since: Instant, room: usize) -> Gathered {
        let Pool { asked, mut skipped } = self.upstream.pool();
        let asks: Vec<_> = asked
            .into_iter()
            .flat_map(|backend| fan.asks().map(move |ask| (backend, ask.clone())))
            .collect();
        let map = async {
            if fan.merge.needs_freshness() {
                Some(self.freshness.map().await)
            } else {
                None
            }
        };
        let (mut round, mut map) = tokio::join!(self.ask_reading(fan, &asks, Room::of(room)), map);
        if let Some(known) = map {
            let mut contributors = successes(&round);
            contributors.dedup();
            let covering = self.freshness.covering(known, &contributors, since).await;
            for backend in contributors
                .into_iter()
                .filter(|backend| !covering.covers(*backend))
            {
                let backend = self.name(backend);
                tracing::warn!(backend, "how new its nodes are could not be learnt");
            }
            map = Some(covering);
        }
        if fan.merge.is_by_one() {
            // One that is not asked may be the one that has it.
            let silent = skipped
                .drain(..)
                .map(|backend| Asked::new(backend, Err(Failure::OutOfService)));
            round.extend(silent);
            round.sort_by_key(|asked| asked.backend);
        }
        let asks = round.iter().zip(fan.asks().cycle());
        Gathered {
            asks: asks.map(|(_, ask)| ask.clone()).collect(),
            round,
            skipped,
            map,
            doubts: Vec::new(),
            shares: None,
            instead: None,
        }
    }

    /// Merges a round; where that does not decide the window, asks for more and merges again. What
    /// turns out to be damaged has failed, or is asked of another of its group.
    async fn settle(&self, fan: &Arc<Fan>, mut gathered: Gathered) -> (Gathered, Merged) {
        let mut round = std::mem::take(&mut gathered.round);
        let asks = &mut gathered.asks;
        let mut damaged = Vec::new();
        loop {
            let (settings, plan) = (Arc::clone(&self.settings), Arc::clone(fan));
            let (map, shares) = (gathered.map.clone(), gathered.shares.clone());
            let limits: Vec<_> = asks.iter().map(Ask::limit).collect();
            let began = Instant::now();
            let mut merged;
            (round, merged) = work::run(to_read(&round), move || {
                let parts: Vec<_> = round.iter().map(Asked::part).collect();
                let context = Context {
                    backends: &settings.backends,
                    freshness: map.as_deref(),
                    shares: shares.as_deref(),
                };
                let merged = plan.merge(&parts, &limits, context);
                (round, merged)
            })
            .await;
            request::merged(began.elapsed());
            if !merged.damaged.is_empty() {
                let (now, room) = (&merged.damaged, Room::unbounded());
                damaged.extend_from_slice(now);
                let replaced = self.upstream.replace_damaged(&mut round, asks, now, room);
                if Box::pin(replaced).await {
                    continue;
                }
            }
            let Outcome::AskAgain(again) = merged.outcome else {
                gathered.round = round;
                merged.damaged = damaged;
                return (gathered, merged);
            };
            let mut more = Vec::new();
            for again in again {
                if let Some(at) = round.iter().position(|part| part.backend == again.backend) {
                    asks[at] = asks[at].clone().with_limit(again.limit);
                    more.push((again.backend, asks[at].clone()));
                }
            }
            for asked in self.upstream.fan_out(&more).await {
                if let Some(at) = round.iter().position(|part| part.backend == asked.backend) {
                    round[at] = asked;
                }
            }
        }
    }

    /// What the head of an answer says; a word in the log and in the counts about whom it lacks.
    fn standing(
        &self,
        fan: &Fan,
        gathered: &Gathered,
        without: Without,
        total: Option<u64>,
        contributed: usize,
    ) -> Standing {
        let without = with_skipped(missed(fan, without), &gathered.skipped);
        self.warn(&without);
        let doubts = fan.doubts.iter().chain(&gathered.doubts);
        Standing {
            total,
            contributed,
            configured: self.upstream.backends().len(),
            missing: self.missing(&without),
            doubts: doubts.map(|doubt| doubt.reason()).collect(),
        }
    }

    fn conclude_stream(&self, fan: &Fan, mut gathered: Gathered, begun: Begun) -> Conclusion {
        if let Some(lack) = gathered.round.iter().find_map(Asked::lack) {
            return Conclusion::Full(lack);
        }
        let mut round = std::mem::take(&mut gathered.round);
        round.sort_by_key(|asked| asked.backend);
        self.upstream.judge(&round);
        self.count_contributors(&round);
        let (_, without) = split(round);
        let Begun {
            total,
            contributed,
            streamed,
        } = begun;
        Conclusion::Stream {
            standing: self.standing(fan, &gathered, without, total, contributed),
            streamed,
        }
    }

    /// Says what a round came to, given what a merge made of it.
    fn conclude(&self, fan: &Fan, mut gathered: Gathered, merged: Merged) -> Conclusion {
        let round = std::mem::take(&mut gathered.round);
        if let Some(lack) = round.iter().find_map(Asked::lack) {
            return Conclusion::Full(lack);
        }
        self.upstream.judge(&round);
        match merged.outcome {
            Outcome::Answer(answer) => {
                note_dropped(answer.dropped);
                self.count_contributors(&round);
                let (bodies, without) = split(round);
                let (total, contributed) = (answer.total, answer.contributed);
                Conclusion::Answer {
                    standing: self.standing(fan, &gathered, without, total, contributed),
                    pieces: answer.pieces,
                    bodies,
                }
            }
            Outcome::Replay(at) => match round.into_iter().nth(at) {
                Some(Asked {
                    backend,
                    result: Ok(received),
                    ..
                }) => {
                    self.note_locked_out(backend, received.status);
                    Conclusion::Replay(received)
                }
                _ => Conclusion::Nothing(Vec::new()),
            },
            // What is asked again or instead has been by now.
            Outcome::Nothing | Outcome::AskAgain(_) | Outcome::Instead(_) => {
                let without = with_skipped(missed(fan, split(round).1), &gathered.skipped);
                self.warn(&without);
                Conclusion::Nothing(self.missing(&without))
            }
            Outcome::Unfoldable(error) => Conclusion::Unfoldable(error),
        }
    }
}

/// Tells of upstream records that bore the source fact's name (R070).
pub(super) fn note_dropped(records: usize) {
    if records > 0 {
        tracing::info!(
            records,
            "backends sent facts of the source fact's own name: dropped"
        );
    }
}

/// Those that did not contribute and those that were not asked, in configured order.
pub(super) fn with_skipped(mut without: Without, skipped: &[BackendId]) -> Without {
    without.extend(
        skipped
            .iter()
            .map(|backend| (*backend, Failure::OutOfService)),
    );
    without.sort_by_key(|(backend, _)| *backend);
    without
}

/// The status of what came back, if anything did.
pub(super) fn status(asked: &Asked) -> Option<u16> {
    asked.result.as_ref().ok().map(|received| received.status)
}

pub(super) fn successes(round: &[Asked]) -> Vec<BackendId> {
    let successes = round.iter().filter(|asked| asked.is_success());
    successes.map(|asked| asked.backend).collect()
}

fn failures(round: &[Asked]) -> usize {
    round.iter().filter(|asked| asked.result.is_err()).count()
}

/// Those of `without` that an answer lacks something by.
fn missed(fan: &Fan, mut without: Without) -> Without {
    without.retain(
        |(_, failure)| !matches!(failure, Failure::Status(status) if fan.tolerates(*status)),
    );
    without
}

/// The bodies that a merge was made of, in the order in which it counts them, and who is not among
/// them.
pub(super) fn split(round: Vec<Asked>) -> (Vec<bytes::Bytes>, Without) {
    let mut bodies = Vec::new();
    let mut without = Vec::new();
    for Asked {
        backend, result, ..
    } in round
    {
        match result {
            Ok(Received {
                status: 200..300,
                body,
                ..
            }) => bodies.push(body),
            Ok(Received { status, .. }) => without.push((backend, Failure::Status(status))),
            Err(failure) => without.push((backend, failure)),
        }
    }
    // One that failed more than one question is missed once.
    without.dedup_by_key(|(backend, _)| *backend);
    (bodies, without)
}
