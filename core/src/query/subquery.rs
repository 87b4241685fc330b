//! The queries inside a condition. A backend answers them from its own records alone.

use super::ast::{Ast, Node};
use super::from::is_paging;

/// A query inside the condition of another.
#[derive(Debug, Clone, Copy)]
pub struct Subquery<'q> {
    /// Its entity as the query spells it; empty if that cannot be told.
    pub entity: &'q str,
    /// Whether it keeps some of its rows only, by a limit or an offset.
    pub is_cut: bool,
    link: Link<'q>,
    condition: Option<&'q Node>,
}

/// What the rows of a subquery have in common with the record that they decide about.
#[derive(Debug, Clone, Copy)]
enum Link<'q> {
    /// What PuppetDB takes for the two entities.
    Implied,
    /// The record's columns equal the row's: a name or a list of names on either side.
    Columns { outer: &'q Node, inner: &'q Node },
}

/// The names in a column or a list of columns; none where it is no name.
fn columns(node: &Node) -> Vec<Option<&str>> {
    match node.items() {
        Some(items) => items.iter().map(Node::text).collect(),
        None => vec![node.text()],
    }
}

impl<'q> Subquery<'q> {
    /// The queries inside its own condition.
    pub fn inner(&self) -> Vec<Subquery<'q>> {
        let mut found = Vec::new();
        if let Some(condition) = self.condition.and_then(Node::items) {
            collect(condition, &mut found);
        }
        found
    }

    /// Whether PuppetDB decides what its rows have in common with the record around it.
    pub fn is_implied(&self) -> bool {
        matches!(self.link, Link::Implied)
    }

    /// Whether the query says that the record's column `outer` equals the row's `inner`.
    pub fn joins(&self, outer: &str, inner: &str) -> bool {
        let Link::Columns {
            outer: of,
            inner: to,
        } = self.link
        else {
            return false;
        };
        let (of, to) = (columns(of), columns(to));
        let mut pairs = of.iter().zip(&to);
        of.len() == to.len() && pairs.any(|(of, to)| *of == Some(outer) && *to == Some(inner))
    }

    /// Whether each of its rows must have `column` be `true`.
    pub fn demands(&self, column: &str) -> bool {
        self.condition.is_some_and(|it| demands(it, column))
    }

    fn new(entity: &'q str, link: Link<'q>, rest: &'q [Node]) -> Self {
        let is_cut = |clause: &Node| {
            let head = clause.items().and_then(<[Node]>::first);
            matches!(head.and_then(Node::text), Some("limit" | "offset"))
        };
        Self {
            entity,
            link,
            is_cut: rest.iter().any(is_cut),
            condition: rest.first().filter(|first| !is_paging(first)),
        }
    }

    /// `["in", outer, rows]`, where `rows` is no list of values.
    fn of_in(outer: &'q Node, rows: &'q [Node]) -> Self {
        let unknown = Self::new("", Link::Implied, &[]);
        match rows {
            // `["extract", inner, ["select_<entity>", condition?, paging...]]`
            [head, inner, select] if head.text() == Some("extract") => {
                let Some([select, rest @ ..]) = select.items() else {
                    return unknown;
                };
                let entity = select.text().and_then(|it| it.strip_prefix("select_"));
                entity.map_or(unknown, |entity| {
                    Self::new(entity, Link::Columns { outer, inner }, rest)
                })
            }
            // `["from", entity, ["extract", inner, condition?], paging...]`
            [head, entity, extract, paging @ ..] if head.text() == Some("from") => {
                match (entity.text(), extract.items()) {
                    (Some(entity), Some([head, inner, rest @ ..]))
                        if head.text() == Some("extract") =>
                    {
                        let link = Link::Columns { outer, inner };
                        let is_cut = Self::new(entity, link, paging).is_cut;
                        let mut subquery = Self::new(entity, link, rest);
                        subquery.is_cut |= is_cut;
                        subquery
                    }
                    _ => unknown,
                }
            }
            _ => unknown,
        }
    }
}

impl Ast {
    /// The queries inside the condition, those inside them left out.
    pub fn subqueries(&self) -> Vec<Subquery<'_>> {
        let mut found = Vec::new();
        if let Some((_, condition)) = self.condition() {
            collect(condition, &mut found);
        }
        found
    }
}

/// Puts the subqueries of `clause` into `found`.
fn collect<'q>(clause: &'q [Node], found: &mut Vec<Subquery<'q>>) {
    let [head, operands @ ..] = clause else {
        return;
    };
    match (head.text(), operands) {
        (Some("and" | "or" | "not"), _) => {
            for operand in operands.iter().filter_map(Node::items) {
                collect(operand, found);
            }
        }
        (Some("subquery"), [entity, rest @ ..]) => {
            let entity = entity.text().unwrap_or_default();
            found.push(Subquery::new(entity, Link::Implied, rest));
        }
        (Some("in"), [outer, rows]) => {
            found.extend(of_fact(outer));
            if let Some(rows) = rows.items()
                && rows.first().and_then(Node::text) != Some("array")
            {
                found.push(Subquery::of_in(outer, rows));
            }
        }
        (Some(_), [field, ..]) => found.extend(of_fact(field)),
        _ => {}
    }
}

/// `["fact", name]` in the place of a column is a query for facts of the record's node.
fn of_fact(field: &Node) -> Option<Subquery<'_>> {
    let head = field.items()?.first()?;
    (head.text() == Some("fact")).then(|| Subquery::new("facts", Link::Implied, &[]))
}

fn demands(condition: &Node, column: &str) -> bool {
    let Some([head, operands @ ..]) = condition.items() else {
        return false;
    };
    match (head.text(), operands) {
        (Some("and"), operands) => operands.iter().any(|it| demands(it, column)),
        (Some("="), [field, value]) => field.text() == Some(column) && value.is_true(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Query;
    use super::*;

    /// Entity, whether it is cut, and how it is linked: `outer=inner` if so for certnames.
    fn described(subquery: &Subquery<'_>) -> String {
        let says = |holds: bool, word| if holds { word } else { "" };
        let link = if subquery.is_implied() {
            " implied"
        } else {
            says(subquery.joins("certname", "certname"), " by certname")
        };
        let inner: Vec<_> = subquery.inner().iter().map(described).collect();
        let inner = if inner.is_empty() {
            String::new()
        } else {
            format!(" ({})", inner.join(", "))
        };
        format!(
            "{}{link}{}{}{inner}",
            subquery.entity,
            says(subquery.is_cut, " cut"),
            says(subquery.demands("latest_report?"), " latest"),
        )
    }

    #[test]
    fn subqueries_are_found_in_every_form() {
        for (text, expected) in [
            (r#"["=","certname","a"]"#, &[][..]),
            (r#"["in","certname",["array",["a"]]]"#, &[]),
            (r#"["extract",["certname"],["group_by","certname"]]"#, &[]),
            (
                r#"["in","certname",["extract","certname",["select_facts",["=","name","a"]]]]"#,
                &["facts by certname"],
            ),
            (
                r#"["in",["certname","name"],["extract",["certname","name"],["select_fact_contents"]]]"#,
                &["fact_contents by certname"],
            ),
            (
                r#"["in",["certname","name"],["extract",["certname"],["select_facts"]]]"#,
                &["facts"],
            ),
            (
                r#"["in","name",["extract","certname",["select_facts",["limit",1]]]]"#,
                &["facts cut"],
            ),
            (
                r#"["in","certname",["from","nodes",["extract",["certname"],["=","a",1]],["order_by",["certname"]],["offset",1]]]"#,
                &["nodes by certname cut"],
            ),
            (
                r#"["in","certname",["from","nodes",["extract",["certname"]],["order_by",["certname"]]]]"#,
                &["nodes by certname"],
            ),
            (
                r#"["and",["subquery","reports",["and",["=","latest_report?",true],["=","status","x"]]],["not",["or",["subquery","nodes"]]]]"#,
                &["reports implied latest", "nodes implied"],
            ),
            (
                r#"["subquery","reports",["or",["=","latest_report?",true],["=","latest_report?",false]]]"#,
                &["reports implied"],
            ),
            (
                r#"["extract",["certname"],["=",["fact","os"],"x"],["group_by","certname"]]"#,
                &["facts implied"],
            ),
            (
                r#"["in",["fact","os"],["array",["x"]]]"#,
                &["facts implied"],
            ),
            (
                r#"["subquery","nodes",["in","name",["extract","name",["select_facts",["limit",1]]]]]"#,
                &["nodes implied (facts cut)"],
            ),
            (r#"["in","certname",["from","nodes"]]"#, &[" implied"]),
            (
                r#"["in","certname",["extract","certname",["nodes"]]]"#,
                &[" implied"],
            ),
        ] {
            let Query::Ast(ast) = Query::read(Some(text)).unwrap() else {
                panic!("{text}");
            };
            let found: Vec<_> = ast.subqueries().iter().map(described).collect();
            assert_eq!(found, expected, "{text}");
        }
    }
}
