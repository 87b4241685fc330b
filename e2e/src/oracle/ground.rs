//! A rig with an estate in it: the servers stay, their content changes.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::estates::{Made, NAMES, State};
use super::field::Field;
use super::sample::Sample;
use crate::daemon::{Daemon, pdbmux};
use crate::estate::Estate;
use crate::http::Client;
use crate::load::{Batch, deliver};
use crate::postgres::Locale;
use crate::rig::{Member, Plan, Rig, Size};
use crate::settings::Settings;

/// The estate that all end-to-end tests share.
pub const DEFAULT: &str = "rig";

/// What fills a rig.
#[derive(Clone, Debug)]
pub enum Content {
    /// The end-to-end tests' own estate.
    Default(Estate),
    /// One made for the oracle.
    Made(Made),
}

/// What pdbmux is put in front of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// The backends.
    Backends,
    /// The union alone: whatever differs is no matter of merging.
    Union,
}

impl Content {
    /// Names of all estates.
    pub fn names() -> impl Iterator<Item = &'static str> {
        [DEFAULT].into_iter().chain(NAMES)
    }

    /// The estate of this name.
    pub fn named(name: &str) -> Result<Self> {
        if name == DEFAULT {
            return Ok(Self::Default(Estate::default()));
        }
        let names: Vec<_> = Self::names().collect();
        Made::named(name)
            .map(Self::Made)
            .with_context(|| format!("no estate {name}; there are {}", names.join(", ")))
    }

    /// How many backends it needs.
    pub fn size(&self) -> Size {
        match self {
            Self::Default(_) => Size::Two,
            Self::Made(made) => made.size,
        }
    }

    /// Fills the rig with it, unless it is there already.
    pub fn fill(&self, plan: &Plan, rig: &Rig) -> Result<()> {
        let fingerprint = match self {
            Self::Default(estate) => estate.fingerprint(),
            Self::Made(made) => made.fingerprint()?,
        };
        if plan.holds(&fingerprint) {
            return Ok(());
        }
        let started = Instant::now();
        match self {
            Self::Default(estate) => {
                plan.clear(rig, Locale::Bytes)?;
                plan.load(rig, estate)?;
            }
            Self::Made(made) => {
                plan.clear(rig, made.locale)?;
                let sent = load(made, &backends(rig, made.size), union(rig)?)?;
                plan.remember(&fingerprint)?;
                eprintln!(
                    "oracle: {sent} commands of {} in {:.1?}",
                    made.name,
                    started.elapsed()
                );
            }
        }
        Ok(())
    }
}

/// The backends' clients in configured order.
fn backends(rig: &Rig, size: Size) -> Vec<&Client> {
    members(rig, size).iter().map(|one| &one.client).collect()
}

fn members(rig: &Rig, size: Size) -> Vec<&Member> {
    let third = rig.third.iter().filter(|_| size == Size::Three);
    rig.backends.iter().chain(third).collect()
}

fn union(rig: &Rig) -> Result<&Client> {
    Ok(&rig.oracle.as_ref().context("no oracle")?.client)
}

/// Copies that do not count come first, as they do where nodes move. Later backends before others, so
/// that the first one's receipt times are the latest (ties go to it).
fn load(made: &Made, backends: &[&Client], union: &Client) -> Result<usize> {
    let (mut left_behind, mut nodes) = (Vec::new(), Vec::new());
    for node in &made.nodes {
        let (mut old, mut batches) = (Vec::new(), Vec::new());
        for copy in node.copies.iter().rev() {
            let client = backends.get(copy.holder).context("too few backends")?;
            let commands = node.commands(*copy)?;
            let is_old = node.owner().is_some_and(|owner| copy.run < owner.run);
            let batches = if is_old { &mut old } else { &mut batches };
            batches.push(Batch { client, commands });
        }
        left_behind.push(old);
        let commands = node.union_commands()?;
        batches.push(Batch {
            client: union,
            commands,
        });
        nodes.push(batches);
    }
    let all: Vec<&Client> = backends.iter().copied().chain([union]).collect();
    let sent = deliver(&left_behind, &all)? + deliver(&nodes, &all)?;
    for node in &made.nodes {
        let purged = node.copies.iter().filter(|it| it.state == State::Purged);
        for copy in purged {
            let client = backends.get(copy.holder).context("too few backends")?;
            delete(client, &node.certname)?;
        }
    }
    Ok(sent)
}

/// Deletes all that a PuppetDB knows of a node, as a purge does in time.
fn delete(client: &Client, certname: &str) -> Result<()> {
    let body = json!({"command": "delete", "version": 1, "payload": {"certname": certname}});
    let answer = client.post("/pdb/admin/v1/cmd", &[], &body.to_string())?;
    ensure!(
        answer.status == 200,
        "{} cannot delete {certname}: {} {}",
        client.base(),
        answer.status,
        answer.body
    );
    Ok(())
}

/// pdbmux under `mode` before a filled rig, with the questions' values; the daemon stops when it
/// is dropped.
pub fn field(
    settings: &Settings,
    rig: &Rig,
    size: Size,
    before: Before,
    mode: &str,
) -> Result<(Field, Sample, Daemon)> {
    let members = match before {
        Before::Backends => members(rig, size),
        Before::Union => rig.oracle.iter().collect(),
    };
    let daemon = pdbmux(
        settings,
        &members,
        &[
            ("PDBMUX_MERGE", mode),
            // A busy machine is no outage, and the oracle has no fact of pdbmux's own.
            ("PDBMUX_TIMEOUT", "60s"),
            ("PDBMUX_HEALTH_PROBE_ENABLED", "false"),
            ("PDBMUX_SOURCE_FACT_ENABLED", "false"),
        ],
    )?;
    let backends = backends(rig, size);
    let union = union(rig)?;
    let sample = Sample::of(&backends, union)?;
    let field = Field {
        union: union.clone(),
        pdbmux: daemon.client.clone(),
        backends: backends.iter().copied().cloned().collect(),
        silent_nodes: sample.silent_nodes,
        other_order: sample.other_order,
    };
    Ok((field, sample, daemon))
}
