//! What `serve` needs of the system before it can begin: the listener and the signals.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::config::{Listen, plain};
use crate::names::{LookupError, Names};

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

/// Opens the listener of an address (R269).
pub async fn bind(listen: &Listen, names: &Names) -> Result<TcpListener, BindError> {
    open(listen, names).await.map_err(|why| BindError {
        listen: listen.clone(),
        why,
    })
}

async fn open(listen: &Listen, names: &Names) -> Result<TcpListener, NoListener> {
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

/// Resolves at the first SIGTERM or SIGINT. Both are caught from this call on.
pub fn shutdown() -> io::Result<impl Future<Output = ()> + Send + 'static> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn listener(text: &str) -> Result<TcpListener, BindError> {
        bind(&text.parse().unwrap(), &Names::of_system()).await
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
