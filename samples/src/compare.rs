//! How PostgreSQL compares `jsonb` values.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

/// The `jsonb` order: null, strings, numbers, booleans, arrays, objects; an empty array that is the
/// whole value stands before everything. Strings compare by bytes.
pub(crate) fn json(a: &Value, b: &Value) -> Ordering {
    let empty = |value: &Value| !matches!(value, Value::Array(items) if items.is_empty());
    empty(a).cmp(&empty(b)).then_with(|| inner(a, b))
}

fn inner(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Number(a), Value::Number(b)) => numbers(a, b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => a.len().cmp(&b.len()).then_with(|| {
            let unequal = a.iter().zip(b).map(|(a, b)| inner(a, b));
            first_difference(unequal)
        }),
        (Value::Object(a), Value::Object(b)) => a.len().cmp(&b.len()).then_with(|| objects(a, b)),
        (a, b) => rank(a).cmp(&rank(b)),
    }
}

fn objects(a: &Map<String, Value>, b: &Map<String, Value>) -> Ordering {
    let pairs = stored_order(a).into_iter().zip(stored_order(b));
    first_difference(pairs.map(|((ka, va), (kb, vb))| {
        let keys = ka.len().cmp(&kb.len()).then_with(|| ka.cmp(kb));
        keys.then_with(|| inner(va, vb))
    }))
}

/// The members in the order in which `jsonb` keeps them: shorter keys first, then by bytes.
pub(crate) fn stored_order(object: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut members: Vec<_> = object.iter().collect();
    members.sort_by_key(|(key, _)| (key.len(), *key));
    members
}

/// Two numbers by value, whatever their spelling: `1` equals `1.0`.
pub(crate) fn numbers(a: &Number, b: &Number) -> Ordering {
    if let (Some(a), Some(b)) = (a.as_i128(), b.as_i128()) {
        return a.cmp(&b);
    }
    // Adding zero turns -0.0 into 0.0, which total_cmp would tell apart.
    let float = |number: &Number| number.as_f64().unwrap_or_default() + 0.0;
    float(a).total_cmp(&float(b))
}

fn first_difference(mut results: impl Iterator<Item = Ordering>) -> Ordering {
    results
        .find(|result| result.is_ne())
        .unwrap_or(Ordering::Equal)
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::String(_) => 1,
        Value::Number(_) => 2,
        Value::Bool(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_stand_in_the_order_seen_on_real_servers() {
        let ordered = [
            json!([]),
            json!(null),
            json!("42"),
            json!("Linux"),
            json!("alpha"),
            json!(0),
            json!(1),
            json!(9_007_199_254_740_993_i64),
            json!(false),
            json!(true),
            json!([1, 2]),
            json!([[], 1]),
            json!({}),
            json!({"b": 1, "aa": 1}),
            json!({"b": 1, "aa": 2}),
        ];
        for (i, a) in ordered.iter().enumerate() {
            for (k, b) in ordered.iter().enumerate() {
                // Arrays of one length compare element by element: 1 < [] inside.
                let expected = if (i, k) == (10, 11) || (i, k) == (11, 10) {
                    continue;
                } else {
                    i.cmp(&k)
                };
                assert_eq!(json(a, b), expected, "{a} and {b}");
            }
        }
        assert_eq!(json(&json!(1), &json!(1.0)), Ordering::Equal);
        assert_eq!(json(&json!(0), &json!(-0.0)), Ordering::Equal);
    }
}
