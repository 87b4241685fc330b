//! Which nodes are listed.

use pdbmux_core::round::BackendId;

use super::{Node, place};

/// A condition on nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    /// This backend has a copy.
    Backend(BackendId),
    /// This backend owns it.
    Owner(BackendId),
    /// Its certname has this in it.
    Certname(String),
    /// It is like this.
    State(Kind),
}

/// What a node can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// In several backends.
    Shared,
    /// In one backend.
    Only,
    /// Some copy of it is stale.
    Stale,
    /// It moved lately.
    Moved,
    /// Active, as its owner says.
    Active,
    /// Not active, as its owner says.
    Inactive,
}

const KINDS: [(&str, Kind); 6] = [
    ("shared", Kind::Shared),
    ("only", Kind::Only),
    ("stale", Kind::Stale),
    ("moved", Kind::Moved),
    ("active", Kind::Active),
    ("inactive", Kind::Inactive),
];

/// Why a filter cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// It is not written as filters are.
    #[error("the filter {0:?} is none of backend=NAME, owner=NAME, certname=PART and state=STATE")]
    Form(String),
    /// There is no such backend.
    #[error("the filter {filter:?} names no backend: there are {known}")]
    Backend {
        /// The filter.
        filter: String,
        /// The backends.
        known: String,
    },
    /// There is no such state.
    #[error(
        "the filter {0:?} names no state: there are shared, only, stale, moved, active, inactive"
    )]
    State(String),
}

impl Filter {
    /// Reads `KEY=VALUE`.
    pub fn parse(text: &str, backends: &[String]) -> Result<Self, FilterError> {
        let form = || FilterError::Form(text.to_owned());
        let backend = |name| {
            place(backends, name).ok_or_else(|| FilterError::Backend {
                filter: text.to_owned(),
                known: backends.join(", "),
            })
        };
        let (key, value) = text.split_once('=').ok_or_else(form)?;
        match key {
            "backend" => Ok(Self::Backend(backend(value)?)),
            "owner" => Ok(Self::Owner(backend(value)?)),
            "certname" => Ok(Self::Certname(value.to_owned())),
            "state" => {
                let kind = KINDS.iter().find(|(name, _)| *name == value);
                let kind = kind.ok_or_else(|| FilterError::State(text.to_owned()))?;
                Ok(Self::State(kind.1))
            }
            _ => Err(form()),
        }
    }

    /// Whether it asks who moved.
    pub fn needs_moves(&self) -> bool {
        *self == Self::State(Kind::Moved)
    }

    /// Whether a node meets it.
    pub fn takes(&self, node: &Node<'_>) -> bool {
        match self {
            Self::Backend(backend) => node.copy(*backend).is_some(),
            Self::Owner(backend) => node.owner().backend == *backend,
            Self::Certname(part) => node.certname.contains(part.as_str()),
            Self::State(kind) => match kind {
                Kind::Shared => node.is_shared(),
                Kind::Only => !node.is_shared(),
                Kind::Stale => node.is_stale(),
                Kind::Moved => node.moved == Some(true),
                Kind::Active => node.is_active(),
                Kind::Inactive => !node.is_active(),
            },
        }
    }
}
