//! What is counted of requests, backends and the process, for Prometheus.
//!
//! Whoever counts holds a handle that was looked up once: to count is then an atomic addition. What
//! is known anyway, such as the state of a backend, is looked at when somebody asks for it.

mod backend;
mod catalog;
mod group;
mod histogram;
mod names;
mod process;
mod recent;
mod route;
mod sampled;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::SystemTime;

use prometheus_client::encoding::{prometheus_text, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;

pub use backend::{Asking, Backend, Outcome};
pub use catalog::{Kind, Listed};
pub use group::{Group, TakeOver};
pub use histogram::Histogram;
pub use names::{Answered, Denied, Fate, Method, Reload, Shed, Status, Tier};
pub(crate) use recent::{LEFT, seconds, without_tokens};
pub use recent::{Recent, Story, Took};
pub use route::{Place, Route};
pub use sampled::{CacheUse, Estate, EstateOfBackend, Sample, Stand};

use catalog::Catalog;
use names::Words;
use sampled::Sampled;

/// The text of all metrics, and what kind of text it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// The text format of Prometheus, 0.0.4.
    Text,
}

impl Format {
    /// Its media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Text => prometheus_text::CONTENT_TYPE,
        }
    }
}

/// Everything that is counted in one process. It outlives a configuration.
pub struct Metrics {
    catalog: Catalog,
    backends: backend::Families,
    groups: group::Families,
    routes: route::Routes,
    sampled: Sampled,
    /// One scrape at a time fills in what is only looked at.
    scrape: Mutex<()>,
    estate: Mutex<Option<Estate>>,
    shed: Vec<Counter>,
    denied: Vec<Counter>,
    reloads: Vec<Counter>,
    spans: ByWord,
    /// Those of it, once there are spans.
    spans_counted: OnceLock<Vec<Counter>>,
    reloaded: Gauge,
    reloaded_at: Gauge<f64, std::sync::atomic::AtomicU64>,
    connections: Gauge,
    in_flight: Gauge,
    recent: Recent,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    /// Nothing counted yet, for a process that began now.
    pub fn new() -> Arc<Self> {
        let mut catalog = Catalog::default();
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        catalog.add("pdbmux_build", "Version of pdbmux", &["version"], build);
        let backends = backend::Families::listed_in(&mut catalog);
        let groups = group::Families::listed_in(&mut catalog);
        let routes = route::Routes::listed_in(&mut catalog);
        let (shed, denied, reloads) = <(ByWord, ByWord, ByWord)>::default();
        let spans = ByWord::default();
        catalog.add(
            "pdbmux_spans",
            "Spans of requests and of questions for otlp_endpoint, by what became of them",
            &["result"],
            spans.clone(),
        );
        catalog.add(
            "pdbmux_shed",
            "Requests refused for lack of room, by what there was too little of",
            &["reason"],
            shed.clone(),
        );
        catalog.add(
            "pdbmux_denied",
            "Requests refused with 401 or 403 for who asks, by why",
            &["reason"],
            denied.clone(),
        );
        catalog.add(
            "pdbmux_config_reloads",
            "Times that the configuration was read again",
            &["result"],
            reloads.clone(),
        );
        let metrics = Self {
            shed: words(&shed, "reason", Shed::WORDS),
            denied: words(&denied, "reason", Denied::WORDS),
            reloads: words(&reloads, "result", Reload::WORDS),
            spans,
            spans_counted: OnceLock::new(),
            reloaded: catalog.gauge(
                "pdbmux_config_last_reload_successful",
                "Whether the configuration could be used when it was last read",
            ),
            reloaded_at: catalog.gauge(
                "pdbmux_config_last_reload_success_timestamp_seconds",
                "When the configuration in use was read, in seconds since 1970",
            ),
            connections: catalog.gauge(
                "pdbmux_client_connections",
                "Connections of clients that are open",
            ),
            in_flight: catalog.gauge(
                "pdbmux_http_requests_in_flight",
                "Requests that are being answered",
            ),
            sampled: Sampled::listed_in(&mut catalog),
            scrape: Mutex::default(),
            estate: Mutex::default(),
            recent: Recent::default(),
            backends,
            groups,
            routes,
            catalog: process::listed_in(catalog),
        };
        metrics.reloaded.set(1);
        metrics.reloaded_at.set(process::seconds(SystemTime::now()));
        Arc::new(metrics)
    }

    /// The counts of the backend of this name, which stay for as long as the process.
    pub fn backend(&self, name: &str) -> Arc<Backend> {
        self.backends.of(name)
    }

    /// The counts of the group of this name.
    pub fn group(&self, name: &str) -> Arc<Group> {
        self.groups.of(name)
    }

    /// The counts of what is answered at a place.
    pub fn route(&self, place: Place) -> &Arc<Route> {
        self.routes.at(place)
    }

    /// Counts a request that was refused with 429 or 503 for lack of room.
    pub fn shed(&self, why: Shed) {
        self.shed[why.at()].inc();
    }

    /// Counts a request that was refused for who asks.
    pub fn denied(&self, why: Denied) {
        self.denied[why.at()].inc();
    }

    /// Counts spans by what became of them. Only where there are spans there are series of them, and
    /// then all of them: that a counter rises is not seen where it was not there before.
    pub fn spans(&self, fate: Fate, spans: u64) {
        let counted = || words(&self.spans, "result", Fate::WORDS);
        self.spans_counted.get_or_init(counted)[fate.at()].inc_by(spans);
    }

    /// Takes in that the configuration was read again.
    pub fn config_reloaded(&self, result: Reload) {
        self.reloads[result.at()].inc();
        match result {
            Reload::Succeeded => {
                self.reloaded.set(1);
                self.reloaded_at.set(process::seconds(SystemTime::now()));
            }
            Reload::Failed => {
                self.reloaded.set(0);
            }
        }
    }

    /// Counts a client's connection until what this returns is dropped.
    pub fn connection(&self) -> Held {
        Held::of(&self.connections)
    }

    /// Counts a request as under way until what this returns is dropped.
    pub fn request(&self) -> Held {
        Held::of(&self.in_flight)
    }

    /// Takes in how the nodes are spread, as it was last seen.
    pub fn learn_estate(&self, estate: Estate) {
        *lock(&self.estate) = Some(estate);
    }

    /// How the nodes are spread, if that was seen.
    pub fn estate(&self) -> Option<Estate> {
        lock(&self.estate).clone()
    }

    /// The last requests that are worth a look.
    pub fn recent(&self) -> &Recent {
        &self.recent
    }

    /// Every metric there can be, in the order in which they are written.
    pub fn listed(&self) -> &[Listed] {
        self.catalog.listed()
    }

    /// All metrics as text, with what `sample` knows.
    ///
    /// # Errors
    ///
    /// If they cannot be written, which does not happen to a text in memory.
    pub fn text(&self, sample: &Sample<'_>, format: Format) -> Result<String, fmt::Error> {
        let _alone = lock(&self.scrape);
        self.sampled.fill(sample, self.estate().as_ref());
        let mut written = String::new();
        match format {
            Format::OpenMetrics => text::encode(&mut written, self.catalog.registry())?,
            Format::Text => prometheus_text::encode(&mut written, self.catalog.registry())?,
        }
        Ok(written)
    }
}

/// Counters told apart by one label.
type ByWord = Family<[(&'static str, &'static str); 1], Counter>;

/// Counts in a gauge for as long as it is there.
#[derive(Debug)]
pub struct Held(Gauge);

impl Held {
    fn of(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// A counter for each word that a label can be.
fn words(family: &ByWord, label: &'static str, words: &[&'static str]) -> Vec<Counter> {
    let of = |word: &&'static str| family.get_or_create_owned(&[(label, *word)]);
    words.iter().map(of).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
