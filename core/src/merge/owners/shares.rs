//! What each backend speaks for under `merge: exact`, as a condition that can be sent to it.

#[cfg(test)]
mod tests;
mod told;

use std::borrow::Cow;
use std::collections::HashSet;

use super::FreshnessMap;
use super::copies::{self, State};
use super::history::History;
use crate::json::unquote;
use crate::query::{Atom, Field, Truth, is_of_nodes};
use crate::round::BackendId;
use told::{Held, Told};

pub use told::Watched;

/// A condition that holds for no record with a certname.
pub(crate) const NEVER: &str = r#"["=","certname",""]"#;
/// A condition that holds for every record with a certname.
pub(crate) const ALWAYS: &str = r#"["null?","certname",false]"#;

/// Most certnames in one `array`: PuppetDB's work on a list grows faster than the list (5,000 names
/// cost 4 s in one array, 0.17 s in chunks of this size; seen on 7.12.1).
pub(crate) const CHUNK: usize = 100;

/// The shares of several backends that answer together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shares {
    pub(super) shares: Vec<(BackendId, Share)>,
}

/// What one backend speaks for: the nodes that it owns.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Share {
    /// AST that selects the records of those nodes; `None` if they are all that it holds.
    owned: Option<String>,
    /// How many certnames that lists.
    listed: usize,
    /// What tells that it selects other nodes by now; `None`: that there are more or fewer of all.
    watched: Option<Watched>,
    /// Whether that selects nodes that come too.
    sees_new: bool,
    /// How many nodes it owns, and how many of them are active.
    nodes: usize,
    active: usize,
    /// The nodes that it holds and another owns, each certname as JSON.
    pub(super) stale: HashSet<Box<[u8]>>,
    /// AST that selects the records of nodes that it holds and another does too; `None` if there are
    /// none.
    contested: Option<String>,
    /// The nodes that it holds and whose owner says that they are inactive, each certname as JSON.
    inactive: Vec<Box<[u8]>>,
    /// What counts of its reports, once that is known; `None` where all of them do.
    pub(super) history: Option<History>,
    /// The name of the source fact and of the backend, where the source can be asked for.
    source: Option<(String, String)>,
}

impl FreshnessMap {
    /// Divides the nodes among those backends of `among` that are part of the map. A node goes to
    /// the one with the newest data of it; ties keep the configured order.
    ///
    /// `source` is the name of the source fact and `names` those of all backends. No list is to be
    /// longer than `most_listed` if times can stand for it.
    pub fn shares(
        &self,
        among: &[BackendId],
        source: Option<&str>,
        names: &[String],
        most_listed: usize,
    ) -> Shares {
        let among: Vec<_> = among
            .iter()
            .copied()
            .filter(|id| self.covers(*id))
            .collect();
        let mut owned: Vec<Vec<Held<'_>>> = vec![Vec::new(); among.len()];
        let mut stale = owned.clone();
        let mut inactive: Vec<Vec<&[u8]>> = vec![Vec::new(); among.len()];
        let mut contested = inactive.clone();
        let mut active = vec![0; among.len()];
        for number in self.numbers() {
            let name = self.name(number);
            let place = |id: BackendId| among.iter().position(|known| *known == id);
            let holders = self
                .held(number)
                .filter_map(|held| Some((place(held.backend)?, held)));
            let newest = |best: (usize, copies::Held), other: (usize, copies::Held)| {
                let (held, than) = (other.1.stamp, best.1.stamp);
                let is_newer = held > than || (held == than && other.0 < best.0);
                if is_newer { other } else { best }
            };
            let Some((winner, newest)) = holders.clone().reduce(newest) else {
                continue;
            };
            let is_inactive = newest.state == State::Inactive;
            let is_contested = holders.clone().nth(1).is_some();
            active[winner] += usize::from(!is_inactive);
            for (holder, held) in holders {
                let nodes = if holder == winner {
                    &mut owned
                } else {
                    &mut stale
                };
                nodes[holder].push((name, held.stamp.facts.time()));
                if is_contested {
                    contested[holder].push(name);
                }
                if is_inactive {
                    inactive[holder].push(name);
                }
            }
        }
        // A filter can change what PuppetDB makes of a query (where there is one, it calculates with
        // the numbers among the facts alone), so either all backends get one or none.
        let is_divided = stale.iter().any(|names| !names.is_empty());
        let contested = contested.into_iter().map(|names| match &*names {
            [] => None,
            _ => Some(self::among(names)),
        });
        let told = owned.into_iter().zip(stale).zip(inactive).zip(active);
        let shares = among.iter().zip(told).zip(contested).map(
            |((id, (((owned, stale), inactive), active)), contested)| {
                let told = Told::of(&owned, &stale, most_listed);
                let share = Share {
                    nodes: owned.len(),
                    active,
                    listed: told.listed,
                    watched: told.watched,
                    sees_new: told.sees_new,
                    stale: stale.into_iter().map(|(name, _)| name.into()).collect(),
                    contested,
                    inactive: inactive.into_iter().map(Box::from).collect(),
                    history: None,
                    owned: is_divided.then_some(told.condition),
                    source: source.map(|name| (name.to_owned(), names[id.index()].clone())),
                };
                (*id, share)
            },
        );
        Shares {
            shares: shares.collect(),
        }
    }
}

impl Shares {
    /// What `backend` speaks for; `None` if it speaks for nothing, since its nodes are not known.
    pub fn of(&self, backend: BackendId) -> Option<&Share> {
        let share = self.shares.iter().find(|(id, _)| *id == backend);
        share.map(|(_, share)| share)
    }

    /// The backends that have one, in configured order.
    pub fn backends(&self) -> impl Iterator<Item = BackendId> {
        self.shares.iter().map(|(id, _)| *id)
    }

    /// The most certnames that it takes to tell a backend which of its nodes it is asked for.
    pub fn longest_list(&self) -> usize {
        let listed = self.shares.iter().map(|(_, share)| share.listed);
        listed.max().unwrap_or(0)
    }

    /// Whether some node is held by more than one of the backends.
    pub fn overlap(&self) -> bool {
        self.shares.iter().any(|(_, share)| share.owned.is_some())
    }

    /// The certnames of those nodes, as JSON.
    pub(super) fn shared(&self) -> Vec<&[u8]> {
        let stale = self.shares.iter().flat_map(|(_, share)| &share.stale);
        let mut names: Vec<&[u8]> = stale.map(|name| &**name).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The nodes that `backend` holds and another owns, each certname in its canonical spelling.
    pub(crate) fn stale(&self, backend: BackendId) -> Option<&HashSet<Box<[u8]>>> {
        self.of(backend).map(|share| &share.stale)
    }
}

impl Share {
    /// How many nodes it owns.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// How many active nodes it owns.
    pub(crate) fn active(&self) -> usize {
        self.active
    }

    /// Whether so many active nodes, listed by the backend as its own, show that it still has the nodes
    /// that it had, as [`watched`](Self::watched) would show it.
    pub(crate) fn is_confirmed_by(&self, rows: usize) -> bool {
        self.sees_new && rows == self.active
    }

    /// The nodes that it holds and another owns, in no order.
    pub fn stale(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.stale.iter().filter_map(|name| unquote(name))
    }

    /// How many certnames [`owned`](Self::owned) lists.
    pub(crate) fn listed(&self) -> usize {
        self.listed
    }

    /// The nodes whose number shows whether its condition still selects what it should; `None`
    /// for all that the backend holds.
    pub fn watched(&self) -> Option<&Watched> {
        self.watched.as_ref()
    }

    /// AST that selects the records of the nodes that the backend owns; `None` if those are all
    /// that any of them holds.
    pub(crate) fn owned(&self) -> Option<&str> {
        self.owned.as_deref()
    }

    /// AST that selects the records of nodes that another backend holds too; `None` if there are none.
    pub(crate) fn contested(&self) -> Option<&str> {
        self.contested.as_deref()
    }

    /// What a subquery of `entity` is narrowed to: stale copies match nothing there either.
    pub(crate) fn within(&self, entity: &str) -> Option<String> {
        let is_of_nodes = is_of_nodes(&entity.replace('-', "_"));
        let owned = self.owned().filter(|_| is_of_nodes)?;
        (owned != ALWAYS).then(|| owned.to_owned())
    }

    /// AST that selects the reports that count, or the events of such reports; `None` if all do.
    pub(crate) fn reports(&self) -> Option<&str> {
        self.history.as_ref().map(|history| &*history.reports)
    }

    /// The same for events.
    pub(crate) fn events(&self) -> Option<&str> {
        self.history.as_ref().map(|history| &*history.events)
    }

    /// What a comparison comes to in this backend, as far as that depends on the share.
    pub(crate) fn known(&self, atom: &Atom<'_>) -> Option<Truth> {
        self.of_source(atom).or_else(|| self.of_latest(atom))
    }

    /// A comparison of the source fact, which is a constant inside one backend.
    pub(crate) fn of_source(&self, atom: &Atom<'_>) -> Option<Truth> {
        let (source, backend) = self.source.as_ref()?;
        let (Field::Column(name) | Field::Fact(name)) = atom.field else {
            return None;
        };
        if name != source {
            return None;
        }
        let holds = match atom.operator {
            "=" => atom.text_operand() == Some(backend),
            "in" => atom.array_operand()?.contains(&&**backend),
            "null?" => !atom.is_truthy(),
            _ => return None,
        };
        Some(if holds { Truth::Always } else { Truth::Never })
    }

    /// Whether a node is active says its owner, also where its older reports are told by another.
    pub(crate) fn of_state(&self, atom: &Atom<'_>) -> Option<Truth> {
        self.owned()?;
        let asks = match (atom.operator, atom.field) {
            ("=", Field::Column("node_state")) => {
                atom.text_operand()?.eq_ignore_ascii_case("active")
            }
            ("=", Field::Active) => atom.is_truthy(),
            _ => false,
        };
        let inactive: Vec<&[u8]> = self.inactive.iter().map(|name| &**name).collect();
        asks.then(|| match &*inactive {
            [] => Truth::Always,
            _ => Truth::Depends(format!("[\"not\",{}]", among(inactive))),
        })
    }

    /// The latest report of a node is its owner's: what another backend has as the latest of its
    /// stale copy is not (trap T32).
    fn of_latest(&self, atom: &Atom<'_>) -> Option<Truth> {
        let owned = self.owned()?;
        if atom.field != Field::Column("latest_report?") || atom.operator != "=" {
            return None;
        }
        let text = match atom.raw_operand() {
            "true" => format!("[\"and\",{owned},{}]", atom.text),
            "false" => format!("[\"or\",[\"not\",{owned}],{}]", atom.text),
            _ => return None,
        };
        Some(Truth::Depends(text))
    }
}

/// AST that holds for the records of these nodes.
pub(super) fn among(names: Vec<&[u8]>) -> String {
    one_of("certname", names)
}

/// AST that holds where `column` is one of `values`, each a JSON text. Sorted, so that it is the
/// same each time.
pub(crate) fn one_of(column: &str, mut values: Vec<&[u8]>) -> String {
    values.sort_unstable();
    let chunk = |values: &[&[u8]]| {
        let values = values.join(&b',');
        let values = String::from_utf8_lossy(&values);
        format!("[\"in\",\"{column}\",[\"array\",[{values}]]]")
    };
    let chunks: Vec<_> = values.chunks(CHUNK).map(chunk).collect();
    format!("[\"or\",{}]", chunks.join(","))
}
