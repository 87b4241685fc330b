//! The backends and how they are asked. Knows nothing of routes and merges.

mod ask;
mod client;
mod credentials;
mod failure;
mod freshness;
mod incoming;
mod inspect;
mod made;
mod monitor;
mod places;
pub mod prober;
mod room;
pub mod trace;

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use pdbmux_core::round::BackendId;

use crate::config::{BackendConfig, BaseUrl, Coding, Config};

pub use ask::{Asked, Received};
pub use client::TlsError;
pub use credentials::CredentialsError;
pub use failure::Failure;
pub use freshness::Freshness;
pub use incoming::Incoming;
pub use monitor::{Pool, Standing};
pub use room::{Hold, Room};

use client::{Connections, Connector, Tls, has_ended};
use credentials::Credentials;
use monitor::Monitor;
use places::Places;
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
    tls: Arc<Tls>,
    credentials: Credentials,
    coding: Coding,
    places: Places,
    /// Longest wait for the first byte and between any two.
    timeout: Duration,
}

/// All configured PuppetDBs.
#[derive(Debug)]
pub struct Upstream {
    backends: Vec<Backend>,
    /// Longest body that is held, in bytes.
    max_body: usize,
    memory: Memory,
    /// Longest wait for memory that is not for one backend's answer.
    patience: Duration,
    monitor: Monitor,
}

impl Backend {
    /// Reads its files, so that what is wrong with them is told at once, and what is right is there
    /// when one of them is replaced.
    fn read_files(&self) {
        let tls = self
            .url
            .is_secure()
            .then(|| self.tls.config().err())
            .flatten();
        let tls = tls.map(Failure::Tls);
        let told = self.credentials.add_to(&mut HeaderMap::new());
        let told = told.err().map(Failure::Credentials);
        for failure in tls.into_iter().chain(told) {
            tracing::warn!(backend = self.name, %failure, "a backend cannot be asked");
        }
    }

    /// The same failure, as one of TLS where that is to blame.
    fn explain(&self, failure: Failure) -> Failure {
        let (trouble, has_ended) = match &failure {
            Failure::Unconnected(error) => (self.tls.explain(&**error), false),
            Failure::Unanswered(error) => (self.tls.explain(error), has_ended(error)),
            _ => return failure,
        };
        match trouble {
            Some(trouble) => Failure::Tls(trouble),
            None if has_ended && self.url.is_secure() && self.tls.shows_nothing() => {
                Failure::Tls(TlsError::Ended)
            }
            None => failure,
        }
    }
}

impl Upstream {
    /// Prepares to ask the configured backends. Connects to none of them yet.
    pub fn new(config: &Config) -> Arc<Self> {
        let names = client::names();
        let trusted = client::trusted(config.backends.iter().map(|backend| &backend.url));
        let backends = config.backends.iter().zip(0..).map(|(backend, id)| {
            let BackendConfig { name, url, access } = backend.clone();
            let access = access.or(&config.access);
            let timeout = access.timeout.unwrap_or(config.timeout);
            let tls = Arc::new(Tls::of(&access, Arc::clone(&trusted)));
            let backend = Backend {
                id: BackendId(id),
                name,
                url,
                connections: Connections::new(Connector::new(timeout, &names, &tls)),
                tls,
                credentials: Credentials::of(&access),
                coding: access.gzip.unwrap_or(Coding::Identity),
                places: Places::of(access.max_in_flight.unwrap_or_default()),
                timeout,
            };
            backend.read_files();
            backend
        });
        Arc::new(Self {
            backends: backends.collect(),
            max_body: config.max_body_bytes,
            memory: Memory::of(config.held_at_most()),
            patience: config.timeout,
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
        self.max_body
    }

    /// Waits for this much memory.
    ///
    /// # Errors
    ///
    /// How long was waited, if none came free in time.
    pub async fn hold(&self, bytes: usize) -> Result<Hold, Duration> {
        let wait = self.patience;
        let mut hold = Hold::new(&self.memory, wait);
        let taken = hold.grow(&Room::unbounded(), bytes, 0).await;
        taken.map_err(|_| wait)?;
        Ok(hold)
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
