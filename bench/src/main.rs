//! What pdbmux costs beside nginx: one table of every figure, measured in one run on one machine.
//!
//! nginx serves each backend's answers as files. Each figure stands beside the same bytes fetched
//! straight from there and thrown away, and beside nginx passing them on. Times are compared within a
//! run alone, by turns, as medians.

mod estate;
mod fetch;
mod large;
mod rate;
mod servers;
mod small;
mod table;
mod usage;

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Parser;

/// Measures pdbmux beside nginx.
#[derive(Debug, Parser)]
struct Arguments {
    /// The pdbmux to measure.
    #[arg(long, default_value = "target/release/pdbmux")]
    binary: PathBuf,
    /// Where the estates are kept, about 2.5 GB.
    #[arg(long, default_value = "target/bench-estates")]
    estates: PathBuf,
    /// Runs of each large answer, of which the median is printed.
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Seconds of each rate.
    #[arg(long, default_value_t = 4)]
    seconds: u64,
    /// Only the sections whose names begin so.
    #[arg(long)]
    only: Vec<String>,
    /// Write the result to this file as well.
    #[arg(long)]
    save: Option<PathBuf>,
}

/// What every section needs.
struct Bench {
    arguments: Arguments,
    /// For configurations, logs and pid files.
    run: PathBuf,
}

fn main() -> Result<()> {
    let mut arguments = Arguments::parse();
    arguments.estates = std::path::absolute(&arguments.estates)?;
    arguments.binary = fs::canonicalize(&arguments.binary)
        .with_context(|| format!("no pdbmux at {}", arguments.binary.display()))?;
    let bench = Bench {
        run: servers::run_folder(&arguments.estates)?,
        arguments,
    };
    let mut text = bench.title()?;
    emit(&text);
    for (name, section) in [
        ("life", small::life as fn(&Bench) -> Result<String>),
        ("large", large::answers),
        ("lists", large::lists),
        ("backends", large::backends),
        ("crowd", large::crowd),
        ("rates", small::uncached),
        ("rates-backends", small::backends),
        ("cached", small::cached),
    ] {
        let only = &bench.arguments.only;
        if only.is_empty() || only.iter().any(|wanted| name.starts_with(wanted.as_str())) {
            let section = section(&bench)?;
            emit(&section);
            text.push_str(&section);
        }
    }
    if let Some(file) = &bench.arguments.save {
        fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

impl Bench {
    fn title(&self) -> Result<String> {
        let cpu = fs::read_to_string("/proc/cpuinfo")?;
        let model = cpu
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
            .map_or("an unknown CPU", |(_, model)| model);
        let cores = std::thread::available_parallelism()?;
        let load = fs::read_to_string("/proc/loadavg")?;
        let load = load.split(' ').next().unwrap_or_default();
        let mut text = String::new();
        writeln!(
            text,
            "# pdbmux beside nginx, {}\n",
            jiff::Zoned::now().date()
        )?;
        writeln!(
            text,
            "{cores} cores of {model}; load before the run {load}. Medians of {} runs; rates over {} s.\n\
             Estates hold {}, {} and {} for each backend; one node in ten is also in the next backend.\n",
            self.arguments.runs,
            self.arguments.seconds,
            size(estate::S),
            size(estate::M),
            size(estate::L),
        )?;
        Ok(text)
    }
}

fn size(size: estate::Size) -> String {
    format!("{}: {} nodes x {} facts", size.name, size.nodes, size.facts)
}

#[expect(
    clippy::print_stdout,
    reason = "the tables are what this program is for"
)]
fn emit(text: &str) {
    println!("{text}");
}
