//! Seeing what becomes of requests: counts, the access log, and those that are worth a look.

mod access;
mod story;

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, Method, Response};
use http_body::Body as _;

use super::body::Body;
use super::door::Peer;
use super::respond::{self, PartialRefused};
use crate::config::{Config, Group, RequestIds};
use crate::metrics::{self, Answered, Held, Metrics, Place, Status, Tier};
use crate::request::{Ids, Notes, Request};
use crate::spans::Sink;
use access::AccessLog;

/// Who looks at requests.
#[derive(Debug)]
pub(crate) struct Seeing {
    pub(super) metrics: Arc<Metrics>,
    /// The backends in configured order.
    backends: Vec<Named>,
    /// `None` if requests have no ids.
    ids: Option<Ids>,
    access: AccessLog,
    /// Where spans go, if they do.
    spans: Option<Sink>,
    /// From how long on a request is slow; `None` if none is.
    slow: Option<Duration>,
}

/// What a backend is called, and those that answer for it.
#[derive(Debug)]
struct Named {
    name: String,
    /// In configured order; one of the same name, if it is no group.
    members: Vec<String>,
}

/// A look at one request, which ends with the last byte of its answer.
#[derive(Debug)]
pub(crate) struct Watch {
    seeing: Arc<Seeing>,
    peer: Arc<Peer>,
    request: Arc<Request>,
    /// What the answer's head says, once there is one.
    head: Option<Head>,
    /// Bytes of the body, if they are known.
    length: Option<u64>,
    /// Those that were handed over.
    bytes: u64,
    end: End,
    _under_way: Held,
}

#[derive(Debug)]
struct Head {
    status: http::StatusCode,
    /// How whole the answer is, where it is made of what backends said.
    how: Option<Answered>,
    after: Duration,
    /// `None` if nobody will want to know.
    told: Option<Box<Told>>,
}

/// What a head tells of how the answer came about.
#[derive(Debug)]
struct Told {
    tier: Option<Tier>,
    contributed: Option<HeaderValue>,
    missing: Vec<HeaderValue>,
}

/// Whether an answer was written to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Reached,
    Ahead,
}

impl Seeing {
    /// As it is configured, with somewhere that spans go, or without.
    pub(crate) fn new(config: &Config, metrics: &Arc<Metrics>, spans: Option<Sink>) -> Arc<Self> {
        let named = |group: Group<'_>| Named {
            name: group.name.to_owned(),
            members: group.members.iter().map(|it| it.name.clone()).collect(),
        };
        Arc::new(Self {
            metrics: Arc::clone(metrics),
            backends: config.groups().into_iter().map(named).collect(),
            ids: (config.request_ids == RequestIds::On).then(Ids::default),
            access: AccessLog::of(config.access_log),
            spans,
            slow: (!config.slow_query.is_zero()).then_some(config.slow_query),
        })
    }

    /// Begins to look at a request of `peer`.
    pub(crate) fn watch<B>(self: &Arc<Self>, peer: &Arc<Peer>, head: &http::Request<B>) -> Watch {
        let notes = match self.slow {
            Some(_) => Notes::Kept,
            None => Notes::Off,
        };
        Watch {
            seeing: Arc::clone(self),
            peer: Arc::clone(peer),
            request: Request::new(head, self.ids.as_ref(), notes, self.spans.as_ref()),
            head: None,
            length: None,
            bytes: 0,
            end: End::Ahead,
            _under_way: self.metrics.request(),
        }
    }

    /// Whether slow requests are kept.
    pub(super) fn keeps_slow(&self) -> bool {
        self.slow.is_some()
    }

    /// Takes in where this task's request is answered.
    pub(super) fn found(&self, place: Place) {
        crate::request::found(self.metrics.route(place));
    }

    /// Whether it is told of every request, or may be when that has ended.
    fn tells_of(&self, request: &Request) -> bool {
        self.slow.is_some() || self.access.is_on() || request.recording().is_some()
    }

    fn told(&self, request: &Request, headers: &HeaderMap) -> Option<Box<Told>> {
        let mut missing = respond::missing(headers).iter().peekable();
        let is_wanted = self.tells_of(request) || missing.peek().is_some();
        is_wanted.then(|| {
            Box::new(Told {
                tier: respond::tier(headers),
                contributed: respond::contributed(headers).cloned(),
                missing: missing.cloned().collect(),
            })
        })
    }
}

impl Head {
    /// Whether it is that of an answer that lacks a backend, sent or refused for that.
    fn is_partial(&self) -> bool {
        matches!(self.how, Some(Answered::Partial | Answered::Refused))
    }
}

fn how(response: &Response<Body>) -> Option<Answered> {
    if !response.status().is_success() {
        let refused = response.extensions().get::<PartialRefused>();
        return refused.map(|_| Answered::Refused);
    }
    Some(match respond::missing(response.headers()).iter().next() {
        Some(_) => Answered::Partial,
        None => Answered::Whole,
    })
}

impl Watch {
    /// The request that is looked at.
    pub(crate) fn request(&self) -> &Arc<Request> {
        &self.request
    }

    /// Goes on with the answer's body.
    pub(crate) fn answered(mut self, response: Response<Body>) -> Response<Body> {
        let response = match &self.request.id {
            Some(id) => respond::identified(response, id),
            None => response,
        };
        self.head = Some(Head {
            status: response.status(),
            how: how(&response),
            after: self.request.began.elapsed(),
            told: self.seeing.told(&self.request, response.headers()),
        });
        self.count(response.headers());
        self.length = response.body().size_hint().exact();
        // A body that is empty, or never written, has no end to wait for.
        if self.request.method == Method::HEAD || self.length == Some(0) {
            self.end = End::Reached;
        }
        response.map(|body| body.watched(self.into()))
    }

    /// Takes a step of the work on the body.
    pub(super) fn step<T>(&self, work: impl FnOnce() -> T) -> T {
        self.request.step(work)
    }

    /// So many bytes more were handed over.
    pub(super) fn hands_over(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        // Nobody asks for more than was promised.
        if self.length == Some(self.bytes) {
            self.end = End::Reached;
        }
    }

    /// Nothing is left to be handed over.
    pub(super) fn ends(&mut self) {
        self.end = End::Reached;
    }

    fn route(&self) -> &Arc<metrics::Route> {
        let unknown = || self.seeing.metrics.route(Place::Unknown);
        self.request.route().unwrap_or_else(unknown)
    }

    /// Counts what a head says.
    fn count(&self, headers: &HeaderMap) {
        let Some(Head { how: Some(how), .. }) = self.head else {
            return;
        };
        let route = self.route();
        route.completed(how);
        if how == Answered::Refused {
            return;
        }
        if let Some(tier) = respond::tier(headers) {
            route.cached(tier);
        } else if route.is_cached() {
            route.cached(Tier::Bypass);
        }
        respond::doubts(headers).for_each(|doubt| route.doubted(doubt));
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let duration = self.request.began.elapsed();
        let status = self
            .head
            .as_ref()
            .map_or(Status::Left, |head| head.status.into());
        let method = (&self.request.method).into();
        self.route().answered(method, status, duration);
        let seeing = &self.seeing;
        let is_slow = seeing.slow.is_some_and(|slow| duration >= slow);
        let is_partial = self.head.as_ref().is_some_and(Head::is_partial);
        let recording = self.request.recording();
        if !(is_slow || is_partial || seeing.access.is_on() || recording.is_some()) {
            return;
        }
        let story = Arc::new(self.story(duration));
        if let Some(recording) = recording {
            recording.served(&story, self.route(), duration);
        }
        seeing.access.write(&story);
        if is_partial {
            seeing.metrics.recent().keep_partial(&story);
        }
        if is_slow {
            story::warn(&story);
            seeing.metrics.recent().keep_slow(&story);
        }
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::super::door::Door;
    use super::*;

    /// What is kept of requests, after each of `answers` was sent to one.
    fn recent(slow_query: Duration, answers: Vec<Response<Body>>) -> Arc<Metrics> {
        let metrics = Metrics::new();
        let config = Config {
            slow_query,
            ..Config::default()
        };
        let seeing = Seeing::new(&config, &metrics, None);
        let peer = Door::of(&config).peer(([127, 0, 0, 1], 1).into());
        for answer in answers {
            let head = http::Request::get("/pdb/query/v4/nodes").body(()).unwrap();
            drop(seeing.watch(&peer, &head).answered(answer));
        }
        metrics
    }

    fn lacking(status: StatusCode) -> Response<Body> {
        let missing = [("pdb-b".to_owned(), "timeout".to_owned())];
        respond::qualified(respond::json(status, "[]"), &missing, &[])
    }

    #[test]
    fn a_success_that_lacks_a_backend_is_kept_and_a_failure_is_not() {
        let answers = vec![
            lacking(StatusCode::OK),
            lacking(StatusCode::BAD_GATEWAY),
            respond::json(StatusCode::OK, "[]"),
        ];
        let metrics = recent(Duration::ZERO, answers);
        let partial = metrics.recent().partial();
        let missing: Vec<_> = partial.iter().flat_map(|story| &story.missing).collect();
        assert_eq!(missing, ["pdb-b; reason=timeout"]);
        assert_eq!(metrics.recent().slow(), []);
    }

    #[test]
    fn every_request_from_the_configured_time_on_is_slow() {
        let answers = || vec![respond::json(StatusCode::OK, "[]")];
        let slow = |after| recent(after, answers()).recent().slow().len();
        assert_eq!(slow(Duration::from_nanos(1)), 1);
        assert_eq!(slow(Duration::from_mins(1)), 0);
        assert_eq!(slow(Duration::ZERO), 0);
    }
}
