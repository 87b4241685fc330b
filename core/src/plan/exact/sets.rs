//! Plans of the entities whose records belong to no node.

use crate::Refusal;
use crate::merge::fold::Repeats;
use crate::merge::records::{Keep, Total};
use crate::merge::sets::{SetMerge, Shape};
use crate::merge::{Fan, Merge};
use crate::params::Params;
use crate::plan::carrier::{self, Carrier};
use crate::plan::records::Selection;
use crate::plan::unlisted::Apart;
use crate::plan::{Ask, Scope, merge_of_records};
use crate::provenance::Mark;
use crate::query::{Ast, Query};
use crate::route::Route;
use crate::settings::Settings;

/// The paths of owned facts. A backend makes `path` of two columns, and groups by it only if the
/// other one is named too (seen on 7.12.1 and 8.4.1).
const LIVING_PATHS: &str = concat!(
    r#"["extract",["path"],["=","node_state","any"],"#,
    r#"["group_by","path","path_types"]]"#
);

/// What a backend is asked, what becomes of each record and what of the disjoint answers.
struct Question {
    ask: Ask,
    shape: Shape,
    then: Merge,
}

/// The union of a set's records, each of them once.
///
/// A backend evaluates the client's own query. Its answer is cut to what its share names, by the
/// backend itself where that can be put as a condition, and here where it cannot.
pub(in crate::plan) fn plan(
    route: &Route<'_>,
    params: &Params<'_>,
    settings: &Settings,
) -> Result<Fan, Refusal> {
    let query = Query::read(params.get("query"))?;
    let aggregated = match &query {
        Query::Ast(ast) => aggregates(route, params, ast)?,
        Query::Absent | Query::Text => None,
    };
    let Question { ask, shape, then } = match aggregated {
        Some(question) => question,
        None => records(route, params, &query, settings)?,
    };
    let carriers = carriers(route.row.entity);
    let scope = carriers.map_or(Scope::Everything, Scope::Listed);
    let (living, further): (&[_], _) = if carriers.is_some() {
        (&[], Vec::new())
    } else {
        let paths = Ask::own("/pdb/query/v4/fact-contents", &[("query", LIVING_PATHS)]);
        (&["path"], vec![paths.of(Scope::Mixed)])
    };
    let merge = Merge::Set(SetMerge {
        identity: route.row.identity,
        living,
        shape,
        then: Box::new(then),
    });
    Ok(Fan {
        further,
        ..Fan::new(ask.of(scope), merge)
    })
}

/// What names the records of `entity`, if that can be put as a condition on them.
fn carriers(entity: &str) -> Option<&'static [Carrier]> {
    match entity {
        "environments" => Some(carrier::ENVIRONMENTS),
        "producers" => Some(carrier::PRODUCERS),
        "packages" => Some(carrier::PACKAGES),
        _ => None,
    }
}

/// A query that lists records. Whole sets are asked for: no backend knows which of its records
/// another lists too.
fn records(
    route: &Route<'_>,
    params: &Params<'_>,
    query: &Query,
    settings: &Settings,
) -> Result<Question, Refusal> {
    let selection = Selection::new(route, params, query, route.row.identity)?;
    let ask = selection.ask.clone().with_limit(None);
    let mut merge = merge_of_records(selection, Keep::Owned, Mark::Nothing, params, settings);
    // No record here is a fact, whatever its name.
    merge.provenance.name = None;
    if merge.total == Total::Added {
        merge.total = Total::Counted;
    }
    Ok(Question {
        ask,
        shape: Shape::AsItCame {
            strip: Vec::new(),
            nothing: None,
        },
        then: Merge::Records(merge),
    })
}

/// A query that computes or groups; `None` if it lists records.
///
/// Each record is asked for by itself, so that one which several backends list can be told.
fn aggregates(
    route: &Route<'_>,
    params: &Params<'_>,
    ast: &Ast,
) -> Result<Option<Question>, Refusal> {
    let how = (route.row.identity, Repeats::Named);
    let apart = Apart::of(route, params, ast, how)?;
    Ok(apart.map(|apart| Question {
        ask: apart.ask,
        shape: Shape::AsItCame {
            strip: apart.strip,
            nothing: apart.nothing,
        },
        then: Merge::Aggregates(apart.merge),
    }))
}
