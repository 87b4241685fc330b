//! Somebody who is no backend, and is reached as one is.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use tokio::time::timeout;

use super::Failure;
use super::ask::AGENT;
use super::client::{self, Connections, Connector, Limits, Tls};
use super::credentials::Credentials;
use super::sockets::Sockets;
use crate::config::{Access, BaseUrl};

/// Longest answer that is read, in bytes.
const LONGEST: usize = 64 << 10;

/// Somebody who is no backend, and is reached as one is: by the same lookup of names, trust and
/// secrets.
#[derive(Debug)]
pub(crate) struct Apart {
    url: BaseUrl,
    connections: Connections,
    credentials: Credentials,
    tls: Arc<Tls>,
    wait: Duration,
}

impl Apart {
    /// Connects to nobody yet. All that is asked has to be answered within `wait`.
    pub(crate) fn new(url: &BaseUrl, access: &Access, wait: Duration) -> Self {
        let tls = Arc::new(Tls::of(access, client::trusted([url])));
        let connector = Connector::new(wait, &client::names(), &tls);
        Self {
            url: url.clone(),
            // One question at a time.
            connections: Connections::new(connector, &Sockets::of(1, None), None),
            credentials: Credentials::of(access),
            tls,
            wait,
        }
    }

    /// Posts a body to a path behind the base URL; status and body of the answer.
    pub(crate) async fn post(
        &self,
        path: &str,
        content_type: HeaderValue,
        body: Bytes,
    ) -> Result<(StatusCode, Bytes), Failure> {
        let answered = timeout(self.wait, self.post_without_end(path, content_type, body)).await;
        answered.unwrap_or(Err(Failure::Timeout(self.wait)))
    }

    async fn post_without_end(
        &self,
        path: &str,
        content_type: HeaderValue,
        body: Bytes,
    ) -> Result<(StatusCode, Bytes), Failure> {
        let target = self.url.target(path).map_err(Failure::Unsendable)?;
        let request = Request::post(target)
            .header(HOST, self.url.host_and_port())
            .header(USER_AGENT, AGENT)
            .header(CONTENT_TYPE, content_type)
            .body(Full::from(body));
        let mut request = request.map_err(Failure::Unsendable)?;
        let told = self.credentials.add_to(request.headers_mut());
        told.map_err(Failure::Credentials)?;
        // It is told beside requests, and takes no descriptor from them.
        let limits = Limits::of_probe(self.wait);
        let answered = self.connections.send(&self.url, request, limits).await;
        let answered = answered.map_err(|failure| failure.explained(&self.tls, &self.url))?;
        let (head, body) = answered.into_parts();
        match Limited::new(body, LONGEST).collect().await {
            Ok(body) => Ok((head.status, body.to_bytes())),
            Err(error) => match error.downcast() {
                Ok(failure) => Err(*failure),
                Err(_) => Err(Failure::TooLong(LONGEST)),
            },
        }
    }
}
