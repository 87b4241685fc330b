//! The pdbmux binary.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use pdbmux::check::{self, CheckError, Paint, Strictness};
use pdbmux::cli::{CheckArgs, Cli, DriftArgs, DriftFormat, Ended, Job, ReportFormat};
use pdbmux::config::{Config, CoreDumps, Environment, Source};
use pdbmux::daemon::{self, Manager, Order, Outside};
use pdbmux::drift::{self, Moves, Question, Verdict};
use pdbmux::listener::{Audience, Listener};
use pdbmux::log;
use pdbmux::names::Names;
use pdbmux::{core_dumps, demo, descriptors, freed_memory};

fn main() -> ExitCode {
    // Before a secret is read. Where the system does not let it, that is told once there is a log.
    let _ = core_dumps::set(CoreDumps::Off);
    let cli = Cli::parse();
    let env = Environment::of_process();
    let serve = |job| match job {
        Job::Serve {
            config,
            source,
            notes,
        } => serve(config, source, &notes, &env),
        Job::Demo { config } => demo(config),
        Job::Check { config, args } => check(&config, &args),
        Job::Drift { config, args } => drift(&config, &args),
    };
    match cli.run(&env, &mut io::stdout(), serve) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            // Where standard error is gone there is nobody to tell.
            let _ = writeln!(io::stderr(), "pdbmux: {why}");
            why.exit_code()
        }
    }
}

#[tokio::main]
async fn serve(
    config: Config,
    source: Source,
    notes: &[String],
    env: &Environment,
) -> anyhow::Result<()> {
    let set_log_level = log::init(&config);
    for note in notes {
        tracing::warn!("{note}");
    }
    set_core_dumps(&config);
    pdbmux::check_door(&config)?;
    descriptors::raise();
    freed_memory::keep();
    let orders = daemon::orders().context("cannot wait for signals")?;
    let listeners = Listener::open_all(&config, &Names::of_system()).await?;
    let manager = Manager::of(env).unwrap_or_else(|why| {
        tracing::warn!("{why}");
        None
    });
    let outside = Outside {
        orders,
        source: Some(source),
        settle: Some(Box::new(move |config| {
            set_log_level(&config.log_level);
            set_core_dumps(config);
        })),
        manager,
    };
    daemon::run(config, listeners, outside).await;
    Ok(())
}

fn set_core_dumps(config: &Config) {
    if let Err(error) = core_dumps::set(config.core_dumps) {
        tracing::warn!(%error, "the system does not let core_dumps decide about core dumps");
    }
}

#[tokio::main]
async fn demo(config: Config) -> anyhow::Result<()> {
    let _fixed = log::init(&config);
    let mut orders = daemon::orders().context("cannot wait for signals")?;
    // It has no configuration to read again.
    let stop = async move { while orders.recv().await == Some(Order::Reload) {} };
    let at = config.listen.first().cloned();
    let at = at.context("there is no address to listen on")?;
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

#[tokio::main]
async fn check(config: &Config, args: &CheckArgs) -> anyhow::Result<()> {
    let ended = |status, why: CheckError| Ended {
        status,
        why: why.to_string(),
    };
    let report = check::run(config, args.backend.as_deref());
    let report = report.await.map_err(|why| ended(2, why))?;
    print(|out| match args.format {
        ReportFormat::Text => out.write_all(report.table(paint()).as_bytes()),
        ReportFormat::Json => writeln!(out, "{:#}", report.to_json()),
    })?;
    let strictness = if args.strict {
        Strictness::Strict
    } else {
        Strictness::Lenient
    };
    Ok(report.verdict(strictness).map_err(|why| ended(1, why))?)
}

#[tokio::main]
async fn drift(config: &Config, args: &DriftArgs) -> anyhow::Result<()> {
    let ended = |status, why: &dyn std::fmt::Display| Ended {
        status,
        why: why.to_string(),
    };
    // As they answer: a group is one.
    let backends = config.settings().backends;
    let moves = match args.since {
        Some(_) => Moves::Asked,
        None => Moves::Unasked,
    };
    let filters = (!args.summary).then_some(args.filter.as_slice());
    let question = Question::read(&backends, moves, filters, args.fail_if.as_deref());
    let question = question.map_err(|why| ended(2, &why))?;
    let estate = drift::read(config, args.since).await;
    print(|out| match args.format {
        DriftFormat::Text => drift::table(&estate, &question.rows, out),
        DriftFormat::Json => drift::json(&estate, &question.rows, out),
        DriftFormat::Csv => drift::csv(&estate, &question.rows, out),
    })?;
    match question.verdict(&estate) {
        Ok(Verdict::Passed) => Ok(()),
        Ok(Verdict::Held(why)) => Err(ended(3, &why).into()),
        Err(incomplete) => Err(ended(1, &incomplete).into()),
    }
}

fn paint() -> Paint {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|it| !it.is_empty());
    if io::stdout().is_terminal() && !unwanted {
        Paint::Colours
    } else {
        Paint::Plain
    }
}

/// Whoever reads may stop early, as `head` does.
fn print(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Err(why) if why.kind() != io::ErrorKind::BrokenPipe => Err(why).context("cannot print"),
        Ok(()) | Err(_) => Ok(()),
    }
}
