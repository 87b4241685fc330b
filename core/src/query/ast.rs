//! The AST as a light tree over its own text.

use crate::Refusal;
use crate::json::{Elements, Kind, ScanError, ScanProblem, Span, kind, unquote};

use super::extract::{Column, Extract, Place};
use super::from::From;

/// Nesting that is followed. PuppetDB's own walk is recursive too; real queries stay below ten.
const MAX_DEPTH: usize = 128;

const TOO_DEEP: Refusal = Refusal::QueryTooDeep { limit: MAX_DEPTH };

/// A query in AST form: its text, and where its parts lie in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Ast {
    text: String,
    root: Vec<Node>,
    extract: Option<(Extract, Place)>,
}

/// One element of an AST array.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) span: Span,
    pub(super) value: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Array(Vec<Node>),
    Text(String),
    True,
    Other,
}

impl Node {
    pub(super) fn items(&self) -> Option<&[Node]> {
        match &self.value {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn is_true(&self) -> bool {
        matches!(self.value, Value::True)
    }
}

impl Ast {
    /// Reads `text`; `None` if it is not one JSON array.
    pub(super) fn read(text: &str) -> Result<Option<Self>, Refusal> {
        let Some(root) = read_array(text, 0..text.len(), 0)? else {
            return Ok(None);
        };
        let extract = Extract::read(&root);
        Ok(Some(Self {
            text: text.to_owned(),
            root,
            extract,
        }))
    }

    /// The query as the client wrote it.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn root(&self) -> &[Node] {
        &self.root
    }

    /// The parts of a query of the root route, if it is one.
    pub fn from(&self) -> Option<From> {
        From::read(self)
    }

    /// Whether the state of nodes is asked for anywhere in it, subqueries included. If it is not,
    /// PuppetDB hides the records of inactive nodes (section 5 of the wire notes).
    pub fn names_node_state(&self) -> bool {
        names_node_state(&self.root)
    }

    /// The projection of the outermost `extract`.
    pub fn extract(&self) -> Option<&Extract> {
        let (extract, _) = self.extract.as_ref()?;
        (!extract.columns.is_empty()).then_some(extract)
    }

    /// Whether it is the empty list, which is a filter to some entities only.
    pub(super) fn is_empty(&self) -> bool {
        self.root.is_empty()
    }

    /// The query with a condition added to each subquery, as `clause` has it for the entity.
    pub(super) fn with_subqueries(
        &self,
        clause: &dyn Fn(&str) -> Option<String>,
    ) -> Result<String, Refusal> {
        let mut changes = Vec::new();
        self.change_subqueries(&self.root, clause, &mut changes)?;
        let mut text = self.text.clone();
        // They do not overlap and are found from the front.
        for (span, changed) in changes.into_iter().rev() {
            text.replace_range(span, &changed);
        }
        Ok(text)
    }

    fn change_subqueries(
        &self,
        nodes: &[Node],
        clause: &dyn Fn(&str) -> Option<String>,
        changes: &mut Vec<(Span, String)>,
    ) -> Result<(), Refusal> {
        if let Some(subquery) = subquery(nodes)
            && let Some(added) = clause(subquery.entity)
        {
            let Some(query) = subquery.query else {
                let end = subquery.end;
                changes.push((end..end, format!(",{added}")));
                return Ok(());
            };
            let text = &self.text[query.span.clone()];
            let narrower = match Self::read(text)? {
                None => added,
                Some(ast) => match Self::read(&ast.with_subqueries(clause)?)? {
                    None => added,
                    Some(ast) => ast.and(&added),
                },
            };
            changes.push((query.span.clone(), narrower));
            return Ok(());
        }
        nodes
            .iter()
            .filter_map(Node::items)
            .try_for_each(|inner| self.change_subqueries(inner, clause, changes))
    }

    /// The query with another projection in its outermost `extract`. The filter stays as it was
    /// written.
    pub fn with_extract(&self, extract: &Extract) -> String {
        let Some((written, place)) = &self.extract else {
            return self.text.clone();
        };
        let mut text = self.text.clone();
        // From the back, so that the earlier span stays right.
        if let Some(span) = &place.group_by {
            let items = Column::list(&extract.group_by);
            let separator = if items.is_empty() { "" } else { "," };
            if items.is_empty() && !written.group_by.is_empty() {
                let before = place.filter.as_ref().unwrap_or(&place.columns);
                text.replace_range(before.end..span.end, "");
            } else {
                text.replace_range(span.clone(), &format!("[\"group_by\"{separator}{items}]"));
            }
        }
        if place.group_by.is_none() && !extract.group_by.is_empty() {
            let before = place.filter.as_ref().unwrap_or(&place.columns);
            let items = Column::list(&extract.group_by);
            text.insert_str(before.end, &format!(",[\"group_by\",{items}]"));
        }
        let columns = Column::list(&extract.columns);
        text.replace_range(place.columns.clone(), &format!("[{columns}]"));
        text
    }

    /// The query with one more condition on what it selects. What it projects stays as it was.
    pub(super) fn and(&self, clause: &str) -> String {
        match self.condition() {
            Some((condition, _)) => {
                let both = format!("[\"and\",{clause},{condition}]");
                self.with_condition(Some(&both))
            }
            None => self.with_condition(Some(clause)),
        }
    }

    /// The condition on what is selected: its text and its elements.
    pub(super) fn condition(&self) -> Option<(&str, &[Node])> {
        let (span, condition) = self.condition_at()?;
        Some((&self.text[span], condition))
    }

    /// The same: where it lies and its elements.
    pub(super) fn condition_at(&self) -> Option<(Span, &[Node])> {
        let Some((_, place)) = &self.extract else {
            return Some((0..self.text.len(), &self.root));
        };
        let filter = self.root.get(2).filter(|_| place.filter.is_some())?;
        let span = filter.span.clone();
        // A backend refuses what is neither `null` nor an array.
        (&self.text[span.clone()] != "null").then(|| (span, filter.items().unwrap_or_default()))
    }

    /// The query with another condition, or none, on what it selects. What it projects stays as it
    /// was; a query that does neither is empty.
    pub(super) fn with_condition(&self, condition: Option<&str>) -> String {
        let Some((_, place)) = &self.extract else {
            return condition.unwrap_or_default().to_owned();
        };
        let mut text = self.text.clone();
        match (&place.filter, condition) {
            (Some(filter), _) => text.replace_range(filter.clone(), condition.unwrap_or("null")),
            (None, Some(condition)) => {
                text.insert_str(place.columns.end, &format!(",{condition}"));
            }
            (None, None) => {}
        }
        text
    }

    pub(super) fn requires(&self, clause: &str) -> bool {
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

    pub(super) fn uses_only(&self, operators: &[&str]) -> bool {
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

    pub(super) fn projects(&self) -> bool {
        any_clause(&self.root, &mut |clause| {
            clause.first().and_then(Node::text) == Some("extract")
        })
    }

    pub(super) fn constrains(&self, field: &str) -> bool {
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
pub(super) fn any_clause(clause: &[Node], test: &mut impl FnMut(&[Node]) -> bool) -> bool {
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

/// A query inside another.
struct Subquery<'q> {
    entity: &'q str,
    /// Where the entity is named in full, and the query on it may follow.
    end: usize,
    /// What is asked of the entity, if anything is.
    query: Option<&'q Node>,
}

/// Reads `["from", entity, query?, paging...]`, `["subquery", entity, query]` and
/// `["select_<entity>", query]`.
fn subquery(clause: &[Node]) -> Option<Subquery<'_>> {
    let [head, rest @ ..] = clause else {
        return None;
    };
    let (entity, end, query) = match (head.text()?, rest) {
        ("from" | "subquery", [entity, rest @ ..]) => {
            (entity.text()?, entity.span.end, rest.first())
        }
        (select, [query, ..]) => (select.strip_prefix("select_")?, head.span.end, Some(query)),
        _ => return None,
    };
    let is_paging = |query: &&Node| {
        let head = query.items().and_then(<[Node]>::first).and_then(Node::text);
        matches!(head, Some("limit" | "offset" | "order_by"))
    };
    Some(Subquery {
        entity,
        end,
        query: query.filter(|query| !is_paging(query)),
    })
}

fn read_array(text: &str, span: Span, depth: usize) -> Result<Option<Vec<Node>>, Refusal> {
    if depth == MAX_DEPTH {
        return Err(TOO_DEEP);
    }
    let bytes = &text.as_bytes()[span.clone()];
    let mut nodes = Vec::new();
    for element in Elements::new(bytes) {
        let element = match element {
            Ok(element) => element,
            Err(ScanError {
                problem: ScanProblem::TooDeep,
                ..
            }) => return Err(TOO_DEEP),
            Err(_) => return Ok(None),
        };
        let raw = &bytes[element.clone()];
        let span = span.start + element.start..span.start + element.end;
        let value = match kind(raw) {
            Kind::Array => match read_array(text, span.clone(), depth + 1)? {
                Some(items) => Value::Array(items),
                None => return Ok(None),
            },
            Kind::String => match unquote(raw) {
                Some(string) => Value::Text(string.into_owned()),
                None => return Ok(None),
            },
            Kind::Bool if raw == b"true" => Value::True,
            Kind::Null | Kind::Bool | Kind::Number | Kind::Object => Value::Other,
        };
        nodes.push(Node { span, value });
    }
    Ok(Some(nodes))
}

#[cfg(test)]
mod tests {
    use super::super::Query;
    use crate::Refusal;

    fn query(text: &str) -> Query {
        Query::read(Some(text)).unwrap()
    }

    #[test]
    fn r085_no_blank_and_null_queries_are_no_filter() {
        for text in [None, Some(""), Some("  \n"), Some("null"), Some(" null ")] {
            assert_eq!(Query::read(text).unwrap(), Query::Absent, "{text:?}");
        }
    }

    #[test]
    fn r079_r306_what_is_no_json_array_is_text() {
        for text in [
            "facts { name = \"x\" }",
            "{}",
            "\"x\"",
            "1",
            "[\"=\"",
            "[1] [2]",
            "[\"\\x\"]",
        ] {
            assert!(query(text).is_text(), "{text}");
        }
    }

    #[test]
    fn r077_an_extract_outside_a_subquery_projects() {
        for text in [
            r#"["extract",["certname"]]"#,
            r#" [ "extract" , "certname" ] "#,
            r#"["and",["extract",["name"],["=","a",1]],["=","b",2]]"#,
            r#"["or",["not",["extract",["name"]]]]"#,
            r#"["from","facts",["extract",["name"]]]"#,
            r#"["\u0065xtract",["certname"]]"#,
        ] {
            assert!(query(text).projects(), "{text}");
        }
    }

    #[test]
    fn r078_an_extract_in_a_subquery_does_not_project() {
        for text in [
            r#"["in","certname",["extract",["certname"],["select_facts",["=","name","x"]]]]"#,
            r#"["and",["in","certname",["from","nodes",["extract",["certname"]]]]]"#,
            r#"["subquery","facts",["extract",["certname"]]]"#,
            r#"["select_nodes",["extract",["certname"]]]"#,
            r#"["=","value",["extract","x"]]"#,
            r#"["=","value","extract"]"#,
        ] {
            assert!(!query(text).projects(), "{text}");
        }
    }

    #[test]
    fn r080_an_outer_name_constraint_is_seen() {
        for text in [
            r#"["=","name","os"]"#,
            r#"["~","name","^os"]"#,
            r#"["null?","name",false]"#,
            r#"["and",["=","certname","a"],["not",["or",["=","name","os"]]]]"#,
            r#"["in","name",["array",["os"]]]"#,
            r#"["in",["certname","name"],["extract",["certname","name"],["select_facts",[]]]]"#,
            r#"["extract",["value"],["=","name","os"]]"#,
            r#"["from","facts",["=","name","os"]]"#,
        ] {
            assert!(query(text).constrains_name(), "{text}");
        }
    }

    #[test]
    fn r081_a_name_constraint_in_a_subquery_is_not_one() {
        for text in [
            r#"["in","certname",["extract",["certname"],["select_facts",["=","name","os"]]]]"#,
            r#"["subquery","facts",["=","name","os"]]"#,
            r#"["subquery","name",["=","certname","os"]]"#,
            r#"["=","certname","name"]"#,
            r#"["=",["fact","name"],"x"]"#,
            r#"["extract",["name"]]"#,
            r#"["extract",["certname","name"],["=","certname","a"]]"#,
            r#"["and"]"#,
            "[]",
        ] {
            assert!(!query(text).constrains_name(), "{text}");
        }
    }

    #[test]
    fn a_query_nested_beyond_reason_is_refused() {
        for depth in [129, 200, 1_500] {
            let text = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
            assert!(matches!(
                Query::read(Some(&text)),
                Err(Refusal::QueryTooDeep { .. })
            ));
        }
        let text = format!("{}1{}", "[".repeat(100), "]".repeat(100));
        assert!(matches!(Query::read(Some(&text)), Ok(Query::Ast(_))));
    }
}
