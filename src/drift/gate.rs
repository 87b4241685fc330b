//! `--fail-if`: an expression over the counts of the estate, as the gate of a step that cannot be
//! taken back.
//!
//! ```text
//! any        = all *("or" all)
//! all        = one *("and" one)
//! one        = "not" one / "(" any ")" / number compared number
//! compared   = "==" / "!=" / "<" / "<=" / ">" / ">="
//! number     = digits / count ["(" backend ")"]
//! count      = "held" / "owned" / "active" / "inactive" / "only" / "shared" / "stale" / "moved"
//! ```

mod parse;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use pdbmux_core::round::BackendId;

use super::{Counts, Summary};

/// An expression that holds or does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gate {
    /// One of both holds.
    Or(Box<Self>, Box<Self>),
    /// Both hold.
    And(Box<Self>, Box<Self>),
    /// It does not hold.
    Not(Box<Self>),
    /// The numbers compare like that.
    Compare(Number, Comparison, Number),
}

/// A side of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Number {
    /// Itself.
    Plain(u64),
    /// A count of all nodes.
    OfAll(Count),
    /// A count of a backend's.
    Of(Count, BackendId),
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// [`Counts::held`].
    Held,
    /// [`Counts::owned`].
    Owned,
    /// [`Counts::active`].
    Active,
    /// [`Counts::inactive`].
    Inactive,
    /// [`Counts::only`].
    Only,
    /// [`Counts::shared`].
    Shared,
    /// [`Counts::stale`].
    Stale,
    /// [`Counts::moved`].
    Moved,
}

const COUNTS: [(&str, Count); 8] = [
    ("held", Count::Held),
    ("owned", Count::Owned),
    ("active", Count::Active),
    ("inactive", Count::Inactive),
    ("only", Count::Only),
    ("shared", Count::Shared),
    ("stale", Count::Stale),
    ("moved", Count::Moved),
];

/// How two numbers are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `==`
    Equal,
    /// `!=`
    Unequal,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    More,
    /// `>=`
    AtLeast,
}

/// Why an expression cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("--fail-if cannot be read at column {column}: {why}")]
pub struct GateError {
    /// Where, in characters from 1.
    pub column: usize,
    /// What is wrong there.
    pub why: GateTrouble,
}

/// What is wrong with an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GateTrouble {
    /// Something else belongs there.
    #[error("{wanted} belongs there, not {found}")]
    Unexpected {
        /// What belongs there.
        wanted: &'static str,
        /// What is there.
        found: String,
    },
    /// A word that counts nothing.
    #[error(
        "nothing is counted as {0:?}: there are held, owned, active, inactive, only, shared, stale \
         and moved"
    )]
    NoCount(String),
    /// A backend that is not there.
    #[error("no backend is named {name:?}: there are {known}")]
    NoBackend {
        /// The name given.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// A number that no count reaches.
    #[error("the number is too large")]
    TooLarge,
    /// More parentheses and `not` inside each other than anybody can read.
    #[error("it goes too deep")]
    TooDeep,
}

impl Gate {
    /// Reads an expression about these backends.
    pub fn parse(text: &str, backends: &[String]) -> Result<Self, GateError> {
        parse::parse(text, backends)
    }

    /// Whether it asks who moved.
    pub fn needs_moves(&self) -> bool {
        let moves = |number: &Number| {
            matches!(
                number,
                Number::OfAll(Count::Moved) | Number::Of(Count::Moved, _)
            )
        };
        match self {
            Self::Or(a, b) | Self::And(a, b) => a.needs_moves() || b.needs_moves(),
            Self::Not(inner) => inner.needs_moves(),
            Self::Compare(a, _, b) => moves(a) || moves(b),
        }
    }

    /// Whether it holds.
    pub fn holds(&self, summary: &Summary) -> bool {
        match self {
            Self::Or(a, b) => a.holds(summary) || b.holds(summary),
            Self::And(a, b) => a.holds(summary) && b.holds(summary),
            Self::Not(inner) => !inner.holds(summary),
            Self::Compare(a, comparison, b) => comparison.holds(a.of(summary).cmp(&b.of(summary))),
        }
    }
}

impl Comparison {
    fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::Unequal => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::AtMost => order.is_le(),
            Self::More => order.is_gt(),
            Self::AtLeast => order.is_ge(),
        }
    }
}

impl Number {
    fn of(self, summary: &Summary) -> u64 {
        match self {
            Self::Plain(number) => number,
            Self::OfAll(count) => count.of(&summary.all),
            Self::Of(count, backend) => count.of(summary.of_backend(backend)),
        }
    }
}

impl Count {
    fn of(self, counts: &Counts) -> u64 {
        match self {
            Self::Held => counts.held,
            Self::Owned => counts.owned,
            Self::Active => counts.active,
            Self::Inactive => counts.inactive,
            Self::Only => counts.only,
            Self::Shared => counts.shared,
            Self::Stale => counts.stale,
            // Whoever reads an expression with this asks who moved.
            Self::Moved => counts.moved.unwrap_or_default(),
        }
    }
}
