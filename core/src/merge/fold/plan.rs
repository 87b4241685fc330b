//! What an `extract` asks to be combined, and what to ask the backends for instead.

use crate::query::{Column, Extract};

#[cfg(test)]
mod tests;

/// Why an `extract` cannot be combined. Found before any backend is asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FoldRefusal {
    /// R134: no rule says what this function's values of several backends make together.
    #[error(
        "the function {0} cannot be combined across backends; \
         count, sum, avg, min, max, to_string and jsonb_typeof can"
    )]
    UnknownFunction(String),
    /// R131: both columns of the answer would go by one name.
    #[error("the function {0} is projected twice, so two columns would be named {0}")]
    RepeatedFunction(String),
    /// R132: as before, one of them a plain column.
    #[error(
        "the column {0} has the name of a projected function, so two columns would be named {0}"
    )]
    NamedLikeFunction(String),
    /// R125: the average is made from these two columns.
    #[error("avg is computed from sum and count, so {0} cannot be projected beside it")]
    BesideAverage(String),
}

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

/// Under which name a member of a backend's row reaches the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    /// Its own.
    Same,
    /// `avg`: the member is the sum that the average is made from.
    Average,
    /// None: asked for by pdbmux alone.
    Hidden,
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
    /// These are aggregates, the rest of a row is its key (R106). That takes in the `<name>_2` of
    /// a repeated plain column (ruling 9) without naming it.
    Aggregates(Vec<(Function, Rule)>),
    /// `sum` and `count` make the average (R119); the rest as before.
    Averages(Vec<(Function, Rule)>),
    /// These are the key, the rest of a row are counts (R107, R108).
    Counts(&'static [&'static str]),
    /// Only row functions: every row is a record and none meets another (R129).
    Records,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Function {
    Count,
    Sum,
    Avg,
    Min,
    Max,
    ToString,
    JsonbTypeof,
}

impl Function {
    const ALL: [Self; 7] = [
        Self::Count,
        Self::Sum,
        Self::Avg,
        Self::Min,
        Self::Max,
        Self::ToString,
        Self::JsonbTypeof,
    ];

    /// Its name in a query and the name of its column in an answer.
    fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Sum => "sum",
            Self::Avg => "avg",
            Self::Min => "min",
            Self::Max => "max",
            Self::ToString => "to_string",
            Self::JsonbTypeof => "jsonb_typeof",
        }
    }

    /// PuppetDB knows no other spelling: `COUNT` is a function it does not have.
    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }

    /// The columns asked of a backend in its place, with the rule of each; none for a row
    /// function, which is part of the key (R127).
    fn folded_as(self) -> &'static [(Self, Rule)] {
        match self {
            Self::Count => &[(Self::Count, Rule::Add)],
            Self::Sum => &[(Self::Sum, Rule::Add)],
            Self::Min => &[(Self::Min, Rule::Min)],
            Self::Max => &[(Self::Max, Rule::Max)],
            Self::Avg => &[(Self::Sum, Rule::Add), (Self::Count, Rule::Add)],
            Self::ToString | Self::JsonbTypeof => &[],
        }
    }
}

impl FoldPlan {
    /// Plans the outermost `extract` of a query. Gives the plan and the `extract` to forward in
    /// its place, or `None` if the query lists records and is no business of this module: it
    /// neither projects a function nor groups (R139).
    ///
    /// The forwarded `extract` asks for `sum` and `count` of the *same* column instead of `avg`
    /// (R119): on facts, a `count` of rows would count other rows than the sum adds. Plain
    /// `group_by` columns that the client did not project are asked for as well, since groups
    /// that differ only there would look alike; they are taken out of the rows again (ruling 9).
    ///
    /// # Errors
    /// A function without a rule (R134), one projected twice (R131), a plain column named like a
    /// projected function (R132), `sum` or `count` beside `avg` (R125).
    pub fn new(extract: &Extract) -> Result<Option<(Self, Extract)>, FoldRefusal> {
        let functions = functions(extract)?;
        // An empty list projects every column; grouped, a backend refuses it.
        if functions.is_empty() && (extract.group_by.is_empty() || extract.columns.is_empty()) {
            return Ok(None);
        }
        let rules: Vec<_> = functions
            .iter()
            .flat_map(|function| function.folded_as())
            .copied()
            .collect();
        let columns = if functions.contains(&Function::Avg) {
            Columns::Averages(rules)
        } else if rules.is_empty() && !functions.is_empty() {
            Columns::Records
        } else {
            Columns::Aggregates(rules)
        };
        let hidden = match columns {
            Columns::Records => Vec::new(),
            _ => grouped_unseen(extract),
        };
        let forwarded = Extract {
            columns: extract
                .columns
                .iter()
                .flat_map(asked_for)
                .chain(hidden.iter().cloned().map(Column::Plain))
                .collect(),
            group_by: extract.group_by.clone(),
        };
        let plan = Self {
            columns,
            hidden,
            meeting: Meeting::default(),
        };
        Ok(Some((plan, forwarded)))
    }

    /// The same for rows each of which is made of one record: those of one backend meet too.
    pub(crate) fn of_records(mut self) -> Self {
        self.meeting = Meeting::Everywhere;
        self
    }

    /// The same, `count` being asked for by pdbmux alone.
    pub(crate) fn hiding_count(mut self) -> Self {
        self.hidden.push(Function::Count.name().to_owned());
        self
    }

    /// The plan of `/event-counts`: one row per subject, every other column a count (R107, R109).
    pub fn event_counts() -> Self {
        Self {
            columns: Columns::Counts(&["subject_type", "subject"]),
            hidden: Vec::new(),
            meeting: Meeting::default(),
        }
    }

    /// The plan of `/aggregate-event-counts`: one row per summary, every other column a count
    /// (R108, R110).
    pub fn aggregate_event_counts() -> Self {
        Self {
            columns: Columns::Counts(&["summarize_by"]),
            hidden: Vec::new(),
            meeting: Meeting::default(),
        }
    }

    /// Whether `limit` and `order_by` go to the backends (R130).
    ///
    /// Only for rows that are records. Rows that fold are all needed, so a backend gets neither
    /// `limit` nor `offset` (R135) nor any `order_by` (R126): ordering and window are applied to
    /// the folded rows.
    pub fn forwards_paging(&self) -> bool {
        self.lists_records()
    }

    /// Which rows of one key become one.
    pub(super) fn meeting(&self) -> Meeting {
        self.meeting
    }

    /// Whether every row is a record of its own, so that none folds (R129).
    pub(crate) fn lists_records(&self) -> bool {
        matches!(self.columns, Columns::Records)
    }

    /// The rule of the column `name`, or `None` if it belongs to the key.
    pub(super) fn rule(&self, name: &str) -> Option<Rule> {
        match &self.columns {
            Columns::Aggregates(rules) | Columns::Averages(rules) => rules
                .iter()
                .find(|(function, _)| function.name() == name)
                .map(|&(_, rule)| rule),
            Columns::Counts(key) => (!key.contains(&name)).then_some(Rule::Add),
            Columns::Records => None,
        }
    }

    /// What the client sees of the column `name`.
    pub(super) fn shown(&self, name: &str) -> Shown {
        match (&self.columns, name) {
            (Columns::Averages(_), "sum") => Shown::Average,
            (Columns::Averages(_), "count") => Shown::Hidden,
            _ if self.hidden.iter().any(|hidden| hidden == name) => Shown::Hidden,
            _ => Shown::Same,
        }
    }

    /// Whether a row differs from what a backend sent even if nothing is folded into it.
    pub(super) fn rewrites(&self) -> bool {
        self.averages() || !self.hidden.is_empty()
    }

    /// Whether the answer has an `avg`.
    pub(super) fn averages(&self) -> bool {
        matches!(self.columns, Columns::Averages(_))
    }
}

/// The projected functions in their order, once nothing speaks against them.
fn functions(extract: &Extract) -> Result<Vec<Function>, FoldRefusal> {
    let mut functions = Vec::new();
    for column in &extract.columns {
        if let Column::Function { name, .. } = column {
            let function =
                Function::named(name).ok_or_else(|| FoldRefusal::UnknownFunction(name.clone()))?;
            if functions.contains(&function) {
                return Err(FoldRefusal::RepeatedFunction(name.clone()));
            }
            functions.push(function);
        }
    }
    for column in &extract.columns {
        if let Column::Plain(name) = column
            && Function::named(name).is_some_and(|named| functions.contains(&named))
        {
            return Err(FoldRefusal::NamedLikeFunction(name.clone()));
        }
    }
    if functions.contains(&Function::Avg) {
        let helpers = [Function::Sum.name(), Function::Count.name()];
        if let Some(clash) = extract
            .columns
            .iter()
            .map(response_name)
            .find(|name| helpers.contains(name))
        {
            return Err(FoldRefusal::BesideAverage(clash.to_owned()));
        }
    }
    Ok(functions)
}

/// The plain columns of `group_by` that no column of the answer shows.
fn grouped_unseen(extract: &Extract) -> Vec<String> {
    let mut unseen: Vec<String> = Vec::new();
    for column in &extract.group_by {
        if let Column::Plain(name) = column {
            // A bare function name in `group_by` means that function's column (R128).
            let seen = Function::named(name).is_some()
                || extract.columns.iter().any(|c| response_name(c) == name)
                || unseen.contains(name);
            if !seen {
                unseen.push(name.clone());
            }
        }
    }
    unseen
}

fn response_name(column: &Column) -> &str {
    match column {
        Column::Plain(name) | Column::Function { name, .. } => name,
    }
}

/// What a backend is asked for so that `column` can be answered.
fn asked_for(column: &Column) -> Vec<Column> {
    match column {
        Column::Function { name, args } if name == Function::Avg.name() => Function::Avg
            .folded_as()
            .iter()
            .map(|(function, _)| Column::Function {
                name: function.name().to_owned(),
                args: args.clone(),
            })
            .collect(),
        Column::Function { .. } | Column::Plain(_) => vec![column.clone()],
    }
}
