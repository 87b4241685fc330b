//! Rows as the text of an answer.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::compare::stored_order;
use crate::decimal::Decimal;

/// One value of a row, by where PuppetDB takes its text from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    /// Written by PuppetDB itself.
    Json(Value),
    /// Passed on as PostgreSQL spells it, with its blanks.
    Stored(Value),
    /// A `numeric` with its own scale.
    Decimal(Decimal),
}

/// The columns of one row, in the order in which they are written.
pub(crate) type Row = Vec<(String, Cell)>;

/// What `pretty` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Compact,
    Pretty,
}

/// `[{"a":1},...]`, or its pretty form.
pub(crate) fn rows(rows: &[Row], style: Style) -> String {
    let mut out = String::new();
    let each = rows
        .iter()
        .map(|it| move |out: &mut String| row(out, it, style));
    list(&mut out, each, spacing(style));
    out
}

/// One record, which PuppetDB always writes in the pretty form.
pub(crate) fn record(record: &Row) -> String {
    let mut out = String::new();
    row(&mut out, record, Style::Pretty);
    out
}

/// A plain JSON value in one of the two styles.
pub(crate) fn value(value: &Value, style: Style) -> String {
    let mut out = String::new();
    write(&mut out, value, spacing(style), 0);
    out
}

/// A value as `jsonb` casts it to text.
pub(crate) fn stored_text(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value, Spacing::Stored, 0);
    out
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spacing {
    None,
    Pretty,
    Stored,
}

fn spacing(style: Style) -> Spacing {
    match style {
        Style::Compact => Spacing::None,
        Style::Pretty => Spacing::Pretty,
    }
}

fn row(out: &mut String, row: &Row, style: Style) {
    let members = row.iter().map(|(name, cell)| {
        (name, move |out: &mut String| match cell {
            Cell::Json(value) => write(out, value, spacing(style), 1),
            Cell::Stored(value) => write(out, value, Spacing::Stored, 0),
            Cell::Decimal(number) => {
                let _ = write!(out, "{number}");
            }
        })
    });
    object(out, members, spacing(style), 0);
}

fn write(out: &mut String, value: &Value, spacing: Spacing, depth: usize) {
    match value {
        Value::Array(items) => {
            let each = items
                .iter()
                .map(|item| move |out: &mut String| write(out, item, spacing, depth));
            list(out, each, spacing);
        }
        Value::Object(members) => write_object(out, members, spacing, depth),
        scalar => {
            let _ = write!(out, "{scalar}");
        }
    }
}

fn write_object(out: &mut String, members: &Map<String, Value>, spacing: Spacing, depth: usize) {
    let members = stored_order(members).into_iter().map(|(key, value)| {
        (key, move |out: &mut String| {
            write(out, value, spacing, depth + 1);
        })
    });
    object(out, members, spacing, depth);
}

fn list<W: FnOnce(&mut String)>(
    out: &mut String,
    items: impl ExactSizeIterator<Item = W>,
    spacing: Spacing,
) {
    let (open, comma, close) = match spacing {
        Spacing::None => ("[", ",", "]"),
        Spacing::Stored => ("[", ", ", "]"),
        Spacing::Pretty if items.len() == 0 => ("[ ", "", "]"),
        Spacing::Pretty => ("[ ", ", ", " ]"),
    };
    out.push_str(open);
    for (at, item) in items.enumerate() {
        out.push_str(if at == 0 { "" } else { comma });
        item(out);
    }
    out.push_str(close);
}

fn object<'k, W: FnOnce(&mut String)>(
    out: &mut String,
    members: impl ExactSizeIterator<Item = (&'k String, W)>,
    spacing: Spacing,
    depth: usize,
) {
    if spacing == Spacing::Pretty && members.len() == 0 {
        out.push_str("{ }");
        return;
    }
    let line = format!("\n{}", "  ".repeat(depth + 1));
    let (before, comma, colon) = match spacing {
        Spacing::None => ("", ",", ":"),
        Spacing::Stored => ("", ", ", ": "),
        Spacing::Pretty => (line.as_str(), ",", " : "),
    };
    out.push('{');
    for (at, (key, value)) in members.enumerate() {
        out.push_str(if at == 0 { "" } else { comma });
        let _ = write!(out, "{before}{}{colon}", Value::from(key.as_str()));
        value(out);
    }
    if spacing == Spacing::Pretty {
        let _ = write!(out, "\n{}", "  ".repeat(depth));
    }
    out.push('}');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sample() -> Row {
        vec![
            ("b".to_owned(), Cell::Json(json!([1, {"k": true}]))),
            (
                "a".to_owned(),
                Cell::Stored(json!({"bb": null, "c": "\u{e9}", "a": []})),
            ),
        ]
    }

    #[test]
    fn streamed_rows_are_compact_and_stored_json_keeps_its_blanks() {
        assert_eq!(
            rows(&[sample(), vec![]], Style::Compact),
            r#"[{"b":[1,{"k":true}],"a":{"a": [], "c": "é", "bb": null}},{}]"#
        );
        assert_eq!(rows(&[], Style::Compact), "[]");
    }

    #[test]
    fn pretty_rows_look_as_puppetdb_prints_them() {
        let one = vec![("a".to_owned(), Cell::Json(json!(1)))];
        assert_eq!(
            rows(std::slice::from_ref(&one), Style::Pretty),
            "[ {\n  \"a\" : 1\n} ]"
        );
        assert_eq!(rows(&[], Style::Pretty), "[ ]");
        assert_eq!(
            record(&sample()),
            "{\n  \"b\" : [ 1, {\n    \"k\" : true\n  } ],\n  \
             \"a\" : {\"a\": [], \"c\": \"é\", \"bb\": null}\n}"
        );
    }
}
