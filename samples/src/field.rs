//! A column, or a dotted path into one, as a query names it.

use serde_json::Value;

use crate::fault::Fault;
use crate::schema::{Column, Entity, Kind};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Field {
    /// The text of the query, which is also the name of the column in an answer.
    pub(crate) text: String,
    pub(crate) column: &'static Column,
    pub(crate) path: Vec<String>,
}

impl Field {
    /// The field for use in a filter or an `order_by`.
    pub(crate) fn queryable(entity: Entity, text: &str) -> Result<Self, Fault> {
        let field = Self::find(entity, text)?;
        field
            .filter(|field| field.column.is_queryable())
            .ok_or_else(|| unknown(entity, text))
    }

    /// The field for use in an `extract`.
    pub(crate) fn extractable(entity: Entity, text: &str) -> Result<Self, Fault> {
        let field = Self::find(entity, text)?;
        field
            .filter(|field| field.column.is_returned())
            .ok_or_else(|| {
                let returned = |column: &&Column| column.is_returned();
                let names = entity.columns().iter().filter(returned);
                Fault::Refused(format!(
                    "Can't extract unknown '{}' field '{text}'. Acceptable fields are {}",
                    entity.path_name(),
                    listed(names.map(|column| column.name).collect()),
                ))
            })
    }

    fn find(entity: Entity, text: &str) -> Result<Option<Self>, Fault> {
        if let Some(column) = entity.column(text) {
            return Ok(Some(Self::plain(column)));
        }
        let Some((head, rest)) = text.split_once('.') else {
            return Ok(None);
        };
        let Some(column) = entity.column(head).filter(|it| it.kind == Kind::Tree) else {
            return Ok(None);
        };
        let path = segments(rest).ok_or_else(|| Fault::unsupported(format!("the path {text}")))?;
        let text = text.to_owned();
        Ok(Some(Self { text, column, path }))
    }

    pub(crate) fn plain(column: &'static Column) -> Self {
        Self {
            text: column.name.to_owned(),
            column,
            path: Vec::new(),
        }
    }

    /// The record's value; `None` is SQL's NULL. The JSON `null` of a JSON column is a value.
    pub(crate) fn value<'r>(&self, record: &'r Value) -> Option<&'r Value> {
        let value = record.get(self.column.name)?;
        match self.column.kind {
            Kind::Json => Some(value),
            _ if value.is_null() => None,
            _ => self
                .path
                .iter()
                .try_fold(value, |value, key| value.get(key)),
        }
    }
}

/// The keys of a dotted path; a key that holds a dot is put in quotes. `None` for the forms that the
/// sample leaves out (an index, a `match()`).
fn segments(path: &str) -> Option<Vec<String>> {
    let (mut keys, mut rest) = (Vec::new(), path);
    loop {
        let (key, tail) = if let Some(quoted) = rest.strip_prefix('"') {
            quoted.split_once('"')?
        } else {
            rest.split_at(rest.find('.').unwrap_or(rest.len()))
        };
        if key.is_empty() || key.contains(['[', '(', '"']) {
            return None;
        }
        keys.push(key.to_owned());
        match tail.strip_prefix('.') {
            Some(tail) => rest = tail,
            None => return tail.is_empty().then_some(keys),
        }
    }
}

/// The refusal of a field that cannot be queried.
pub(crate) fn unknown(entity: Entity, text: &str) -> Fault {
    let queryable = entity.columns().iter().filter(|it| it.is_queryable());
    let mut names: Vec<_> = queryable.map(|column| column.name).collect();
    names.sort_unstable();
    Fault::Refused(format!(
        "'{text}' is not a queryable object for {}. Known queryable objects are {}",
        entity.path_name(),
        listed(names),
    ))
}

/// `'a'`, `'a' and 'b'`, `'a', 'b', and 'c'`.
fn listed(names: Vec<&str>) -> String {
    let mut names: Vec<_> = names.into_iter().map(|name| format!("'{name}'")).collect();
    match (names.pop(), names.len()) {
        (None, _) => String::new(),
        (Some(last), 0) => last,
        (Some(last), 1) => format!("{} and {last}", names[0]),
        (Some(last), _) => format!("{}, and {last}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn dotted_paths_lead_into_trees_only() {
        let record = json!({"facts": {"os": {"family": "Debian"}, "a.b": 1}, "certname": "x"});
        for (text, value) in [
            ("facts.os.family", Some(json!("Debian"))),
            ("facts.\"a.b\"", Some(json!(1))),
            ("facts.os.nope", None),
            ("trusted.x", None),
            ("certname", Some(json!("x"))),
        ] {
            let field = Field::queryable(Entity::Inventory, text).unwrap();
            assert_eq!(field.value(&record), value.as_ref(), "{text}");
        }
        for text in [
            "certname.x",
            "nope",
            "facts.a[1]",
            "facts.",
            "facts..x",
            "facts.\"a",
        ] {
            assert!(Field::queryable(Entity::Inventory, text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_unknown_field_is_named_with_the_known_ones() {
        assert_eq!(
            Field::queryable(Entity::Environments, "nope"),
            Err(Fault::Refused(
                "'nope' is not a queryable object for environments. \
                 Known queryable objects are 'name'"
                    .to_owned()
            ))
        );
        assert_eq!(
            Field::extractable(Entity::Facts, "nope"),
            Err(Fault::Refused(
                "Can't extract unknown 'facts' field 'nope'. Acceptable fields are \
                 'certname', 'environment', 'name', and 'value'"
                    .to_owned()
            ))
        );
    }
}
