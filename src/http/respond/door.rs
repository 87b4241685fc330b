//! Answers to requests that are not let in.

use http::header::{HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};

use super::super::body::Body;
use super::super::door::Crowd;
use super::json;

/// There is no place for the request.
pub(crate) fn crowded(crowd: &Crowd) -> Response<Body> {
    let status = match crowd {
        Crowd::Late { .. } | Crowd::Long { .. } => StatusCode::SERVICE_UNAVAILABLE,
        Crowd::Greedy(_) => StatusCode::TOO_MANY_REQUESTS,
    };
    let body = serde_json::json!({ "error": crowd.to_string() });
    let mut response = json(status, body.to_string());
    let seconds = HeaderValue::from(crowd.retry_after().as_secs());
    response.headers_mut().insert(RETRY_AFTER, seconds);
    response
}
