//! What is answered to those who run pdbmux, at `admin_listen`: how it is, and nothing of the API.

mod estates;
mod metrics;
pub mod page;

use std::sync::Arc;

use http::{Method, Request, Response, Uri};
use hyper::body::Incoming;
use jiff::Timestamp;
use pdbmux_core::health::State;

use super::App;
use super::body::Body;
use super::cached;
use super::healthz::Endpoint;
use super::respond;
use crate::metrics::Story;
use crate::upstream::{self, Member};
use page::{Answered, Backend, Search, Tone, View};

pub(super) use estates::Estates;

/// Answers a request of an operator.
pub(crate) async fn answer(app: &App, request: Request<Incoming>) -> Response<Body> {
    let (path, method) = (request.uri().path(), request.method());
    match (Endpoint::at(path), path) {
        (Some(endpoint), _) => endpoint.answer(method, app.watched()).await,
        (None, "/") => match *method {
            Method::GET | Method::HEAD => estate(app, request.uri()).await,
            _ => respond::method_not_allowed("GET, HEAD"),
        },
        (None, "/metrics") => match *method {
            Method::GET | Method::HEAD => metrics::answer(app, request.headers()).await,
            _ => respond::method_not_allowed("GET, HEAD"),
        },
        (None, _) => respond::not_found(),
    }
}

/// The estate page.
async fn estate(app: &App, uri: &Uri) -> Response<Body> {
    let (nodes, history) = (app.estates.nodes().await, app.estates.history());
    let (backends, recent) = (app.upstream().backends().iter(), app.metrics().recent());
    let view = View {
        at: Timestamp::now(),
        backends: backends.map(|backend| shown(app, backend)).collect(),
        nodes: nodes.as_deref(),
        history: &history,
        partials: Some(recent.partial().iter().map(lacking).collect()),
        slow: app
            .seeing
            .keeps_slow()
            .then(|| recent.slow().iter().map(slow).collect()),
        cache: cached::held(app.cache.as_deref()).await,
        strategy: app.settings.strategy,
        search: Search::of(uri.query().unwrap_or_default()),
    };
    match page::page(&view) {
        Ok(html) => respond::page(html, &page::policy()),
        Err(error) => {
            tracing::error!(%error, "the estate page could not be drawn");
            respond::internal_error()
        }
    }
}

/// A request whose answer lacks something, and what.
fn lacking(story: &Arc<Story>) -> Answered {
    answered(story, story.missing.join(", "))
}

/// A request that took long, and who was asked for how long.
fn slow(story: &Arc<Story>) -> Answered {
    answered(story, story.asked())
}

fn answered(story: &Story, note: String) -> Answered {
    Answered {
        at: story.time.clone(),
        target: story.target.clone(),
        status: story.status,
        took: format!("{} s", story.duration),
        note,
    }
}

fn shown(app: &App, backend: &upstream::Backend) -> Backend {
    let standing = app.upstream().standing(backend.id);
    let (state, tone) = match (standing.state, standing.ejected_until) {
        (State::Unhealthy, _) => ("out of service", Tone::Bad),
        (_, Some(_)) => ("left out for a time", Tone::Bad),
        (State::Healthy, None) => ("in service", Tone::Good),
        (State::ProbeUnsupported, None) => ("in service, unverified", Tone::Watch),
        (State::Unprobed, None) => ("not probed yet", Tone::Unknown),
        (State::Unmonitored, None) => ("not probed", Tone::Unknown),
    };
    let why = standing.last_error;
    let mut versions: Vec<_> = backend
        .members()
        .iter()
        .filter_map(Member::version)
        .collect();
    versions.dedup();
    Backend {
        name: backend.name.clone(),
        state,
        tone,
        why: why.map(|why| app.addresses.strip(&why).into_owned()),
        versions,
    }
}
