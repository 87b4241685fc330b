//! Answers to requests that are not let in.

use std::time::Duration;

use http::header::{HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{Response, StatusCode};

use super::super::body::Body;
use super::super::door::{Crowd, Refused, Wanted};
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
        Refused::Bare(wanted) | Refused::Unknown(wanted) => challenge(*wanted, why),
        Refused::Broken(_) => text(StatusCode::INTERNAL_SERVER_ERROR, why.to_string()),
    }
}

/// Tells by what schemes a client can show who it is (RFC 9110, 11.6.1).
fn challenge(wanted: Wanted, why: &Refused) -> Response<Body> {
    const TOKEN: HeaderValue = HeaderValue::from_static(r#"Bearer realm="pdbmux""#);
    const USER: HeaderValue = HeaderValue::from_static(r#"Basic realm="pdbmux", charset="UTF-8""#);
    let schemes: &[_] = match wanted {
        Wanted::Token => &[TOKEN],
        Wanted::User => &[USER],
        Wanted::Either => &[TOKEN, USER],
    };
    let mut response = text(StatusCode::UNAUTHORIZED, why.to_string());
    for scheme in schemes {
        let headers = response.headers_mut();
        headers.append(WWW_AUTHENTICATE, scheme.clone());
    }
    response
}

fn crowded(status: StatusCode, why: &Refused, again: Duration) -> Response<Body> {
    let body = serde_json::json!({ "error": why.to_string() });
    let mut response = json(status, body.to_string());
    let seconds = HeaderValue::from(again.as_secs());
    response.headers_mut().insert(RETRY_AFTER, seconds);
    response
}
