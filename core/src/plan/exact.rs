//! Plans of `merge: exact`: the answer of one PuppetDB that holds for every node what its owner
//! holds. Each backend is asked for its own nodes alone, so whatever the answers are made of, rows,
//! counts or pages, is disjoint and adds up.

pub(super) mod newest;
pub(super) mod sets;
pub(super) mod subjects;

use crate::Refusal;
use crate::json::quote;
use crate::merge::aggregates::AggregateMerge;
use crate::merge::fold::{FoldPlan, Repeats};
use crate::merge::records::{Keep, Total};
use crate::merge::{Absence, Fan, Merge};
use crate::params::Params;
use crate::provenance::Mark;
use crate::query::{Ast, Column, Extract, Query};
use crate::route::{Columns, Route, Told};
use crate::settings::Settings;

use super::records::{Selection, aggregates};
use super::unlisted::{self, Apart, Rows, Unlisted};
use super::{
    Ask, Plan, Scope, Turns, Window, merge_of_records, owner_first, record_merge, source_facts,
};

/// An entity whose records belong to nodes.
pub(super) fn owned(
    route: &Route<'_>,
    params: &Params<'_>,
    settings: &Settings,
) -> Result<Plan, Refusal> {
    let query = Query::read(params.get("query"))?;
    let source = settings.source.as_deref();
    if let Query::Ast(ast) = &query
        && let (Some(source), Some(extract)) = (source, ast.extract())
        && names(extract, source)
    {
        return by_source(route, params, settings, ast, source);
    }
    let told = route.row.told;
    if told == Told::ByNamedFact && source.is_some() && route.segment(0).as_deref() == source {
        return source_facts(route, params, &query, settings);
    }
    let scope = scope(route, &query);
    if let Query::Ast(ast) = &query
        && let Some((ask, merge)) = aggregates(route, params, ast, repeats(route))?
    {
        let tally = unlisted::counts_nodes(route, ast).then(|| merge.clone());
        let plan = below(ask.of(scope), Merge::Aggregates(merge));
        let apart = Apart::of(route, params, ast, (&["certname"], repeats(route)))?;
        let instead = apart.map(Apart::sifted);
        let mut plan = otherwise(plan, instead, unlisted::rows(route, &query));
        if let (Plan::Fan(fan), Some(merge)) = (&mut plan, tally) {
            let unlisted = fan.unlisted.take();
            fan.unlisted = unlisted.map(|unlisted| Box::new(unlisted.counting(merge)));
        }
        return Ok(plan);
    }
    let gated = query.projects() || query.is_text();
    let mark = match told {
        Told::ByKey if !gated => Mark::Key,
        Told::ByFact if !gated && !query.constrains_name() => Mark::Fact,
        Told::ByKey | Told::ByFact | Told::ByNamedFact | Told::Nowhere => Mark::Nothing,
    };
    listed((route, params, &query), scope, (mark, None), settings)
}

/// Records of nodes, those of its own asked of each backend. `strip` was asked for beside the
/// client's own columns.
fn listed(
    (route, params, query): (&Route<'_>, &Params<'_>, &Query),
    scope: Scope,
    (mark, strip): (Mark, Option<String>),
    settings: &Settings,
) -> Result<Plan, Refusal> {
    let selection = |needed: &[&str]| {
        let mut selection = Selection::new(route, params, query, needed)?;
        selection.strip.extend(strip.clone());
        Ok::<_, Refusal>(selection)
    };
    let telling = selection(&["certname"])?;
    let ask = telling.ask.clone();
    let merge = merge_of_records(telling, Keep::OfOwner, mark, params, settings);
    let instead = Some(unlisted::records(ask, merge));
    let selection = selection(&[])?;
    let is_all = *query == Query::Absent && selection.window == Window::default();
    let plan = of_owned(selection, scope, mark, params, settings);
    let mut plan = otherwise(plan, instead, unlisted::rows(route, query));
    if let Plan::Fan(fan) = &mut plan {
        fan.lists_nodes = is_all && unlisted::is_of_nodes(route);
    }
    Ok(plan)
}

/// The plan with what is done instead where it would take long lists. History is told apart by more
/// than the nodes.
pub(super) fn otherwise(plan: Plan, instead: Option<(Ask, Merge)>, rows: Rows) -> Plan {
    match plan {
        Plan::Fan(fan) if fan.ask.scope() == Scope::Owned => Plan::Fan(Fan {
            unlisted: instead.map(|(ask, merge)| Unlisted::new(ask, merge, rows)),
            ..fan
        }),
        other => other,
    }
}

/// Which of its records a backend is asked for.
fn scope(route: &Route<'_>, query: &Query) -> Scope {
    match route.row.entity {
        // The latest report of a node is one that its owner has.
        "reports" | "events" | "event-counts" | "aggregate-event-counts"
            if query.requires(r#"["=","latest_report?",true]"#) =>
        {
            Scope::Owned
        }
        "reports" => Scope::Reports,
        "events" | "event-counts" | "aggregate-event-counts" => Scope::Events,
        _ => Scope::Owned,
    }
}

/// The same questions, put to each backend for the history that counts.
pub(super) fn history(plan: Fan, route: &Route<'_>, params: &Params<'_>) -> Result<Plan, Refusal> {
    let scope = scope(route, &Query::read(params.get("query"))?);
    let further = plan.further.into_iter();
    Ok(Plan::Fan(Fan {
        ask: plan.ask.of(scope),
        further: further.map(|ask| ask.of(scope)).collect(),
        ..plan
    }))
}

/// The edges below a catalog. PuppetDB looks whether there is the catalog and then answers with the
/// edges of all (trap T51, seen on 7.12.1 and 8.4.1).
pub(super) fn edges_of_catalog(
    route: &Route<'_>,
    params: &Params<'_>,
    settings: &Settings,
) -> Result<Plan, Refusal> {
    let edges = Route::find("/pdb/query/v4/edges")?;
    let catalog = route.path.strip_suffix("/edges");
    if let (Some(edges), Some(catalog)) = (edges, catalog)
        && let Plan::Fan(fan) = super::plan_as_it_came(&edges, params, settings)?
    {
        let resource = Ask::own(&format!("{catalog}/resources"), &[("limit", "1")]);
        return Ok(Plan::Parent(resource, owner_first(route, settings), fan));
    }
    let ask = Ask::as_it_came(route.path, params);
    Ok(Plan::turns(ask, owner_first(route, settings)))
}

/// What hangs below a report below an environment or a producer. PuppetDB 8 has a fault there (400,
/// seen on 8.4.1), so it is asked for both apart.
pub(super) fn of_report_below(
    route: &Route<'_>,
    params: &Params<'_>,
    settings: &Settings,
) -> Result<Plan, Refusal> {
    let as_it_came = || Plan::turns(Ask::as_it_came(route.path, params), Turns::Configured);
    let Some((parent, child)) = route.path.split_once("/reports/") else {
        return Ok(as_it_came());
    };
    let path = format!("/pdb/query/v4/reports/{child}");
    let Some(child) = Route::find(&path)? else {
        return Ok(as_it_came());
    };
    let mut raw = params.forward(&[]);
    if child.row.entity == "events" {
        let environment = quote(&route.segment(0).unwrap_or_default());
        let clause = format!("[\"=\",\"environment\",{environment}]");
        if let Some(query) = Query::read(params.get("query"))?.and(&clause) {
            raw = params.forward(&[("query", Some(query))]);
        }
    }
    let raw: Vec<_> = raw.into_iter().map(|(_, raw)| raw).collect();
    let raw = raw.join("&");
    match super::plan_as_it_came(&child, &Params::read(&raw)?, settings)? {
        Plan::Fan(fan) => {
            let parent = Ask::own(parent, &[]);
            Ok(Plan::Parent(parent, Turns::Configured, fan))
        }
        _ => Ok(as_it_came()),
    }
}

/// The same where every backend knows the route, so that one that does not has failed.
pub(super) fn known_by_all(plan: Plan) -> Plan {
    match plan {
        Plan::Fan(fan) => Plan::Fan(Fan {
            absence: Absence::Fails,
            ..fan
        }),
        other => other,
    }
}

fn below(ask: Ask, merge: Merge) -> Plan {
    Plan::Fan(Fan {
        absence: Absence::IsEmpty,
        ..Fan::new(ask, merge)
    })
}

fn of_owned(
    selection: Selection,
    scope: Scope,
    mark: Mark,
    params: &Params<'_>,
    settings: &Settings,
) -> Plan {
    match record_merge(selection, Keep::Owned, mark, params, settings) {
        Plan::Fan(Fan { ask, merge, .. }) => below(ask.of(scope), merge),
        other => other,
    }
}

/// A query that projects or groups by the source fact, which is a constant in each backend: it is
/// not asked for, but put into the rows.
fn by_source(
    route: &Route<'_>,
    params: &Params<'_>,
    settings: &Settings,
    ast: &Ast,
    source: &str,
) -> Result<Plan, Refusal> {
    let Some(extract) = ast.extract() else {
        return owned(route, params, settings);
    };
    let mut asked = without(extract, source);
    let combines = FoldPlan::combines(&asked);
    let is_grouped = combines || !extract.group_by.is_empty();
    let mut strip = None;
    let mut hides_count = false;
    if is_grouped {
        // A backend that groups by nothing else sends a row all the same where it has no such
        // record. The count tells.
        let tells = match repeats(route) {
            Repeats::Refused | Repeats::Named => asked.columns.contains(&count_of_rows()),
            // There can be no other beside it.
            Repeats::Failing => asked.columns.iter().any(takes_count),
        };
        let is_alone = combines && asked.group_by.is_empty() && !tells;
        if is_alone || asked.columns.is_empty() {
            hides_count = true;
            asked.columns.push(count_of_rows());
        }
    } else if asked.columns.is_empty() {
        strip = Some("certname".to_owned());
        asked.columns.push(Column::Plain("certname".to_owned()));
    }
    let text = ast.with_extract(&asked);
    let raw: Vec<_> = params
        .forward(&[("query", Some(text))])
        .into_iter()
        .map(|(_, raw)| raw)
        .collect();
    let raw = raw.join("&");
    let params = Params::read(&raw)?;
    let query = Query::read(params.get("query"))?;
    let scope = scope(route, &query);
    if is_grouped {
        let Query::Ast(ast) = &query else {
            return owned(route, &params, settings);
        };
        let told = |mut merge: AggregateMerge| {
            merge.source = Some(source.to_owned());
            if hides_count {
                merge.fold = merge.fold.hiding_count();
            }
            if merge.total == Total::Added {
                merge.total = Total::Counted;
            }
            merge
        };
        let Some((ask, merge)) = aggregates(route, &params, ast, repeats(route))? else {
            return owned(route, &params, settings);
        };
        let plan = below(ask.of(scope), Merge::Aggregates(told(merge)));
        let apart = Apart::of(route, &params, ast, (&["certname"], repeats(route)))?;
        let apart = apart.map(|apart| Apart {
            merge: told(apart.merge),
            ..apart
        });
        let instead = apart.map(Apart::sifted);
        return Ok(otherwise(plan, instead, unlisted::rows(route, &query)));
    }
    listed(
        (route, &params, &query),
        scope,
        (Mark::Key, strip),
        settings,
    )
}

/// What becomes of repeated names in rows of `route`.
fn repeats(route: &Route<'_>) -> Repeats {
    match route.row.columns {
        Columns::Open => Repeats::Named,
        Columns::Closed => Repeats::Failing,
    }
}

fn count_of_rows() -> Column {
    Column::Function {
        name: "count".to_owned(),
        args: Vec::new(),
    }
}

/// Whether a count is asked for so that `column` can be answered.
fn takes_count(column: &Column) -> bool {
    matches!(column, Column::Function { name, .. } if name == "count" || name == "avg")
}

fn names(extract: &Extract, name: &str) -> bool {
    let is_it = |column: &Column| matches!(column, Column::Plain(plain) if plain == name);
    extract.columns.iter().chain(&extract.group_by).any(is_it)
}

fn without(extract: &Extract, name: &str) -> Extract {
    let others = |columns: &[Column]| {
        let columns = columns.iter();
        let others = columns.filter(|it| !matches!(it, Column::Plain(plain) if plain == name));
        others.cloned().collect()
    };
    Extract {
        columns: others(&extract.columns),
        group_by: others(&extract.group_by),
    }
}
