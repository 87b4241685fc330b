//! What `merge: exact` costs: the same questions asked of each backend and of pdbmux, by turns; see
//! `e2e/README.md`.

use std::io::{Write as _, stdout};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use pdbmux_e2e::cores;
use pdbmux_e2e::daemon::pdbmux;
use pdbmux_e2e::http::Client;
use pdbmux_e2e::load::{Batch, deliver};
use pdbmux_e2e::oracle::estates::{Copy, Node, State, enlarged};
use pdbmux_e2e::postgres::Locale;
use pdbmux_e2e::puppetdb::Java;
use pdbmux_e2e::rig::{Plan, Rig};
use pdbmux_e2e::settings::{Lifetime, Settings};

const USAGE: &str =
    "usage: cost [--nodes N] [--files N] [--turns N] [--layout split|one]... [--bin PATH] [--part] [--keep]
  --nodes N       how many nodes both backends hold (5000)
  --files N       how many files there are in each catalog beside 6 other resources (60)
  --turns N       how often each is asked each question (15)
  --layout NAME   who owns them: split, each of them about half, at random; one, the first all
  --bin PATH      the pdbmux to test (the newest build in target)
  --part          each backend keeps to a core of its own
  --keep          leave the servers running, and use them again";

/// What is asked: below `/pdb/query/v4`, with a query or none.
const QUESTIONS: [(&str, &str); 8] = [
    ("nodes", r#"["extract",[["function","count"]]]"#),
    ("facts", r#"["=","name","kernel"]"#),
    (
        "resources",
        r#"["extract",[["function","count"],"type"],["group_by","type"]]"#,
    ),
    ("nodes", r#"["=","latest_report_status","failed"]"#),
    ("resources", r#"["=","type","Class"]"#),
    ("environments", ""),
    ("fact-names", ""),
    ("fact-paths", ""),
];

/// Minutes of the runs of a copy that counts, and of one that does not.
const RUNS: [u32; 2] = [1000, 700];

#[derive(Debug)]
struct Options {
    nodes: u32,
    files: u32,
    turns: usize,
    layouts: Vec<String>,
    is_parted: bool,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cost: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let mut settings = Settings::from_env()?;
    let options = options(&mut settings)?;
    settings.java = Java::Work;
    let plan = Plan::new(&settings)?;
    let rig = plan.complete(settings.lifetime)?;
    for layout in &options.layouts {
        fill(&plan, &rig, layout, &options)?;
        let variables = [("PDBMUX_MERGE", "exact"), ("PDBMUX_FACTS_TTL", "0")];
        let daemon = pdbmux(&settings, &rig.backends, &variables)?;
        let [a, b] = rig.backends.each_ref().map(|one| &one.client);
        let asked = [a, b, &daemon.client];
        for (path, query) in QUESTIONS {
            if options.is_parted {
                cores::part(&rig)?;
            }
            let [a, b, mux] = medians(asked, path, query, options.turns)?;
            let ratio = mux.as_secs_f64() / a.max(b).as_secs_f64();
            let [a, b, mux] = [a, b, mux].map(|took| took.as_secs_f64() * 1000.0);
            writeln!(
                stdout(),
                "{layout:6} a {a:7.1} b {b:7.1} pdbmux {mux:7.1} ms  ratio {ratio:5.2}  /{path} {query}"
            )?;
        }
    }
    Ok(())
}

/// Loads the nodes into both backends, unless they are there already.
fn fill(plan: &Plan, rig: &Rig, layout: &str, options: &Options) -> Result<()> {
    let Options { nodes, files, .. } = *options;
    let fingerprint = format!("cost {layout} {nodes} {files}");
    if plan.holds(&fingerprint) {
        return Ok(());
    }
    plan.clear(rig, Locale::Bytes)?;
    let clients = rig.backends.each_ref().map(|one| &one.client);
    // Copies that do not count come first, as they do where nodes move.
    let (mut left_behind, mut counting) = (Vec::new(), Vec::new());
    for number in 0..nodes {
        let owner = match layout {
            // As good as any coin, and the same each time.
            "split" => usize::from(number.wrapping_mul(2_654_435_761) >> 31 == 1),
            _ => 0,
        };
        let copies = [0, 1].map(|holder| Copy {
            holder,
            from: holder,
            run: Some(RUNS[usize::from(holder != owner)]),
            state: State::Active,
        });
        let node = Node {
            certname: format!("node-{number:05}.example.com"),
            number,
            copies: copies.to_vec(),
        };
        let of_copy = |copy: Copy| -> Result<_> {
            Ok(Batch {
                client: clients[copy.holder],
                commands: node
                    .commands(copy)?
                    .into_iter()
                    .map(|command| enlarged(command, files))
                    .collect::<Result<_>>()?,
            })
        };
        let [older, newer] = [1 - owner, owner].map(|holder| of_copy(copies[holder]));
        left_behind.push(vec![older?]);
        counting.push(vec![newer?]);
    }
    let started = Instant::now();
    let sent = deliver(&left_behind, &clients)? + deliver(&counting, &clients)?;
    eprintln!("cost: {sent} commands in {:.1?}", started.elapsed());
    plan.remember(&fingerprint)
}

/// How long each of them takes, asked by turns so that whatever else the machine does slows all of
/// them down.
fn medians<const N: usize>(
    asked: [&Client; N],
    path: &str,
    query: &str,
    turns: usize,
) -> Result<[Duration; N]> {
    let path = format!("/pdb/query/v4/{path}");
    let parameters: Vec<_> = [("query", query)]
        .into_iter()
        .filter(|(_, query)| !query.is_empty())
        .collect();
    let mut took = [const { Vec::new() }; N];
    // The first turn warms up.
    for turn in 0..=turns {
        for (client, took) in asked.iter().zip(&mut took) {
            let answer = client.get(&path, &parameters)?;
            ensure!(answer.status == 200, "{}: {}", answer.asked, answer.body);
            if turn > 0 {
                took.push(answer.took);
            }
        }
    }
    Ok(took.map(|mut took| {
        took.sort_unstable();
        took.get(took.len() / 2).copied().unwrap_or_default()
    }))
}

fn options(settings: &mut Settings) -> Result<Options> {
    let mut options = Options {
        nodes: 5000,
        files: 60,
        turns: 15,
        layouts: Vec::new(),
        is_parted: false,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let mut value = || {
            arguments
                .next()
                .with_context(|| format!("{name} needs a value"))
        };
        match name.as_str() {
            "--nodes" => options.nodes = value()?.parse().context("--nodes needs a number")?,
            "--files" => options.files = value()?.parse().context("--files needs a number")?,
            "--turns" => options.turns = value()?.parse().context("--turns needs a number")?,
            "--layout" => options.layouts.push(value()?),
            "--bin" => settings.binary = Some(value()?.into()),
            "--part" => options.is_parted = true,
            "--keep" => settings.lifetime = Lifetime::Kept,
            _ => bail!("{USAGE}"),
        }
    }
    if options.layouts.is_empty() {
        options.layouts = ["split", "one"].map(str::to_owned).into();
    }
    Ok(options)
}
