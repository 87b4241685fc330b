//! What goes wrong with certificates, each as one sentence that names the file to look at.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError};

/// Why there is no encrypted connection to a backend.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// A configured file cannot be read.
    #[error("the {purpose} cannot be read: {}: {why}", .path.display())]
    Unreadable {
        /// What it is for.
        purpose: Purpose,
        /// The file.
        path: PathBuf,
        /// What the system said.
        why: String,
    },
    /// A configured file holds something else.
    #[error("the {purpose} cannot be used: {} holds no certificate in PEM", .path.display())]
    NoCertificate {
        /// What it is for.
        purpose: Purpose,
        /// The file.
        path: PathBuf,
    },
    /// A configured file holds something else.
    #[error("the key cannot be used: {} holds no private key in PEM that is not encrypted", .0.display())]
    NoKey(PathBuf),
    /// The files do not belong together.
    #[error("the key {} does not fit the certificate {}", .key.display(), .cert.display())]
    Mismatch {
        /// The certificate.
        cert: PathBuf,
        /// The key.
        key: PathBuf,
    },
    /// No certificate can have such a name.
    #[error("no certificate can be for the name {0:?}: set server_name to the one that it is for")]
    NoName(String),
    /// The backend's certificate is not signed by whom it has to be.
    #[error("its certificate leads to none that {0}")]
    UnknownIssuer(Trust),
    /// The backend's certificate has ended.
    #[error("its certificate has expired{0}")]
    Expired(Since),
    /// The backend's certificate has not begun.
    #[error("its certificate is not valid yet: is a clock wrong?")]
    NotYet,
    /// The backend's certificate is for another name.
    #[error("its certificate is for {presented}, not for {expected}: is that its server_name?")]
    Name {
        /// Who was called.
        expected: String,
        /// Who answered.
        presented: String,
    },
    /// The backend wants a certificate.
    #[error("it wants a client certificate, and none is configured: set cert and key")]
    Wanted,
    /// The backend gave no reason; some servers do so where they want a certificate.
    #[error(
        "it ended the connection before it answered: does it want a client certificate? None is \
         configured (cert, key)"
    )]
    Ended,
    /// The backend does not take the certificate that it is shown.
    #[error("it does not take the client certificate {}: {why}", .cert.display())]
    Refused {
        /// The certificate.
        cert: PathBuf,
        /// What it said.
        why: String,
    },
    /// What answers is no TLS.
    #[error("it does not speak TLS: is its port another, or its url http?")]
    NoTls,
    /// Whatever else may be wrong.
    #[error("no encrypted connection: {0}")]
    Other(String),
}

/// What a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Whom to trust.
    Ca,
    /// The certificate that is shown.
    Cert,
    /// Its key.
    Key,
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ca => "ca",
            Self::Cert => "cert",
            Self::Key => "key",
        })
    }
}

/// By whom a backend's certificate must be signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// By whom the machine trusts.
    Machine,
    /// By those in a file.
    File(PathBuf),
}

impl fmt::Display for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Machine => f.write_str("this machine trusts: set ca to the file of its issuer"),
            Self::File(path) => write!(f, "the ca {} holds", path.display()),
        }
    }
}

/// When something ended, where that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Since(Option<UnixTime>);

impl Since {
    /// The time.
    pub(super) fn at(self) -> Option<jiff::Timestamp> {
        let seconds = i64::try_from(self.0?.as_secs()).ok()?;
        jiff::Timestamp::from_second(seconds).ok()
    }
}

impl fmt::Display for Since {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.at().map_or(Ok(()), |at| write!(f, " ({at})"))
    }
}

/// The trouble with TLS among an error's causes; `cert` is the certificate that was shown.
pub(super) fn find(
    error: &(dyn Error + 'static),
    trust: &Trust,
    cert: Option<&Path>,
) -> Option<TlsError> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(known) = error.downcast_ref::<TlsError>() {
            return Some(known.clone());
        }
        if let Some(error) = error.downcast_ref::<rustls::Error>() {
            return Some(of(error, trust, cert));
        }
        // What is wrapped in it is no source of it.
        let wrapped = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        next = match wrapped {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}

fn of(error: &rustls::Error, trust: &Trust, cert: Option<&Path>) -> TlsError {
    match error {
        rustls::Error::InvalidCertificate(why) => of_certificate(why, trust),
        rustls::Error::AlertReceived(alert) if is_about_certificates(*alert) => match cert {
            None => TlsError::Wanted,
            Some(cert) => TlsError::Refused {
                cert: cert.to_owned(),
                why: said(*alert),
            },
        },
        rustls::Error::InvalidMessage(_) => TlsError::NoTls,
        other => TlsError::Other(other.to_string()),
    }
}

fn of_certificate(why: &CertificateError, trust: &Trust) -> TlsError {
    match why {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            TlsError::UnknownIssuer(trust.clone())
        }
        CertificateError::Expired => TlsError::Expired(Since(None)),
        CertificateError::ExpiredContext { not_after, .. } => {
            TlsError::Expired(Since(Some(*not_after)))
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            TlsError::NotYet
        }
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => TlsError::Name {
            expected: expected.to_str().into_owned(),
            presented: names(presented),
        },
        other => TlsError::Other(other.to_string()),
    }
}

/// The names of a certificate, which come as `DnsName("puppetdb")`.
fn names(presented: &[String]) -> String {
    let plain = |name: &String| {
        let quoted = name.split('"').nth(1);
        quoted.unwrap_or(name).to_owned()
    };
    match presented {
        [] => "no name".to_owned(),
        names => names.iter().map(plain).collect::<Vec<_>>().join(", "),
    }
}

fn is_about_certificates(alert: AlertDescription) -> bool {
    matches!(
        alert,
        AlertDescription::CertificateRequired
            | AlertDescription::NoCertificate
            | AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::AccessDenied
            | AlertDescription::HandshakeFailure
    )
}

fn said(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::CertificateExpired => "it has expired".to_owned(),
        AlertDescription::CertificateRevoked => "it is revoked".to_owned(),
        AlertDescription::UnknownCA => "it does not know who issued it".to_owned(),
        AlertDescription::AccessDenied => "it may not ask".to_owned(),
        // Java's word for all of that.
        AlertDescription::CertificateUnknown => {
            "it cannot verify it, which is expired or not of its CA".to_owned()
        }
        other => format!("it says {other:?}"),
    }
}
