//! The rule, record by record: who owns a node, and who speaks for a report.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Deserialize;

use super::super::canon::Json;
use crate::http::Client;

/// Backends by their places.
#[derive(Debug)]
pub(super) struct Rule {
    /// The one with the newest data of a node; the first of equals.
    owners: BTreeMap<String, usize>,
    /// For a report: its node's owner if it has it, else the first that has it.
    tellers: BTreeMap<String, usize>,
}

#[derive(Deserialize)]
struct Node {
    certname: String,
    report_timestamp: Option<String>,
    facts_timestamp: Option<String>,
    catalog_timestamp: Option<String>,
}

#[derive(Deserialize)]
struct Report {
    certname: String,
    hash: String,
}

impl Rule {
    /// Asks each backend for all its nodes and reports.
    pub(super) fn of(backends: &[Client]) -> Result<Self> {
        let mut newest = BTreeMap::new();
        for (place, client) in backends.iter().enumerate() {
            let any = r#"["=","node_state","any"]"#;
            let nodes: Vec<Node> = client.query("nodes", &[("query", any)])?.json()?;
            for node in nodes {
                // Written alike, times sort as text.
                let stamp = (
                    node.report_timestamp,
                    node.facts_timestamp,
                    node.catalog_timestamp,
                );
                let best = newest
                    .entry(node.certname)
                    .or_insert((stamp.clone(), place));
                if stamp > best.0 {
                    *best = (stamp, place);
                }
            }
        }
        let owners = newest.into_iter();
        let owners: BTreeMap<_, _> = owners.map(|(name, (_, place))| (name, place)).collect();
        let mut tellers = BTreeMap::new();
        for (place, client) in backends.iter().enumerate() {
            let any = r#"["extract",["certname","hash"],["=","type","any"]]"#;
            let reports: Vec<Report> = client.query("reports", &[("query", any)])?.json()?;
            for report in reports {
                if owners.get(&report.certname) == Some(&place) {
                    tellers.insert(report.hash, place);
                } else {
                    tellers.entry(report.hash).or_insert(place);
                }
            }
        }
        Ok(Self { owners, tellers })
    }

    /// Whether a backend owns the node of a record.
    pub(super) fn owns(&self, backend: usize, row: &Json) -> bool {
        let certname = row.member("certname").and_then(Json::text);
        certname.and_then(|name| self.owners.get(name)) == Some(&backend)
    }

    /// Whether a backend speaks for a record of an entity.
    pub(super) fn speaks(&self, backend: usize, entity: &str, row: &Json) -> bool {
        let report = match entity {
            "reports" => "hash",
            "events" => "report",
            _ => return self.owns(backend, row),
        };
        let report = row.member(report).and_then(Json::text);
        report.and_then(|hash| self.tellers.get(hash)) == Some(&backend)
    }
}
