//! What is not counted but looked at when somebody asks for the metrics.

use std::time::SystemTime;

use pdbmux_core::health::State;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;

use super::catalog::Catalog;
use super::process;
use crate::certificate::InUse;

type Float = Gauge<f64, std::sync::atomic::AtomicU64>;
/// What tells all in the labels of its family.
type Told = Info<[(&'static str, &'static str); 0]>;

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfBackend {
    backend: String,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfState {
    backend: String,
    state: &'static str,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfVersion {
    backend: String,
    version: String,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfCertificate {
    backend: String,
    which: &'static str,
}

/// What a configuration's part of the process knows at a moment.
#[derive(Debug)]
pub struct Sample<'a> {
    /// What answers as one backend, by name.
    pub backends: Vec<&'a str>,
    /// The PuppetDBs by name, and how they stand.
    pub states: Vec<(&'a str, Stand)>,
    /// The PuppetDBs by name that have told their version, with it.
    pub versions: Vec<(&'a str, String)>,
    /// The answer cache, if there is one.
    pub cache: Option<CacheUse>,
    /// Bytes that held bodies may take and take, if that is bounded.
    pub memory: Option<(usize, usize)>,
    /// The certificates that are in use.
    pub certificates: Vec<InUse<'a>>,
}

/// How a PuppetDB stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stand {
    /// As its probes say.
    Probed(State),
    /// It is left out since requests failed with it, though its probes do not say that it is down.
    Ejected,
}

impl Stand {
    fn all() -> impl Iterator<Item = Self> {
        let probed = State::ALL.into_iter().map(Self::Probed);
        probed.chain([Self::Ejected])
    }

    fn word(self) -> &'static str {
        match self {
            Self::Probed(state) => state.name(),
            Self::Ejected => "ejected",
        }
    }
}

/// How much is cached.
#[derive(Debug, Clone, Copy)]
pub struct CacheUse {
    /// Entries of any age.
    pub entries: usize,
    /// Those past their time.
    pub stale: usize,
    /// Bytes of their bodies.
    pub bytes: usize,
}

/// How the nodes are spread over the backends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Estate {
    /// When that was asked.
    pub when: SystemTime,
    /// Nodes that any of the backends holds.
    pub nodes: usize,
    /// Those that several hold.
    pub shared: usize,
    /// The backends that told of their nodes.
    pub backends: Vec<EstateOfBackend>,
}

/// The nodes of one backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EstateOfBackend {
    /// Its name.
    pub name: String,
    /// Nodes that it holds.
    pub nodes: usize,
    /// Those that it has the newest data of.
    pub owned: usize,
    /// The others, of which another has newer data.
    pub stale: usize,
}

/// The metrics that are filled in.
#[derive(Debug)]
pub(super) struct Sampled {
    states: Family<OfState, Gauge>,
    versions: Family<OfVersion, Told, fn() -> Told>,
    nodes: Family<OfBackend, Gauge>,
    owned: Family<OfBackend, Gauge>,
    stale: Family<OfBackend, Gauge>,
    estate: Gauge,
    shared: Gauge,
    seen: Float,
    cache_entries: Gauge,
    cache_stale: Gauge,
    cache_bytes: Gauge,
    memory_limit: Gauge,
    memory_held: Gauge,
    certificates: Family<OfCertificate, Gauge>,
}

impl Sampled {
    pub(super) fn listed_in(catalog: &mut Catalog) -> Self {
        let states = Family::default();
        catalog.add(
            "pdbmux_backend_state",
            "1 for the state that a PuppetDB is in, as in /healthz, or for ejected, and 0 for the others",
            &["backend", "state"],
            Family::clone(&states),
        );
        let versions = Family::new_with_constructor((|| Told::new([])) as fn() -> Told);
        catalog.add(
            "pdbmux_backend",
            "Version that a PuppetDB told last, where backend_origin has it asked",
            &["backend", "version"],
            versions.clone(),
        );
        let certificates = Family::default();
        catalog.add(
            "pdbmux_certificate_expiry_timestamp_seconds",
            "When a certificate that is in use ends, in seconds since 1970; without a backend it is one towards clients",
            &["backend", "which"],
            Family::clone(&certificates),
        );
        let mut of_backends = |name, help| {
            let family = Family::<OfBackend, Gauge>::default();
            catalog.add(name, help, &["backend"], family.clone());
            family
        };
        let nodes = of_backends(
            "pdbmux_backend_nodes",
            "Nodes that a backend holds, in any state",
        );
        let owned = of_backends(
            "pdbmux_backend_owned_nodes",
            "Nodes that a backend has the newest data of",
        );
        let stale = of_backends(
            "pdbmux_backend_stale_nodes",
            "Nodes that a backend holds and another has newer data of",
        );
        Self {
            states,
            versions,
            certificates,
            nodes,
            owned,
            stale,
            estate: catalog.gauge("pdbmux_nodes", "Nodes that any backend holds"),
            shared: catalog.gauge("pdbmux_shared_nodes", "Nodes that several backends hold"),
            seen: catalog.gauge(
                "pdbmux_nodes_seen_timestamp_seconds",
                "When the backends were last asked for their nodes, in seconds since 1970; 0 if never",
            ),
            cache_entries: catalog.gauge("pdbmux_cache_entries", "Answers in the cache"),
            cache_stale: catalog.gauge(
                "pdbmux_cache_stale_entries",
                "Answers in the cache that are past their time",
            ),
            cache_bytes: catalog.gauge(
                "pdbmux_cache_bytes",
                "Bytes of the answers in the cache",
            ),
            memory_limit: catalog.gauge(
                "pdbmux_memory_limit_bytes",
                "Bytes that bodies held at one time may take; 0 without a bound",
            ),
            memory_held: catalog.gauge(
                "pdbmux_memory_held_bytes",
                "Bytes that bodies take which are held now, small ones aside; 0 without a bound",
            ),
        }
    }

    /// Fills in what is known now. A backend that is no longer configured is left out.
    pub(super) fn fill(&self, sample: &Sample<'_>, estate: Option<&Estate>) {
        self.states.clear();
        for (backend, stand) in &sample.states {
            for each in Stand::all() {
                let labels = OfState {
                    backend: (*backend).to_owned(),
                    state: each.word(),
                };
                let is_it = i64::from(each == *stand);
                self.states.get_or_create(&labels).set(is_it);
            }
        }
        self.versions.clear();
        for (backend, version) in &sample.versions {
            let labels = OfVersion {
                backend: (*backend).to_owned(),
                version: version.clone(),
            };
            drop(self.versions.get_or_create(&labels));
        }
        self.certificates.clear();
        for certificate in &sample.certificates {
            let labels = OfCertificate {
                backend: certificate.backend.unwrap_or_default().to_owned(),
                which: certificate.which.word(),
            };
            let until = certificate.until.as_second();
            self.certificates.get_or_create(&labels).set(until);
        }
        let cache = sample.cache.unwrap_or(CacheUse {
            entries: 0,
            stale: 0,
            bytes: 0,
        });
        self.cache_entries.set(whole(cache.entries));
        self.cache_stale.set(whole(cache.stale));
        self.cache_bytes.set(whole(cache.bytes));
        let (limit, held) = sample.memory.unwrap_or_default();
        self.memory_limit.set(whole(limit));
        self.memory_held.set(whole(held));
        self.fill_estate(sample, estate);
    }

    fn fill_estate(&self, sample: &Sample<'_>, estate: Option<&Estate>) {
        for family in [&self.nodes, &self.owned, &self.stale] {
            family.clear();
        }
        let Some(estate) = estate else {
            return;
        };
        let is_configured = |name: &str| sample.backends.contains(&name);
        let known = estate.backends.iter();
        for backend in known.filter(|backend| is_configured(&backend.name)) {
            let labels = OfBackend {
                backend: backend.name.clone(),
            };
            self.nodes.get_or_create(&labels).set(whole(backend.nodes));
            self.owned.get_or_create(&labels).set(whole(backend.owned));
            self.stale.get_or_create(&labels).set(whole(backend.stale));
        }
        self.estate.set(whole(estate.nodes));
        self.shared.set(whole(estate.shared));
        self.seen.set(process::seconds(estate.when));
    }
}

fn whole(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
