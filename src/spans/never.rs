//! What there is of spans in a build that sends none: nothing that could be had.

use std::future::Ready;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use pdbmux_core::plan::Sent;

use crate::config::BaseUrl;
use crate::metrics::{Outcome, Route, Story};
use crate::request::TraceContext;

/// Where spans go.
#[derive(Debug, Clone)]
pub(crate) enum Sink {}

impl Sink {
    /// The trace of a request, and its span.
    pub(crate) fn record(
        &self,
        _: Option<TraceContext>,
        _: &HeaderMap,
    ) -> (Option<TraceContext>, Option<Recording>) {
        match *self {}
    }

    /// Waits until all spans are sent.
    pub(crate) fn flush(&self) -> Ready<()> {
        match *self {}
    }
}

/// The span of a request.
#[derive(Debug)]
pub(crate) enum Recording {}

impl Recording {
    /// Takes in a merge.
    pub(crate) fn merged(&self, _: Duration) {
        match *self {}
    }

    /// Ends it.
    pub(crate) fn served(&self, _: &Arc<Story>, _: &Route, _: Duration) {
        match *self {}
    }

    /// Begins the span of a question.
    pub(crate) fn asks(&self, _: &str, _: Option<&str>, _: &BaseUrl, _: &Sent) -> Asked {
        match *self {}
    }
}

/// The span of a question.
#[derive(Debug)]
pub(crate) enum Asked {}

impl Asked {
    /// Its id.
    pub(crate) fn id(&self) -> u64 {
        match *self {}
    }

    /// The head of the answer has come.
    pub(crate) fn head(&mut self, _: u16, _: Duration) {
        match *self {}
    }

    /// More of the answer has come.
    pub(crate) fn received(&mut self, _: usize) {
        match *self {}
    }

    /// What has come of it.
    pub(crate) fn ends(&mut self, _: Outcome) {
        match *self {}
    }
}
