//! The synthetic fact and node key that name the backend whose data won.

use crate::answer::{Pieces, Source};
use crate::json::{Span, quote};

/// What a plan does about the source fact.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Provenance {
    /// The configured name; `None` while injection is off (R082).
    pub name: Option<String>,
    /// What is added to this answer.
    pub mark: Mark,
}

/// What an answer carries of its winners' names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mark {
    /// Nothing.
    #[default]
    Nothing,
    /// A key on each node record (R033).
    Key,
    /// One more fact record for each certname (R049).
    Fact,
    /// Nothing but these fact records (R057).
    FactsOnly,
}

/// The synthetic fact of the nodes that one backend wins, keys as in PuppetDB's own (R049, R050).
#[derive(Debug)]
pub(crate) struct SourceFact {
    /// The configured name as JSON.
    name: Vec<u8>,
    /// The backend's name as JSON.
    value: Vec<u8>,
}

impl SourceFact {
    pub(crate) fn new(name: &str, backend: &str) -> Self {
        Self {
            name: quote(name).into_bytes(),
            value: quote(backend).into_bytes(),
        }
    }

    /// Appends the record of one node. `certname` and `environment` are JSON text, as the node's
    /// own facts spell them.
    pub(crate) fn add(&self, pieces: &mut Pieces, certname: &[u8], environment: &[u8]) {
        for part in [
            b"{\"certname\":",
            certname,
            b",\"environment\":",
            environment,
            b",\"name\":",
            &self.name,
            b",\"value\":",
            &self.value,
            b"}",
        ] {
            pieces.push_made(part);
        }
    }

    /// The value of a member of that record.
    pub(crate) fn member<'f>(
        &'f self,
        member: &str,
        certname: &'f [u8],
        environment: &'f [u8],
    ) -> Option<&'f [u8]> {
        match member {
            "certname" => Some(certname),
            "environment" => Some(environment),
            "name" => Some(&self.name),
            "value" => Some(&self.value),
            _ => None,
        }
    }
}

/// The key that names a node record's winner (R033).
#[derive(Debug)]
pub(crate) struct NodeKey {
    /// The backend's name as JSON.
    value: Vec<u8>,
    /// A comma, the whole member and the closing brace of its record.
    member: Vec<u8>,
}

impl NodeKey {
    pub(crate) fn new(name: &str, backend: &str) -> Self {
        let value = quote(backend);
        let member = format!(",{}:{value}}}", quote(name)).into_bytes();
        Self {
            value: value.into_bytes(),
            member,
        }
    }

    /// Appends the record at `span` of `body` with the key: before its closing brace, or in the
    /// place of `present`, the value of a member of that name, which a pdbmux behind this one put
    /// there.
    pub(crate) fn add(
        &self,
        pieces: &mut Pieces,
        source: Source,
        span: &Span,
        present: Option<Span>,
        body: &[u8],
    ) {
        if let Some(value) = present {
            pieces.push(source, span.start..value.start);
            pieces.push_made(&self.value);
            pieces.push(source, value.end..span.end);
            return;
        }
        let brace = span.end - 1;
        pieces.push(source, span.start..brace);
        let is_empty = body[span.start + 1..brace].trim_ascii().is_empty();
        pieces.push_made(&self.member[usize::from(is_empty)..]);
    }

    /// `record`, which has no member of that name, with the key.
    pub(crate) fn added_to(&self, mut record: Vec<u8>) -> Vec<u8> {
        record.pop();
        let is_empty = record.len() <= 1;
        record.extend_from_slice(&self.member[usize::from(is_empty)..]);
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `record` with the key of the backend `pdb"b`, `present` being the value to replace.
    fn keyed(record: &str, present: Option<&str>) -> String {
        let body = format!("[ {record} ]");
        let present = present.map(|value| {
            let start = body.find(value).unwrap();
            start..start + value.len()
        });
        let mut pieces = Pieces::default();
        let span = 2..body.len() - 2;
        let key = NodeKey::new("src", "pdb\"b");
        key.add(
            &mut pieces,
            Source::Reply(0),
            &span,
            present,
            body.as_bytes(),
        );
        String::from_utf8(pieces.assemble(&[body.as_bytes()])).unwrap()
    }

    #[test]
    fn r033_r034_a_node_record_gains_one_key_and_keeps_its_bytes() {
        for (record, present, expected) in [
            (r#"{"a": 1.0 }"#, None, r#"{"a": 1.0 ,"src":"pdb\"b"}"#),
            ("{}", None, r#"{"src":"pdb\"b"}"#),
            ("{ \n }", None, "{ \n \"src\":\"pdb\\\"b\"}"),
            // One that a pdbmux behind this one put there.
            (
                r#"{"src" : "other","a":1}"#,
                Some(r#""other""#),
                r#"{"src" : "pdb\"b","a":1}"#,
            ),
        ] {
            assert_eq!(keyed(record, present), expected);
        }
    }

    #[test]
    fn r049_r050_a_source_fact_has_the_four_keys_of_a_fact() {
        let fact = SourceFact::new("s\"rc", "pdb-b");
        for (environment, shown) in [("\"l\\/b\"", "\"l\\/b\""), ("null", "null")] {
            let mut pieces = Pieces::default();
            fact.add(&mut pieces, b"\"a\"", environment.as_bytes());
            let text = format!(
                r#"{{"certname":"a","environment":{shown},"name":"s\"rc","value":"pdb-b"}}"#
            );
            assert_eq!(pieces.assemble(&[]), text.as_bytes());
            assert_eq!(pieces.list.len(), 1);
            for (member, expected) in [
                ("certname", Some("\"a\"")),
                ("environment", Some(shown)),
                ("name", Some(r#""s\"rc""#)),
                ("value", Some("\"pdb-b\"")),
                ("other", None),
            ] {
                let value = fact.member(member, b"\"a\"", environment.as_bytes());
                assert_eq!(value, expected.map(str::as_bytes), "{member}");
            }
        }
    }
}
