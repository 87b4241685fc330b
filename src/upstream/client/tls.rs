//! TLS towards one backend: whom it is trusted by, and what it is shown.

mod trouble;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};

use crate::config::{Access, plain};
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
    /// What this machine trusts.
    trusted: Arc<RootCertStore>,
    made: Made<Arc<ClientConfig>>,
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
            trusted,
        }
    }

    /// The settings of the next connection.
    pub(in crate::upstream) fn config(&self) -> Result<Arc<ClientConfig>, TlsError> {
        self.made.get(|| self.make().map(Arc::new))
    }

    /// The name that the backend's certificate must have; `host` is that of its URL.
    pub(super) fn name(&self, host: &str) -> Result<ServerName<'static>, TlsError> {
        let v6 = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        let name = self.server_name.as_deref().unwrap_or(v6.unwrap_or(host));
        ServerName::try_from(name.to_owned()).map_err(|_| TlsError::NoName(name.to_owned()))
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

    fn make(&self) -> Result<ClientConfig, TlsError> {
        let roots = match &self.ca {
            None => Arc::clone(&self.trusted),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(path, Purpose::Ca)? {
                    let added = roots.add(certificate);
                    added.map_err(|_| no_certificate(path, Purpose::Ca))?;
                }
                Arc::new(roots)
            }
        };
        let config = ClientConfig::builder().with_root_certificates(roots);
        let Some((cert, key)) = &self.shown else {
            return Ok(config.with_no_client_auth());
        };
        let chain = certificates(cert, Purpose::Cert)?;
        let private = PrivateKeyDer::from_pem_slice(&read(key, Purpose::Key)?)
            .map_err(|_| TlsError::NoKey(key.clone()))?;
        let config = config.with_client_auth_cert(chain, private);
        config.map_err(|why| match why {
            rustls::Error::InconsistentKeys(_) => TlsError::Mismatch {
                cert: cert.clone(),
                key: key.clone(),
            },
            rustls::Error::InvalidCertificate(_) => no_certificate(cert, Purpose::Cert),
            _ => TlsError::NoKey(key.clone()),
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
        trouble::find(error, &trust, cert)
    }
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
