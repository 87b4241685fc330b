//! What an `extract` asks to be combined, and what to ask the backends for instead.

mod function;
mod repeats;
#[cfg(test)]
mod tests;

use crate::json::quote;
use crate::query::{Column, Extract};

use function::{Function, Named, aggregates};
use repeats::{count, functions};

pub use repeats::{FoldRefusal, Repeats};

/// How one aggregate column of several rows becomes one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// `count`, `sum`, every column of event counts (R115, R116).
    Add,
    /// The smallest (R117).
    Min,
    /// The largest (R118).
    Max,
}

/// A column of the answer that a function computes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shown {
    /// Its name in the answer.
    pub(super) name: String,
    pub(super) made: Made,
}

/// What a column of the answer is made of: columns of the backends, by their names there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Made {
    /// Of one, as it was folded.
    Of(String),
    /// A total sum divided by a total count (R119).
    Average { sum: String, count: String },
}

/// Which rows belong together and what becomes of their columns. Plain data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoldPlan {
    columns: Columns,
    hidden: Vec<String>,
    meeting: Meeting,
}

/// Which rows of one key become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Meeting {
    /// Those of different backends. A key that one backend lists twice stays twice.
    #[default]
    AcrossBackends,
    /// All of them.
    Everywhere,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Columns {
    Aggregates(Aggregates),
    /// These are the key, the rest of a row are counts (R107, R108).
    Counts(&'static [&'static str]),
    /// Only row functions: every row is a record and none meets another (R129).
    Records,
}

/// The aggregates of a query. The rest of a row is its key (R106); that takes in the `<name>_2` of
/// a repeated plain column (ruling 9) without naming it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Aggregates {
    /// What is folded, by its name in a backend's row.
    asked: Vec<(String, Function)>,
    /// What the client gets, in its order.
    shown: Vec<Shown>,
    /// Which of `asked` counts the rows that a row is made of, where that may be none.
    rows: Option<String>,
}

impl FoldPlan {
    /// Plans the outermost `extract` of a query. Gives the plan and the `extract` to forward in
    /// its place, or `None` if the query lists records and is no business of this module (R139).
    ///
    /// The forwarded `extract` asks for `sum` and `count` of the *same* column instead of `avg`
    /// (R119), where the client does not ask for them itself. Plain `group_by` columns that the
    /// client did not project are asked for as well, since groups that differ only there would
    /// look alike; they are taken out of the rows again (ruling 9).
    ///
    /// Rows that row functions alone compute are records. Where repeats are refused they are
    /// planned here all the same, grouped or not (R129).
    ///
    /// # Errors
    /// A function without a rule (R134). Where repeats are refused, one projected twice (R131), a
    /// plain column named like a projected function (R132), `sum` or `count` beside `avg` (R125).
    /// Where they fail, an average that takes one.
    pub fn new(
        extract: &Extract,
        repeats: Repeats,
    ) -> Result<Option<(Self, Extract)>, FoldRefusal> {
        let functions = functions(extract, repeats)?;
        let combines = functions.iter().any(|function| function.combines());
        if !combines && !functions.is_empty() && repeats == Repeats::Refused {
            let records = Self::of(Columns::Records, Vec::new());
            return Ok(Some((records, extract.clone())));
        }
        // An empty list projects every column; grouped, a backend refuses it.
        let groups = !extract.group_by.is_empty() && !extract.columns.is_empty();
        Ok((combines || groups).then(|| Self::folding(extract, repeats)))
    }

    fn folding(extract: &Extract, repeats: Repeats) -> (Self, Extract) {
        let hidden = grouped_unseen(extract);
        let forwarded = Extract {
            columns: extract
                .columns
                .iter()
                .flat_map(|column| asked_for(extract, column, repeats))
                .chain(hidden.iter().cloned().map(Column::Plain))
                .collect(),
            group_by: extract.group_by.clone(),
        };
        let aggregates = Aggregates::new(extract, &forwarded, repeats);
        let plan = Self::of(Columns::Aggregates(aggregates), hidden);
        (plan, forwarded)
    }

    fn of(columns: Columns, hidden: Vec<String>) -> Self {
        Self {
            columns,
            hidden,
            meeting: Meeting::default(),
        }
    }

    /// The same for rows each of which is made of one record: those of one backend meet too.
    pub(crate) fn of_records(mut self) -> Self {
        self.meeting = Meeting::Everywhere;
        self
    }

    /// Whether rows that `extract` projects are made of many; those of an unknown function may be.
    pub(crate) fn combines(extract: &Extract) -> bool {
        extract.columns.iter().any(|column| match column {
            Column::Plain(_) => false,
            Column::Function { name, .. } => Function::named(name).is_none_or(Function::combines),
        })
    }

    /// The same, the count of rows being asked for by pdbmux alone.
    pub(crate) fn hiding_count(mut self) -> Self {
        if let Columns::Aggregates(Aggregates { shown, rows, .. }) = &mut self.columns {
            shown.retain(
                |column| !matches!(&column.made, Made::Of(name) if Some(name) == rows.as_ref()),
            );
        }
        self
    }

    /// The plan of `/event-counts`: one row per subject, every other column a count (R107, R109).
    pub fn event_counts() -> Self {
        Self::of(Columns::Counts(&["subject_type", "subject"]), Vec::new())
    }

    /// The plan of `/aggregate-event-counts`: one row per summary, every other column a count
    /// (R108, R110).
    pub fn aggregate_event_counts() -> Self {
        Self::of(Columns::Counts(&["summarize_by"]), Vec::new())
    }

    /// Whether `limit` and `order_by` go to the backends (R130).
    ///
    /// Only for rows that are records. Rows that fold are all needed, so a backend gets neither
    /// `limit` nor `offset` (R135) nor any `order_by` (R126): ordering and window are applied to
    /// the folded rows.
    pub fn forwards_paging(&self) -> bool {
        self.lists_records()
    }

    /// The row, as a backend sends it, that functions make of no record; `None` where there is
    /// none.
    pub(crate) fn of_nothing(&self) -> Option<String> {
        let Columns::Aggregates(Aggregates { asked, .. }) = &self.columns else {
            return None;
        };
        let members = asked.iter().map(|(name, function)| {
            let value = match function {
                Function::Count => "0",
                _ => "null",
            };
            format!("{}:{value}", quote(name))
        });
        let members: Vec<_> = members.collect();
        Some(format!("{{{}}}", members.join(",")))
    }

    /// Which rows of one key become one.
    pub(super) fn meeting(&self) -> Meeting {
        self.meeting
    }

    /// Whether every row is a record of its own, so that none folds (R129).
    pub(super) fn lists_records(&self) -> bool {
        matches!(self.columns, Columns::Records)
    }

    /// The rule of the column that a backend calls `name`, or `None` if it belongs to the key.
    pub(super) fn rule(&self, name: &str) -> Option<Rule> {
        match &self.columns {
            Columns::Aggregates(Aggregates { asked, .. }) => asked
                .iter()
                .find(|(asked, _)| asked == name)
                .and_then(|(_, function)| function.rule()),
            Columns::Counts(key) => (!key.contains(&name)).then_some(Rule::Add),
            Columns::Records => None,
        }
    }

    /// The columns that functions compute, as the client gets them; `None` if every aggregate is
    /// shown under the name that it came by.
    pub(super) fn shown(&self) -> Option<&[Shown]> {
        match &self.columns {
            Columns::Aggregates(Aggregates { shown, .. }) => Some(shown),
            Columns::Counts(_) | Columns::Records => None,
        }
    }

    /// Whether the key column `name` was asked for by pdbmux alone.
    pub(super) fn hides(&self, name: &str) -> bool {
        self.hidden.iter().any(|hidden| hidden == name)
    }

    /// The column that counts the rows behind a row of a backend, where there may be none.
    pub(super) fn rows(&self) -> Option<&str> {
        match &self.columns {
            Columns::Aggregates(Aggregates { rows, .. }) => rows.as_deref(),
            Columns::Counts(_) | Columns::Records => None,
        }
    }

    /// Whether a row differs from what a backend sent even if nothing is folded into it.
    pub(super) fn rewrites(&self) -> bool {
        !self.hidden.is_empty()
            || match &self.columns {
                Columns::Aggregates(aggregates) => !aggregates.show_what_is_asked(),
                Columns::Counts(_) | Columns::Records => false,
            }
    }
}

impl Aggregates {
    fn new(extract: &Extract, forwarded: &Extract, repeats: Repeats) -> Self {
        let asked = aggregates(&forwarded.columns);
        let rows = count_of_rows(extract, &asked, repeats);
        let shown = shown(extract, &asked, repeats);
        let asked = asked.into_iter();
        let asked = asked.map(|(_, function, name)| (name, function));
        Self {
            asked: asked.collect(),
            shown,
            rows,
        }
    }

    fn show_what_is_asked(&self) -> bool {
        let asked = self.asked.iter().map(|(name, _)| name);
        self.shown.len() == self.asked.len()
            && self
                .shown
                .iter()
                .zip(asked)
                .all(|(shown, asked)| shown.name == *asked && shown.made == Made::Of(asked.clone()))
    }
}

/// What the client gets, made of what is asked for.
fn shown(extract: &Extract, asked: &[Named<'_>], repeats: Repeats) -> Vec<Shown> {
    let part = |wanted: &Column| {
        let mut equal = asked.iter().filter(|(column, ..)| *column == wanted);
        equal.next().map(|(.., name)| name.clone())
    };
    // All of the client's own are asked for, each of equal ones by itself.
    let mut own: Vec<_> = asked.iter().collect();
    let mut made = |column: &Column| {
        if let Some([sum, count]) = halves(extract, column, repeats) {
            return Some(Made::Average {
                sum: part(&sum)?,
                count: part(&count)?,
            });
        }
        let at = own.iter().position(|(asked, ..)| *asked == column)?;
        Some(Made::Of(own.remove(at).2.clone()))
    };
    let columns = aggregates(&extract.columns).into_iter();
    let shown = columns.filter_map(|(column, _, name)| {
        let made = made(column)?;
        Some(Shown { name, made })
    });
    shown.collect()
}

/// The column that counts the rows behind a row.
fn count_of_rows(extract: &Extract, asked: &[Named<'_>], repeats: Repeats) -> Option<String> {
    let is_count = |(_, function, _): &&Named<'_>| *function == Function::Count;
    let counts_rows = |(column, ..): &&Named<'_>| **column == Function::Count.column(&[]);
    let found = match repeats {
        // There is room for one only, which has to do. But a group always has rows.
        Repeats::Failing if extract.group_by.is_empty() => asked.iter().find(is_count),
        _ => asked.iter().find(counts_rows),
    };
    found.map(|(.., name)| name.clone())
}

/// The plain columns of `group_by` that no column of the answer shows.
fn grouped_unseen(extract: &Extract) -> Vec<String> {
    let mut unseen: Vec<String> = Vec::new();
    for column in &extract.group_by {
        if let Column::Plain(name) = column {
            // A bare function name in `group_by` means that function's column (R128).
            let seen =
                Function::named(name).is_some() || extract.projects(name) || unseen.contains(name);
            if !seen {
                unseen.push(name.clone());
            }
        }
    }
    unseen
}

/// What a backend is asked for so that `column` can be answered, where the client does not ask for
/// it by itself.
fn asked_for(extract: &Extract, column: &Column, repeats: Repeats) -> Vec<Column> {
    let Some(mut halves) = halves(extract, column, repeats).map(Vec::from) else {
        return vec![column.clone()];
    };
    halves.retain(|half| !extract.columns.contains(half));
    halves
}

/// The sum and the count that an average is made from; `None` for any other column.
fn halves(extract: &Extract, column: &Column, repeats: Repeats) -> Option<[Column; 2]> {
    match column {
        Column::Function { name, args } if name == Function::Avg.name() => {
            Some([Function::Sum.column(args), count(extract, args, repeats)])
        }
        Column::Function { .. } | Column::Plain(_) => None,
    }
}
