//! `order_by`: what a client may send, and how PostgreSQL sorts by it.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use crate::compare;
use crate::fault::Fault;
use crate::field::Field;
use crate::schema::{Column, Entity, Kind, Use};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) field: Field,
    pub(crate) direction: Direction,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Ascending,
    Descending,
}

/// Reads the parameter's text: a JSON array of maps. An empty text, `null`, `[]` and `{}` ask for no
/// order.
pub(crate) fn parse(entity: Entity, text: &str) -> Result<Vec<Order>, Fault> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    // Whatever follows the first value is ignored, as PuppetDB does.
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let Some(Ok(value)) = values.next() else {
        return Err(illegal(text, "expected a JSON array of maps."));
    };
    let items = match value {
        Value::Null => return Ok(Vec::new()),
        Value::Object(object) if object.is_empty() => return Ok(Vec::new()),
        Value::Array(items) => items,
        _ => return Err(illegal(text, "expected an array of maps.")),
    };
    let orders = items.iter().map(|item| match item {
        Value::Object(item) => order(entity, text, item),
        _ => Err(illegal(text, "expected an array of maps.")),
    });
    orders.collect()
}

fn order(entity: Entity, text: &str, item: &Map<String, Value>) -> Result<Order, Fault> {
    let known = |key: &&String| !matches!(key.as_str(), "field" | "order");
    if let Some(key) = item.keys().find(known) {
        return Err(illegal(text, &format!("unknown key '{key}'.")));
    }
    let Some(name) = item.get("field") else {
        return Err(illegal(text, "missing required key field."));
    };
    let Value::String(name) = name else {
        return Err(Fault::Broken(
            "An unexpected error occurred while processing the request".to_owned(),
        ));
    };
    let direction = match item.get("order") {
        None | Some(Value::Null) => Direction::Ascending,
        Some(Value::String(word)) if word.eq_ignore_ascii_case("asc") => Direction::Ascending,
        Some(Value::String(word)) if word.eq_ignore_ascii_case("desc") => Direction::Descending,
        Some(_) => return Err(illegal(text, "'order' must be either 'asc' or 'desc'")),
    };
    let field = orderable(entity, name)?;
    Ok(Order { field, direction })
}

/// The column to sort by; never a dotted path.
pub(crate) fn orderable(entity: Entity, name: &str) -> Result<Field, Fault> {
    let queryable = |column: &&'static Column| column.is_queryable();
    let Some(column) = entity.column(name).filter(queryable) else {
        let columns = entity.columns().iter().filter(queryable);
        let names: Vec<_> = columns.map(|it| format!("'{}'", it.name)).collect();
        return Err(Fault::Refused(format!(
            "Unrecognized column '{name}' specified in :order_by; Supported columns are {}",
            names.join(", ")
        )));
    };
    match column.kind {
        Kind::Tag => {
            let text = "ERROR: column \"tag\" does not exist";
            Err(Fault::Broken(text.to_owned()))
        }
        Kind::Opaque => Err(Fault::unsupported(format!("order_by on {name}"))),
        _ if column.role == Use::QueryOnly => {
            Err(Fault::unsupported(format!("order_by on {name}")))
        }
        _ => Ok(Field::plain(column)),
    }
}

/// How two records compare under all orders; ties keep the order they came in.
pub(crate) fn compare(orders: &[Order], a: &Value, b: &Value) -> Ordering {
    let each = orders.iter().map(|order| {
        let ascending = match (order.field.value(a), order.field.value(b)) {
            (Some(a), Some(b)) => compare::json(a, b),
            // NULL stands behind everything, so it comes first when the order is turned round.
            (a, b) => a.is_none().cmp(&b.is_none()),
        };
        match order.direction {
            Direction::Ascending => ascending,
            Direction::Descending => ascending.reverse(),
        }
    });
    each.fold(Ordering::Equal, Ordering::then)
}

fn illegal(text: &str, why: &str) -> Fault {
    Fault::Refused(format!("Illegal value '{text}' for :order_by; {why}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_puppetdb_takes_as_no_ordering_is_none() {
        for text in ["", "null", "[]", "{}"] {
            assert_eq!(parse(Entity::Nodes, text), Ok(Vec::new()), "{text}");
        }
    }

    #[test]
    fn bad_orders_are_refused_in_puppetdbs_words() {
        for (text, part) in [
            ("certname", "expected a JSON array of maps."),
            ("[", "expected a JSON array of maps."),
            ("\"certname\"", "expected an array of maps."),
            ("[\"certname\"]", "expected an array of maps."),
            ("{\"field\":\"certname\"}", "expected an array of maps."),
            ("[{\"field\":\"certname\",\"x\":1}]", "unknown key 'x'."),
            ("[{\"order\":\"asc\"}]", "missing required key field."),
            (
                "[{\"field\":\"certname\",\"order\":\"up\"}]",
                "must be either 'asc' or 'desc'",
            ),
            ("[{\"field\":\"nope\"}]", "Unrecognized column 'nope'"),
            ("[{\"field\":\"count\"}]", "Unrecognized column 'count'"),
        ] {
            let Err(Fault::Refused(message)) = parse(Entity::Nodes, text) else {
                panic!("{text} is accepted");
            };
            assert!(message.contains(part), "{text}: {message}");
        }
        let number = parse(Entity::Nodes, "[{\"field\":1}]");
        assert!(matches!(number, Err(Fault::Broken(_))));
    }

    #[test]
    fn garbage_behind_the_array_is_ignored() {
        for text in [
            "[{\"field\":\"certname\"}] [1]",
            "[{\"field\":\"certname\"}]]",
        ] {
            assert_eq!(parse(Entity::Nodes, text).map(|orders| orders.len()), Ok(1));
        }
    }

    #[test]
    fn null_sorts_last_ascending_and_first_descending() {
        let rows = [
            json!({"certname": "a", "report_timestamp": null}),
            json!({
            "certname": "b", "report_timestamp": "2026-11-13T00:00:00.000Z"}),
        ];
        for (direction, expected) in [("ASC", Ordering::Greater), ("desc", Ordering::Less)] {
            let text = format!("[{{\"field\":\"report_timestamp\",\"order\":\"{direction}\"}}]");
            let orders = parse(Entity::Nodes, &text).unwrap();
            assert_eq!(compare(&orders, &rows[0], &rows[1]), expected);
        }
    }
}
