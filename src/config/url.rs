//! The base URL of a backend (R286).

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};

use super::listen::{is_host, port_number};

/// `http(s)://host[:port][/prefix]`, in lower case up to the prefix and without a trailing slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl {
    scheme: Scheme,
    authority: Authority,
    prefix: String,
}

/// Why a text is no base URL. Reads on after the value it speaks of, and never repeats any of it:
/// a wrong URL may hold a password anywhere.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// Control characters, spaces and letters outside ASCII.
    #[error("holds a character that no URL may hold")]
    BadCharacter,
    /// No `://`.
    #[error("has no scheme: write http://host:port or https://host:port")]
    NoScheme,
    /// A scheme other than http and https.
    #[error("has a scheme other than http and https")]
    OtherScheme,
    /// A user or a password before the host.
    #[error("holds credentials: pdbmux sends none, so leave out everything up to the @")]
    Credentials,
    /// A `?`.
    #[error("holds a query (?): only scheme, host, port and a path prefix make sense")]
    Query,
    /// A `#`.
    #[error("holds a fragment (#): only scheme, host, port and a path prefix make sense")]
    Fragment,
    /// Nothing where the host belongs.
    #[error("has no host")]
    NoHost,
    /// A host that is no name and no address.
    #[error("has a host that is neither a name nor an address (IPv6 goes in brackets)")]
    BadHost,
    /// A port out of range or not a number.
    #[error("has a port that is not a number from 1 to 65535")]
    BadPort,
    /// A path that cannot be sent.
    #[error("has a path that cannot be sent as it is")]
    BadPath,
}

impl BaseUrl {
    /// `http` or `https`.
    pub fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    /// Whether connections are encrypted.
    pub fn is_secure(&self) -> bool {
        self.scheme == Scheme::HTTPS
    }

    /// Host and, where one was given, port.
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// The path before every request's own: empty, or `/` and more without a slash at the end.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Where connections lead to.
    pub fn origin(&self) -> Result<Uri, http::Error> {
        Uri::builder()
            .scheme(self.scheme.clone())
            .authority(self.authority.clone())
            .path_and_query("/")
            .build()
    }

    /// What a request's first line names. `path_and_query` starts with `/` and is kept byte for byte;
    /// it fails only where that is no path.
    pub fn target(&self, path_and_query: &str) -> Result<Uri, http::Error> {
        Uri::builder()
            .path_and_query(format!("{}{path_and_query}", self.prefix))
            .build()
    }

    /// What a request's `Host` says: without the port where that is the scheme's own.
    pub fn host_and_port(&self) -> String {
        let host = self.authority.host();
        match (self.port(), &self.scheme) {
            (80, scheme) if *scheme == Scheme::HTTP => host.to_owned(),
            (443, scheme) if *scheme == Scheme::HTTPS => host.to_owned(),
            (port, _) => format!("{host}:{port}"),
        }
    }

    /// Every spelling of this address that must not reach a client (R018), longest first so that
    /// one pass of replacing leaves no rest: URL, `host:port`, host.
    pub fn spellings(&self) -> Vec<String> {
        let host = self.authority.host();
        let port = self.port();
        let mut all = vec![
            self.to_string(),
            format!("{}://{}", self.scheme, self.authority),
            format!("{}://{host}:{port}{}", self.scheme, self.prefix),
            format!("{}://{host}:{port}", self.scheme),
            format!("{host}:{port}"),
            host.to_owned(),
        ];
        if let Some(v6) = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')) {
            all.push(v6.to_owned());
        }
        all.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        all.dedup();
        all
    }

    /// The port given, else the scheme's own.
    pub fn port(&self) -> u16 {
        let default = if self.scheme == Scheme::HTTPS {
            443
        } else {
            80
        };
        self.authority.port_u16().unwrap_or(default)
    }
}

impl FromStr for BaseUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        if !text.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(UrlError::BadCharacter);
        }
        let (scheme, rest) = text.split_once("://").ok_or(UrlError::NoScheme)?;
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => Scheme::HTTP,
            "https" => Scheme::HTTPS,
            "" => return Err(UrlError::NoScheme),
            _ => return Err(UrlError::OtherScheme),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.contains('@') {
            return Err(UrlError::Credentials);
        }
        // The fragment first: a question mark behind the # is part of it.
        match path.find(['?', '#']).map(|at| path.as_bytes()[at]) {
            Some(b'?') => return Err(UrlError::Query),
            Some(_) => return Err(UrlError::Fragment),
            None => {}
        }
        let prefix = path.trim_end_matches('/');
        if !prefix.is_empty() {
            PathAndQuery::try_from(prefix).map_err(|_| UrlError::BadPath)?;
        }
        Ok(Self {
            scheme,
            authority: parse_authority(authority)?,
            prefix: prefix.to_owned(),
        })
    }
}

fn parse_authority(text: &str) -> Result<Authority, UrlError> {
    // A colon inside the brackets of an IPv6 address starts no port.
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    if host.is_empty() {
        return Err(UrlError::NoHost);
    }
    let known = match host.strip_prefix('[').and_then(|h| h.strip_suffix(']')) {
        Some(v6) => v6.parse::<Ipv6Addr>().is_ok(),
        None => is_host(host),
    };
    if !known {
        return Err(UrlError::BadHost);
    }
    if let Some(port) = port {
        port_number(port)
            .filter(|port| *port > 0)
            .ok_or(UrlError::BadPort)?;
    }
    Authority::try_from(text.to_ascii_lowercase()).map_err(|_| UrlError::BadHost)
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme, self.authority, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> BaseUrl {
        text.parse().unwrap()
    }

    #[test]
    fn r286_http_and_https_are_taken_and_written_back_plainly() {
        for (text, plain) in [
            (
                "http://puppetdb1.example.com:8080",
                "http://puppetdb1.example.com:8080",
            ),
            (
                "https://puppetdb2.example.com",
                "https://puppetdb2.example.com",
            ),
            ("HTTP://PDB.Example.com/", "http://pdb.example.com"),
            ("http://10.0.0.1:1/Pre/fix//", "http://10.0.0.1:1/Pre/fix"),
            ("https://[2001:DB8::1]:8081", "https://[2001:db8::1]:8081"),
            ("http://[::1]", "http://[::1]"),
            ("http://pdb_1/a@b", "http://pdb_1/a@b"),
        ] {
            assert_eq!(url(text).to_string(), plain);
        }
    }

    #[test]
    fn r286_each_unusable_url_is_refused_for_its_own_reason() {
        for (text, why) in [
            ("", UrlError::NoScheme),
            ("puppetdb1:8080", UrlError::NoScheme),
            ("//puppetdb1", UrlError::NoScheme),
            ("://puppetdb1", UrlError::NoScheme),
            ("ftp://puppetdb1", UrlError::OtherScheme),
            ("unix:///run/pdb.sock", UrlError::OtherScheme),
            ("http://user:secret@h", UrlError::Credentials),
            ("http://@h", UrlError::Credentials),
            ("http://h?a=b", UrlError::Query),
            ("http://h/p?a#b", UrlError::Query),
            ("http://h/#top?x", UrlError::Fragment),
            ("http://", UrlError::NoHost),
            ("http://:80", UrlError::NoHost),
            ("http:///path", UrlError::NoHost),
            ("http://::1:80", UrlError::BadHost),
            ("http://[::1", UrlError::BadHost),
            ("http://[::1]80", UrlError::BadHost),
            ("http://[host]", UrlError::BadHost),
            (r"http://h\x", UrlError::BadHost),
            ("http://h%20", UrlError::BadHost),
            ("http://h:", UrlError::BadPort),
            ("http://h:0", UrlError::BadPort),
            ("http://h:65536", UrlError::BadPort),
            ("http://h:+80", UrlError::BadPort),
            ("http://h:pass", UrlError::BadPort),
            ("http://h\n", UrlError::BadCharacter),
            ("http://h /", UrlError::BadCharacter),
            ("http://h\u{7f}", UrlError::BadCharacter),
            ("http://pdb.exämple", UrlError::BadCharacter),
            ("http://h/a<b", UrlError::BadPath),
        ] {
            assert_eq!(text.parse::<BaseUrl>(), Err(why), "{text}");
        }
    }

    #[test]
    fn a_request_is_put_behind_the_prefix_byte_for_byte() {
        let raw = "/pdb/query/v4/%2e%2e/x//y?query=%5B%5D&a";
        let target = url("https://h:8081/pre/").target(raw).unwrap();
        assert_eq!(target.to_string(), format!("/pre{raw}"));
        let target = url("http://h").target("/").unwrap();
        assert_eq!(target.to_string(), "/");
    }

    #[test]
    fn a_connection_leads_to_the_host_and_a_request_names_it_without_the_usual_port() {
        for (text, origin, host) in [
            ("http://h/pre", "http://h/", "h"),
            ("http://h:80", "http://h:80/", "h"),
            ("http://h:443", "http://h:443/", "h:443"),
            ("https://h:443", "https://h:443/", "h"),
            ("https://[::1]:8081", "https://[::1]:8081/", "[::1]:8081"),
        ] {
            let url = url(text);
            assert_eq!(url.origin().unwrap().to_string(), origin);
            assert_eq!(url.host_and_port(), host, "{text}");
        }
    }

    #[test]
    fn every_spelling_of_the_address_is_listed_longest_first() {
        assert_eq!(
            url("https://pdb/pre").spellings(),
            [
                "https://pdb:443/pre",
                "https://pdb/pre",
                "https://pdb:443",
                "https://pdb",
                "pdb:443",
                "pdb",
            ]
        );
        assert_eq!(
            url("http://[::1]:8080").spellings(),
            ["http://[::1]:8080", "[::1]:8080", "[::1]", "::1"]
        );
    }
}
