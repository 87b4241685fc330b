//! Records without what may differ between two PuppetDBs that hold the same.

use super::super::canon::Json;
use super::super::shape::Shape;

/// What stands where a PuppetDB stamped its own time.
const STAMPED: &str = "<receipt time>";

/// Lists whose elements are in no order: PostgreSQL gathers them as it comes upon them.
const UNORDERED: [&str; 4] = ["facts", "resources", "edges", "resource_events"];

/// A record without what may differ: receipt times, and the order of lists that have none.
pub(super) fn normal(shape: &Shape, row: &Json) -> Json {
    let Json::Map(fields) = row else {
        return row.clone();
    };
    let catalog = matches!(shape.entity.as_str(), "catalogs" | "resources");
    let fields = fields.iter().map(|(name, value)| {
        let value = match value {
            Json::Text(_) if shape.receipts.contains(name) => Json::Text(STAMPED.into()),
            Json::Map(inner)
                if UNORDERED.contains(&name.as_str()) && inner.contains_key("href") =>
            {
                let inner = inner.iter().map(|(name, value)| {
                    let value = match value {
                        Json::List(elements) if catalog => {
                            in_order(elements.iter().map(|one| normal(shape, one)).collect())
                        }
                        Json::List(elements) => in_order(elements.clone()),
                        other => other.clone(),
                    };
                    (name.clone(), value)
                });
                Json::Map(inner.collect())
            }
            Json::List(elements)
                if (catalog && name == "tags")
                    || name == "package_inventory"
                    || (name == "inputs" && shape.entity == "catalog-inputs") =>
            {
                in_order(elements.clone())
            }
            other => other.clone(),
        };
        (name.clone(), value)
    });
    Json::Map(fields.collect())
}

fn in_order(mut elements: Vec<Json>) -> Json {
    elements.sort();
    Json::List(elements)
}
