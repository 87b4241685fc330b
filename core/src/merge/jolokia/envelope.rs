//! What Jolokia wraps a value in.

use super::number::parse;
use super::request::ReadRequest;
use super::rule::Place;
use super::tree::{Tree, merge as merge_trees};
use super::valid;
use crate::json::{Kind, Members, Span, kind, unquote};
use crate::merge::damage::Damage;

/// One backend's answer.
#[derive(Debug)]
pub(super) enum Answer<'b> {
    Value(Envelope<'b>),
    /// A `status` that is not 2xx, inside an HTTP 200 (R256).
    Error,
}

/// An answer that has a value.
#[derive(Debug)]
pub(super) struct Envelope<'b> {
    text: &'b str,
    value: Tree<'b>,
    value_at: Span,
    timestamp_at: Option<Span>,
    request_at: Option<Span>,
}

impl<'b> Answer<'b> {
    /// Reads a body. Of a repeated member the last counts.
    pub(super) fn read(body: &'b [u8]) -> Result<Self, Damage> {
        let text = valid(body)?;
        if kind(text.as_bytes()) != Kind::Object {
            return Err(Damage::NotAnEnvelope);
        }
        let [mut status, mut value, mut timestamp_at, mut request_at] = [const { None }; 4];
        for member in Members::new(text.as_bytes()) {
            let (key, at) = member?;
            match unquote(text[key].as_bytes()).as_deref() {
                Some("status") => status = Some(at),
                Some("value") => value = Some(at),
                Some("timestamp") => timestamp_at = Some(at),
                Some("request") => request_at = Some(at),
                _ => {}
            }
        }
        let status: u16 = status
            .and_then(|at| text[at].parse().ok())
            .ok_or(Damage::NotAnEnvelope)?;
        if !(200..300).contains(&status) {
            return Ok(Self::Error);
        }
        let value_at = value.ok_or(Damage::NotAnEnvelope)?;
        Ok(Self::Value(Envelope {
            text,
            value: Tree::read(&text[value_at.clone()])?,
            value_at,
            timestamp_at,
            request_at,
        }))
    }
}

/// What the first answer says was asked, if it does.
pub(super) fn request(answers: &[Envelope<'_>]) -> ReadRequest {
    let first = answers.first();
    first
        .and_then(|first| Some(&first.text[first.request_at.clone()?]))
        .map_or_else(ReadRequest::default, ReadRequest::from_json)
}

/// The first envelope with the merged value and the newest timestamp (R248).
pub(super) fn merge(answers: &[Envelope<'_>], place: Place<'_>) -> String {
    let Some(first) = answers.first() else {
        return String::new();
    };
    let values: Vec<_> = answers.iter().map(|answer| &answer.value).collect();
    let mut value = String::new();
    merge_trees(&values, place, &mut value);
    let mut changes = vec![(first.value_at.clone(), value.as_str())];
    if let (Some(at), Some(newest)) = (first.timestamp_at.clone(), newest(answers)) {
        changes.push((at, newest));
    }
    changes.sort_by_key(|(at, _)| at.start);
    let mut out = String::new();
    let mut copied = 0;
    for (at, new) in changes {
        out.push_str(&first.text[copied..at.start]);
        out.push_str(new);
        copied = at.end;
    }
    out.push_str(&first.text[copied..]);
    out
}

fn newest<'b>(answers: &[Envelope<'b>]) -> Option<&'b str> {
    answers
        .iter()
        .filter_map(|answer| {
            let raw = &answer.text[answer.timestamp_at.clone()?];
            Some((parse(raw)?, raw))
        })
        .max_by(|(a, _), (b, _)| a.cmp(b))
        .map(|(_, raw)| raw)
}
