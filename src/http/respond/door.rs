//! Answers to requests that are not let in, and what browsers are told.

use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, VARY, WWW_AUTHENTICATE,
};
use http::{Response, StatusCode};

use super::super::body::Body;
use super::super::door::{Crowd, Refused, Sharing, Wanted};
use super::{json, not_found, text};

/// What pages may read of heads beside what begins with x-.
const EXPOSED: [&str; 3] = ["age", "cache-status", "retry-after"];

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
        Refused::Outside => not_found(),
        Refused::Unlisted(_) => text(StatusCode::FORBIDDEN, why.to_string()),
        Refused::Bare(wanted) | Refused::Unknown(wanted) => challenge(*wanted, why),
        Refused::Broken(_) => text(StatusCode::INTERNAL_SERVER_ERROR, why.to_string()),
    }
}

/// What a browser may ask; the answer is [`shared`] like any other.
pub(crate) fn preflight(sharing: &Sharing, asked: &HeaderMap) -> Response<Body> {
    const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST");
    const BY: HeaderValue = HeaderValue::from_static("Access-Control-Request-Headers");
    let mut response = Response::new(Body::whole(Bytes::new()));
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    if let Sharing::WithAll | Sharing::With(_) = sharing {
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from(600));
        // What a page sends does no harm: what pdbmux does not know it does not read.
        if let Some(wanted) = asked.get(ACCESS_CONTROL_REQUEST_HEADERS) {
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
            headers.append(VARY, BY);
        }
    }
    response
}

/// The same answer, telling a browser which page may read it, with all that its head says.
pub(crate) fn shared(mut response: Response<Body>, sharing: &Sharing) -> Response<Body> {
    const ANY: HeaderValue = HeaderValue::from_static("*");
    const BY: HeaderValue = HeaderValue::from_static("Origin");
    let headers = response.headers_mut();
    let origin = match sharing {
        Sharing::Untold => return response,
        Sharing::WithAll => Some(ANY),
        Sharing::With(origin) => Some(origin.clone()),
        Sharing::WithOthers => None,
    };
    if *sharing != Sharing::WithAll {
        headers.append(VARY, BY);
    }
    let Some(origin) = origin else {
        return response;
    };
    let own = headers.keys().map(HeaderName::as_str);
    let own = own.filter(|name| name.starts_with("x-") || EXPOSED.contains(name));
    let own = own.collect::<Vec<_>>().join(", ");
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    if let Ok(own) = HeaderValue::try_from(own)
        && !own.is_empty()
    {
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, own);
    }
    response
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
