//! What is served, found the slow and obvious way: over whole values of whole answers.

use serde_json::{Value, json};

use super::estate::{Backend, Collation, Estate, Row, read, sort};

/// One request, as a client means it.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) path: &'static str,
    pub(crate) extract: Option<Vec<&'static str>>,
    /// Columns with whether they descend.
    pub(crate) order_by: Option<Vec<(&'static str, bool)>>,
    /// Whose records are asked for.
    pub(crate) certname: Option<&'static str>,
}

impl Request {
    /// Path and parameters, paging apart.
    pub(crate) fn target(&self) -> (&'static str, Vec<(&'static str, String)>) {
        let filter = self.certname.map(|name| json!(["=", "certname", name]));
        let query = match (&self.extract, filter) {
            (Some(columns), Some(filter)) => Some(json!(["extract", columns, filter])),
            (Some(columns), None) => Some(json!(["extract", columns])),
            (None, filter) => filter,
        };
        let query = query.map(|query| ("query", query.to_string()));
        let order_by = self.order_by.as_ref().map(|order_by| {
            let order_by: Vec<_> = order_by
                .iter()
                .map(|(f, d)| ((*f).to_owned(), *d))
                .collect();
            ("order_by", spelled(&order_by))
        });
        (self.path, query.into_iter().chain(order_by).collect())
    }

    fn is_events(&self) -> bool {
        self.path.ends_with("events")
    }
}

fn spelled(order_by: &[(String, bool)]) -> String {
    let item = |(field, descends): &(String, bool)| json!({"field": field, "order": if *descends { "desc" } else { "asc" }});
    order_by.iter().map(item).collect::<Value>().to_string()
}

/// What makes a record the same as another: a report's hash, all of an event but its receipt.
pub(crate) fn identity(row: &Row, path: &str) -> Vec<(String, Value)> {
    let counts = |name: &String| {
        if path.ends_with("events") {
            name != "report_receive_time"
        } else {
            name == "hash"
        }
    };
    let columns = row.iter().filter(|(name, _)| counts(name));
    let value = |text: &String| plain(serde_json::from_str(text).unwrap());
    columns
        .map(|(name, text)| (name.clone(), value(text)))
        .collect()
}

/// A value whose numbers are all of one kind, so that 1 is 1.0.
fn plain(value: Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(items) => items.into_iter().map(plain).collect(),
        Value::Object(members) => members.into_iter().map(|(k, v)| (k, plain(v))).collect(),
        other => other,
    }
}

/// The whole union. `pages` says whether a client asks for parts of it.
pub(crate) fn union(estate: &Estate, request: &Request, pages: bool) -> Vec<Row> {
    let mut order_by: Vec<(String, bool)> = Vec::new();
    let asked = request.order_by.iter().flatten().copied();
    let ties: &[&str] = match (pages, request.is_events()) {
        (false, _) => &[],
        (true, false) => &["hash"],
        (true, true) => &[
            "report",
            "resource_type",
            "resource_title",
            "property",
            "timestamp",
            "status",
            "new_value",
            "old_value",
            "message",
        ],
    };
    for (field, descends) in asked.chain(ties.iter().map(|field| (*field, false))) {
        if order_by.iter().all(|(known, _)| known != field) {
            order_by.push((field.to_owned(), descends));
        }
    }
    // Every backend's whole answer, with whose each row is.
    let mut all: Vec<Row> = Vec::new();
    for (backend, at) in estate.backends.iter().zip(0..) {
        for mut row in rows(estate, backend, request, &order_by) {
            row.insert("from".into(), at.to_string());
            all.push(row);
        }
    }
    // The only backend's own order is the order.
    if estate.backends.len() > 1 {
        sort(&mut all, &order_by, Collation::Bytes);
    }
    let mut kept: Vec<Row> = Vec::new();
    let mut seen: Vec<(String, Vec<(String, Value)>)> = Vec::new();
    for mut row in all {
        let from = row.remove("from").unwrap();
        let identity = identity(&row, request.path);
        // How often this backend has listed it by now, and how often it has been kept.
        let same = |it: &&(String, Vec<(String, Value)>)| it.1 == identity;
        let listed = 1 + seen.iter().filter(same).filter(|it| it.0 == from).count();
        let served = kept
            .iter()
            .filter(|row| self::identity(row, request.path) == identity)
            .count();
        seen.push((from, identity));
        if listed > served {
            kept.push(row);
        }
    }
    if let Some(columns) = &request.extract {
        for row in &mut kept {
            row.retain(|name, _| columns.contains(&name.as_str()));
        }
    }
    kept
}

/// A backend's whole answer.
pub(crate) fn rows(
    estate: &Estate,
    backend: &Backend,
    request: &Request,
    order_by: &[(String, bool)],
) -> Vec<Row> {
    let (path, params) = Request {
        extract: None,
        order_by: None,
        ..request.clone()
    }
    .target();
    let params = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(params)
        .append_pair("order_by", &spelled(order_by))
        .finish();
    read(&estate.answer(backend, &format!("{path}?{params}")).body)
}
