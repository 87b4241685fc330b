//! The configuration: what can be set, and by whom (R263: defaults < file < environment < flags).

mod backend;
mod duration;
mod env;
mod error;
mod file;
mod key;
mod layer;
mod listen;
mod load;
mod nearest;
mod show;
mod template;
mod url;
mod value;

use std::num::NonZeroU32;
use std::time::Duration;

use http::uri::PathAndQuery;
use pdbmux_core::settings::{Settings, Strategy};

pub use backend::{BackendConfig, BackendError};
pub use duration::DurationError;
pub use env::Environment;
pub(crate) use error::plain;
pub use error::{ConfigError, Place};
pub use file::{FileChoice, SYSTEM_FILE};
pub use key::{KEYS, Key};
pub use layer::Origin;
pub use listen::{Listen, ListenError};
pub use load::{Flags, Loaded, initial, load, load_from, load_to_serve};
pub use template::template;
pub(crate) use template::wrap;
pub use url::{BaseUrl, UrlError};
pub use value::ValueError;

/// Everything that can be set. What each field means is told in [`KEYS`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "the table of keys documents the field of the same name"
)]
pub struct Config {
    pub listen: Listen,
    pub backends: Vec<BackendConfig>,
    pub merge: Strategy,
    pub timeout: Duration,
    pub freshness_ttl: Duration,
    pub facts_ttl: Duration,
    pub facts_cache_bytes: usize,
    pub source_fact: String,
    pub source_fact_enabled: bool,
    pub health_probe_enabled: bool,
    pub health_probe_path: PathAndQuery,
    pub health_probe_interval: Duration,
    pub health_probe_timeout: Duration,
    pub health_probe_failures: NonZeroU32,
    pub health_probe_successes: NonZeroU32,
    pub max_body_bytes: usize,
    pub header_timeout: Duration,
    pub idle_timeout: Duration,
    pub shutdown_timeout: Duration,
    pub log_format: LogFormat,
    pub log_level: String,
}

/// How the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object a line.
    Json,
}

impl Default for Config {
    fn default() -> Self {
        const THREE: NonZeroU32 = NonZeroU32::MIN.saturating_add(2);
        const TWO: NonZeroU32 = NonZeroU32::MIN.saturating_add(1);
        Self {
            listen: Listen {
                host: None,
                port: 8080,
            },
            backends: Vec::new(),
            merge: Strategy::Freshness,
            timeout: Duration::from_secs(10),
            freshness_ttl: Duration::from_secs(30),
            facts_ttl: Duration::from_secs(30),
            facts_cache_bytes: 64 << 20,
            source_fact: "pdbmux_source".to_owned(),
            source_fact_enabled: true,
            health_probe_enabled: true,
            health_probe_path: PathAndQuery::from_static("/status/v1/services"),
            health_probe_interval: Duration::from_secs(10),
            health_probe_timeout: Duration::from_secs(5),
            health_probe_failures: THREE,
            health_probe_successes: TWO,
            max_body_bytes: 1 << 30,
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(75),
            shutdown_timeout: Duration::from_secs(30),
            log_format: LogFormat::Text,
            log_level: "info".to_owned(),
        }
    }
}

impl Config {
    /// The part that plans and merges depend on.
    pub fn settings(&self) -> Settings {
        Settings {
            backends: self.backends.iter().map(|b| b.name.clone()).collect(),
            strategy: self.merge,
            source: self.source_fact_enabled.then(|| self.source_fact.clone()),
        }
    }
}
