//! Stubs that know which nodes they hold, and answer all else as they are told.

use pdbmux_core::settings::Strategy;

use crate::harness::Pdbmux;
use crate::stub::{Answer, Seen, Stub};

/// Certname, and the day of its newest report.
pub(crate) type Node<'n> = (&'n str, u32);

/// Stubs that know these nodes, and what pdbmux makes of them.
pub(super) async fn estate<const N: usize>(nodes: [&[Node<'_>]; N]) -> ([Stub; N], Pdbmux) {
    let mut stubs = Vec::new();
    for nodes in nodes {
        let stub = Stub::start().await;
        knows(&stub, nodes);
        stubs.push(stub);
    }
    let all: Vec<_> = stubs.iter().collect();
    let mux = Pdbmux::with(&all, |config| config.merge = Strategy::Exact).await;
    (stubs.try_into().ok().unwrap(), mux)
}

/// Answers what pdbmux asks of nodes for itself, and any other question of them with all of them.
pub(crate) fn knows(stub: &Stub, nodes: &[Node<'_>]) {
    let rows = nodes.iter().map(|(certname, day)| {
        format!(
            r#"{{"certname":"{certname}","report_timestamp":"2024-05-{day:02}T10:00:00.000Z"}}"#
        )
    });
    let rows = format!("[{}]", rows.collect::<Vec<_>>().join(","));
    let count = format!(r#"[{{"count":{}}}]"#, nodes.len());
    stub.makes("/pdb/query/v4/nodes", move |seen| {
        Answer::json(if is_census(seen) { &count } else { &rows })
    });
}

fn is_census(seen: &Seen) -> bool {
    seen.target == pdbmux_core::plan::census_ask().target()
}

fn is_own(seen: &Seen) -> bool {
    is_census(seen) || seen.target == pdbmux_core::plan::freshness_ask(Strategy::Exact).target()
}

/// What was asked for a client: path and query, decoded.
pub(super) fn asked(stub: &Stub) -> Vec<String> {
    let seen = stub.seen().into_iter().filter(|seen| !is_own(seen));
    seen.map(|seen| {
        let path = seen.target.split('?').next().unwrap_or_default();
        let path = path.strip_prefix("/pdb/query/v4").unwrap_or(path);
        match seen.param("query") {
            Some(query) => format!("{path} {query}"),
            None => path.to_owned(),
        }
    })
    .collect()
}
