//! Aggregate rows that share a key become one row.
//!
//! [`FoldPlan`] says what to ask for and how columns combine, [`Rows::read`] reads one backend's
//! body (so that a damaged one can be dropped alone), [`fold`] makes the answer's rows. Ordering
//! and window come after: [`Row::column`] gives what they need.

mod canonical;
mod combine;
mod number;
mod plan;
mod rows;
mod total;

use std::borrow::Cow;
use std::collections::HashMap;

pub(crate) use canonical::Canonical;
pub use plan::{FoldPlan, FoldRefusal, Repeats};
pub use rows::Rows;

use crate::json::{Members, unquote};
use number::NumberError;
use plan::Meeting;
use total::Effort;

/// Why sound bodies could not be folded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FoldError {
    /// A value or a result that PostgreSQL's `numeric` cannot hold: more than 131,072 digits before
    /// the point or 16,383 after it.
    #[error("the values of column {0} are outside the range of a PostgreSQL numeric")]
    OutOfRange(String),
    /// Numbers so long, and so many of them, that adding them up was given up.
    #[error("the values of column {0} have too many digits to be combined")]
    TooMuchWork(String),
}

impl FoldError {
    fn new(error: NumberError, column: &str) -> Self {
        match error {
            NumberError::OutOfRange => Self::OutOfRange(column.to_owned()),
            NumberError::TooMuchWork => Self::TooMuchWork(column.to_owned()),
        }
    }
}

/// One row of the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row<'b> {
    text: Cow<'b, [u8]>,
    hidden: Vec<(Cow<'b, str>, &'b [u8])>,
}

impl<'b> Row<'b> {
    /// Its JSON text as the client gets it.
    pub fn bytes(&self) -> &[u8] {
        &self.text
    }

    /// Its JSON text; borrowed from a backend's body if it stayed as it came.
    pub fn into_bytes(self) -> Cow<'b, [u8]> {
        self.text
    }

    /// The JSON text of the column `name`, or `None` if the row has none. Columns that only
    /// `group_by` names are found too, since a client may order by them.
    pub fn column(&self, name: &str) -> Option<&[u8]> {
        let shown = Members::new(&self.text)
            .flatten()
            .filter(|(key, _)| unquote(&self.text[key.clone()]).is_some_and(|key| key == name))
            .last()
            .map(|(_, value)| &self.text[value]);
        shown.or_else(|| {
            self.hidden
                .iter()
                .find(|(hidden, _)| hidden == name)
                .map(|&(_, value)| value)
        })
    }
}

/// Folds what the backends that answered have sent, given in configured order (R140).
///
/// Rows come in the order in which their groups first appear. Groups meet *across* backends only:
/// a backend that lists a key twice (a repeated summary does that) has its first row folded with
/// the first rows of the others, its second with the second. So one backend's answer comes out as
/// it went in. Where the plan says that rows are records (`FoldPlan::of_records`) all of them meet.
///
/// # Errors
/// Numbers too large or too long to combine.
pub fn fold<'b>(plan: &FoldPlan, answers: Vec<Rows<'b>>) -> Result<Vec<Row<'b>>, FoldError> {
    let mut groups: Vec<Group<'b>> = Vec::new();
    let mut slots: HashMap<rows::Key<'b>, Slot> = HashMap::new();
    for (backend, Rows(rows)) in answers.into_iter().enumerate() {
        for (key, row) in rows {
            let fresh = groups.len();
            let place = match plan.meeting() {
                _ if plan.lists_records() => fresh,
                Meeting::AcrossBackends => slots.entry(key).or_default().place(backend, fresh),
                Meeting::Everywhere => slots.entry(key).or_default().first(fresh),
            };
            match groups.get_mut(place) {
                Some(group) => group.others.push(row),
                None => groups.push(Group {
                    first: row,
                    others: Vec::new(),
                }),
            }
        }
    }
    let mut effort = Effort::default();
    groups
        .into_iter()
        .map(|group| combine::combine(plan, group, &mut effort))
        .collect()
}

/// Texts of rows of different backends that become one, in configured order.
struct Group<'b> {
    first: &'b [u8],
    others: Vec<&'b [u8]>,
}

/// The groups of one key: the nth holds each backend's nth row of that key.
#[derive(Default)]
struct Slot {
    groups: Vec<usize>,
    backend: usize,
    seen: usize,
}

impl Slot {
    /// The place of the one group that every row goes to.
    fn first(&mut self, fresh: usize) -> usize {
        if let Some(&place) = self.groups.first() {
            return place;
        }
        self.groups.push(fresh);
        fresh
    }

    /// The place of the group that the next row of `backend` goes to; `fresh` if it opens one.
    fn place(&mut self, backend: usize, fresh: usize) -> usize {
        if self.backend != backend {
            self.backend = backend;
            self.seen = 0;
        }
        let nth = self.seen;
        self.seen += 1;
        if let Some(&place) = self.groups.get(nth) {
            return place;
        }
        self.groups.push(fresh);
        fresh
    }
}
