//! Plans of names, counts and of what hangs below a report.

use crate::Refusal;
use crate::json::quote;
use crate::merge::aggregates::{AggregateMerge, CountsFilter};
use crate::merge::fold::FoldPlan;
use crate::merge::listing::ListMerge;
use crate::merge::records::Total;
use crate::merge::{Fan, Merge};
use crate::paging::{RecordOrder, Window};
use crate::params::Params;
use crate::query::Query;
use crate::route::Route;
use crate::settings::{Settings, Strategy};

use super::records::Paging;
use super::{Ask, Plan, Scope, carrier};

/// `/fact-names` (R086-R092).
pub(super) fn fact_names(
    route: &Route<'_>,
    params: &Params<'_>,
    settings: &Settings,
) -> Result<Fan, Refusal> {
    let Paging { window, order_by } = Paging::of(params)?;
    if let Some(other) = order_by.fields.iter().find(|field| field.field != "name") {
        return Err(Refusal::NotAFactNameColumn {
            field: other.field.clone(),
        });
    }
    let leading = order_by.fields.first();
    let direction = leading.map(|field| field.direction).unwrap_or_default();
    // Whole lists are short, and no cut of one can be relied on: what a database that orders text by
    // a language leaves off may belong into the window (trap T12).
    let changes = [("limit", None), ("offset", None)];
    let scope = match settings.strategy {
        Strategy::Freshness | Strategy::Static => Scope::Everything,
        Strategy::Exact => Scope::Listed(carrier::FACT_NAMES),
    };
    Ok(Fan::new(
        Ask::new(route.path, params, &changes).of(scope),
        Merge::List(ListMerge {
            direction,
            window,
            source: settings.source.clone(),
            total: Total::counted_if(params.is_true("include_total")),
        }),
    ))
}

/// `/event-counts`: every subject is needed before the counts are whole, so neither a limit nor a
/// filter of counts is pushed down (traps T30, T31). The order is, so that a backend can refuse a column that there is not.
pub(super) fn event_counts(route: &Route<'_>, params: &Params<'_>) -> Result<Fan, Refusal> {
    let Paging { window, order_by } = Paging::of(params)?;
    let mut changes = vec![("limit", None), ("offset", None), ("include_total", None)];
    let filter = params.get("counts_filter").and_then(CountsFilter::parse);
    if filter.is_some() {
        changes.push(("counts_filter", None));
    }
    let fold = FoldPlan::event_counts();
    let order = RecordOrder::new(&order_by, route.row.entity);
    let merge = Merge::Aggregates(AggregateMerge {
        fold,
        filter,
        order,
        window,
        total: Total::counted_if(params.is_true("include_total")),
        source: None,
    });
    Ok(Fan::new(Ask::new(route.path, params, &changes), merge))
}

/// `/aggregate-event-counts`, which takes no paging: a backend refuses it in its own words.
pub(super) fn aggregate_event_counts(route: &Route<'_>, params: &Params<'_>) -> Fan {
    let merge = Merge::Aggregates(AggregateMerge {
        fold: FoldPlan::aggregate_event_counts(),
        filter: None,
        order: RecordOrder::default(),
        window: Window::default(),
        total: Total::Unasked,
        source: None,
    });
    Fan::new(Ask::as_it_came(route.path, params), merge)
}

/// The events of a report. Its holder is asked first, since it alone can say that there is no such
/// report; PuppetDB since 6.22 and 7.11 answers that path with a fault of its own (500, seen on
/// 7.12.1 and 8.4.1), and then the same rows are asked for as events.
pub(super) fn events_of_report(
    route: &Route<'_>,
    params: &Params<'_>,
    settings: &Settings,
) -> Result<Fan, Refusal> {
    let ask = Ask::as_it_came(route.path, params);
    let report = route.segment(0).unwrap_or_default();
    let clause = format!("[\"=\",\"report\",{}]", quote(&report));
    let query = Query::read(params.get("query"))?;
    let mut otherwise = None;
    if let Some(query) = query.and(&clause) {
        let narrowed: Vec<_> = params
            .forward(&[("query", Some(query))])
            .into_iter()
            .map(|(_, raw)| raw)
            .collect();
        let narrowed = narrowed.join("&");
        let narrowed = Params::read(&narrowed)?;
        let events = Route::find("/pdb/query/v4/events")?;
        // A repeated query stays as it came, and so is not narrowed.
        if narrowed.get("query").is_some()
            && let Some(events) = events
            && let Plan::Fan(fan) = super::plan(&events, &narrowed, settings)?
        {
            otherwise = Some(Box::new(fan));
        }
    }
    Ok(Fan::new(ask, Merge::Holder(otherwise)))
}
