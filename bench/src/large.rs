//! Answers of many megabytes, one client at a time, and many clients at once.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::Bench;
use crate::estate::{self, L, List, M, S, Size};
use crate::fetch::{Fetched, fetch, together};
use crate::servers::{self, Memory, Server, Setup};
use crate::table::{Table, median, megabytes, time};
use crate::usage;

/// What orders a list by certname.
const BY_CERTNAME: &str = "?order_by=%5B%7B%22field%22%3A%22certname%22%7D%5D";

/// The clock of a process ticks a hundred times a second: what is shorter than this many bytes is
/// fetched over and over until that is enough.
const ENOUGH: u64 = 64 << 20;

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

/// One row of a table.
#[derive(Clone, Copy)]
struct Row {
    size: Size,
    backends: usize,
    merge: &'static str,
    list: List,
    is_ordered: bool,
}

impl Row {
    const ALL_FACTS: Self = Self {
        size: M,
        backends: 2,
        merge: "freshness",
        list: List::Facts,
        is_ordered: false,
    };

    /// What the backends are asked for.
    fn whole(self) -> String {
        format!("/pdb/query/v4/{}", self.list.name())
    }

    /// What pdbmux is asked for.
    fn asked(self) -> String {
        let order = if self.is_ordered { BY_CERTNAME } else { "" };
        self.whole() + order
    }
}

/// `/facts` of each estate under each merge, unordered and ordered.
pub(crate) fn answers(bench: &Bench) -> Result<String> {
    let mut table = head();
    for size in [S, M, L] {
        for (merge, is_ordered) in [
            ("freshness", false),
            ("static", false),
            ("exact", false),
            ("freshness", true),
            ("exact", true),
        ] {
            let how = if is_ordered {
                "by certname"
            } else {
                "unordered"
            };
            let row = Row {
                size,
                merge,
                is_ordered,
                ..Row::ALL_FACTS
            };
            measure(
                bench,
                &mut table,
                format!("{} {merge} {how}", size.name),
                row,
            )?;
        }
    }
    Ok(format!(
        "## All facts, two backends, uncached\n\n{NOTE}\n{table}"
    ))
}

/// Other lists of the largest estate, which are streamed too.
pub(crate) fn lists(bench: &Bench) -> Result<String> {
    let mut table = head();
    for (list, is_ordered) in [
        (List::Nodes, false),
        (List::Nodes, true),
        (List::Events, false),
    ] {
        let how = if is_ordered {
            "by certname"
        } else {
            "unordered"
        };
        let row = Row {
            size: L,
            list,
            is_ordered,
            ..Row::ALL_FACTS
        };
        measure(bench, &mut table, format!("L /{} {how}", list.name()), row)?;
    }
    Ok(format!(
        "## All nodes and events, two backends, freshness, uncached\n\n{table}"
    ))
}

/// All facts of the middle estate over 1 to 8 backends.
pub(crate) fn backends(bench: &Bench) -> Result<String> {
    let mut table = head();
    for backends in estate::BACKENDS {
        let row = Row {
            backends,
            ..Row::ALL_FACTS
        };
        measure(bench, &mut table, format!("{backends} x M freshness"), row)?;
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
        "CPU per 1000 records",
    ])
}

fn measure(bench: &Bench, table: &mut Table, label: String, row: Row) -> Result<()> {
    let folders = estate::of(&bench.arguments.estates, row.size, row.backends)?;
    if row.list == List::Events {
        estate::add_events(&folders, row.size)?;
    }
    let cached = estate::cached(&bench.arguments.estates)?;
    let upstream = servers::upstream(&bench.run, &folders, &cached)?;
    let passing = servers::passing(&bench.run, &upstream.ports)?;
    let setup = Setup {
        binary: &bench.arguments.binary,
        merge: row.merge,
        cache: false,
        backends: &upstream.ports,
        memory: Memory::Any,
    };
    let (pdbmux, _) = servers::pdbmux(&bench.run, &setup)?;
    let idle = usage::resident(pdbmux.process.pid())?;
    let (whole, asked) = (row.whole(), row.asked());
    let (mut own, mut direct, mut nginx) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..bench.arguments.runs {
        direct.push(cost(&upstream, &whole)?);
        nginx.push(cost(&passing, &whole)?);
        own.push(cost(&pdbmux, &asked)?);
    }
    let of = |costs: &[Cost], figure: fn(&Cost) -> Duration| {
        median(costs.iter().map(figure)).context("no run")
    };
    let wall = |cost: &Cost| cost.wall;
    let cpu = |cost: &Cost| cost.cpu;
    let first = |cost: &Cost| cost.first;
    let peak = median(own.iter().map(|cost| cost.peak)).context("no run")?;
    let ratio = |a: Duration, b: Duration| format!("{:.2}", a.as_secs_f64() / b.as_secs_f64());
    let records = u32::try_from(row.backends * row.list.records(row.size))?;
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
        time(of(&own, cpu)? * 1000 / records),
    ]);
    Ok(())
}

/// Fetches `path` from every port of a server at once, and again until that was [`ENOUGH`].
fn cost(server: &Server, path: &str) -> Result<Cost> {
    let pid = server.process.pid();
    usage::reset_peak(pid)?;
    let before = usage::cpu(pid)?;
    let asks: Vec<_> = server
        .ports
        .iter()
        .map(|port| (*port, path.to_owned()))
        .collect();
    let (mut walls, mut firsts, mut bytes) = (Vec::new(), Vec::new(), 0);
    let mut fetches = 0;
    while bytes * u64::from(fetches) < ENOUGH {
        let all = together(&asks)?;
        for fetched in &all {
            ensure!(fetched.status == 200, "{path} answered {}", fetched.status);
        }
        let longest = |figure: fn(&Fetched) -> Duration| all.iter().map(figure).max();
        walls.extend(longest(|fetched| fetched.whole));
        firsts.extend(longest(|fetched| fetched.first));
        bytes = all.iter().map(|fetched| fetched.bytes).sum();
        fetches += 1;
    }
    Ok(Cost {
        wall: median(walls).context("nothing was fetched")?,
        cpu: usage::cpu(pid)?.saturating_sub(before) / fetches,
        first: median(firsts).context("nothing was fetched")?,
        peak: usage::peak(pid)?,
        bytes,
    })
}

/// Many clients that want all facts of the largest estate at once, of a process that may take little
/// memory.
pub(crate) fn crowd(bench: &Bench) -> Result<String> {
    let mut table = Table::new([
        "question", "clients", "whole", "503", "broken", "wall", "peak", "lives",
    ]);
    for (how, is_ordered) in [("unordered", false), ("by certname", true)] {
        let row = Row {
            size: L,
            is_ordered,
            ..Row::ALL_FACTS
        };
        table.row(crowded(bench, how, &row.asked())?);
    }
    Ok(format!(
        "## Many clients want all facts of L at once, uncached, of a process that may take {}\n\n{table}",
        megabytes(LITTLE)
    ))
}

fn crowded(bench: &Bench, how: &str, path: &str) -> Result<[String; 8]> {
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
        how.to_owned(),
        CROWD.to_string(),
        with(200).to_string(),
        with(503).to_string(),
        broken.to_string(),
        time(wall),
        usage::peak(pdbmux.process.pid()).map_or("-".into(), megabytes),
        if lives { "yes" } else { "no" }.to_owned(),
    ])
}
