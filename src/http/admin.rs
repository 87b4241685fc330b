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
use crate::certificate::InUse;
use crate::metrics::Story;
use crate::upstream::{self, Member};
use page::{Answered, Backend, Certificate, Search, Tone, View};

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
    let (at, in_use) = (Timestamp::now(), app.certificates());
    let towards_clients = in_use.iter().filter(|it| it.backend.is_none());
    let view = View {
        at,
        backends: backends.map(|it| shown(app, it, &in_use, at)).collect(),
        certificates: towards_clients
            .map(|it| Certificate {
                what: it.which.word().to_owned(),
                days: it.days_left(at),
            })
            .collect(),
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

fn shown(app: &App, backend: &upstream::Backend, in_use: &[InUse<'_>], now: Timestamp) -> Backend {
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
        certificates: certificates(backend, in_use, now),
    }
}

/// The certificates towards the members of a backend; which member it is, is told where there are
/// several.
fn certificates(
    backend: &upstream::Backend,
    in_use: &[InUse<'_>],
    now: Timestamp,
) -> Vec<Certificate> {
    let members = backend.members();
    let of_member = members.iter().flat_map(|member| {
        let name = member.name.as_str();
        let its = in_use.iter().filter(move |it| it.backend == Some(name));
        its.map(move |it| Certificate {
            what: match members {
                [_] => it.which.word().to_owned(),
                _ => format!("{name} {}", it.which.word()),
            },
            days: it.days_left(now),
        })
    });
    of_member.collect()
}
