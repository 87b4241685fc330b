//! What an estate holds, as far as questions name it: asked of the PuppetDBs themselves, so that
//! one corpus fits every estate.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::http::Client;

/// What stands for a value that an estate does not have.
const NOBODY: &str = "nobody.example.com";
const NO_REPORT: &str = "0000000000000000000000000000000000000000";

/// Values of one loaded estate.
#[derive(Clone, Debug)]
pub struct Sample {
    /// What a placeholder of the corpus stands for, by its name.
    pub named: BTreeMap<&'static str, String>,
    /// Certnames the union shows.
    pub active: Vec<String>,
    /// Hashes of all reports.
    pub reports: Vec<String>,
    /// Whether a node, shown or not, never reported.
    pub silent_nodes: bool,
    /// Whether a backend orders text otherwise than by bytes.
    pub other_order: bool,
}

#[derive(Deserialize)]
struct Node {
    certname: String,
    deactivated: Option<String>,
    latest_report_hash: Option<String>,
    latest_report_status: Option<String>,
}

impl Sample {
    /// Asks the backends and the union what they hold.
    pub fn of(backends: &[&Client], union: &Client) -> Result<Self> {
        let held: Vec<BTreeMap<String, Node>> = backends
            .iter()
            .map(|one| nodes(one))
            .collect::<Result<_>>()?;
        let shown = nodes(union)?;
        let first = |found: &mut dyn Iterator<Item = &String>| found.next().cloned();
        let holders = |name: &str| held.iter().filter(|one| one.contains_key(name)).count();
        let active: Vec<String> = shown
            .values()
            .filter(|node| node.deactivated.is_none())
            .map(|node| node.certname.clone())
            .collect();
        // A stale copy says something else than the owner's.
        let stale = |name: &&String| {
            let owned = shown
                .get(*name)
                .and_then(|it| it.latest_report_hash.as_ref());
            holders(name) > 1
                && held.iter().filter_map(|one| one.get(*name)).any(|copy| {
                    copy.latest_report_hash.is_some() && copy.latest_report_hash.as_ref() != owned
                })
        };
        let failed_once = |name: &&String| {
            let said = |node: &Node| node.latest_report_status.as_deref() == Some("failed");
            stale(name)
                && !shown.get(*name).is_some_and(said)
                && held.iter().filter_map(|one| one.get(*name)).any(said)
        };
        let only_in = |index: usize| {
            first(&mut active.iter().filter(|name| {
                holders(name) == 1 && held.get(index).is_some_and(|one| one.contains_key(*name))
            }))
        };
        let any = active.first().cloned().unwrap_or_else(|| NOBODY.into());
        let shared = first(&mut active.iter().filter(failed_once))
            .or_else(|| first(&mut active.iter().filter(stale)))
            .unwrap_or_else(|| any.clone());
        let gone = shown
            .values()
            .find(|node| node.deactivated.is_some())
            .map_or_else(|| NOBODY.to_owned(), |node| node.certname.clone());
        let latest = |name: &str| shown.get(name).and_then(|it| it.latest_report_hash.clone());
        let by_backend: Vec<BTreeSet<String>> = backends
            .iter()
            .map(|one| reports(one, "agent"))
            .collect::<Result<_>>()?;
        let all = reports(union, "agent")?;
        let plan = reports(union, "plan")?.into_iter().next();
        let twice = all
            .iter()
            .find(|hash| by_backend.iter().filter(|one| one.contains(*hash)).count() > 1);
        let report = latest(&shared).unwrap_or_else(|| NO_REPORT.into());
        let stale_report = held
            .iter()
            .filter_map(|one| one.get(&shared)?.latest_report_hash.clone())
            .find(|hash| *hash != report);
        let named = BTreeMap::from([
            ("alone", only_in(0).unwrap_or_else(|| any.clone())),
            ("other", only_in(1).unwrap_or_else(|| any.clone())),
            (
                "stale_report",
                stale_report.unwrap_or_else(|| report.clone()),
            ),
            ("twice", twice.cloned().unwrap_or_else(|| report.clone())),
            ("plan", plan.unwrap_or_else(|| NO_REPORT.into())),
            ("gone", gone),
            ("report", report),
            ("shared", shared),
        ]);
        Ok(Self {
            named,
            active,
            reports: all.into_iter().collect(),
            silent_nodes: shown.values().any(|node| node.latest_report_hash.is_none()),
            other_order: !backends
                .iter()
                .map(|one| orders_by_bytes(one))
                .collect::<Result<Vec<_>>>()?
                .into_iter()
                .all(|by_bytes| by_bytes),
        })
    }

    /// A line of the corpus with its placeholders filled in, percent-encoded in the path.
    pub fn fill(&self, line: &str) -> String {
        let path_ends = line.find(" ? ").or_else(|| line.find(" ! "));
        let (path, rest) = line.split_at(path_ends.unwrap_or(line.len()));
        let (mut path, mut rest) = (path.to_owned(), rest.to_owned());
        for (name, value) in &self.named {
            let mark = format!("<{name}>");
            let encoded: String = form_urlencoded::byte_serialize(value.as_bytes()).collect();
            path = path.replace(&mark, &encoded);
            rest = rest.replace(&mark, value);
        }
        path + &rest
    }
}

fn nodes(client: &Client) -> Result<BTreeMap<String, Node>> {
    let query = r#"["=","node_state","any"]"#;
    let all: Vec<Node> = client.query("nodes", &[("query", query)])?.json()?;
    Ok(all
        .into_iter()
        .map(|node| (node.certname.clone(), node))
        .collect())
}

fn orders_by_bytes(client: &Client) -> Result<bool> {
    let query = r#"["=","node_state","any"]"#;
    let order_by = r#"[{"field":"certname"}]"#;
    let nodes = client.query("nodes", &[("query", query), ("order_by", order_by)])?;
    let nodes: Vec<Node> = nodes.json()?;
    Ok(nodes.is_sorted_by(|one, next| one.certname <= next.certname))
}

fn reports(client: &Client, kind: &str) -> Result<BTreeSet<String>> {
    let query = format!(r#"["extract",["hash"],["=","type","{kind}"]]"#);
    let rows = client.query("reports", &[("query", &query)])?;
    rows.records()?
        .into_iter()
        .map(|row| row.text("hash").context("a report without a hash"))
        .collect()
}
