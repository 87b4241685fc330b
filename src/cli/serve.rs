//! What `serve` needs of the system before it can begin: the listener and the signals.

use std::future::Future;
use std::io;

use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::config::{Listen, plain};

/// The address could not be had.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {listen}: {}", plain(.why))]
pub struct BindError {
    listen: Listen,
    why: io::Error,
}

/// Opens the listener of an address (R269).
pub async fn bind(listen: &Listen) -> Result<TcpListener, BindError> {
    let mut outcome = Err(io::ErrorKind::InvalidInput.into());
    for candidate in listen.candidates() {
        outcome = TcpListener::bind(candidate).await;
        // Another program on the port is the answer; a missing IPv6 is a reason to try IPv4.
        match &outcome {
            Err(why) if why.kind() != io::ErrorKind::AddrInUse => {}
            Ok(_) | Err(_) => break,
        }
    }
    outcome.map_err(|why| BindError {
        listen: listen.clone(),
        why,
    })
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

    #[tokio::test]
    async fn r269_every_interface_means_ipv4_too() {
        let listener = bind(&":0".parse().unwrap()).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::net::TcpStream::connect(("127.0.0.1", port))
            .await
            .unwrap();
    }

    #[tokio::test]
    async fn an_address_in_use_is_one_sentence() {
        let held = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let text = held.local_addr().unwrap().to_string();
        let why = bind(&text.parse().unwrap()).await.unwrap_err();
        assert_eq!(
            why.to_string(),
            format!("cannot listen on {text}: the address is in use")
        );
    }
}
