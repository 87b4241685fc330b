//! Why a request is not let in.

use std::net::IpAddr;

use super::{Crowd, DoorError, Wanted};

/// Why a request is not let in. Its text is the answer's.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    /// There is no place for it.
    #[error(transparent)]
    Crowd(#[from] Crowd),
    /// The client's certificate, of this first name, is of nobody who may ask.
    #[error("{}", unlisted(.0.as_deref()))]
    Unlisted(Option<String>),
    /// Its path is not below the base path.
    #[error("pdbmux does not serve this path")]
    Outside,
    /// It bears nothing that shows who asks.
    #[error("{} is needed to ask here", .0.in_words())]
    Bare(Wanted),
    /// What it bears is of nobody.
    #[error("what shows who asks is not known here: {} is needed", .0.in_words())]
    Unknown(Wanted),
    /// Who may ask cannot be known.
    #[error("pdbmux cannot tell who may ask; its log tells more")]
    Broken(#[from] DoorError),
}

impl Refused {
    /// Tells of it in the log, for whom it is to be set right.
    pub(super) fn log(&self, client: IpAddr) {
        match self {
            // Under load there are many.
            Self::Crowd(why) => tracing::debug!(%client, %why, "a request is refused"),
            Self::Outside => {}
            // Some clients ask without, and then with what is wanted.
            Self::Bare(_) => tracing::debug!(%client, why = %self, "a request is refused"),
            Self::Unlisted(_) | Self::Unknown(_) => {
                tracing::warn!(%client, why = %self, "a client is refused");
            }
            Self::Broken(why) => tracing::error!(%client, %why, "nobody can be let in"),
        }
    }
}

fn unlisted(name: Option<&str>) -> String {
    match name {
        Some(name) => format!("the certificate of {name:?} is none that may ask here"),
        None => "nobody may ask here without a certificate".to_owned(),
    }
}
