//! Whether an answer is served that lacks something of a backend.

use std::time::Duration;

use http::header::HeaderValue;
use http::{HeaderMap, Response};

use super::body::Body;
use super::respond::{self, Lacking, Missing};
use crate::config::{Config, Partial};
use crate::upstream::Upstream;

const HEADER: &str = "x-pdbmux-partial";

/// What an answer may lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tolerance {
    /// Whatever it lacks, it is served.
    Anything,
    /// Anything but what is of a required backend.
    Unrequired,
    /// Nothing.
    Nothing,
}

/// A client's wish that is none of those there are.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("X-Pdbmux-Partial is neither serve nor refuse")]
pub(super) struct UnknownWish;

/// What becomes of partial answers.
#[derive(Debug)]
pub(super) struct Partials {
    /// Where a client says nothing.
    otherwise: Tolerance,
    required: Vec<String>,
    /// When to ask again: by then the backends have been probed anew.
    retry_after: Duration,
}

impl Partials {
    /// As it is configured.
    pub(super) fn of(config: &Config, upstream: &Upstream) -> Self {
        let required = upstream.backends().iter().filter(|it| it.is_required);
        let required: Vec<_> = required.map(|it| it.name.clone()).collect();
        Self {
            otherwise: match config.partial {
                Partial::Refuse => Tolerance::Nothing,
                Partial::Serve if required.is_empty() => Tolerance::Anything,
                Partial::Serve => Tolerance::Unrequired,
            },
            required,
            retry_after: config.health_probe_interval,
        }
    }

    /// What a request takes: its own word goes before all that is configured.
    pub(super) fn wanted(&self, headers: &HeaderMap) -> Result<Tolerance, UnknownWish> {
        match headers.get(HEADER).map(HeaderValue::as_bytes) {
            None => Ok(self.otherwise),
            Some(b"serve") => Ok(Tolerance::Anything),
            Some(b"refuse") => Ok(Tolerance::Nothing),
            Some(_) => Err(UnknownWish),
        }
    }

    /// Whether an answer may be made without these.
    pub(super) fn allow(&self, tolerance: Tolerance, missing: &Missing) -> bool {
        match tolerance {
            Tolerance::Anything => true,
            Tolerance::Unrequired => missing
                .iter()
                .all(|(name, _)| !self.required.contains(name)),
            Tolerance::Nothing => missing.is_empty(),
        }
    }

    /// The response, or a refusal where it lacks what it may not lack. What has been read of it until
    /// now is given up, and whoever sends the rest is hung up on.
    pub(super) fn or_refused(
        &self,
        tolerance: Tolerance,
        response: Response<Body>,
    ) -> Response<Body> {
        match response.extensions().get::<Lacking>() {
            Some(Lacking(missing)) if !self.allow(tolerance, missing) => {
                respond::partial_refused(missing, self.retry_after, response.headers())
            }
            Some(_) | None => response,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partials(partial: Partial, backends: &str) -> Partials {
        let env = [("PDBMUX_BACKENDS", backends)].into_iter().collect();
        let nowhere = std::path::Path::new("/nonexistent");
        let flags = crate::config::Flags::default();
        let mut config = crate::config::load_from(&flags, &env, nowhere)
            .unwrap()
            .config;
        config.partial = partial;
        for backend in &mut config.backends {
            backend.access.required = Some(backend.name.starts_with("must"));
        }
        Partials::of(&config, &Upstream::new(&config))
    }

    #[test]
    fn a_required_backend_is_missed_and_by_refusal_any_and_a_client_has_the_last_word() {
        const PLAIN: &str = "a=http://a.example,b=http://b.example";
        const REQUIRED: &str = "a=http://a.example,must=http://b.example";
        const GROUP: &str = "a=http://a.example,eu/b=http://b.example,eu/must-c=http://c.example";
        let without = |name: &str| vec![(name.to_owned(), "timeout".to_owned())];
        for (partial, backends, wish, missing, allowed) in [
            (Partial::Serve, PLAIN, None, "b", true),
            (Partial::Serve, PLAIN, Some("refuse"), "b", false),
            (Partial::Refuse, PLAIN, None, "b", false),
            (Partial::Refuse, PLAIN, Some("serve"), "b", true),
            (Partial::Serve, REQUIRED, None, "a", true),
            (Partial::Serve, REQUIRED, None, "must", false),
            (Partial::Serve, REQUIRED, Some("serve"), "must", true),
            (Partial::Serve, REQUIRED, Some("refuse"), "a", false),
            (Partial::Serve, GROUP, None, "eu", false),
            (Partial::Serve, GROUP, None, "a", true),
        ] {
            let partials = partials(partial, backends);
            let mut headers = HeaderMap::new();
            if let Some(wish) = wish {
                headers.insert(HEADER, HeaderValue::from_static(wish));
            }
            let tolerance = partials.wanted(&headers).unwrap();
            let case = (partial, backends, wish, missing);
            assert_eq!(
                partials.allow(tolerance, &without(missing)),
                allowed,
                "{case:?}"
            );
            assert!(partials.allow(tolerance, &[]), "{case:?}");
        }
        let headers = [(HEADER.parse().unwrap(), HeaderValue::from_static("maybe"))];
        let unknown = partials(Partial::Serve, PLAIN).wanted(&headers.into_iter().collect());
        assert_eq!(unknown, Err(UnknownWish));
    }
}
