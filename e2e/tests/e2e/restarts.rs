//! What clients get who ask all the time while a PuppetDB is killed, or pdbmux itself is restarted.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use pdbmux_e2e::daemon::{Daemon, nginx, pdbmux, pdbmux_at};
use pdbmux_e2e::http::{Answer, Client};
use pdbmux_e2e::process::{free_port, poll};
use pdbmux_e2e::server::Server;
use rustix::process::Signal;

use crate::world::{World, sorted};
use crate::{Case, cases};

pub(crate) const CASES: &[Case] = cases![
    a_backend_that_is_killed_under_load_leaves_answers_that_are_right_and_say_what_they_lack,
    a_rolling_restart_behind_nginx_and_a_hundred_reloads_cost_no_request,
];

const CLIENTS: usize = 8;
const TIMEOUT: Duration = Duration::from_secs(2);
/// Nothing is answered from memory.
const UNCACHED: (&str, &str) = ("PDBMUX_FACTS_TTL", "0s");
/// Answers before and after something happens.
const ANSWERS: usize = 100;
const PATIENCE: Duration = Duration::from_mins(1);
const RELOADS: usize = 50;

/// One of each kind of merge.
const ASKED: [(&str, &[(&str, &str)]); 7] = [
    ("nodes", &[]),
    ("facts", &[]),
    ("facts/kernel", &[]),
    ("fact-names", &[]),
    ("reports", &[]),
    ("event-counts", &[("summarize_by", "certname")]),
    (
        "nodes",
        &[("query", r#"["extract",[["function","count"]]]"#)],
    ),
];

/// What each of [`ASKED`] is answered with, in no order.
type Right = Vec<Vec<String>>;

/// What a pdbmux answers that has not found any of its backends to be down.
fn right(pdbmux: &Daemon) -> Result<Right> {
    let answers = ASKED.iter().map(|(entity, parameters)| {
        let answer = pdbmux.client.query(entity, parameters)?;
        let missing = answer.header("x-pdbmux-missing");
        ensure!(missing.is_none(), "{} lacks {missing:?}", answer.asked);
        Ok(sorted(&answer.records()?))
    });
    answers.collect()
}

/// How an answer turned out. One that is wrong is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Whole,
    Partial,
}

/// Judges the answer to one of [`ASKED`] by what both backends have and what `a` has alone.
fn kind(answer: &Answer, whole: &[String], alone: &[String]) -> Result<Kind> {
    let marks = (
        answer.header("x-backends"),
        answer.header("x-pdbmux-missing"),
    );
    let (kind, right) = match (answer.status, marks) {
        (200, (Some("2/2"), None)) => (Kind::Whole, whole),
        (200, (Some("1/2"), Some(missing))) if missing.starts_with("b; reason=") => {
            (Kind::Partial, alone)
        }
        _ => bail!(
            "{}: {} {marks:?} {}",
            answer.asked,
            answer.status,
            answer.body
        ),
    };
    ensure!(
        sorted(&answer.records()?) == right,
        "{} is {kind:?} and wrong: {}",
        answer.asked,
        answer.body
    );
    Ok(kind)
}

/// Clients that ask until they are told to stop.
#[derive(Default)]
struct Load {
    answered: AtomicUsize,
    done: AtomicBool,
}

impl Load {
    /// Has [`CLIENTS`] ask while `meanwhile` runs; what each was answered, and how long that took, since
    /// the first that is no longer `Whole` or the end.
    fn during(
        client: &Client,
        whole: &Right,
        alone: &Right,
        meanwhile: impl FnOnce(&Self) -> Result<()>,
    ) -> Result<Vec<Vec<(Kind, Duration)>>> {
        let load = Self::default();
        thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|first| {
                    let load = &load;
                    scope.spawn(move || load.ask(client, first, whole, alone))
                })
                .collect();
            let happened = meanwhile(&load);
            load.done.store(true, Ordering::SeqCst);
            let answers: Result<Vec<_>> = clients
                .into_iter()
                .map(|one| one.join().map_err(|_| anyhow!("an asking thread died"))?)
                .collect();
            // What went wrong for a client says more than who waited in vain for it.
            let answers = answers?;
            happened?;
            Ok(answers)
        })
    }

    fn ask(
        &self,
        client: &Client,
        first: usize,
        whole: &Right,
        alone: &Right,
    ) -> Result<Vec<(Kind, Duration)>> {
        let mut answers = Vec::new();
        for at in (first..).map(|turn| turn % ASKED.len()) {
            if self.done.load(Ordering::SeqCst) {
                break;
            }
            let (entity, parameters) = ASKED[at];
            let answer = client.get(&format!("/pdb/query/v4/{entity}"), parameters)?;
            answers.push((kind(&answer, &whole[at], &alone[at])?, answer.took));
            self.answered.fetch_add(1, Ordering::SeqCst);
        }
        Ok(answers)
    }

    /// Waits until so many more were answered.
    fn until_answered(&self, more: usize) -> Result<()> {
        let enough = self.answered.load(Ordering::SeqCst) + more;
        poll(Instant::now() + PATIENCE, || {
            (self.answered.load(Ordering::SeqCst) >= enough).then_some(())
        })
        .context("the clients are not answered")
    }
}

/// A PuppetDB that was killed, until this goes: all later cases need it.
struct Killed<'a>(&'a Server);

impl<'a> Killed<'a> {
    fn new(server: &'a Server) -> Result<Self> {
        server.signal(Signal::KILL)?;
        Ok(Self(server))
    }
}

impl Drop for Killed<'_> {
    fn drop(&mut self) {
        let back = self.0.stop().and_then(|()| self.0.start());
        if let Err(error) = back.and_then(|()| self.0.wait()) {
            eprintln!("{error:#}");
        }
    }
}

fn a_backend_that_is_killed_under_load_leaves_answers_that_are_right_and_say_what_they_lack(
    world: &World,
) -> Result<()> {
    let [a, b] = &world.rig.backends;
    let alone = pdbmux(
        &world.settings,
        &[a],
        &[("PDBMUX_TIMEOUT", "60s"), UNCACHED],
    )?;
    let alone = right(&alone)?;
    let mux = world.pdbmux_with(&[("PDBMUX_TIMEOUT", "2s"), UNCACHED])?;
    let whole = right(&mux)?;
    let server = b.server.as_ref().context("not a server of the rig")?;
    let mut killed = None;
    let all = Load::during(&mux.client, &whole, &alone, |load| {
        load.until_answered(ANSWERS)?;
        killed = Some(Killed::new(server)?);
        load.until_answered(ANSWERS)
    })?;
    for answers in &all {
        // Once one lacks it, none has it.
        ensure!(answers.is_sorted_by_key(|(kind, _)| *kind), "{answers:?}");
        let last = answers.last().context("a client was not answered")?;
        ensure!(last.0 == Kind::Partial, "{answers:?}");
        let slow = answers.iter().filter(|(_, took)| *took >= TIMEOUT).count();
        ensure!(
            slow <= 1,
            "more than the one that was under way: {answers:?}"
        );
    }
    drop(killed);
    poll(Instant::now() + PATIENCE, || {
        let answer = mux.client.query("nodes", &[]).ok()?;
        (answer.header("x-backends") == Some("2/2")).then_some(())
    })
    .context("the killed one is not asked again")?;
    ensure!(right(&mux)? == whole, "answers are not what they were");
    Ok(())
}

fn a_rolling_restart_behind_nginx_and_a_hundred_reloads_cost_no_request(
    world: &World,
) -> Result<()> {
    let ports = [free_port()?, free_port()?];
    let start = |port| {
        let variables = [
            ("PDBMUX_TIMEOUT", "60s"),
            ("PDBMUX_DRAIN_DELAY", "500ms"),
            UNCACHED,
        ];
        pdbmux_at(&world.settings, port, &world.rig.backends, &variables)
    };
    let mut running = [start(ports[0])?, start(ports[1])?];
    let balancer = nginx(&world.settings, &ports)?;
    // Others may not know yet that the backend of the case before is back.
    let whole = right(&running[0])?;
    let all = Load::during(&balancer.client, &whole, &whole, |load| {
        load.until_answered(ANSWERS)?;
        for (port, pdbmux) in ports.into_iter().zip(&mut running) {
            pdbmux.process.signal(Signal::TERM)?;
            poll(Instant::now() + PATIENCE, || {
                (!pdbmux.process.is_alive()).then_some(())
            })
            .context("it does not end")?;
            load.until_answered(CLIENTS)?;
            *pdbmux = start(port)?;
            load.until_answered(ANSWERS)?;
        }
        for reloads in 1..=RELOADS {
            for pdbmux in &running {
                pdbmux.process.signal(Signal::HUP)?;
            }
            for pdbmux in &running {
                until_reloaded(pdbmux, reloads)?;
            }
        }
        load.until_answered(ANSWERS)
    })?;
    ensure!(all.iter().all(|answers| !answers.is_empty()));
    for pdbmux in &running {
        ensure!(pdbmux.process.is_alive(), "{}", pdbmux.process.tail());
    }
    Ok(())
}

/// Waits until a pdbmux has read its configuration so often. `/healthz` would ask the backends each
/// time.
fn until_reloaded(pdbmux: &Daemon, reloads: usize) -> Result<()> {
    poll(Instant::now() + PATIENCE, || {
        let log = pdbmux.process.log().ok()?;
        let read = log.matches("the configuration was read again").count();
        (read >= reloads).then_some(())
    })
    .with_context(|| format!("it was not reloaded {reloads} times"))
}
