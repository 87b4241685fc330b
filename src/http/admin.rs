//! What is answered to those who run pdbmux, at `admin_listen`: how it is, and nothing of the API.

mod estates;
mod metrics;
pub mod page;

use http::{Method, Request, Response, Uri};
use hyper::body::Incoming;
use jiff::Timestamp;
use pdbmux_core::health::State;

use super::App;
use super::body::Body;
use super::cached;
use super::healthz::Endpoint;
use super::respond;
use crate::upstream;
use page::{Backend, Search, Tone, View};

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
    let backends = app.upstream().backends().iter();
    let view = View {
        at: Timestamp::now(),
        backends: backends.map(|backend| shown(app, backend)).collect(),
        nodes: nodes.as_deref(),
        history: &history,
        partials: None,
        slow: None,
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

fn shown(app: &App, backend: &upstream::Backend) -> Backend {
    let standing = app.upstream().standing(backend.id);
    let (state, tone) = match standing.state {
        State::Healthy => ("in service", Tone::Good),
        State::Unhealthy => ("out of service", Tone::Bad),
        State::ProbeUnsupported => ("in service, unverified", Tone::Watch),
        State::Unprobed => ("not probed yet", Tone::Unknown),
        State::Unmonitored => ("not probed", Tone::Unknown),
    };
    let why = standing.last_error;
    Backend {
        name: backend.name.clone(),
        state,
        tone,
        why: why.map(|why| app.addresses.strip(&why).into_owned()),
    }
}
