//! The queries inside a condition. A backend answers them from its own records alone.

use super::ast::{Ast, Node};
use super::from::{From, is_paging, paging};
use crate::json::{Span, quote};

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
            (r#"["in","certname",["from","nodes"]]"#, &[""]),
            (
                r#"["in","certname",["extract","certname",["nodes"]]]"#,
                &[""],
            ),
        ] {
            let Query::Ast(ast) = Query::read(Some(text)).unwrap() else {
                panic!("{text}");
            };
            let found: Vec<_> = ast.subqueries().iter().map(described).collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    fn ast(text: &str) -> Ast {
        match Query::read(Some(text)).unwrap() {
            Query::Ast(ast) => ast,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn a_subquery_becomes_a_question_of_its_own() {
        let named = |name: &str, value| (name.to_owned(), value);
        for (text, columns, query, paging) in [
            (
                r#"["in","certname",["extract","name",["select_facts"]]]"#,
                Some(vec![("certname", "name")]),
                None,
                vec![],
            ),
            (
                r#"["in",["a","b"],["from","facts",["extract",["c","d"], ["=", "x", 1.0]],["limit",3],["order_by",["c"]]]]"#,
                Some(vec![("a", "c"), ("b", "d")]),
                Some(r#"["=", "x", 1.0]"#),
                vec![
                    ("limit", "3"),
                    ("order_by", r#"[{"field":"c","order":"asc"}]"#),
                ],
            ),
            (
                r#"["subquery","facts",["=","name","x"]]"#,
                None,
                Some(r#"["=","name","x"]"#),
                vec![],
            ),
            (
                r#"[">=",["fact","up\"time"], 5.0]"#,
                Some(vec![("certname", "certname")]),
                Some(r#"["and",["=","name","up\"time"],[">=","value",5.0]]"#),
                vec![],
            ),
            (
                r#"["in",["fact","os"],["array",["a"]]]"#,
                Some(vec![("certname", "certname")]),
                Some(r#"["and",["=","name","os"],["in","value",["array",["a"]]]]"#),
                vec![],
            ),
        ] {
            let apart = ast(text).subqueries()[0].apart().unwrap();
            let columns = columns.map(|columns| {
                let pairs = columns.into_iter();
                pairs
                    .map(|(o, i)| named(o, i.to_owned()))
                    .collect::<Vec<_>>()
            });
            assert_eq!(apart.columns, columns, "{text}");
            assert_eq!(apart.from.entity, "facts", "{text}");
            assert_eq!(apart.from.query.as_deref(), query, "{text}");
            let said: Vec<_> = apart.from.paging.iter().map(|(n, v)| (*n, &**v)).collect();
            assert_eq!(said, paging, "{text}");
        }
    }

    #[test]
    fn what_a_backend_would_refuse_is_no_question() {
        for text in [
            r#"["in","a",["from","facts"]]"#,
            r#"["in","a",["from","facts",["extract",[["function","count"]]]]]"#,
            r#"["in","a",["from","inventory",["extract","facts.os"]]]"#,
            r#"["in","facts.os",["from","nodes",["extract","certname"]]]"#,
            r#"["in",["a","b"],["from","facts",["extract",["c"]]]]"#,
            r#"["in",[],["from","facts",["extract",[]]]]"#,
            r#"["in","a",["from","facts",["extract","c",["=","x",1],["group_by","c"]]]]"#,
            r#"["in","a",["from","facts",["extract","c"],["limit","x"]]]"#,
            r#"["in","a",["extract","c",["select_facts",["=","x",1],["limit",1]]]]"#,
            r#"["in","a",["extract","c",["select_facts",["limit",1]]]]"#,
            r#"["subquery","facts"]"#,
            r#"["in",["fact","os"],["from","facts",["extract","value"]]]"#,
        ] {
            for subquery in ast(text).subqueries() {
                assert_eq!(subquery.apart(), None, "{text}");
            }
        }
    }

    #[test]
    fn clauses_are_replaced_wherever_they_stand() {
        let instead = |clause: &str, sign: Sign| {
            let is_it = clause.contains("\"here\"") && !clause.contains("\"around\"");
            is_it.then(|| format!("{sign:?}"))
        };
        let here = r#"["subquery","facts",["=","name","here"]]"#;
        let other = r#"["in","a",["from","b",["extract","c"]]]"#;
        for (text, expected) in [
            (here.to_owned(), "Affirmed".to_owned()),
            (format!(" {here} "), "Affirmed".to_owned()),
            (other.to_owned(), other.to_owned()),
            (
                format!(r#"["and",["not", {here}],["not",["or",["not",{here}],{other}]],{here}]"#),
                format!(
                    r#"["and",["not", Denied],["not",["or",["not",Affirmed],{other}]],Affirmed]"#
                ),
            ),
            (
                format!(r#"["extract",["x"],["not",{here}],["group_by","x"]]"#),
                r#"["extract",["x"],["not",Denied],["group_by","x"]]"#.to_owned(),
            ),
            // Inside a subquery that is left, only its own conditions count.
            (
                format!(r#"["not",["subquery","around",["and",{here},["=","a",1]]]]"#),
                r#"["not",["subquery","around",["and",Affirmed,["=","a",1]]]]"#.to_owned(),
            ),
            (
                r#"["in",["fact","here"],["array",["x"]]]"#.to_owned(),
                "Affirmed".to_owned(),
            ),
        ] {
            assert_eq!(ast(&text).with_clauses(&instead), expected, "{text}");
        }
    }

    #[test]
    fn t42_a_state_that_was_asked_for_in_a_subquery_still_matters() {
        let query = |text: &str| Query::read(Some(text)).unwrap();
        let stated = r#"["subquery","nodes",["=","node_state","inactive"]]"#;
        let instead =
            |clause: &str, _: Sign| (clause == stated).then(|| r#"["=","a",1]"#.to_owned());
        for (text, expected) in [
            (
                stated.to_owned(),
                r#"["and",["=","node_state","any"],["=","a",1]]"#,
            ),
            (
                format!(r#"["and",{stated},["=",["node","active"],true]]"#),
                r#"["and",["=","a",1],["=",["node","active"],true]]"#,
            ),
        ] {
            let changed = query(&text).with_clauses(&instead).unwrap();
            assert_eq!(changed.text(), Some(expected));
        }
    }
}
