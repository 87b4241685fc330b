//! `healthcheck`: asks the pdbmux of the same configuration how it is, for containers without a
//! shell.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use http::header::{HOST, HeaderValue};
use http::{Request, StatusCode, Uri};
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::runtime;
use tokio::time::timeout;

use crate::config::{Config, Listen, plain};
use crate::names::{LookupError, Names};

/// Both questions are answered at once, or not at all.
const PATIENCE: Duration = Duration::from_secs(3);

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    /// Whether it serves.
    Live,
    /// Whether it wants requests.
    Ready,
}

impl Question {
    fn path(self) -> &'static str {
        match self {
            Self::Live => "/livez",
            Self::Ready => "/readyz",
        }
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Live => "live",
            Self::Ready => "ready",
        })
    }
}

/// Why pdbmux is not taken for well.
#[derive(Debug, thiserror::Error)]
pub enum HealthcheckError {
    /// Only TLS is spoken, and this machine may have no certificate for that.
    #[error("nothing is served without TLS that could be asked: set admin_listen, or listen too")]
    Nowhere,
    /// The configuration leaves the port to the system.
    #[error("listen {0} has no fixed port that could be asked")]
    NoPort(Listen),
    /// The host of `listen` has no address.
    #[error("listen {listen} cannot be asked: {why}")]
    NoAddress {
        /// The configured address.
        listen: Listen,
        /// Why not.
        why: LookupError,
    },
    /// Nobody listens.
    #[error("pdbmux is not reached on {listen}: {}", plain(.why))]
    Unreached {
        /// The configured address.
        listen: Listen,
        /// What the system said.
        why: io::Error,
    },
    /// Somebody listens, and no HTTP came back.
    #[error("pdbmux on {address} does not answer {path}: {why}")]
    Unanswered {
        /// Where.
        address: SocketAddr,
        /// What was asked.
        path: &'static str,
        /// What went wrong.
        why: hyper::Error,
    },
    /// Nothing came in time.
    #[error("pdbmux does not answer {path} on {listen} within {PATIENCE:?}")]
    Silent {
        /// The configured address.
        listen: Listen,
        /// What was asked.
        path: &'static str,
    },
    /// The answer is no.
    #[error("pdbmux on {address} answers {path} with status {}", .status.as_u16())]
    Unwell {
        /// Where.
        address: SocketAddr,
        /// What was asked.
        path: &'static str,
        /// The answer.
        status: StatusCode,
    },
    /// The system gives this process nothing to wait with.
    #[error("cannot ask: {}", plain(.0))]
    Runtime(io::Error),
}

/// Asks the pdbmux of a configuration, at the first address that it serves without TLS. What is well is
/// one sentence.
pub(super) fn run(config: &Config, question: Question) -> Result<String, HealthcheckError> {
    let mut plain = config.listen.iter().chain(&config.admin_listen);
    let listen = plain.next().ok_or(HealthcheckError::Nowhere)?;
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(HealthcheckError::Runtime)?;
    let asked = runtime.block_on(async { timeout(PATIENCE, ask(listen, question)).await });
    let address = asked.map_err(|_| HealthcheckError::Silent {
        listen: listen.clone(),
        path: question.path(),
    })??;
    Ok(format!("pdbmux on {address} is {question}"))
}

async fn ask(listen: &Listen, question: Question) -> Result<SocketAddr, HealthcheckError> {
    let path = question.path();
    let (address, stream) = connect(listen).await?;
    let status = status(stream, path).await;
    match status.map_err(|why| HealthcheckError::Unanswered { address, path, why })? {
        StatusCode::OK => Ok(address),
        status => Err(HealthcheckError::Unwell {
            address,
            path,
            status,
        }),
    }
}

async fn connect(listen: &Listen) -> Result<(SocketAddr, TcpStream), HealthcheckError> {
    if listen.port == 0 {
        return Err(HealthcheckError::NoPort(listen.clone()));
    }
    let no_address = |why| HealthcheckError::NoAddress {
        listen: listen.clone(),
        why,
    };
    let hosts = match &listen.host {
        Some(host) => Names::of_system()
            .addresses(host)
            .await
            .map_err(no_address)?,
        None => vec![Ipv6Addr::UNSPECIFIED.into()],
    };
    let mut outcome = Err(io::ErrorKind::InvalidInput.into());
    for host in hosts.into_iter().flat_map(reachable) {
        let address = SocketAddr::new(host, listen.port);
        outcome = TcpStream::connect(address)
            .await
            .map(|stream| (address, stream));
        if outcome.is_ok() {
            break;
        }
    }
    outcome.map_err(|why| HealthcheckError::Unreached {
        listen: listen.clone(),
        why,
    })
}

/// Where a listener on `address` is reached from its own machine. One on every IPv6 interface takes
/// IPv4 too, unless the machine says otherwise.
fn reachable(address: IpAddr) -> Vec<IpAddr> {
    let (v4, v6) = (Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into());
    match address {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => vec![v4],
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => vec![v4, v6],
        one => vec![one],
    }
}

async fn status(stream: TcpStream, path: &'static str) -> Result<StatusCode, hyper::Error> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // It ends with the runtime.
    tokio::spawn(connection);
    let mut request = Request::new(Empty::<Bytes>::new());
    *request.uri_mut() = Uri::from_static(path);
    let headers = request.headers_mut();
    headers.insert(HOST, HeaderValue::from_static("localhost"));
    Ok(sender.send_request(request).await?.status())
}
