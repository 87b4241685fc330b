//! The registry, and the list of what is in it: a family without any series is written nowhere, but
//! it is documented and may be named by a rule.

use prometheus_client::metrics::gauge::{Atomic, Gauge};
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::{Metric, Registry};

/// What kind of metric it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only rises; written with `_total`.
    Counter,
    /// It rises and falls.
    Gauge,
    /// Written as `_bucket`, `_sum` and `_count`.
    Histogram,
    /// Always 1, its labels are what counts; written with `_info`.
    Info,
}

/// A metric that there can be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its name, without what its kind adds.
    pub name: &'static str,
    /// Its kind.
    pub kind: Kind,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// What it means.
    pub help: &'static str,
}

impl Listed {
    /// The names of its series.
    pub fn series(&self) -> Vec<String> {
        let suffixes: &[&str] = match self.kind {
            Kind::Counter => &["_total"],
            Kind::Gauge => &[""],
            Kind::Histogram => &["_bucket", "_sum", "_count"],
            Kind::Info => &["_info"],
        };
        let named = |suffix: &&str| format!("{}{suffix}", self.name);
        suffixes.iter().map(named).collect()
    }
}

/// A registry that can be listed.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    registry: Registry,
    listed: Vec<Listed>,
}

impl Catalog {
    /// Adds a metric whose series have these labels.
    pub(super) fn add(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: &'static [&'static str],
        metric: impl Metric + TypedMetric,
    ) {
        self.list(name, help, labels, kind(&metric));
        self.registry.register(name, help, metric);
    }

    /// Adds a gauge without labels.
    pub(super) fn gauge<N, A>(&mut self, name: &'static str, help: &'static str) -> Gauge<N, A>
    where
        A: Default + Atomic<N>,
        Gauge<N, A>: Metric + TypedMetric,
    {
        let gauge = Gauge::<N, A>::default();
        self.add(name, help, &[], gauge.clone());
        gauge
    }

    /// Lists a metric that a collector writes.
    pub(super) fn list(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: &'static [&'static str],
        kind: Kind,
    ) {
        self.listed.push(Listed {
            name,
            kind,
            labels,
            help,
        });
    }

    pub(super) fn listed(&self) -> &[Listed] {
        &self.listed
    }

    pub(super) fn registry(&self) -> &Registry {
        &self.registry
    }

    pub(super) fn registry_mut(&mut self) -> &mut Registry {
        &mut self.registry
    }
}

fn kind<M: TypedMetric>(_: &M) -> Kind {
    match M::TYPE {
        MetricType::Counter => Kind::Counter,
        MetricType::Histogram => Kind::Histogram,
        MetricType::Info => Kind::Info,
        _ => Kind::Gauge,
    }
}
