//! Where it would take long lists of certnames to ask each backend for its own nodes alone.
//!
//! A list is not cheap. A PuppetDB's work on it is some 0.04 ms for each certname (7.12.1; 0.02 on
//! 8.4.1), whatever is asked, and where many nodes are held twice it outweighs the question. A
//! backend can be asked for everything instead, so that each row tells its node, and the rows of
//! others' nodes are left out here. That is cheap where a node has one short row, and else costs as
//! much more as a node has rows: there a list is better, until it is too long to be sent at all.

use crate::Refusal;
use crate::merge::aggregates::AggregateMerge;
use crate::merge::fold::{FoldPlan, Repeats};
use crate::merge::owners::Shares;
use crate::merge::records::{Keep, RecordMerge, Total};
use crate::merge::sift::Sift;
use crate::merge::tally::Tally;
use crate::merge::{Fan, Merge};
use crate::paging::RecordOrder;
use crate::params::Params;
use crate::query::{Ast, Column, Extract, Query};
use crate::route::Route;

use super::records::{Paging, UNPAGED, ordered_within};
use super::{Ask, Scope, active_ask};

/// A longer list costs more than a short row of each node, by what was measured with 5,000 nodes
/// held twice (docs/exact.md).
const DEAR: usize = 500;

/// What is done where lists would be too long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unlisted {
    /// What is asked.
    ask: Ask,
    /// How the answers become one.
    merge: Merge,
    rows: Rows,
    /// How the answer is made of what is known of owners, if it can be.
    tally: Option<AggregateMerge>,
}

/// What comes of asking for everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rows {
    /// At most one short row of each node.
    OfNode,
    /// Nobody knows how many, or how long.
    Any,
}

impl Unlisted {
    pub(super) fn new(ask: Ask, merge: Merge, rows: Rows) -> Box<Self> {
        Box::new(Self {
            ask,
            merge,
            rows,
            tally: None,
        })
    }

    /// The same, if nodes are counted that are known to be what `merge` is made of.
    pub(super) fn counting(mut self, merge: AggregateMerge) -> Self {
        self.tally = Some(merge);
        self
    }

    /// What is asked.
    pub(crate) fn ask_mut(&mut self) -> &mut Ask {
        &mut self.ask
    }

    /// The same without the parameter for people's eyes (see [`Fan::pretty`]).
    pub(crate) fn pretty(mut self) -> Self {
        self.ask = self.ask.without("pretty");
        self
    }
}

impl Fan {
    /// What is done in place of this plan among backends with these shares; `None` if it is to be
    /// done as it is. No list is sent that is longer than `most_listed`, if that can be helped.
    pub fn among(&self, shares: &Shares, most_listed: usize) -> Option<Self> {
        let unlisted = self.unlisted.as_deref()?;
        if let Some(then) = unlisted.tally.clone().filter(|_| shares.overlap()) {
            let unlisted = Unlisted {
                tally: None,
                ..unlisted.clone()
            };
            let otherwise = Box::new(Self {
                unlisted: Some(Box::new(unlisted)),
                ..self.clone()
            });
            return Some(Self {
                ask: active_ask(),
                merge: Merge::Tally(Tally { then, otherwise }),
                unlisted: None,
                lists_nodes: false,
                ..self.clone()
            });
        }
        let Unlisted {
            ask, merge, rows, ..
        } = unlisted;
        let most = match rows {
            Rows::OfNode => most_listed.min(DEAR),
            Rows::Any => most_listed,
        };
        (shares.longest_list() > most).then(|| Self {
            ask: ask.clone().of(Scope::OwnedWithin(most)),
            merge: merge.clone(),
            unlisted: None,
            lists_nodes: false,
            ..self.clone()
        })
    }
}

/// What comes of asking for all records that `query` selects.
pub(super) fn rows(route: &Route<'_>, query: &Query) -> Rows {
    let is_aggregate = query.extract().is_some_and(FoldPlan::combines);
    match route.row.entity {
        "nodes" => Rows::OfNode,
        // To group them by node costs as much as a list.
        "facts" if names_a_fact(route, query) && !is_aggregate => Rows::OfNode,
        _ => Rows::Any,
    }
}

/// Whether `query` asks for the number of active nodes and nothing else.
pub(super) fn counts_nodes(route: &Route<'_>, ast: &Ast) -> bool {
    let is_count = |column: &Column| matches!(column, Column::Function { name, args } if name == "count" && args.is_empty());
    let counts = ast.extract().is_some_and(|extract| {
        extract.group_by.is_empty() && matches!(&*extract.columns, [only] if is_count(only))
    });
    is_of_nodes(route) && counts && !ast.has_condition()
}

/// Whether `route` has a row of each active node, where no condition is put.
pub(super) fn is_of_nodes(route: &Route<'_>) -> bool {
    route.row.path == "/pdb/query/v4/nodes"
}

fn names_a_fact(route: &Route<'_>, query: &Query) -> bool {
    let is_in_path = route.row.path.contains("/facts/{}");
    is_in_path || matches!(query, Query::Ast(ast) if ast.pins("name"))
}

/// A question for all records, of which those that count are kept here.
pub(super) fn records(mut ask: Ask, mut merge: RecordMerge) -> (Ask, Merge) {
    merge.keep = Keep::OfOwner;
    // A backend's total counts what is left out here.
    if merge.total == Total::Added {
        merge.total = Total::Counted;
        ask = ask.with_limit(None);
    }
    (ask, Merge::Records(merge))
}

/// Aggregates of each record by itself, in a way that tells the record.
pub(super) struct Apart {
    pub(super) ask: Ask,
    /// The columns that were asked for beside the client's own.
    pub(super) strip: Vec<String>,
    /// The row that stands for no record at all, where functions make one of nothing.
    pub(super) nothing: Option<String>,
    /// How rows become the client's.
    pub(super) merge: AggregateMerge,
}

impl Apart {
    /// A backend is asked to group by the columns of `identity` as well, so that a row is what the
    /// client's functions make of one record. `None` if the query lists records.
    pub(super) fn of(
        route: &Route<'_>,
        params: &Params<'_>,
        ast: &Ast,
        (identity, repeats): (&[&str], Repeats),
    ) -> Result<Option<Self>, Refusal> {
        let Some(extract) = ast.extract() else {
            return Ok(None);
        };
        let Some((fold, mut forwarded)) = FoldPlan::new(extract, repeats)? else {
            return Ok(None);
        };
        let Paging { window, order_by } = Paging::of(params)?;
        ordered_within(extract, &order_by)?;
        let identity = identity.iter().map(|name| (*name).to_owned());
        let strip: Vec<_> = identity
            .clone()
            .filter(|name| !forwarded.projects(name))
            .collect();
        let is_one_row = extract.group_by.is_empty();
        let nothing = fold.of_nothing().filter(|_| is_one_row);
        // Else every backend refuses it, and is to do so in its own words.
        if is_grouped_by_all(extract) {
            let unseen = strip.iter().cloned().map(Column::Plain);
            forwarded.columns.extend(unseen);
            let missing = identity
                .map(Column::Plain)
                .filter(|column| !extract.group_by.contains(column));
            forwarded.group_by.extend(missing);
        }
        let mut changes = vec![("query", Some(ast.with_extract(&forwarded)))];
        changes.extend(UNPAGED);
        let merge = AggregateMerge {
            fold: fold.of_records(),
            filter: None,
            order: RecordOrder::new(&order_by, route.row.entity),
            window,
            total: Total::counted_if(params.is_true("include_total")),
            source: None,
        };
        Ok(Some(Self {
            ask: Ask::new(route.path, params, &changes),
            strip,
            nothing,
            merge,
        }))
    }

    /// What is asked of everything and folded here.
    pub(super) fn sifted(self) -> (Ask, Merge) {
        let merge = Merge::Sifted(Sift {
            strip: self.strip,
            nothing: self.nothing,
            then: self.merge,
        });
        (self.ask, merge)
    }
}

/// Whether every plain column is one that is grouped by.
fn is_grouped_by_all(extract: &Extract) -> bool {
    extract.columns.iter().all(|column| match column {
        Column::Plain(_) => extract.group_by.contains(column),
        Column::Function { .. } => true,
    })
}
