//! What is asked for so that records can be merged, ordered and cut.

use crate::Refusal;
use crate::merge::aggregates::AggregateMerge;
use crate::merge::fold::{FoldPlan, Repeats};
use crate::merge::records::Total;
use crate::paging::{OrderBy, RecordOrder, Window, parse_limit, parse_offset};
use crate::params::Params;
use crate::query::{Ast, Column, Extract, Query};
use crate::route::{Route, Rule};

use super::Ask;

/// The paging parameters, all left out.
pub(super) const UNPAGED: [(&str, Option<String>); 4] = [
    ("limit", None),
    ("offset", None),
    ("order_by", None),
    ("include_total", None),
];

/// The part of the merged set that a client asks for, and its order.
pub(super) struct Paging {
    pub(super) window: Window,
    pub(super) order_by: OrderBy,
}

impl Paging {
    /// Reads the parameters; what is malformed is refused before anyone is asked (R150-R152).
    pub(super) fn of(params: &Params<'_>) -> Result<Self, Refusal> {
        let limit = params.get("limit").map(parse_limit).transpose()?;
        let offset = params
            .get("offset")
            .map(parse_offset)
            .transpose()?
            .unwrap_or(0);
        let order_by = params
            .get("order_by")
            .map(OrderBy::parse)
            .transpose()?
            .unwrap_or_default();
        Ok(Self {
            window: Window { offset, limit },
            order_by,
        })
    }

    /// With ties broken by `identity` if a part is asked for: pages must be cut from one total
    /// order, here and upstream (traps T15, T16).
    pub(super) fn by_identity(mut self, identity: &[&str]) -> Self {
        if self.is_windowed() {
            self.order_by = self.order_by.and_then_by(identity);
        }
        self
    }

    fn is_windowed(&self) -> bool {
        self.window != Window::default()
    }
}

/// The ask for a set of records and what is done with the set here.
pub(super) struct Selection {
    pub(super) ask: Ask,
    pub(super) order: RecordOrder,
    pub(super) window: Window,
    pub(super) strip: Vec<String>,
}

impl Selection {
    /// `needed` are the columns that the merge reads; where the client projects others only, they
    /// are asked for and taken out again (ruling 4).
    pub(super) fn new(
        route: &Route<'_>,
        params: &Params<'_>,
        query: &Query,
        needed: &[&str],
    ) -> Result<Self, Refusal> {
        let paging = Paging::of(params)?.by_identity(route.row.identity);
        let mut changes = vec![("limit", None), ("offset", None)];
        if paging.is_windowed() {
            changes.push(("order_by", Some(paging.order_by.to_json())));
        }
        let Paging { window, order_by } = paging;
        let mut strip = Vec::new();
        if let Query::Ast(ast) = query
            && let Some(extract) = ast.extract()
        {
            strip = missing(
                extract,
                needed,
                &RecordOrder::new(&order_by, route.row.entity),
            );
            if !strip.is_empty() {
                let mut wider = extract.clone();
                wider
                    .columns
                    .extend(strip.iter().cloned().map(Column::Plain));
                changes.push(("query", Some(ast.with_extract(&wider))));
            }
        }
        let ask = Ask::new(route.path, params, &changes).with_limit(window.upstream_limit());
        let order = RecordOrder::new(&order_by, route.row.entity);
        Ok(Self {
            ask,
            order,
            window,
            strip,
        })
    }
}

/// The columns that must be asked for beside those of `extract`: what the merge reads and what is
/// sorted by (trap T11), each once.
fn missing(extract: &Extract, needed: &[&str], order: &RecordOrder) -> Vec<String> {
    let mut missing: Vec<String> = Vec::new();
    let wanted = needed
        .iter()
        .copied()
        .chain(order.members().iter().map(String::as_str));
    for name in wanted {
        if !extract.projects(name) && !missing.iter().any(|known| known == name) {
            missing.push(name.to_owned());
        }
    }
    missing
}

/// The ask and the merge of a query whose rows are combined; `None` if it lists records.
pub(super) fn aggregates(
    route: &Route<'_>,
    params: &Params<'_>,
    ast: &Ast,
    repeats: Repeats,
) -> Result<Option<(Ask, AggregateMerge)>, Refusal> {
    let Some(extract) = ast.extract() else {
        return Ok(None);
    };
    let Some((fold, forwarded)) = FoldPlan::new(extract, repeats)? else {
        return Ok(None);
    };
    // Every backend would refuse it, each version in its own way.
    if route.row.rule == Rule::Events && params.is_true("distinct_resources") {
        return Err(Refusal::DistinctAggregate);
    }
    let paging = Paging::of(params)?;
    let mut changes = Vec::new();
    if forwarded != *extract {
        changes.push(("query", Some(ast.with_extract(&forwarded))));
    }
    let pushed = fold.forwards_paging();
    if pushed {
        changes.extend([("limit", None), ("offset", None)]);
    } else {
        ordered_within(extract, &paging.order_by)?;
        changes.extend(UNPAGED);
    }
    let total = match () {
        () if !params.is_true("include_total") => Total::Unasked,
        () if pushed && paging.is_windowed() => Total::Added,
        () => Total::Counted,
    };
    let limit = if pushed {
        paging.window.upstream_limit()
    } else {
        None
    };
    let ask = Ask::new(route.path, params, &changes).with_limit(limit);
    let order = RecordOrder::new(&paging.order_by, route.row.entity);
    Ok(Some((
        ask,
        AggregateMerge {
            fold,
            filter: None,
            order,
            window: paging.window,
            total,
            source: None,
        },
    )))
}

/// Refuses to order the rows of a grouped `extract` by a column that they do not have.
pub(super) fn ordered_within(extract: &Extract, order_by: &OrderBy) -> Result<(), Refusal> {
    let mut fields = order_by.fields.iter();
    match fields.find(|field| !has(extract, &field.field)) {
        None => Ok(()),
        Some(field) => Err(Refusal::OrderByAbsent {
            field: field.field.clone(),
        }),
    }
}

/// Whether the rows of a grouped `extract` have the column `name`, seen by the client or not.
fn has(extract: &Extract, name: &str) -> bool {
    extract
        .columns
        .iter()
        .chain(&extract.group_by)
        .any(|column| match column {
            Column::Plain(plain) => plain == name,
            Column::Function { name: function, .. } => function == name,
        })
}
