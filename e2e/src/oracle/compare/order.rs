//! Whether records stand in the order that was asked for, as far as they show it.

use std::cmp::Ordering;

use super::super::canon::Json;
use super::super::shape::{Direction, Shape};
use super::{Difference, What};

/// Each row's values of the ordered columns, up to a receipt time; `None` where a row shows none.
pub(super) fn keys(shape: &Shape, rows: &[Json]) -> Option<Vec<Vec<String>>> {
    let columns: Vec<&str> = shape
        .order
        .iter()
        .map(|key| key.column.as_str())
        .take_while(|column| !shape.receipts.contains(*column))
        .collect();
    if columns.is_empty() {
        return None;
    }
    rows.iter()
        .map(|row| {
            columns
                .iter()
                .map(|column| Some(comparable(value(row, column)?)))
                .collect()
        })
        .collect()
}

/// A column of a row: by its name, else along its dots; the row itself for a bare string.
fn value<'a>(row: &'a Json, column: &str) -> Option<&'a Json> {
    if column.is_empty() {
        return Some(row);
    }
    row.member(column)
        .or_else(|| column.split('.').try_fold(row, |at, name| at.member(name)))
}

/// Equal for what PostgreSQL holds equal: `1` and `1.0`.
fn comparable(value: &Json) -> String {
    match value {
        Json::Number(text) if text.len() < 16 => text
            .parse::<f64>()
            .map_or_else(|_| text.clone(), |number| number.to_string()),
        other => other.spell(),
    }
}

/// The order by a receipt time cannot be the union's, but must be an order.
pub(super) fn receipts_in_order(shape: &Shape, said: &[Json]) -> Option<Difference> {
    let key = shape
        .order
        .first()
        .filter(|key| shape.receipts.contains(&key.column))?;
    let times: Vec<Option<&str>> = said
        .iter()
        .map(|row| value(row, &key.column).map(|it| it.text()))
        .collect::<Option<_>>()?;
    // Null is the greatest.
    let rank = |time: Option<&str>| (time.is_none(), time.map(str::to_owned));
    let wrong = times
        .windows(2)
        .find(|pair| match rank(pair[0]).cmp(&rank(pair[1])) {
            Ordering::Equal => false,
            Ordering::Less => key.direction == Direction::Descending,
            Ordering::Greater => key.direction == Direction::Ascending,
        })?;
    Some(Difference {
        what: What::Order,
        lines: vec![format!("not ordered by {}: {wrong:?}", key.column)],
    })
}
