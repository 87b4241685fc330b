//! Estates made for the oracle: each is one way in which nodes can be spread over backends.

mod catalog;
mod facts;
mod report;

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use anyhow::Result;
use serde_json::json;

use crate::estate::{Command, moment};
use crate::postgres::Locale;
use crate::rig::Size;

pub use catalog::enlarged;

/// Names of the backends in configured order.
pub const HOLDERS: [&str; 3] = ["a", "b", "c"];

/// Minute of the run that counts as older, newer, newest.
const RUNS: [u32; 3] = [400, 700, 1000];

/// A made estate.
#[derive(Clone, Debug)]
pub struct Made {
    /// Its name on the command line.
    pub name: &'static str,
    /// How many backends it needs.
    pub size: Size,
    /// What backend `b` orders its text by.
    pub locale: Locale,
    /// Its nodes, in a fixed order.
    pub nodes: Vec<Node>,
}

/// A node and its copies, in the order of the backends.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its certname.
    pub certname: String,
    /// From which its values are made.
    pub number: u32,
    /// Who holds it.
    pub copies: Vec<Copy>,
}

/// What one backend holds of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    /// The backend, by its position.
    pub holder: usize,
    /// Whose data it is: of a node sent to two backends, both hold the first one's.
    pub from: usize,
    /// Minute of its last run; `None`: facts alone.
    pub run: Option<u32>,
    /// What became of it.
    pub state: State,
}

/// What became of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is active.
    Active,
    /// It was deactivated.
    Deactivated,
    /// It was deactivated and its data deleted: nobody knows that it was there.
    Purged,
}

/// Names of all made estates.
pub const NAMES: [&str; 6] = ["disjoint", "shared", "cloned", "retired", "three", "locale"];

impl Made {
    /// The estate of this name.
    pub fn named(name: &str) -> Option<Self> {
        let two = |name, spread: fn(u32) -> Vec<Copy>| Self::new(name, Size::Two, spread);
        Some(match name {
            "disjoint" => two("disjoint", |n| vec![copy(n as usize % 2, Some(RUNS[1]))]),
            "shared" => two("shared", shared),
            "cloned" => two("cloned", |n| {
                let run = (!n.is_multiple_of(9)).then_some(RUNS[1]);
                let first = copy(0, run);
                vec![first, Copy { holder: 1, ..first }]
            }),
            "retired" => two("retired", retired),
            "three" => Self::new("three", Size::Three, three),
            "locale" => Self {
                locale: Locale::English,
                ..two("locale", shared)
            },
            _ => return None,
        })
    }

    fn new(name: &'static str, size: Size, spread: fn(u32) -> Vec<Copy>) -> Self {
        let nodes = (0..60).map(|number| Node {
            certname: certname(number),
            number,
            copies: spread(number),
        });
        Self {
            name,
            size,
            locale: Locale::Bytes,
            nodes: nodes.collect(),
        }
    }

    /// Identifies the content, to know a loaded rig again.
    pub fn fingerprint(&self) -> Result<String> {
        let mut hasher = DefaultHasher::new();
        self.locale.hash(&mut hasher);
        for node in &self.nodes {
            for copy in &node.copies {
                copy.holder.hash(&mut hasher);
                (copy.state == State::Purged).hash(&mut hasher);
                node.commands(*copy)?.hash(&mut hasher);
            }
        }
        Ok(format!("{} {:016x}", self.name, hasher.finish()))
    }
}

impl Node {
    /// The copy that an answer shows: the one with the strictly newest report, the first of
    /// equals. Where it is deactivated, the node is gone.
    pub fn owner(&self) -> Option<Copy> {
        let held = self.copies.iter().copied();
        held.filter(|copy| copy.state != State::Purged)
            .reduce(|first, next| if next.run > first.run { next } else { first })
    }

    /// What the holder of a copy is sent, in order.
    pub fn commands(&self, copy: Copy) -> Result<Vec<Command>> {
        let mut commands = self.current(copy)?;
        commands.extend(report::commands(self, copy));
        commands.extend(self.deactivation(copy));
        Ok(commands)
    }

    /// What the union is sent: the owner's facts and catalog, and each report once.
    pub fn union_commands(&self) -> Result<Vec<Command>> {
        let Some(owner) = self.owner() else {
            return Ok(Vec::new());
        };
        let mut commands = self.current(owner)?;
        let kept = self.copies.iter().filter(|it| it.state != State::Purged);
        for report in kept.flat_map(|copy| report::commands(self, *copy)) {
            if commands.iter().all(|sent| sent.body != report.body) {
                commands.push(report);
            }
        }
        commands.extend(self.deactivation(owner));
        Ok(commands)
    }

    /// The environment that a copy has it in.
    fn environment(&self, copy: Copy) -> &'static str {
        match (copy.from, self.number % 12) {
            (1, 0 | 3 | 6) => "staging",
            (2, 0..=4) => "testing",
            (0, 5) => "legacy",
            _ => "production",
        }
    }

    fn current(&self, copy: Copy) -> Result<Vec<Command>> {
        let mut commands = vec![facts::command(self, copy)?];
        if let Some(run) = copy.run {
            commands.push(catalog::command(self, copy, run));
            commands.extend(catalog::inputs(self, copy, run));
        }
        Ok(commands)
    }

    fn deactivation(&self, copy: Copy) -> Option<Command> {
        let produced = moment(copy.run.unwrap_or(0) + 1440, 0);
        let body = json!({"certname": self.certname, "producer_timestamp": produced}).to_string();
        match copy.state {
            State::Active => None,
            State::Deactivated | State::Purged => {
                Some(self.command("deactivate_node", "3", produced, body))
            }
        }
    }

    fn command(
        &self,
        name: &'static str,
        version: &'static str,
        produced: String,
        body: String,
    ) -> Command {
        Command {
            name,
            version,
            certname: self.certname.clone(),
            produced,
            body,
        }
    }
}

/// Names that bytes order otherwise than people do.
fn certname(number: u32) -> String {
    let kinds = [
        "web", "Web-", "db_", "App", "éa", "zeta.", "a-", "A", "10.0.0.", "Zeta",
    ];
    let kind = kinds[number as usize % kinds.len()];
    format!("{kind}{number}.example.com")
}

fn copy(holder: usize, run: Option<u32>) -> Copy {
    Copy {
        holder,
        from: holder,
        run,
        state: State::Active,
    }
}

/// Two of five nodes are in both: mostly moved from `a` to `b`, some the other way, some equal.
fn shared(number: u32) -> Vec<Copy> {
    match number % 10 {
        0 | 5 => vec![copy(0, Some(RUNS[0])), copy(1, Some(RUNS[1]))],
        1 if number % 20 == 1 => vec![copy(0, Some(RUNS[1])), copy(1, Some(RUNS[0]))],
        1 => vec![copy(0, None), copy(1, Some(RUNS[0]))],
        2 if number % 20 == 2 => vec![copy(0, Some(RUNS[1])), copy(1, None)],
        2 => {
            let first = copy(0, Some(RUNS[1]));
            vec![first, Copy { holder: 1, ..first }]
        }
        3 | 4 => vec![copy(0, Some(RUNS[1]))],
        6 => vec![copy(0, (number % 20 == 6).then_some(RUNS[0]))],
        _ => vec![copy(1, Some(RUNS[1]))],
    }
}

/// Deactivated or purged on one side, on the other, on both.
fn retired(number: u32) -> Vec<Copy> {
    let with = |state, copy: Copy| Copy { state, ..copy };
    let (old, new) = (Some(RUNS[0]), Some(RUNS[1]));
    let (gone, purged) = (State::Deactivated, State::Purged);
    match number % 10 {
        0 => vec![with(gone, copy(0, old)), copy(1, new)],
        1 => vec![copy(0, old), with(gone, copy(1, new))],
        2 => vec![with(gone, copy(0, new)), copy(1, old)],
        3 => vec![with(gone, copy(0, old)), with(gone, copy(1, new))],
        4 => vec![with(purged, copy(0, old)), copy(1, new)],
        5 => vec![copy(0, old), with(purged, copy(1, new))],
        6 => vec![with(gone, copy(0, new))],
        7 => vec![with(gone, copy(1, None))],
        8 => vec![copy(0, new)],
        _ => vec![copy(1, new)],
    }
}

/// Three backends in every combination.
fn three(number: u32) -> Vec<Copy> {
    let [old, mid, new] = RUNS.map(Some);
    match number % 10 {
        0 => vec![copy(0, old), copy(1, mid), copy(2, new)],
        1 => vec![copy(0, new), copy(1, mid), copy(2, old)],
        2 => vec![copy(0, old), copy(2, new)],
        3 => vec![copy(1, new), copy(2, old)],
        4 => {
            let first = copy(0, mid);
            vec![
                first,
                Copy { holder: 1, ..first },
                Copy { holder: 2, ..first },
            ]
        }
        5 => vec![
            copy(0, old),
            Copy {
                state: State::Deactivated,
                ..copy(2, new)
            },
        ],
        6 | 7 => vec![copy(2, mid)],
        8 => vec![copy(1, mid)],
        _ => vec![copy(0, mid)],
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_name_is_an_estate_with_certnames_of_its_own() {
        for name in NAMES {
            let made = Made::named(name).unwrap();
            assert_eq!(made.name, name);
            let names: BTreeSet<_> = made.nodes.iter().map(|node| &node.certname).collect();
            assert_eq!(names.len(), made.nodes.len());
            assert_eq!(made.fingerprint().unwrap(), made.fingerprint().unwrap());
        }
    }

    #[test]
    fn two_of_five_nodes_are_shared_and_some_of_them_failed_where_they_are_stale() {
        let made = Made::named("shared").unwrap();
        let shared = made.nodes.iter().filter(|node| node.copies.len() > 1);
        assert_eq!(shared.clone().count() * 5, made.nodes.len() * 2);
        let moved = shared.clone().filter(|node| {
            let owner = node.owner().unwrap();
            let status = |copy: &Copy| copy.run.map(|_| report::status(node, *copy, 0));
            let stale = node.copies.iter().filter(|it| it.holder != owner.holder);
            status(&owner) == Some("changed")
                && stale.clone().any(|it| status(it) == Some("failed"))
        });
        assert!(moved.count() >= 3);
    }

    #[test]
    fn the_union_gets_a_report_once_and_nothing_of_the_purged() {
        let made = Made::named("cloned").unwrap();
        for node in &made.nodes {
            let sent = node.commands(node.copies[0]).unwrap();
            assert_eq!(node.union_commands().unwrap().len(), sent.len());
        }
        let retired = Made::named("retired").unwrap();
        let purged = &retired.nodes[4];
        let owner = node_commands(purged, 1);
        assert_eq!(purged.union_commands().unwrap().len(), owner);
    }

    fn node_commands(node: &Node, holder: usize) -> usize {
        let copy = node.copies.iter().find(|it| it.holder == holder).unwrap();
        node.commands(*copy).unwrap().len()
    }
}
