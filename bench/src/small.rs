//! Small answers, many of them, and what an idle process takes.

use std::fs;

use anyhow::{Context as _, Result};

use crate::Bench;
use crate::estate::{self, S};
use crate::rate::{Rate, rate};
use crate::servers::{self, Memory, Server, Setup};
use crate::table::{Table, median, megabytes, time};
use crate::usage;

const NODES: &str = "/pdb/query/v4/nodes";

/// Starts of pdbmux of which the median is taken.
const STARTS: usize = 9;

/// Turns of a second each where one connection asks. What a single answer takes is moved more by the
/// state that the machine is in, for seconds, than by anything else.
const TURNS: usize = 9;

/// Memory of an idle process, time to the first answer, size of the program.
pub(crate) fn life(bench: &Bench) -> Result<String> {
    let files = estate::of(&bench.arguments.estates, S, 2)?;
    let cached = estate::cached(&bench.arguments.estates)?;
    let upstream = servers::upstream(&bench.run, &files, &cached)?;
    let setup = Setup {
        binary: &bench.arguments.binary,
        merge: "freshness",
        cache: true,
        backends: &upstream.ports,
        memory: Memory::Any,
    };
    let (mut starts, mut idle) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let (pdbmux, start) = servers::pdbmux(&bench.run, &setup)?;
        starts.push(start);
        idle.push(usage::resident(pdbmux.process.pid())?);
    }
    let mut table = Table::new(["start to first answer", "idle memory", "program"]);
    table.row([
        time(median(starts).context("no start")?),
        megabytes(median(idle).context("no start")?),
        megabytes(fs::metadata(&bench.arguments.binary)?.len()),
    ]);
    Ok(format!("## Start\n\n{table}"))
}

/// `/nodes` of the smallest estate, asked of both backends each time.
pub(crate) fn uncached(bench: &Bench) -> Result<String> {
    let mut table = head();
    for merge in ["freshness", "static", "exact"] {
        let rig = Rig::new(bench, 2, merge, false)?;
        for connections in [1, 16, 64] {
            let label = format!("/nodes {merge}, {connections}");
            rig.row(bench, &mut table, label, NODES, connections)?;
        }
    }
    Ok(format!(
        "## Small answers, uncached, by connections\n\n\
         pdbmux asks two backends for each; nginx passes one of them on; `direct` asks that one.\n\
         `added p50` is what pdbmux's p50 is beyond the direct one of the same turn.\n\n{table}"
    ))
}

/// The same over 1 to 8 backends.
pub(crate) fn backends(bench: &Bench) -> Result<String> {
    let mut table = head();
    for backends in estate::BACKENDS {
        let rig = Rig::new(bench, backends, "freshness", false)?;
        let label = format!("/nodes of {backends}, 16");
        rig.row(bench, &mut table, label, NODES, 16)?;
    }
    Ok(format!(
        "## Small answers over more backends, uncached, 16 connections\n\n{table}"
    ))
}

/// Lists of about 32 KB and 5 MB out of the cache.
pub(crate) fn cached(bench: &Bench) -> Result<String> {
    let mut table = head();
    let rig = Rig::new(bench, 2, "freshness", true)?;
    for (name, _) in estate::CACHED {
        for connections in [1, 16, 64] {
            let label = format!("{name}, {connections}");
            let path = format!("/pdb/query/v4/facts/{name}");
            rig.row(bench, &mut table, label, &path, connections)?;
        }
    }
    Ok(format!(
        "## Answers from the cache, by connections\n\n\
         `direct` is nginx serving a file of that size.\n\n{table}"
    ))
}

struct Rig {
    upstream: Server,
    passing: Server,
    pdbmux: Server,
}

impl Rig {
    fn new(bench: &Bench, backends: usize, merge: &str, cache: bool) -> Result<Self> {
        let files = estate::of(&bench.arguments.estates, S, backends)?;
        let lists = estate::cached(&bench.arguments.estates)?;
        let upstream = servers::upstream(&bench.run, &files, &lists)?;
        let passing = servers::passing(&bench.run, &upstream.ports)?;
        let setup = Setup {
            binary: &bench.arguments.binary,
            merge,
            cache,
            backends: &upstream.ports,
            memory: Memory::Any,
        };
        let (pdbmux, _) = servers::pdbmux(&bench.run, &setup)?;
        Ok(Self {
            upstream,
            passing,
            pdbmux,
        })
    }

    fn row(
        &self,
        bench: &Bench,
        table: &mut Table,
        label: String,
        path: &str,
        connections: usize,
    ) -> Result<()> {
        let mut rates = [const { Vec::new() }; 3];
        let mut cpu = [const { Vec::new() }; 2];
        let (turns, seconds) = match connections {
            1 => (TURNS, 1),
            _ => (bench.arguments.runs.min(3), bench.arguments.seconds),
        };
        // By turns, so that another load on the machine meets all alike.
        for _ in 0..turns {
            for (at, server) in [&self.pdbmux, &self.passing, &self.upstream]
                .iter()
                .enumerate()
            {
                let pid = server.process.pid();
                let before = usage::cpu(pid)?;
                let port = *server.ports.first().context("no port")?;
                let rate = rate(port, path, connections, seconds)?;
                if let Some(cpu) = cpu.get_mut(at) {
                    let used = usage::cpu(pid)?.saturating_sub(before);
                    cpu.push(used.div_f64(per(rate.requests)));
                }
                rates[at].push(rate);
            }
        }
        let middle = |at: usize, figure: fn(&Rate) -> f64| {
            median(rates[at].iter().map(figure)).context("no run")
        };
        let took = |at: usize, figure: fn(&Rate) -> f64| -> Result<String> {
            Ok(time(std::time::Duration::from_secs_f64(middle(
                at, figure,
            )?)))
        };
        let per_second = |rate: &Rate| rate.per_second;
        let p50 = |rate: &Rate| rate.p50.as_secs_f64();
        let p99 = |rate: &Rate| rate.p99.as_secs_f64();
        let pairs = rates[0].iter().zip(&rates[2]);
        let beyond = pairs.map(|(own, direct)| p50(own) - p50(direct));
        let [own, nginx] = cpu.map(|cpu| median(cpu).context("no run"));
        table.row([
            label,
            format!("{:.0}", middle(0, per_second)?),
            format!("{:.0}", middle(1, per_second)?),
            format!("{:.0}", middle(2, per_second)?),
            format!("{:.2}", middle(0, per_second)? / middle(1, per_second)?),
            format!("{:.2}", middle(0, per_second)? / middle(2, per_second)?),
            format!("{} / {}", took(0, p50)?, took(0, p99)?),
            format!("{} / {}", took(1, p50)?, took(1, p99)?),
            format!("{} / {}", took(2, p50)?, took(2, p99)?),
            signed(median(beyond).context("no run")?),
            time(own?),
            time(nginx?),
        ]);
        Ok(())
    }
}

fn head() -> Table {
    Table::new([
        "question",
        "pdbmux /s",
        "nginx /s",
        "direct /s",
        "of nginx",
        "of direct",
        "pdbmux p50 / p99",
        "nginx p50 / p99",
        "direct p50 / p99",
        "added p50",
        "CPU",
        "nginx CPU",
    ])
}

/// A difference in seconds.
fn signed(seconds: f64) -> String {
    let by = time(std::time::Duration::from_secs_f64(seconds.abs()));
    if seconds < 0.0 { format!("-{by}") } else { by }
}

fn per(requests: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "it is a few million at most")]
    let requests = requests.max(1) as f64;
    requests
}
