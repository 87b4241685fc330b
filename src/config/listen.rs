//! The address to serve on (R269).

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

/// An address to listen on: `:8080`, `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// Host name or address, an IPv6 one without its brackets; `None` means every interface.
    pub host: Option<String>,
    /// TCP port; 0 lets the system choose.
    pub port: u16,
    /// How what is sent there is.
    pub transport: Transport,
}

/// How clients and pdbmux speak with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transport {
    /// As it is.
    Plain,
    /// Encrypted.
    Tls,
}

/// Why a text is no address to listen on. Reads on after the value it speaks of.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ListenError {
    /// No colon, so no port.
    #[error("has no port: write host:port, or :port for every interface")]
    NoPort,
    /// The part after the last colon.
    #[error("has no port from 0 to 65535 after its last colon")]
    BadPort,
    /// More than one colon outside brackets.
    #[error("has an IPv6 host without brackets: write [::1]:8080")]
    Unbracketed,
    /// Brackets around something else, or characters that no host has.
    #[error("has a host that is neither a name nor an address")]
    BadHost,
}

impl Listen {
    /// Whether what is sent to one comes to the other. A port that the system chooses is another each
    /// time.
    pub fn is_place_of(&self, other: &Self) -> bool {
        self.port != 0 && (&self.host, self.port) == (&other.host, other.port)
    }
}

impl FromStr for Listen {
    type Err = ListenError;

    fn from_str(text: &str) -> Result<Self, ListenError> {
        let (host, port) = text.rsplit_once(':').ok_or(ListenError::NoPort)?;
        if host.starts_with('[') && !host.ends_with(']') {
            return Err(ListenError::NoPort);
        }
        let host = match host.strip_prefix('[').and_then(|h| h.strip_suffix(']')) {
            Some(v6) => {
                v6.parse::<Ipv6Addr>().map_err(|_| ListenError::BadHost)?;
                Some(v6)
            }
            None if host.contains(':') => return Err(ListenError::Unbracketed),
            None if host.is_empty() => None,
            None if is_host(host) => Some(host),
            None => return Err(ListenError::BadHost),
        };
        Ok(Self {
            host: host.map(str::to_owned),
            port: port_number(port).ok_or(ListenError::BadPort)?,
            transport: Transport::Plain,
        })
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = self.port;
        match self.host.as_deref() {
            None => write!(f, ":{port}"),
            Some(v6) if v6.contains(':') => write!(f, "[{v6}]:{port}"),
            Some(host) => write!(f, "{host}:{port}"),
        }
    }
}

/// Reads addresses with commas between them; blanks around one are dropped.
pub(super) fn parse_list(text: &str) -> Result<Vec<Listen>, ListenError> {
    text.split(',').map(|one| one.trim().parse()).collect()
}

/// The same for addresses where TLS is spoken.
pub(super) fn parse_tls_list(text: &str) -> Result<Vec<Listen>, ListenError> {
    let mut list = parse_list(text)?;
    for at in &mut list {
        at.transport = Transport::Tls;
    }
    Ok(list)
}

/// Writes addresses as they are read.
pub(super) fn show_list(list: &[Listen]) -> String {
    let all: Vec<_> = list.iter().map(Listen::to_string).collect();
    all.join(",")
}

/// Whether a text could be a host name or an IPv4 address.
pub(super) fn is_host(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
}

/// Reads a port; digits only, since `u16::from_str` would take a plus sign too.
pub(super) fn port_number(text: &str) -> Option<u16> {
    let plain = text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r269_an_address_keeps_its_spelling() {
        for (text, host, port) in [
            (":8080", None, 8080),
            ("127.0.0.1:9", Some("127.0.0.1"), 9),
            ("[::1]:8080", Some("::1"), 8080),
            ("[::]:0", Some("::"), 0),
            ("localhost:65535", Some("localhost"), 65535),
        ] {
            let listen: Listen = text.parse().unwrap();
            assert_eq!((listen.host.as_deref(), listen.port), (host, port));
            assert_eq!(listen.to_string(), text);
        }
    }

    #[test]
    fn r269_there_can_be_several_addresses() {
        let list = parse_list(":8080, [::1]:9 ,localhost:0").unwrap();
        assert_eq!(show_list(&list), ":8080,[::1]:9,localhost:0");
        assert_eq!(parse_list(":8080,"), Err(ListenError::NoPort));
        assert_eq!(parse_list(":8080,:x"), Err(ListenError::BadPort));
    }

    #[test]
    fn r269_a_bad_address_is_refused_for_its_own_reason() {
        use ListenError::{BadHost, BadPort, NoPort, Unbracketed};
        for (text, why) in [
            ("8080", NoPort),
            ("", NoPort),
            ("[::1]", NoPort),
            ("[::1", NoPort),
            (":", BadPort),
            (":http", BadPort),
            (":65536", BadPort),
            (":+80", BadPort),
            ("::1:8080", Unbracketed),
            ("::8080", Unbracketed),
            ("[localhost]:80", BadHost),
            ("[]:80", BadHost),
            ("a b:80", BadHost),
            ("http//x:80", BadHost),
        ] {
            assert_eq!(text.parse::<Listen>(), Err(why), "{text}");
        }
    }
}
