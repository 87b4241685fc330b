//! How the log is written: by `tracing`, each line that concerns a request with the request's id.
//!
//! The id is put in when a line is written. A span would cost every request, whether a line is
//! written or not.

use std::fmt;
use std::io::{self, IsTerminal};

use tracing::{Event, Subscriber};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::{DefaultFields, FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::{FmtContext, format, layer};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, registry, reload};

use crate::config::{Config, LogFormat};
use crate::request;

/// Begins to log to standard error, as it is configured. To be called once. Returns what changes the
/// filter later, to directives that were checked.
pub fn init(config: &Config) -> impl Fn(&str) + Send + use<> {
    let (filter, handle) = reload::Layer::new(EnvFilter::new(&config.log_level));
    let log = registry().with(filter);
    let lines = layer()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal());
    match config.log_format {
        LogFormat::Text => log
            .with(lines.fmt_fields(Identified(DefaultFields::new())))
            .init(),
        LogFormat::Json => log.with(lines.json().map_event_format(Identified)).init(),
    }
    move |level| {
        if let Err(error) = handle.reload(EnvFilter::new(level)) {
            tracing::warn!(%error, "log_level could not be changed");
        }
    }
}

/// What writes the fields, or the lines, with the id of the task's request behind them.
#[derive(Debug)]
struct Identified<F>(F);

/// Does something with the id of the task's request, if it has one. No character of an id needs an
/// escape.
fn with_id<T>(with: impl FnOnce(&str) -> T) -> Option<T> {
    request::current(|request| request.id().map(with)).flatten()
}

impl<'w> FormatFields<'w> for Identified<DefaultFields> {
    fn format_fields<R: RecordFields>(
        &self,
        mut writer: Writer<'w>,
        fields: R,
    ) -> Result<(), fmt::Error> {
        self.0.format_fields(writer.by_ref(), fields)?;
        with_id(|id| write!(writer, " request_id={id}")).unwrap_or(Ok(()))
    }
}

impl<S, N> FormatEvent<S, N> for Identified<format::Format<format::Json>>
where
    S: Subscriber + for<'s> LookupSpan<'s>,
    N: for<'w> FormatFields<'w> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> Result<(), fmt::Error> {
        let mut line = String::new();
        self.0
            .format_event(context, Writer::new(&mut line), event)?;
        let open = line.trim_end().strip_suffix('}').unwrap_or(&line);
        with_id(|id| writeln!(writer, "{open},\"request_id\":\"{id}\"}}"))
            .unwrap_or_else(|| writer.write_str(&line))
    }
}
