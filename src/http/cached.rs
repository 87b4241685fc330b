//! Routes whose answers are cached: a fresh entry, else one round for all who ask the same, else,
//! where every backend fails, an entry past its time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use pdbmux_core::answer::Pieces;
use pdbmux_core::merge::Fan;
use pdbmux_core::merge::drilldown::Drilldown;
use serde::Serialize;
use tokio::time::Instant;

use super::body::{Body, gather};
use super::encoding::Accepted;
use super::fan::Conclusion;
use super::origin::{Kept, Origin, Shared, Why};
use super::partial::Tolerance;
use super::respond::{self, Standing};
use super::serve::App;
use super::stream::Streamed;
use crate::cache::{Cache, Entry, Fallbacks, Memory, Stats, Store};
use crate::config::{Config, duration};
use crate::flight::Flights;
use crate::gzip;
use crate::metrics::{self, CacheUse};
use crate::{request, work};

/// The answer cache and the rounds under way for it.
#[derive(Debug)]
pub(crate) struct AnswerCache {
    answers: Cache<Memory>,
    flights: Flights<Arc<Landed>>,
    /// Entries being compressed.
    compressions: Flights<Entry>,
    /// The longest answer that is stored, in bytes.
    longest: usize,
}

/// What came of a flight, for everyone who took part.
#[derive(Debug)]
enum Landed {
    /// An entry that the flight before this one had just left.
    Entry(Entry),
    /// One that this flight stored.
    Stored(Entry),
    /// A merged answer in its parts; in one part if it is read once more.
    Answer {
        standing: Standing,
        parts: VecDeque<Bytes>,
    },
    /// An answer too long to be kept, which the first who asks is sent.
    Stream {
        standing: Standing,
        streamed: Streamed,
    },
    /// Backends were asked and agree that they do not answer this.
    Refused(Conclusion),
    /// Every backend failed.
    Failed(Conclusion),
}

/// What a request wants of an answer that it may share with others.
#[derive(Clone)]
struct Want {
    /// What it shows of it; `None` for all of it.
    view: Option<Box<Drilldown>>,
    accepted: Accepted,
}

impl AnswerCache {
    /// How much is in it.
    async fn use_of(&self) -> CacheUse {
        let stats = self.answers.stats().await;
        CacheUse {
            entries: stats.entries,
            stale: stats.stale_entries,
            bytes: stats.bytes,
        }
    }

    /// The cache as it is configured; `None` if it is turned off (R209).
    pub(crate) fn of(config: &Config) -> Option<Self> {
        (!config.facts_ttl.is_zero()).then(|| Self {
            answers: Cache::new(Memory::new(config.facts_cache_bytes), config.facts_ttl),
            flights: Flights::new(),
            compressions: Flights::new(),
            longest: config.facts_cache_bytes,
        })
    }
}

impl App {
    /// Answers a request whose answer is cached under `key`.
    pub(super) async fn cached(
        self: &Arc<Self>,
        fan: Fan,
        key: String,
        accepted: Accepted,
        tolerance: Tolerance,
    ) -> Response<Body> {
        let view = fan.drilldown.clone();
        let want = Want { view, accepted };
        let Some(cache) = &self.cache else {
            return match self.land(fan, &key, tolerance).await {
                Landed::Stream { standing, streamed } => {
                    self.respond(Conclusion::Stream { standing, streamed })
                }
                Landed::Entry(entry) | Landed::Stored(entry) => {
                    self.of_entry(&key, entry, want).await
                }
                Landed::Answer { standing, parts } => shown(parts, standing, want.view).await,
                Landed::Refused(conclusion) | Landed::Failed(conclusion) => {
                    self.respond(conclusion)
                }
            };
        };
        let why = match cache.answers.of_any_age(&key).await {
            None => Why::Miss,
            Some(entry) if !cache.answers.is_fresh(&entry) => Why::Stale,
            Some(entry) if !self.allows(tolerance, &entry) => Why::Request,
            Some(entry) => {
                cache.answers.served_current();
                return self.hit(&key, entry, want).await;
            }
        };
        let (mut shared, mut kept) = (Shared::Collapsed, Kept::Not);
        let flight = cache.flights.join(&key, || {
            shared = Shared::Own;
            let (app, fan, key) = (Arc::clone(self), fan.clone(), key.clone());
            request::carried(async move { Arc::new(app.land(fan, &key, tolerance).await) })
        });
        if shared == Shared::Collapsed {
            request::count(metrics::Route::coalesced);
        }
        let Some(landed) = flight.landed().await else {
            tracing::error!(key, "a round ended in a panic");
            return respond::internal_error();
        };
        let response = match &*landed {
            Landed::Entry(entry) => {
                cache.answers.served_current();
                return self.hit(&key, entry.clone(), want).await;
            }
            Landed::Stored(entry) => {
                cache.answers.served_current();
                kept = Kept::Stored;
                self.of_entry(&key, entry.clone(), want).await
            }
            Landed::Answer { standing, parts } => {
                cache.answers.served_current();
                shown(parts.clone(), standing.clone(), want.view).await
            }
            Landed::Refused(conclusion) => {
                cache.answers.served_current();
                self.respond(conclusion.clone())
            }
            Landed::Stream { standing, streamed } => {
                cache.answers.served_current();
                if let Some(body) = streamed.take() {
                    respond::merged(body, standing)
                } else {
                    // Another is sent it: this one asks for itself.
                    shared = Shared::Own;
                    self.respond(self.fan_within(fan, self.room()).await)
                }
            }
            Landed::Failed(conclusion) => {
                let failed = self.respond(conclusion.clone());
                let entry = cache.answers.of_any_age(&key).await;
                if let Some(entry) = entry.filter(|entry| self.allows(tolerance, entry)) {
                    cache.answers.served_stale();
                    let age = entry.age();
                    tracing::warn!(?age, "every backend failed: an older answer is served");
                    let over = age.saturating_sub(cache.answers.ttl());
                    let origin = Origin::Stale(over, failed.status());
                    return respond::dated(self.of_entry(&key, entry, want).await, origin, age);
                }
                failed
            }
        };
        let origin = Origin::Miss { why, shared, kept };
        respond::dated(response, origin, Duration::ZERO)
    }

    /// The entry under `key` if it is fresh. One that lacks more than it may is none: the backends are
    /// asked anew.
    async fn fresh(&self, cache: &AnswerCache, key: &str, tolerance: Tolerance) -> Option<Entry> {
        let entry = cache.answers.fresh(key).await;
        entry.filter(|entry| self.allows(tolerance, entry))
    }

    fn allows(&self, tolerance: Tolerance, entry: &Entry) -> bool {
        self.partials.allow(tolerance, &entry.missing)
    }

    /// No record on a cached route, which is known without asking anyone.
    pub(super) fn nothing_asked(&self, total: Option<u64>) -> Response<Body> {
        let response = respond::nothing(total);
        match self.cache {
            Some(_) => respond::dated(response, Origin::Known, Duration::ZERO),
            None => response,
        }
    }

    /// Asks the backends and stores their answer, if it is one to be stored.
    async fn land(self: &Arc<Self>, fan: Fan, key: &str, tolerance: Tolerance) -> Landed {
        // Whoever looked for an entry just before one was stored comes here just after.
        if let Some(cache) = &self.cache
            && let Some(entry) = self.fresh(cache, key, tolerance).await
        {
            return Landed::Entry(entry);
        }
        let cache = self.cache.as_ref().map(|cache| &cache.answers);
        let is_read = fan.drilldown.is_some();
        // What may be stored is held.
        let room = self
            .room()
            .max(self.cache.as_ref().map_or(0, |cache| cache.longest));
        let (standing, pieces, bodies) = match self.fan_within(fan, room).await {
            Conclusion::Stream { standing, streamed } => {
                return Landed::Stream { standing, streamed };
            }
            Conclusion::Answer {
                standing,
                pieces,
                bodies,
            } => (standing, pieces, bodies),
            // A unanimous 5xx is a failed round (R025).
            Conclusion::Replay(received) if received.status < 500 => {
                return Landed::Refused(Conclusion::Replay(received));
            }
            refused @ Conclusion::Unfoldable(_) => return Landed::Refused(refused),
            failed => return Landed::Failed(failed),
        };
        let is_complete = standing.contributed == standing.configured;
        let taking = match cache {
            Some(cache) if cache.takes(key, pieces.len(), is_complete).await => Some(cache),
            _ => None,
        };
        if taking.is_none() && !is_read {
            let parts = gather(pieces, &bodies);
            return Landed::Answer { standing, parts };
        }
        let body = assemble(pieces, bodies).await;
        if let Some(cache) = taking {
            let entry = entry(standing, body);
            cache.put(key, entry.clone()).await;
            return Landed::Stored(entry);
        }
        Landed::Answer {
            standing,
            parts: VecDeque::from([body]),
        }
    }
}

impl App {
    /// The response of a fresh entry, which says where it comes from and how old it is.
    async fn hit(self: &Arc<Self>, key: &str, entry: Entry, want: Want) -> Response<Body> {
        let age = entry.age();
        let ttl = self.cache.as_ref().map_or(age, |cache| cache.answers.ttl());
        let origin = Origin::Hit(ttl.saturating_sub(age));
        respond::dated(self.of_entry(key, entry, want).await, origin, age)
    }

    /// The response of the entry under `key`.
    async fn of_entry(self: &Arc<Self>, key: &str, mut entry: Entry, want: Want) -> Response<Body> {
        let length = Some(entry.body.len() as u64);
        let is_compressed = self
            .compression
            .is_some_and(|it| want.view.is_none() && it.suits(want.accepted, length));
        if is_compressed {
            entry = self.compressed(key, entry).await;
        }
        let standing = Standing {
            total: entry.total,
            contributed: entry.contributed,
            configured: entry.configured,
            missing: entry.missing,
            doubts: entry.doubts,
        };
        match entry.gzip.filter(|_| is_compressed) {
            Some(gzip) => respond::encoded(respond::merged(Body::whole(gzip), &standing)),
            None => shown(VecDeque::from([entry.body]), standing, want.view).await,
        }
    }

    /// The entry under `key` with its compressed body, which is made once for all who ask for it and
    /// kept beside the other. Without one, if meanwhile there is another entry.
    async fn compressed(self: &Arc<Self>, key: &str, entry: Entry) -> Entry {
        let Some(cache) = self.cache.as_ref().filter(|_| entry.gzip.is_none()) else {
            return entry;
        };
        let flight = cache.compressions.join(key, || {
            let (app, key, entry) = (Arc::clone(self), key.to_owned(), entry.clone());
            async move { app.compress(&key, entry).await }
        });
        let compressed = flight.landed().await;
        compressed
            .filter(|it| it.stored == entry.stored)
            .unwrap_or(entry)
    }

    async fn compress(&self, key: &str, mut entry: Entry) -> Entry {
        let cache = self.cache.as_ref().map(|cache| &cache.answers);
        // Whoever saw the entry just before that was done comes here just after.
        if let Some(cache) = cache
            && let Some(kept) = cache.of_any_age(key).await
            && kept.stored == entry.stored
            && kept.gzip.is_some()
        {
            return kept;
        }
        let body = entry.body.clone();
        let gzip = work::run(body.len(), move || gzip::compress(&body)).await;
        if let Some(cache) = cache {
            cache.add_gzip(key, entry.stored, gzip.clone()).await;
        }
        entry.gzip = Some(gzip);
        entry
    }
}

fn entry(standing: Standing, body: Bytes) -> Entry {
    let Standing {
        total,
        contributed,
        configured,
        missing,
        doubts,
    } = standing;
    Entry {
        body,
        total,
        contributed,
        configured,
        missing,
        doubts,
        stored: Instant::now(),
        gzip: None,
    }
}

/// The response of a merged set, or of what a drilldown shows of it, which reads a set in one part.
async fn shown(
    mut parts: VecDeque<Bytes>,
    mut standing: Standing,
    view: Option<Box<Drilldown>>,
) -> Response<Body> {
    let Some(drilldown) = view else {
        return respond::merged(Body::parts(parts), &standing);
    };
    let whole = parts.pop_front().unwrap_or_default();
    let shown = work::run(whole.len(), move || drilldown.apply(&whole)).await;
    let Some((body, total)) = shown else {
        return respond::internal_error();
    };
    standing.total = total;
    respond::merged(Body::whole(body), &standing)
}

/// An answer in one run of bytes: its pieces would keep all bodies of the round.
pub(super) async fn assemble(pieces: Pieces, bodies: Vec<Bytes>) -> Bytes {
    let length = pieces.len();
    let assemble = move || {
        let bodies: Vec<_> = bodies.iter().map(|body| &**body).collect();
        Bytes::from(pieces.assemble(&bodies))
    };
    work::run(length, assemble).await
}

/// What `/healthz` tells of the cache (R199).
#[derive(Debug, Serialize)]
pub(super) struct Report {
    backend: &'static str,
    ttl: String,
    entries: usize,
    stale_entries: usize,
    bytes: usize,
    serving_stale: bool,
    stale_served: u64,
    /// RFC 3339; `null` if that never happened.
    last_stale_served: Option<String>,
}

/// How much is in `cache`; `None` if there is none.
pub(super) async fn held(cache: Option<&AnswerCache>) -> Option<CacheUse> {
    Some(cache?.use_of().await)
}

/// What `/healthz` tells of `cache`, or of there being none.
pub(super) async fn report(cache: Option<&AnswerCache>) -> Report {
    let (backend, ttl, stats, fallbacks) = match cache {
        None => (
            "none",
            Duration::ZERO,
            Stats::default(),
            Fallbacks::default(),
        ),
        Some(AnswerCache { answers, .. }) => (
            Memory::NAME,
            answers.ttl(),
            answers.stats().await,
            answers.fallbacks(),
        ),
    };
    let last = fallbacks
        .last
        .and_then(|last| jiff::Timestamp::try_from(last).ok());
    Report {
        backend,
        ttl: duration::format(&ttl),
        entries: stats.entries,
        stale_entries: stats.stale_entries,
        bytes: stats.bytes,
        serving_stale: fallbacks.serving,
        stale_served: fallbacks.count,
        last_stale_served: last.map(|last| format!("{last:.3}")),
    }
}
