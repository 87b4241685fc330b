//! What one PuppetDB holds.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::schema::Entity;

/// The version and the records of one PuppetDB.
///
/// A record is a JSON object with the columns of its entity; a column that it lacks counts as null.
/// Records are answered in the order in which they were given.
#[derive(Debug, Clone, PartialEq)]
pub struct Estate {
    version: String,
    records: BTreeMap<Entity, Vec<Value>>,
}

impl Estate {
    /// An estate without records. `version` is what `/pdb/meta/v1/version` tells, such as `8.15.0`;
    /// it also decides where PuppetDB's behaviour has changed between versions.
    pub fn new(version: &str) -> Self {
        Self {
            version: version.to_owned(),
            records: BTreeMap::new(),
        }
    }

    /// The estate with these records added to one entity.
    #[must_use]
    pub fn with(mut self, entity: Entity, records: impl IntoIterator<Item = Value>) -> Self {
        self.records.entry(entity).or_default().extend(records);
        self
    }

    /// The version it tells.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The records of an entity. Fact names, unless given, are those of the facts; as in PuppetDB a
    /// fact that holds only an empty list or object has no name there.
    pub fn rows(&self, entity: Entity) -> Cow<'_, [Value]> {
        match self.records.get(&entity) {
            Some(records) => Cow::Borrowed(records),
            None if entity == Entity::FactNames => Cow::Owned(self.fact_names()),
            None => Cow::Borrowed(&[]),
        }
    }

    /// The certnames of nodes that are deactivated or expired.
    pub(crate) fn inactive(&self) -> impl Iterator<Item = &Value> {
        let nodes = self.records.get(&Entity::Nodes).into_iter().flatten();
        let set = |node: &Value, key| node.get(key).is_some_and(|value| !value.is_null());
        nodes
            .filter(move |node| set(node, "deactivated") || set(node, "expired"))
            .filter_map(|node| node.get("certname"))
    }

    /// Whether its version is this one or later.
    pub(crate) fn is_at_least(&self, major: u32, minor: u32) -> bool {
        let mut parts = self.version.split(['.', '-']).map(str::parse);
        let mut next = || parts.next().and_then(Result::ok).unwrap_or(0);
        (next(), next()) >= (major, minor)
    }

    fn fact_names(&self) -> Vec<Value> {
        let facts = self.rows(Entity::Facts);
        let listed = facts.iter().filter(|fact| match fact.get("value") {
            Some(Value::Array(items)) => !items.is_empty(),
            Some(Value::Object(members)) => !members.is_empty(),
            _ => true,
        });
        let names: BTreeSet<_> = listed
            .filter_map(|fact| fact.get("name")?.as_str())
            .collect();
        names
            .into_iter()
            .map(|name| json!({"name": name}))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number() {
        for (version, expected) in [
            ("8.15.0", true),
            ("8.6.0", true),
            ("9.0.0-beta1", true),
            ("8.5.9", false),
            ("7.12.1", false),
        ] {
            assert_eq!(
                Estate::new(version).is_at_least(8, 6),
                expected,
                "{version}"
            );
        }
    }

    #[test]
    fn fact_names_are_those_of_the_facts_but_for_empty_values() {
        let facts = [
            ("os", json!({"a": 1})),
            ("none", json!({})),
            ("kernel", json!("Linux")),
        ];
        let facts = facts.map(|(name, value)| json!({"name": name, "value": value}));
        let estate = Estate::new("8.15.0").with(Entity::Facts, facts);
        let names = [json!({"name": "kernel"}), json!({"name": "os"})];
        assert_eq!(*estate.rows(Entity::FactNames), names);
    }
}
