//! How connections to backends are made: names, TCP and TLS.

mod connection;
mod exchange;
mod heard;
mod incoming;
mod kept;
mod patience;
mod resolve;
mod tls;

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use http::uri::Scheme;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use tokio::net::TcpStream;
use tower_service::Service;

use crate::config::{BaseUrl, Protocol};
use crate::names::Names;

pub(super) use incoming::Incoming;
pub(super) use kept::{Connections, Kept, has_ended};
pub(super) use patience::Limits;
pub(super) use resolve::Resolve;
pub(super) use tls::Tls;
pub use tls::TlsError;

/// Looks host names up as the machine does.
pub(super) fn names() -> Resolve {
    Resolve::new(Names::of_system())
}

/// Makes connections to one backend.
#[derive(Debug, Clone)]
pub(super) struct Connector {
    http: HttpConnector<Resolve>,
    tls: Arc<Tls>,
    /// What is to be spoken.
    protocol: Protocol,
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;
/// Bytes that are encrypted or not.
type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

impl Connector {
    pub(super) fn new(connect_timeout: Duration, names: &Resolve, tls: &Arc<Tls>) -> Self {
        let mut http = HttpConnector::new_with_resolver(names.clone());
        http.set_connect_timeout(Some(connect_timeout));
        http.set_nodelay(true);
        http.enforce_http(false);
        Self {
            http,
            protocol: tls.protocol(),
            tls: Arc::clone(tls),
        }
    }

    /// What is spoken on a connection: by TLS what was agreed on, without it what was wanted.
    fn agreed(&self, stream: &Stream) -> Protocol {
        match stream {
            MaybeHttpsStream::Http(_) => self.protocol,
            MaybeHttpsStream::Https(stream) => {
                Protocol::agreed(stream.inner().get_ref().1.alpn_protocol())
            }
        }
    }
}

impl Connector {
    /// Connects, without a word of TLS.
    pub(super) async fn reach(&self, origin: Uri) -> Result<(), BoxError> {
        let mut http = self.http.clone();
        poll_fn(|context| http.poll_ready(context)).await?;
        http.call(origin).await?;
        Ok(())
    }

    /// Connects as for a request. The certificates that were shown, the server's own first; none where
    /// there is no TLS.
    pub(super) async fn greet(
        &self,
        origin: Uri,
    ) -> Result<Vec<CertificateDer<'static>>, BoxError> {
        let mut connector = self.clone();
        poll_fn(|context| connector.poll_ready(context)).await?;
        let stream = connector.call(origin).await?;
        Ok(tls::shown_by(&stream).to_vec())
    }
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.http.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let mut http = self.http.clone();
        let tls = Arc::clone(&self.tls);
        Box::pin(async move {
            if uri.scheme() != Some(&Scheme::HTTPS) {
                return Ok(MaybeHttpsStream::Http(http.call(uri).await?));
            }
            let name = tls.name(uri.host().unwrap_or_default())?;
            let name = Arc::new(FixedServerNameResolver::new(name));
            // As the files are now: a certificate that was replaced is used from here on.
            let connected = HttpsConnector::new(http, tls.config()?, true, name)
                .call(uri)
                .await;
            tls.note(&connected);
            connected
        })
    }
}

/// What this machine trusts, read only if one of `urls` speaks TLS. A certificate there that cannot
/// be read is left out: the connection that would need it then says so.
pub(super) fn trusted<'u>(urls: impl IntoIterator<Item = &'u BaseUrl>) -> Arc<RootCertStore> {
    let mut roots = RootCertStore::empty();
    if urls.into_iter().any(BaseUrl::is_secure) {
        let found = rustls_native_certs::load_native_certs();
        for error in found.errors {
            tracing::warn!(%error, "a trusted certificate could not be read");
        }
        roots.add_parsable_certificates(found.certs);
    }
    Arc::new(roots)
}
