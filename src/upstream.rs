//! The backends and how they are asked. Knows nothing of routes and merges.

mod ask;
mod client;
mod failure;
mod freshness;
mod incoming;
mod monitor;
pub mod prober;
mod room;
pub mod trace;

use std::sync::Arc;
use std::time::Duration;

use pdbmux_core::round::BackendId;

use crate::config::{BackendConfig, BaseUrl, Coding, Config};

pub use ask::{Asked, Received};
pub use failure::Failure;
pub use freshness::Freshness;
pub use incoming::Incoming;
pub use monitor::{Pool, Standing};
pub use room::Room;

use client::Connections;
use monitor::Monitor;
use room::Memory;

/// One configured PuppetDB and the connections to it.
#[derive(Debug)]
pub struct Backend {
    /// Its place in the configured order.
    pub id: BackendId,
    /// Its name in answers and logs.
    pub name: String,
    url: BaseUrl,
    connections: Connections,
}

/// All configured PuppetDBs.
#[derive(Debug)]
pub struct Upstream {
    backends: Vec<Backend>,
    coding: Coding,
    limits: Limits,
    memory: Memory,
    monitor: Monitor,
}

/// What a backend's answer may cost.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Longest wait for the first byte and between any two.
    timeout: Duration,
    /// Longest body, in bytes.
    max_body: usize,
}

impl Upstream {
    /// Prepares to ask the configured backends. Connects to none of them yet.
    pub fn new(config: &Config) -> Arc<Self> {
        let urls = config.backends.iter().map(|backend| &backend.url);
        let connector = client::connector(config.timeout, urls);
        let backends = config.backends.iter().zip(0..).map(|(backend, id)| {
            let BackendConfig { name, url, .. } = backend.clone();
            Backend {
                id: BackendId(id),
                name,
                url,
                connections: Connections::new(connector.clone()),
            }
        });
        let limits = Limits {
            timeout: config.timeout,
            max_body: config.max_body_bytes,
        };
        Arc::new(Self {
            backends: backends.collect(),
            coding: config.access.gzip.unwrap_or(Coding::Identity),
            limits,
            memory: Memory::of(config.held_at_most()),
            monitor: Monitor::new(config),
        })
    }

    /// The backends in configured order.
    pub fn backends(&self) -> &[Backend] {
        &self.backends
    }

    /// One of them.
    pub fn backend(&self, id: BackendId) -> &Backend {
        &self.backends[id.index()]
    }

    /// The longest answer that is held, in bytes.
    pub fn max_body(&self) -> usize {
        self.limits.max_body
    }

    /// Whom a request asks now, and whom it does not for being out of service.
    pub fn pool(&self) -> Pool {
        self.monitor.pool()
    }

    /// What the probes know of a backend.
    pub fn standing(&self, id: BackendId) -> Standing {
        self.monitor.standing(id)
    }

    /// Whether there is a backend in service.
    pub fn any_in_service(&self) -> bool {
        self.monitor.any_in_service()
    }

    /// Every spelling of a backend's address, none of which may reach a client (R018). The longest
    /// come first.
    pub fn addresses(&self) -> Vec<String> {
        let mut all: Vec<_> = self
            .backends
            .iter()
            .flat_map(|b| b.url.spellings())
            .collect();
        all.sort_by_key(|spelling| std::cmp::Reverse(spelling.len()));
        all.dedup();
        all
    }
}
