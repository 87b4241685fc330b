//! The parts of one group become one row.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::canonical::Canonical;
use super::number::{self, NumberError};
use super::plan::{Made, Rule, Shown};
use super::rows::{Cell, cells};
use super::total::{Effort, Total};
use super::{FoldError, FoldPlan, Group, Row};
use crate::json::{Kind, Members, Span, kind, quote, unquote};

const NULL: &[u8] = b"null";

/// Values of columns that are folded, by name.
type Values<'b> = Vec<(Cow<'b, str>, Cow<'b, [u8]>)>;

/// Makes one row of a group.
///
/// A row that no other backend has a part in keeps its bytes (R112), but for columns that pdbmux
/// asked for on its own account.
pub(super) fn combine<'b>(
    plan: &FoldPlan,
    group: Group<'b>,
    effort: &mut Effort,
) -> Result<Row<'b>, FoldError> {
    let text = group.first;
    if group.others.is_empty() && !plan.rewrites() {
        return Ok(Row {
            text: Cow::Borrowed(text),
            hidden: Vec::new(),
        });
    }
    let mut columns: BTreeMap<Cow<'b, str>, Column<'b>> = BTreeMap::new();
    for part in std::iter::once(text).chain(group.others) {
        for (name, cell) in cells(plan, part) {
            let column = columns.entry(name.clone()).or_insert(Column::Nothing);
            column
                .take(cell, effort)
                .map_err(|error| FoldError::new(error, &name))?;
        }
    }
    let mut values = BTreeMap::new();
    for (name, column) in columns {
        let value = column
            .value()
            .map_err(|error| FoldError::new(error, &name))?;
        values.insert(name, value);
    }
    let Some(columns) = plan.shown() else {
        return Ok(render(plan, text, values.into_iter().collect()));
    };
    let mut shown = Values::new();
    for Shown { name, made } in columns {
        let value = match made {
            Made::Of(asked) => values.get(&**asked).cloned(),
            Made::Average { sum, count } => {
                let average = average(values.get(&**sum), values.get(&**count), effort);
                Some(average.map_err(|error| FoldError::new(error, name))?)
            }
        };
        shown.extend(value.map(|value| (Cow::Owned(name.clone()), value)));
    }
    Ok(render(plan, text, shown))
}

/// One aggregate column on its way through the parts.
enum Column<'b> {
    /// No part had a value: absent and null are neither zero nor an extreme (R113, R114).
    Nothing,
    /// A value that some backend sent, as it sent it.
    Sent(&'b [u8]),
    /// Two or more, added.
    Added(Total),
}

impl<'b> Column<'b> {
    fn take(&mut self, cell: Cell<'b>, effort: &mut Effort) -> Result<(), NumberError> {
        let Cell { rule, value } = cell;
        if kind(value) == Kind::Null {
            return Ok(());
        }
        *self = match (std::mem::replace(self, Self::Nothing), rule) {
            (Self::Nothing, _) => Self::Sent(value),
            (Self::Sent(sent), Rule::Add) => {
                let total = Total::parse(sent, effort)?;
                Self::Added(total.add(Total::parse(value, effort)?, effort)?)
            }
            (Self::Added(total), _) => {
                Self::Added(total.add(Total::parse(value, effort)?, effort)?)
            }
            (Self::Sent(sent), Rule::Min) => Self::Sent(nearer(Ordering::Less, sent, value)?),
            (Self::Sent(sent), Rule::Max) => Self::Sent(nearer(Ordering::Greater, sent, value)?),
        };
        Ok(())
    }

    fn value(self) -> Result<Cow<'b, [u8]>, NumberError> {
        Ok(match self {
            Self::Nothing => Cow::Borrowed(NULL),
            Self::Sent(value) => Cow::Borrowed(value),
            Self::Added(total) => {
                total.check()?;
                Cow::Owned(total.to_string().into_bytes())
            }
        })
    }
}

/// `challenger` if it lies beyond `holder` in the given direction, else `holder`: of equals the
/// first configured backend's spelling stays.
fn nearer<'b>(
    beyond: Ordering,
    holder: &'b [u8],
    challenger: &'b [u8],
) -> Result<&'b [u8], NumberError> {
    for value in [holder, challenger] {
        if kind(value) == Kind::Number {
            number::in_range(value)?;
        }
    }
    let replaces = Canonical::new(challenger).cmp(&Canonical::new(holder)) == beyond;
    Ok(if replaces { challenger } else { holder })
}

/// Total sum by total count (R119), or null over no rows (R121).
fn average<'b>(
    sum: Option<&Cow<'b, [u8]>>,
    count: Option<&Cow<'b, [u8]>>,
    effort: &mut Effort,
) -> Result<Cow<'b, [u8]>, NumberError> {
    let known = |value: &&Cow<'b, [u8]>| kind(value) != Kind::Null;
    let (Some(sum), Some(count)) = (sum.filter(known), count.filter(known)) else {
        return Ok(Cow::Borrowed(NULL));
    };
    let (sum, count) = (Total::parse(sum, effort)?, Total::parse(count, effort)?);
    Ok(match sum.divide(count, effort)? {
        Some(average) => Cow::Owned(average.to_string().into_bytes()),
        None => Cow::Borrowed(NULL),
    })
}

/// Writes the row `text` anew with `values` in place of its own. What surrounds the values stays
/// as it was, so a row that came pretty-printed leaves so. Values of columns that the row lacks
/// are appended (T40).
fn render<'b>(plan: &FoldPlan, text: &'b [u8], mut values: Values<'b>) -> Row<'b> {
    // The row has been scanned once, so no error is left to meet here.
    let members: Vec<(Span, Span)> = Members::new(text).flatten().collect();
    let spacing = Spacing::of(text, &members);
    let mut out = Object::new(text.len(), &spacing);
    let mut hidden = Vec::new();
    for (key, value) in &members {
        let (key, value) = (&text[key.clone()], &text[value.clone()]);
        let Some(name) = unquote(key) else { continue };
        if plan.rule(&name).is_none() {
            // Only the key can be of use to the caller: it may be ordered by.
            if plan.hides(&name) {
                hidden.push((name, value));
            } else {
                out.member(key, value);
            }
        } else if plan.shown().is_some() {
            // They stand together, in an order of their own.
            for (name, value) in values.drain(..) {
                out.member(quote(&name).as_bytes(), &value);
            }
        } else if let Some(at) = values.iter().position(|(known, _)| *known == name) {
            // A repeated member finds no value any more: the last one counted.
            out.member(key, &values.remove(at).1);
        }
    }
    for (name, value) in values {
        out.member(quote(&name).as_bytes(), &value);
    }
    Row {
        text: Cow::Owned(out.finish()),
        hidden,
    }
}

/// The bytes around the keys and values of a row.
struct Spacing<'b> {
    head: &'b [u8],
    colon: &'b [u8],
    comma: &'b [u8],
    tail: &'b [u8],
}

impl<'b> Spacing<'b> {
    fn of(text: &'b [u8], members: &[(Span, Span)]) -> Self {
        let compact = Self {
            head: b"{",
            colon: b":",
            comma: b",",
            tail: b"}",
        };
        let [(key, value), rest @ ..] = members else {
            return compact;
        };
        let (_, last) = rest.last().unwrap_or(&members[0]);
        Self {
            head: &text[..key.start],
            colon: &text[key.end..value.start],
            comma: rest
                .first()
                .map_or(compact.comma, |(next, _)| &text[value.end..next.start]),
            tail: &text[last.end..],
        }
    }
}

/// An object being written.
struct Object<'s> {
    out: Vec<u8>,
    spacing: &'s Spacing<'s>,
    empty: bool,
}

impl<'s> Object<'s> {
    fn new(capacity: usize, spacing: &'s Spacing<'s>) -> Self {
        let mut out = Vec::with_capacity(capacity);
        out.extend_from_slice(spacing.head);
        Self {
            out,
            spacing,
            empty: true,
        }
    }

    fn member(&mut self, key: &[u8], value: &[u8]) {
        if !std::mem::take(&mut self.empty) {
            self.out.extend_from_slice(self.spacing.comma);
        }
        self.out.extend_from_slice(key);
        self.out.extend_from_slice(self.spacing.colon);
        self.out.extend_from_slice(value);
    }

    fn finish(mut self) -> Vec<u8> {
        self.out.extend_from_slice(self.spacing.tail);
        self.out
    }
}
