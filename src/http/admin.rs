//! What is answered to those who run pdbmux, at `admin_listen`: how it is, and nothing of the API.

pub mod page;

use http::{Request, Response};
use hyper::body::Incoming;

use super::App;
use super::body::Body;
use super::healthz::Endpoint;
use super::respond;

/// Answers a request of an operator.
pub(crate) async fn answer(app: &App, request: Request<Incoming>) -> Response<Body> {
    match Endpoint::at(request.uri().path()) {
        Some(endpoint) => endpoint.answer(request.method(), app.watched()).await,
        None => respond::not_found(),
    }
}
