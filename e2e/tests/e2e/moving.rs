//! An estate of 500 nodes that moves from one PuppetDB to another, step by step: what `pdbmux drift`,
//! the metrics and the estate page tell of it, and when the gate opens.

use std::ops::Range;
use std::process::{Command as Process, Output};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use jiff::{SignedDuration, Timestamp};
use pdbmux_e2e::daemon::Daemon;
use pdbmux_e2e::estate::Side;
use pdbmux_e2e::http::Client;
use pdbmux_e2e::postgres::Locale;
use pdbmux_e2e::process::{free_port, poll};
use pdbmux_e2e::puppetdb::queue_depth;
use pdbmux_e2e::rig::Plan;
use serde_json::{Value, json};

use crate::world::{World, rows};
use crate::{Case, cases};

/// The last of all cases: what it leaves in the PuppetDBs is not the estate of the others.
pub(crate) const CASES: &[Case] =
    cases![drift_metrics_and_page_tell_the_same_of_a_migration_and_the_gate_opens_at_its_end];

const NODES: usize = 500;
/// How many have moved after each step.
const STEPS: [usize; 5] = [0, 1, 250, 499, NODES];
const GATE: &str = "active(a) > 0";
/// Senders at the same time.
const SENDERS: usize = 4;
const PROCESSED: Duration = Duration::from_mins(2);

fn drift_metrics_and_page_tell_the_same_of_a_migration_and_the_gate_opens_at_its_end(
    world: &World,
) -> Result<()> {
    Plan::new(&world.settings)?.clear(&world.rig, Locale::Bytes)?;
    let (old, new) = (world.backend(Side::A), world.backend(Side::B));
    let admin = format!("127.0.0.1:{}", free_port()?);
    let pdbmux = world.pdbmux_with(&[
        ("PDBMUX_MERGE", "exact"),
        ("PDBMUX_ADMIN_LISTEN", &admin),
        // Nothing is told from memory.
        ("PDBMUX_FRESHNESS_TTL", "0s"),
        ("PDBMUX_FACTS_TTL", "0s"),
    ])?;
    let operators = Client::new(format!("http://{admin}"));
    let began = Timestamp::now();
    run(old, 0..NODES, began - SignedDuration::from_mins(30))?;
    let mut moved = 0;
    for step in STEPS {
        run(new, moved..step, began - SignedDuration::from_mins(5))?;
        moved = step;
        let told = Told::expected(moved);
        ensure!(
            drift(world)? == told,
            "drift: {:?} for {told:?}",
            drift(world)?
        );
        answers(&pdbmux)?;
        let metrics = metrics(&operators)?;
        ensure!(metrics == told, "metrics: {metrics:?} for {told:?}");
        let page = page(&operators)?;
        ensure!(page == told, "page: {page:?} for {told:?}");
        let gate = ask(world, &["--summary", "--fail-if", GATE], None)?;
        let wanted = if moved < NODES { 3 } else { 0 };
        ensure!(
            gate.status.code() == Some(wanted),
            "{moved} moved: {gate:?}"
        );
    }
    // Who does not answer might still have some.
    let missing = format!("{},c=http://127.0.0.1:{}", backends(world), free_port()?);
    let gate = ask(world, &["--summary", "--fail-if", GATE], Some(missing))?;
    ensure!(gate.status.code() == Some(1), "{gate:?}");
    Ok(())
}

/// What is told of both backends, whoever tells it.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    held: [u64; 2],
    owned: [u64; 2],
    stale: [u64; 2],
    shared: u64,
    all: u64,
}

impl Told {
    fn expected(moved: usize) -> Self {
        let (moved, all) = (moved as u64, NODES as u64);
        Self {
            held: [all, moved],
            owned: [all - moved, moved],
            stale: [moved, 0],
            shared: moved,
            all,
        }
    }
}

/// Asks `pdbmux drift`, which must also know who moved within the last ten minutes.
fn drift(world: &World) -> Result<Told> {
    let output = ask(world, &["--format", "json", "--since", "10m"], None)?;
    ensure!(output.status.success(), "{output:?}");
    let told: Value = serde_json::from_slice(&output.stdout)?;
    let count = |of: &Value, key: &str| of[key].as_u64().context(format!("no {key} in {of}"));
    let both = |key: &str| -> Result<[u64; 2]> {
        Ok([
            count(&told["backends"][0], key)?,
            count(&told["backends"][1], key)?,
        ])
    };
    let owned = both("owned")?;
    ensure!(both("moved")? == [0, owned[1]], "moved: {told:#}");
    let nodes = told["nodes"].as_array().context("no nodes")?;
    ensure!(nodes.len() == NODES, "{} nodes are listed", nodes.len());
    Ok(Told {
        held: both("held")?,
        owned,
        stale: both("stale")?,
        shared: count(&told["all"], "shared")?,
        all: count(&told["all"], "held")?,
    })
}

fn metrics(operators: &Client) -> Result<Told> {
    let text = operators.get("/metrics", &[])?.body;
    let number = |line: &str| -> Result<u64> {
        let found = text.lines().find_map(|it| it.strip_prefix(line));
        let found = found.with_context(|| format!("no {line} in the metrics"))?;
        Ok(found.trim().parse()?)
    };
    let both = |name: &str| -> Result<[u64; 2]> {
        let of = |backend| number(&format!("{name}{{backend=\"{backend}\"}} "));
        Ok([of("a")?, of("b")?])
    };
    Ok(Told {
        held: both("pdbmux_backend_nodes")?,
        owned: both("pdbmux_backend_owned_nodes")?,
        stale: both("pdbmux_backend_stale_nodes")?,
        shared: number("pdbmux_shared_nodes ")?,
        all: number("pdbmux_nodes ")?,
    })
}

fn page(operators: &Client) -> Result<Told> {
    let html = operators.get("/", &[])?.body;
    let after = |from: &str, word: &str| -> Result<u64> {
        let behind = html
            .split_once(from)
            .map(|it| it.1)
            .context("no such part")?;
        let (_, number) = behind
            .split_once(&format!("<dt>{word}</dt><dd>"))
            .with_context(|| format!("no {word} behind {from}"))?;
        let digits = number.split(|c: char| !c.is_ascii_digit()).next();
        Ok(digits.unwrap_or_default().parse()?)
    };
    let both = |word: &str| -> Result<[u64; 2]> {
        Ok([after("<h3>a</h3>", word)?, after("<h3>b</h3>", word)?])
    };
    Ok(Told {
        held: both("Held")?,
        owned: both("Owned")?,
        stale: both("Stale")?,
        shared: after("class=\"totals\"", "Shared")?,
        all: after("class=\"totals\"", "Nodes")?,
    })
}

/// Each node is there once, whoever owns it.
fn answers(pdbmux: &Daemon) -> Result<()> {
    let count = r#"["extract",[["function","count"]]]"#;
    let counted = rows(&pdbmux.client.query("nodes", &[("query", count)])?)?;
    ensure!(counted[0]["count"] == NODES, "{counted:?}");
    let listed = rows(&pdbmux.client.query("nodes", &[])?)?;
    ensure!(listed.len() == NODES, "{} nodes", listed.len());
    Ok(())
}

fn backends(world: &World) -> String {
    let [a, b] = world.rig.backends.each_ref().map(|one| one.client.base());
    format!("a={a},b={b}")
}

fn ask(world: &World, arguments: &[&str], backends_in_place: Option<String>) -> Result<Output> {
    let output = Process::new(world.settings.pdbmux_binary()?)
        .env_clear()
        .env("PDBMUX_MERGE", "exact")
        .env("PDBMUX_TIMEOUT", "60s")
        .env(
            "PDBMUX_BACKENDS",
            backends_in_place.unwrap_or_else(|| backends(world)),
        )
        .arg("drift")
        .args(arguments)
        .output()?;
    Ok(output)
}

/// Has some of the nodes run against a PuppetDB.
fn run(server: &Client, nodes: Range<usize>, ended: Timestamp) -> Result<()> {
    let share = nodes.len().div_ceil(SENDERS).max(1);
    thread::scope(|scope| {
        let senders: Vec<_> = nodes
            .clone()
            .step_by(share)
            .map(|first| {
                let mine = first..nodes.end.min(first + share);
                scope.spawn(move || mine.into_iter().try_for_each(|at| send(server, at, ended)))
            })
            .collect();
        senders
            .into_iter()
            .try_for_each(|sender| sender.join().map_err(|_| anyhow!("a sender died"))?)
    })?;
    // What was taken is in the queue.
    poll(Instant::now() + PROCESSED, || {
        let count = r#"["extract",[["function","count"]]]"#;
        let counted = server.query("reports", &[("query", count)]).ok()?;
        let counted: Value = counted.json().ok()?;
        let is_there = counted[0]["count"] == nodes.end;
        (is_there && queue_depth(server)? == 0).then_some(())
    })
    .with_context(|| format!("{} has not stored {nodes:?}", server.base()))
}

fn send(server: &Client, at: usize, ended: Timestamp) -> Result<()> {
    let certname = format!("move-{at:03}.example.com");
    let ended = ended.to_string();
    let facts = json!({
        "certname": certname,
        "environment": "production",
        "producer": "server.example.com",
        "producer_timestamp": ended,
        "values": {"kernel": "Linux", "number": at},
    });
    let report = json!({
        "certname": certname,
        "environment": "production",
        "puppet_version": "8.4.0",
        "report_format": 12,
        "configuration_version": "1",
        "start_time": ended,
        "end_time": ended,
        "producer_timestamp": ended,
        "producer": "server.example.com",
        "transaction_uuid": null,
        "catalog_uuid": null,
        "code_id": null,
        "job_id": null,
        "cached_catalog_status": "not_used",
        "noop": false,
        "noop_pending": false,
        "corrective_change": false,
        "status": "unchanged",
        "resources": [],
        "metrics": [],
        "logs": [],
    });
    for (command, version, body) in [("replace_facts", "5", facts), ("store_report", "8", report)] {
        let answer = server.post(
            "/pdb/cmd/v1",
            &[
                ("command", command),
                ("version", version),
                ("certname", &certname),
                ("producer-timestamp", &ended),
            ],
            &body.to_string(),
        )?;
        ensure!(answer.status == 200, "{command}: {}", answer.body);
    }
    Ok(())
}
