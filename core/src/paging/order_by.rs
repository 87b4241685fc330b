//! The `order_by` parameter.

use serde_json::{Map, Value, json};

use super::PagingError;

/// The fields that a result is sorted by, the leading one first. Empty means no ordering, which is
/// not the same as none given: on `/fact-names` it also switches the default order off (T20).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OrderBy {
    /// What to sort by. No field comes twice.
    pub fields: Vec<OrderField>,
}

/// One field of an [`OrderBy`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderField {
    /// Name of the column, as the client wrote it.
    pub field: String,
    /// Which end comes first.
    pub direction: Direction,
}

/// Which end of a column's values comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// `asc`: the least value first.
    #[default]
    Asc,
    /// `desc`: the greatest value first.
    Desc,
}

impl Direction {
    fn name(self) -> &'static str {
        match self {
            Direction::Asc => "asc",
            Direction::Desc => "desc",
        }
    }
}

impl OrderBy {
    /// Reads the parameter's text as PuppetDB does (R143, R152, ruling 7): an array of objects with
    /// `field` and, optionally, `order`.
    ///
    /// Empty text, `null`, `false` and empty values of any kind are no ordering. Text behind the
    /// first JSON value is ignored. A repeated field is decided by its first item, so later ones
    /// are dropped. Whether a column exists is for the backends to say.
    pub fn parse(text: &str) -> Result<Self, PagingError> {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        let items = match values.next() {
            None | Some(Ok(Value::Null | Value::Bool(false))) => Vec::new(),
            Some(Ok(Value::Array(items))) => items,
            Some(Ok(Value::Object(object))) if object.is_empty() => Vec::new(),
            Some(Ok(Value::String(string))) if string.is_empty() => Vec::new(),
            Some(Ok(other)) => return Err(PagingError::NotAnArray(other.to_string())),
            Some(Err(error)) => {
                return Err(PagingError::NotJson {
                    text: text.to_owned(),
                    problem: error.to_string(),
                });
            }
        };
        let mut order_by = Self::default();
        for item in items {
            order_by.push(parse_item(item)?);
        }
        Ok(order_by)
    }

    /// The parameter's text, to be sent to a backend.
    pub fn to_json(&self) -> String {
        let items = self.fields.iter();
        let items = items.map(|f| json!({"field": f.field, "order": f.direction.name()}));
        Value::Array(items.collect()).to_string()
    }

    /// This order with ties broken by `columns`, ascending, where it does not name them already.
    ///
    /// With the columns that identify a record it is a total order, so that every backend cuts the
    /// same records off (T15, T16) and pages neither overlap nor leave gaps (R153).
    #[must_use]
    pub fn and_then_by(mut self, columns: &[&str]) -> Self {
        for &column in columns {
            self.push(OrderField {
                field: column.to_owned(),
                direction: Direction::Asc,
            });
        }
        self
    }

    fn push(&mut self, field: OrderField) {
        if self
            .fields
            .iter()
            .all(|earlier| earlier.field != field.field)
        {
            self.fields.push(field);
        }
    }
}

fn parse_item(item: Value) -> Result<OrderField, PagingError> {
    let Value::Object(object) = item else {
        return Err(PagingError::NotAnObject(item.to_string()));
    };
    if let Some(key) = object
        .keys()
        .find(|key| !matches!(key.as_str(), "field" | "order"))
    {
        return Err(PagingError::UnknownKey {
            key: key.clone(),
            item: Value::Object(object).to_string(),
        });
    }
    let field = match object.get("field") {
        Some(Value::String(field)) => field.clone(),
        Some(other) => return Err(PagingError::FieldNotText(other.to_string())),
        None => return Err(PagingError::MissingField(Value::Object(object).to_string())),
    };
    let direction = parse_direction(&object)?;
    Ok(OrderField { field, direction })
}

fn parse_direction(object: &Map<String, Value>) -> Result<Direction, PagingError> {
    match object.get("order") {
        None | Some(Value::Null) => Ok(Direction::default()),
        Some(Value::String(order)) if order.eq_ignore_ascii_case("asc") => Ok(Direction::Asc),
        Some(Value::String(order)) if order.eq_ignore_ascii_case("desc") => Ok(Direction::Desc),
        Some(other) => Err(PagingError::Direction(other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An order as `certname asc, name desc`.
    fn spelled(order_by: &OrderBy) -> String {
        let fields = order_by.fields.iter();
        let fields = fields.map(|f| format!("{} {}", f.field, f.direction.name()));
        fields.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn r143_each_field_has_its_direction() {
        let cases = [
            (r#"[{"field":"certname"}]"#, "certname asc"),
            (r#"[{"field":"certname","order":null}]"#, "certname asc"),
            (r#"[{"field":"certname","order":"asc"}]"#, "certname asc"),
            (r#"[{"order":"DeSC", "field":"certname"}]"#, "certname desc"),
            (
                " [ {\"field\" : \"a\"} ,\n{\"field\":\"b\",\"order\":\"DESC\"}\t] ",
                "a asc, b desc",
            ),
            (r#"[{"\u0066ield":"a\u002eb"}]"#, "a.b asc"),
            // The last of a repeated key counts, the first of a repeated field.
            (r#"[{"field":"a","field":"b"}]"#, "b asc"),
            (
                r#"[{"field":"a","order":"desc"},{"field":"b"},{"field":"a"}]"#,
                "a desc, b asc",
            ),
            // Text behind the array is ignored, as upstream.
            (r#"[{"field":"certname"}]]"#, "certname asc"),
            (r#"[{"field":"certname"}] [1]"#, "certname asc"),
            (r#"[{"field":"certname"}]x"#, "certname asc"),
        ];
        for (text, expected) in cases {
            let order_by = OrderBy::parse(text).map(|order_by| spelled(&order_by));
            assert_eq!(order_by.as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn ruling_7_what_puppetdb_takes_as_no_ordering_is_none() {
        for text in [
            "", "  ", "null", "[]", "{}", " [ ] ", r#""""#, "false", "[]]", "{} x",
        ] {
            assert_eq!(OrderBy::parse(text), Ok(OrderBy::default()), "{text:?}");
        }
    }

    #[test]
    fn r152_a_malformed_order_by_is_refused_by_name() {
        let array =
            |it| format!(r#"order_by takes an array such as [{{"field": "certname"}}], not {it}"#);
        let object = |it| {
            format!(
                r#"each item of order_by is an object such as {{"field": "certname"}}, not {it}"#
            )
        };
        let direction = |it| format!("'order' in order_by takes 'asc' or 'desc', not {it}");
        let field = |it| format!("'field' in order_by takes a column's name, not {it}");
        let cases = [
            (r#""certname""#, array(r#""certname""#)),
            (r#"{"field":"a"}"#, array(r#"{"field":"a"}"#)),
            ("true", array("true")),
            ("0", array("0")),
            (r#"["certname"]"#, object(r#""certname""#)),
            ("[[]]", object("[]")),
            ("[null]", object("null")),
            (r#"[{"field":"a"},1]"#, object("1")),
            (
                r#"[{"field":"a","x":1}]"#,
                r#"order_by knows the keys 'field' and 'order', but {"field":"a","x":1} has 'x'"#
                    .into(),
            ),
            (
                r#"[{"Field":"a"}]"#,
                r#"order_by knows the keys 'field' and 'order', but {"Field":"a"} has 'Field'"#
                    .into(),
            ),
            ("[{}]", "{} in order_by has no 'field'".into()),
            (
                r#"[{"order":"asc"}]"#,
                r#"{"order":"asc"} in order_by has no 'field'"#.into(),
            ),
            (r#"[{"field":1}]"#, field("1")),
            (r#"[{"field":null}]"#, field("null")),
            (r#"[{"field":["a"]}]"#, field(r#"["a"]"#)),
            (r#"[{"field":"a","order":"up"}]"#, direction(r#""up""#)),
            (r#"[{"field":"a","order":""}]"#, direction(r#""""#)),
            (r#"[{"field":"a","order":" asc"}]"#, direction(r#"" asc""#)),
            (r#"[{"field":"a","order":1}]"#, direction("1")),
            (r#"[{"field":"a","order":false}]"#, direction("false")),
        ];
        for (text, expected) in cases {
            let error = OrderBy::parse(text).unwrap_err();
            assert_eq!(error.to_string(), expected, "{text}");
        }
        for text in [
            "certname",
            r#"[{"field":"a"}"#,
            "[{\"field\" \"a\"}]",
            "[,]",
            "nullx",
            "[",
        ] {
            let error = OrderBy::parse(text).unwrap_err().to_string();
            let start = format!("order_by '{text}' cannot be read as JSON: ");
            assert!(error.starts_with(&start), "{error}");
        }
        let deep = "[".repeat(100_000);
        assert!(OrderBy::parse(&deep).is_err());
    }

    #[test]
    fn t16_identity_columns_break_ties_unless_named_already() {
        let order_by = OrderBy::parse(r#"[{"field":"name","order":"desc"}]"#).unwrap();
        let order_by = order_by.and_then_by(&["certname", "name"]);
        assert_eq!(
            order_by.to_json(),
            r#"[{"field":"name","order":"desc"},{"field":"certname","order":"asc"}]"#
        );
        assert_eq!(OrderBy::parse(&order_by.to_json()), Ok(order_by));
    }

    #[test]
    fn t15_no_ordering_becomes_the_identity_order() {
        let order_by = OrderBy::default().and_then_by(&["certname"]);
        assert_eq!(
            order_by.to_json(),
            r#"[{"field":"certname","order":"asc"}]"#
        );
        assert_eq!(OrderBy::default().to_json(), "[]");
    }
}
