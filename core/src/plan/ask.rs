//! What is sent upstream.

use serde::Deserialize;

use crate::merge::owners::{ALWAYS, NEVER, Share, Watched};
use crate::params::{Params, body, encode};
use crate::query::{Atom, Query, Sign, Truth};
use crate::route::{Bodies, Route};
use crate::settings::Strategy;

use super::carrier::{self, Carrier};

/// Longest path and query of a request line. PuppetDB's web server refuses heads above 8 KiB with
/// 414 or 431 (section 1.6 of the wire notes); the rest is room for the other headers.
const LONGEST_TARGET: usize = 6 << 10;

/// The parameter that a PuppetDB takes for its log alone, and the routes that take it.
const ORIGIN: &str = "origin";
const QUERIES: &str = "/pdb/query/v4";

/// One question, as it goes to a backend: the raw path, the raw parameters, and the limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    path: String,
    /// Name and raw text of each parameter.
    pairs: Vec<(String, String)>,
    limit: Option<u32>,
    scope: Scope,
}

/// Which of its records a backend is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// All that the query selects.
    #[default]
    Everything,
    /// Those of the nodes that it owns.
    Owned,
    /// The same, if it takes no more certnames than this to say which those are; else all that the
    /// query selects, of which the others' are left out here.
    OwnedWithin(usize),
    /// The reports that count, each in one backend.
    Reports,
    /// The events of those reports.
    Events,
    /// Those of a set that the records of its share name.
    Listed(&'static [Carrier]),
    /// As `Owned`, if some node is held twice; if none is, there is nothing to be asked.
    Living,
    /// Those of the nodes that another backend holds too; if there are none, nothing is asked.
    Contested,
    /// As `Owned`, if the backend holds nodes of others; if not, there is nothing to be asked.
    Mixed,
}

impl Scope {
    /// Whether it matters which reports several backends have.
    pub fn is_history(self) -> bool {
        matches!(self, Self::Reports | Self::Events)
    }
}

impl Ask {
    /// The client's own path and parameters, byte for byte.
    pub fn as_it_came(path: &str, params: &Params<'_>) -> Self {
        Self::new(path, params, &[])
    }

    /// A path with the client's parameters but for `changes`: a new value, or none to leave the
    /// parameter out.
    pub(crate) fn new(path: &str, params: &Params<'_>, changes: &[(&str, Option<String>)]) -> Self {
        Self {
            path: path.to_owned(),
            pairs: params.forward(changes),
            limit: None,
            scope: Scope::Everything,
        }
    }

    /// A fixed question of pdbmux's own.
    pub fn own(path: &str, parameters: &[(&str, &str)]) -> Self {
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), encode(name, value));
        let pairs = parameters.iter().map(pair).collect();
        Self {
            path: path.to_owned(),
            pairs,
            limit: None,
            scope: Scope::Everything,
        }
    }

    /// The same with another limit; `None` for all records.
    #[must_use]
    pub fn with_limit(mut self, limit: Option<u32>) -> Self {
        self.limit = limit;
        self
    }

    /// The same, of other records.
    #[must_use]
    pub(crate) fn of(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Which of its records a backend is asked for.
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// The question as it is put to a backend that speaks for `share`.
    ///
    /// A query that is no AST, or is given more than once, is left for the backend to refuse.
    #[must_use]
    pub fn within(&self, share: &Share) -> Self {
        let mut within = self.clone();
        let listed;
        let lists = match self.scope {
            Scope::OwnedWithin(most) => share.listed() <= most,
            _ => true,
        };
        let clause = match self.scope {
            Scope::Everything => return within,
            Scope::OwnedWithin(_) if !lists => None,
            Scope::Owned | Scope::OwnedWithin(_) | Scope::Living | Scope::Mixed => share.owned(),
            Scope::Reports => share.reports(),
            Scope::Events => share.events(),
            Scope::Contested => share.contested(),
            Scope::Listed(carriers) => {
                listed = share.owned().map(|owned| carrier::clause(carriers, owned));
                listed.as_deref()
            }
        };
        let text = self.clone().with_limit(None).query();
        let Ok(params) = Params::read(&text) else {
            return within;
        };
        let Ok(query) = Query::read(params.get("query")) else {
            return within;
        };
        let query = match (query.is_empty(), self.scope.is_history()) {
            (false, _) => query,
            (true, true) => Query::Absent,
            (true, false) => return within,
        };
        let of_state = |atom: &Atom<'_>| {
            let state = self.scope.is_history().then(|| share.of_state(atom));
            state.flatten()
        };
        // PuppetDB takes `any` state for no condition: it reads a connective around it otherwise with
        // nothing beside it, and hides inactive nodes once it is gone. So nothing is folded away.
        let names_state = matches!(&query, Query::Ast(ast) if ast.names_node_state());
        let is_kept = names_state && !self.scope.is_history();
        let known = |atom: &Atom<'_>| {
            let truth = if lists {
                share.known(atom).or_else(|| of_state(atom))?
            } else {
                // What depends on the share is found out here.
                share.of_source(atom)?
            };
            Some(if is_kept { written(truth) } else { truth })
        };
        let within_subquery = |entity: &str| share.within(entity).filter(|_| lists);
        if !query.is_text()
            && let Ok(query) = query.with_subqueries(&within_subquery)
        {
            let narrowed = query.narrowed(&known, clause, NEVER);
            within.pairs = params.forward(&[("query", narrowed)]);
        }
        within
    }

    /// The question with `instead` of each clause that a subquery decides; `None` leaves a clause as it
    /// is.
    #[must_use]
    pub(crate) fn with_clauses(&self, instead: &dyn Fn(&str, Sign) -> Option<String>) -> Self {
        let text = self.clone().with_limit(None).query();
        let mut changed = self.clone();
        if let Ok(params) = Params::read(&text)
            && let Ok(query) = Query::read(params.get("query"))
            && let Ok(query) = query.with_clauses(instead)
            && let Some(query) = query.text()
        {
            changed.pairs = params.forward(&[("query", Some(query.to_owned()))]);
        }
        changed
    }

    /// Whether there is something to be asked of a backend that speaks for `share`.
    pub fn concerns(&self, share: &Share) -> bool {
        match self.scope {
            Scope::Everything
            | Scope::Owned
            | Scope::OwnedWithin(_)
            | Scope::Reports
            | Scope::Events
            | Scope::Listed(_) => true,
            Scope::Living => share.owned().is_some(),
            Scope::Contested => share.contested().is_some(),
            Scope::Mixed => share.stale().next().is_some(),
        }
    }

    /// The same without a parameter.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.pairs.retain(|(known, _)| known != name);
        self
    }

    /// The limit that is sent beside the other parameters.
    pub fn limit(&self) -> Option<u32> {
        self.limit
    }

    /// How the question is put to a backend whose base path takes `prefix` bytes of the request
    /// line: by POST if it is too long for GET and can be put so. `origin` is what the backend is
    /// told for its log of queries, if it takes that; a client's own goes before it.
    pub fn send(&self, prefix: usize, origin: Option<&str>) -> Sent {
        match origin.and_then(|origin| self.told(origin)) {
            Some(told) => told.written(prefix),
            None => self.written(prefix),
        }
    }

    /// The same with an `origin`; `None` where it has one, or where there is no query to be logged.
    fn told(&self, origin: &str) -> Option<Self> {
        let is_told = self.pairs.iter().any(|(name, _)| name == ORIGIN);
        if is_told || !self.path.starts_with(QUERIES) {
            return None;
        }
        let mut told = self.clone();
        told.pairs.push((ORIGIN.to_owned(), encode(ORIGIN, origin)));
        Some(told)
    }

    fn written(&self, prefix: usize) -> Sent {
        let target = self.target();
        let body = if prefix + target.len() > LONGEST_TARGET {
            self.body()
        } else {
            None
        };
        match body {
            None => Sent { target, body },
            Some(_) => Sent {
                target: self.path.clone(),
                body,
            },
        }
    }

    /// The parameters as a POST carries them, if the route takes one and an object can hold them.
    fn body(&self) -> Option<String> {
        let route = Route::find(&self.path).ok()??;
        match route.row.bodies {
            Bodies::Read => body::to_json(&Params::read(&self.query()).ok()?),
            Bodies::ReadHere | Bodies::Unread => None,
        }
    }

    /// Path and query, as they stand in the request line behind the backend's base path.
    pub fn target(&self) -> String {
        match self.query() {
            query if query.is_empty() => self.path.clone(),
            query => format!("{}?{query}", self.path),
        }
    }

    fn query(&self) -> String {
        let limit = self.limit.map(|limit| format!("limit={limit}"));
        let query: Vec<_> = self
            .pairs
            .iter()
            .map(|(_, raw)| raw.as_str())
            .chain(limit.as_deref())
            .collect();
        query.join("&")
    }
}

/// What is known of a condition, as a condition.
fn written(truth: Truth) -> Truth {
    match truth {
        Truth::Always => Truth::Depends(ALWAYS.to_owned()),
        Truth::Never => Truth::Depends(NEVER.to_owned()),
        Truth::Depends(condition) => Truth::Depends(condition),
    }
}

/// A question as it is written to a backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// Path and query, as they stand in the request line behind the backend's base path.
    pub target: String,
    /// The JSON object that a POST carries; `None` for GET.
    pub body: Option<String>,
}

/// The question whose answers make the freshness map (R044). Under `merge: exact` later times break
/// ties of the first, and the state of a node is its owner's.
///
/// Nodes in any state are asked for, since routes of one node serve inactive ones too (traps T47,
/// T48), and in order, since the answers also show by what a backend orders text (trap T12).
pub fn freshness_ask(strategy: Strategy) -> Ask {
    let query = match strategy {
        Strategy::Freshness | Strategy::Static => {
            r#"["extract",["certname","report_timestamp"],["=","node_state","any"]]"#
        }
        Strategy::Exact => concat!(
            r#"["extract",["certname","report_timestamp","facts_timestamp","catalog_timestamp","#,
            r#""deactivated","expired"],"#,
            r#"["=","node_state","any"]]"#
        ),
    };
    let order_by = r#"[{"field":"certname"}]"#;
    Ask::own(
        "/pdb/query/v4/nodes",
        &[("query", query), ("order_by", order_by)],
    )
}

/// The question how many nodes a backend has, in any state.
pub fn census_ask() -> Ask {
    let query = r#"["extract",[["function","count"]],["=","node_state","any"]]"#;
    Ask::own("/pdb/query/v4/nodes", &[("query", query)])
}

/// The question how many active nodes a backend has.
///
/// Of a query that counts once and no more, PuppetDB leaves out the tables that it does not need
/// (since 6.9; 7.12.1 takes half of what it takes to count each state in one query).
pub(crate) fn active_ask() -> Ask {
    let query = r#"["extract",[["function","count"]]]"#;
    Ask::own("/pdb/query/v4/nodes", &[("query", query)])
}

/// The question how many nodes there are by now of those that are watched. Of factsets, which costs a
/// PuppetDB a third of what nodes with such a time do (7.12.1: 9 ms of 5,000, 27 where nodes without
/// facts are counted too).
pub fn watched_ask(watched: &Watched) -> Ask {
    let condition = watched.condition();
    let query = format!(
        r#"["extract",[["function","count"]],["and",["=","node_state","any"],{condition}]]"#
    );
    Ask::own("/pdb/query/v4/factsets", &[("query", &query)])
}

/// The number in the answer to [`census_ask`], or to another question for a number of nodes.
pub fn census(body: &[u8]) -> Option<u64> {
    #[derive(Deserialize)]
    struct Row {
        count: u64,
    }
    let rows: Vec<Row> = serde_json::from_slice(body).ok()?;
    rows.first().map(|row| row.count)
}
