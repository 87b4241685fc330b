//! Who moved lately: whose first report to its owner, after its last one elsewhere, is not older than
//! that. No I/O.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use pdbmux_core::json::quote;
use pdbmux_core::merge::owners::copies::Told;
use pdbmux_core::plan::Ask;
use pdbmux_core::round::BackendId;
use serde::Deserialize;

use super::{Estate, Node, Why};

/// Certnames in one question.
const CHUNK: usize = 1_000;

/// A node of which the times of its copies do not tell whether it moved lately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Open {
    certname: String,
    owner: BackendId,
    /// When it last reported to another backend.
    left: Option<Timestamp>,
}

/// What the copies tell.
#[derive(Debug, Default)]
pub(super) struct Moves {
    /// Those that surely moved since.
    pub(super) moved: HashSet<String>,
    /// Those whose owner has to be asked.
    pub(super) open: Vec<Open>,
}

impl Moves {
    pub(super) fn of(estate: &Estate, since: Timestamp) -> Self {
        let mut moves = Self::default();
        for node in estate.nodes() {
            match candidate(&node, since) {
                None => {}
                Some(open) if open.left.is_some_and(|left| left >= since) => {
                    moves.moved.insert(open.certname);
                }
                Some(open) => moves.open.push(open),
            }
        }
        moves
    }

    /// The questions that are open: when nodes last reported to their owner before `since`.
    pub(super) fn asks(&self, since: Timestamp) -> Vec<(BackendId, Ask)> {
        let mut owners: Vec<_> = self.open.iter().map(|open| open.owner).collect();
        owners.sort_unstable();
        owners.dedup();
        let of = |owner| {
            let open = self.open.iter().filter(move |open| open.owner == owner);
            open.map(|open| quote(&open.certname)).collect::<Vec<_>>()
        };
        let asks = owners.into_iter().flat_map(|owner| {
            let chunks: Vec<_> = of(owner)
                .chunks(CHUNK)
                .map(|names| (owner, before(since, names)))
                .collect();
            chunks
        });
        asks.collect()
    }

    /// Takes in what the owners answered, and gives those that moved since.
    pub(super) fn settle<'b>(
        self,
        answers: impl IntoIterator<Item = (BackendId, &'b [u8])>,
    ) -> Result<HashSet<String>, BackendId> {
        let mut stayed = HashSet::new();
        let open = self.open.iter();
        let lefts = open.map(|open| ((open.owner, open.certname.as_str()), open.left));
        let lefts: HashMap<_, _> = lefts.collect();
        for (owner, body) in answers {
            let rows: Vec<Row> = serde_json::from_slice(body).map_err(|_| owner)?;
            for Row { certname, max } in rows {
                let Some(left) = lefts.get(&(owner, certname.as_str())) else {
                    continue;
                };
                let last: Timestamp = max.parse().map_err(|_| owner)?;
                // It reported there already after it had left the other.
                if Some(last) > *left {
                    stayed.insert(certname);
                }
            }
        }
        let Self { mut moved, open } = self;
        let names = open.into_iter().map(|open| open.certname);
        moved.extend(names.filter(|name| !stayed.contains(name)));
        Ok(moved)
    }
}

#[derive(Deserialize)]
struct Row {
    certname: String,
    max: String,
}

/// The node, if it reported to its owner since then, and later than to any other backend.
fn candidate(node: &Node<'_>, since: Timestamp) -> Option<Open> {
    let newest = node.owner().stamp.of(Told::Report)?;
    let others = node.copies.get(1..).unwrap_or_default();
    let left = others
        .iter()
        .map(|copy| copy.stamp.of(Told::Report))
        .max()?;
    (node.why == Why::Newest(Told::Report) && newest >= since).then(|| Open {
        certname: node.certname.clone().into_owned(),
        owner: node.owner().backend,
        left,
    })
}

fn before(since: Timestamp, names: &[String]) -> Ask {
    let query = format!(
        r#"["extract",["certname",["function","max","end_time"]],["and",["<","end_time","{since:.3}"],["in","certname",["array",[{}]]]],["group_by","certname"]]"#,
        names.join(",")
    );
    Ask::own("/pdb/query/v4/reports", &[("query", &query)])
}
