//! Reading single values, whichever layer they come from.

use std::num::NonZeroU32;
use std::str::FromStr;

use http::uri::PathAndQuery;
use pdbmux_core::settings::Strategy;
use tracing_subscriber::EnvFilter;

use super::duration::DurationError;
use super::listen::ListenError;
use super::url::UrlError;
use super::{AccessLog, Coding, CoreDumps, Detection, LogFormat, Partial, Protocol, RequestIds};

/// What `merge` may be, in the order it is shown.
pub(super) const MERGES: [&str; 3] = ["freshness", "static", "exact"];
/// What a switch may be; `parse_switch` takes YAML's other spellings too.
pub(super) const SWITCHES: [&str; 2] = ["true", "false"];
/// What `log_format` may be.
pub(super) const LOG_FORMATS: [&str; 2] = ["text", "json"];
/// What `partial` may be.
pub(super) const PARTIALS: [&str; 2] = ["serve", "refuse"];
/// What `access_log` may be.
pub(super) const ACCESS_LOGS: [&str; 3] = ["off", "text", "json"];
const LOG_LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];

/// Why a value is refused. Reads on after the key, the value and its origin.
#[derive(Debug, thiserror::Error)]
pub enum ValueError {
    /// Nothing, or blanks only.
    #[error("is empty")]
    Empty,
    /// Not one of a closed list.
    #[error("is not one of {}", .0.join(", "))]
    NotOneOf(&'static [&'static str]),
    /// Not a switch.
    #[error("is neither true nor false")]
    NotSwitch,
    /// Signs, units, separators, fractions.
    #[error("is not a plain whole number, such as {0}")]
    NotWhole(&'static str),
    /// More than the machine can count.
    #[error("is too large")]
    TooLarge,
    /// Zero where at least one is needed.
    #[error("must be 1 or more")]
    Zero,
    /// Less than at least is needed.
    #[error("must be {0} or more")]
    TooSmall(usize),
    /// Not a path to serve below.
    #[error("is not a path such as /puppetdb")]
    NotBasePath,
    /// Not where pages come from.
    #[error("is neither * nor a list of origins such as https://board.example.com")]
    NotOrigin,
    /// One question at a time.
    #[error(
        "must be 0 or at least 2: beside a question a backend is asked whose data is the newest"
    )]
    NotOne,
    /// Not a path to put behind a base URL.
    #[error("is not a path that starts with / and can be sent as it is")]
    NotPath,
    /// A control character in a name.
    #[error("holds a control character")]
    ControlCharacter,
    /// A single word that is no level. As a filter it would silence everything else.
    #[error(
        "is neither a level ({}) nor a filter such as pdbmux=debug",
        LOG_LEVELS.join(", ")
    )]
    NotLevel,
    /// A filter that cannot be read.
    #[error("is not a log filter: {0}")]
    BadFilter(String),
    /// A secret that is not told by where it is.
    #[error("is neither file:PATH nor env:NAME: what is in them is not taken here")]
    NotSecret,
    /// Not a list of headers.
    #[error("is not a list of headers such as X-Authentication=file:/run/token")]
    NotHeader,
    /// A header that pdbmux sets.
    #[error("names a header that pdbmux sets itself")]
    OwnHeader,
    /// The same header twice.
    #[error("names a header twice")]
    HeaderTwice,
    /// Not the name of a server.
    #[error("is neither a host name nor an address")]
    NotHost,
    /// A name that would break headers and paths.
    #[error("is no name made of letters, digits, '.', '_' and '-'")]
    NotName,
    /// A user that cannot be sent.
    #[error("holds a colon or a control character, which no user's name may")]
    NotUser,
    /// Not a part of a whole.
    #[error("is not a number from 0 to 1")]
    NotRatio,
    /// What it sets is not in this build.
    #[error("needs a build of pdbmux with the cargo feature {0}, which this one is not")]
    NotBuilt(&'static str),
    /// Not a base URL.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// Not a duration.
    #[error(transparent)]
    Duration(#[from] DurationError),
    /// Not an address to listen on.
    #[error(transparent)]
    Listen(#[from] ListenError),
}

impl ValueError {
    /// Whether the value may be a secret where it should not be one.
    pub(super) fn veils(&self) -> bool {
        matches!(
            self,
            Self::NotSecret | Self::NotHeader | Self::OwnHeader | Self::HeaderTwice
        )
    }
}

/// Writes a value for an error message; one that may hold a password is not repeated.
pub(super) fn shown(value: &str) -> String {
    if value.contains('@') {
        return "(not shown: it may hold a password)".to_owned();
    }
    // A token may stand in a query.
    match value.split_once(['?', '#']) {
        Some((before, _)) => format!("{:?}", format!("{before}...")),
        None => format!("{value:?}"),
    }
}

pub(super) fn parse_merge(text: &str) -> Result<Strategy, ValueError> {
    match text {
        "freshness" => Ok(Strategy::Freshness),
        "static" => Ok(Strategy::Static),
        "exact" => Ok(Strategy::Exact),
        _ => Err(ValueError::NotOneOf(&MERGES)),
    }
}

pub(super) fn merge_name(merge: Strategy) -> &'static str {
    match merge {
        Strategy::Freshness => "freshness",
        Strategy::Static => "static",
        Strategy::Exact => "exact",
    }
}

pub(super) fn parse_log_format(text: &str) -> Result<LogFormat, ValueError> {
    match text {
        "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err(ValueError::NotOneOf(&LOG_FORMATS)),
    }
}

pub(super) fn log_format_name(format: LogFormat) -> &'static str {
    match format {
        LogFormat::Text => "text",
        LogFormat::Json => "json",
    }
}

pub(super) fn parse_request_ids(text: &str) -> Result<RequestIds, ValueError> {
    Ok(if parse_switch(text)? {
        RequestIds::On
    } else {
        RequestIds::Off
    })
}

pub(super) fn has_ids(ids: RequestIds) -> bool {
    match ids {
        RequestIds::Off => false,
        RequestIds::On => true,
    }
}

/// Takes YAML's other spellings of off too: that is what it makes of the word.
pub(super) fn parse_access_log(text: &str) -> Result<AccessLog, ValueError> {
    match text {
        "text" => Ok(AccessLog::Text),
        "json" => Ok(AccessLog::Json),
        _ => match parse_switch(text) {
            Ok(false) => Ok(AccessLog::Off),
            Ok(true) | Err(_) => Err(ValueError::NotOneOf(&ACCESS_LOGS)),
        },
    }
}

pub(super) fn access_log_name(log: AccessLog) -> &'static str {
    match log {
        AccessLog::Off => "off",
        AccessLog::Text => "text",
        AccessLog::Json => "json",
    }
}

/// Takes what YAML 1.1 and shells write for a switch, in any case.
pub(super) fn parse_switch(text: &str) -> Result<bool, ValueError> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Ok(true),
        "false" | "no" | "off" | "0" => Ok(false),
        _ => Err(ValueError::NotSwitch),
    }
}

pub(super) fn parse_partial(text: &str) -> Result<Partial, ValueError> {
    match text {
        "serve" => Ok(Partial::Serve),
        "refuse" => Ok(Partial::Refuse),
        _ => Err(ValueError::NotOneOf(&PARTIALS)),
    }
}

pub(super) fn partial_name(partial: Partial) -> &'static str {
    match partial {
        Partial::Serve => "serve",
        Partial::Refuse => "refuse",
    }
}

pub(super) fn parse_detection(text: &str) -> Result<Detection, ValueError> {
    Ok(if parse_switch(text)? {
        Detection::On
    } else {
        Detection::Off
    })
}

pub(super) fn parse_core_dumps(text: &str) -> Result<CoreDumps, ValueError> {
    Ok(if parse_switch(text)? {
        CoreDumps::On
    } else {
        CoreDumps::Off
    })
}

pub(super) fn parse_coding(text: &str) -> Result<Coding, ValueError> {
    Ok(if parse_switch(text)? {
        Coding::Gzip
    } else {
        Coding::Identity
    })
}

pub(super) fn is_gzip(coding: Coding) -> bool {
    match coding {
        Coding::Identity => false,
        Coding::Gzip => true,
    }
}

pub(super) fn parse_protocol(text: &str) -> Result<Protocol, ValueError> {
    Ok(if parse_switch(text)? {
        Protocol::Http2
    } else {
        Protocol::Http1
    })
}

pub(super) fn is_http2(protocol: Protocol) -> bool {
    match protocol {
        Protocol::Http1 => false,
        Protocol::Http2 => true,
    }
}

/// Reads digits alone: a `64MiB` or `1e6` is not guessed at.
fn parse_whole<T: FromStr>(text: &str, example: &'static str) -> Result<T, ValueError> {
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(ValueError::NotWhole(example));
    }
    text.parse().map_err(|_| ValueError::TooLarge)
}

pub(super) fn parse_bytes(text: &str) -> Result<usize, ValueError> {
    parse_whole(text, "67108864")
}

pub(super) fn parse_some_bytes(text: &str) -> Result<usize, ValueError> {
    match parse_whole(text, "1073741824")? {
        0 => Err(ValueError::Zero),
        bytes => Ok(bytes),
    }
}

pub(super) fn parse_most(text: &str) -> Result<usize, ValueError> {
    parse_whole(text, "20000")
}

pub(super) fn parse_number(text: &str) -> Result<u32, ValueError> {
    parse_whole(text, "5")
}

pub(super) fn parse_count(text: &str) -> Result<NonZeroU32, ValueError> {
    NonZeroU32::new(parse_whole(text, "3")?).ok_or(ValueError::Zero)
}

pub(super) fn parse_path(text: &str) -> Result<PathAndQuery, ValueError> {
    let sendable = text.starts_with('/') && !text.contains('#');
    match PathAndQuery::try_from(text) {
        Ok(path) if sendable => Ok(path),
        Ok(_) | Err(_) => Err(ValueError::NotPath),
    }
}

pub(super) fn parse_fact_name(text: &str) -> Result<String, ValueError> {
    if text.chars().any(char::is_control) {
        return Err(ValueError::ControlCharacter);
    }
    Ok(text.to_owned())
}

pub(super) fn parse_log_level(text: &str) -> Result<String, ValueError> {
    for directive in text.split(',').map(str::trim) {
        let word = !directive.contains(['=', '[', ':']);
        let level = LOG_LEVELS
            .iter()
            .any(|level| level.eq_ignore_ascii_case(directive));
        if word && !level {
            return Err(ValueError::NotLevel);
        }
    }
    EnvFilter::builder()
        .parse(text)
        .map_err(|why| ValueError::BadFilter(why.to_string()))?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why<T: std::fmt::Debug>(outcome: Result<T, ValueError>) -> String {
        outcome.unwrap_err().to_string()
    }

    #[test]
    fn r276_r283_numbers_are_plain_digits_alone() {
        assert_eq!(parse_bytes("0").unwrap(), 0);
        assert_eq!(parse_bytes("67108864").unwrap(), 67_108_864);
        for text in ["64MiB", "1e6", "+1", "-1", "1_000", "0x10", "1.0", " 1"] {
            assert_eq!(
                why(parse_bytes(text)),
                "is not a plain whole number, such as 67108864",
                "{text}"
            );
        }
        assert_eq!(why(parse_bytes("99999999999999999999")), "is too large");
        assert_eq!(why(parse_count("4294967296")), "is too large");
        assert_eq!(why(parse_count("0")), "must be 1 or more");
        assert_eq!(why(parse_some_bytes("0")), "must be 1 or more");
    }

    #[test]
    fn r278_a_switch_takes_the_usual_spellings() {
        for text in ["true", "True", "TRUE", "yes", "on", "1"] {
            assert!(parse_switch(text).unwrap(), "{text}");
        }
        for text in ["false", "False", "no", "OFF", "0"] {
            assert!(!parse_switch(text).unwrap(), "{text}");
        }
        assert_eq!(why(parse_switch("2")), "is neither true nor false");
    }

    #[test]
    fn r272_merge_is_one_of_three() {
        for name in MERGES {
            assert_eq!(merge_name(parse_merge(name).unwrap()), name);
        }
        assert_eq!(
            why(parse_merge("Static")),
            "is not one of freshness, static, exact"
        );
    }

    #[test]
    fn r280_the_probe_path_is_one_that_can_be_sent() {
        for text in ["/status/v1/services", "/", "/a?level=info"] {
            assert_eq!(parse_path(text).unwrap(), text);
        }
        for text in ["status", "/a b", "/a#b", "/\n", "http://h/"] {
            assert!(parse_path(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_mistyped_log_level_does_not_silence_the_log() {
        for text in [
            "info",
            "WARN",
            "off",
            "pdbmux=debug,hyper=warn",
            "info,pdbmux::http=trace",
        ] {
            assert_eq!(parse_log_level(text).unwrap(), text);
        }
        for text in ["inof", "info,verbose", "info,", "pdbmux=loud", "[x"] {
            assert!(parse_log_level(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_value_that_may_hold_a_secret_is_not_repeated() {
        assert_eq!(shown("a\nb"), r#""a\nb""#);
        assert_eq!(shown("http://h/?token=x"), r#""http://h/...""#);
        assert!(!shown("http://u:secret@h").contains("secret"));
    }
}
