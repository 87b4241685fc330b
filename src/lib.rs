//! pdbmux: one PuppetDB v4 query API in front of several PuppetDBs.

pub mod cli;
pub mod config;

use config::Config;

/// Why serving ended.
#[derive(Debug, thiserror::Error)]
pub enum RunError {}

/// Serves until `shutdown` is done.
pub async fn run(
    _config: Config,
    _listener: tokio::net::TcpListener,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), RunError> {
    shutdown.await;
    Ok(())
}
