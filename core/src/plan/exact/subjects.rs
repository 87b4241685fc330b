//! Plans of event counts, in which a subject that several backends know is one subject.

use crate::Refusal;
use crate::merge::aggregates::{AggregateMerge, CountsFilter};
use crate::merge::fold::FoldPlan;
use crate::merge::records::Total;
use crate::merge::sets::{SetMerge, Shape};
use crate::merge::subjects::{Subject, Summaries, Summary};
use crate::merge::{Fan, Merge};
use crate::paging::{OrderBy, RecordOrder, Window};
use crate::params::Params;
use crate::plan::records::Paging;
use crate::plan::root::as_it_came;
use crate::plan::{Ask, Plan, history};
use crate::query::Query;
use crate::route::Route;
use crate::settings::Settings;

use super::history as of_history;

use super::newest;

/// Parameters of event counts that are applied here where counts are made of events.
const APPLIED: [&str; 7] = [
    "summarize_by",
    "count_by",
    "counts_filter",
    "limit",
    "offset",
    "order_by",
    "include_total",
];
/// What `/aggregate-event-counts` takes of them.
const SUMMARIZING: [&str; 3] = ["summarize_by", "count_by", "counts_filter"];
/// Which events count, in a way that only the events themselves show.
const DISTINCT: [&str; 3] = [
    "distinct_resources",
    "distinct_start_time",
    "distinct_end_time",
];
/// Parameters that every event route takes.
const COMMON: [&str; 5] = [
    "query",
    "origin",
    "timeout",
    "optimize_drop_unused_joins",
    "include_facts_expiration",
];

/// What `/aggregate-event-counts` knows of a query: PuppetDB compiles it the old way too, and refuses
/// whatever one of the two ways does not know (section 10.2 of the wire notes).
const OLD_OPERATORS: [&str; 11] = [
    "and", "or", "not", "=", ">", ">=", "<", "<=", "~", "in", "extract",
];

/// `/event-counts`. Counts of events add up. Counts of the nodes that they happened on
/// (`count_by=certname`) do not, since a node that moved has reports in several backends.
pub(in crate::plan) fn counts(
    route: &Route<'_>,
    params: &Params<'_>,
    settings: &Settings,
) -> Result<Plan, Refusal> {
    let added = history::event_counts(route, params)?;
    let Merge::Aggregates(merge) = &added.merge else {
        return of_history(added, route, params);
    };
    if !counts_nodes(params) {
        return of_history(added, route, params);
    }
    let order_by = Paging::of(params)?.order_by;
    let subject = params.get("summarize_by").and_then(Subject::named);
    let known = [&APPLIED[..], &["pretty"]].concat();
    if let Some(subject) = subject
        && is_ordered_by_counts(subject, &order_by)
        && let Some(query) = condition(params, &known)?
    {
        let merge = nodes_on(subject, merge.clone());
        let fan = Fan::new(events(subject, params, &query), merge);
        return of_history(fan, route, params);
    }
    Ok(as_it_came(route, params, settings))
}

/// `/aggregate-event-counts`: made of the event counts of each subject, of which a backend knows
/// its own part only.
pub(in crate::plan) fn summaries(
    route: &Route<'_>,
    params: &Params<'_>,
    settings: &Settings,
) -> Result<Plan, Refusal> {
    let by_node = counts_nodes(params);
    let mut known = SUMMARIZING.to_vec();
    if !by_node {
        known.extend(DISTINCT);
    }
    let names = params.get("summarize_by").unwrap_or_default();
    let subjects: Option<Vec<_>> = names.split(',').map(Subject::named).collect();
    let query = condition(params, &known)?.filter(|query| query.uses_only(&OLD_OPERATORS));
    let (Some(subjects), Some(query)) = (subjects, query) else {
        return Ok(as_it_came(route, params, settings));
    };
    let mut asks = Vec::new();
    let mut summaries = Vec::new();
    for subject in subjects {
        let counts = all_counts(params);
        let (ask, counts) = if by_node {
            (events(subject, params, &query), nodes_on(subject, counts))
        } else {
            let changes = [
                ("counts_filter", None),
                ("summarize_by", Some(subject.name().to_owned())),
            ];
            let ask = Ask::new("/pdb/query/v4/event-counts", params, &changes);
            (ask, Merge::Aggregates(counts))
        };
        let at = asks.len();
        asks.push(ask);
        summaries.push(Summary {
            subject,
            asks: at..at + 1,
            counts,
        });
    }
    let further = asks.split_off(1);
    let ask = asks.swap_remove(0);
    let fan = Fan {
        further,
        ..Fan::new(ask, Merge::Summaries(Summaries(summaries)))
    };
    of_history(fan, route, params)
}

/// `/event-counts` of the newest events: all of them are asked for, and counted here. `None` for what
/// the backends are to refuse in their own words.
pub(super) fn newest_counts(
    route: &Route<'_>,
    params: &Params<'_>,
) -> Result<Option<Fan>, Refusal> {
    let added = history::event_counts(route, params)?;
    let order_by = Paging::of(params)?.order_by;
    let subject = params.get("summarize_by").and_then(Subject::named);
    let known = [&APPLIED[..], &DISTINCT, &["pretty"]].concat();
    if let Merge::Aggregates(merge) = added.merge
        && let Some(subject) = subject
        && is_ordered_by_counts(subject, &order_by)
        && condition(params, &known)?.is_some()
    {
        let counts = counted_events(subject, params, merge);
        return Ok(Some(of_newest(params, newest::newest(counts))));
    }
    Ok(None)
}

/// `/aggregate-event-counts` of the newest events, likewise.
pub(super) fn newest_summaries(params: &Params<'_>) -> Result<Option<Fan>, Refusal> {
    let known = [&SUMMARIZING[..], &DISTINCT].concat();
    let names = params.get("summarize_by").unwrap_or_default();
    let subjects: Option<Vec<_>> = names.split(',').map(Subject::named).collect();
    let (Some(subjects), Some(_)) = (subjects, condition(params, &known)?) else {
        return Ok(None);
    };
    let summaries = subjects.into_iter().map(|subject| Summary {
        subject,
        asks: 0..2,
        counts: newest::newest(counted_events(subject, params, all_counts(params))),
    });
    let summaries = Merge::Summaries(Summaries(summaries.collect()));
    Ok(Some(of_newest(params, summaries)))
}

/// Asks for the newest events as the client selects them, and for what makes them the newest of all.
fn of_newest(params: &Params<'_>, merge: Merge) -> Fan {
    let mut changes = vec![("pretty", None)];
    changes.extend(APPLIED.map(|name| (name, None)));
    let ask = Ask::new("/pdb/query/v4/events", params, &changes);
    Fan {
        further: newest::times_ask(params).into_iter().collect(),
        ..Fan::new(ask, merge)
    }
}

/// Counts events, or the nodes that they happened on if that is asked for.
fn counted_events(subject: Subject, params: &Params<'_>, counts: AggregateMerge) -> Merge {
    if counts_nodes(params) {
        nodes_on(subject, counts)
    } else {
        counted_once(subject, subject.event_columns(), counts)
    }
}

/// The counts of every subject that the client's filter leaves.
fn all_counts(params: &Params<'_>) -> AggregateMerge {
    AggregateMerge {
        fold: FoldPlan::event_counts(),
        filter: params.get("counts_filter").and_then(CountsFilter::parse),
        order: RecordOrder::default(),
        window: Window::default(),
        total: Total::Unasked,
        source: None,
    }
}

fn counts_nodes(params: &Params<'_>) -> bool {
    params.get("count_by") == Some("certname")
}

/// Which events are counted, if the answer can be made here of what backends say of them: no
/// parameter is given that is not `known`, or that they would refuse.
fn condition(params: &Params<'_>, known: &[&str]) -> Result<Option<Query>, Refusal> {
    let is_known = |(name, _): (&str, &str)| {
        (known.contains(&name) || COMMON.contains(&name)) && params.get(name).is_some()
    };
    let count_by = params.get("count_by").unwrap_or("resource");
    let filter = params.get("counts_filter");
    let query = match Query::read(params.get("query"))? {
        // To events an empty list is no filter.
        query if query.is_empty() => Query::Absent,
        query => query,
    };
    let can_be = params.pairs().all(is_known)
        && ["resource", "certname"].contains(&count_by)
        && filter.is_none_or(|filter| CountsFilter::parse(filter).is_some())
        && !query.is_text()
        && !query.projects();
    Ok(can_be.then_some(query))
}

/// Asks for the nodes on which something happened to each subject.
fn events(subject: Subject, params: &Params<'_>, query: &Query) -> Ask {
    let quoted = |name: &&str| format!("\"{name}\"");
    let columns: Vec<_> = subject.columns().iter().map(quoted).collect();
    let columns = columns.join(",");
    let condition = match query {
        Query::Ast(ast) => format!("{},", ast.text().trim()),
        Query::Absent | Query::Text => String::new(),
    };
    let text = format!("[\"extract\",[{columns}],{condition}[\"group_by\",{columns}]]");
    let mut changes = vec![("query", Some(text)), ("pretty", None)];
    changes.extend(APPLIED.map(|name| (name, None)));
    Ask::new("/pdb/query/v4/events", params, &changes)
}

/// Counts those nodes, each of them once for each status.
fn nodes_on(subject: Subject, counts: AggregateMerge) -> Merge {
    counted_once(subject, subject.columns(), counts)
}

/// Counts what differs in these columns.
fn counted_once(
    subject: Subject,
    columns: &'static [&'static str],
    counts: AggregateMerge,
) -> Merge {
    let counts = AggregateMerge {
        fold: counts.fold.of_records(),
        ..counts
    };
    Merge::Set(SetMerge {
        identity: columns,
        living: &[],
        shape: Shape::Counted(subject),
        then: Box::new(Merge::Aggregates(counts)),
    })
}

/// Whether a backend would order event counts so; else it is to refuse it.
fn is_ordered_by_counts(subject: Subject, order_by: &OrderBy) -> bool {
    let of_subject: &[_] = match subject {
        Subject::Certname => &["certname"],
        Subject::Resource => &["resource_type", "resource_title"],
        Subject::ContainingClass => &["containing_class"],
    };
    let counts = ["failures", "skips", "successes", "noops"];
    let mut fields = order_by.fields.iter().map(|field| &*field.field);
    fields.all(|field| of_subject.contains(&field) || counts.contains(&field))
}
