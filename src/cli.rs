//! The command line: what can be typed, and what each command does.

mod check;
mod drift;
mod flags;
mod healthcheck;
mod init;
mod pages;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

use crate::config::{self, Config, ConfigError, Environment, Flags, Source};
use healthcheck::Question;
use init::Present;

pub use check::{CheckArgs, ReportFormat};
pub use drift::{DriftArgs, DriftFormat};
pub use healthcheck::HealthcheckError;
pub use init::InitError;

/// Serve one PuppetDB query API in front of several PuppetDBs.
///
/// pdbmux asks all of its backends, merges what they answer and serves it as a PuppetDB would, on
/// one address. Any client of PuppetDB's v4 query API works with it.
#[derive(Debug, Parser)]
#[command(
    name = "pdbmux",
    version,
    after_help = "Run pdbmux --help for files, variables and every key of the configuration.",
    after_long_help = pages::reference(),
)]
pub struct Cli {
    /// The flags that set something, which any command takes.
    #[command(flatten)]
    pub flags: Flags,
    /// What to do; nothing means to serve.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What to do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Subcommand)]
pub enum Command {
    #[default]
    /// Serve until SIGTERM or SIGINT; what is done without a command
    Serve,
    /// Serve two sample PuppetDBs as one, to try things out
    ///
    /// Both run in this process, need nothing else, and can be stopped and restarted by typing.
    /// Serves on 127.0.0.1:8080 unless --listen says otherwise; no config file or variable counts.
    Demo,
    /// Write or show the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Ask the pdbmux of this configuration whether it is well
    ///
    /// Asks /livez at the address to listen on, on this machine. Exit status 0 means yes, 1 no.
    Healthcheck {
        /// Ask /readyz instead: whether it is in service and a backend is
        #[arg(long)]
        ready: bool,
    },
    /// Look whether each configured backend can be used, and say what stands in the way
    ///
    /// Looks at name, connection, certificates, authorization, version, clock, collation, PQL,
    /// metrics and nodes, of all backends at once. Exit status 0 means that all can be used, 1 that one
    /// cannot.
    Check(CheckArgs),
    /// List which node lives where, who owns it and why, and whose copy of it is stale
    ///
    /// Asks all backends for all nodes in any state. Exit status 0 means that all of them answered, 1
    /// that one did not, 3 that what --fail-if names is so.
    Drift(DriftArgs),
    /// Print the version
    Version,
    /// Print a completion script for a shell
    Completions {
        /// The shell to write it for
        shell: Shell,
    },
    /// Print the manual page, as roff
    Man,
}

/// What to do with the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum ConfigCommand {
    /// Write a commented config file with the defaults, and with the flags given
    ///
    /// The file goes to --config, else to PDBMUX_CONFIG, else to pdbmux/config.yaml below
    /// $XDG_CONFIG_HOME or $HOME/.config. Missing folders are made.
    Init {
        /// Replace a file that is there already
        #[arg(long)]
        force: bool,
    },
    /// Print every effective value and where it comes from
    Show {
        /// How to print it
        #[arg(long, value_enum, default_value_t = ShowFormat::Text)]
        format: ShowFormat,
    },
}

/// How `config show` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ShowFormat {
    /// Lines for people
    Text,
    /// One JSON object, with the exact origin of each value
    Json,
}

/// The shells that completions are written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// GNU Bash
    Bash,
    /// Z shell
    Zsh,
    /// fish
    Fish,
}

/// Why a command failed, as one sentence.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// `config init` could not write.
    #[error(transparent)]
    Init(#[from] InitError),
    /// The pdbmux that was asked is not well.
    #[error(transparent)]
    Healthcheck(#[from] HealthcheckError),
    /// Serving failed, or what else was to be done.
    #[error("{0:#}")]
    Serve(anyhow::Error),
    /// Standard output is gone.
    #[error("cannot print: {}", config::plain(.0))]
    Print(#[from] io::Error),
}

impl CliError {
    /// 2 for what the operator has to write otherwise, as for a mistyped flag; 1 for the rest.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Config(_) => ExitCode::from(2),
            Self::Serve(why) => why
                .downcast_ref::<Ended>()
                .map_or(ExitCode::FAILURE, |ended| ExitCode::from(ended.status)),
            Self::Init(_) | Self::Healthcheck(_) | Self::Print(_) => ExitCode::FAILURE,
        }
    }
}

/// A job that ends with an exit status of its own.
#[derive(Debug, thiserror::Error)]
#[error("{why}")]
pub struct Ended {
    /// The exit status.
    pub status: u8,
    /// One sentence.
    pub why: String,
}

/// What there is to do that takes more than the configuration.
#[derive(Debug)]
pub enum Job {
    /// The configured backends.
    Serve {
        /// What was configured.
        config: Config,
        /// Where that was read, and can be again.
        source: Source,
        /// What to tell about it in the log.
        notes: Vec<String>,
    },
    /// The sample backends.
    Demo {
        /// Everything but the backends.
        config: Config,
    },
    /// To list the nodes of the configured backends.
    Drift {
        /// What was configured.
        config: Config,
        /// What was typed.
        args: DriftArgs,
    },
    /// To look at the configured backends.
    Check {
        /// What was configured.
        config: Config,
        /// What was typed.
        args: CheckArgs,
    },
}

impl Cli {
    /// Does what was typed and prints to `out`. `serve` is given what there is to serve.
    pub fn run(
        self,
        env: &Environment,
        out: &mut dyn Write,
        serve: impl FnOnce(Job) -> anyhow::Result<()>,
    ) -> Result<(), CliError> {
        let printed = match self.command.unwrap_or_default() {
            Command::Serve => {
                let source = Source::new(self.flags, env.clone());
                let (config, notes) = source.read()?;
                let job = Job::Serve {
                    config,
                    source,
                    notes,
                };
                return serve(job).map_err(CliError::Serve);
            }
            Command::Demo => {
                let config = config::load_for_demo(&self.flags)?;
                return serve(Job::Demo { config }).map_err(CliError::Serve);
            }
            Command::Check(args) => {
                let (config, _) = config::load_to_serve(&self.flags, env)?;
                return serve(Job::Check { config, args }).map_err(CliError::Serve);
            }
            Command::Drift(args) => {
                let (config, _) = config::load_to_serve(&self.flags, env)?;
                return serve(Job::Drift { config, args }).map_err(CliError::Serve);
            }
            Command::Config(ConfigCommand::Init { force }) => {
                let present = if force {
                    Present::Replace
                } else {
                    Present::Keep
                };
                let path = init::write(&self.flags, env, present)?;
                writeln!(out, "wrote {}", path.display())
            }
            Command::Config(ConfigCommand::Show { format }) => {
                let loaded = config::load(&self.flags, env)?;
                match format {
                    ShowFormat::Text => write!(out, "{loaded}"),
                    ShowFormat::Json => writeln!(out, "{:#}", loaded.to_json()),
                }
            }
            Command::Healthcheck { ready } => {
                let question = if ready {
                    Question::Ready
                } else {
                    Question::Live
                };
                let config = config::load(&self.flags, env)?.config;
                let well = healthcheck::run(&config, question)?;
                writeln!(out, "{well}")
            }
            Command::Version => writeln!(out, "pdbmux {}", env!("CARGO_PKG_VERSION")),
            Command::Completions { shell } => out.write_all(&pages::completions(shell)),
            Command::Man => pages::man(out),
        };
        match printed.and_then(|()| out.flush()) {
            // Whoever reads has read enough, as `head` does.
            Err(why) if why.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => Ok(other?),
        }
    }
}
