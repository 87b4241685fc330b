//! pdbmux: one PuppetDB v4 query API in front of several PuppetDBs.

mod cache;
pub mod certificate;
pub mod check;
pub mod cli;
mod collector;
pub mod config;
pub mod core_dumps;
pub mod daemon;
pub mod demo;
pub mod descriptors;
pub mod drift;
mod flight;
pub mod freed_memory;
mod gzip;
mod http;
pub mod listener;
pub mod log;
pub mod metrics;
pub mod names;
mod request;
mod spans;
pub mod upstream;
mod work;

pub use http::admin::page;

use std::future::Future;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::mpsc;

pub use crate::http::DoorError;
use config::Config;
use daemon::{Order, Outside};
use listener::{Audience, Listener};

/// Reads the files that say who is let in; what is wrong with the first that cannot be used, in one
/// sentence.
pub fn check_door(config: &Config) -> Result<(), DoorError> {
    http::Door::of(config).check()
}

/// Serves clients on `listener`, which the first address of `listen` stands for, until `shutdown`, then
/// lets the answers under way end, for as long as the configuration allows, which is not read again.
pub async fn run(
    config: Config,
    listener: impl Into<Arc<TcpListener>>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) {
    let at = config.listen.first().cloned();
    let listeners = at.map(|at| Listener {
        at,
        audience: Audience::Clients,
        socket: listener.into(),
    });
    let (tell, orders) = mpsc::channel(1);
    tokio::spawn(async move {
        tokio::select! {
            () = shutdown => {}
            () = tell.closed() => return,
        }
        // That it is gone is as good an order.
        let _ = tell.send(Order::Stop).await;
    });
    let outside = Outside::ordering(orders);
    daemon::run(config, listeners.into_iter().collect(), outside).await;
}
