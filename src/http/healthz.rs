//! The endpoints for those who watch pdbmux: `/healthz` (R189-R201), `/livez` and `/readyz`. They
//! never tell where a backend is.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use futures_util::future::join_all;
use http::{Method, Response, StatusCode};
use pdbmux_core::health::rfc3339;
use serde::Serialize;

use super::body::Body;
use super::cached::{self, AnswerCache};
use super::reloads::Reloads;
use super::replay::Addresses;
use super::respond;
use super::rounds::{Completeness, Rounds};
use crate::metrics::Place;
use crate::upstream::{self, Standing, Upstream};

/// What is told of a backend that answers a query.
const REACHED: &str = "ok";

/// What is asked of pdbmux about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Endpoint {
    /// How each backend is, asking all of them.
    Health,
    /// Whether the process serves.
    Live,
    /// Whether requests should be sent here.
    Ready,
}

/// What the endpoints tell of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Watched<'a> {
    pub(super) upstream: &'a Upstream,
    pub(super) addresses: &'a Addresses,
    pub(super) rounds: &'a Rounds,
    pub(super) draining: &'a AtomicBool,
    pub(super) cache: Option<&'a AnswerCache>,
    pub(super) reloads: &'a Reloads,
}

#[derive(Serialize)]
struct Health<'h> {
    status: &'static str,
    backends: Vec<Backend<'h>>,
    /// By two, those that are on one database without being a group.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    shared_databases: Vec<[&'h str; 2]>,
    query: Query,
    cache: cached::Report,
    /// Not told until it was read again for the first time.
    #[serde(skip_serializing_if = "Option::is_none")]
    config: Option<Configuration>,
}

/// What became of reading the configuration again. Why it was refused is for the log: it may name
/// addresses.
#[derive(Serialize)]
struct Configuration {
    attempts: u64,
    generation: u64,
    last_reload_successful: bool,
    last_reload: Option<String>,
    last_successful_reload: Option<String>,
}

#[derive(Serialize)]
struct Backend<'h> {
    name: &'h str,
    state: &'static str,
    consecutive_failures: u32,
    consecutive_successes: u32,
    last_probe: Option<String>,
    last_error: Option<String>,
    /// `ok`, or why a query was not answered.
    reachable: String,
    /// Until when requests leave it out, if they do.
    #[serde(skip_serializing_if = "Option::is_none")]
    ejected_until: Option<String>,
    /// Those that stand in for one another, if it is a group.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    members: Vec<Backend<'h>>,
}

/// The last merged fan-out.
#[derive(Serialize)]
struct Query {
    partial: bool,
    contributed: usize,
    configured: usize,
    partial_rounds: u64,
    last_partial: Option<String>,
}

impl Endpoint {
    /// The endpoint at `path`, if there is one.
    pub(super) fn at(path: &str) -> Option<Self> {
        match path {
            "/healthz" => Some(Self::Health),
            "/livez" => Some(Self::Live),
            "/readyz" => Some(Self::Ready),
            _ => None,
        }
    }

    /// Where its answers are counted.
    pub(super) fn place(self) -> Place {
        match self {
            Self::Health => Place::Health,
            Self::Live => Place::Live,
            Self::Ready => Place::Ready,
        }
    }

    /// Its answer.
    pub(super) async fn answer(self, method: &Method, of: Watched<'_>) -> Response<Body> {
        match *method {
            Method::GET | Method::HEAD => {}
            _ => return respond::method_not_allowed("GET, HEAD"),
        }
        match self {
            Self::Health => health(of).await,
            Self::Live => status(StatusCode::OK, "ok"),
            Self::Ready if of.draining.load(Relaxed) => {
                status(StatusCode::SERVICE_UNAVAILABLE, "draining")
            }
            Self::Ready if of.upstream.any_in_service() => status(StatusCode::OK, "ok"),
            Self::Ready => status(StatusCode::SERVICE_UNAVAILABLE, "no backend in service"),
        }
    }
}

fn status(code: StatusCode, status: &str) -> Response<Body> {
    respond::json(code, serde_json::json!({ "status": status }).to_string())
}

/// Asks every backend a small query, all at once, each within the configured timeout.
async fn health(of: Watched<'_>) -> Response<Body> {
    let backends = join_all(of.upstream.backends().iter().map(async |backend| {
        let members = backend.members().iter().map(async |member| {
            let reached = of.upstream.reach(member).await;
            let standing = of.upstream.standing_of(member.id);
            tell(&member.name, &standing, reached, of)
        });
        let members = join_all(members).await;
        match <[_; 1]>::try_from(members) {
            Ok([only]) => only,
            Err(members) => group(backend, members, of),
        }
    }))
    .await;
    let is_well = |backend: &&Backend<'_>| backend.reachable == REACHED;
    let is_whole = |backend: &Backend<'_>| backend.members.iter().all(|it| is_well(&it));
    let well = backends.iter().filter(is_well).count();
    let (status, code) = match well {
        0 => ("down", StatusCode::SERVICE_UNAVAILABLE),
        _ if well == backends.len() && backends.iter().all(is_whole) => ("ok", StatusCode::OK),
        _ => ("degraded", StatusCode::OK),
    };
    let health = Health {
        status,
        backends,
        shared_databases: shared_databases(of.upstream),
        query: query(of),
        cache: cached::report(of.cache).await,
        config: configuration(of.reloads),
    };
    match serde_json::to_string(&health) {
        Ok(body) => respond::json(code, body),
        Err(_) => respond::internal_error(),
    }
}

fn shared_databases(upstream: &Upstream) -> Vec<[&str; 2]> {
    let pairs = upstream.shared_databases().into_iter();
    pairs
        .map(|(one, other)| [one, other].map(|id| upstream.backend(id).name.as_str()))
        .collect()
}

/// What is told of a group: it is as well as the best of it.
fn group<'h>(
    backend: &'h upstream::Backend,
    members: Vec<Backend<'h>>,
    of: Watched<'h>,
) -> Backend<'h> {
    let standing = of.upstream.standing(backend.id);
    let reachable = |all: &[Backend<'_>]| {
        let reached = all.iter().find(|member| member.reachable == REACHED);
        reached
            .or(all.first())
            .map(|member| member.reachable.clone())
    };
    Backend {
        reachable: reachable(&members).unwrap_or_default(),
        members,
        ..tell(&backend.name, &standing, Ok(()), of)
    }
}

fn tell<'h>(
    name: &'h str,
    standing: &Standing,
    reached: Result<(), upstream::Failure>,
    of: Watched<'h>,
) -> Backend<'h> {
    let strip = |text: &str| of.addresses.strip(text).into_owned();
    Backend {
        name,
        state: standing.state.name(),
        consecutive_failures: standing.consecutive_failures,
        consecutive_successes: standing.consecutive_successes,
        last_probe: standing.last_probe.and_then(rfc3339),
        last_error: standing.last_error.as_deref().map(strip),
        reachable: match reached {
            Ok(()) => REACHED.to_owned(),
            Err(failure) => strip(&failure.to_string()),
        },
        ejected_until: standing.ejected_until.and_then(rfc3339),
        members: Vec::new(),
    }
}

fn query(of: Watched<'_>) -> Query {
    let configured = of.upstream.backends().len();
    let seen = of.rounds.seen();
    let (completeness, contributed) = seen.last.unwrap_or((Completeness::Full, 0));
    Query {
        partial: completeness == Completeness::Partial,
        contributed,
        configured,
        partial_rounds: seen.partial_rounds,
        last_partial: seen.last_partial.and_then(rfc3339),
    }
}

fn configuration(reloads: &Reloads) -> Option<Configuration> {
    let seen = reloads.seen();
    seen.last_attempt.map(|last| Configuration {
        attempts: seen.attempts,
        generation: seen.generation,
        last_reload_successful: seen.last_error.is_none(),
        last_reload: rfc3339(last),
        last_successful_reload: seen.last_success.and_then(rfc3339),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{BackendConfig, Config};

    #[tokio::test]
    async fn r201_whoever_drains_lives_and_is_not_ready() {
        let backend = BackendConfig {
            name: "pdb-a".to_owned(),
            url: "http://puppetdb.example:8080".parse().unwrap(),
            access: crate::config::Access::default(),
        };
        let config = Config {
            backends: vec![backend],
            ..Config::default()
        };
        let upstream = Upstream::new(&config);
        let draining = AtomicBool::new(false);
        let watched = Watched {
            upstream: &upstream,
            addresses: &Addresses::new(upstream.addresses()),
            rounds: &Rounds::default(),
            draining: &draining,
            cache: None,
            reloads: &Reloads::default(),
        };
        let code = async |endpoint: Endpoint| endpoint.answer(&Method::GET, watched).await.status();
        assert_eq!(code(Endpoint::Ready).await, StatusCode::OK);
        draining.store(true, Relaxed);
        assert_eq!(code(Endpoint::Ready).await, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(code(Endpoint::Live).await, StatusCode::OK);
    }
}
