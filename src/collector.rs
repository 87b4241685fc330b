//! Telling a collector of traces of spans, by OTLP over HTTP, beside all requests.

#[cfg(feature = "otlp")]
mod encode;
#[cfg(feature = "otlp")]
mod export;

#[cfg(feature = "otlp")]
pub(crate) use export::start;

/// Nobody is told anything: there is nothing in this build that could.
#[cfg(not(feature = "otlp"))]
pub(crate) fn start(
    _: &crate::config::OtlpConfig,
    _: &std::sync::Arc<crate::metrics::Metrics>,
) -> Option<crate::spans::Sink> {
    None
}
