//! What pdbmux reads from a client's query: what it projects and what it pins, never its meaning.
//!
//! The default merges do not evaluate AST. They need to know three things of it: whether it is AST
//! at all, what its outermost `extract` projects, and whether it constrains `name`. Everything else
//! is forwarded as the client wrote it, and a rewrite replaces the column list only.

mod ast;
mod extract;
mod from;
mod subquery;
mod truth;

pub use ast::Ast;
pub use extract::{Column, Extract};
pub use from::From;
pub(crate) use subquery::is_of_nodes;
pub use subquery::{Apart, Sign, Subquery};
pub use truth::{Atom, Field, Truth};

use crate::Refusal;

/// Holds for records of nodes in any state. Every entity takes it, also those that have no state.
pub(crate) const ANY_STATE: &str = r#"["=","node_state","any"]"#;

/// A client's `query` parameter, classified as PuppetDB's entity routes do.
#[derive(Debug, Clone, PartialEq)]
pub enum Query {
    /// No parameter, blanks only, or `null`: no filter (R085).
    Absent,
    /// Not an AST array: PQL, other JSON, or text that is no JSON (R079).
    Text,
    /// An AST array.
    Ast(Ast),
}

impl Query {
    /// Classifies `text`, the decoded parameter.
    ///
    /// Refuses a query that is nested deeper than pdbmux follows: forwarding what was not
    /// understood could merge its rows wrongly.
    pub fn read(text: Option<&str>) -> Result<Self, Refusal> {
        let Some(text) = text else {
            return Ok(Self::Absent);
        };
        match text.trim_ascii() {
            "" | "null" => Ok(Self::Absent),
            trimmed if !trimmed.starts_with('[') => Ok(Self::Text),
            _ => Ok(Ast::read(text)?.map_or(Self::Text, Self::Ast)),
        }
    }

    /// The query with one more condition, `clause`, which is AST. `None` for text that is no AST.
    pub fn and(&self, clause: &str) -> Option<String> {
        match self {
            Self::Absent => Some(clause.to_owned()),
            Self::Text => None,
            Self::Ast(ast) => Some(ast.and(clause)),
        }
    }

    /// The query once `known` was asked about each comparison of its condition, subqueries left
    /// out, and `clause`, which is AST, was added to it. `None` for text that is no AST and for no
    /// query at all.
    ///
    /// A condition that cannot hold any more becomes `never`, which is AST too.
    pub fn narrowed(
        &self,
        known: &dyn Fn(&Atom<'_>) -> Option<Truth>,
        clause: Option<&str>,
        never: &str,
    ) -> Option<String> {
        let added = clause.map_or(Truth::Always, |clause| Truth::Depends(clause.to_owned()));
        let condition = match self {
            Self::Absent => return clause.map(str::to_owned),
            Self::Text => return None,
            Self::Ast(ast) => match ast.condition() {
                None => added,
                Some((text, clause)) => Truth::of(ast.text(), text, clause, known).and(added),
            },
        };
        let Self::Ast(ast) = self else { return None };
        let text = match &condition {
            Truth::Always => ast.with_condition(None),
            Truth::Never => ast.with_condition(Some(never)),
            Truth::Depends(condition) => ast.with_condition(Some(condition)),
        };
        (!text.is_empty()).then_some(text)
    }

    /// The query with a condition added to each subquery, as `clause` has it for the entity, which
    /// is spelled as in a query.
    pub fn with_subqueries(
        &self,
        clause: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Refusal> {
        match self {
            Self::Ast(ast) => Self::read(Some(&ast.with_subqueries(clause)?)),
            Self::Absent | Self::Text => Ok(self.clone()),
        }
    }

    /// The query with `instead` of each clause that a subquery decides, however deep it stands;
    /// `None` leaves a clause as it is. If no other names the state of nodes, their state is said not
    /// to matter: else PuppetDB would hide inactive ones now.
    pub fn with_clauses(
        &self,
        instead: &dyn Fn(&str, Sign) -> Option<String>,
    ) -> Result<Self, Refusal> {
        let Self::Ast(ast) = self else {
            return Ok(self.clone());
        };
        let mut changed = Self::read(Some(&ast.with_clauses(instead)))?;
        let names_state = |query: &Self| matches!(query, Self::Ast(ast) if ast.names_node_state());
        if names_state(self)
            && !names_state(&changed)
            && let Some(text) = changed.and(ANY_STATE)
        {
            changed = Self::read(Some(&text))?;
        }
        Ok(changed)
    }

    /// Its text, as it was written or made; `None` if there is none, or it is no AST.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Ast(ast) => Some(ast.text()),
            Self::Absent | Self::Text => None,
        }
    }

    /// Whether it is an empty list, which some entities take for no filter and others refuse.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Ast(ast) if ast.is_empty())
    }

    /// The projection of the outermost `extract`, if PuppetDB would apply one.
    pub fn extract(&self) -> Option<&Extract> {
        match self {
            Self::Ast(ast) => ast.extract(),
            Self::Absent | Self::Text => None,
        }
    }

    /// Whether an `extract` outside a subquery projects the response (R077, R078).
    pub fn projects(&self) -> bool {
        matches!(self, Self::Ast(ast) if ast.projects())
    }

    /// Whether the outer query constrains `name` (R080, R081).
    pub fn constrains_name(&self) -> bool {
        matches!(self, Self::Ast(ast) if ast.constrains("name"))
    }

    /// Whether the outer query has a say on `column`.
    pub fn constrains(&self, column: &str) -> bool {
        matches!(self, Self::Ast(ast) if ast.constrains(column))
    }

    /// Whether there is a query inside it.
    pub fn has_subqueries(&self) -> bool {
        matches!(self, Self::Ast(ast) if !ast.subqueries().is_empty())
    }

    /// Whether the query can only hold where `clause` does, given as it is written without blanks:
    /// it is the condition, or one of several that are joined by `and`.
    pub fn requires(&self, clause: &str) -> bool {
        matches!(self, Self::Ast(ast) if ast.requires(clause))
    }

    /// Whether its conditions use these operators alone, subqueries left out. What `in` is followed
    /// by counts as one: `array`, `extract` or `from`.
    pub fn uses_only(&self, operators: &[&str]) -> bool {
        match self {
            Self::Absent => true,
            Self::Text => false,
            Self::Ast(ast) => ast.uses_only(operators),
        }
    }

    /// Whether it is text that pdbmux cannot read as AST (R079).
    pub fn is_text(&self) -> bool {
        matches!(self, Self::Text)
    }
}
