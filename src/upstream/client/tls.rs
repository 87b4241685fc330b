//! TLS towards one backend: whom it is trusted by, and what it is shown.

mod trouble;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use hyper_rustls::MaybeHttpsStream;
use jiff::Timestamp;
use rustls::client::WantsClientCert;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ConfigBuilder, RootCertStore};
use zeroize::Zeroizing;

use super::{BoxError, Stream};
use crate::certificate::{Which, end_of_own, first_end};
use crate::config::{Access, Protocol, plain};
use crate::upstream::made::Made;

pub use trouble::TlsError;
use trouble::{Purpose, Trust};

/// How connections to one backend are encrypted.
#[derive(Debug)]
pub(in crate::upstream) struct Tls {
    ca: Option<PathBuf>,
    /// The certificate that is shown, and its key.
    shown: Option<(PathBuf, PathBuf)>,
    server_name: Option<String>,
    protocol: Protocol,
    /// What this machine trusts.
    trusted: Arc<RootCertStore>,
    made: Made<Ready>,
    /// When the certificate ends that the backend has shown last.
    server: Mutex<Option<Timestamp>>,
}

/// What is made of the files.
#[derive(Debug, Clone)]
struct Ready {
    config: Arc<ClientConfig>,
    /// When the certificate ends that is shown.
    cert: Option<Timestamp>,
    /// When the first of `ca` ends.
    ca: Option<Timestamp>,
}

impl Tls {
    /// As it is configured. Its files are read with the first connection, and again whenever they
    /// have changed.
    pub(in crate::upstream) fn of(access: &Access, trusted: Arc<RootCertStore>) -> Self {
        let Access { ca, cert, key, .. } = access;
        let shown = cert.clone().zip(key.clone());
        let files = [ca, cert, key].into_iter().flatten().cloned();
        Self {
            made: Made::of(files),
            ca: ca.clone(),
            shown,
            server_name: access.server_name.clone(),
            protocol: access.http2.unwrap_or(Protocol::Http1),
            trusted,
            server: Mutex::default(),
        }
    }

    /// The settings of the next connection.
    pub(in crate::upstream) fn config(&self) -> Result<Arc<ClientConfig>, TlsError> {
        self.ready().map(|ready| ready.config)
    }

    fn ready(&self) -> Result<Ready, TlsError> {
        self.made.get(|| self.make())
    }

    /// When each certificate ends: those of the files as they are now, as far as they can be used, and
    /// the one that was shown last.
    pub(in crate::upstream) fn ends(&self) -> impl Iterator<Item = (Which, Timestamp)> + use<> {
        let of_files = self.ready().map(|ready| (ready.cert, ready.ca));
        let (cert, ca) = of_files.unwrap_or_default();
        let server = *self.server.lock().unwrap_or_else(PoisonError::into_inner);
        let ends = [
            (Which::Cert, cert),
            (Which::Ca, ca),
            (Which::Server, server),
        ];
        ends.into_iter()
            .filter_map(|(which, until)| Some((which, until?)))
    }

    /// Takes in what the backend has shown, also if it was not taken since it has ended.
    pub(super) fn note(&self, connected: &Result<Stream, BoxError>) {
        let until = match connected {
            Ok(stream) => end_of_own(shown_by(stream)),
            Err(error) => match self.explain(&**error) {
                Some(TlsError::Expired(since)) => since.at(),
                _ => None,
            },
        };
        if until.is_some() {
            *self.server.lock().unwrap_or_else(PoisonError::into_inner) = until;
        }
    }

    /// The name that the backend's certificate must have; `host` is that of its URL.
    pub(super) fn name(&self, host: &str) -> Result<ServerName<'static>, TlsError> {
        let v6 = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        let name = self.server_name.as_deref().unwrap_or(v6.unwrap_or(host));
        ServerName::try_from(name.to_owned()).map_err(|_| TlsError::NoName(name.to_owned()))
    }

    /// What is to be spoken, if the other side can.
    pub(in crate::upstream) fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Whether no certificate is shown.
    pub(in crate::upstream) fn shows_nothing(&self) -> bool {
        self.shown.is_none()
    }

    /// The certificates of the file that is shown; `None` if none is.
    pub(in crate::upstream) fn shown(
        &self,
    ) -> Option<Result<Vec<CertificateDer<'static>>, TlsError>> {
        let (cert, _) = self.shown.as_ref()?;
        Some(certificates(cert, Purpose::Cert))
    }

    /// The certificates of the file whom it is trusted by; none where the machine's count.
    pub(in crate::upstream) fn authorities(
        &self,
    ) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let authorities = self.ca.as_deref().map(|ca| certificates(ca, Purpose::Ca));
        authorities.unwrap_or(Ok(Vec::new()))
    }

    fn make(&self) -> Result<Ready, TlsError> {
        let (roots, ca) = match &self.ca {
            None => (Arc::clone(&self.trusted), None),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                let authorities = certificates(path, Purpose::Ca)?;
                let ca = first_end(&authorities);
                for certificate in authorities {
                    let added = roots.add(certificate);
                    added.map_err(|_| no_certificate(path, Purpose::Ca))?;
                }
                (Arc::new(roots), ca)
            }
        };
        let config = ClientConfig::builder().with_root_certificates(roots);
        let (mut config, cert) = match &self.shown {
            None => (config.with_no_client_auth(), None),
            Some(shown) => identified(config, shown)?,
        };
        if self.protocol == Protocol::Http2 {
            let offered = [Protocol::Http2, Protocol::Http1];
            config.alpn_protocols = offered.map(|it| it.id().to_vec()).into();
        }
        Ok(Ready {
            config: Arc::new(config),
            cert,
            ca,
        })
    }

    /// What an error of a connection says, if it is about TLS.
    pub(in crate::upstream) fn explain(
        &self,
        error: &(dyn std::error::Error + 'static),
    ) -> Option<TlsError> {
        let trust = match &self.ca {
            None => Trust::Machine,
            Some(path) => Trust::File(path.clone()),
        };
        let cert = self.shown.as_ref().map(|(cert, _)| cert.as_path());
        match trouble::find(error, &trust, cert)? {
            // Java tells no more than that it cannot verify it.
            TlsError::Refused { cert, why } => {
                let ended = self.shown_end().filter(|end| *end <= Timestamp::now());
                let why = ended.map_or(why, |end| format!("it has expired ({end})"));
                Some(TlsError::Refused { cert, why })
            }
            other => Some(other),
        }
    }

    /// When the certificate ends that is shown, if one is that can be used.
    fn shown_end(&self) -> Option<Timestamp> {
        self.ready().ok()?.cert
    }
}

/// The certificates that a backend has shown, its own first; none where there is no TLS.
pub(super) fn shown_by(stream: &Stream) -> &[CertificateDer<'static>] {
    let shown = match stream {
        MaybeHttpsStream::Http(_) => None,
        MaybeHttpsStream::Https(stream) => stream.inner().get_ref().1.peer_certificates(),
    };
    shown.unwrap_or_default()
}

/// The configuration that shows a certificate, whose files these are, and when that ends.
fn identified(
    config: ConfigBuilder<ClientConfig, WantsClientCert>,
    (cert, key): &(PathBuf, PathBuf),
) -> Result<(ClientConfig, Option<Timestamp>), TlsError> {
    let chain = certificates(cert, Purpose::Cert)?;
    let own = end_of_own(&chain);
    let private = Zeroizing::new(read(key, Purpose::Key)?);
    let private =
        PrivateKeyDer::from_pem_slice(&private).map_err(|_| TlsError::NoKey(key.clone()))?;
    let config = config.with_client_auth_cert(chain, private);
    let config = config.map_err(|why| match why {
        rustls::Error::InconsistentKeys(_) => TlsError::Mismatch {
            cert: cert.clone(),
            key: key.clone(),
        },
        rustls::Error::InvalidCertificate(_) => no_certificate(cert, Purpose::Cert),
        _ => TlsError::NoKey(key.clone()),
    })?;
    Ok((config, own))
}

fn read(path: &Path, purpose: Purpose) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|why| TlsError::Unreadable {
        purpose,
        path: path.to_owned(),
        why: plain(&why),
    })
}

fn certificates(path: &Path, purpose: Purpose) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let pem = read(path, purpose)?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let all = all.ok().filter(|all| !all.is_empty());
    all.ok_or_else(|| no_certificate(path, purpose))
}

fn no_certificate(path: &Path, purpose: Purpose) -> TlsError {
    let path = path.to_owned();
    TlsError::NoCertificate { purpose, path }
}
