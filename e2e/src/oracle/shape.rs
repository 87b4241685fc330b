//! What a question is about, as far as a comparison has to know: its entity, its order, its
//! window, and which columns of the answer are receipt times.

use std::collections::BTreeSet;

use anyhow::Result;

use super::ask::{Ask, Method};
use super::canon::Json;
use crate::http::Client;

/// What decides how two answers are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The entity whose records are answered, spelled with dashes; empty outside the query API.
    pub entity: String,
    /// Columns to order by, the first one first.
    pub order: Vec<Key>,
    /// Whether the answer is cut.
    pub window: Window,
    /// Columns that each PuppetDB stamps for itself (wire 4.1).
    pub receipts: BTreeSet<String>,
    /// The filter and projection, where the question has one that can be read.
    pub query: Option<Json>,
}

/// One column to order by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its name in a record.
    pub column: String,
    /// Which way.
    pub direction: Direction,
}

/// Which way records are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Smallest first, null last.
    Ascending,
    /// Null first.
    Descending,
}

/// Whether an answer is the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// No limit and no offset.
    Whole,
    /// One of them or both.
    Part,
}

/// Children of a parent route that are collections of their own.
const CHILDREN: [&str; 9] = [
    "facts",
    "resources",
    "reports",
    "events",
    "catalogs",
    "factsets",
    "edges",
    "logs",
    "metrics",
];

impl Shape {
    /// Reads a question; `union` translates PQL.
    pub fn of(ask: &Ask, union: &Client) -> Result<Self> {
        let Some(route) = ask.route() else {
            return Ok(Self::plain(String::new()));
        };
        let parameters = parameters(ask);
        let given = |name: &str| parameters.iter().find(|(it, _)| it == name).map(|it| &it.1);
        let mut query = given("query").and_then(read_query);
        let mut shape = Self::plain(entity(route));
        if route.is_empty() {
            if query.is_none() {
                query = translated(ask, union)?;
            }
            let Some(parts) = query.as_ref().and_then(Json::list) else {
                return Ok(shape);
            };
            shape.entity = parts
                .get(1)
                .and_then(Json::text)
                .unwrap_or_default()
                .replace('_', "-");
            for clause in parts.get(2..).unwrap_or_default() {
                shape.paging(clause);
            }
        }
        if let Some(order) = given("order_by") {
            shape.order = order_by(order);
        } else if shape.entity == "fact-names" {
            shape.order = vec![Key {
                column: String::new(),
                direction: Direction::Ascending,
            }];
        }
        if given("limit").or(given("offset")).is_some() {
            shape.window = Window::Part;
        }
        if shape.entity == "event-counts" {
            for key in &mut shape.order {
                key.column = match key.column.as_str() {
                    "certname" | "resource_title" | "containing_class" => "subject.title".into(),
                    "resource_type" => "subject.type".into(),
                    other => other.to_owned(),
                };
            }
        }
        shape.receipts = receipts(&shape.entity, query.as_ref());
        shape.query = query;
        Ok(shape)
    }

    fn plain(entity: String) -> Self {
        Self {
            entity,
            order: Vec::new(),
            window: Window::Whole,
            receipts: BTreeSet::new(),
            query: None,
        }
    }

    /// Reads a paging clause of a `from`.
    fn paging(&mut self, clause: &Json) {
        let Some([Json::Text(name), rest @ ..]) = clause.list() else {
            return;
        };
        match (name.as_str(), rest) {
            ("limit" | "offset", _) => self.window = Window::Part,
            ("order_by", [Json::List(keys)]) => {
                self.order = keys.iter().filter_map(in_query_key).collect();
            }
            _ => {}
        }
    }
}

/// The same question without a window, put to the union alone: what a window may show.
pub fn whole(ask: &Ask, shape: &Shape) -> Ask {
    let mut whole = ask.clone();
    let cuts = |name: &str| matches!(name, "limit" | "offset" | "include_total");
    whole.parameters.retain(|(name, _)| !cuts(name));
    if let Some(Json::Map(fields)) = ask.body.as_deref().and_then(|body| Json::parse(body).ok()) {
        let mut fields = fields;
        fields.retain(|name, _| !cuts(name));
        if ask.route() == Some("")
            && let Some(query) = &shape.query
        {
            fields.insert("query".into(), uncut(query));
        }
        whole.body = Some(Json::Map(fields).spell());
    } else if ask.route() == Some("")
        && let Some(query) = &shape.query
    {
        whole.parameters.retain(|(name, _)| name != "query");
        whole
            .parameters
            .push(("query".into(), uncut(query).spell()));
    }
    whole
}

fn uncut(query: &Json) -> Json {
    let cuts = |clause: &Json| {
        matches!(
            clause.list(),
            Some([Json::Text(name), ..]) if name == "limit" || name == "offset"
        )
    };
    match query {
        Json::List(parts) => Json::List(parts.iter().filter(|it| !cuts(it)).cloned().collect()),
        other => other.clone(),
    }
}

/// Parameters wherever they travel, each as JSON or as text.
fn parameters(ask: &Ask) -> Vec<(String, Json)> {
    let mut all: Vec<_> = ask
        .parameters
        .iter()
        .map(|(name, value)| (name.clone(), Json::Text(value.clone())))
        .collect();
    if let Some((_, raw)) = ask.path.split_once('?') {
        let decoded = form_urlencoded::parse(raw.as_bytes());
        all.extend(decoded.map(|(name, value)| (name.into_owned(), Json::Text(value.into()))));
    }
    if ask.method == Method::Post
        && let Some(Json::Map(fields)) = ask.body.as_deref().and_then(|body| Json::parse(body).ok())
    {
        all.extend(fields);
    }
    all
}

/// A query as AST; `None` for PQL and what is no query at all.
fn read_query(given: &Json) -> Option<Json> {
    match given {
        Json::Text(text) => Json::parse(text).ok().filter(|read| read.list().is_some()),
        Json::List(_) => Some(given.clone()),
        _ => None,
    }
}

/// PQL as AST, by the union's own translation.
fn translated(ask: &Ask, union: &Client) -> Result<Option<Json>> {
    let parameters = parameters(ask);
    let Some((_, Json::Text(text))) = parameters.iter().find(|(name, _)| name == "query") else {
        return Ok(None);
    };
    let asked = [("query", text.as_str()), ("ast_only", "true")];
    let answer = union.get("/pdb/query/v4", &asked)?;
    Ok((answer.status == 200)
        .then(|| Json::parse(&answer.body).ok())
        .flatten())
}

fn entity(route: &str) -> String {
    let segments: Vec<_> = route.split('/').collect();
    let child = match segments.as_slice() {
        [
            "nodes" | "environments" | "producers" | "factsets" | "catalogs",
            _,
            rest @ ..,
        ] => rest
            .iter()
            .rev()
            .find(|segment| CHILDREN.contains(segment))
            .or(rest.first()),
        ["reports", _, child, ..] => Some(child),
        _ => None,
    };
    match (segments.as_slice(), child) {
        (["factsets", _, "facts"], _) => "factsets".into(),
        (_, Some(child)) => (*child).to_owned(),
        (_, None) => segments.first().copied().unwrap_or_default().to_owned(),
    }
}

fn order_by(given: &Json) -> Vec<Key> {
    let listed = match given {
        Json::Text(text) => Json::parse(text).ok(),
        other => Some(other.clone()),
    };
    let key = |item: &Json| {
        Some(Key {
            column: item.member("field")?.text()?.to_owned(),
            direction: direction(item.member("order")),
        })
    };
    let keys = listed.as_ref().and_then(Json::list).unwrap_or_default();
    keys.iter().filter_map(key).collect()
}

fn in_query_key(item: &Json) -> Option<Key> {
    match item {
        Json::Text(column) => Some(Key {
            column: column.clone(),
            direction: Direction::Ascending,
        }),
        Json::List(pair) => Some(Key {
            column: pair.first()?.text()?.to_owned(),
            direction: direction(pair.get(1)),
        }),
        _ => None,
    }
}

fn direction(given: Option<&Json>) -> Direction {
    match given.and_then(Json::text) {
        Some(text) if text.eq_ignore_ascii_case("desc") => Direction::Descending,
        _ => Direction::Ascending,
    }
}

/// The receipt times of an entity, and the functions over them.
fn receipts(entity: &str, query: Option<&Json>) -> BTreeSet<String> {
    let own: &[&str] = match entity {
        "nodes" => &["facts_timestamp", "catalog_timestamp"],
        "factsets" | "inventory" => &["timestamp"],
        "reports" => &["receive_time"],
        "events" => &["report_receive_time"],
        _ => &[],
    };
    let mut all: BTreeSet<String> = own.iter().map(|name| (*name).to_owned()).collect();
    let Some(columns) = query.and_then(columns) else {
        return all;
    };
    let mut seen: Vec<&str> = Vec::new();
    for column in columns {
        let (name, over) = match column {
            Json::List(call) => match call.as_slice() {
                [_, Json::Text(name), arguments @ ..] => (name, arguments.first()),
                _ => continue,
            },
            Json::Text(name) => (name, Some(column)),
            _ => continue,
        };
        seen.push(name);
        let repeats = seen.iter().filter(|it| *it == name).count();
        if over
            .and_then(Json::text)
            .is_some_and(|it| own.contains(&it))
            && !is_count(name)
        {
            all.insert(if repeats > 1 {
                format!("{name}_{repeats}")
            } else {
                name.clone()
            });
        }
    }
    all
}

fn is_count(name: &str) -> bool {
    name == "count"
}

/// The column list of the outermost `extract`.
fn columns(query: &Json) -> Option<&[Json]> {
    match query.list()? {
        [Json::Text(name), Json::List(columns), ..] if name == "extract" => Some(columns),
        [Json::Text(name), _, rest @ ..] if name == "from" => rest.iter().find_map(columns),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(line: &str) -> Shape {
        // Nobody is asked: the questions here are AST.
        Shape::of(
            &Ask::parse(line).unwrap(),
            &Client::new("http://127.0.0.1:9"),
        )
        .unwrap()
    }

    #[test]
    fn the_entity_is_the_last_collection_of_the_path() {
        for (line, entity) in [
            ("nodes/x/facts/kernel", "facts"),
            ("nodes/x", "nodes"),
            ("environments/e/reports/h/events", "events"),
            ("environments/e/resources/File", "resources"),
            ("factsets/x/facts", "factsets"),
            ("reports/h/logs", "logs"),
            ("fact-names", "fact-names"),
            (r#"root ? query=["from","fact_paths"]"#, "fact-paths"),
        ] {
            assert_eq!(shape(line).entity, entity, "{line}");
        }
    }

    #[test]
    fn order_and_window_are_read_wherever_they_travel() {
        let wanted = vec![Key {
            column: "certname".into(),
            direction: Direction::Descending,
        }];
        for line in [
            r#"nodes ? order_by=[{"field":"certname","order":"DESC"}] & limit=3"#,
            r#"POST nodes ! {"order_by":[{"field":"certname","order":"desc"}],"offset":1}"#,
            r#"root ? query=["from","nodes",["order_by",[["certname","desc"]]],["limit",2]]"#,
        ] {
            let read = shape(line);
            assert_eq!(read.order, wanted, "{line}");
            assert_eq!(read.window, Window::Part, "{line}");
        }
    }

    #[test]
    fn functions_over_receipt_times_are_receipt_times() {
        let read = shape(
            r#"nodes ? query=["extract",[["function","max","report_timestamp"],["function","max","facts_timestamp"],["function","count","facts_timestamp"]]]"#,
        );
        assert!(read.receipts.contains("max_2"));
        assert!(!read.receipts.contains("max") && !read.receipts.contains("count"));
    }

    #[test]
    fn a_whole_has_no_window_left() {
        for (line, wanted) in [
            (
                r#"nodes ? query=["=","x",1] & limit=3 & offset=1 & include_total=true"#,
                r#"nodes ? query=["=","x",1]"#,
            ),
            (
                r#"root ? query=["from","nodes",["limit",2]]"#,
                r#"root ? query=["from","nodes"]"#,
            ),
        ] {
            let ask = Ask::parse(line).unwrap();
            assert_eq!(whole(&ask, &shape(line)).to_string(), wanted);
        }
    }
}
