//! The pdbmux binary.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use pdbmux::cli::{self, Cli, Job};
use pdbmux::config::{Config, Environment, LogFormat};
use pdbmux::listener::{Audience, Listener};
use pdbmux::names::Names;
use pdbmux::{daemon, demo};
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let serve = |job| match job {
        Job::Serve { config, notes } => serve(config, &notes),
        Job::Demo { config } => demo(config),
    };
    match cli.run(&Environment::of_process(), &mut io::stdout(), serve) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            // Where standard error is gone there is nobody to tell.
            let _ = writeln!(io::stderr(), "pdbmux: {why}");
            why.exit_code()
        }
    }
}

#[tokio::main]
async fn serve(config: Config, notes: &[String]) -> anyhow::Result<()> {
    init_log(&config);
    for note in notes {
        tracing::warn!("{note}");
    }
    let shutdown = cli::shutdown().context("cannot wait for signals")?;
    let listeners = Listener::open_all(&config, &Names::of_system()).await?;
    for listener in &listeners {
        let address = listener.socket.local_addr()?;
        match listener.audience {
            Audience::Clients => tracing::info!("listening on {address}"),
            Audience::Operators => tracing::info!("telling operators on {address}"),
        }
    }
    daemon::run(config, listeners, shutdown).await;
    Ok(())
}

#[tokio::main]
async fn demo(config: Config) -> anyhow::Result<()> {
    init_log(&config);
    let stop = cli::shutdown().context("cannot wait for signals")?;
    let at = config.listen.clone();
    let Listener {
        socket: listener, ..
    } = Listener::open(at, Audience::Clients, &Names::of_system()).await?;
    let proxy = |samples: Vec<_>, listener, shutdown| {
        pdbmux::run(
            Config {
                backends: samples,
                ..config
            },
            listener,
            shutdown,
        )
    };
    Ok(demo::run(
        listener,
        demo::stdin_lines(),
        &mut io::stdout(),
        stop,
        proxy,
    )
    .await?)
}

fn init_log(config: &Config) {
    let log = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_env_filter(EnvFilter::new(&config.log_level));
    match config.log_format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().init(),
    }
}
