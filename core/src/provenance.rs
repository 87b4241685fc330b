//! The synthetic fact and node key that name the backend whose data won.

use crate::answer::{Pieces, Source};
use crate::json::{Span, quote};
use crate::round::BackendId;

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
    /// Nothing but these fact records, of one backend only if it is given (R057, R061).
    FactsOnly(Option<BackendId>),
}

/// The synthetic fact record of one node, keys as in PuppetDB's own (R049, R050).
///
/// `certname` and `environment` are JSON text, as the node's own facts spell them.
pub(crate) fn fact_record(
    record: &mut Vec<u8>,
    certname: &[u8],
    environment: Option<&[u8]>,
    name: &str,
    backend: &str,
) {
    record.extend_from_slice(b"{\"certname\":");
    record.extend_from_slice(certname);
    record.extend_from_slice(b",\"environment\":");
    record.extend_from_slice(environment.unwrap_or(b"null"));
    record.extend_from_slice(b",\"name\":");
    record.extend_from_slice(quote(name).as_bytes());
    record.extend_from_slice(b",\"value\":");
    record.extend_from_slice(quote(backend).as_bytes());
    record.push(b'}');
}

/// The key that names a node record's winner (R033).
#[derive(Debug)]
pub(crate) struct NodeKey {
    /// The backend's name as JSON.
    value: Vec<u8>,
    /// The whole member and the closing brace of its record.
    member: Vec<u8>,
}

impl NodeKey {
    pub(crate) fn new(name: &str, backend: &str) -> Self {
        let value = quote(backend);
        let member = format!("{}:{value}}}", quote(name)).into_bytes();
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
        if !body[span.start + 1..brace].trim_ascii().is_empty() {
            pieces.push_made(b",");
        }
        pieces.push_made(&self.member);
    }
}
