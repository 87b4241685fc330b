//! A stub that holds nodes and answers the few conditions that shares are made of.

use std::sync::{Arc, Mutex};

use pdbmux_core::settings::Strategy;
use serde_json::{Value, json};

use crate::harness::Pdbmux;
use crate::stub::{Answer, Seen, Stub};

pub(super) const NODES: &str = "/pdb/query/v4/nodes";
pub(super) const INVENTORY: &str = "/pdb/query/v4/inventory";

/// A PuppetDB with nodes: certname and the minute of the last report.
pub(super) struct Backend {
    pub(super) stub: Stub,
    nodes: Arc<Mutex<Vec<(String, u32)>>>,
}

impl Backend {
    pub(super) async fn holding(nodes: &[(&str, u32)]) -> Self {
        let stub = Stub::start().await;
        let held: Arc<Mutex<Vec<_>>> = Arc::default();
        let (of_nodes, of_inventory) = (Arc::clone(&held), Arc::clone(&held));
        stub.makes(NODES, move |seen| {
            let nodes = of_nodes.lock().unwrap();
            answer(seen, &nodes, node)
        });
        let of_factsets = Arc::clone(&held);
        stub.makes("/pdb/query/v4/factsets", move |seen| {
            let nodes = of_factsets.lock().unwrap();
            answer(seen, &nodes, node)
        });
        stub.makes(INVENTORY, move |seen| {
            let nodes = of_inventory.lock().unwrap();
            answer(
                seen,
                &nodes,
                |name, minute| json!({"certname": name, "minute": minute}),
            )
        });
        let backend = Self { stub, nodes: held };
        for (certname, minute) in nodes {
            backend.gains(certname, *minute);
        }
        backend
    }

    pub(super) fn gains(&self, certname: &str, minute: u32) {
        let mut nodes = self.nodes.lock().unwrap();
        nodes.push((certname.to_owned(), minute));
    }

    /// A node that it has reports again.
    pub(super) fn reports(&self, certname: &str, minute: u32) {
        let mut nodes = self.nodes.lock().unwrap();
        let known = nodes.iter_mut().find(|(name, _)| name == certname);
        known.unwrap().1 = minute;
    }

    /// A node is purged.
    pub(super) fn loses(&self, certname: &str) {
        let mut nodes = self.nodes.lock().unwrap();
        nodes.retain(|(name, _)| name != certname);
    }

    /// The queries asked of `path`, how many nodes there are and the list of them left out.
    pub(super) fn queries(&self, path: &str) -> Vec<Option<String>> {
        let seen = self.stub.seen().into_iter();
        let asked = seen.filter(|seen| seen.target.split('?').next() == Some(path));
        let queries = asked.map(|seen| seen.param("query"));
        let is_own = |query: &Option<String>| {
            let any = r#"["=","node_state","any"]"#;
            query.as_deref().is_some_and(|query| query.contains(any))
        };
        queries.filter(|query| !is_own(query)).collect()
    }

    /// How often it was asked how many nodes there are.
    pub(super) fn counts(&self) -> usize {
        let census = pdbmux_core::plan::census_ask().target();
        let seen = self.stub.seen().into_iter();
        seen.filter(|seen| seen.target == census).count()
    }
}

pub(super) async fn exact(backends: &[&Backend]) -> Pdbmux {
    let stubs: Vec<_> = backends.iter().map(|backend| &backend.stub).collect();
    of_stubs(&stubs).await
}

pub(super) async fn of_stubs(stubs: &[&Stub]) -> Pdbmux {
    Pdbmux::with(stubs, |config| config.merge = Strategy::Exact).await
}

fn node(certname: &str, minute: u32) -> Value {
    json!({
        "certname": certname,
        "report_timestamp": reported(minute),
        "facts_timestamp": reported(minute),
    })
}

fn reported(minute: u32) -> String {
    format!("2026-01-01T00:{minute:02}:00.000Z")
}

/// The rows that the query selects, or their number, as pdbmux may ask for either.
fn answer(seen: &Seen, nodes: &[(String, u32)], row: impl Fn(&str, u32) -> Value) -> Answer {
    let query = seen.param("query").unwrap_or_default();
    let selected = nodes
        .iter()
        .filter(|(name, minute)| selects(&query, name, *minute));
    let rows: Vec<_> = selected.map(|(name, minute)| row(name, *minute)).collect();
    let total = rows.len();
    let body = if query.contains("\"count\"") {
        json!([{ "count": total }])
    } else {
        json!(rows)
    };
    match seen.param("include_total") {
        Some(_) => Answer::counted(total as u64, body.to_string()),
        None => Answer::json(body.to_string()),
    }
}

/// Whether the condition of a share, somewhere in `query`, holds for a node.
fn selects(query: &str, certname: &str, minute: u32) -> bool {
    if let Some((_, since)) = query.split_once(r#"[">=","timestamp",""#) {
        return &*reported(minute) >= since.split('"').next().unwrap();
    }
    let listed = query.contains(&format!("\"{certname}\""));
    if query.contains(r#"["=","certname",""]"#) {
        false
    } else if query.contains(r#"["not",["or",["in","certname""#) {
        !listed
    } else if query.contains(r#"["or",["in","certname""#) {
        listed
    } else {
        true
    }
}
