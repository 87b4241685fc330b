//! The versions of HTTP that are spoken.

use std::fmt;

/// What is spoken on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// One request at a time.
    Http1,
    /// Several requests at one time.
    Http2,
}

impl Protocol {
    /// Its name in a handshake of TLS (RFC 7301).
    pub(crate) fn id(self) -> &'static [u8] {
        match self {
            Self::Http1 => b"http/1.1",
            Self::Http2 => b"h2",
        }
    }

    /// What a handshake came to; who agrees on nothing speaks HTTP/1.1.
    pub(crate) fn agreed(id: Option<&[u8]>) -> Self {
        match id {
            Some(id) if id == Self::Http2.id() => Self::Http2,
            Some(_) | None => Self::Http1,
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http1 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
        })
    }
}
