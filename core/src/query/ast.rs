//! The AST as a light tree over its own text.

mod says;

use crate::Refusal;
use crate::json::{Elements, Kind, ScanError, ScanProblem, Span, kind, unquote};

use super::extract::{Column, Extract, Place};
use super::from::From;

pub(super) use says::any_clause;

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
