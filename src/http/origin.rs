//! Where an answer on a cached route comes from, as `X-Cache` (R220) and `Cache-Status` (RFC 9211) tell.

use std::time::Duration;

use http::StatusCode;

/// Where an answer on a cached route comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// An entry, which is fresh for this long yet.
    Hit(Duration),
    /// The backends, asked for this request.
    Miss {
        why: Why,
        shared: Shared,
        kept: Kept,
    },
    /// An entry past its time by this long, since no backend answered: this would have been said.
    Stale(Duration, StatusCode),
    /// What is known without asking anyone.
    Known,
}

/// Why an entry does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// There is none.
    Miss,
    /// It is past its time.
    Stale,
    /// It lacks what the request may not lack.
    Request,
}

/// Whether others ask the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shared {
    /// The round was begun for this request.
    Own,
    /// It was begun for another.
    Collapsed,
}

/// Whether the answer is an entry from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    Stored,
    Not,
}

impl Origin {
    /// The value of `X-Cache`.
    pub(super) fn x_cache(self) -> &'static str {
        match self {
            Self::Hit(_) => "hit",
            Self::Miss { .. } | Self::Known => "miss",
            Self::Stale(..) => "stale",
        }
    }

    /// The value of `Cache-Status`, times in whole seconds.
    pub(super) fn cache_status(self) -> String {
        match self {
            Self::Hit(left) => format!("pdbmux; hit; ttl={}", left.as_secs()),
            Self::Miss { why, shared, kept } => {
                let why = match why {
                    Why::Miss => "miss",
                    Why::Stale => "stale",
                    Why::Request => "request",
                };
                let kept = match kept {
                    Kept::Stored => "; stored",
                    Kept::Not => "",
                };
                let shared = match shared {
                    Shared::Own => "",
                    Shared::Collapsed => "; collapsed",
                };
                format!("pdbmux; fwd={why}{kept}{shared}")
            }
            // A time that is over is written as a negative one.
            Self::Stale(over, status) => {
                let (ttl, status) = (-i128::from(over.as_secs()), status.as_u16());
                format!("pdbmux; fwd=stale; fwd-status={status}; ttl={ttl}; detail=served-stale")
            }
            Self::Known => "pdbmux; detail=nothing-to-ask".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_origin_has_its_two_values() {
        let seconds = Duration::from_secs_f32(12.9);
        let miss = |why, shared, kept| Origin::Miss { why, shared, kept };
        for (origin, x_cache, status) in [
            (Origin::Hit(seconds), "hit", "hit; ttl=12"),
            (
                miss(Why::Miss, Shared::Own, Kept::Stored),
                "miss",
                "fwd=miss; stored",
            ),
            (
                miss(Why::Stale, Shared::Collapsed, Kept::Not),
                "miss",
                "fwd=stale; collapsed",
            ),
            (
                miss(Why::Request, Shared::Collapsed, Kept::Stored),
                "miss",
                "fwd=request; stored; collapsed",
            ),
            (
                Origin::Stale(seconds, StatusCode::BAD_GATEWAY),
                "stale",
                "fwd=stale; fwd-status=502; ttl=-12; detail=served-stale",
            ),
            (Origin::Known, "miss", "detail=nothing-to-ask"),
        ] {
            assert_eq!(origin.x_cache(), x_cache);
            assert_eq!(origin.cache_status(), format!("pdbmux; {status}"));
        }
    }
}
