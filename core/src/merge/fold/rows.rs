//! One backend's aggregate rows, read as far as folding needs.

use std::borrow::Cow;

use super::FoldPlan;
use super::canonical::{Canonical, by_name};
use super::plan::Rule;
use crate::json::{Elements, Kind, Members, ScanError, ScanProblem, kind, spells, unquote};

/// The rows of one backend's body, in its order: the key of each and its text as it came.
#[derive(Debug)]
pub struct Rows<'b>(pub(super) Vec<(Key<'b>, &'b [u8])>);

/// What rows of one group have in common: their key columns sorted by name, nulls included (T39).
pub(super) type Key<'b> = Vec<(Cow<'b, str>, Canonical<'b>)>;

impl<'b> Rows<'b> {
    /// Reads `body`, which one backend answered to what `plan` forwards.
    ///
    /// # Errors
    /// The body is not one array of objects, or a column that must be added holds something that
    /// is neither a number nor null. Either way it is damaged and must be dropped whole
    /// (ruling 12): what else it says cannot be trusted.
    pub fn read(plan: &FoldPlan, body: &'b [u8]) -> Result<Self, ScanError> {
        Elements::new(body)
            .map(|row| {
                let row = row?;
                read_row(plan, &body[row.clone()]).map_err(|error| ScanError {
                    at: row.start + error.at,
                    ..error
                })
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// The rows that count something as a body of their own, each with one more member in front.
    pub(crate) fn with(&self, member: &str, plan: &FoldPlan) -> Vec<u8> {
        let counts = |row: &[u8]| {
            let mut members = Members::new(row).flatten();
            let count = plan
                .rows()
                .and_then(|rows| members.find(|(name, _)| spells(&row[name.clone()], rows)));
            count.is_none_or(|(_, count)| row[count] != *b"0")
        };
        let mut body = b"[".to_vec();
        for (_, row) in self.0.iter().filter(|(_, row)| counts(row)) {
            if body.len() > 1 {
                body.push(b',');
            }
            body.push(b'{');
            body.extend_from_slice(member.as_bytes());
            let rest = &row[1..];
            if !rest.trim_ascii_start().starts_with(b"}") {
                body.push(b',');
            }
            body.extend_from_slice(rest);
        }
        body.push(b']');
        body
    }
}

fn read_row<'b>(plan: &FoldPlan, text: &'b [u8]) -> Result<(Key<'b>, &'b [u8]), ScanError> {
    let mut key = Key::new();
    for member in Members::new(text) {
        let (name, value) = member?;
        let raw = &text[value.clone()];
        let name = unquote(&text[name.clone()]).ok_or_else(|| unexpected(text, name.start))?;
        match plan.rule(&name) {
            None => key.push((name, Canonical::new(raw))),
            Some(rule) => {
                if let Some(at) = misfit(raw, rule) {
                    return Err(unexpected(text, value.start + at));
                }
            }
        }
    }
    Ok((by_name(key), text))
}

/// One aggregate column of one row.
#[derive(Clone, Copy)]
pub(super) struct Cell<'b> {
    pub(super) rule: Rule,
    /// As it came.
    pub(super) value: &'b [u8],
}

/// The aggregate columns of a row that was read, by name.
pub(super) fn cells<'b>(plan: &FoldPlan, text: &'b [u8]) -> Vec<(Cow<'b, str>, Cell<'b>)> {
    // The row has been scanned once, so no error is left to meet here.
    let cells = Members::new(text)
        .flatten()
        .filter_map(|(name, value)| {
            let name = unquote(&text[name])?;
            let rule = plan.rule(&name)?;
            let value = &text[value];
            Some((name, Cell { rule, value }))
        })
        .collect();
    by_name(cells)
}

/// Where `raw` turns out not to be a value that `rule` works on. The scanner leaves the inside of
/// numbers unread; here they are about to be calculated with.
fn misfit(raw: &[u8], rule: Rule) -> Option<usize> {
    match (kind(raw), rule) {
        (Kind::Number, _) => serde_json::from_slice::<serde::de::IgnoredAny>(raw)
            .err()
            .map(|error| error.column().saturating_sub(1)),
        (Kind::Null, _) | (_, Rule::Min | Rule::Max) => None,
        (_, Rule::Add) => Some(0),
    }
}

fn unexpected(text: &[u8], at: usize) -> ScanError {
    let problem = text.get(at).map_or(ScanProblem::Truncated, |&byte| {
        ScanProblem::Unexpected(byte)
    });
    ScanError { at, problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(body: &str) -> Option<usize> {
        Rows::read(&FoldPlan::event_counts(), body.as_bytes())
            .err()
            .map(|error| error.at)
    }

    #[test]
    fn a_damaged_body_is_an_error_at_its_place() {
        for (body, expected) in [
            ("", 0),
            ("{}", 0),
            ("[1]", 1),
            (r#"[{"failures":1}"#, 15),
            (r#"[{"failures":1}] x"#, 17),
            (r#"[{"failures":"1"}]"#, 13),
            (r#"[{}, {"failures":true}]"#, 17),
            (r#"[{"failures":{}}]"#, 13),
            (r#"[{"failures":1-2}]"#, 14),
            (r#"[{"\ud800":1}]"#, 2),
        ] {
            assert_eq!(at(body), Some(expected), "{body}");
        }
    }

    #[test]
    fn nulls_and_numbers_of_any_spelling_are_read() {
        let numbers = r#"[{"a":null,"b":-1.50,"c":1.0E10,"d":0E-20,"e":12345678901234567890}]"#;
        for body in ["[]", " [ { } ] ", numbers] {
            assert_eq!(at(body), None, "{body}");
        }
    }
}
