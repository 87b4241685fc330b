//! How a backend is reached: TLS, time, headers and credentials, and what it is to the others. What is
//! set for all backends (`backend_ca` and so on) holds for each that does not set it itself.

pub(super) mod keys;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH,
    CONTENT_TYPE, HOST, HeaderName, TRANSFER_ENCODING, USER_AGENT,
};
use zeroize::Zeroizing;

use super::env::Environment;
use super::listen::is_host;
use super::value::{self, ValueError};
use super::{Coding, Protocol, duration};

/// How a backend is reached, as far as that is set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Access {
    /// The certificates that its own must lead to, in a PEM file.
    pub ca: Option<PathBuf>,
    /// The certificate that pdbmux shows, in a PEM file with those that it leads to.
    pub cert: Option<PathBuf>,
    /// The private key of that, in a PEM file.
    pub key: Option<PathBuf>,
    /// The name that its certificate must have, where that is not the host of its URL.
    pub server_name: Option<String>,
    /// Bound on its first byte and on each silence after it; more than 0.
    pub timeout: Option<Duration>,
    /// Headers of every request, each name once.
    pub headers: Option<Vec<(HeaderName, Secret)>>,
    /// The user of HTTP's basic authentication.
    pub user: Option<String>,
    /// The password of that.
    pub password: Option<Secret>,
    /// How it is asked to send its answers.
    pub gzip: Option<Coding>,
    /// What is spoken with it, if it can: without TLS it has to.
    pub http2: Option<Protocol>,
    /// Questions that it is asked at one time; 0 is without bound, else at least 2.
    pub max_in_flight: Option<usize>,
    /// Whether it is told, for its log of queries, by whom it is asked and for which request.
    pub origin: Option<bool>,
    /// The name of those that stand in for one another, being on one database. It is its own alone.
    pub group: Option<String>,
    /// How long it may take to begin an answer before another of its group is asked too; 0 is for
    /// ever.
    pub hedge_after: Option<Duration>,
    /// Whether an answer without it is none. It is its own alone.
    pub required: Option<bool>,
}

/// Where a secret is. A configuration is shown and logged, so it never holds the secret itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Secret {
    /// In a file, which is read again when it changes; a line break at its end is not part of it.
    File(PathBuf),
    /// In an environment variable.
    Env {
        /// The variable.
        name: String,
        /// What it holds, once it was looked up.
        value: Option<Hidden>,
    },
}

/// A text that is never shown, and wiped out of memory when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Hidden(Zeroizing<String>);

impl Hidden {
    /// The text itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for Hidden {
    fn from(text: String) -> Self {
        Self(Zeroizing::new(text))
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "file:{}", path.display()),
            Self::Env { name, .. } => write!(f, "env:{name}"),
        }
    }
}

/// One thing that can be set of an [`Access`].
#[derive(Debug)]
pub(super) struct Part {
    /// Its name in a backend's entry of the file.
    pub(super) name: &'static str,
    pub(super) set: fn(&mut Access, &str) -> Result<(), ValueError>,
    show: fn(&Access) -> Option<String>,
}

macro_rules! part {
    ($constant:ident, $field:ident, $parse:expr, $show:expr) => {
        pub(super) static $constant: Part = Part {
            name: stringify!($field),
            set: |access, text| {
                access.$field = Some($parse(text)?);
                Ok(())
            },
            show: |access| access.$field.as_ref().map($show),
        };
    };
}

macro_rules! file {
    ($constant:ident, $field:ident) => {
        part!(
            $constant,
            $field,
            |text| Ok::<_, ValueError>(PathBuf::from(text)),
            |path| path.display().to_string()
        );
    };
}

file!(CA, ca);
file!(CERT, cert);
file!(KEY, key);
part!(SERVER_NAME, server_name, host, Clone::clone);
part!(TIMEOUT, timeout, duration::parse_positive, duration::format);
part!(HEADERS, headers, headers, |list| show_headers(list));
part!(USER, user, user, Clone::clone);
part!(PASSWORD, password, secret, ToString::to_string);
part!(GZIP, gzip, value::parse_coding, |coding| {
    value::is_gzip(*coding).to_string()
});
part!(HTTP2, http2, value::parse_protocol, |protocol| {
    value::is_http2(*protocol).to_string()
});
part!(
    MAX_IN_FLIGHT,
    max_in_flight,
    most_in_flight,
    ToString::to_string
);
part!(ORIGIN, origin, value::parse_switch, ToString::to_string);
part!(GROUP, group, group, Clone::clone);
part!(HEDGE_AFTER, hedge_after, duration::parse, duration::format);
part!(REQUIRED, required, value::parse_switch, ToString::to_string);

/// All of them, in the order in which they are written.
pub(super) static PARTS: [&Part; 15] = [
    &CA,
    &CERT,
    &KEY,
    &SERVER_NAME,
    &TIMEOUT,
    &HEADERS,
    &USER,
    &PASSWORD,
    &GZIP,
    &HTTP2,
    &MAX_IN_FLIGHT,
    &ORIGIN,
    &GROUP,
    &HEDGE_AFTER,
    &REQUIRED,
];

impl Part {
    /// Its value as text; empty if it is not set.
    pub(super) fn show(&self, access: &Access) -> String {
        (self.show)(access).unwrap_or_default()
    }
}

impl Access {
    /// What decides whether a connection to it can be used: neither times and counts nor what it
    /// answers for.
    #[must_use]
    pub fn way(&self) -> Self {
        Self {
            timeout: None,
            gzip: None,
            max_in_flight: None,
            origin: None,
            group: None,
            hedge_after: None,
            required: None,
            ..self.clone()
        }
    }

    /// This, with what it leaves open taken from `general`. A key belongs to its certificate and a
    /// password to its user: whoever sets one of two sets both.
    #[must_use]
    pub fn or(&self, general: &Self) -> Self {
        let own = self.clone();
        let (cert, key) = match (&own.cert, &own.key) {
            (None, None) => (general.cert.clone(), general.key.clone()),
            _ => (own.cert, own.key),
        };
        let (user, password) = match (&own.user, &own.password) {
            (None, None) => (general.user.clone(), general.password.clone()),
            _ => (own.user, own.password),
        };
        Self {
            ca: own.ca.or_else(|| general.ca.clone()),
            cert,
            key,
            server_name: own.server_name.or_else(|| general.server_name.clone()),
            timeout: own.timeout.or(general.timeout),
            headers: own.headers.or_else(|| general.headers.clone()),
            user,
            password,
            gzip: own.gzip.or(general.gzip),
            http2: own.http2.or(general.http2),
            max_in_flight: own.max_in_flight.or(general.max_in_flight),
            origin: own.origin.or(general.origin),
            group: own.group,
            hedge_after: own.hedge_after.or(general.hedge_after),
            required: own.required,
        }
    }

    /// What is set by name, without what is not.
    pub(super) fn shown(&self) -> impl Iterator<Item = (&'static str, String)> {
        let parts = PARTS.iter().map(|part| (part.name, part.show(self)));
        parts.filter(|(_, text)| !text.is_empty())
    }

    /// The half that lacks its other, with the other.
    pub(super) fn half(&self) -> Option<(&'static str, &'static str)> {
        let half = |one: bool, other: bool, names: (&'static str, &'static str)| match (one, other)
        {
            (true, false) => Some(names),
            (false, true) => Some((names.1, names.0)),
            _ => None,
        };
        half(self.cert.is_some(), self.key.is_some(), ("cert", "key")).or_else(|| {
            let (user, password) = (self.user.is_some(), self.password.is_some());
            half(user, password, ("user", "password"))
        })
    }

    /// Looks up the variables that hold secrets; the first that is not set, if there is one.
    pub(super) fn look_up(&mut self, env: &Environment) -> Option<String> {
        let headers = self.headers.iter_mut().flatten().map(|(_, secret)| secret);
        let mut unset = None;
        for secret in headers.chain(&mut self.password) {
            let Secret::Env { name, value } = secret else {
                continue;
            };
            *value = env.text(name).map(Hidden::from);
            if value.is_none() {
                unset.get_or_insert_with(|| name.clone());
            }
        }
        unset
    }
}

fn host(text: &str) -> Result<String, ValueError> {
    let is_address = text.parse::<std::net::IpAddr>().is_ok();
    if is_address || is_host(text) {
        return Ok(text.to_owned());
    }
    Err(ValueError::NotHost)
}

fn most_in_flight(text: &str) -> Result<usize, ValueError> {
    match value::parse_most(text)? {
        1 => Err(ValueError::NotOne),
        most => Ok(most),
    }
}

fn group(text: &str) -> Result<String, ValueError> {
    if super::backend::is_name(text) {
        return Ok(text.to_owned());
    }
    Err(ValueError::NotName)
}

fn user(text: &str) -> Result<String, ValueError> {
    // RFC 7617: it ends at the first colon.
    if text.contains(':') || text.chars().any(char::is_control) {
        return Err(ValueError::NotUser);
    }
    Ok(text.to_owned())
}

fn secret(text: &str) -> Result<Secret, ValueError> {
    match text.split_once(':') {
        Some(("file", path)) if !path.is_empty() => Ok(Secret::File(path.into())),
        Some(("env", name)) if !name.is_empty() => Ok(Secret::Env {
            name: name.to_owned(),
            value: None,
        }),
        _ => Err(ValueError::NotSecret),
    }
}

/// Reads `NAME=SECRET,...`.
fn headers(text: &str) -> Result<Vec<(HeaderName, Secret)>, ValueError> {
    const OWN: [HeaderName; 10] = [
        ACCEPT,
        ACCEPT_ENCODING,
        AUTHORIZATION,
        CONNECTION,
        CONTENT_ENCODING,
        CONTENT_LENGTH,
        CONTENT_TYPE,
        HOST,
        TRANSFER_ENCODING,
        USER_AGENT,
    ];
    let mut list: Vec<(HeaderName, Secret)> = Vec::new();
    for entry in text.split(',') {
        let (name, value) = entry.split_once('=').ok_or(ValueError::NotHeader)?;
        let name = HeaderName::try_from(name.trim()).map_err(|_| ValueError::NotHeader)?;
        // Authorization is free where there is no user.
        if name != AUTHORIZATION && OWN.contains(&name) {
            return Err(ValueError::OwnHeader);
        }
        if list.iter().any(|(known, _)| *known == name) {
            return Err(ValueError::HeaderTwice);
        }
        list.push((name, secret(value.trim())?));
    }
    Ok(list)
}

fn show_headers(list: &[(HeaderName, Secret)]) -> String {
    let pairs: Vec<_> = list
        .iter()
        .map(|(name, secret)| format!("{name}={secret}"))
        .collect();
    pairs.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(parts: &[(&str, &str)]) -> Access {
        let mut access = Access::default();
        for (name, text) in parts {
            let part = PARTS.iter().find(|part| part.name == *name).unwrap();
            (part.set)(&mut access, text).unwrap();
        }
        access
    }

    #[test]
    fn every_part_is_shown_as_it_is_read_and_no_secret_with_it() {
        let parts = [
            ("ca", "/etc/ca.pem"),
            ("cert", "/etc/cert.pem"),
            ("key", "/etc/key.pem"),
            ("server_name", "puppetdb"),
            ("timeout", "5s"),
            (
                "headers",
                "x-authentication=file:/run/token,x-team=env:TEAM",
            ),
            ("user", "reader"),
            ("password", "env:PASSWORD"),
            ("gzip", "true"),
            ("http2", "true"),
            ("max_in_flight", "8"),
            ("origin", "true"),
            ("group", "eu"),
            ("hedge_after", "200ms"),
            ("required", "true"),
        ];
        let mut access = access(&parts);
        let shown: Vec<_> = access.shown().collect();
        assert_eq!(shown, parts.map(|(name, text)| (name, text.to_owned())));
        let env = [("TEAM", "hush"), ("PASSWORD", "hush")]
            .into_iter()
            .collect();
        assert_eq!(access.look_up(&env), None);
        assert!(!format!("{access:?}{:?}", access.shown().collect::<Vec<_>>()).contains("hush"));
        assert_eq!(access.look_up(&Environment::default()).unwrap(), "TEAM");
    }

    #[test]
    fn what_is_not_set_is_taken_from_what_holds_for_all_and_pairs_stay_together() {
        let general = access(&[("ca", "/ca"), ("cert", "/c"), ("key", "/k"), ("user", "u")]);
        let both = access(&[("timeout", "1s")]).or(&general);
        let expected = [
            ("ca", "/ca"),
            ("cert", "/c"),
            ("key", "/k"),
            ("timeout", "1s"),
            ("user", "u"),
        ];
        let shown: Vec<_> = both.shown().collect();
        assert_eq!(shown, expected.map(|(name, text)| (name, text.to_owned())));
        assert_eq!(both.half(), Some(("user", "password")));
        let own = access(&[("ca", "/other"), ("key", "/own")]).or(&general);
        assert_eq!((own.ca, own.cert), (Some("/other".into()), None));
    }

    #[test]
    fn each_unusable_value_is_refused_and_none_that_may_be_a_secret_is_taken() {
        let refused = |name: &str, text: &str| {
            let part = PARTS.iter().find(|part| part.name == name).unwrap();
            (part.set)(&mut Access::default(), text)
                .unwrap_err()
                .to_string()
        };
        for (name, text, why) in [
            ("password", "hush", ValueError::NotSecret),
            ("password", "file:", ValueError::NotSecret),
            ("headers", "x-a=hush", ValueError::NotSecret),
            ("headers", "hush", ValueError::NotHeader),
            ("headers", "a b=env:X", ValueError::NotHeader),
            ("headers", "host=env:X", ValueError::OwnHeader),
            ("headers", "x-a=env:X,X-A=env:Y", ValueError::HeaderTwice),
            ("server_name", "a:1", ValueError::NotHost),
            ("user", "a:b", ValueError::NotUser),
            ("max_in_flight", "1", ValueError::NotOne),
            ("group", "a b", ValueError::NotName),
        ] {
            assert_eq!(refused(name, text), why.to_string(), "{name} {text}");
            assert!(!why.to_string().contains("hush"));
        }
    }
}
