//! A request from its head to its answer.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, future, stream};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, Method, Request, Response};
use hyper::body::Incoming;
use pdbmux_core::Refusal;
use pdbmux_core::answer::Pieces;
use pdbmux_core::merge::damage::Damage;
use pdbmux_core::merge::fold::FoldError;
use pdbmux_core::merge::{Context, Fan, Merge, Merged, Outcome};
use pdbmux_core::params::Params;
use pdbmux_core::plan::{Ask, Plan, Turns, plan};
use pdbmux_core::round::{BackendId, First, Verdict, speaker, verdict};
use pdbmux_core::route::Route;
use pdbmux_core::settings::{Settings, Strategy};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::body::Body;
use super::cached::AnswerCache;
use super::healthz::{Endpoint, Watched};
use super::replay::Addresses;
use super::respond::{self, Standing};
use super::rounds::{Completeness, Rounds};
use crate::config::Config;
use crate::upstream::{Asked, Failure, Freshness, Pool, Received, Upstream};
use crate::work;

/// Everything that a request needs.
#[derive(Debug)]
pub(crate) struct App {
    settings: Arc<Settings>,
    upstream: Arc<Upstream>,
    freshness: Arc<Freshness>,
    addresses: Addresses,
    rounds: Rounds,
    draining: CancellationToken,
    /// `None` if it is turned off (R209).
    pub(super) cache: Option<AnswerCache>,
}

/// What a round came to.
#[derive(Debug, Clone)]
pub(super) enum Conclusion {
    /// A merged answer, its pieces lying in these bodies.
    Answer {
        standing: Standing,
        pieces: Pieces,
        bodies: Vec<Bytes>,
    },
    /// An answer that all agree on is passed on.
    Replay(Received),
    /// No usable answer, from whom and why.
    Nothing(Vec<(String, String)>),
    /// Sound answers that cannot become one.
    Unfoldable(FoldError),
}

/// Backends that an answer is made without, and why.
type Without = Vec<(BackendId, Failure)>;

impl App {
    pub(crate) fn new(config: &Config) -> Arc<Self> {
        let upstream = Upstream::new(config);
        Arc::new(Self {
            settings: Arc::new(config.settings()),
            freshness: Freshness::new(Arc::clone(&upstream), config.freshness_ttl),
            addresses: Addresses::new(upstream.addresses()),
            rounds: Rounds::default(),
            draining: CancellationToken::new(),
            cache: AnswerCache::of(config),
            upstream,
        })
    }

    /// The backends that requests are answered from.
    pub(crate) fn upstream(&self) -> &Arc<Upstream> {
        &self.upstream
    }

    /// Tells those who ask that this process is about to end.
    pub(crate) fn drain(&self) {
        self.draining.cancel();
    }

    /// Answers a request, whatever becomes of it: a panic below here is a fault of pdbmux and costs
    /// its own request only.
    pub(crate) async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let handled = AssertUnwindSafe(self.handle(&method, uri.path(), uri.query()));
        let response = handled.catch_unwind().await.unwrap_or_else(|_| {
            tracing::error!(%method, path = uri.path(), "a request ended in a panic");
            respond::internal_error()
        });
        let status = response.status().as_u16();
        tracing::debug!(%method, path = uri.path(), status, "answered");
        response
    }

    async fn handle(
        self: &Arc<Self>,
        method: &Method,
        path: &str,
        query: Option<&str>,
    ) -> Response<Body> {
        if let Some(endpoint) = Endpoint::at(path) {
            let watched = Watched {
                upstream: &self.upstream,
                addresses: &self.addresses,
                rounds: &self.rounds,
                draining: &self.draining,
                cache: self.cache.as_ref(),
            };
            return endpoint.answer(method, watched).await;
        }
        match self.plan(path, query) {
            Err(refusal) => respond::refused(&refusal),
            Ok(None) => respond::not_found(),
            Ok(Some(Plan::Write)) => respond::write_refused(),
            Ok(Some(_)) if method != Method::GET => respond::method_not_allowed("GET"),
            Ok(Some(Plan::Nothing(total))) => self.nothing_asked(total),
            Ok(Some(Plan::Turns(ask, turns))) => self.turns(&ask, &turns).await,
            Ok(Some(Plan::Fan(mut fan))) => match fan.cache_key.take() {
                Some(key) => self.cached(fan, key).await,
                None => self.respond(self.fan(fan).await),
            },
        }
    }

    fn plan(&self, path: &str, query: Option<&str>) -> Result<Option<Plan>, Refusal> {
        let Some(route) = Route::find(path)? else {
            return Ok(None);
        };
        let params = Params::read(query.unwrap_or_default())?;
        plan(&route, &params, &self.settings).map(Some)
    }

    /// Asks all backends in service at once and merges.
    pub(super) async fn fan(&self, fan: Fan) -> Conclusion {
        let fan = Arc::new(fan);
        let ask = &fan.ask;
        let since = Instant::now();
        let Pool { asked, mut skipped } = self.upstream.pool();
        let asks: Vec<_> = asked
            .into_iter()
            .map(|backend| (backend, ask.clone()))
            .collect();
        let map = async {
            if fan.merge.needs_freshness() {
                Some(self.freshness.map().await)
            } else {
                None
            }
        };
        let (mut round, mut map) = tokio::join!(self.upstream.fan_out(&asks), map);
        if let Some(known) = map {
            let contributors = successes(&round);
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
            let silent = skipped.drain(..).map(|backend| Asked {
                backend,
                result: Err(Failure::OutOfService),
            });
            round.extend(silent);
            round.sort_by_key(|asked| asked.backend);
        }
        let mut limits = vec![ask.limit(); round.len()];
        loop {
            let (settings, plan) = (Arc::clone(&self.settings), Arc::clone(&fan));
            let (sent, map) = (limits.clone(), map.clone());
            let merged;
            (round, merged) = work::run(size(&round), move || {
                let parts: Vec<_> = round.iter().map(Asked::part).collect();
                let freshness = map.as_deref();
                let merged = plan.merge(
                    &parts,
                    &sent,
                    Context {
                        backends: &settings.backends,
                        freshness,
                    },
                );
                (round, merged)
            })
            .await;
            let again = match merged.outcome {
                Outcome::AskAgain(again) => again,
                Outcome::Instead(instead) => return Box::pin(self.fan(*instead)).await,
                _ => return self.conclude(&fan.merge, round, &skipped, merged),
            };
            let asks: Vec<_> = again
                .iter()
                .map(|again| (again.backend, ask.clone().with_limit(again.limit)))
                .collect();
            for (asked, again) in self.upstream.fan_out(&asks).await.into_iter().zip(again) {
                if let Some(at) = round.iter().position(|part| part.backend == asked.backend) {
                    limits[at] = again.limit;
                    round[at] = asked;
                }
            }
        }
    }

    /// Says what a round came to, given what a merge made of it.
    fn conclude(
        &self,
        merge: &Merge,
        mut round: Vec<Asked>,
        skipped: &[BackendId],
        merged: Merged,
    ) -> Conclusion {
        for (backend, error) in merged.damaged {
            if let Some(asked) = round.iter_mut().find(|asked| asked.backend == backend) {
                asked.result = Err(Failure::Damaged(error));
            }
        }
        match merged.outcome {
            Outcome::Answer(answer) => {
                if answer.dropped > 0 {
                    let records = answer.dropped;
                    tracing::info!(
                        records,
                        "backends sent facts of the source fact's own name: dropped"
                    );
                }
                let (bodies, without) = split(round);
                let without = with_skipped(missed(merge, without), skipped);
                self.warn(&without);
                let configured = self.upstream.backends().len();
                let completeness = if without.is_empty() {
                    Completeness::Full
                } else {
                    Completeness::Partial
                };
                self.rounds.count(completeness, answer.contributed);
                Conclusion::Answer {
                    standing: Standing {
                        total: answer.total,
                        contributed: answer.contributed,
                        configured,
                        missing: self.missing(&without),
                    },
                    pieces: answer.pieces,
                    bodies,
                }
            }
            Outcome::Replay(at) => match round.into_iter().nth(at).map(|asked| asked.result) {
                Some(Ok(received)) => {
                    if received.status >= 500 {
                        self.rounds.count(Completeness::Partial, 0);
                    }
                    Conclusion::Replay(received)
                }
                _ => Conclusion::Nothing(Vec::new()),
            },
            // What is asked again or instead has been by now.
            Outcome::Nothing | Outcome::AskAgain(_) | Outcome::Instead(_) => {
                self.rounds.count(Completeness::Partial, 0);
                let without = with_skipped(missed(merge, split(round).1), skipped);
                self.warn(&without);
                Conclusion::Nothing(self.missing(&without))
            }
            Outcome::Unfoldable(error) => Conclusion::Unfoldable(error),
        }
    }

    pub(super) fn respond(&self, conclusion: Conclusion) -> Response<Body> {
        match conclusion {
            Conclusion::Answer {
                standing,
                pieces,
                bodies,
            } => respond::merged(Body::pieces(pieces, &bodies), &standing),
            Conclusion::Replay(received) => respond::replayed(&received, &self.addresses),
            Conclusion::Nothing(missing) => respond::bad_gateway(&missing),
            Conclusion::Unfoldable(error) => respond::unfoldable(&error),
        }
    }

    /// Asks one backend after the other and passes on the first success as it arrives.
    async fn turns(&self, ask: &Ask, turns: &Turns) -> Response<Body> {
        let mut round: Vec<Asked> = Vec::new();
        let pool = self.upstream.pool();
        let (order, first) = self.order(turns, &pool).await;
        for backend in order {
            let result = match self.upstream.open(backend, ask).await {
                Ok(response) if response.status().is_success() => match self.pass(response).await {
                    Ok(passed) => {
                        // To have nothing of what was asked is no failure.
                        let (_, mut without) = split(round);
                        without.retain(|(_, failure)| !matches!(failure, Failure::Status(404)));
                        self.warn(&without);
                        return passed;
                    }
                    Err(failure) => Err(failure),
                },
                Ok(response) => self.upstream.receive(response).await,
                Err(failure) => Err(failure),
            };
            round.push(Asked { backend, result });
        }
        let statuses: Vec<_> = round.iter().map(status).collect();
        let replay = match turns {
            Turns::OwnerFirst { .. } => speaker(&statuses, first),
            Turns::Configured => match verdict(statuses) {
                Verdict::Replay(at) => Some(at),
                Verdict::Merge | Verdict::Nothing => None,
            },
        };
        if let Some(Ok(received)) = replay.map(|at| &round[at].result) {
            return respond::replayed(received, &self.addresses);
        }
        let mut skipped = pool.skipped;
        skipped.retain(|backend| round.iter().all(|asked| asked.backend != *backend));
        self.nothing(&with_skipped(split(round).1, &skipped))
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
    async fn pass(&self, response: Response<Incoming>) -> Result<Response<Body>, Failure> {
        let (head, mut body) = response.into_parts();
        let length = length(&head.headers);
        let first = self.upstream.next_bytes(&mut body).await.transpose()?;
        let first = first.unwrap_or_default();
        if !is_script(&head.headers) && !begins_as_json(&first) {
            let (line, column) = (1, 1);
            return Err(Failure::Damaged(Damage::Malformed { line, column }));
        }
        let state = (Arc::clone(&self.upstream), body);
        let bytes = stream::unfold(state, async |(upstream, mut body)| {
            let next = upstream.next_bytes(&mut body).await?;
            Some((next, (upstream, body)))
        });
        let bytes = stream::once(future::ready(Ok(first))).chain(bytes);
        Ok(respond::passed(&head.headers, Body::passing(bytes, length)))
    }

    /// The answer when nothing came back that could be served.
    fn nothing(&self, without: &Without) -> Response<Body> {
        self.warn(without);
        respond::bad_gateway(&self.missing(without))
    }

    fn warn(&self, without: &Without) {
        // That one is out of service was logged when it went.
        let failed = without
            .iter()
            .filter(|(_, failure)| !matches!(failure, Failure::OutOfService));
        for (backend, failure) in failed {
            tracing::warn!(backend = self.name(*backend), %failure, "a backend did not contribute");
        }
    }

    fn missing(&self, without: &Without) -> Vec<(String, String)> {
        without
            .iter()
            .map(|(backend, failure)| (self.name(*backend).to_owned(), failure.reason()))
            .collect()
    }

    fn name(&self, backend: BackendId) -> &str {
        &self.upstream.backend(backend).name
    }
}

fn status(asked: &Asked) -> Option<u16> {
    asked.result.as_ref().ok().map(|received| received.status)
}

/// Those that did not contribute and those that were not asked, in configured order.
fn with_skipped(mut without: Without, skipped: &[BackendId]) -> Without {
    without.extend(
        skipped
            .iter()
            .map(|backend| (*backend, Failure::OutOfService)),
    );
    without.sort_by_key(|(backend, _)| *backend);
    without
}

fn successes(round: &[Asked]) -> Vec<BackendId> {
    let parts = round.iter().map(Asked::part);
    parts
        .filter(|part| part.reply.is_some_and(|r| r.is_success()))
        .map(|part| part.backend)
        .collect()
}

fn size(round: &[Asked]) -> usize {
    round
        .iter()
        .map(|asked| {
            asked
                .result
                .as_ref()
                .map_or(0, |received| received.body.len())
        })
        .sum()
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

/// Those of `without` that an answer lacks something by.
fn missed(merge: &Merge, mut without: Without) -> Without {
    without.retain(
        |(_, failure)| !matches!(failure, Failure::Status(status) if merge.tolerates(*status)),
    );
    without
}

/// The bodies that a merge was made of, in the order in which it counts them, and who is not among
/// them.
fn split(round: Vec<Asked>) -> (Vec<bytes::Bytes>, Without) {
    let mut bodies = Vec::new();
    let mut without = Vec::new();
    for Asked { backend, result } in round {
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
    (bodies, without)
}
