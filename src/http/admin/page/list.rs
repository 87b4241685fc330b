//! The list of nodes.

use super::{Search, colour, number};
use crate::drift::{Estate, Filter, Node};
use pdbmux_core::merge::owners::copies::State;

/// Most rows of the list: a page is read by people.
const MOST: usize = 200;

/// What can be chosen: the value, and how it is called.
const STATES: [(&str, &str); 6] = [
    ("", "all nodes"),
    ("shared", "shared nodes"),
    ("stale", "nodes with a stale copy"),
    ("only", "nodes in one backend"),
    ("active", "active nodes"),
    ("inactive", "inactive nodes"),
];

pub(super) struct Choice {
    pub(super) value: &'static str,
    pub(super) text: &'static str,
    pub(super) chosen: bool,
}

pub(super) type Options = [Choice; STATES.len()];

pub(super) fn options(search: &Search) -> Options {
    STATES.map(|(value, text)| Choice {
        value,
        text,
        chosen: search.state == value,
    })
}

/// The nodes that were asked for, as far as they are listed.
pub(super) struct Listed {
    /// How many they are.
    pub(super) sentence: String,
    pub(super) rows: Vec<Row>,
}

pub(super) struct Row {
    pub(super) certname: String,
    pub(super) inactive: bool,
    pub(super) owner: String,
    pub(super) colour: usize,
    pub(super) why: &'static str,
    pub(super) others: Vec<Other>,
}

pub(super) struct Other {
    pub(super) backend: String,
    pub(super) behind: String,
    pub(super) stale: bool,
}

impl Listed {
    pub(super) fn of(estate: &Estate, search: &Search) -> Self {
        let state = format!("state={}", search.state);
        let filters: Vec<_> = [
            // A state that does not exist is as good as none.
            Filter::parse(&state, &estate.backends).ok(),
            Some(Filter::Certname(search.q.clone())),
        ]
        .into_iter()
        .flatten()
        .collect();
        let mut all = 0;
        let mut rows = Vec::new();
        for node in estate.nodes() {
            if !filters.iter().all(|filter| filter.takes(&node)) {
                continue;
            }
            all += 1;
            if rows.len() < MOST {
                rows.push(Row::of(estate, &node));
            }
        }
        let sentence = match (all, rows.len()) {
            (0, _) => "No node is like that.".to_owned(),
            (1, _) => "One node.".to_owned(),
            (all, shown) if all == shown => format!("{} nodes.", number(all as u64)),
            (all, shown) => format!("The first {shown} of {} nodes.", number(all as u64)),
        };
        let listed = estate.at.strftime("%H:%M:%S");
        Self {
            sentence: format!("{sentence} As listed at {listed} UTC."),
            rows,
        }
    }
}

impl Row {
    fn of(estate: &Estate, node: &Node<'_>) -> Self {
        let owner = node.owner();
        let others = node.copies.iter().skip(1).map(|copy| Other {
            backend: estate.name(copy.backend).to_owned(),
            behind: match copy.state {
                State::Active => copy.behind.sentence(),
                State::Inactive => format!("{}, inactive", copy.behind.sentence()),
            },
            stale: copy.behind.is_stale(),
        });
        Self {
            certname: node.certname.clone().into_owned(),
            inactive: !node.is_active(),
            owner: estate.name(owner.backend).to_owned(),
            colour: colour(owner.backend.index()),
            why: node.why.sentence(),
            others: others.collect(),
        }
    }
}
