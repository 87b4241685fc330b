//! Scores pdbmux under `merge: exact` against the oracle; see `e2e/README.md`.

use std::collections::BTreeSet;
use std::io::{Write as _, stdout};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use pdbmux_e2e::daemon::pdbmux;
use pdbmux_e2e::estate::Estate;
use pdbmux_e2e::oracle::corpus;
use pdbmux_e2e::oracle::field::Field;
use pdbmux_e2e::oracle::sample::Sample;
use pdbmux_e2e::oracle::score::Score;
use pdbmux_e2e::rig::Rig;
use pdbmux_e2e::settings::{Lifetime, Settings};

const USAGE: &str = "usage: oracle [--only FEATURE]... [--mode MODE] [--bin PATH] [--keep] [--alone] [--show N] [--list] [--ask LINE]...
  --only FEATURE  features whose name contains this
  --ask LINE      this question alone, written as in the corpus
  --mode MODE     pdbmux's merge (exact)
  --bin PATH      the pdbmux to test (the newest build in target)
  --keep          leave the servers running, and use them again
  --show N        differences shown of each feature (5)
  --alone         pdbmux in front of the union alone: whatever differs is no matter of merging
  --list          the features, and how many questions each has";

/// What the command line says.
#[derive(Debug)]
struct Options {
    only: Vec<String>,
    asked: Vec<String>,
    mode: String,
    show: usize,
    list: bool,
    before: Before,
}

/// What pdbmux is put in front of.
#[derive(Clone, Copy, Debug)]
enum Before {
    Backends,
    Union,
}

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("oracle: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode> {
    let mut settings = Settings::from_env()?;
    let options = options(&mut settings)?;
    if options.list {
        let mut out = stdout().lock();
        let features: BTreeSet<_> = corpus::lines().map(|(feature, _)| feature).collect();
        for feature in features {
            let count = corpus::lines().filter(|(it, _)| *it == feature).count();
            writeln!(out, "{count:5} {feature}")?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    settings.pdbmux_binary()?;
    let estate = Estate::default();
    let rig = Rig::loaded(&settings, &estate)?;
    let union = &rig.oracle.as_ref().context("no oracle")?.client;
    let in_front_of = match options.before {
        Before::Backends => rig.backends.as_slice(),
        Before::Union => rig.oracle.as_slice(),
    };
    let daemon = pdbmux(
        &settings,
        in_front_of,
        &[
            ("PDBMUX_MERGE", options.mode.as_str()),
            ("PDBMUX_TIMEOUT", "60s"),
            ("PDBMUX_SOURCE_FACT_ENABLED", "false"),
            ("PDBMUX_HEALTH_PROBE_ENABLED", "false"),
        ],
    )?;
    let backends: Vec<_> = rig.backends.iter().map(|one| one.client.clone()).collect();
    let sample = Sample::of(&backends.iter().collect::<Vec<_>>(), union)?;
    let field = Field {
        union: union.clone(),
        pdbmux: daemon.client.clone(),
        backends,
    };
    let mut cases = corpus::cases(&sample)?;
    if !options.asked.is_empty() {
        cases.clear();
        for line in &options.asked {
            cases.push(corpus::case("asked", line, &sample)?);
        }
    }
    if !options.only.is_empty() {
        cases.retain(|case| options.only.iter().any(|it| case.feature.contains(it)));
    }
    let started = Instant::now();
    let outcomes = field.run(&cases)?;
    let mut score = Score::default();
    score.add("rig", outcomes);
    write!(stdout(), "{}", score.report(options.show))?;
    eprintln!(
        "oracle: {} questions in {:.1?}",
        cases.len(),
        started.elapsed()
    );
    Ok(if score.is_clean() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn options(settings: &mut Settings) -> Result<Options> {
    let mut options = Options {
        only: Vec::new(),
        asked: Vec::new(),
        mode: "exact".into(),
        show: 5,
        list: false,
        before: Before::Backends,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let mut value = || {
            arguments
                .next()
                .with_context(|| format!("{name} needs a value"))
        };
        match name.as_str() {
            "--only" => options.only.push(value()?),
            "--ask" => options.asked.push(value()?),
            "--mode" => options.mode = value()?,
            "--bin" => settings.binary = Some(value()?.into()),
            "--keep" => settings.lifetime = Lifetime::Kept,
            "--alone" => options.before = Before::Union,
            "--list" => options.list = true,
            "--show" => options.show = value()?.parse().context("--show needs a number")?,
            _ => bail!("{USAGE}"),
        }
    }
    Ok(options)
}
