//! A PuppetDB that hangs: stopped in the middle of its life and woken again.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use pdbmux_e2e::daemon::Daemon;
use pdbmux_e2e::estate::Side;
use pdbmux_e2e::process::{Running, poll};
use rustix::process::Signal;

use crate::world::{World, bytes_by_certname};
use crate::{Case, cases};

pub(crate) const CASES: &[Case] =
    cases![r008_r011_r014_a_hung_backend_costs_one_timeout_and_comes_back];

const TIMEOUT: Duration = Duration::from_secs(2);

/// For scheduling on a busy machine; a second timeout in a row would still be seen.
const MARGIN: Duration = Duration::from_millis(1800);

/// A process that is stopped until this goes.
struct Hung<'a>(&'a Running);

impl<'a> Hung<'a> {
    fn new(process: &'a Running) -> Result<Self> {
        process.signal(Signal::STOP)?;
        Ok(Self(process))
    }
}

impl Drop for Hung<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.0.signal(Signal::CONT) {
            eprintln!("{error:#}");
        }
    }
}

fn r008_r011_r014_a_hung_backend_costs_one_timeout_and_comes_back(world: &World) -> Result<()> {
    for (hung, left) in [(Side::B, Side::A), (Side::A, Side::B)] {
        // Nothing remembered from before the outage may answer for the one that hangs.
        let pdbmux = world.pdbmux_with(&[
            ("PDBMUX_TIMEOUT", "2s"),
            ("PDBMUX_FACTS_TTL", "0s"),
            ("PDBMUX_HEALTH_PROBE_ENABLED", "false"),
        ])?;
        whole(&pdbmux)?;
        let process = world.rig.backends[hung as usize]
            .process
            .as_ref()
            .context("not our process")?;
        {
            let _hung = Hung::new(process)?;
            survives(world, &pdbmux, left)?;
        }
        whole(&pdbmux)?;
    }
    Ok(())
}

/// Every kind of merge answers with what `left` has; asked at the same time, as clients do.
fn survives(world: &World, pdbmux: &Daemon, left: Side) -> Result<()> {
    let asks: [(&str, &[(&str, &str)]); 7] = [
        ("nodes", &[]),
        ("facts", &[]),
        ("facts/kernel", &[]),
        ("fact-names", &[]),
        ("reports", &[("limit", "3")]),
        ("event-counts", &[("summarize_by", "certname")]),
        (
            "nodes",
            &[("query", r#"["extract",[["function","count"]]]"#)],
        ),
    ];
    let answers = thread::scope(|scope| {
        let asked: Vec<_> = asks
            .iter()
            .map(|(entity, parameters)| scope.spawn(|| pdbmux.client.query(entity, parameters)))
            .collect();
        asked
            .into_iter()
            .map(|one| one.join().map_err(|_| anyhow!("an asking thread died"))?)
            .collect::<Result<Vec<_>>>()
    })?;
    for answer in &answers {
        ensure!(
            answer.header("x-backends") == Some("1/2"),
            "{}: {:?}",
            answer.asked,
            answer.headers
        );
        ensure!(
            answer.took < TIMEOUT + MARGIN,
            "{} took {:?}",
            answer.asked,
            answer.took
        );
    }
    for ((entity, _), answer) in asks.iter().zip(&answers).take(3) {
        let alone = bytes_by_certname(&world.backend(left).query(entity, &[])?)?;
        let got = bytes_by_certname(answer)?;
        ensure!(
            got.keys().eq(alone.keys()),
            "{entity}: nodes {:?}",
            got.keys()
        );
    }
    let health = pdbmux.client.get("/healthz", &[])?;
    ensure!(
        health.status == 200 && health.body.contains("\"degraded\""),
        "R190: {} {}",
        health.status,
        health.body
    );
    Ok(())
}

/// Both contribute, at once or after the woken one has caught up.
fn whole(pdbmux: &Daemon) -> Result<()> {
    for entity in ["nodes", "facts"] {
        poll(Instant::now() + Duration::from_secs(30), || {
            let answer = pdbmux.client.query(entity, &[]).ok()?;
            (answer.header("x-backends") == Some("2/2")).then_some(())
        })
        .with_context(|| format!("{entity} never came from both backends"))?;
    }
    Ok(())
}
