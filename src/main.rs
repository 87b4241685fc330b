//! The pdbmux binary.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use pdbmux::cli::{self, Cli, Command};
use pdbmux::config::{self, Config, Environment, Flags, LogFormat};
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let env = Environment::of_process();
    match cli.command.unwrap_or_default() {
        Command::Serve => serve(&cli.flags, &env),
        command => command
            .execute(&cli.flags, &env, &mut io::stdout().lock())
            .map_or_else(
                |why| complain(&why, why.exit_code()),
                |()| ExitCode::SUCCESS,
            ),
    }
}

/// Writes the one sentence an operator gets.
fn complain(why: &dyn Display, code: ExitCode) -> ExitCode {
    // Where standard error is gone there is nobody to tell.
    let _ = writeln!(io::stderr(), "pdbmux: {why}");
    code
}

fn serve(flags: &Flags, env: &Environment) -> ExitCode {
    let (config, notes) = match config::load_to_serve(flags, env) {
        Ok(loaded) => loaded,
        Err(why) => return complain(&why, ExitCode::from(2)),
    };
    init_log(&config);
    for note in notes {
        tracing::warn!("{note}");
    }
    match run(config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => complain(&format!("{why:#}"), ExitCode::FAILURE),
    }
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

#[tokio::main]
async fn run(config: Config) -> anyhow::Result<()> {
    let shutdown = cli::shutdown().context("cannot wait for signals")?;
    let listener = cli::bind(&config.listen).await?;
    pdbmux::run(config, listener, shutdown).await;
    Ok(())
}
