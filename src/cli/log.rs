//! The log on standard error.

use std::io::{self, IsTerminal};

use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, fmt, registry, reload};

use crate::config::{Config, LogFormat};

/// Begins to log as it is configured. Returns what sets [`Config::log_level`] anew.
pub fn init_log(config: &Config) -> impl Fn(&str) + Send + use<> {
    let (filter, handle) = reload::Layer::new(EnvFilter::new(&config.log_level));
    let log = registry().with(filter);
    let lines = fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal());
    match config.log_format {
        LogFormat::Text => log.with(lines).init(),
        LogFormat::Json => log.with(lines.json()).init(),
    }
    move |level| {
        if let Err(error) = handle.reload(EnvFilter::new(level)) {
            tracing::warn!(%error, "log_level could not be changed");
        }
    }
}
