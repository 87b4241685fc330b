//! What is served, found the slow and obvious way: over whole values of whole answers.

use std::collections::BTreeSet;

use pdbmux_core::settings::{Settings, Strategy};
use serde_json::Value;

use super::estate::{Backend, Collation, Record, fields, ids, sort};

/// One request, as a client means it.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) path: Path,
    pub(crate) extract: Option<Vec<&'static str>>,
    pub(crate) filter: Option<(&'static str, &'static str)>,
    pub(crate) order_by: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Path {
    Nodes,
    Facts,
    Named(&'static str),
    /// The source fact's own path, perhaps with a backend by its place.
    Source(Option<usize>),
}

impl Request {
    /// Path and parameters, paging apart.
    pub(crate) fn target(&self) -> (String, Vec<(&'static str, String)>) {
        let path = match self.path {
            Path::Nodes => "nodes".to_owned(),
            Path::Facts => "facts".to_owned(),
            Path::Named(name) => format!("facts/{name}"),
            Path::Source(None) => "facts/pdbmux_source".to_owned(),
            Path::Source(Some(at)) => format!("facts/pdbmux_source/pdb-{at}"),
        };
        let filter = self
            .filter
            .map(|(field, value)| serde_json::json!(["=", field, value]));
        let query = match (&self.extract, filter) {
            (Some(columns), Some(filter)) => Some(serde_json::json!(["extract", columns, filter])),
            (Some(columns), None) => Some(serde_json::json!(["extract", columns])),
            (None, filter) => filter,
        };
        let query = query.map(|query| ("query", query.to_string()));
        let order_by = self.order_by.clone().map(|order_by| ("order_by", order_by));
        (
            format!("/pdb/query/v4/{path}"),
            query.into_iter().chain(order_by).collect(),
        )
    }
}

/// The whole merged set. `pages` says whether a client asks for parts of it.
pub(crate) fn merged(
    estate: &[Backend],
    request: &Request,
    settings: &Settings,
    pages: bool,
) -> Vec<Record> {
    let is_nodes = request.path == Path::Nodes;
    let source = settings.source.as_deref();
    let order_by = order(request, pages);
    let filters_name = request.filter.is_some_and(|(field, _)| field == "name");
    let gated = request.extract.is_some() || source.is_none();
    let marks_nodes = is_nodes && !gated;
    let marks_facts = match request.path {
        Path::Facts | Path::Source(_) => !gated && !filters_name,
        Path::Nodes | Path::Named(_) => false,
    };
    if matches!(request.path, Path::Source(_)) && !marks_facts {
        return Vec::new();
    }

    // Every backend's records in full.
    let mut answers: Vec<Vec<Record>> = Vec::new();
    for backend in estate {
        let mut rows = rows(backend, request, &order_by);
        let sees_name = request.extract.as_ref().is_none_or(|e| e.contains(&"name"));
        if let Some(source) = source
            && !is_nodes
            && sees_name
        {
            rows.retain(|row| row["name"] != source);
        }
        answers.push(rows);
    }

    let mut set = Vec::new();
    let mut marked = BTreeSet::new();
    for (at, rows) in answers.iter().enumerate() {
        for row in rows {
            let certname = row["certname"].as_str().unwrap().to_owned();
            if winner(estate, &answers, &certname, is_nodes, settings) != at {
                continue;
            }
            let mut row = row.clone();
            let environment = row.get("environment").cloned();
            if marks_nodes {
                row.insert(
                    source.unwrap().to_owned(),
                    settings.backends[at].clone().into(),
                );
            }
            if !matches!(request.path, Path::Source(_)) {
                set.push(row);
            }
            if marks_facts && marked.insert(certname.clone()) {
                let mut fact = Record::new();
                fact.insert("certname".into(), certname.into());
                fact.insert("environment".into(), environment.unwrap());
                fact.insert("name".into(), source.unwrap().into());
                fact.insert("value".into(), settings.backends[at].clone().into());
                set.push(fact);
            }
        }
    }
    if let Path::Source(Some(only)) = request.path {
        set.retain(|fact| fact["value"] == settings.backends[only]);
    }
    // The only backend's own order is the order.
    if estate.len() > 1 || marks_facts {
        sort(&mut set, &order_by, Collation::Bytes);
    }
    if let Some(columns) = &request.extract {
        for row in &mut set {
            row.retain(|name, _| columns.contains(&name.as_str()));
        }
    }
    set
}

fn order(request: &Request, pages: bool) -> Vec<(String, bool)> {
    let mut order_by = request.order_by.as_deref().map_or(Vec::new(), fields);
    let identity: &[&str] = match request.path {
        _ if !pages => &[],
        Path::Facts => &["certname", "name"],
        Path::Nodes | Path::Named(_) | Path::Source(_) => &["certname"],
    };
    for name in identity {
        if order_by.iter().all(|(known, _)| known != name) {
            order_by.push(((*name).to_owned(), false));
        }
    }
    order_by
}

fn rows(backend: &Backend, request: &Request, order_by: &[(String, bool)]) -> Vec<Record> {
    let path = match request.path {
        Path::Nodes => "nodes".to_owned(),
        Path::Facts | Path::Source(_) => "facts".to_owned(),
        Path::Named(name) => format!("facts/{name}"),
    };
    let items: Vec<Value> = order_by
        .iter()
        .filter(|_| !matches!(request.path, Path::Source(_)))
        .map(|(field, descends)| {
            serde_json::json!({"field": field, "order": if *descends { "desc" } else { "asc" }})
        })
        .collect();
    let mut params = form_urlencoded::Serializer::new(String::new());
    params.append_pair("order_by", &Value::from(items).to_string());
    if let Some((field, value)) = request.filter {
        params.append_pair("query", &serde_json::json!(["=", field, value]).to_string());
    }
    read(
        &backend
            .answer(&format!("/pdb/query/v4/{path}?{}", params.finish()))
            .body,
    )
}

/// The records of a body.
pub(crate) fn read(body: &str) -> Vec<Record> {
    serde_json::from_str(body).unwrap()
}

/// The place of the backend whose records of `certname` are served.
fn winner(
    estate: &[Backend],
    answers: &[Vec<Record>],
    certname: &str,
    is_nodes: bool,
    settings: &Settings,
) -> usize {
    let mut best: Option<(usize, Option<String>)> = None;
    for (id, backend) in ids(estate) {
        let at = id.index();
        if answers[at].iter().all(|row| row["certname"] != certname) {
            continue;
        }
        // Timestamps of one spelling compare as text; never is before any time.
        let newest = match settings.strategy {
            _ if is_nodes => age(&answers[at], certname),
            Strategy::Static => None,
            Strategy::Freshness | Strategy::Exact if !backend.tells_freshness => None,
            Strategy::Freshness | Strategy::Exact => {
                age(&read(&backend.answer("/pdb/query/v4/nodes").body), certname)
            }
        };
        if best.as_ref().is_none_or(|(_, known)| newest > *known) {
            best = Some((at, newest));
        }
    }
    best.unwrap().0
}

fn age(nodes: &[Record], certname: &str) -> Option<String> {
    let node = nodes.iter().find(|node| node["certname"] == certname)?;
    node["report_timestamp"].as_str().map(str::to_owned)
}
