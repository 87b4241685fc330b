//! Addresses to serve on: whom each is for, and how it is opened.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use tokio::net::TcpListener;

use crate::config::{Config, Listen, plain};
use crate::names::{LookupError, Names};

/// Whom an address is for, and so what is answered there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Audience {
    /// Clients of PuppetDB: the merged API.
    Clients,
    /// Those who run pdbmux: how it is, and never the API.
    Operators,
}

/// An address that is listened on.
#[derive(Debug)]
pub struct Listener {
    /// The address as it is configured.
    pub at: Listen,
    /// Whom it is for.
    pub audience: Audience,
    /// The socket; what the system made of port 0 is told by this. It is closed once nobody has it.
    pub socket: Arc<TcpListener>,
}

/// The address could not be had.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {listen}: {why}")]
pub struct BindError {
    listen: Listen,
    why: NoListener,
}

#[derive(Debug, thiserror::Error)]
enum NoListener {
    #[error(transparent)]
    Unknown(#[from] LookupError),
    #[error("{}", plain(.0))]
    Refused(#[from] io::Error),
}

/// Every address that a configuration names; those of clients come first.
pub fn configured(config: &Config) -> Vec<(Listen, Audience)> {
    let clients = config.listen.iter().chain(&config.door.tls_listen);
    let clients = clients.map(|at| (at, Audience::Clients));
    let operators = config.admin_listen.iter();
    let operators = operators.map(|at| (at, Audience::Operators));
    let all = clients.chain(operators);
    all.map(|(at, audience)| (at.clone(), audience)).collect()
}

impl Listener {
    /// Opens an address (R269).
    pub async fn open(at: Listen, audience: Audience, names: &Names) -> Result<Self, BindError> {
        match bind(&at, names).await {
            Ok(socket) => Ok(Self {
                at,
                audience,
                socket: Arc::new(socket),
            }),
            Err(why) => Err(BindError { listen: at, why }),
        }
    }

    /// Opens every address that a configuration names, or none.
    pub async fn open_all(config: &Config, names: &Names) -> Result<Vec<Self>, BindError> {
        let mut open = Vec::new();
        for (at, audience) in configured(config) {
            open.push(Self::open(at, audience, names).await?);
        }
        Ok(open)
    }
}

async fn bind(listen: &Listen, names: &Names) -> Result<TcpListener, NoListener> {
    let mut outcome = Err(io::ErrorKind::InvalidInput.into());
    for interface in interfaces(listen, names).await? {
        outcome = TcpListener::bind((interface, listen.port)).await;
        // Another program on the port is the answer; a missing IPv6 is a reason to try IPv4.
        match &outcome {
            Err(why) if why.kind() != io::ErrorKind::AddrInUse => {}
            Ok(_) | Err(_) => break,
        }
    }
    Ok(outcome?)
}

/// The addresses to bind, in the order to try. Every interface means one IPv6 socket that takes
/// IPv4 as well, and IPv4 alone where the machine has no IPv6.
async fn interfaces(listen: &Listen, names: &Names) -> Result<Vec<IpAddr>, LookupError> {
    match &listen.host {
        Some(host) => names.addresses(host).await,
        None => Ok(vec![
            Ipv6Addr::UNSPECIFIED.into(),
            Ipv4Addr::UNSPECIFIED.into(),
        ]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn listener(text: &str) -> Result<Arc<TcpListener>, BindError> {
        let at = text.parse().unwrap();
        let opened = Listener::open(at, Audience::Clients, &Names::of_system()).await;
        opened.map(|listener| listener.socket)
    }

    #[tokio::test]
    async fn r269_a_host_can_be_a_name() {
        let listener = listener("localhost:0").await.unwrap();
        assert!(listener.local_addr().unwrap().ip().is_loopback());
    }

    #[tokio::test]
    async fn r269_every_interface_means_ipv4_too() {
        let listener = listener(":0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::net::TcpStream::connect(("127.0.0.1", port))
            .await
            .unwrap();
    }

    #[tokio::test]
    async fn an_address_in_use_is_one_sentence() {
        let held = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let text = held.local_addr().unwrap().to_string();
        let why = listener(&text).await.unwrap_err();
        assert_eq!(
            why.to_string(),
            format!("cannot listen on {text}: the address is in use")
        );
    }
}
