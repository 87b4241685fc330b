//! A request from its head to its answer.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use http::{Request, Response};
use hyper::body::Incoming;
use pdbmux_core::params::Params;
use pdbmux_core::plan::{Plan, plan, translated};
use pdbmux_core::round::BackendId;
use pdbmux_core::route::{Route, Rule};
use pdbmux_core::settings::Settings;

use super::admin::Estates;
use super::body::Body;
use super::cached::AnswerCache;
use super::door::{Door, Lead, Peer, Place, Refused, Sharing};
use super::encoding::{Accepted, Compression};
use super::explain;
use super::fan::{Conclusion, Without};
use super::healthz::{Endpoint, Watched};
use super::parameters::Bounds;
use super::partial::{Partials, Tolerance};
use super::pql::Translations;
use super::reloads::Reloads;
use super::replay::Addresses;
use super::respond;
use super::rounds::Rounds;
use super::seeing::Seeing;
use super::server::Patience;
use crate::collector;
use crate::config::Config;
use crate::descriptors;
use crate::metrics::{self, Denied, Metrics, Shed};
use crate::spans::Sink;
use crate::upstream::{Asked, Failure, Freshness, Lack, Upstream};

/// Everything that a request needs.
#[derive(Debug)]
pub(crate) struct App {
    config: Config,
    pub(super) settings: Arc<Settings>,
    pub(super) upstream: Arc<Upstream>,
    pub(super) seeing: Arc<Seeing>,
    spans: Option<Sink>,
    pub(super) freshness: Arc<Freshness>,
    pub(super) addresses: Addresses,
    pub(super) translations: Arc<Translations>,
    pub(super) rounds: Arc<Rounds>,
    /// Held once more for each answer that is held or written.
    pub(super) held: Arc<()>,
    /// Backends whose order cannot be relied on.
    pub(super) distrusted: Arc<Mutex<BTreeSet<BackendId>>>,
    pub(super) partials: Partials,
    pub(super) estates: Arc<Estates>,
    buffer_bytes: usize,
    /// The most certnames that a question to a backend lists, if that can be helped.
    pub(super) max_listed: usize,
    bounds: Bounds,
    door: Arc<Door>,
    /// Asked for each answer, so no token of a tree of tokens, which has a lock.
    draining: Arc<AtomicBool>,
    reloads: Arc<Reloads>,
    patience: Patience,
    max_connections: usize,
    /// `None` if it is turned off.
    pub(super) compression: Option<Compression>,
    /// `None` if it is turned off (R209).
    pub(super) cache: Option<Arc<AnswerCache>>,
}

impl App {
    /// The application of a configuration, counted in `metrics`.
    pub(crate) fn new(config: Config, metrics: &Arc<Metrics>) -> Arc<Self> {
        Self::build(config, metrics, None)
    }

    /// The application of another configuration. What it has in common with this one it keeps:
    /// connections to backends, the answers and the knowledge that are still right, and every count.
    pub(crate) fn following(&self, config: Config) -> Arc<Self> {
        Self::build(config, self.metrics(), Some(self))
    }

    fn build(config: Config, metrics: &Arc<Metrics>, before: Option<&Self>) -> Arc<Self> {
        let earlier = before.map(|before| &*before.upstream);
        let upstream = Upstream::following(&config, metrics, earlier);
        let settings = Arc::new(config.settings());
        let (asked, known) = (Arc::clone(&upstream), Arc::clone(&settings));
        let freshness = Freshness::new(asked, known, &config, metrics);
        let (asked, known) = (Arc::clone(&upstream), Arc::clone(&settings));
        let ttl = config.freshness_ttl;
        let estates = Estates::new(asked, Arc::clone(&freshness), known, ttl);
        // What is known of backends and their records is right as long as answers are the same.
        let like = before.filter(|before| before.config.answers_like(&config));
        if let Some(like) = like {
            freshness.take_over(&like.freshness);
            estates.take_over(&like.estates);
        }
        let spans = match before {
            Some(before) if before.config.otlp == config.otlp => before.spans.clone(),
            Some(_) | None => collector::start(&config.otlp, metrics),
        };
        Arc::new(Self {
            settings,
            estates,
            freshness,
            seeing: Seeing::new(&config, metrics, spans.clone()),
            spans,
            addresses: Addresses::new(upstream.addresses()),
            translations: like.map_or_else(Arc::default, |like| Arc::clone(&like.translations)),
            rounds: before.map_or_else(Arc::default, |before| Arc::clone(&before.rounds)),
            held: before.map_or_else(Arc::default, |before| Arc::clone(&before.held)),
            distrusted: like.map_or_else(Arc::default, |like| Arc::clone(&like.distrusted)),
            partials: Partials::of(&config, &upstream),
            buffer_bytes: config.buffer_bytes,
            max_listed: config.max_listed_nodes,
            bounds: Bounds::of(&config),
            door: match before {
                Some(before) if before.config.door == config.door => Arc::clone(&before.door),
                Some(_) | None => Arc::new(Door::of(&config)),
            },
            draining: before.map_or_else(Arc::default, |before| Arc::clone(&before.draining)),
            reloads: before.map_or_else(Arc::default, |before| Arc::clone(&before.reloads)),
            patience: Patience::of(&config),
            max_connections: {
                let questions = config.questions_at_most();
                descriptors::divide(config.max_connections, &questions).clients
            },
            compression: Compression::of(&config),
            cache: match like {
                Some(like) => like.cache.clone(),
                None => AnswerCache::of(&config).map(Arc::new),
            },
            upstream,
            config,
        })
    }

    /// The configuration that it is made of.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// What became of reading the configuration again.
    pub(crate) fn reloads(&self) -> &Arc<Reloads> {
        &self.reloads
    }

    /// Takes in that the configuration was read again: it is taken, or why not.
    pub(crate) fn reloaded(&self, outcome: Result<(), String>) {
        self.metrics().config_reloaded(match outcome {
            Ok(()) => metrics::Reload::Succeeded,
            Err(_) => metrics::Reload::Failed,
        });
        self.reloads.count(outcome);
    }

    /// The backends that requests are answered from.
    pub(crate) fn upstream(&self) -> &Arc<Upstream> {
        &self.upstream
    }

    /// How long clients whose connections begin now may take.
    pub(crate) fn patience(&self) -> Patience {
        self.patience
    }

    /// Most connections of clients.
    pub(crate) fn max_connections(&self) -> usize {
        self.max_connections
    }

    /// What is counted in this process.
    pub(crate) fn metrics(&self) -> &Arc<Metrics> {
        &self.seeing.metrics
    }

    /// Waits until all spans are sent of what has ended.
    pub(crate) async fn flush_spans(&self) {
        if let Some(spans) = &self.spans {
            spans.flush().await;
        }
    }

    /// Tells those who ask that this process is about to end.
    pub(crate) fn drain(&self) {
        self.draining.store(true, Relaxed);
    }

    /// What the endpoints for those who watch pdbmux tell of.
    pub(super) fn watched(&self) -> Watched<'_> {
        Watched {
            upstream: &self.upstream,
            addresses: &self.addresses,
            rounds: &self.rounds,
            draining: &self.draining,
            cache: self.cache.as_deref(),
            reloads: &self.reloads,
        }
    }

    /// Whether this process is about to end.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Relaxed)
    }

    /// What lets requests in.
    pub(crate) fn door(&self) -> &Door {
        &self.door
    }

    /// Answers a request of `peer`, whatever becomes of it: a panic below here is a fault of pdbmux
    /// and costs its own request only.
    pub(crate) async fn answer(
        self: &Arc<Self>,
        peer: Arc<Peer>,
        request: Request<Incoming>,
    ) -> Response<Body> {
        let watch = self.seeing.watch(&peer, &request);
        let sharing = self.door.sharing(&request);
        let answer = self.answer_in_any_case(&peer, &sharing, request);
        let response = watch.request().follow(answer).await;
        respond::door::shared(watch.answered(response), &sharing)
    }

    async fn answer_in_any_case(
        self: &Arc<Self>,
        peer: &Arc<Peer>,
        sharing: &Sharing,
        mut request: Request<Incoming>,
    ) -> Response<Body> {
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let accepted = Accepted::by(&request);
        let handled = AssertUnwindSafe(async {
            let admitted = if self.door.is_preflight(&request) {
                Err(respond::door::preflight(sharing, request.headers()))
            } else {
                let admitted = self.admit(peer, &mut request).await;
                admitted.map_err(|why| self.refuse(&why))
            };
            let place = match admitted {
                Ok(place) => place,
                Err(answer) => {
                    let (head, body) = request.into_parts();
                    self.bounds.discard(&head.headers, body).await;
                    return answer;
                }
            };
            let response = self.handle(request, accepted).await;
            let response = match self.compression {
                Some(compression) => compression.encode(response, accepted),
                None => response,
            };
            response.map(|body| body.keeping(place))
        });
        let response = handled.catch_unwind().await.unwrap_or_else(|_| {
            tracing::error!(%method, path = uri.path(), "a request ended in a panic");
            respond::internal_error()
        });
        let status = response.status().as_u16();
        tracing::debug!(%method, path = uri.path(), status, "answered");
        response
    }

    /// Lets a request in, under the path that it has without the base path, or says why not. Whoever
    /// watches pdbmux is let in always.
    async fn admit<B>(&self, peer: &Arc<Peer>, request: &mut Request<B>) -> Result<Place, Refused> {
        match self.door.lead(request.uri()) {
            Lead::AsItIs => {}
            Lead::Below(uri) => *request.uri_mut() = uri,
            Lead::Outside => return Err(Refused::Outside),
        }
        match Endpoint::at(request.uri().path()) {
            Some(_) => Ok(Place::default()),
            None => self.door.admit(peer, request.headers()).await,
        }
    }

    fn refuse(&self, why: &Refused) -> Response<Body> {
        match why {
            Refused::Crowd(crowd) => self.metrics().shed(crowd.lack()),
            Refused::Unlisted(_) => self.metrics().denied(Denied::Unlisted),
            Refused::Bare(_) => self.metrics().denied(Denied::Bare),
            Refused::Unknown(_) => self.metrics().denied(Denied::Unknown),
            Refused::Outside | Refused::Broken(_) => {}
        }
        respond::door::refused(why)
    }

    async fn handle(
        self: &Arc<Self>,
        request: Request<Incoming>,
        accepted: Accepted,
    ) -> Response<Body> {
        let path = request.uri().path().to_owned();
        if let Some(endpoint) = Endpoint::at(&path) {
            self.seeing.found(endpoint.place());
            return endpoint.answer(request.method(), self.watched()).await;
        }
        let found = Route::find(&path);
        self.seeing.found(match &found {
            Ok(Some(route)) => metrics::Place::Row(route.number),
            Ok(None) | Err(_) => metrics::Place::Unknown,
        });
        let route = match found {
            Ok(Some(route)) if route.row.rule != Rule::Write => route,
            found => {
                let (head, body) = request.into_parts();
                self.bounds.discard(&head.headers, body).await;
                return match found {
                    Err(refusal) => respond::refused(&refusal),
                    Ok(None) => respond::not_found(),
                    Ok(Some(_)) => respond::write_refused(),
                };
            }
        };
        let wants_reasons = explain::is_wanted(request.headers());
        let wish = self.partials.wanted(request.headers());
        let query = match self.bounds.parameters(request, route.row).await {
            Err(unread) => return respond::unread(&unread),
            Ok(query) => query,
        };
        let tolerance = match wish {
            Err(unknown) => return respond::unknown_wish(&unknown),
            Ok(tolerance) => tolerance,
        };
        let params = match Params::read(&query) {
            Err(refusal) => return respond::refused(&refusal),
            Ok(params) => params,
        };
        let plan = match plan(&route, &params, &self.settings) {
            Ok(Plan::Translate(ask)) => match self.translation(&ask).await {
                Err(refused) => return refused,
                Ok(text) => translated(&route, &params, &text, &self.settings),
            },
            plan => plan,
        };
        match plan {
            // Rare: boxed, so that no other request makes room for it.
            Ok(plan) if wants_reasons => Box::pin(self.explain(plan)).await,
            Err(refusal) => respond::refused(&refusal),
            Ok(plan) => {
                let response = self.perform(plan, accepted, tolerance).await;
                self.partials.or_refused(tolerance, response)
            }
        }
    }

    /// Does what a plan says. What was translated is not translated again.
    async fn perform(
        self: &Arc<Self>,
        plan: Plan,
        accepted: Accepted,
        tolerance: Tolerance,
    ) -> Response<Body> {
        match plan {
            Plan::Write => respond::write_refused(),
            Plan::Nothing(total) => self.nothing_asked(total),
            Plan::Turns(ask, turns, uncertain) => self.pass_on(&ask, &turns, uncertain).await,
            Plan::Parent(ask, turns, fan) => match self.parent(&ask, &turns).await {
                None => self.respond(self.fan_within(fan, self.room()).await),
                Some(refused) => refused,
            },
            Plan::Fan(mut fan) => match fan.cache_key.take() {
                Some(key) => self.cached(fan, key, accepted, tolerance).await,
                None => self.respond(self.fan_within(fan, self.room()).await),
            },
            Plan::Translate(_) => respond::internal_error(),
        }
    }

    /// How much of an answer is held before it is written while it arrives, in bytes. All answers
    /// under way share what there is.
    pub(super) fn room(&self) -> usize {
        self.buffer_bytes / Arc::strong_count(&self.held)
    }

    pub(super) fn respond(&self, conclusion: Conclusion) -> Response<Body> {
        match conclusion {
            Conclusion::Answer {
                standing,
                pieces,
                bodies,
            } => respond::merged(Body::pieces(pieces, &bodies), &standing),
            Conclusion::Stream { standing, streamed } => match streamed.take() {
                Some(body) => respond::merged(body, &standing),
                None => respond::internal_error(),
            },
            Conclusion::Replay(received) => respond::replayed(&received, &self.addresses),
            Conclusion::Nothing(missing) => respond::bad_gateway(&missing),
            Conclusion::Unfoldable(error) => respond::unfoldable(&error),
            Conclusion::Full(lack) => {
                self.metrics().shed(match lack {
                    Lack::Memory(_) => Shed::Memory,
                    Lack::Descriptors(_) => Shed::Descriptors,
                });
                respond::lacking_here(lack)
            }
        }
    }

    /// The answer when nothing came back that could be served.
    pub(super) fn nothing(&self, without: &Without) -> Response<Body> {
        self.warn(without);
        respond::bad_gateway(&self.missing(without))
    }

    pub(super) fn warn(&self, without: &Without) {
        for (backend, failure) in without {
            let backend = self.upstream.backend(*backend);
            backend.counts.missing(failure.outcome());
        }
        // That one is out of service was logged when it went.
        let failed = without
            .iter()
            .filter(|(_, failure)| !matches!(failure, Failure::OutOfService));
        for (backend, failure) in failed {
            tracing::warn!(backend = self.name(*backend), %failure, "a backend did not contribute");
        }
    }

    /// Tells of a refusal that is about pdbmux itself, whatever its client asked.
    pub(super) fn note_locked_out(&self, backend: BackendId, status: u16) {
        if matches!(status, 401 | 403) {
            let backend = self.name(backend);
            tracing::warn!(
                backend,
                status,
                "a backend does not let pdbmux ask: is it in the backend's allow-list?"
            );
        }
    }

    /// Counts whose answers went into that to a round, which is in configured order: each once, whatever
    /// it was asked.
    pub(super) fn count_contributors(&self, round: &[Asked]) {
        let parts = round.iter().map(Asked::part);
        let mut last = None;
        for part in parts.filter(|part| part.reply.is_some_and(|reply| reply.is_success())) {
            if last.replace(part.backend) != Some(part.backend) {
                self.upstream.backend(part.backend).counts.contributed();
            }
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
