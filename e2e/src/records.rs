//! Records with their exact bytes, and the few fields tests ask for.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// One record of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Record<'a>(pub &'a str);

/// Splits an array into its elements' bytes.
pub fn records(body: &str) -> Result<Vec<Record<'_>>> {
    let raw: Vec<&RawValue> = serde_json::from_str(body)?;
    Ok(raw
        .into_iter()
        .map(|element| Record(element.get()))
        .collect())
}

impl<'a> Record<'a> {
    /// A field's value; null when the record lacks it.
    pub fn field(self, name: &str) -> Result<Value> {
        let fields: BTreeMap<String, Value> = serde_json::from_str(self.0)?;
        Ok(fields.get(name).cloned().unwrap_or_default())
    }

    /// A field that must be a string.
    pub fn text(self, name: &str) -> Result<String> {
        match self.field(name)? {
            Value::String(text) => Ok(text),
            other => Err(anyhow::anyhow!("{name} is {other} in {}", self.0)),
        }
    }

    /// Its certname.
    pub fn certname(self) -> Result<String> {
        #[derive(Deserialize)]
        struct Named {
            certname: String,
        }
        let named: Named =
            serde_json::from_str(self.0).with_context(|| format!("no certname in {}", self.0))?;
        Ok(named.certname)
    }

    /// Its keys.
    pub fn columns(self) -> Result<BTreeSet<String>> {
        let fields: BTreeMap<String, &'a RawValue> = serde_json::from_str(self.0)?;
        Ok(fields.into_keys().collect())
    }
}

/// Records by certname, each certname's in the order of the answer.
pub fn by_certname<'a>(records: &[Record<'a>]) -> Result<BTreeMap<String, Vec<Record<'a>>>> {
    let mut grouped: BTreeMap<String, Vec<Record<'a>>> = BTreeMap::new();
    for &record in records {
        grouped.entry(record.certname()?).or_default().push(record);
    }
    Ok(grouped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_keeps_spacing_and_number_spelling() {
        let body = "[{\"certname\":\"a\", \"value\": 1.0e2},\n{\"certname\":\"b\"}]";
        let read = records(body).unwrap();
        assert_eq!(read[0].0, "{\"certname\":\"a\", \"value\": 1.0e2}");
        assert_eq!(read[1].certname().unwrap(), "b");
    }
}
