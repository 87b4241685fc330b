//! The root route under `merge: exact`. A query of the form `["from", entity, ...]` takes the plan
//! of that entity's own route; PQL is first translated by a backend.

use crate::Refusal;
use crate::merge::Merge;
use crate::params::Params;
use crate::provenance::{Mark, Provenance};
use crate::query::{Ast, From, Query};
use crate::route::Route;
use crate::settings::Settings;

use super::{Ask, Doubt, Plan, Turns, Uncertain};

/// The parameters that PuppetDB takes here. Any other is for a backend to refuse: the entity's own
/// route might take it.
const TAKEN: [&str; 13] = [
    "ast_only",
    "explain",
    "include_facts_expiration",
    "include_package_inventory",
    "include_total",
    "limit",
    "offset",
    "optimize_drop_unused_joins",
    "order_by",
    "origin",
    "pretty",
    "query",
    "timeout",
];

/// Plans a request to the root route.
pub(super) fn plan(
    route: &Route<'_>,
    params: &Params<'_>,
    settings: &Settings,
) -> Result<Plan, Refusal> {
    if params.is_true("ast_only") {
        // A translation, which any backend makes alike.
        let ask = Ask::as_it_came(route.path, params);
        return Ok(Plan::turns(ask, Turns::Configured));
    }
    match params.get("query") {
        Some(text) if is_taken(params) && !is_ast(text) => Ok(Plan::Translate(Ask::own(
            route.path,
            &[("query", text), ("ast_only", "true")],
        ))),
        Some(text) => from_ast(route, params, text, settings),
        None => Ok(as_it_came(route, params, settings)),
    }
}

/// Plans a request of which the query is the AST `text`, as it came or as it was translated.
pub(super) fn from_ast(
    route: &Route<'_>,
    params: &Params<'_>,
    text: &str,
    settings: &Settings,
) -> Result<Plan, Refusal> {
    let Query::Ast(ast) = Query::read(Some(text))? else {
        return Ok(as_it_came(route, params, settings));
    };
    let from = ast.from().filter(|_| is_taken(params));
    let Some(from) = from else {
        return Ok(as_it_came(route, params, settings));
    };
    let Some(inactive) = Inactive::of(&from.entity, &ast) else {
        return Ok(as_it_came(route, params, settings));
    };
    let from = From {
        query: inactive.query(from.query)?,
        ..from
    };
    Ok(match of_entity(&from, params, settings)? {
        Some(plan) => plan,
        None => as_it_came(route, params, settings),
    })
}

/// The plan of the entity's own route; `None` if there is no such route.
pub(super) fn of_entity(
    from: &From,
    params: &Params<'_>,
    settings: &Settings,
) -> Result<Option<Plan>, Refusal> {
    let path = format!("/pdb/query/v4/{}", from.entity.replace('_', "-"));
    let Some(entity) = Route::find(&path)? else {
        return Ok(None);
    };
    let raw = parameters(params, from.query.clone(), &from.paging);
    let params = Params::read(&raw)?;
    let plan = super::doubted(&entity, &params, settings)?;
    Ok(Some(unmarked(plan, &params)))
}

/// The request as it came, to each backend in turn: what it means is theirs to say, and most often it
/// is refused by all of them.
pub(super) fn as_it_came(route: &Route<'_>, params: &Params<'_>, settings: &Settings) -> Plan {
    let doubts = match settings.backends.len() {
        ..2 => Vec::new(),
        _ => vec![Doubt::OneBackend],
    };
    let uncertain = Uncertain {
        doubts,
        ..Uncertain::default()
    };
    Plan::Turns(
        Ask::as_it_came(route.path, params),
        Turns::Configured,
        uncertain,
    )
}

fn is_taken(params: &Params<'_>) -> bool {
    params.pairs().all(|(name, _)| TAKEN.contains(&name))
}

/// Whether PuppetDB reads `text` as AST; what else there is it reads as PQL.
fn is_ast(text: &str) -> bool {
    let blank = [' ', '\t', '\n', '\x0b', '\x0c', '\r'];
    text.trim_start_matches(blank).starts_with('[')
}

/// What the root route does about inactive nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inactive {
    /// What the entity's own route does: it hides them, or the query has a say on them.
    AsTheRoute,
    /// It hides them, which the entity's own route does not.
    Hidden,
}

impl Inactive {
    /// `None` where the entity is unknown, or has no column that the clause could be about.
    ///
    /// The root route hides the records of inactive nodes unless the query names their state. It
    /// leaves alone three entities without a certname, by these very spellings; what else has none is
    /// refused.
    fn of(entity: &str, ast: &Ast) -> Option<Self> {
        match entity {
            "nodes"
            | "facts"
            | "fact_contents"
            | "fact-contents"
            | "factsets"
            | "inventory"
            | "resources"
            | "edges"
            | "package_inventory"
            | "package-inventory"
            | "catalog_inputs"
            | "catalog-inputs"
            | "catalog_input_contents"
            | "catalog-input-contents"
            | "fact_paths"
            | "environments"
            | "packages" => Some(Self::AsTheRoute),
            "reports" | "events" | "catalogs" | "fact_names" | "fact-names" | "producers"
            | "fact-paths"
                if ast.names_node_state() =>
            {
                Some(Self::AsTheRoute)
            }
            "reports" | "events" | "catalogs" => Some(Self::Hidden),
            _ => None,
        }
    }

    /// The query that the entity's own route answers alike.
    fn query(self, written: Option<String>) -> Result<Option<String>, Refusal> {
        match self {
            Self::AsTheRoute => Ok(written),
            Self::Hidden => {
                let query = Query::read(written.as_deref())?;
                Ok(query.and(r#"["=","node_state","active"]"#))
            }
        }
    }
}

/// The parameters of the entity's own route. What the client gave beside the query wins over the
/// clauses within it (trap T25), where it says anything.
fn parameters(
    params: &Params<'_>,
    query: Option<String>,
    paging: &[(&'static str, String)],
) -> String {
    let mut changes = vec![("query", query), ("ast_only", None)];
    for (name, value) in paging {
        let is_said = params.pairs().any(|(known, text)| {
            known == *name && !matches!((known, text.trim_ascii()), ("order_by", "" | "null"))
        });
        if !is_said {
            changes.push((*name, Some(value.clone())));
        }
    }
    let pairs = params.forward(&changes).into_iter().map(|(_, raw)| raw);
    pairs.collect::<Vec<_>>().join("&")
}

/// The plan without what pdbmux adds and takes away unasked: clients of this route compute with what
/// a PuppetDB sends.
fn unmarked(mut plan: Plan, params: &Params<'_>) -> Plan {
    let is_projected = Query::read(params.get("query")).is_ok_and(|query| query.projects());
    if let Plan::Fan(fan) = &mut plan
        && let Merge::Records(records) = &mut fan.merge
        && !(is_projected && records.provenance.mark == Mark::Key)
    {
        records.provenance = Provenance::default();
    }
    plan
}
