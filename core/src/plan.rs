//! A request's whole intention as data: whom to ask what, and how the answers become one.
//!
//! After this no code asks which route a request came by.

mod ask;
mod cache_key;
mod carrier;
mod doubt;
mod exact;
mod history;
mod metrics;
mod prior;
mod records;
mod root;
#[cfg(test)]
mod tests;
mod unlisted;

use std::borrow::Cow;

use crate::Refusal;
use crate::merge::drilldown::Drilldown;
use crate::merge::fold::Repeats;
use crate::merge::records::{Keep, RecordMerge, TextOrder, Total};
use crate::merge::{Fan, Layout, Merge};
use crate::paging::{RecordOrder, Window};
use crate::params::Params;
use crate::provenance::{Mark, Provenance};
use crate::query::Query;
use crate::route::{Route, Rule};
use crate::settings::{Settings, Strategy};

pub(crate) use ask::active_ask;
pub use ask::{Ask, Scope, Sent, census, census_ask, freshness_ask, watched_ask};
pub use doubt::{Doubt, Uncertain};
pub use unlisted::Unlisted;

use records::{Paging, Selection};

/// What is done about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// The answer is known without asking anyone: no record, and how many if that was asked.
    Nothing(Option<u64>),
    /// Backends are asked one after the other until one succeeds; its answer is passed on as it
    /// arrives. What is uncertain of it is told, or asked first.
    Turns(Ask, Turns, Uncertain),
    /// The same, to learn whether there is what the path names: if so, this is asked instead.
    Parent(Ask, Turns, Fan),
    /// A backend is asked for the AST of a PQL query, which is then to be [`translated`].
    Translate(Ask),
    /// All backends are asked at once and their answers merged.
    Fan(Fan),
    /// A write, which is refused.
    Write,
}

impl Plan {
    /// Turns of which nothing is uncertain yet.
    fn turns(ask: Ask, turns: Turns) -> Self {
        Self::Turns(ask, turns, Uncertain::default())
    }
}

/// In which order backends take turns, and whose refusal counts if none succeeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turns {
    /// The configured order; a refusal must be unanimous to be replayed (R241).
    Configured,
    /// The owner of a certname first; the first that answers at all is served (R228-R236).
    OwnerFirst {
        /// The certname, decoded.
        certname: String,
        /// How its owner is found.
        by: Strategy,
    },
}

impl Turns {
    /// Whether an owner that answers has the last word, though it has nothing of what was asked:
    /// what others have of its node is not current.
    pub fn owner_speaks(&self) -> bool {
        match self {
            Self::OwnerFirst { by, .. } => *by == Strategy::Exact,
            Self::Configured => false,
        }
    }
}

/// Plans a request.
pub fn plan(route: &Route<'_>, params: &Params<'_>, settings: &Settings) -> Result<Plan, Refusal> {
    let plan = doubted(route, params, settings)?;
    // Aggregate event counts take no such parameter, which their backends say themselves.
    let pretty = params.is_true("pretty") && route.row.rule != Rule::AggregateEventCounts;
    Ok(match plan {
        Plan::Fan(fan) => {
            let mut fan = if pretty { fan.pretty() } else { fan };
            fan.cache_key = cache_key::cache_key(route, params, &fan);
            Plan::Fan(fan)
        }
        Plan::Parent(ask, turns, fan) if pretty => Plan::Parent(ask, turns, fan.pretty()),
        other => other,
    })
}

/// Plans a request of which a backend has translated the query into the AST `text`.
pub fn translated(
    route: &Route<'_>,
    params: &Params<'_>,
    text: &str,
    settings: &Settings,
) -> Result<Plan, Refusal> {
    let plan = root::from_ast(route, params, text, settings)?;
    Ok(match plan {
        Plan::Fan(fan) if params.is_true("pretty") => Plan::Fan(fan.pretty()),
        other => other,
    })
}

/// Plans a request, layout apart, and says what must be asked first, and what is to be doubted of the
/// answer.
fn doubted(route: &Route<'_>, params: &Params<'_>, settings: &Settings) -> Result<Plan, Refusal> {
    let mut plan = plan_as_it_came(route, params, settings)?;
    let Uncertain { priors, doubts } = Uncertain::of(route, params, settings);
    match &mut plan {
        Plan::Fan(fan) | Plan::Parent(.., fan) => {
            fan.priors.extend(priors);
            fan.doubts.extend(doubts);
            if fan.asks().any(|ask| ask.scope() == Scope::Contested) {
                fan.doubts
                    .retain(|doubt| *doubt != Doubt::DistinctByBackend);
            }
        }
        Plan::Turns(.., known) => {
            known.priors.extend(priors);
            known.doubts.extend(doubts);
        }
        Plan::Nothing(_) | Plan::Translate(_) | Plan::Write => {}
    }
    Ok(plan)
}

/// Plans a request, layout apart.
fn plan_as_it_came(
    route: &Route<'_>,
    params: &Params<'_>,
    settings: &Settings,
) -> Result<Plan, Refusal> {
    let as_it_came = || Ask::as_it_came(route.path, params);
    let pass = || Ok(Plan::turns(as_it_came(), Turns::Configured));
    let fan = |merge| Ok(Plan::Fan(Fan::new(as_it_came(), merge)));
    if let Some(fan) = exact::newest::plan(route, params, settings)? {
        return Ok(Plan::Fan(fan));
    }
    match rule(route, params, settings) {
        Rule::Write => Ok(Plan::Write),
        Rule::FirstGood => pass(),
        // A query plan is one server's own and cannot be merged (trap T65).
        _ if params.get("explain").is_some() => pass(),
        Rule::OfNode => Ok(Plan::turns(as_it_came(), owner_first(route, settings))),
        Rule::OfReportBelow => exact::of_report_below(route, params, settings),
        Rule::EdgesOfCatalog => exact::edges_of_catalog(route, params, settings),
        Rule::Root => root::plan(route, params, settings),
        Rule::Version => fan(Merge::Version),
        Rule::Clock => fan(Merge::First),
        Rule::ReadMetrics | Rule::ListMetrics | Rule::MBeans | Rule::MBean => {
            Ok(metrics::plan(route, params, settings))
        }
        Rule::FactNames => history::fact_names(route, params, settings).map(Plan::Fan),
        Rule::EventCounts => history::event_counts(route, params).map(Plan::Fan),
        Rule::AggregateEventCounts => Ok(Plan::Fan(history::aggregate_event_counts(route, params))),
        Rule::OfReport => fan(Merge::Holder(None)),
        Rule::EventsOfReport => history::events_of_report(route, params, settings).map(Plan::Fan),
        Rule::Owned => exact::owned(route, params, settings).map(exact::known_by_all),
        Rule::OwnedBelow => exact::owned(route, params, settings),
        Rule::Set => exact::sets::plan(route, params, settings).map(Plan::Fan),
        Rule::Subjects => exact::subjects::counts(route, params, settings),
        Rule::Summaries => exact::subjects::summaries(route, params, settings),
        Rule::Nodes
        | Rule::Facts
        | Rule::NamedFacts
        | Rule::Resources
        | Rule::Reports
        | Rule::Events => {
            let query = Query::read(params.get("query"))?;
            entity(route, params, &query, settings)
        }
    }
}

/// What is done with the answers of `route`.
///
/// PuppetDB compiles a question for distinct resources the old way, which takes no list of nodes: where
/// its answers cannot be mended here, they are merged as in the other modes, and doubted.
fn rule(route: &Route<'_>, params: &Params<'_>, settings: &Settings) -> Rule {
    match settings.strategy {
        Strategy::Exact if !params.is_true("distinct_resources") => route.row.exact,
        Strategy::Exact | Strategy::Freshness | Strategy::Static => route.row.rule,
    }
}

/// The owner of the node that the path names last, then the others.
fn owner_first(route: &Route<'_>, settings: &Settings) -> Turns {
    let last = route.segments.len().saturating_sub(1);
    Turns::OwnerFirst {
        certname: route.segment(last).unwrap_or_default().into_owned(),
        by: settings.strategy,
    }
}

/// Plans a request for an entity whose aggregates are combined.
fn entity(
    route: &Route<'_>,
    params: &Params<'_>,
    query: &Query,
    settings: &Settings,
) -> Result<Plan, Refusal> {
    if let Query::Ast(ast) = query
        && let Some((ask, merge)) = records::aggregates(route, params, ast, Repeats::Refused)?
    {
        return Ok(Plan::Fan(Fan::new(ask, Merge::Aggregates(merge))));
    }
    let source = settings.source.as_deref();
    match route.row.rule {
        Rule::Nodes => {
            let needed = ["certname", "report_timestamp"];
            let selection = Selection::new(route, params, query, &needed)?;
            let mark = if query.projects() || query.is_text() {
                Mark::Nothing
            } else {
                Mark::Key
            };
            Ok(record_merge(
                selection,
                Keep::NewestReport,
                mark,
                params,
                settings,
            ))
        }
        Rule::NamedFacts
            if source.is_some_and(|name| route.segment(0).as_deref() == Some(name)) =>
        {
            source_facts(route, params, query, settings)
        }
        Rule::Facts | Rule::NamedFacts => {
            let selection = Selection::new(route, params, query, &["certname"])?;
            let gated = query.projects() || query.is_text() || query.constrains_name();
            let mark = match route.row.rule {
                Rule::Facts if !gated => Mark::Fact,
                _ => Mark::Nothing,
            };
            Ok(record_merge(
                selection,
                facts_keep(settings),
                mark,
                params,
                settings,
            ))
        }
        Rule::Reports | Rule::Events => {
            let identity = route.row.identity;
            let selection = Selection::new(route, params, query, identity)?;
            Ok(record_merge(
                selection,
                Keep::Each(identity),
                Mark::Nothing,
                params,
                settings,
            ))
        }
        _ => Ok(Plan::turns(
            Ask::as_it_came(route.path, params),
            Turns::Configured,
        )),
    }
}

/// The source fact's own path: no backend holds it, so it is made of the `/facts` merge that
/// produces it (R057-R066).
fn source_facts(
    route: &Route<'_>,
    params: &Params<'_>,
    query: &Query,
    settings: &Settings,
) -> Result<Plan, Refusal> {
    let Paging { window, order_by } = Paging::of(params)?.by_identity(route.row.identity);
    let nothing = Plan::Nothing(params.is_true("include_total").then_some(0));
    if query.projects() || query.is_text() || query.constrains_name() {
        return Ok(nothing);
    }
    let value = route.segment(1).map(Cow::into_owned);
    if let Some(value) = &value
        && !settings.backends.contains(value)
    {
        return Ok(nothing);
    }
    let scope = match settings.strategy {
        Strategy::Freshness | Strategy::Static => Scope::Everything,
        Strategy::Exact => Scope::Owned,
    };
    let ask = Ask::new("/pdb/query/v4/facts", params, &records::UNPAGED).of(scope);
    let merge = RecordMerge {
        keep: facts_keep(settings),
        order: RecordOrder::default(),
        text_order: TextOrder::Bytes,
        window: Window::default(),
        strip: Vec::new(),
        provenance: Provenance {
            name: settings.source.clone(),
            mark: Mark::FactsOnly,
        },
        total: Total::Unasked,
    };
    let drilldown = Drilldown {
        value,
        order: RecordOrder::new(&order_by, route.row.entity),
        window,
        total: Total::counted_if(params.is_true("include_total")),
        layout: Layout::AsItCame,
    };
    let instead = unlisted::records(ask.clone(), merge.clone());
    let plan = Plan::Fan(Fan {
        drilldown: Some(Box::new(drilldown)),
        ..Fan::new(ask, Merge::Records(merge))
    });
    Ok(exact::otherwise(plan, Some(instead), unlisted::Rows::Any))
}

fn record_merge(
    selection: Selection,
    keep: Keep,
    mark: Mark,
    params: &Params<'_>,
    settings: &Settings,
) -> Plan {
    let ask = selection.ask.clone();
    let merge = merge_of_records(selection, keep, mark, params, settings);
    Plan::Fan(Fan::new(ask, Merge::Records(merge)))
}

fn merge_of_records(
    selection: Selection,
    keep: Keep,
    mark: Mark,
    params: &Params<'_>,
    settings: &Settings,
) -> RecordMerge {
    let Selection {
        order,
        window,
        strip,
        ..
    } = selection;
    let total = if params.is_true("include_total") {
        Total::Added
    } else {
        Total::Unasked
    };
    let mark = match settings.source {
        Some(_) => mark,
        None => Mark::Nothing,
    };
    // Facts that pdbmux adds have their places in its own order only.
    let text_order = match mark {
        Mark::Nothing | Mark::Key if settings.backends.len() == 1 => TextOrder::Backend,
        _ => TextOrder::Bytes,
    };
    let provenance = Provenance {
        name: settings.source.clone(),
        mark,
    };
    RecordMerge {
        keep,
        order,
        text_order,
        window,
        strip,
        provenance,
        total,
    }
}

fn facts_keep(settings: &Settings) -> Keep {
    match settings.strategy {
        // With one backend there is no choice to make.
        Strategy::Freshness if settings.backends.len() > 1 => Keep::Freshest,
        Strategy::Freshness | Strategy::Static => Keep::First,
        Strategy::Exact => Keep::Owned,
    }
}
