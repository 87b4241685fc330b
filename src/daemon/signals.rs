//! Orders from the system.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::Order;

/// What the process is told by signals: SIGTERM and SIGINT stop it, SIGHUP makes it read its
/// configuration again. All are caught from this call on.
pub fn orders() -> io::Result<mpsc::Receiver<Order>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let (tell, orders) = mpsc::channel(1);
    tokio::spawn(async move {
        loop {
            let order = tokio::select! {
                _ = terminate.recv() => Order::Stop,
                _ = interrupt.recv() => Order::Stop,
                _ = hangup.recv() => Order::Reload,
            };
            if tell.send(order).await.is_err() {
                return;
            }
        }
    });
    Ok(orders)
}
