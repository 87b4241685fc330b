//! What the backends hold: some forty nodes, each with a story about where its data is and
//! where it is newer. The same every time, so that tests can say what must come out.

mod catalog;
mod facts;
mod report;
mod stories;

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use anyhow::Result;
use serde_json::json;

pub use catalog::EXPORTED;
pub use stories::Story;

/// Midnight the estate's minutes count from.
const DAY: &str = "2025-03-01";

/// The environment that only backend b knows.
pub const ONLY_IN_B: &str = "staging";

/// A real fact, in one node, that has the name of pdbmux's own.
pub const IMPOSTOR: &str = "retitled.example.com";

/// A node that went from backend a to b, and to the environment that b alone knows. Its last run
/// before failed.
pub const MOVED: &str = "moved.example.com";

/// One of the two backends, in configured order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The first configured backend.
    A,
    /// The second.
    B,
}

/// Which rule decides who owns a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// The newer `report_timestamp` among active copies; tie or none: the first (R043, R048).
    Freshness,
    /// The first backend with an active copy (R045).
    Static,
    /// The newer `report_timestamp` among all copies; a node deactivated there is gone.
    Exact,
}

/// What one backend holds of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holding {
    /// Who holds it.
    pub side: Side,
    /// Minute of the last report's end; `None`: facts only.
    pub run: Option<u32>,
    /// Whether the backend was told to deactivate it.
    pub state: State,
}

/// Whether a copy is active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is.
    Active,
    /// It was deactivated after its last report.
    Deactivated,
}

/// A command for a PuppetDB's command API.
#[derive(Clone, Debug, Hash)]
pub struct Command {
    /// E.g. `replace_facts`.
    pub name: &'static str,
    /// Version of the command's format.
    pub version: &'static str,
    /// The node it is about.
    pub certname: String,
    /// When its producer made it.
    pub produced: String,
    /// Its JSON.
    pub body: String,
}

/// A node, and who holds what of it.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its certname.
    pub certname: &'static str,
    /// Position in the estate, from which its values are made.
    pub index: u32,
    /// Where its data is.
    pub story: Story,
}

/// All nodes.
#[derive(Clone, Debug)]
pub struct Estate {
    /// In a fixed order.
    pub nodes: Vec<Node>,
}

impl Default for Estate {
    fn default() -> Self {
        let nodes = (0..)
            .zip(stories::NODES)
            .map(|(index, &(certname, story))| Node {
                certname,
                index,
                story,
            })
            .collect();
        Self { nodes }
    }
}

impl Estate {
    /// Whose data an answer shows for `certname`; `None` when it shows no such node.
    pub fn owner(&self, certname: &str, strategy: Strategy) -> Option<Side> {
        self.nodes
            .iter()
            .find(|node| node.certname == certname)?
            .owner(strategy)
    }

    /// Certname and owner of every node that is shown.
    pub fn owners(&self, strategy: Strategy) -> impl Iterator<Item = (&'static str, Side)> {
        self.nodes
            .iter()
            .filter_map(move |node| Some((node.certname, node.owner(strategy)?)))
    }

    /// Identifies the estate's content, to know a loaded rig again.
    pub fn fingerprint(&self) -> String {
        let mut hasher = DefaultHasher::new();
        for node in &self.nodes {
            for side in [Side::A, Side::B] {
                node.commands(side).ok().hash(&mut hasher);
            }
        }
        format!("{:016x}", hasher.finish())
    }
}

impl Node {
    /// Whose data an answer shows under `strategy`.
    pub fn owner(&self, strategy: Strategy) -> Option<Side> {
        let shown = |held: &Holding| held.state == State::Active;
        let holdings = self.story.holdings();
        let first = holdings.iter().copied().find(shown);
        match strategy {
            Strategy::Freshness => holdings.iter().copied().filter(shown).reduce(newer),
            Strategy::Static => first,
            Strategy::Exact => Some(self.newest_copy()).filter(shown),
        }
        .map(|held| held.side)
    }

    /// Who has the newest copy, active or not; the first of equals.
    pub fn newest(&self) -> Side {
        self.newest_copy().side
    }

    /// What `side` is sent for this node, in order.
    pub fn commands(&self, side: Side) -> Result<Vec<Command>> {
        let Some(held) = self.holding(side) else {
            return Ok(Vec::new());
        };
        let mut commands = self.current(held)?;
        commands.extend(report::commands(self, held));
        commands.extend(self.deactivation(held));
        Ok(commands)
    }

    /// What the oracle is sent: the owner's facts and catalog, and everybody's reports.
    pub fn oracle_commands(&self) -> Result<Vec<Command>> {
        let holdings = self.story.holdings();
        let newest = self.newest_copy();
        let mut commands = self.current(newest)?;
        for held in holdings {
            commands.extend(report::commands(self, held));
        }
        commands.extend(self.deactivation(newest));
        Ok(commands)
    }

    /// The environment `side` has it in.
    pub fn environment(&self, side: Side) -> &'static str {
        let moved = self.certname == MOVED && side == Side::B;
        if moved || self.certname.starts_with("staging") {
            ONLY_IN_B
        } else {
            "production"
        }
    }

    fn newest_copy(&self) -> Holding {
        let nobody = Holding {
            side: Side::A,
            run: None,
            state: State::Deactivated,
        };
        self.story
            .holdings()
            .into_iter()
            .reduce(newer)
            .unwrap_or(nobody)
    }

    fn holding(&self, side: Side) -> Option<Holding> {
        self.story
            .holdings()
            .into_iter()
            .find(|held| held.side == side)
    }

    /// Facts, and a catalog if the node ever ran.
    fn current(&self, held: Holding) -> Result<Vec<Command>> {
        let mut commands = vec![facts::command(self, held)?];
        if let Some(run) = held.run {
            commands.push(catalog::command(self, held.side, run));
        }
        Ok(commands)
    }

    fn deactivation(&self, held: Holding) -> Option<Command> {
        let produced = moment(held.run.unwrap_or(0) + 1440, 0);
        let body = json!({"certname": self.certname, "producer_timestamp": produced}).to_string();
        match held.state {
            State::Active => None,
            State::Deactivated => Some(self.command("deactivate_node", "3", produced, body)),
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
            certname: self.certname.to_owned(),
            produced,
            body,
        }
    }
}

/// The strictly newer of two copies, else the first.
fn newer(first: Holding, second: Holding) -> Holding {
    if second.run > first.run {
        second
    } else {
        first
    }
}

/// A timestamp `minutes` after the estate's midnight.
pub(crate) fn moment(minutes: u32, seconds: u32) -> String {
    let (year_month, first) = DAY.split_at(8);
    let day = first.parse::<u32>().unwrap_or(1) + minutes / 1440;
    format!(
        "{year_month}{day:02}T{:02}:{:02}:{seconds:02}.000Z",
        minutes / 60 % 24,
        minutes % 60
    )
}

/// A UUID made of two numbers.
pub(crate) fn uuid(kind: u32, number: u32) -> String {
    format!("{kind:08x}-0000-4000-8000-{number:012x}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn r031_r032_owners_follow_the_stories() {
        let estate = Estate::default();
        for (certname, freshness, fixed, exact) in [
            (
                "web1.example.com",
                Some(Side::A),
                Some(Side::A),
                Some(Side::A),
            ),
            (
                "core1.example.com",
                Some(Side::A),
                Some(Side::A),
                Some(Side::A),
            ),
            (
                "edge1.example.com",
                Some(Side::B),
                Some(Side::A),
                Some(Side::B),
            ),
            (
                "tie1.example.com",
                Some(Side::A),
                Some(Side::A),
                Some(Side::A),
            ),
            (
                "quiet3.example.com",
                Some(Side::A),
                Some(Side::A),
                Some(Side::A),
            ),
            (
                "late1.example.com",
                Some(Side::B),
                Some(Side::A),
                Some(Side::B),
            ),
            ("retired1.example.com", None, None, None),
            ("retired3.example.com", Some(Side::B), Some(Side::B), None),
            (
                "retired4.example.com",
                Some(Side::A),
                Some(Side::A),
                Some(Side::A),
            ),
            ("nosuch.example.com", None, None, None),
        ] {
            let read = [Strategy::Freshness, Strategy::Static, Strategy::Exact]
                .map(|strategy| estate.owner(certname, strategy));
            assert_eq!(read, [freshness, fixed, exact], "{certname}");
        }
    }

    #[test]
    fn certnames_are_unique_and_the_estate_is_the_same_every_time() {
        let estate = Estate::default();
        let names: BTreeSet<_> = estate.nodes.iter().map(|node| node.certname).collect();
        assert_eq!(names.len(), estate.nodes.len());
        assert_eq!(estate.fingerprint(), Estate::default().fingerprint());
    }

    #[test]
    fn moments_roll_over_into_the_next_day() {
        assert_eq!(moment(1441, 5), "2025-03-02T00:01:05.000Z");
    }
}
