//! What one layer says, before it is laid over the ones below.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use super::Config;
use super::backend::{self, BackendConfig};
use super::error::ConfigError;
use super::key::{Key, SetScalar, Setter};
use super::value::{ValueError, shown};

/// Where a value was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nothing sets it.
    Default,
    /// A line of the config file, counted from 1.
    File {
        /// The file.
        path: PathBuf,
        /// The line.
        line: u64,
    },
    /// An environment variable, by name.
    Env(String),
    /// A flag, without its dashes.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Env(name) => f.write_str(name),
            Self::Flag(name) => write!(f, "--{name}"),
        }
    }
}

/// One value of a layer, with where it came from.
#[derive(Debug)]
pub(super) struct Given {
    pub(super) key: &'static Key,
    pub(super) value: Value,
    pub(super) origin: Origin,
}

/// A value as it was written, with the way to set it.
#[derive(Debug)]
pub(super) enum Value {
    Scalar { set: SetScalar, text: String },
    Backends(Vec<BackendConfig>),
}

/// The values that one layer sets, each key once.
#[derive(Debug, Default)]
pub(super) struct Partial(pub(super) Vec<Given>);

impl Given {
    /// Reads the text of a flag or a variable.
    pub(super) fn from_text(
        key: &'static Key,
        text: OsString,
        origin: Origin,
    ) -> Result<Self, ConfigError> {
        let Ok(text) = text.into_string() else {
            return Err(ConfigError::NotUtf8Value { origin });
        };
        let value = match key.set {
            Setter::Scalar(set) | Setter::List(set) => Value::Scalar { set, text },
            Setter::Backends if text.trim().is_empty() => {
                return Err(refused(key, &text, &origin, ValueError::Empty));
            }
            Setter::Backends => match backend::parse_list(&text) {
                Ok(list) => Value::Backends(list),
                Err(why) => return Err(ConfigError::Backends { origin, why }),
            },
        };
        Ok(Self { key, value, origin })
    }

    /// Writes this value over what lower layers left.
    pub(super) fn apply(&self, config: &mut Config) -> Result<(), ConfigError> {
        match &self.value {
            Value::Scalar { text, .. } if text.trim().is_empty() => Err(ValueError::Empty),
            Value::Scalar { set, text } => set(config, text),
            Value::Backends(list) => {
                config.backends.clone_from(list);
                Ok(())
            }
        }
        .map_err(|why| refused(self.key, self.text(), &self.origin, why))
    }

    /// The text as it was typed; a list has none.
    pub(super) fn text(&self) -> &str {
        match &self.value {
            Value::Scalar { text, .. } => text,
            Value::Backends(_) => "",
        }
    }
}

fn refused(key: &'static Key, value: &str, origin: &Origin, why: ValueError) -> ConfigError {
    ConfigError::Value {
        key: key.name,
        value: shown(if why.veils() { "@" } else { value }),
        origin: origin.clone(),
        why,
    }
}
