//! The HTTP client: connections, TLS and nothing else.

mod resolve;

use std::time::Duration;

use bytes::Bytes;
use http::uri::Scheme;
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as Legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::config::BaseUrl;
use crate::names::Names;
use resolve::Resolve;

/// A pooled client. It sends path and query byte for byte and follows no redirect.
pub(super) type Client = Legacy<HttpsConnector<HttpConnector<Resolve>>, Full<Bytes>>;

/// An idle connection is given up before PuppetDB's own limit of 30 seconds would close it under a
/// request.
const POOL_IDLE: Duration = Duration::from_secs(20);

/// Builds the client. The machine's trusted certificates are read only if a backend speaks TLS.
pub(super) fn new<'u>(
    connect_timeout: Duration,
    urls: impl IntoIterator<Item = &'u BaseUrl>,
) -> Client {
    let mut http = HttpConnector::new_with_resolver(Resolve::new(Names::of_system()));
    http.set_connect_timeout(Some(connect_timeout));
    http.set_nodelay(true);
    http.enforce_http(false);
    let tls = urls.into_iter().any(|url| *url.scheme() == Scheme::HTTPS);
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls_config(tls))
        .https_or_http()
        .enable_http1()
        .wrap_connector(http);
    Legacy::builder(TokioExecutor::new())
        .pool_idle_timeout(POOL_IDLE)
        .pool_timer(TokioTimer::new())
        .build(connector)
}

/// TLS that trusts what the machine trusts. A certificate there that cannot be read is left out:
/// the connection that would need it then says so.
fn tls_config(tls: bool) -> rustls::ClientConfig {
    let mut roots = rustls::RootCertStore::empty();
    if tls {
        let found = rustls_native_certs::load_native_certs();
        for error in found.errors {
            tracing::warn!(%error, "a trusted certificate could not be read");
        }
        roots.add_parsable_certificates(found.certs);
    }
    rustls::ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth()
}
