//! What every case is given, and the comparisons many of them make.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use pdbmux_e2e::daemon::{Daemon, pdbmux};
use pdbmux_e2e::estate::{Estate, Side, Story};
use pdbmux_e2e::http::{Answer, Client};
use pdbmux_e2e::records::{Record, by_certname};
use pdbmux_e2e::rig::Rig;
use pdbmux_e2e::settings::Settings;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use serde_json::value::RawValue;

/// The name of pdbmux's own fact and key unless configured otherwise (R277).
pub(crate) const SOURCE: &str = "pdbmux_source";

/// The loaded rig with a pdbmux in its default configuration.
#[derive(Debug)]
pub(crate) struct World {
    /// Under its defaults, but patient: a busy machine is no outage.
    pub(crate) pdbmux: Daemon,
    pub(crate) rig: Rig,
    pub(crate) estate: Estate,
    pub(crate) settings: Settings,
}

impl World {
    pub(crate) fn new() -> Result<Self> {
        let settings = Settings::from_env()?;
        // Said before the rig takes its time.
        settings.pdbmux_binary()?;
        let estate = Estate::default();
        let rig = Rig::loaded(&settings, &estate)?;
        let pdbmux = pdbmux(&settings, &rig.backends, &[("PDBMUX_TIMEOUT", "60s")])?;
        Ok(Self {
            pdbmux,
            rig,
            estate,
            settings,
        })
    }

    /// A pdbmux with `variables` on top of its defaults.
    pub(crate) fn pdbmux_with(&self, variables: &[(&str, &str)]) -> Result<Daemon> {
        let mut all = vec![("PDBMUX_TIMEOUT", "60s")];
        all.extend(variables);
        pdbmux(&self.settings, &self.rig.backends, &all)
    }

    /// Default pdbmux's answer below `/pdb/query/v4/`, a 200.
    pub(crate) fn query(&self, entity: &str, parameters: &[(&str, &str)]) -> Result<Answer> {
        self.pdbmux.client.query(entity, parameters)
    }

    /// One backend itself.
    pub(crate) fn backend(&self, side: Side) -> &Client {
        let [a, b] = &self.rig.backends;
        match side {
            Side::A => &a.client,
            Side::B => &b.client,
        }
    }

    /// The name pdbmux knows it by.
    pub(crate) fn name(&self, side: Side) -> &str {
        let [a, b] = &self.rig.backends;
        match side {
            Side::A => &a.name,
            Side::B => &b.name,
        }
    }

    /// The PuppetDB that holds what pdbmux should answer.
    pub(crate) fn oracle(&self) -> Result<&Client> {
        Ok(&self.rig.oracle.as_ref().context("no oracle")?.client)
    }

    /// Active nodes that one backend alone holds: what is asked of these is disjoint.
    pub(crate) fn held_once(&self) -> Vec<&'static str> {
        let once = [
            Story::OnlyA,
            Story::OnlyB,
            Story::SilentInA,
            Story::SilentInB,
        ];
        self.estate
            .nodes
            .iter()
            .filter_map(|node| once.contains(&node.story).then_some(node.certname))
            .collect()
    }

    /// Both backends' answers to the same question, in configured order.
    pub(crate) fn both(&self, entity: &str, parameters: &[(&str, &str)]) -> Result<[Answer; 2]> {
        Ok([
            self.backend(Side::A).query(entity, parameters)?,
            self.backend(Side::B).query(entity, parameters)?,
        ])
    }
}

/// The answer of `side` among both.
pub(crate) fn of(side: Side, [a, b]: &[Answer; 2]) -> &Answer {
    match side {
        Side::A => a,
        Side::B => b,
    }
}

/// Each certname's records as bytes, in no order.
pub(crate) fn bytes_by_certname(answer: &Answer) -> Result<BTreeMap<String, Vec<String>>> {
    let grouped = by_certname(&answer.records()?)?;
    Ok(grouped
        .into_iter()
        .map(|(certname, records)| (certname, sorted(&records)))
        .collect())
}

/// Records as bytes, in no order.
pub(crate) fn sorted(records: &[Record<'_>]) -> Vec<String> {
    let mut all: Vec<_> = records.iter().map(|record| record.0.to_owned()).collect();
    all.sort();
    all
}

/// A record with its keys in order and each value's bytes as they are: versions of PuppetDB
/// order columns differently.
pub(crate) fn canonical(record: Record<'_>) -> Result<String> {
    let fields: BTreeMap<String, &RawValue> = serde_json::from_str(record.0)?;
    Ok(serde_json::to_string(&fields)?)
}

/// Every record of an answer in that form, in its order.
pub(crate) fn canonicals(answer: &Answer) -> Result<Vec<String>> {
    answer.records()?.into_iter().map(canonical).collect()
}

/// A record with pdbmux's key put before its closing brace (R033).
pub(crate) fn with_source(record: &str, key: &str, backend: &str) -> Result<String> {
    let open = record
        .strip_suffix('}')
        .context("a record that is no object")?;
    Ok(format!("{open},\"{key}\":\"{backend}\"}}"))
}

/// `left == right`, and which element differs if not.
pub(crate) fn same<T: PartialEq + std::fmt::Debug>(
    what: &str,
    got: &[T],
    wanted: &[T],
) -> Result<()> {
    let odd = got.iter().zip(wanted).find(|(got, wanted)| got != wanted);
    ensure!(
        odd.is_none(),
        "{what}: got {:?}, wanted {:?}",
        odd.map(|it| it.0),
        odd.map(|it| it.1)
    );
    ensure!(
        got.len() == wanted.len(),
        "{what}: got {}, wanted {}; first beyond: {:?}",
        got.len(),
        wanted.len(),
        got.get(wanted.len()).or_else(|| wanted.get(got.len()))
    );
    Ok(())
}

/// All but what a path segment may hold as it is.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Percent-encodes a path segment.
pub(crate) fn segment(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

/// A row's columns as JSON, for rows whose bytes are not promised.
pub(crate) fn rows(answer: &Answer) -> Result<Vec<BTreeMap<String, Value>>> {
    answer.json()
}
