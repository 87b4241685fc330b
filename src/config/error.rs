//! Every way a configuration can be refused, each as one sentence.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use super::backend::BackendError;
use super::layer::Origin;
use super::value::{ValueError, shown};

/// Why there is no configuration to run with.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A value that a key cannot take.
    #[error("{key} {value} ({origin}) {why}")]
    Value {
        /// The key.
        key: &'static str,
        /// The value as it may be shown.
        value: String,
        /// Where it was given.
        origin: Origin,
        /// What is wrong with it.
        why: ValueError,
    },
    /// A list of backends that cannot be used.
    #[error("backends ({origin}) {why}")]
    Backends {
        /// Where it was given.
        origin: Origin,
        /// What is wrong with it.
        why: BackendError,
    },
    /// A flag or variable that is not text.
    #[error("{origin} is not UTF-8 text")]
    NotUtf8Value {
        /// The flag or variable.
        origin: Origin,
    },
    /// `--config` or `PDBMUX_CONFIG` is empty.
    #[error("{origin} is empty: it names the config file")]
    NoPath {
        /// The flag or variable.
        origin: Origin,
    },
    /// The file asked for is not there (R266).
    #[error("the config file {} does not exist ({origin} names it)", .path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// What named it.
        origin: Origin,
    },
    /// The file is there and cannot be read.
    #[error("the config file {} cannot be read: {}", .path.display(), plain(.why))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        why: io::Error,
    },
    /// The file is no text.
    #[error("the config file {} is not UTF-8 text", .0.display())]
    NotUtf8(PathBuf),
    /// The file is larger than any configuration.
    #[error("the config file {} is larger than 1 MiB", .0.display())]
    TooLarge(PathBuf),
    /// The file is not YAML, or not shaped as it should be.
    #[error("{place} is not what a config file may hold: {why}")]
    Yaml {
        /// File and line.
        place: Place,
        /// What the parser said.
        why: String,
    },
    /// A key that does not exist.
    #[error("{place} has the unknown key {}: {hint}", shown(.key))]
    UnknownKey {
        /// File and line.
        place: Place,
        /// The key.
        key: String,
        /// The nearest key, or all of them.
        hint: String,
    },
    /// One half of what goes by two.
    #[error("the backend {name:?} has a {part} without a {lacking}")]
    Half {
        /// The backend.
        name: String,
        /// What is set for it.
        part: &'static str,
        /// What is not.
        lacking: &'static str,
    },
    /// A variable that should hold a secret and is not there.
    #[error("the variable {0} is to hold a credential and is not set")]
    NoVariable(String),
    /// A key that means nothing without another, which is not set.
    #[error("{key} is set and {lacking} is not, which it needs")]
    Lacking {
        /// The key.
        key: &'static str,
        /// What it needs.
        lacking: &'static str,
    },
    /// More addresses than the demo serves.
    #[error("--listen names more than one address: the demo serves one")]
    OneAddress,
    /// Nothing to serve.
    #[error(
        "no backend is configured: set PDBMUX_BACKENDS=name=url,... or list backends in a config \
         file"
    )]
    NoBackends,
    /// `config init` has nowhere to write to.
    #[error(
        "there is no place for a config file: name one with --config, or set XDG_CONFIG_HOME or \
         HOME"
    )]
    NoHome,
}

/// A line of a file, where it is known.
#[derive(Debug)]
pub struct Place {
    pub(super) path: PathBuf,
    pub(super) line: Option<u64>,
}

impl Place {
    pub(super) fn new(path: &Path, line: Option<u64>) -> Self {
        let path = path.to_owned();
        Self { path, line }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}", self.path.display()),
            None => write!(f, "{}", self.path.display()),
        }
    }
}

/// What the system said, without its number and capitals.
pub(crate) fn plain(why: &io::Error) -> String {
    match why.kind() {
        io::ErrorKind::NotFound => "it does not exist".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::IsADirectory => "it is a directory".to_owned(),
        io::ErrorKind::AddrInUse => "the address is in use".to_owned(),
        io::ErrorKind::AddrNotAvailable => "this machine has no such address".to_owned(),
        _ => {
            let text = why.to_string();
            let end = text.find(" (os error").unwrap_or(text.len());
            text[..end].to_lowercase()
        }
    }
}
