//! pdbmux: one PuppetDB v4 query API in front of several PuppetDBs.

mod cache;
pub mod cli;
pub mod config;
pub mod demo;
mod flight;
mod gzip;
mod http;
pub mod names;
pub mod upstream;
mod work;

use std::future::Future;

use tokio::net::TcpListener;

use crate::http::{App, Patience};
use config::Config;

/// Serves `listener` until `shutdown`, then lets the answers under way end, for as long as the
/// configuration allows.
///
/// The listener is served at once, whatever state the backends are in.
pub async fn run(
    config: Config,
    listener: TcpListener,
    shutdown: impl Future<Output = ()> + Send + 'static,
) {
    let patience = Patience::of(&config);
    let app = App::new(&config);
    let mut probes = upstream::prober::start(app.upstream(), &config);
    http::serve(app, listener, patience, shutdown).await;
    probes.shutdown().await;
}
