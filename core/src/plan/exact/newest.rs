//! Plans of events of which the newest of each resource counts alone (`distinct_resources`).
//!
//! Each backend is asked as the client asks, for what is newest among its own, and beside it how new
//! its events of nodes are that another backend holds too (see [`crate::merge::newest`]).

use crate::Refusal;
use crate::json::quote;
use crate::merge::newest::{NewestMerge, RESOURCE};
use crate::merge::records::{Keep, Total};
use crate::merge::{Fan, Merge};
use crate::paging::RecordOrder;
use crate::params::Params;
use crate::plan::records::{Paging, Selection};
use crate::plan::{Ask, Scope, merge_of_records};
use crate::provenance::Mark;
use crate::query::Query;
use crate::route::{Route, Rule};
use crate::settings::{Settings, Strategy};

use super::subjects;

/// A request for the newest events, or for counts of them; `None` if it is no such request, or one
/// that is answered as in the other modes.
pub(in crate::plan) fn plan(
    route: &Route<'_>,
    params: &Params<'_>,
    settings: &Settings,
) -> Result<Option<Fan>, Refusal> {
    if !is_exact(route, params, settings) {
        return Ok(None);
    }
    match route.row.exact {
        Rule::Subjects => subjects::newest_counts(route, params),
        Rule::Summaries => subjects::newest_summaries(params),
        _ => events(route, params, settings).map(Some),
    }
}

/// Whether the answer to a request for distinct resources can be one PuppetDB's.
///
/// Not if something else depends on the backend: a subquery, which the old compiler takes no list in
/// the place of, or what is the latest report of a node.
fn is_exact(route: &Route<'_>, params: &Params<'_>, settings: &Settings) -> bool {
    let is_asked = settings.strategy == Strategy::Exact
        && settings.backends.len() > 1
        && params.is_true("distinct_resources")
        && params.get("explain").is_none()
        && matches!(
            route.row.entity,
            "events" | "event-counts" | "aggregate-event-counts"
        )
        && matches!(
            route.row.exact,
            Rule::Owned | Rule::OwnedBelow | Rule::Subjects | Rule::Summaries
        );
    let query = Query::read(params.get("query"));
    is_asked
        && times(params).is_some()
        && query.is_ok_and(|query| {
            let depends = query.has_subqueries() || query.constrains("latest_report?");
            !depends && !query.is_text() && !query.projects()
        })
}

fn times<'p>(params: &'p Params<'_>) -> Option<(&'p str, &'p str)> {
    let start = params.get("distinct_start_time")?;
    Some((start, params.get("distinct_end_time")?))
}

/// The question how new the events of each resource are, whatever happened.
pub(super) fn times_ask(params: &Params<'_>) -> Option<Ask> {
    let (start, end) = times(params)?;
    let (start, end) = (quote(start), quote(end));
    let columns: Vec<_> = RESOURCE.iter().map(|name| quote(name)).collect();
    let columns = columns.join(",");
    let query = format!(
        r#"["extract",[["function","max","timestamp"],{columns}],["and",[">=","timestamp",{start}],["<=","timestamp",{end}]],["group_by",{columns}]]"#
    );
    let ask = Ask::own("/pdb/query/v4/events", &[("query", &query)]);
    Some(ask.of(Scope::Contested))
}

/// Merges the newest events as `then` does it.
pub(super) fn newest(then: Merge) -> Merge {
    Merge::Newest(NewestMerge {
        then: Box::new(then),
    })
}

/// The events themselves. Whole lists are asked for: what a backend's window holds may be left out.
fn events(route: &Route<'_>, params: &Params<'_>, settings: &Settings) -> Result<Fan, Refusal> {
    let query = Query::read(params.get("query"))?;
    let changes = [("limit", None), ("offset", None), ("include_total", None)];
    let ask = Ask::new(route.path, params, &changes);
    let Paging { order_by, .. } = Paging::of(params)?.by_identity(route.row.identity);
    let selection = Selection {
        order: RecordOrder::new(&order_by, route.row.entity),
        ..Selection::new(route, params, &query, &[])?
    };
    let mut merge = merge_of_records(selection, Keep::Owned, Mark::Nothing, params, settings);
    if merge.total == Total::Added {
        merge.total = Total::Counted;
    }
    Ok(Fan {
        further: times_ask(params).into_iter().collect(),
        ..Fan::new(ask, newest(Merge::Records(merge)))
    })
}
