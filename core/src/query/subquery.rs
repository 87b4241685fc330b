//! The queries inside a condition. A backend answers them from its own records alone.

#[cfg(test)]
mod tests;

use super::ast::{Ast, Node, any_clause};
use super::from::{From, is_paging, paging};
use crate::json::{Span, quote};

/// The entities of which PuppetDB relates any two by their certnames, as they are spelled in queries.
const OF_NODES: [&str; 11] = [
    "nodes",
    "facts",
    "fact_contents",
    "factsets",
    "inventory",
    "catalogs",
    "catalog_inputs",
    "catalog_input_contents",
    "resources",
    "edges",
    "package_inventory",
];

/// Whether records of `entity`, as queries spell it, are what is known of a node now.
pub(crate) fn is_of_nodes(entity: &str) -> bool {
    OF_NODES.contains(&entity)
}

/// A query inside the condition of another.
#[derive(Debug, Clone)]
pub struct Subquery<'q> {
    /// Its entity as the query spells it; empty if that cannot be told.
    pub entity: &'q str,
    /// Whether it keeps some of its rows only, by a limit or an offset.
    pub is_cut: bool,
    link: Link<'q>,
    /// What stands behind its columns or its entity: a condition, if it is well-formed.
    rest: &'q [Node],
    paging: &'q [Node],
    place: Place<'q>,
}

/// Where a subquery stands.
#[derive(Debug, Clone)]
struct Place<'q> {
    /// The whole query.
    query: &'q str,
    /// The clause that the subquery decides.
    clause: Span,
    sign: Sign,
}

/// Whether records are kept for what a clause says or for its contrary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// For what it says.
    Affirmed,
    /// For its contrary, since it stands under a `not`.
    Denied,
}

/// What the rows of a subquery have in common with the record that they decide about.
#[derive(Debug, Clone, Copy)]
enum Link<'q> {
    /// What PuppetDB takes for the two entities.
    Implied,
    /// The record's columns equal the row's: a name or a list of names on either side.
    Columns { outer: &'q Node, inner: &'q Node },
    /// Rows are facts of the record's node, named and compared so.
    Fact {
        name: &'q Node,
        operator: &'q str,
        operand: &'q Node,
    },
    /// It cannot be told.
    Unknown,
}

/// What asks for the rows of a subquery apart from the query around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Apart {
    /// The columns of the record around it and those of its rows which they must equal; `None` if
    /// PuppetDB decides.
    pub columns: Option<Vec<(String, String)>>,
    /// Its entity, its condition and its paging.
    pub from: From,
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
        if let Some(condition) = self.condition() {
            let place = Place {
                query: self.place.query,
                clause: condition.span.clone(),
                sign: Sign::Affirmed,
            };
            collect(condition.items().unwrap_or_default(), &place, &mut found);
        }
        found
    }

    /// The clause that it decides, as it was written.
    pub fn clause(&self) -> &'q str {
        self.place.query[self.place.clause.clone()].trim()
    }

    /// Whether PuppetDB decides what its rows have in common with the record around it.
    pub fn is_implied(&self) -> bool {
        matches!(self.link, Link::Implied | Link::Fact { .. })
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
        self.condition().is_some_and(|it| demands(it, column))
    }

    /// Whether its condition asks what is a matter of the node: which of its reports is the latest,
    /// or whether it is active. A stale copy answers that of itself.
    pub fn asks_of_node(&self) -> bool {
        let asks = |clause: &[Node]| match clause {
            [_, field, ..] => match field.items() {
                None => matches!(field.text(), Some("latest_report?" | "node_state")),
                Some([head, ..]) => head.text() == Some("node"),
                Some([]) => false,
            },
            _ => false,
        };
        let condition = self.condition().and_then(Node::items);
        condition.is_some_and(|it| any_clause(it, &mut |clause| asks(clause)))
    }

    /// What asks for its rows apart; `None` where that cannot be told, and for what a backend would
    /// refuse: neither functions nor paths into columns are taken here, clauses that page in the
    /// form `from` alone (seen on 7.12.1 and 8.4.1).
    pub fn apart(&self) -> Option<Apart> {
        let text = |node: &Node| &self.place.query[node.span.clone()];
        let condition = match self.rest {
            [] => None,
            [condition] if !is_paging(condition) => Some(text(condition).to_owned()),
            _ => return None,
        };
        let (columns, query) = match self.link {
            Link::Unknown => return None,
            Link::Implied => (None, Some(condition?)),
            Link::Fact {
                name,
                operator,
                operand,
            } => {
                let (name, operator, operand) = (text(name), quote(operator), text(operand));
                let of_fact =
                    format!(r#"["and",["=","name",{name}],[{operator},"value",{operand}]]"#);
                let certname = "certname".to_owned();
                (Some(vec![(certname.clone(), certname)]), Some(of_fact))
            }
            Link::Columns { outer, inner } => (Some(pairs(outer, inner)?), condition),
        };
        let from = From {
            entity: self.entity.to_owned(),
            query,
            paging: paging(self.paging, text)?,
        };
        Some(Apart { columns, from })
    }

    fn condition(&self) -> Option<&'q Node> {
        self.rest.first().filter(|first| !is_paging(first))
    }

    fn new(
        entity: &'q str,
        link: Link<'q>,
        rest: &'q [Node],
        paging: &'q [Node],
        place: &Place<'q>,
    ) -> Self {
        let is_cut = |clause: &Node| {
            let head = clause.items().and_then(<[Node]>::first);
            matches!(head.and_then(Node::text), Some("limit" | "offset"))
        };
        Self {
            entity,
            is_cut: rest.iter().chain(paging).any(is_cut),
            link,
            rest,
            paging,
            place: place.clone(),
        }
    }

    /// `["in", outer, rows]`, where `rows` is no list of values.
    fn of_in(outer: &'q Node, rows: &'q [Node], place: &Place<'q>) -> Self {
        let known = match rows {
            // `["extract", inner, ["select_<entity>", condition?]]`
            [head, inner, select] if head.text() == Some("extract") => {
                let select = select.items().and_then(<[Node]>::split_first);
                select.and_then(|(select, rest)| {
                    let entity = select.text()?.strip_prefix("select_")?;
                    Some((entity, inner, rest, &[][..]))
                })
            }
            // `["from", entity, ["extract", inner, condition?], paging...]`
            [head, entity, extract, paging @ ..] if head.text() == Some("from") => {
                match (entity.text(), extract.items()) {
                    (Some(entity), Some([head, inner, rest @ ..]))
                        if head.text() == Some("extract") =>
                    {
                        Some((entity, inner, rest, paging))
                    }
                    _ => None,
                }
            }
            _ => None,
        };
        match known {
            Some((entity, inner, rest, paging)) => {
                let link = Link::Columns { outer, inner };
                Self::new(entity, link, rest, paging, place)
            }
            None => Self::new("", Link::Unknown, &[], &[], place),
        }
    }
}

/// The columns on either side, if each has a name and its counterpart.
fn pairs(outer: &Node, inner: &Node) -> Option<Vec<(String, String)>> {
    let (outer, inner) = (columns(outer), columns(inner));
    let name = |name: Option<&str>| name.filter(|it| !it.contains('.')).map(str::to_owned);
    let pairs = outer.iter().zip(&inner);
    let pairs: Option<Vec<_>> = pairs.map(|(o, i)| Some((name(*o)?, name(*i)?))).collect();
    pairs.filter(|pairs| !pairs.is_empty() && outer.len() == inner.len())
}

impl Ast {
    /// The queries inside the condition, those inside them left out.
    pub fn subqueries(&self) -> Vec<Subquery<'_>> {
        let mut found = Vec::new();
        if let Some((clause, condition)) = self.condition_at() {
            let place = Place {
                query: self.text(),
                clause,
                sign: Sign::Affirmed,
            };
            collect(condition, &place, &mut found);
        }
        found
    }

    /// The query with `instead` of each clause that a subquery decides, whatever stands around it;
    /// `None` leaves a clause, but not those inside it, as it is.
    pub(super) fn with_clauses(&self, instead: &dyn Fn(&str, Sign) -> Option<String>) -> String {
        let mut changes: Vec<(Span, String)> = Vec::new();
        let mut open = self.subqueries();
        while let Some(subquery) = open.pop() {
            let Place { clause, sign, .. } = &subquery.place;
            match instead(subquery.clause(), *sign) {
                Some(text) => changes.push((clause.clone(), text)),
                None => open.extend(subquery.inner()),
            }
        }
        // From the back, so that the earlier spans stay right.
        changes.sort_by_key(|(span, _)| std::cmp::Reverse(span.start));
        changes.dedup_by(|a, b| a.0 == b.0);
        let mut text = self.text().to_owned();
        for (span, changed) in changes {
            text.replace_range(span, &changed);
        }
        text
    }
}

/// Puts the subqueries of the clause that lies at `place` into `found`.
fn collect<'q>(clause: &'q [Node], place: &Place<'q>, found: &mut Vec<Subquery<'q>>) {
    let [head, operands @ ..] = clause else {
        return;
    };
    match (head.text(), operands) {
        (Some(connective @ ("and" | "or" | "not")), _) => {
            let sign = match (connective, place.sign) {
                ("not", Sign::Affirmed) => Sign::Denied,
                ("not", Sign::Denied) => Sign::Affirmed,
                (_, sign) => sign,
            };
            for operand in operands {
                if let Some(items) = operand.items() {
                    let place = Place {
                        query: place.query,
                        clause: operand.span.clone(),
                        sign,
                    };
                    collect(items, &place, found);
                }
            }
        }
        (Some("subquery"), [entity, rest @ ..]) => {
            let entity = entity.text().unwrap_or_default();
            found.push(Subquery::new(entity, Link::Implied, rest, &[], place));
        }
        (Some("in"), [outer, rows]) if !is_list(rows) => {
            let fact = fact(outer).map(|_| Subquery::new("facts", Link::Unknown, &[], &[], place));
            found.extend(fact);
            if let Some(rows) = rows.items() {
                found.push(Subquery::of_in(outer, rows, place));
            }
        }
        (Some(operator), [field, operand]) => {
            let fact = fact(field).map(|name| Link::Fact {
                name,
                operator,
                operand,
            });
            found.extend(fact.map(|link| Subquery::new("facts", link, &[], &[], place)));
        }
        _ => {}
    }
}

fn is_list(rows: &Node) -> bool {
    let head = rows.items().and_then(<[Node]>::first);
    head.and_then(Node::text) == Some("array")
}

/// The name in `["fact", name]`, which in the place of a column asks for facts of the record's node.
fn fact(field: &Node) -> Option<&Node> {
    match field.items()? {
        [head, name] if head.text() == Some("fact") => Some(name),
        _ => None,
    }
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
