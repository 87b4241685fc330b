//! The heads of answers, and pdbmux's own answers. No other module writes a header.

pub(crate) mod door;

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    AGE, ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH,
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, GetAll, HeaderMap, HeaderName, HeaderValue,
    REFERRER_POLICY, RETRY_AFTER, VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::{Response, StatusCode};
use http_body::Body as _;
use pdbmux_core::Refusal;
use pdbmux_core::merge::fold::FoldError;
use pdbmux_core::plan::Doubt;

use super::body::Body;
use super::origin::Origin;
use super::parameters::Unread;
use super::partial::UnknownWish;
use super::replay::Addresses;
use crate::metrics::Tier;
use crate::request::X_REQUEST_ID;
use crate::upstream::{Lack, Received};

/// PuppetDB's own content type of a success, which some clients compare as a whole (R012).
pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json;charset=utf-8");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain;charset=utf-8");

const HTML: HeaderValue = HeaderValue::from_static("text/html;charset=utf-8");

const X_RECORDS: HeaderName = HeaderName::from_static("x-records");
const X_BACKENDS: HeaderName = HeaderName::from_static("x-backends");
const X_MISSING: HeaderName = HeaderName::from_static("x-pdbmux-missing");
const X_EXACT: HeaderName = HeaderName::from_static("x-pdbmux-exact");

/// How a doubt is told, before its word.
const DOUBT: &str = "no; reason=";

const X_CACHE: HeaderName = HeaderName::from_static("x-cache");
const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");

/// Backends that an answer is made without, each with one word why.
pub(crate) type Missing = [(String, String)];

/// Backends that an answer lacks something of, told beside it to who decides whether it is served.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lacking(pub(crate) Vec<(String, String)>);

/// Told beside a refusal of an answer that would have lacked something.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PartialRefused;

/// What the head of a merged answer says.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    /// The size of the merged set, if it is to be sent.
    pub(crate) total: Option<u64>,
    /// How many backends' answers went into it.
    pub(crate) contributed: usize,
    /// How many backends are configured.
    pub(crate) configured: usize,
    /// The others.
    pub(crate) missing: Vec<(String, String)>,
    /// What is to be doubted of it under `merge: exact`, one word each.
    pub(crate) doubts: Vec<&'static str>,
}

/// A merged answer.
pub(crate) fn merged(body: Body, standing: &Standing) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, JSON);
    if let Some(total) = standing.total {
        headers.insert(X_RECORDS, HeaderValue::from(total));
    }
    let backends = format!("{}/{}", standing.contributed, standing.configured);
    text_header(headers, X_BACKENDS, &backends);
    qualified(response, &standing.missing, &standing.doubts)
}

/// The same answer, saying whom it is made without and what is to be doubted of it.
pub(crate) fn qualified(
    mut response: Response<Body>,
    missing: &Missing,
    doubts: &[&str],
) -> Response<Body> {
    if !missing.is_empty() {
        response.extensions_mut().insert(Lacking(missing.to_vec()));
    }
    let headers = response.headers_mut();
    name_missing(headers, missing);
    for doubt in doubts {
        if let Ok(value) = HeaderValue::try_from(format!("{DOUBT}{doubt}")) {
            headers.append(X_EXACT, value);
        }
    }
    response
}

/// The same answer, of which it is known beside what its head says that it lacks these.
pub(crate) fn lacking(mut response: Response<Body>, more: Vec<(String, String)>) -> Response<Body> {
    if !more.is_empty() {
        let known = response.extensions_mut().get_or_insert_default::<Lacking>();
        known.0.extend(more);
        known.0.sort_unstable();
        known.0.dedup_by(|a, b| a.0 == b.0);
    }
    response
}

/// The same answer, saying by which id its request is known.
pub(crate) fn identified(mut response: Response<Body>, id: &HeaderValue) -> Response<Body> {
    let headers = response.headers_mut();
    headers.insert(X_REQUEST_ID, id.clone());
    response
}

/// Where an answer's head says that it comes from, if that is a matter of the cache.
pub(crate) fn tier(headers: &HeaderMap) -> Option<Tier> {
    match headers.get(X_CACHE)?.as_bytes() {
        b"hit" => Some(Tier::Hit),
        b"stale" => Some(Tier::Stale),
        _ => Some(Tier::Miss),
    }
}

/// How many backends an answer's head says contributed, of how many.
pub(crate) fn contributed(headers: &HeaderMap) -> Option<&HeaderValue> {
    headers.get(X_BACKENDS)
}

/// The backends that an answer's head names as missing, each with one word why.
pub(crate) fn missing(headers: &HeaderMap) -> GetAll<'_, HeaderValue> {
    headers.get_all(X_MISSING)
}

/// What an answer's head says is to be doubted, one word each.
pub(crate) fn doubts(headers: &HeaderMap) -> impl Iterator<Item = &'static str> {
    let lines = headers.get_all(X_EXACT).into_iter();
    let words = lines.filter_map(|line| line.to_str().ok()?.strip_prefix(DOUBT));
    words.filter_map(|word| {
        let reasons = Doubt::ALL.iter().map(|doubt| doubt.reason());
        reasons.into_iter().find(|reason| *reason == word)
    })
}

/// The same answer, saying where it comes from and how old it is in whole seconds (R221).
pub(crate) fn dated(mut response: Response<Body>, origin: Origin, age: Duration) -> Response<Body> {
    let headers = response.headers_mut();
    headers.insert(X_CACHE, HeaderValue::from_static(origin.x_cache()));
    text_header(headers, CACHE_STATUS, &origin.cache_status());
    headers.insert(AGE, HeaderValue::from(age.as_secs()));
    response
}

/// An answer after which its connection ends.
pub(crate) fn last(mut response: Response<Body>) -> Response<Body> {
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(CONNECTION, close);
    response
}

/// An answer without its body, as HEAD is answered. HTTP/1.1 leaves bodies out by itself, HTTP/2 does
/// not.
pub(crate) fn bare(response: Response<Body>) -> Response<Body> {
    let (mut head, body) = response.into_parts();
    if let Some(length) = body.size_hint().exact() {
        let length = HeaderValue::from(length);
        head.headers.entry(CONTENT_LENGTH).or_insert(length);
    }
    Response::from_parts(head, Body::parts(VecDeque::new()))
}

/// Whether an answer is one that clients may be sent compressed: a success, and text.
pub(crate) fn compresses(response: &Response<Body>) -> bool {
    let content_type = response.headers().get(CONTENT_TYPE);
    let is_text = content_type.is_some_and(|it| {
        let it = it.as_bytes();
        it.starts_with(b"application/json") || it.starts_with(b"text/")
    });
    is_text && response.status().is_success()
}

/// The same answer, saying that others may be sent it otherwise encoded.
pub(crate) fn varying(mut response: Response<Body>) -> Response<Body> {
    let by = HeaderValue::from_static("Accept-Encoding");
    response.headers_mut().insert(VARY, by);
    response
}

/// The same answer, its body being compressed.
pub(crate) fn encoded(mut response: Response<Body>) -> Response<Body> {
    let headers = response.headers_mut();
    headers.remove(CONTENT_LENGTH);
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    response
}

/// Whether an answer's body is compressed.
pub(crate) fn is_encoded(response: &Response<Body>) -> bool {
    response.headers().contains_key(CONTENT_ENCODING)
}

/// No record, known without asking anyone.
pub(crate) fn nothing(total: Option<u64>) -> Response<Body> {
    let mut response = json(StatusCode::OK, "[]");
    if let Some(total) = total {
        response
            .headers_mut()
            .insert(X_RECORDS, HeaderValue::from(total));
    }
    response
}

/// The backends that an answer is made without, one header line each.
fn name_missing(headers: &mut HeaderMap, missing: &Missing) {
    for (name, reason) in missing {
        if let Ok(value) = HeaderValue::try_from(format!("{name}; reason={reason}")) {
            headers.append(X_MISSING, value);
        }
    }
}

fn text_header(headers: &mut HeaderMap, name: HeaderName, text: &str) {
    if let Ok(value) = HeaderValue::from_str(text) {
        headers.insert(name, value);
    }
}

/// A JSON answer of pdbmux's own.
pub(crate) fn json(status: StatusCode, body: impl Into<Bytes>) -> Response<Body> {
    own(status, JSON, body)
}

/// A sentence of pdbmux's own.
pub(crate) fn text(status: StatusCode, sentence: impl Into<Bytes>) -> Response<Body> {
    own(status, TEXT, sentence)
}

/// A page that is for nobody to keep, with the policy that it is shown under.
pub(crate) fn page(html: String, policy: &str) -> Response<Body> {
    let mut response = own(StatusCode::OK, HTML, html);
    let headers = response.headers_mut();
    text_header(headers, CONTENT_SECURITY_POLICY, policy);
    for (name, value) in [
        (CACHE_CONTROL, "no-store"),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

fn own(status: StatusCode, content_type: HeaderValue, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::whole(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// The client's mistake.
pub(crate) fn refused(refusal: &Refusal) -> Response<Body> {
    text(StatusCode::BAD_REQUEST, refusal.to_string())
}

/// Parameters that could not be read.
pub(crate) fn unread(unread: &Unread) -> Response<Body> {
    let sentence = unread.to_string();
    match unread {
        Unread::Method(allow) => method_not_allowed(allow),
        Unread::Refused(refusal) => refused(refusal),
        // PuppetDB's own kind of answer.
        Unread::MediaType(_) | Unread::Encoding(_) => json(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            serde_json::json!({ "kind": "unsupported-type", "msg": sentence }).to_string(),
        ),
        Unread::TooLong(_) => text(StatusCode::PAYLOAD_TOO_LARGE, sentence),
        Unread::Slow(_) => text(StatusCode::REQUEST_TIMEOUT, sentence),
        Unread::Cut(_) => text(StatusCode::BAD_REQUEST, sentence),
    }
}

/// A method that is not served.
pub(crate) fn method_not_allowed(allow: &'static str) -> Response<Body> {
    let mut response = text(
        StatusCode::METHOD_NOT_ALLOWED,
        format!("pdbmux answers this path by {allow} only"),
    );
    response
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static(allow));
    response
}

/// A path that is not served.
pub(crate) fn not_found() -> Response<Body> {
    text(StatusCode::NOT_FOUND, "pdbmux does not serve this path")
}

/// A write. 501 makes the Puppet termini go on to their next server instead of believing that the
/// command was taken (ruling 2).
pub(crate) fn write_refused() -> Response<Body> {
    text(
        StatusCode::NOT_IMPLEMENTED,
        "pdbmux only reads: send commands and administrative requests to a PuppetDB itself",
    )
}

/// No backend gave a usable answer and they do not agree on a refusal.
pub(crate) fn bad_gateway(missing: &Missing) -> Response<Body> {
    let reasons: Vec<_> = missing
        .iter()
        .map(|(name, reason)| format!("{name}: {reason}"))
        .collect();
    let error = format!("no backend gave a usable answer ({})", reasons.join(", "));
    let mut response = json(
        StatusCode::BAD_GATEWAY,
        serde_json::json!({ "error": error }).to_string(),
    );
    name_missing(response.headers_mut(), missing);
    response
}

/// In the place of an answer that would lack these and may not; on a cached route it says what that
/// did.
pub(crate) fn partial_refused(
    missing: &Missing,
    retry_after: Duration,
    answer: &HeaderMap,
) -> Response<Body> {
    let told: Vec<_> = missing
        .iter()
        .map(|(name, reason)| serde_json::json!({ "backend": name, "reason": reason }))
        .collect();
    let names: Vec<_> = missing.iter().map(|(name, _)| name.as_str()).collect();
    let error = format!(
        "a partial answer is refused: it would lack {}",
        names.join(", ")
    );
    let mut response = json(
        StatusCode::SERVICE_UNAVAILABLE,
        serde_json::json!({ "error": error, "missing": told }).to_string(),
    );
    response.extensions_mut().insert(PartialRefused);
    let headers = response.headers_mut();
    headers.insert(RETRY_AFTER, HeaderValue::from(retry_after.as_secs().max(1)));
    name_missing(headers, missing);
    for name in [X_CACHE, CACHE_STATUS, AGE] {
        if let Some(value) = answer.get(&name) {
            headers.insert(name, value.clone());
        }
    }
    response
}

/// A header of the client's that means nothing.
pub(crate) fn unknown_wish(error: &UnknownWish) -> Response<Body> {
    text(StatusCode::BAD_REQUEST, error.to_string())
}

/// Sound answers that cannot become one.
pub(crate) fn unfoldable(error: &FoldError) -> Response<Body> {
    json(
        StatusCode::BAD_GATEWAY,
        serde_json::json!({ "error": error.to_string() }).to_string(),
    )
}

/// No answer, for lack of something that was waited for.
pub(crate) fn lacking_here(lack: Lack) -> Response<Body> {
    let (what, waited) = match lack {
        Lack::Memory(waited) => ("memory for the backends' answers", waited),
        Lack::Descriptors(waited) => ("file descriptor for a connection to a backend", waited),
    };
    let error = format!("there was no {what} for {waited:?}");
    let mut response = json(
        StatusCode::SERVICE_UNAVAILABLE,
        serde_json::json!({ "error": error }).to_string(),
    );
    let seconds = HeaderValue::from(waited.as_secs().max(1));
    response.headers_mut().insert(RETRY_AFTER, seconds);
    response
}

/// A fault of pdbmux's own.
pub(crate) fn internal_error() -> Response<Body> {
    text(
        StatusCode::INTERNAL_SERVER_ERROR,
        "pdbmux met an internal error; its log tells more",
    )
}

/// A backend's refusal, as it came but for addresses.
pub(crate) fn replayed(received: &Received, addresses: &Addresses) -> Response<Body> {
    let text = String::from_utf8_lossy(&received.body);
    let mut response = Response::new(Body::whole(addresses.strip(&text).into_owned()));
    *response.status_mut() =
        StatusCode::from_u16(received.status).unwrap_or(StatusCode::BAD_GATEWAY);
    // PuppetDB sends some refusals without a type (trap T57).
    let content_type = received.content_type.clone().unwrap_or(TEXT);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// A backend's success that is passed on as it arrives: its type, total and length, nothing else of
/// its head.
pub(crate) fn passed(head: &HeaderMap, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    for name in [CONTENT_TYPE, CONTENT_LENGTH, X_RECORDS] {
        if let Some(value) = head.get(&name) {
            response.headers_mut().insert(name, value.clone());
        }
    }
    response
}
