//! Scores pdbmux under `merge: exact` against the oracle; see `e2e/README.md`.

use std::collections::BTreeSet;
use std::io::{Write as _, stdout};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use pdbmux_e2e::oracle::corpus::{self, Case};
use pdbmux_e2e::oracle::ground::{Before, Content, field};
use pdbmux_e2e::oracle::random;
use pdbmux_e2e::oracle::rewriter::Rewriter;
use pdbmux_e2e::oracle::sample::Sample;
use pdbmux_e2e::oracle::score::Score;
use pdbmux_e2e::rig::{Plan, Size};
use pdbmux_e2e::settings::{Lifetime, Settings};

const USAGE: &str = "usage: oracle [--only FEATURE]... [--estate NAME]... [--random N] [--rewrites N] [--seed N] [--mode MODE] [--bin PATH] [--set NAME=VALUE]... [--keep] [--alone] [--show N] [--list] [--ask LINE]...
  --only FEATURE  features whose name contains this
  --estate NAME   this estate instead of all: rig, disjoint, shared, cloned, retired, three, locale
  --ask LINE      this question alone, written as in the corpus
  --random N      questions made at random, of each estate (300)
  --rewrites N    filters of each entity for the rewriter, of each estate (50)
  --seed N        what they are made from (1)
  --mode MODE     pdbmux's merge (exact)
  --bin PATH      the pdbmux to test (the newest build in target)
  --set NAME=VALUE  a variable of pdbmux's configuration, such as PDBMUX_MAX_LISTED_NODES=0
  --keep          leave the servers running, and use them again
  --show N        differences shown of each feature (5)
  --alone         pdbmux in front of the union alone: whatever differs is no matter of merging
  --list          the features, and how many questions each has";

/// What the command line says.
#[derive(Debug)]
struct Options {
    only: Vec<String>,
    estates: Vec<String>,
    asked: Vec<String>,
    mode: String,
    seed: u64,
    random: u64,
    rewrites: u64,
    show: usize,
    list: bool,
    before: Before,
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
    let contents: Vec<_> = options
        .estates
        .iter()
        .map(|name| Content::named(name))
        .collect::<Result<_>>()?;
    let size = if contents.iter().any(|one| one.size() == Size::Three) {
        Size::Three
    } else {
        Size::Two
    };
    let plan = Plan::of(&settings, size)?;
    let rig = plan.complete(settings.lifetime)?;
    let mut score = Score::default();
    for (name, content) in options.estates.iter().zip(&contents) {
        content.fill(&plan, &rig)?;
        let (field, sample, _daemon) = field(
            &settings,
            &rig,
            content.size(),
            options.before,
            &options.mode,
        )?;
        let cases = cases(&options, &sample)?;
        let started = Instant::now();
        let mut outcomes = field.run(&cases)?;
        if options.asked.is_empty() && options.before == Before::Backends {
            let rewriter = Rewriter::new(&field.backends)?;
            let is_meant = |feature: &str| options.means(feature);
            outcomes.extend(rewriter.run(options.seed, options.rewrites, &sample, &is_meant)?);
        }
        let took = started.elapsed();
        let count = outcomes.len();
        eprintln!("oracle: {count} questions of {name} in {took:.1?}");
        score.add(name, outcomes);
        // A run of all estates is long: what was found is said at once.
        write!(stdout(), "{}", score.differences(options.show))?;
    }
    write!(stdout(), "{}", score.summary())?;
    Ok(if score.is_clean() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The questions that the command line asks for.
fn cases(options: &Options, sample: &Sample) -> Result<Vec<Case>> {
    if !options.asked.is_empty() {
        let asked = options.asked.iter();
        return asked
            .map(|line| corpus::case("asked", line, sample))
            .collect();
    }
    let mut cases = corpus::cases(sample)?;
    cases.extend(random::cases(options.seed, options.random, sample));
    cases.retain(|case| options.means(&case.feature));
    Ok(cases)
}

impl Options {
    fn means(&self, feature: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|it| feature.contains(it))
    }
}

fn options(settings: &mut Settings) -> Result<Options> {
    let mut options = Options {
        only: Vec::new(),
        estates: Vec::new(),
        asked: Vec::new(),
        mode: "exact".into(),
        seed: 1,
        random: 300,
        rewrites: 50,
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
            "--estate" => options.estates.push(value()?),
            "--ask" => options.asked.push(value()?),
            "--mode" => options.mode = value()?,
            "--seed" => options.seed = value()?.parse().context("--seed needs a number")?,
            "--random" => options.random = value()?.parse().context("--random needs a number")?,
            "--rewrites" => {
                options.rewrites = value()?.parse().context("--rewrites needs a number")?;
            }
            "--bin" => settings.binary = Some(value()?.into()),
            "--set" => settings.variables.push(value()?),
            "--keep" => settings.lifetime = Lifetime::Kept,
            "--alone" => options.before = Before::Union,
            "--list" => options.list = true,
            "--show" => options.show = value()?.parse().context("--show needs a number")?,
            _ => bail!("{USAGE}"),
        }
    }
    if options.estates.is_empty() {
        options.estates = Content::names().map(str::to_owned).collect();
    }
    Ok(options)
}
