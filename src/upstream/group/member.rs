//! One PuppetDB and the way to it.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use pdbmux_core::round::BackendId;
use rustls::RootCertStore;
use tokio::time::Instant;

use super::super::Upstream;
use super::super::client::{Connections, Connector, Resolve, Tls};
use super::super::credentials::Credentials;
use super::super::failure::Failure;
use super::super::places::{Place, Places, Stay};
use super::super::release::Release;
use super::super::sockets::Sockets;
use crate::config::{Access, BackendConfig, BaseUrl, Coding, Config};
use crate::metrics::{self, Metrics};

/// One PuppetDB by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId {
    /// What it answers for.
    pub backend: BackendId,
    /// Its place among those that do, in configured order.
    pub at: u16,
}

impl MemberId {
    /// The place as an index into the members of its backend.
    pub fn index(self) -> usize {
        usize::from(self.at)
    }
}

/// One configured PuppetDB and the connections to it.
#[derive(Debug)]
pub struct Member {
    /// Its place.
    pub id: MemberId,
    /// The name it is configured by, which answers and headers show if it is in no group.
    pub name: String,
    /// What is counted of it.
    pub(in crate::upstream) counts: Arc<metrics::Backend>,
    pub(in crate::upstream) url: BaseUrl,
    /// How it is reached, with what holds for all.
    pub(in crate::upstream) access: Access,
    pub(in crate::upstream) connections: Connections,
    pub(in crate::upstream) credentials: Arc<Credentials>,
    pub(in crate::upstream) coding: Coding,
    pub(in crate::upstream) places: Places,
    /// Longest wait for the first byte and between any two.
    pub(in crate::upstream) timeout: Duration,
    /// How long its answer may take to begin before another of its group is asked too.
    pub(super) hedge_after: Option<Duration>,
    pub(in crate::upstream) tls: Arc<Tls>,
    /// Which PuppetDB it is, where that decides what it is told.
    pub(in crate::upstream) release: Option<Arc<Release>>,
}

/// What all connections are made with.
#[derive(Debug)]
pub(in crate::upstream) struct Means<'m> {
    pub(in crate::upstream) names: Resolve,
    pub(in crate::upstream) trusted: Arc<RootCertStore>,
    pub(in crate::upstream) metrics: &'m Metrics,
    pub(in crate::upstream) sockets: &'m Sockets,
    /// What was before. Connections to a PuppetDB that is reached as it was are kept, and the places
    /// there.
    pub(in crate::upstream) before: Option<&'m Upstream>,
}

impl Member {
    /// Connects to nobody yet.
    pub(super) fn new(
        id: MemberId,
        one: &BackendConfig,
        means: &Means<'_>,
        config: &Config,
    ) -> Self {
        let BackendConfig { name, url, access } = one.clone();
        let mut access = access.or(&config.access);
        let timeout = *access.timeout.get_or_insert(config.timeout);
        let hedge_after = access.hedge_after.unwrap_or(config.hedge_after);
        let known = means.before.and_then(|before| before.find(&url, &access));
        let (tls, credentials) = match known {
            Some(known) => (Arc::clone(&known.tls), Arc::clone(&known.credentials)),
            None => (
                Arc::new(Tls::of(&access, Arc::clone(&means.trusted))),
                Arc::new(Credentials::of(&access)),
            ),
        };
        let connector = Connector::new(timeout, &means.names, &tls);
        let known_connections = known.map(|known| &known.connections);
        let connections = Connections::new(connector, means.sockets, known_connections);
        let places = match known {
            Some(known) if known.access.max_in_flight == access.max_in_flight => {
                known.places.clone()
            }
            Some(_) | None => Places::of(access.max_in_flight.unwrap_or_default()),
        };
        let release = access.origin.unwrap_or_default().then(|| {
            let known = known.and_then(|known| known.release.clone());
            known.unwrap_or_default()
        });
        let member = Self {
            id,
            counts: means.metrics.backend(&name),
            name,
            url,
            connections,
            credentials,
            coding: access.gzip.unwrap_or(Coding::Identity),
            places,
            timeout,
            hedge_after: (!hedge_after.is_zero()).then_some(hedge_after),
            tls,
            release,
            access,
        };
        member.read_files();
        member
    }

    /// A place for a question that came at `since`.
    pub(in crate::upstream) async fn place(
        &self,
        stay: Stay,
        since: Instant,
    ) -> Result<Place, Failure> {
        let place = self.places.take(stay, since + self.timeout).await;
        place.ok_or(Failure::NoPlace(self.timeout))
    }

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
    pub(in crate::upstream) fn explain(&self, failure: Failure) -> Failure {
        failure.explained(&self.tls, &self.url)
    }
}
