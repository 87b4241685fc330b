//! Why a backend gave no usable answer.

use std::error::Error;
use std::time::Duration;

use super::client::{Tls, TlsError, has_ended};
use super::credentials::CredentialsError;
use crate::config::{BaseUrl, Protocol};
use crate::gzip;
use crate::metrics::{Outcome, TakeOver};

/// Why a backend gave no usable answer. Its text is for the log: it may name addresses.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The request cannot be sent as it is: the backend's base URL and the path do not fit.
    #[error("the request cannot be sent: {0}")]
    Unsendable(http::Error),
    /// No connection could be made.
    #[error("no connection: {}", chain(&**.0))]
    Unconnected(Box<dyn Error + Send + Sync>),
    /// The connection broke before the answer began.
    #[error("no answer: {}", chain(.0))]
    Unanswered(hyper::Error),
    /// What answers is no HTTP/2, or nothing does, where it was not asked whether it speaks that.
    #[error("there is no answer by HTTP/2: does it speak that without TLS, as http2 says?")]
    NoHttp2,
    /// No encrypted connection, or one that the backend does not take.
    #[error("{0}")]
    Tls(TlsError),
    /// What it is to be told cannot be had.
    #[error("{0}")]
    Credentials(CredentialsError),
    /// Nothing came for as long as the configuration allows.
    #[error("nothing came for {0:?}")]
    Timeout(Duration),
    /// The answer broke off.
    #[error("the answer broke off: {}", chain(.0))]
    Cut(hyper::Error),
    /// The backend ended the answer, but not its connection, before it was whole.
    #[error("the answer broke off: the backend took it back")]
    TakenBack,
    /// The answer is compressed, and not as gzip compresses.
    #[error("the answer's gzip cannot be read: {0}")]
    Gzip(gzip::Damage),
    /// The answer is encoded as nobody asked it to be.
    #[error("the answer comes in the encoding {0:?}, which cannot be read here")]
    Encoding(String),
    /// The answer is longer than the configuration allows.
    #[error("the answer is longer than {0} bytes")]
    TooLong(usize),
    /// Other answers take all memory that there is for them.
    #[error("there was no room for the answer for {0:?}")]
    NoRoom(Duration),
    /// As many others were asked of it all the time as are allowed.
    #[error("its max_in_flight questions were under way for {0:?}, so that it was not asked")]
    NoPlace(Duration),
    /// There was no file descriptor for a connection, all of them being in use.
    #[error("there was no file descriptor for a connection to it for {0:?}")]
    NoDescriptor(Duration),
    /// The answer is not what such a question is answered with.
    #[error("the answer cannot be used: {0}")]
    Damaged(pdbmux_core::merge::damage::Damage),
    /// The answer is an error status, though others succeeded.
    #[error("it answered with status {0}")]
    Status(u16),
    /// It could not say which nodes it has, so that it is not known what it speaks for.
    #[error("its nodes could not be listed")]
    Unlisted,
    /// It was not asked, since it is known to be down.
    #[error("it is out of service")]
    OutOfService,
}

/// What this process has too little of to answer, and for how long it waited for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lack {
    /// Memory for answers that must be held.
    Memory(Duration),
    /// File descriptors for connections to backends.
    Descriptors(Duration),
}

impl Failure {
    /// The same, as one of TLS where that is to blame; it is of whoever is at `url`.
    pub(super) fn explained(self, tls: &Tls, url: &BaseUrl) -> Self {
        let (trouble, has_ended) = match &self {
            Self::Unconnected(error) => (tls.explain(&**error), false),
            Self::Unanswered(error) => (tls.explain(error), has_ended(error)),
            _ => return self,
        };
        match trouble {
            Some(trouble) => Self::Tls(trouble),
            None if has_ended && url.is_secure() && tls.shows_nothing() => {
                Self::Tls(TlsError::Ended)
            }
            None if has_ended && !url.is_secure() && tls.protocol() == Protocol::Http2 => {
                Self::NoHttp2
            }
            None => self,
        }
    }

    /// As what it is counted.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Unsendable(_) => Outcome::Unsendable,
            Self::Unconnected(_) => Outcome::Unconnected,
            Self::Unanswered(_) | Self::NoHttp2 => Outcome::Unanswered,
            Self::Tls(_) => Outcome::Tls,
            Self::Credentials(_) => Outcome::Credentials,
            Self::Timeout(_) => Outcome::Timeout,
            Self::Cut(_) | Self::TakenBack | Self::Gzip(gzip::Damage::Cut) => Outcome::Cut,
            Self::Gzip(gzip::Damage::Malformed) | Self::Damaged(_) => Outcome::Damaged,
            Self::Encoding(_) => Outcome::Encoding,
            Self::TooLong(_) => Outcome::TooLong,
            Self::NoRoom(_) => Outcome::NoRoom,
            Self::NoPlace(_) => Outcome::Busy,
            Self::NoDescriptor(_) => Outcome::NoDescriptor,
            Self::Status(status) => Outcome::of_status(*status),
            Self::Unlisted => Outcome::Unlisted,
            Self::OutOfService => Outcome::OutOfService,
        }
    }

    /// Whether it tells of the backend, and not of the question, of the configuration or of what there
    /// is room for here.
    pub(super) fn is_of_backend(&self) -> bool {
        match self {
            Self::Unconnected(_)
            | Self::Unanswered(_)
            | Self::NoHttp2
            | Self::Tls(_)
            | Self::Timeout(_)
            | Self::Cut(_)
            | Self::TakenBack
            | Self::Gzip(_)
            | Self::Encoding(_)
            | Self::Damaged(_) => true,
            Self::Unsendable(_)
            | Self::Credentials(_)
            | Self::TooLong(_)
            | Self::NoRoom(_)
            | Self::NoPlace(_)
            | Self::NoDescriptor(_)
            | Self::Status(_)
            | Self::Unlisted
            | Self::OutOfService => false,
        }
    }

    /// As what it is counted if another of the group answers instead.
    pub(super) fn take_over(&self) -> TakeOver {
        match self.outcome() {
            Outcome::Damaged => TakeOver::Damaged,
            _ => TakeOver::Failure,
        }
    }

    /// Whether the answer may be a good one that cannot be held here, so that to ask another for the
    /// same helps nobody.
    pub(super) fn is_for_lack_of_room(&self) -> bool {
        matches!(self, Self::TooLong(_)) || self.lack().is_some()
    }

    /// What there was too little of here, if that is why. What could be made of others' answers would
    /// be none to pass for one.
    pub fn lack(&self) -> Option<Lack> {
        match self {
            Self::NoRoom(waited) => Some(Lack::Memory(*waited)),
            Self::NoDescriptor(waited) => Some(Lack::Descriptors(*waited)),
            _ => None,
        }
    }

    /// One word for clients, which must not learn addresses.
    pub fn reason(&self) -> String {
        let word = match self {
            Self::Unsendable(_) => "unsendable",
            Self::Unconnected(_) | Self::Unanswered(_) | Self::NoHttp2 => "unreachable",
            Self::Tls(_) => "tls",
            Self::Credentials(_) => "credentials",
            Self::Timeout(_) => "timeout",
            Self::Cut(_) | Self::TakenBack | Self::Gzip(gzip::Damage::Cut) => "cut",
            Self::TooLong(_) => "too-long",
            Self::NoRoom(_) => "no-room",
            Self::NoPlace(_) => "busy",
            Self::NoDescriptor(_) => "no-descriptor",
            Self::Gzip(gzip::Damage::Malformed) | Self::Damaged(_) => "damaged",
            Self::Encoding(_) => "encoding",
            Self::Status(status) => return format!("status-{status}"),
            Self::Unlisted => "unlisted",
            Self::OutOfService => "out-of-service",
        };
        word.to_owned()
    }
}

/// An error with all its causes: HTTP errors keep the telling part in the innermost.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}
