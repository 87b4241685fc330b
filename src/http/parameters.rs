//! Where the parameters of a request are: in its URL, or in its body.

use std::time::Duration;

use http::header::{CONTENT_ENCODING, CONTENT_TYPE, EXPECT, HeaderMap, HeaderName};
use http::request::Parts;
use http::{Method, Request};
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use pdbmux_core::Refusal;
use pdbmux_core::params::body;
use pdbmux_core::route::{Bodies, Row};

use crate::config::Config;
use crate::config::duration;

/// What the body of a request may cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Its longest length, in bytes.
    longest: usize,
    /// The longest time in which it comes.
    patience: Duration,
}

/// Why the parameters of a request cannot be read. Its text is the answer's.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unread {
    /// The route is not read by this method, but by these.
    #[error("the method is none of {0}")]
    Method(&'static str),
    /// They are there, and wrong.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A body of another kind.
    #[error("the body of a POST must be application/json, not '{0}'")]
    MediaType(String),
    /// A compressed body.
    #[error("the body comes in the encoding '{0}', but pdbmux reads plain ones only")]
    Encoding(String),
    /// A body longer than the configuration allows.
    #[error("the body is longer than the {0} bytes that max_request_bytes allows")]
    TooLong(usize),
    /// A body that takes its time.
    #[error("the body did not come whole within header_timeout, {}", duration::format(.0))]
    Slow(Duration),
    /// A body that breaks off, or whose framing is wrong.
    #[error("the body could not be read: {0}")]
    Cut(hyper::Error),
}

impl Bounds {
    pub(crate) fn of(config: &Config) -> Self {
        Self {
            longest: config.max_request_bytes,
            patience: config.header_timeout,
        }
    }

    /// The parameters of a request for a route, as the query string that a GET of them has.
    pub(super) async fn parameters(
        self,
        request: Request<Incoming>,
        row: &Row,
    ) -> Result<String, Unread> {
        let (head, mut body) = request.into_parts();
        let read = self.read_parameters(&head, &mut body, row).await;
        if !matches!(read, Err(Unread::Slow(_))) {
            self.discard(&head.headers, body).await;
        }
        read
    }

    /// Reads what is left of a body and forgets it: a client that is not listened to hears no
    /// answer either, since its connection is reset. Whoever asks before sending is told before.
    pub(super) async fn discard(self, headers: &HeaderMap, mut body: Incoming) {
        if headers.contains_key(EXPECT) {
            return;
        }
        let rest = async { while let Some(Ok(_)) = body.frame().await {} };
        let _late = tokio::time::timeout(self.patience, rest).await;
    }

    async fn read_parameters(
        self,
        head: &Parts,
        body: &mut Incoming,
        row: &Row,
    ) -> Result<String, Unread> {
        let url = head.uri.query().unwrap_or_default();
        let takes_bodies = match row.bodies {
            Bodies::Read | Bodies::ReadHere => true,
            Bodies::Unread => false,
        };
        match head.method {
            Method::GET if takes_bodies && !body.is_end_stream() && is_form(&head.headers) => {
                let form = self.read(head, body).await?;
                Ok(body::from_form(url, &form)?)
            }
            Method::GET => Ok(url.to_owned()),
            Method::POST if takes_bodies => {
                if let Some(other) = media_type(&head.headers).filter(|it| it != "application/json")
                {
                    return Err(Unread::MediaType(other));
                }
                if !url.is_empty() {
                    return Err(Refusal::PostWithUrlParameters.into());
                }
                let object = self.read(head, body).await?;
                Ok(body::from_json(&object)?)
            }
            _ if takes_bodies => Err(Unread::Method("GET, POST")),
            _ => Err(Unread::Method("GET")),
        }
    }

    async fn read(self, head: &Parts, body: &mut Incoming) -> Result<Vec<u8>, Unread> {
        if let Some(encoding) = value(&head.headers, &CONTENT_ENCODING)
            && encoding != "identity"
        {
            return Err(Unread::Encoding(encoding));
        }
        // Whoever asks before sending is told before.
        let awaits = head.headers.contains_key(EXPECT);
        if awaits && body.size_hint().lower() > self.longest as u64 {
            return Err(Unread::TooLong(self.longest));
        }
        tokio::time::timeout(self.patience, self.collect(body))
            .await
            .unwrap_or(Err(Unread::Slow(self.patience)))
    }

    /// Reads a body to its end even if it is too long, though it is not kept then.
    async fn collect(self, body: &mut Incoming) -> Result<Vec<u8>, Unread> {
        let mut whole = Vec::new();
        let mut length = 0;
        while let Some(frame) = body.frame().await {
            let Ok(bytes) = frame.map_err(Unread::Cut)?.into_data() else {
                continue;
            };
            length += bytes.len();
            if length <= self.longest {
                whole.extend_from_slice(&bytes);
            }
        }
        if length > self.longest {
            return Err(Unread::TooLong(self.longest));
        }
        Ok(whole)
    }
}

fn is_form(headers: &HeaderMap) -> bool {
    media_type(headers).is_some_and(|it| it == "application/x-www-form-urlencoded")
}

/// The media type of the body in lower case, without its parameters; `None` if it is not told.
fn media_type(headers: &HeaderMap) -> Option<String> {
    let whole = value(headers, &CONTENT_TYPE)?;
    let essence = whole.split(';').next().unwrap_or_default();
    Some(essence.trim().to_owned())
}

/// The value of a header in lower case.
fn value(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let value = headers.get(name)?;
    Some(String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase())
}
