//! Answers to requests that are not let in.

use std::time::Duration;

use http::header::{HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};

use super::super::body::Body;
use super::super::door::{Crowd, Refused};
use super::{json, text};

/// The request is not let in.
pub(crate) fn refused(why: &Refused) -> Response<Body> {
    match why {
        Refused::Crowd(crowd) => {
            let status = match crowd {
                Crowd::Late { .. } | Crowd::Long { .. } => StatusCode::SERVICE_UNAVAILABLE,
                Crowd::Greedy(_) => StatusCode::TOO_MANY_REQUESTS,
            };
            crowded(status, why, crowd.retry_after())
        }
        Refused::Unlisted(_) => text(StatusCode::FORBIDDEN, why.to_string()),
        Refused::Broken(_) => text(StatusCode::INTERNAL_SERVER_ERROR, why.to_string()),
    }
}

fn crowded(status: StatusCode, why: &Refused, again: Duration) -> Response<Body> {
    let body = serde_json::json!({ "error": why.to_string() });
    let mut response = json(status, body.to_string());
    let seconds = HeaderValue::from(again.as_secs());
    response.headers_mut().insert(RETRY_AFTER, seconds);
    response
}
