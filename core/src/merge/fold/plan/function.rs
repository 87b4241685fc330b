//! The functions of an `extract` that can be combined.

use super::Rule;
use crate::query::Column;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Count,
    Sum,
    Avg,
    Min,
    Max,
    ToString,
    JsonbTypeof,
}

impl Function {
    pub(super) const ALL: [Self; 7] = [
        Self::Count,
        Self::Sum,
        Self::Avg,
        Self::Min,
        Self::Max,
        Self::ToString,
        Self::JsonbTypeof,
    ];

    /// Its name in a query and the name of its column in an answer.
    pub(super) fn name(self) -> &'static str {
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
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }

    /// The function that computes `column`, if it is one of these.
    pub(super) fn of(column: &Column) -> Option<Self> {
        match column {
            Column::Function { name, .. } => Self::named(name),
            Column::Plain(_) => None,
        }
    }

    /// How its values combine; none for a row function, which is part of the key (R127), and for
    /// `avg`, which no backend's own average makes.
    pub(super) fn rule(self) -> Option<Rule> {
        match self {
            Self::Count | Self::Sum => Some(Rule::Add),
            Self::Min => Some(Rule::Min),
            Self::Max => Some(Rule::Max),
            Self::Avg | Self::ToString | Self::JsonbTypeof => None,
        }
    }

    /// Whether it makes one value of many rows.
    pub(super) fn combines(self) -> bool {
        match self {
            Self::Count | Self::Sum | Self::Avg | Self::Min | Self::Max => true,
            Self::ToString | Self::JsonbTypeof => false,
        }
    }

    /// The column that computes it.
    pub(super) fn column(self, args: &[String]) -> Column {
        Column::Function {
            name: self.name().to_owned(),
            args: args.to_vec(),
        }
    }
}

/// A column that a function computes, and its name in a row.
pub(super) type Named<'c> = (&'c Column, Function, String);

/// The aggregates among `columns` with the names that PuppetDB gives their columns: the nth of one
/// function has `_n` behind it. Plain columns come after all functions, so none takes such a name.
pub(super) fn aggregates(columns: &[Column]) -> Vec<Named<'_>> {
    let functions = columns
        .iter()
        .filter_map(|it| Some((it, Function::of(it)?)));
    let mut named: Vec<Named<'_>> = Vec::new();
    for (column, function) in functions.filter(|(_, function)| function.combines()) {
        let earlier = named.iter().filter(|(_, other, _)| *other == function);
        let name = match earlier.count() {
            0 => function.name().to_owned(),
            earlier => format!("{}_{}", function.name(), earlier + 1),
        };
        named.push((column, function, name));
    }
    named
}
