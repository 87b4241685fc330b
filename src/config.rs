//! The configuration: what can be set, and by whom (R263: defaults < file < environment < flags).

mod access;
mod backend;
mod container;
mod door;
pub(crate) mod duration;
mod env;
mod error;
mod file;
mod key;
mod layer;
mod listen;
mod load;
mod nearest;
mod otlp;
mod protocol;
mod show;
mod source;
mod template;
mod url;
mod value;

use std::num::NonZeroU32;
use std::time::Duration;

use http::uri::PathAndQuery;
use pdbmux_core::settings::{Settings, Strategy};

pub use access::{Access, Hidden, Secret};
pub use backend::{BackendConfig, BackendError, Group};
pub use door::{DoorConfig, Origins};
pub use duration::DurationError;
pub use env::Environment;
pub(crate) use error::plain;
pub use error::{ConfigError, Place};
pub use file::{FileChoice, SYSTEM_FILE};
use key::Bears;
pub use key::{KEYS, Key};
pub use layer::Origin;
pub use listen::{Listen, ListenError, Transport};
pub use load::{Flags, Loaded, initial, load, load_for_demo, load_from, load_to_serve};
pub use otlp::{OtlpConfig, Ratio};
pub use protocol::Protocol;
pub use source::Source;
pub use template::template;
pub(crate) use template::wrap;
pub use url::{BaseUrl, UrlError};
pub use value::ValueError;

/// Everything that can be set. [`KEYS`] tells operators what the field of the same name means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Where to serve without TLS (R269).
    pub listen: Vec<Listen>,
    /// Where to tell operators how pdbmux is; nowhere if not set.
    pub admin_listen: Option<Listen>,
    /// In configured order, names unique (R270), also those of groups; empty only where nothing is
    /// served.
    pub backends: Vec<BackendConfig>,
    /// How owners are chosen for facts (R272).
    pub merge: Strategy,
    /// Bound on a backend's first byte and on each silence after it (R273); more than 0.
    pub timeout: Duration,
    /// How long the map of owners is kept (R274).
    pub freshness_ttl: Duration,
    /// How long answers are cached (R275), at most 30s (R206); 0 means no cache.
    pub facts_ttl: Duration,
    /// Budget of the cache in bytes of bodies (R276).
    pub facts_cache_bytes: usize,
    /// Name of the synthetic fact (R277); not empty.
    pub source_fact: String,
    /// Whether the synthetic fact is injected (R278).
    pub source_fact_enabled: bool,
    /// Whether backends are probed (R279).
    pub health_probe_enabled: bool,
    /// What is probed, behind the base URL (R280).
    pub health_probe_path: PathAndQuery,
    /// Time between probes (R281); more than 0.
    pub health_probe_interval: Duration,
    /// Bound on one probe (R282); more than 0.
    pub health_probe_timeout: Duration,
    /// Failed probes in a row that take a backend out (R283).
    pub health_probe_failures: NonZeroU32,
    /// Good probes in a row that bring it back (R284).
    pub health_probe_successes: NonZeroU32,
    /// How much of a list is held before it is sent on while it arrives, in bytes; at least 1.
    pub buffer_bytes: usize,
    /// Ceiling of one backend's answer, in bytes; at least 1.
    pub max_body_bytes: usize,
    /// The most that bodies held at one time take; 0 leaves it to [`Config::held_at_most`].
    pub memory_bytes: usize,
    /// Most certnames in a question to a backend; 0 lists none.
    pub max_listed_nodes: usize,
    /// Whether answers are compressed for clients who ask for it.
    pub gzip: bool,
    /// Length from which that is done, in bytes.
    pub gzip_min_bytes: usize,
    /// How backends are reached that do not set it themselves; its `timeout` is not set.
    pub access: Access,
    /// How clients come in.
    pub door: DoorConfig,
    /// How long a backend of a group may take to begin an answer before another is asked too; 0 is
    /// for ever.
    pub hedge_after: Duration,
    /// Whether it is looked for backends that are on one database without being a group.
    pub detect_shared_database: Detection,
    /// Failures of requests in a row that leave a backend out; 0 for never.
    pub eject_failures: u32,
    /// For how long the first time; more than 0.
    pub eject_time: Duration,
    /// What becomes of answers that lack a backend, where neither it nor the client says more.
    pub partial: Partial,
    /// Ceiling of a request's body, in bytes; at least 1.
    pub max_request_bytes: usize,
    /// Bound on reading a request head, and once more on its body; more than 0.
    pub header_timeout: Duration,
    /// How long an idle client connection is kept; more than 0.
    pub idle_timeout: Duration,
    /// Most connections of clients; 0 leaves it to what file descriptors there may be.
    pub max_connections: usize,
    /// Time between two looks at the config file for changes; 0 means none.
    pub reload_interval: Duration,
    /// How long requests are still taken once the end is announced; 0 means not at all.
    pub drain_delay: Duration,
    /// Bound on draining; 0 means none is done.
    pub shutdown_timeout: Duration,
    /// How the log is written.
    pub log_format: LogFormat,
    /// Filter directives, checked to be ones that `EnvFilter` takes.
    pub log_level: String,
    /// Whether each request has an id that is given back, logged and sent to backends.
    pub request_ids: RequestIds,
    /// Whether and how each request is logged.
    pub access_log: AccessLog,
    /// From how long on a request is warned of; 0 means never.
    pub slow_query: Duration,
    /// Whether the memory of the process may be dumped.
    pub core_dumps: CoreDumps,
    /// Who is told of requests, as spans of traces.
    pub otlp: OtlpConfig,
}

/// Whether the memory of the process, which holds secrets, may be dumped or read by others of its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoreDumps {
    /// By root alone.
    Off,
    /// As the system is set up.
    On,
}

/// Whether requests have ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestIds {
    /// They have none.
    Off,
    /// Each has its own, which is given back, logged and sent to backends.
    On,
}

/// Whether and how each request is logged, on standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessLog {
    /// It is not.
    Off,
    /// Lines for people.
    Text,
    /// One JSON object a line.
    Json,
}

/// How the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object a line.
    Json,
}

/// What becomes of an answer that lacks a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partial {
    /// It is served, and says what it lacks.
    Serve,
    /// It is refused.
    Refuse,
}

/// Whether something is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detection {
    /// Now and then.
    On,
    /// Never.
    Off,
}

/// How a body is asked to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// As it is.
    Identity,
    /// Compressed, if that can be done.
    Gzip,
}

impl Default for Config {
    fn default() -> Self {
        const THREE: NonZeroU32 = NonZeroU32::MIN.saturating_add(2);
        const TWO: NonZeroU32 = NonZeroU32::MIN.saturating_add(1);
        Self {
            listen: vec![Listen {
                host: None,
                port: 8080,
                transport: Transport::Plain,
            }],
            admin_listen: None,
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
            buffer_bytes: 16 << 20,
            max_body_bytes: 1 << 30,
            memory_bytes: 0,
            max_listed_nodes: 20_000,
            gzip: true,
            gzip_min_bytes: 1 << 10,
            access: Access::default(),
            door: DoorConfig::default(),
            hedge_after: Duration::ZERO,
            detect_shared_database: Detection::On,
            eject_failures: 0,
            eject_time: Duration::from_secs(30),
            partial: Partial::Serve,
            max_request_bytes: 1 << 20,
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(75),
            max_connections: 0,
            reload_interval: Duration::ZERO,
            drain_delay: Duration::ZERO,
            shutdown_timeout: Duration::from_secs(30),
            log_format: LogFormat::Text,
            log_level: "info".to_owned(),
            request_ids: RequestIds::Off,
            access_log: AccessLog::Off,
            slow_query: Duration::ZERO,
            core_dumps: CoreDumps::Off,
            otlp: OtlpConfig::default(),
        }
    }
}

impl Config {
    /// The most that bodies which are held at one time may take, in bytes: half of what the process
    /// may, if nothing is configured. `None` where there is no bound.
    pub fn held_at_most(&self) -> Option<usize> {
        match self.memory_bytes {
            0 => container::memory_limit().map(|limit| limit / 2),
            bytes => Some(bytes),
        }
    }

    /// How much each PuppetDB is asked at one time, in configured order; 0 is without bound.
    pub fn questions_at_most(&self) -> Vec<usize> {
        let of_all = self.access.max_in_flight;
        let backends = self.backends.iter();
        backends
            .map(|backend| backend.access.max_in_flight.or(of_all).unwrap_or_default())
            .collect()
    }

    /// The backends as they answer, in configured order: those of a group as one.
    pub fn groups(&self) -> Vec<Group<'_>> {
        backend::grouped(&self.backends)
    }

    /// Whether answers are the same under `other`, so that those which are kept may stay.
    pub fn answers_like(&self, other: &Self) -> bool {
        let matter = KEYS.iter().filter(|key| key.bears == Bears::OnAnswers);
        let mut same = matter.map(|key| key.show(self) == key.show(other));
        same.all(|same| same)
    }

    /// The part that plans and merges depend on.
    pub fn settings(&self) -> Settings {
        Settings {
            backends: self.groups().iter().map(|b| b.name.to_owned()).collect(),
            strategy: self.merge,
            source: self.source_fact_enabled.then(|| self.source_fact.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_alike_whatever_the_keys_beside_them_are() {
        let known = Config::default();
        let mut other = Config {
            timeout: Duration::from_secs(1),
            ..known.clone()
        };
        other.access.max_in_flight = Some(9);
        other.door.max_in_flight = 9;
        assert!(known.answers_like(&other));
        assert!(!known.answers_like(&Config {
            merge: Strategy::Exact,
            ..known.clone()
        }));
    }
}
