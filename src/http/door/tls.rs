//! TLS towards clients: what they are shown, and what they have to show.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use x509_parser::extensions::GeneralName;
use x509_parser::parse_x509_certificate;
use zeroize::Zeroizing;

use super::error::{DoorError, lines, read};
use crate::certificate::{Which, end_of_own, first_end};
use crate::config::{DoorConfig, Protocol};
use crate::upstream::made::Made;

/// How connections of clients are encrypted.
#[derive(Debug)]
pub(super) struct Tls {
    cert: PathBuf,
    key: PathBuf,
    client_ca: Option<PathBuf>,
    made: Made<Ready>,
}

/// What is made of the files.
#[derive(Debug, Clone)]
struct Ready {
    config: Arc<ServerConfig>,
    /// When the certificate ends that is shown.
    cert: Option<Timestamp>,
    /// When the first of `client_ca` ends.
    client_ca: Option<Timestamp>,
}

/// The names that a client's certificate may have.
#[derive(Debug)]
pub(super) struct Allowlist {
    path: PathBuf,
    made: Made<Arc<HashSet<String>>>,
}

impl Tls {
    /// As it is configured, if it is. Its files are read with the first connection, and again whenever
    /// they have changed.
    pub(super) fn of(config: &DoorConfig) -> Option<Self> {
        let (cert, key) = config.tls_cert.clone().zip(config.tls_key.clone())?;
        let client_ca = config.tls_client_ca.clone();
        let files = [&cert, &key].into_iter().chain(&client_ca).cloned();
        Some(Self {
            made: Made::of(files),
            cert,
            key,
            client_ca,
        })
    }

    /// The settings of the next connection.
    pub(super) fn config(&self) -> Result<Arc<ServerConfig>, DoorError> {
        self.ready().map(|ready| ready.config)
    }

    fn ready(&self) -> Result<Ready, DoorError> {
        self.made.get(|| self.make())
    }

    /// When each certificate ends, as the files are now, as far as they can be used.
    pub(super) fn ends(&self) -> impl Iterator<Item = (Which, Timestamp)> + use<> {
        let ends = self.ready().map(|ready| (ready.cert, ready.client_ca));
        let (cert, client_ca) = ends.unwrap_or_default();
        let ends = [(Which::TlsCert, cert), (Which::TlsClientCa, client_ca)];
        ends.into_iter()
            .filter_map(|(which, until)| Some((which, until?)))
    }

    /// Encrypts a connection, within `patience`. Why that cannot be is told in the log.
    pub(super) async fn accept(
        &self,
        stream: TcpStream,
        client: SocketAddr,
        patience: Duration,
    ) -> Option<TlsStream<TcpStream>> {
        let config = match self.config() {
            Ok(config) => config,
            Err(why) => {
                tracing::error!(%client, %why, "TLS cannot be spoken");
                return None;
            }
        };
        match timeout(patience, TlsAcceptor::from(config).accept(stream)).await {
            Ok(Ok(stream)) => Some(stream),
            Ok(Err(error)) => {
                tracing::info!(%client, %error, "a client's TLS handshake failed");
                None
            }
            Err(_) => {
                tracing::info!(%client, after = ?patience, "a client's TLS handshake did not end");
                None
            }
        }
    }

    fn make(&self) -> Result<Ready, DoorError> {
        let config = ServerConfig::builder();
        let (config, client_ca) = match &self.client_ca {
            None => (config.with_no_client_auth(), None),
            Some(path) => {
                let key = "tls_client_ca";
                let mut roots = RootCertStore::empty();
                let authorities = certificates(key, path)?;
                let end = first_end(&authorities);
                for certificate in authorities {
                    let added = roots.add(certificate);
                    added.map_err(|_| no_certificate(key, path))?;
                }
                let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build();
                let verifier = verifier.map_err(|_| no_certificate(key, path))?;
                (config.with_client_cert_verifier(verifier), end)
            }
        };
        let chain = certificates("tls_cert", &self.cert)?;
        let cert = end_of_own(&chain);
        let private = Zeroizing::new(read("tls_key", &self.key)?);
        let private = PrivateKeyDer::from_pem_slice(&private)
            .map_err(|_| DoorError::NoKey(self.key.clone()))?;
        let config = config.with_single_cert(chain, private);
        let mut config = config.map_err(|why| match why {
            rustls::Error::InconsistentKeys(_) => DoorError::Mismatch {
                cert: self.cert.clone(),
                key: self.key.clone(),
            },
            rustls::Error::InvalidCertificate(_) => no_certificate("tls_cert", &self.cert),
            _ => DoorError::NoKey(self.key.clone()),
        })?;
        config.alpn_protocols = vec![Protocol::Http2.id().to_vec(), Protocol::Http1.id().to_vec()];
        Ok(Ready {
            config: Arc::new(config),
            cert,
            client_ca,
        })
    }
}

fn certificates(key: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, DoorError> {
    let pem = read(key, path)?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let all = all.ok().filter(|all| !all.is_empty());
    all.ok_or_else(|| no_certificate(key, path))
}

fn no_certificate(key: &'static str, path: &Path) -> DoorError {
    let path = path.to_owned();
    DoorError::NoCertificate { key, path }
}

/// The names of the certificate that a client has shown, its common name first: none if it has shown
/// none. That it leads to one of `tls_client_ca` has been checked.
pub(super) fn names(stream: &TlsStream<TcpStream>) -> Vec<Arc<str>> {
    let shown = stream.get_ref().1.peer_certificates();
    let own = shown.and_then(|chain| chain.first());
    own.map(names_in).unwrap_or_default()
}

/// What was agreed on; HTTP/1.1 with clients that agree on nothing.
pub(super) fn protocol(stream: &TlsStream<TcpStream>) -> Protocol {
    Protocol::agreed(stream.get_ref().1.alpn_protocol())
}

fn names_in(certificate: &CertificateDer<'_>) -> Vec<Arc<str>> {
    let Ok((_, certificate)) = parse_x509_certificate(certificate) else {
        return Vec::new();
    };
    let common = certificate.subject().iter_common_name();
    let common = common.filter_map(|name| name.as_str().ok());
    let mut names: Vec<_> = common.map(Arc::from).collect();
    if let Ok(Some(others)) = certificate.subject_alternative_name() {
        names.extend(
            others
                .value
                .general_names
                .iter()
                .filter_map(|name| match name {
                    GeneralName::DNSName(name) => Some(Arc::from(*name)),
                    _ => None,
                }),
        );
    }
    names
}

impl Allowlist {
    /// As it is configured, if it is. It is read when it is wanted, and again whenever it has changed.
    pub(super) fn of(config: &DoorConfig) -> Option<Self> {
        let path = config.tls_allowlist.clone()?;
        let made = Made::of([path.clone()]);
        Some(Self { path, made })
    }

    /// The names in it.
    pub(super) fn names(&self) -> Result<Arc<HashSet<String>>, DoorError> {
        self.made.get(|| {
            let lines = lines("tls_allowlist", &self.path)?;
            // As in PuppetDB's own list, a comment may stand behind a name.
            let name = |line: &str| line.split('#').next().unwrap_or_default().trim().to_owned();
            Ok(Arc::new(lines.iter().map(|(_, line)| name(line)).collect()))
        })
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair};

    use super::*;

    #[test]
    fn a_certificate_has_its_common_name_and_its_dns_names() {
        let names = vec!["puppet".to_owned(), "10.0.0.1".to_owned()];
        let mut params = CertificateParams::new(names).unwrap();
        params
            .distinguished_name
            .push(DnType::OrganizationName, "Site");
        params
            .distinguished_name
            .push(DnType::CommonName, "puppet.example");
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let names = names_in(certificate.der());
        assert_eq!(
            names.iter().map(|it| &**it).collect::<Vec<_>>(),
            ["puppet.example", "puppet"]
        );
        assert_eq!(names_in(&CertificateDer::from(vec![1, 2])).len(), 0);
    }
}
