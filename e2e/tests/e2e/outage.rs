//! PuppetDBs that hang, or are stopped, and come back.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use pdbmux_e2e::daemon::Daemon;
use pdbmux_e2e::estate::Side;
use pdbmux_e2e::http::Answer;
use pdbmux_e2e::process::poll;
use pdbmux_e2e::server::Server;
use rustix::process::Signal;

use crate::world::{World, bytes_by_certname};
use crate::{Case, cases};

pub(crate) const CASES: &[Case] = cases![
    r008_r011_r014_a_hung_backend_costs_one_timeout_and_comes_back,
    r009_r191_r211_r221_while_both_are_stopped_what_was_asked_before_is_served_with_its_age,
];

const TIMEOUT: Duration = Duration::from_secs(2);

/// For scheduling on a busy machine; a second timeout in a row would still be seen.
const MARGIN: Duration = Duration::from_millis(1800);

/// A process that is stopped until this goes.
struct Hung<'a>(&'a Server);

impl<'a> Hung<'a> {
    fn new(server: &'a Server) -> Result<Self> {
        server.signal(Signal::STOP)?;
        Ok(Self(server))
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
        {
            let _hung = Hung::new(server(world, hung)?)?;
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

fn server(world: &World, side: Side) -> Result<&Server> {
    let member = &world.rig.backends[side as usize];
    member.server.as_ref().context("not a server of the rig")
}

/// Servers that are stopped until this goes: all later cases need them.
struct Stopped<'a>([&'a Server; 2]);

impl<'a> Stopped<'a> {
    fn new(servers: [&'a Server; 2]) -> Result<Self> {
        for server in servers {
            server.stop()?;
        }
        Ok(Self(servers))
    }
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        let begun = self.0.map(Server::start);
        let ready = self.0.map(Server::wait);
        for error in begun.into_iter().chain(ready).filter_map(Result::err) {
            eprintln!("{error:#}");
        }
    }
}

const ASKED: [&str; 3] = ["nodes", "facts", "facts/kernel"];

fn r009_r191_r211_r221_while_both_are_stopped_what_was_asked_before_is_served_with_its_age(
    world: &World,
) -> Result<()> {
    let pdbmux = world.pdbmux_with(&[
        ("PDBMUX_FACTS_TTL", "1s"),
        ("PDBMUX_HEALTH_PROBE_INTERVAL", "200ms"),
    ])?;
    let asked = Instant::now();
    let before = ASKED.map(|entity| pdbmux.client.query(entity, &[]));
    let stored = Instant::now();
    let before = before.into_iter().collect::<Result<Vec<_>>>()?;
    for answer in &before {
        live(answer)?;
    }
    {
        let servers = [server(world, Side::A)?, server(world, Side::B)?];
        let _stopped = Stopped::new(servers)?;
        for _ in 0..2 {
            for answer in &before {
                is_stale(&pdbmux, answer, asked, stored)?;
            }
            // Once more when the probes know of it: then nobody is in service, and all are asked.
            until_status(&pdbmux, "/readyz", 503)?;
        }
        for unseen in ["fact-names", "nodes/web1.example.com", "reports"] {
            let answer = pdbmux.client.get(&format!("/pdb/query/v4/{unseen}"), &[])?;
            ensure!(answer.status == 502, "{unseen}: {}", answer.status);
        }
        let health = pdbmux.client.get("/healthz", &[])?;
        let told: serde_json::Value = health.json()?;
        ensure!(health.status == 503 && told["status"] == "down", "{told}");
        ensure!(told["cache"]["serving_stale"] == true, "{told}");
        ensure!(pdbmux.client.get("/livez", &[])?.status == 200);
    }
    // The same process, and nothing was done to it.
    ensure!(pdbmux.process.is_alive(), "pdbmux has ended");
    until_status(&pdbmux, "/readyz", 200)?;
    whole(&pdbmux)?;
    for (entity, answer) in ASKED.iter().zip(&before) {
        let after = pdbmux.client.query(entity, &[])?;
        live(&after)?;
        ensure!(
            bytes_by_certname(&after)? == bytes_by_certname(answer)?,
            "{entity} is not what it was"
        );
    }
    pdbmux.client.query("fact-names", &[])?;
    let health = pdbmux.client.get("/healthz", &[])?;
    ensure!(health.body.contains("\"status\":\"ok\""), "{}", health.body);
    Ok(())
}

/// An answer of all backends that are there.
fn live(answer: &Answer) -> Result<()> {
    let from = answer.header("x-cache").context("no X-Cache")?;
    let fresh = from == "miss" && answer.header("age") == Some("0") || from == "hit";
    ensure!(
        fresh && answer.header("x-backends") == Some("2/2"),
        "{}: {:?}",
        answer.asked,
        answer.headers
    );
    Ok(())
}

/// What was answered at `before` is served again, as old as it is: it was stored between `asked`
/// and `stored`.
fn is_stale(pdbmux: &Daemon, before: &Answer, asked: Instant, stored: Instant) -> Result<()> {
    let path = before.asked.strip_prefix(pdbmux.client.base());
    let path = path.context("another server's answer")?;
    // It is a hit for as long as it is fresh.
    let (least, stale, most) = poll(Instant::now() + Duration::from_secs(30), || {
        let least = stored.elapsed().as_secs();
        let answer = pdbmux.client.get(path, &[]).ok()?;
        let most = asked.elapsed().as_secs();
        (answer.header("x-cache") != Some("hit")).then_some((least, answer, most))
    })
    .context("it never grew old")?;
    let header = |name| stale.header(name);
    ensure!(
        stale.status == 200
            && header("x-cache") == Some("stale")
            && header("x-backends") == Some("2/2")
            && stale.body == before.body,
        "{path}: {} {:?}",
        stale.status,
        stale.headers
    );
    let age: u64 = header("age").context("no Age")?.parse()?;
    ensure!(
        (least..=most).contains(&age) && age > 0,
        "{path}: {age} s old, and stored {least} to {most} s ago"
    );
    Ok(())
}

fn until_status(pdbmux: &Daemon, path: &str, status: u16) -> Result<()> {
    poll(Instant::now() + Duration::from_secs(30), || {
        let answer = pdbmux.client.get(path, &[]).ok()?;
        (answer.status == status).then_some(())
    })
    .with_context(|| format!("{path} never was {status}"))
}
