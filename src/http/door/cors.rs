//! Pages of other sites that may read answers (CORS, as the Fetch standard has it).

use http::header::{ACCESS_CONTROL_REQUEST_METHOD, HeaderValue, ORIGIN};
use http::{Method, Request};

use crate::config::Origins;

/// Whose pages may read answers.
#[derive(Debug)]
pub(super) enum Cors {
    Anybody,
    These(Vec<HeaderValue>),
}

/// What a browser is told of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// Nothing.
    Untold,
    /// That any page may read it.
    WithAll,
    /// That pages of this origin may.
    With(HeaderValue),
    /// That the page which asks may not.
    WithOthers,
}

impl Cors {
    /// As it is configured, if it is.
    pub(super) fn of(origins: &Origins) -> Option<Self> {
        match origins {
            Origins::Nobody => None,
            Origins::Anybody => Some(Self::Anybody),
            Origins::These(list) => {
                let values = list.iter().map(HeaderValue::try_from);
                Some(Self::These(values.filter_map(Result::ok).collect()))
            }
        }
    }

    /// What a browser is told of the answer to a request.
    pub(super) fn sharing<B>(&self, request: &Request<B>) -> Sharing {
        let origin = request.headers().get(ORIGIN);
        match (self, origin) {
            (Self::Anybody, _) => Sharing::WithAll,
            (Self::These(list), Some(origin)) if list.contains(origin) => {
                Sharing::With(origin.clone())
            }
            (Self::These(_), _) => Sharing::WithOthers,
        }
    }
}

/// Whether a browser asks what it may ask.
pub(super) fn is_preflight<B>(request: &Request<B>) -> bool {
    let headers = request.headers();
    *request.method() == Method::OPTIONS
        && headers.contains_key(ORIGIN)
        && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}
