//! How clients come in: by TLS, who may, and what they may take of pdbmux at one time.

pub(super) mod keys;
mod origins;

use std::path::PathBuf;
use std::time::Duration;

use super::Listen;
use super::value::ValueError;

pub use origins::Origins;

/// The least that hyper can be held to, in bytes.
const LEAST_HEAD: usize = 8 << 10;

/// What holds for clients and their requests. The keys have the names of the fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoorConfig {
    /// Where to serve with TLS.
    pub tls_listen: Vec<Listen>,
    /// The certificate that clients are shown, in a PEM file with those that it leads to.
    pub tls_cert: Option<PathBuf>,
    /// The private key of that, in a PEM file.
    pub tls_key: Option<PathBuf>,
    /// The certificates that a client's own must lead to, in a PEM file.
    pub tls_client_ca: Option<PathBuf>,
    /// The names that a client's certificate may have, in a file.
    pub tls_allowlist: Option<PathBuf>,
    /// The tokens that clients may show, in a file.
    pub tokens: Option<PathBuf>,
    /// The users that clients may be, with the hashes of their passwords, in a file.
    pub users: Option<PathBuf>,
    /// The path that all is served below, with a slash before and none behind it.
    pub base_path: Option<String>,
    /// Whose pages may read answers in browsers.
    pub cors_origins: Origins,
    /// Requests that are answered at one time; 0 is without bound.
    pub max_in_flight: usize,
    /// Requests that may wait for a place at one time.
    pub queue_length: usize,
    /// Bound on that wait.
    pub queue_timeout: Duration,
    /// Requests of one address that are answered or wait at one time; 0 is without bound.
    pub max_per_client: usize,
    /// Ceiling of a request's head, in bytes; at least 8192.
    pub max_head_bytes: usize,
}

impl Default for DoorConfig {
    fn default() -> Self {
        Self {
            tls_listen: Vec::new(),
            tls_cert: None,
            tls_key: None,
            tls_client_ca: None,
            tls_allowlist: None,
            tokens: None,
            users: None,
            base_path: None,
            cors_origins: Origins::Nobody,
            max_in_flight: 0,
            queue_length: 100,
            queue_timeout: Duration::from_secs(1),
            max_per_client: 0,
            // hyper's own.
            max_head_bytes: 417_792,
        }
    }
}

impl DoorConfig {
    /// A key that is set, and one that it needs and that is not.
    pub(super) fn lacking(&self) -> Option<(&'static str, &'static str)> {
        let listens = !self.tls_listen.is_empty();
        let needs = [
            ("tls_listen", listens, "tls_cert", self.tls_cert.is_some()),
            ("tls_listen", listens, "tls_key", self.tls_key.is_some()),
            ("tls_cert", self.tls_cert.is_some(), "tls_listen", listens),
            ("tls_key", self.tls_key.is_some(), "tls_listen", listens),
            (
                "tls_allowlist",
                self.tls_allowlist.is_some(),
                "tls_client_ca",
                self.tls_client_ca.is_some(),
            ),
            (
                "tls_client_ca",
                self.tls_client_ca.is_some(),
                "tls_listen",
                listens,
            ),
        ];
        let lacking = needs.into_iter().find(|(_, set, _, there)| *set && !there);
        lacking.map(|(key, _, lacking, _)| (key, lacking))
    }
}

fn show_file(file: Option<&PathBuf>) -> String {
    file.map_or_else(String::new, |path| path.display().to_string())
}

fn parse_head(bytes: usize) -> Result<usize, ValueError> {
    if bytes < LEAST_HEAD {
        return Err(ValueError::TooSmall(LEAST_HEAD));
    }
    Ok(bytes)
}
