//! One query on one entity: filter, project or group, sort, cut.

use serde_json::Value;

use crate::compare;
use crate::estate::Estate;
use crate::extract::{Grouping, Projection};
use crate::fault::Fault;
use crate::field::Field;
use crate::filter::{self, Filter};
use crate::order::{self, Order};
use crate::render::Row;
use crate::schema::Entity;

/// What to select, beside the client's query.
pub(crate) struct Selection<'a> {
    pub(crate) entity: Entity,
    /// Conditions that the path puts on the rows.
    pub(crate) narrowed: Vec<Filter>,
    pub(crate) inactive: Inactive,
    pub(crate) query: Option<&'a Value>,
    pub(crate) orders: Vec<Order>,
    pub(crate) window: Window,
}

/// What becomes of nodes that are deactivated or expired, if the query does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inactive {
    Hidden,
    Shown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Window {
    pub(crate) limit: Option<usize>,
    pub(crate) offset: usize,
}

/// The rows inside the window, and how many there are without it.
#[derive(Debug, PartialEq)]
pub(crate) struct Selected {
    pub(crate) rows: Vec<Row>,
    pub(crate) total: usize,
}

/// A query taken apart: its criteria, still as AST, and its columns.
struct Query<'a> {
    criteria: Option<&'a Value>,
    projection: Projection,
}

pub(crate) fn select(estate: &Estate, selection: Selection<'_>) -> Result<Selected, Fault> {
    let entity = selection.entity;
    let query = parse(entity, selection.query)?;
    let mut filters = selection.narrowed;
    let restricted = !filters.is_empty() || selection.inactive == Inactive::Hidden;
    if let Some(criteria) = query.criteria {
        filters.push(Filter::compile(estate, entity, criteria)?);
    }
    let mentions_state = query.criteria.is_some_and(names_node_state);
    if selection.inactive == Inactive::Hidden && !mentions_state {
        filters.push(filter::active(estate, entity)?);
    }
    let mentions_type = query.criteria.is_some_and(|it| holds(it, &is_type));
    let agent_reports_only = entity == Entity::Reports && !mentions_type;
    // Before 8.6 PuppetDB looked for a filter before it had added its own.
    let casts = query.criteria.is_some() || (restricted && estate.is_at_least(8, 6));
    let numeric = entity == Entity::Facts && query.projection.wants_numeric_facts() && casts;

    let records = estate.rows(entity);
    let mut kept: Vec<&Value> = records
        .iter()
        .filter(|record| filters.iter().all(|filter| filter.keeps(record)))
        .filter(|record| !agent_reports_only || record.get("type") != Some(&"plan".into()))
        .filter(|record| !numeric || record.get("value").is_some_and(Value::is_number))
        .collect();

    if query.projection.grouping == Grouping::None {
        kept.sort_by(|a, b| order::compare(&selection.orders, a, b));
        let total = kept.len();
        let rows = selection.window.cut(kept);
        let rows = rows.into_iter().map(|record| query.projection.row(record));
        return Ok(Selected {
            rows: rows.collect(),
            total,
        });
    }
    let groups = group(&query.projection.grouping, kept, &selection.orders)?;
    let total = groups.len();
    let rows = selection.window.cut(groups).into_iter();
    let rows = rows.map(|members| query.projection.group_row(&members));
    Ok(Selected {
        rows: rows.collect::<Result<_, _>>()?,
        total,
    })
}

impl Window {
    /// The items inside the window.
    pub(crate) fn cut<T>(self, all: Vec<T>) -> Vec<T> {
        let limit = self.limit.unwrap_or(usize::MAX);
        all.into_iter().skip(self.offset).take(limit).collect()
    }
}

/// The rows of a subquery under `in`: `["from", entity, ["extract", columns, query]]` or
/// `["extract", columns, ["select_entity", query]]`, each row as wide as `width`.
pub(crate) fn subquery(
    estate: &Estate,
    clause: &[Value],
    width: usize,
) -> Result<Vec<Vec<Option<Value>>>, Fault> {
    let (entity, columns, criteria) = match clause {
        [
            Value::String(from),
            Value::String(entity),
            Value::Array(inner),
        ] if from == "from" => match inner.as_slice() {
            [Value::String(word), columns] if word == "extract" => (entity, columns, None),
            [Value::String(word), columns, criteria] if word == "extract" => {
                (entity, columns, Some(criteria))
            }
            _ => return Err(unsupported(clause)),
        },
        [Value::String(word), columns, Value::Array(inner)] if word == "extract" => {
            match inner.as_slice() {
                [Value::String(select)] => (select, columns, None),
                [Value::String(select), criteria] => (select, columns, Some(criteria)),
                _ => return Err(unsupported(clause)),
            }
        }
        _ => return Err(unsupported(clause)),
    };
    let name = entity.strip_prefix("select_").unwrap_or(entity);
    let entity = Entity::named(name).ok_or_else(|| unsupported(clause))?;
    let columns = columns
        .as_array()
        .map_or(std::slice::from_ref(columns), Vec::as_slice);
    let fields = columns.iter().map(|column| match column {
        Value::String(column) => Field::extractable(entity, column),
        _ => Err(unsupported(clause)),
    });
    let fields = fields.collect::<Result<Vec<_>, _>>()?;
    if fields.len() != width {
        return Err(Fault::Broken(
            "ERROR: subquery has a different number of columns".to_owned(),
        ));
    }
    let filter = match criteria.filter(|criteria| !criteria.is_null()) {
        Some(criteria) => Filter::compile(estate, entity, criteria)?,
        None => Filter::Constant(Some(true)),
    };
    let records = estate.rows(entity);
    let kept = records.iter().filter(|record| filter.keeps(record));
    let row = |record: &Value| {
        let cells = fields.iter().map(|field| field.value(record).cloned());
        cells.collect()
    };
    Ok(kept.map(row).collect())
}

fn unsupported(clause: &[Value]) -> Fault {
    Fault::unsupported(format!("the subquery {}", Value::from(clause)))
}

fn parse(entity: Entity, query: Option<&Value>) -> Result<Query<'_>, Fault> {
    let whole = |criteria| Query {
        criteria,
        projection: Projection::all(entity),
    };
    let Some(query) = query.filter(|query| !query.is_null()) else {
        return Ok(whole(None));
    };
    let Value::Array(clause) = query else {
        return Err(Fault::Broken(format!(
            "Output of convert-query-params does not match schema: {query}"
        )));
    };
    if clause.first().is_none_or(|word| word != "extract") {
        return Ok(whole(Some(query)));
    }
    let group_of = |item: &'_ Value| item.as_array().is_some_and(|it| is_group_by(it));
    let (columns, criteria, group_by) = match &clause[1..] {
        [columns] => (columns, None, None),
        [columns, group] if group_of(group) => (columns, None, group.as_array()),
        [columns, criteria] => (columns, Some(criteria), None),
        [columns, criteria, group] if group_of(group) && !group_of(criteria) => {
            (columns, Some(criteria), group.as_array())
        }
        _ => {
            return Err(Fault::Refused(format!(
                "{query} is not a valid expression for \"extract\""
            )));
        }
    };
    let group_by = group_by.map(|group| &group[1..]);
    if entity == Entity::FactNames {
        return Err(Fault::unsupported("extract on fact-names"));
    }
    Ok(Query {
        criteria: criteria.filter(|criteria| !criteria.is_null()),
        projection: Projection::parse(entity, columns, group_by)?,
    })
}

fn is_group_by(clause: &[Value]) -> bool {
    clause.first().is_some_and(|word| word == "group_by")
}

/// The records of each group, sorted as asked, else in order of appearance.
fn group<'r>(
    grouping: &Grouping,
    records: Vec<&'r Value>,
    orders: &[Order],
) -> Result<Vec<Vec<&'r Value>>, Fault> {
    let fields = match grouping {
        Grouping::By(fields) => fields.as_slice(),
        Grouping::Whole | Grouping::None => &[],
    };
    if let Some(order) = orders.iter().find(|order| !fields.contains(&order.field)) {
        return Err(Fault::Broken(format!(
            "ERROR: column \"{}\" must appear in the GROUP BY clause",
            order.field.text
        )));
    }
    if *grouping == Grouping::Whole {
        return Ok(vec![records]);
    }
    let mut groups: Vec<Vec<&Value>> = Vec::new();
    for record in records {
        let same = |group: &&mut Vec<&Value>| {
            let mut each = fields.iter();
            group
                .first()
                .is_some_and(|first| each.all(|it| equal(it.value(first), it.value(record))))
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(record),
            None => groups.push(vec![record]),
        }
    }
    groups.sort_by(|a, b| match (a.first(), b.first()) {
        (Some(a), Some(b)) => order::compare(orders, a, b),
        _ => std::cmp::Ordering::Equal,
    });
    Ok(groups)
}

fn equal(a: Option<&Value>, b: Option<&Value>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => compare::json(a, b).is_eq(),
        (a, b) => a.is_none() && b.is_none(),
    }
}

/// Whether the query says itself which node states it wants.
fn names_node_state(ast: &Value) -> bool {
    holds(ast, &|clause| match clause {
        [Value::String(equal), Value::String(field), _] => equal == "=" && field == "node_state",
        [Value::String(equal), Value::Array(field), _] => {
            equal == "=" && field.as_slice() == ["node", "active"]
        }
        _ => false,
    })
}

fn is_type(clause: &[Value]) -> bool {
    matches!(clause, [_, Value::String(field), ..] if field == "type")
}

/// Whether some clause of the tree satisfies `wanted`.
fn holds(ast: &Value, wanted: &dyn Fn(&[Value]) -> bool) -> bool {
    match ast {
        Value::Array(clause) => wanted(clause) || clause.iter().any(|it| holds(it, wanted)),
        _ => false,
    }
}
