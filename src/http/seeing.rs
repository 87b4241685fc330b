//! Seeing what becomes of requests: they are counted, and known by their ids.

use std::sync::Arc;

use http::{HeaderMap, Response};

use super::body::Body;
use super::respond;
use crate::config::{Config, RequestIds};
use crate::metrics::{self, Answered, Held, Metrics, Place, Status, Tier};
use crate::request::{Ids, Request};

/// Who looks at requests.
#[derive(Debug)]
pub(crate) struct Seeing {
    pub(super) metrics: Arc<Metrics>,
    /// `None` if requests have no ids.
    ids: Option<Ids>,
}

/// A look at one request, which ends with the last byte of its answer.
#[derive(Debug)]
pub(crate) struct Watch {
    seeing: Arc<Seeing>,
    request: Arc<Request>,
    /// Of the answer, once there is one.
    status: Option<http::StatusCode>,
    _under_way: Held,
}

impl Seeing {
    /// As it is configured.
    pub(crate) fn new(config: &Config, metrics: &Arc<Metrics>) -> Arc<Self> {
        Arc::new(Self {
            metrics: Arc::clone(metrics),
            ids: (config.request_ids == RequestIds::On).then(Ids::default),
        })
    }

    /// Begins to look at a request.
    pub(crate) fn watch<B>(self: &Arc<Self>, head: &http::Request<B>) -> Watch {
        Watch {
            seeing: Arc::clone(self),
            request: Request::new(head, self.ids.as_ref()),
            status: None,
            _under_way: self.metrics.request(),
        }
    }

    /// Takes in where this task's request is answered.
    pub(super) fn found(&self, place: Place) {
        crate::request::found(self.metrics.route(place));
    }
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
        self.status = Some(response.status());
        if response.status().is_success() {
            self.count(response.headers());
        }
        response.map(|body| body.watched(self.into()))
    }

    /// Takes a step of the work on the body.
    pub(super) fn step<T>(&self, work: impl FnOnce() -> T) -> T {
        self.request.step(work)
    }

    fn route(&self) -> &Arc<metrics::Route> {
        let unknown = || self.seeing.metrics.route(Place::Unknown);
        self.request.route().unwrap_or_else(unknown)
    }

    /// Counts what the head of a success says.
    fn count(&self, headers: &HeaderMap) {
        let route = self.route();
        route.completed(match respond::missing(headers).iter().next() {
            Some(_) => Answered::Partial,
            None => Answered::Whole,
        });
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
        let status = self.status.map_or(Status::Left, Status::from);
        let method = (&self.request.method).into();
        let after = self.request.began.elapsed();
        self.route().answered(method, status, after);
    }
}
