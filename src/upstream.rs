//! The backends and how they are asked. Knows nothing of routes and merges.

#[cfg(feature = "otlp")]
mod apart;
mod ask;
mod client;
mod credentials;
mod eject;
mod failure;
mod freshness;
mod group;
mod incoming;
mod inspect;
pub(crate) mod made;
mod monitor;
mod places;
pub mod prober;
mod question;
mod release;
mod room;
mod shared;
mod sockets;
pub mod trace;

use std::sync::Arc;
use std::time::Duration;

use pdbmux_core::round::BackendId;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::config::{Access, BaseUrl, Config};
use crate::descriptors;
use crate::metrics::Metrics;

#[cfg(feature = "otlp")]
pub(crate) use apart::Apart;
pub use ask::{Asked, Received, Turn};
pub use client::TlsError;
pub use credentials::CredentialsError;
pub use eject::Via;
pub use failure::{Failure, Lack};
pub use freshness::Freshness;
pub use group::{Backend, Member, MemberId};
pub use incoming::Incoming;
pub use monitor::{Pool, Standing};
pub use room::{Hold, Room};

use group::Means;
use monitor::{Monitor, Trials};
use room::Memory;
use shared::Shared;
use sockets::Sockets;

/// All configured PuppetDBs, those of a group as one backend.
#[derive(Debug)]
pub struct Upstream {
    backends: Vec<Backend>,
    /// Longest body that is held, in bytes.
    max_body: usize,
    memory: Memory,
    sockets: Sockets,
    /// Longest wait for memory that is not for one backend's answer.
    patience: Duration,
    monitor: Monitor,
    shared: Shared,
}

impl Upstream {
    /// Prepares to ask the configured backends. Connects to none of them yet.
    ///
    /// What is counted of them goes nowhere.
    pub fn new(config: &Config) -> Arc<Self> {
        Self::following(config, &Metrics::new(), None)
    }

    /// The same, counted in `metrics`, after `before`, whose connections to backends that are reached as
    /// they were are kept, and whose count of the memory goes on.
    pub fn following(config: &Config, metrics: &Metrics, before: Option<&Self>) -> Arc<Self> {
        let division = descriptors::divide(config.max_connections, &config.questions_at_most());
        let sockets = Sockets::of(division.backends, before.map(|before| &before.sockets));
        let means = Means {
            names: client::names(),
            trusted: client::trusted(config.backends.iter().map(|backend| &backend.url)),
            metrics,
            sockets: &sockets,
            before,
        };
        let groups = config.groups().into_iter().zip(0..);
        let backends =
            groups.map(|(group, id)| Backend::new(BackendId(id), &group, &means, config));
        let memory = Memory::of(config.held_at_most());
        Arc::new(Self {
            backends: backends.collect(),
            monitor: Monitor::new(config),
            shared: Shared::of(config),
            max_body: config.max_body_bytes,
            memory: match before {
                Some(before) => memory.or(&before.memory),
                None => memory,
            },
            sockets,
            patience: config.timeout,
        })
    }

    /// Takes over what is known of the health of PuppetDBs that are where they were, and which of them
    /// are on one database.
    pub fn take_over(&self, before: &Self) {
        for member in self.members() {
            if let Some(known) = before.find(&member.url, &member.access) {
                self.monitor.take_over(member.id, &before.monitor, known.id);
            }
        }
        self.take_over_shared(before);
    }

    /// The PuppetDB that is reached so, whatever its name and in whatever time.
    fn find(&self, url: &BaseUrl, access: &Access) -> Option<&Member> {
        let way = |access: &Access| access.way();
        let is_it = |it: &&Member| it.url == *url && way(&it.access) == way(access);
        self.members().find(is_it)
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

    /// How many bytes held bodies may take, and take now, if that is bounded.
    pub fn memory(&self) -> Option<(usize, usize)> {
        self.memory.taken()
    }

    /// Told when the system has no file descriptor left for a connection to a backend, now and after a
    /// reload.
    pub fn descriptor_wanted(&self) -> Arc<Notify> {
        self.sockets.wanted()
    }

    /// Whom a request asks now, and whom it does not for being out of service. One that is left out
    /// and whose time is over is tried by this request.
    pub fn pool(&self) -> Pool {
        self.monitor.pool(Instant::now(), Trials::Begin)
    }

    /// The same for what requests share: it takes part in their trials and begins none.
    fn shared_pool(&self) -> Pool {
        self.monitor.pool(Instant::now(), Trials::Join)
    }

    /// What the probes know of a backend: of a group, what they know of the best of it.
    pub fn standing(&self, id: BackendId) -> Standing {
        self.monitor.standing(id)
    }

    /// What the probes know of one PuppetDB.
    pub fn standing_of(&self, member: MemberId) -> Standing {
        self.monitor.standing_of(member)
    }

    /// All PuppetDBs, whatever they answer for.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.backends.iter().flat_map(Backend::members)
    }

    /// One of them.
    pub fn member(&self, id: MemberId) -> &Member {
        &self.backend(id.backend).members()[id.index()]
    }

    /// Whether there is a backend in service.
    pub fn any_in_service(&self) -> bool {
        self.monitor.any_in_service()
    }

    /// Every spelling of a backend's address, none of which may reach a client (R018). The longest
    /// come first.
    pub fn addresses(&self) -> Vec<String> {
        let mut all: Vec<_> = self
            .members()
            .flat_map(|member| member.url.spellings())
            .collect();
        all.sort_by_key(|spelling| std::cmp::Reverse(spelling.len()));
        all.dedup();
        all
    }
}
