//! Answers of many megabytes, one client at a time, and many clients at once.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::Bench;
use crate::estate::{self, L, M, S, Size};
use crate::fetch::{Fetched, fetch, together};
use crate::servers::{self, Memory, Server, Setup};
use crate::table::{Table, median, megabytes, time};
use crate::usage;

const FACTS: &str = "/pdb/query/v4/facts";
const ORDERED: &str = "/pdb/query/v4/facts?order_by=%5B%7B%22field%22%3A%22certname%22%7D%5D";

/// Clients at once in [`crowd`].
const CROWD: usize = 64;
/// The memory that pdbmux may take then, in bytes.
const LITTLE: u64 = 256 << 20;

/// One way to fetch all facts, measured.
struct Cost {
    wall: Duration,
    cpu: Duration,
    first: Duration,
    peak: u64,
    bytes: u64,
}

/// `/facts` of each estate under each merge, unordered and ordered.
pub(crate) fn answers(bench: &Bench) -> Result<String> {
    let mut table = head();
    for size in [S, M, L] {
        for (merge, asked, path) in [
            ("freshness", "unordered", FACTS),
            ("static", "unordered", FACTS),
            ("exact", "unordered", FACTS),
            ("freshness", "by certname", ORDERED),
            ("exact", "by certname", ORDERED),
        ] {
            let label = format!("{} {merge} {asked}", size.name);
            row(bench, &mut table, label, size, 2, merge, path)?;
        }
    }
    Ok(format!(
        "## All facts, two backends, uncached\n\n{NOTE}\n{table}"
    ))
}

/// The same of the middle estate over 1 to 8 backends.
pub(crate) fn backends(bench: &Bench) -> Result<String> {
    let mut table = head();
    for count in [1, 2, 4, 8] {
        let label = format!("{count} x M freshness");
        row(bench, &mut table, label, M, count, "freshness", FACTS)?;
    }
    Ok(format!(
        "## All facts over more backends, uncached\n\n{table}"
    ))
}

const NOTE: &str = "\
`direct` fetches the backends' bodies at once and throws them away; `nginx` fetches them at once
through nginx. `first` is the time to the first byte of the body beyond that of the slower backend,
`peak` the memory above the idle process.
";

fn head() -> Table {
    Table::new([
        "answer",
        "kept",
        "wall",
        "CPU",
        "first",
        "peak",
        "direct",
        "nginx",
        "nginx CPU",
        "wall / nginx",
        "CPU / nginx",
        "CPU per MB",
    ])
}

fn row(
    bench: &Bench,
    table: &mut Table,
    label: String,
    size: Size,
    count: usize,
    merge: &str,
    path: &str,
) -> Result<()> {
    let files = estate::of(&bench.arguments.estates, size, count)?;
    let cached = estate::cached(&bench.arguments.estates)?;
    let upstream = servers::upstream(&bench.run, &files, &cached)?;
    let passing = servers::passing(&bench.run, &upstream.ports)?;
    let setup = Setup {
        binary: &bench.arguments.binary,
        merge,
        cache: false,
        backends: &upstream.ports,
        memory: Memory::Any,
    };
    let (pdbmux, _) = servers::pdbmux(&bench.run, &setup)?;
    let idle = usage::resident(pdbmux.process.pid())?;
    let (mut own, mut direct, mut nginx) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..bench.arguments.runs {
        direct.push(cost(&upstream, FACTS)?);
        nginx.push(cost(&passing, FACTS)?);
        own.push(cost(&pdbmux, path)?);
    }
    let of = |costs: &[Cost], figure: fn(&Cost) -> Duration| {
        median(costs.iter().map(figure)).context("no run")
    };
    let wall = |cost: &Cost| cost.wall;
    let cpu = |cost: &Cost| cost.cpu;
    let first = |cost: &Cost| cost.first;
    let peak = median(own.iter().map(|cost| cost.peak)).context("no run")?;
    let sent: u64 = files.iter().map(|files| files.facts).sum();
    let ratio = |a: Duration, b: Duration| format!("{:.2}", a.as_secs_f64() / b.as_secs_f64());
    #[expect(clippy::cast_precision_loss, reason = "it is rounded anyway")]
    let per_megabyte = of(&own, cpu)?.div_f64(sent as f64 / 1e6);
    table.row([
        label,
        megabytes(own.first().context("no run")?.bytes),
        time(of(&own, wall)?),
        time(of(&own, cpu)?),
        time(of(&own, first)?.saturating_sub(of(&direct, first)?)),
        megabytes(peak.saturating_sub(idle)),
        time(of(&direct, wall)?),
        time(of(&nginx, wall)?),
        time(of(&nginx, cpu)?),
        ratio(of(&own, wall)?, of(&nginx, wall)?),
        ratio(of(&own, cpu)?, of(&nginx, cpu)?),
        time(per_megabyte),
    ]);
    Ok(())
}

/// Fetches `path` from every port of a server at once.
fn cost(server: &Server, path: &str) -> Result<Cost> {
    let pid = server.process.pid();
    usage::reset_peak(pid)?;
    let before = usage::cpu(pid)?;
    let asks: Vec<_> = server
        .ports
        .iter()
        .map(|port| (*port, path.to_owned()))
        .collect();
    let all = together(&asks)?;
    for fetched in &all {
        ensure!(fetched.status == 200, "{path} answered {}", fetched.status);
    }
    let longest = |figure: fn(&Fetched) -> Duration| all.iter().map(figure).max();
    Ok(Cost {
        wall: longest(|fetched| fetched.whole).context("nothing was fetched")?,
        cpu: usage::cpu(pid)?.saturating_sub(before),
        first: longest(|fetched| fetched.first).context("nothing was fetched")?,
        peak: usage::peak(pid)?,
        bytes: all.iter().map(|fetched| fetched.bytes).sum(),
    })
}

/// Many clients that want all facts of the largest estate at once, of a process that may take little
/// memory.
pub(crate) fn crowd(bench: &Bench) -> Result<String> {
    let mut table = Table::new([
        "question", "clients", "whole", "503", "broken", "wall", "peak", "lives",
    ]);
    for (asked, path) in [("unordered", FACTS), ("by certname", ORDERED)] {
        table.row(crowded(bench, asked, path)?);
    }
    Ok(format!(
        "## Many clients want all facts of L at once, uncached, of a process that may take {}\n\n{table}",
        megabytes(LITTLE)
    ))
}

fn crowded(bench: &Bench, asked: &str, path: &'static str) -> Result<[String; 8]> {
    let files = estate::of(&bench.arguments.estates, L, 2)?;
    let cached = estate::cached(&bench.arguments.estates)?;
    let upstream = servers::upstream(&bench.run, &files, &cached)?;
    let setup = Setup {
        binary: &bench.arguments.binary,
        merge: "freshness",
        cache: false,
        backends: &upstream.ports,
        memory: Memory::AtMost(LITTLE),
    };
    let (pdbmux, _) = servers::pdbmux(&bench.run, &setup)?;
    let port = *pdbmux.ports.first().context("no port")?;
    let began = Instant::now();
    let answers: Vec<_> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CROWD)
            .map(|_| scope.spawn(move || fetch(port, path)))
            .collect();
        clients
            .into_iter()
            .map(std::thread::ScopedJoinHandle::join)
            .collect()
    });
    let wall = began.elapsed();
    let answers: Vec<_> = answers.into_iter().flatten().collect();
    let with = |status| {
        let answers = answers.iter().flatten();
        answers.filter(|fetched| fetched.status == status).count()
    };
    let broken = answers.iter().filter(|answer| answer.is_err()).count();
    let lives = pdbmux.process.is_alive();
    Ok([
        asked.to_owned(),
        CROWD.to_string(),
        with(200).to_string(),
        with(503).to_string(),
        broken.to_string(),
        time(wall),
        usage::peak(pdbmux.process.pid()).map_or("-".into(), megabytes),
        if lives { "yes" } else { "no" }.to_owned(),
    ])
}
