//! What a query says of the records that it selects, as far as a plan needs to know.

use super::{Ast, Node};

impl Ast {
    /// Whether the state of nodes is asked for anywhere in it, subqueries included. If it is not,
    /// PuppetDB hides the records of inactive nodes (section 5 of the wire notes).
    pub fn names_node_state(&self) -> bool {
        names_node_state(&self.root)
    }

    pub(in crate::query) fn requires(&self, clause: &str) -> bool {
        let Some((text, condition)) = self.condition() else {
            return false;
        };
        let is_it = |text: &str| {
            text.chars()
                .filter(|c| !c.is_ascii_whitespace())
                .eq(clause.chars())
        };
        match condition {
            [head, operands @ ..] if head.text() == Some("and") => operands
                .iter()
                .any(|operand| is_it(&self.text[operand.span.clone()])),
            _ => is_it(text),
        }
    }

    /// Whether the query selects some of the records only.
    pub fn has_condition(&self) -> bool {
        self.condition().is_some()
    }

    /// Whether the query can only hold for one text in `column`.
    pub fn pins(&self, column: &str) -> bool {
        let pins = |clause: &[Node]| match clause {
            [equals, field, value] => {
                equals.text() == Some("=") && field.text() == Some(column) && value.text().is_some()
            }
            _ => false,
        };
        match self.condition() {
            Some((_, [head, operands @ ..])) if head.text() == Some("and") => {
                operands.iter().filter_map(Node::items).any(pins)
            }
            Some((_, condition)) => pins(condition),
            None => false,
        }
    }

    pub(in crate::query) fn uses_only(&self, operators: &[&str]) -> bool {
        let is_other = |clause: &[Node]| {
            let name = clause.first().and_then(Node::text);
            name.is_none_or(|name| !operators.contains(&name))
        };
        let uses_other = |clause: &[Node]| match clause {
            [head, _, rows] if head.text() == Some("in") => {
                is_other(clause) || rows.items().is_none_or(is_other)
            }
            _ => is_other(clause),
        };
        let condition = self.condition().map(|(_, condition)| condition);
        !condition.is_some_and(|it| any_clause(it, &mut |clause| uses_other(clause)))
    }

    pub(in crate::query) fn projects(&self) -> bool {
        any_clause(&self.root, &mut |clause| {
            clause.first().and_then(Node::text) == Some("extract")
        })
    }

    pub(in crate::query) fn constrains(&self, field: &str) -> bool {
        any_clause(&self.root, &mut |clause| match clause {
            [head, operand, ..] if !is_connective(head) && !opens_subquery(head) => {
                operand.text() == Some(field)
                    || operand
                        .items()
                        .is_some_and(|names| is_field_list(head, names, field))
            }
            _ => false,
        })
    }
}

fn names_node_state(clause: &[Node]) -> bool {
    let is_state = match clause {
        [equals, field, _] if equals.text() == Some("=") => match field.items() {
            None => field.text() == Some("node_state"),
            Some([node, active]) => node.text() == Some("node") && active.text() == Some("active"),
            Some(_) => false,
        },
        _ => false,
    };
    let mut inner = clause.iter().filter_map(Node::items);
    is_state || inner.any(names_node_state)
}

/// `["in", ["a", "b"], ...]` compares several fields at once.
fn is_field_list(head: &Node, names: &[Node], field: &str) -> bool {
    head.text() == Some("in") && names.iter().any(|name| name.text() == Some(field))
}

/// Operators whose operands are clauses of the same query.
fn is_connective(head: &Node) -> bool {
    matches!(head.text(), Some("and" | "or" | "not" | "from" | "extract"))
}

/// Operators whose operands are a query of their own. `in` is not among them: its first operand
/// belongs to the outer query.
fn opens_subquery(head: &Node) -> bool {
    head.text()
        .is_some_and(|name| name == "subquery" || name.starts_with("select_"))
}

/// Whether `test` holds for `clause` or one that it connects, subqueries left out (R076).
pub(in crate::query) fn any_clause(
    clause: &[Node],
    test: &mut impl FnMut(&[Node]) -> bool,
) -> bool {
    // What stands behind an `extract` first is its columns.
    let operands = match clause.first() {
        Some(head) if head.text() == Some("extract") => clause.get(2..),
        Some(head) if is_connective(head) => clause.get(1..),
        _ => None,
    };
    test(clause)
        || operands
            .unwrap_or_default()
            .iter()
            .filter_map(Node::items)
            .any(|inner| any_clause(inner, test))
}
