//! A distribution of durations, counted by atomic additions alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::{MetricType, TypedMetric};

/// How many durations there were up to each bound. Clones count together.
#[derive(Debug, Clone)]
pub struct Histogram(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    /// Upper bounds in seconds, rising.
    bounds: &'static [f64],
    /// One for each bound, and one for what is above all.
    durations: Box<[AtomicU64]>,
    nanoseconds: AtomicU64,
}

impl Histogram {
    /// Nothing counted yet.
    pub(super) fn new(bounds: &'static [f64]) -> Self {
        let durations = (0..=bounds.len()).map(|_| AtomicU64::new(0));
        Self(Arc::new(Counts {
            bounds,
            durations: durations.collect(),
            nanoseconds: AtomicU64::new(0),
        }))
    }

    /// Counts a duration.
    pub fn observe(&self, duration: Duration) {
        let counts = &*self.0;
        let seconds = duration.as_secs_f64();
        let at = counts.bounds.iter().position(|bound| seconds <= *bound);
        counts.durations[at.unwrap_or(counts.bounds.len())].fetch_add(1, Relaxed);
        // 2^64 nanoseconds are 584 years.
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        counts.nanoseconds.fetch_add(nanoseconds, Relaxed);
    }
}

impl EncodeMetric for Histogram {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), std::fmt::Error> {
        let counts = &*self.0;
        let bounds = counts.bounds.iter().copied().chain([f64::INFINITY]);
        let durations = counts.durations.iter().map(|count| count.load(Relaxed));
        let buckets: Vec<_> = bounds.zip(durations).collect();
        // Added up here, so that it fits the buckets whatever is counted meanwhile.
        let count = buckets.iter().map(|(_, count)| count).sum();
        let sum = Duration::from_nanos(counts.nanoseconds.load(Relaxed)).as_secs_f64();
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

impl TypedMetric for Histogram {
    const TYPE: MetricType = MetricType::Histogram;
}
