//! How connections to backends are made: names, TCP and TLS.

mod connection;
mod kept;
mod resolve;

use std::time::Duration;

use http::uri::Scheme;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;

use crate::config::BaseUrl;
use crate::names::Names;
use resolve::Resolve;

pub(super) use connection::Incoming;
pub(super) use kept::Connections;

/// Makes connections, to whichever backend.
pub(super) type Connector = HttpsConnector<HttpConnector<Resolve>>;

/// Builds the connector. The machine's trusted certificates are read only if a backend speaks TLS.
pub(super) fn connector<'u>(
    connect_timeout: Duration,
    urls: impl IntoIterator<Item = &'u BaseUrl>,
) -> Connector {
    let mut http = HttpConnector::new_with_resolver(Resolve::new(Names::of_system()));
    http.set_connect_timeout(Some(connect_timeout));
    http.set_nodelay(true);
    http.enforce_http(false);
    let tls = urls.into_iter().any(|url| *url.scheme() == Scheme::HTTPS);
    HttpsConnectorBuilder::new()
        .with_tls_config(tls_config(tls))
        .https_or_http()
        .enable_http1()
        .wrap_connector(http)
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
