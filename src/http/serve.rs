//! A request from its head to its answer.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::{FutureExt, StreamExt, future, stream};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, Request, Response};
use hyper::body::Incoming;
use pdbmux_core::merge::damage::Damage;
use pdbmux_core::params::Params;
use pdbmux_core::plan::{Ask, Plan, Turns, plan};
use pdbmux_core::round::{BackendId, First, Verdict, speaker, verdict};
use pdbmux_core::route::{Route, Rule};
use pdbmux_core::settings::{Settings, Strategy};
use tokio_util::sync::CancellationToken;

use super::body::Body;
use super::cached::AnswerCache;
use super::explain;
use super::fan::{Conclusion, Without, split, with_skipped};
use super::healthz::{Endpoint, Watched};
use super::parameters::Bounds;
use super::replay::Addresses;
use super::respond;
use super::rounds::Rounds;
use crate::config::Config;
use crate::upstream::{Asked, Failure, Freshness, Pool, Upstream};

/// Everything that a request needs.
#[derive(Debug)]
pub(crate) struct App {
    pub(super) settings: Arc<Settings>,
    pub(super) upstream: Arc<Upstream>,
    pub(super) freshness: Arc<Freshness>,
    pub(super) addresses: Addresses,
    pub(super) rounds: Rounds,
    bounds: Bounds,
    draining: CancellationToken,
    /// `None` if it is turned off (R209).
    pub(super) cache: Option<AnswerCache>,
}

impl App {
    pub(crate) fn new(config: &Config) -> Arc<Self> {
        let upstream = Upstream::new(config);
        let settings = Arc::new(config.settings());
        let (asked, known) = (Arc::clone(&upstream), Arc::clone(&settings));
        Arc::new(Self {
            settings,
            freshness: Freshness::new(asked, known, config.freshness_ttl),
            addresses: Addresses::new(upstream.addresses()),
            rounds: Rounds::default(),
            bounds: Bounds::of(config),
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
        let handled = AssertUnwindSafe(self.handle(request));
        let response = handled.catch_unwind().await.unwrap_or_else(|_| {
            tracing::error!(%method, path = uri.path(), "a request ended in a panic");
            respond::internal_error()
        });
        let status = response.status().as_u16();
        tracing::debug!(%method, path = uri.path(), status, "answered");
        response
    }

    async fn handle(self: &Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        let path = request.uri().path().to_owned();
        if let Some(endpoint) = Endpoint::at(&path) {
            let watched = Watched {
                upstream: &self.upstream,
                addresses: &self.addresses,
                rounds: &self.rounds,
                draining: &self.draining,
                cache: self.cache.as_ref(),
            };
            return endpoint.answer(request.method(), watched).await;
        }
        let route = match Route::find(&path) {
            Err(refusal) => return respond::refused(&refusal),
            Ok(None) => return respond::not_found(),
            Ok(Some(route)) if route.row.rule == Rule::Write => return respond::write_refused(),
            Ok(Some(route)) => route,
        };
        let wants_reasons = explain::is_wanted(request.headers());
        let query = match self.bounds.parameters(request, route.row).await {
            Err(unread) => return respond::unread(&unread),
            Ok(query) => query,
        };
        let params = Params::read(&query);
        match params.and_then(|params| plan(&route, &params, &self.settings)) {
            Ok(plan) if wants_reasons => self.explain(plan).await,
            Err(refusal) => respond::refused(&refusal),
            Ok(Plan::Write) => respond::write_refused(),
            Ok(Plan::Nothing(total)) => self.nothing_asked(total),
            Ok(Plan::Turns(ask, turns)) => self.turns(&ask, &turns).await,
            Ok(Plan::Fan(mut fan)) => match fan.cache_key.take() {
                Some(key) => self.cached(fan, key).await,
                None => self.respond(self.fan(fan).await),
            },
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
    pub(super) async fn turns(&self, ask: &Ask, turns: &Turns) -> Response<Body> {
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
            let answered = result.is_ok();
            round.push(Asked { backend, result });
            if answered && first == First::Owner && turns.owner_speaks() {
                break;
            }
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
                by: Strategy::Freshness | Strategy::Exact,
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

    pub(super) fn warn(&self, without: &Without) {
        // That one is out of service was logged when it went.
        let failed = without
            .iter()
            .filter(|(_, failure)| !matches!(failure, Failure::OutOfService));
        for (backend, failure) in failed {
            tracing::warn!(backend = self.name(*backend), %failure, "a backend did not contribute");
        }
    }

    pub(super) fn missing(&self, without: &Without) -> Vec<(String, String)> {
        without
            .iter()
            .map(|(backend, failure)| (self.name(*backend).to_owned(), failure.reason()))
            .collect()
    }

    pub(super) fn name(&self, backend: BackendId) -> &str {
        &self.upstream.backend(backend).name
    }
}

fn status(asked: &Asked) -> Option<u16> {
    asked.result.as_ref().ok().map(|received| received.status)
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
