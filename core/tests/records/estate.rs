//! Small random estates, and a simulated PuppetDB that answers from one of their backends.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use pdbmux_core::round::BackendId;
use proptest::collection::btree_map;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

pub(crate) type Record = Map<String, Value>;

/// Bytes and a language's rules disagree about each of these.
const CERTNAMES: [&str; 8] = [
    "a-1.x", "a1.x", "A1.x", "a10.x", "a_1.x", "b.x", "B.x", "é\"/.x",
];
pub(crate) const FACTS: [&str; 6] = ["os", "OS", "is_virtual", "isa", "kernel", "pdbmux_source"];
const ENVIRONMENTS: [&str; 2] = ["Lab", "lab"];

#[derive(Debug, Clone)]
pub(crate) struct Node {
    minute: Option<u8>,
    environment: Option<usize>,
    facts: BTreeMap<usize, Value>,
    /// Whether `/nodes` lists it.
    listed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Collation {
    Bytes,
    /// Case and punctuation count only where nothing else differs, as under glibc's `en_US`.
    Language,
}

#[derive(Debug, Clone)]
pub(crate) struct Backend {
    nodes: Vec<(usize, Node)>,
    collation: Collation,
    /// Whether the question for the freshness map is answered.
    pub(crate) tells_freshness: bool,
    /// How rows lie in the tables.
    seed: u64,
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(json!("Z")),
        Just(json!("a")),
        Just(json!(10)),
        Just(json!(9)),
        Just(json!(true)),
    ]
}

fn backend() -> impl Strategy<Value = Backend> {
    let node = (
        option::weighted(0.8, 0..3u8),
        option::weighted(0.8, 0..ENVIRONMENTS.len()),
        btree_map(0..FACTS.len(), value(), 0..5),
        prop::bool::weighted(0.9),
    );
    let node = node.prop_map(|(minute, environment, facts, listed)| Node {
        minute,
        environment,
        facts,
        listed,
    });
    let nodes = btree_map(0..CERTNAMES.len(), node, 0..7);
    let language = prop::bool::weighted(0.3);
    let tells = prop::bool::weighted(0.85);
    (nodes, language, tells, any::<u64>()).prop_map(|(nodes, language, tells_freshness, seed)| {
        let collation = if language {
            Collation::Language
        } else {
            Collation::Bytes
        };
        let mut backend = Backend {
            nodes: nodes.into_iter().collect(),
            collation,
            tells_freshness,
            seed,
        };
        for (_, node) in &mut backend.nodes {
            // Facts always have their node; a byte-ordered backend shows what would be if not.
            node.listed |= language;
        }
        backend
    })
}

impl Backend {
    /// A backend that sorts by bytes, of nodes by certname, minute of their report and facts, all
    /// by their places among the names above.
    pub(crate) fn of(nodes: &[(usize, u8, &[usize])]) -> Self {
        let node = |&(certname, minute, facts): &(usize, u8, &[usize])| {
            let node = Node {
                minute: Some(minute),
                environment: Some(1),
                facts: facts.iter().map(|name| (*name, json!(1))).collect(),
                listed: true,
            };
            (certname, node)
        };
        Self {
            nodes: nodes.iter().map(node).collect(),
            collation: Collation::Bytes,
            tells_freshness: true,
            seed: 1,
        }
    }
}

pub(crate) fn estate() -> impl Strategy<Value = Vec<Backend>> {
    prop::collection::vec(backend(), 1..=4)
}

/// What a backend sends for an ask.
pub(crate) struct Sent {
    pub(crate) body: String,
    pub(crate) total: Option<u64>,
}

impl Backend {
    /// All rows of an entity as they lie in the tables.
    fn rows(&self, entity: &str) -> Vec<Record> {
        let mut rows = Vec::new();
        for (certname, node) in &self.nodes {
            let certname = CERTNAMES[*certname];
            let environment = node.environment.map(|at| ENVIRONMENTS[at]);
            match entity {
                "nodes" if node.listed => rows.push(json!({
                    "certname": certname,
                    "report_timestamp": node.minute.map(|minute| format!("2026-01-01T00:0{minute}:00.000Z")),
                    "report_environment": environment,
                })),
                "facts" => rows.extend(node.facts.iter().map(|(name, value)| json!({
                    "certname": certname,
                    "environment": environment,
                    "name": FACTS[*name],
                    "value": value,
                }))),
                _ => {}
            }
        }
        if self.seed.is_multiple_of(2) {
            let shuffled = |row: &Value| {
                let text = row.to_string();
                text.bytes().fold(self.seed, |hash, byte| {
                    hash.wrapping_mul(31) ^ u64::from(byte)
                })
            };
            rows.sort_by_key(shuffled);
        }
        rows.into_iter()
            .map(|row| row.as_object().unwrap().clone())
            .collect()
    }

    /// Answers as a PuppetDB does, as far as plans ask anything of it.
    pub(crate) fn answer(&self, target: &str) -> Sent {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let params: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect();
        let param = |name: &str| {
            let mut values = params.iter().filter(|(key, _)| key == name);
            let value = values.next().map(|(_, value)| value.as_str());
            assert!(values.next().is_none(), "{name} twice in {target}");
            value
        };
        assert_eq!(param("offset"), None, "R146: {target}");
        let path = path.strip_prefix("/pdb/query/v4/").unwrap();
        let (entity, name) = match path.split_once('/') {
            Some((entity, name)) => (entity, Some(name)),
            None => (path, None),
        };
        let mut rows = self.rows(entity);
        rows.retain(|row| name.is_none_or(|name| row["name"] == name));
        let query: Value = param("query").map_or(Value::Null, |q| serde_json::from_str(q).unwrap());
        let (columns, filter) = match query[0].as_str() {
            Some("extract") => (Some(&query[1]), &query[2]),
            _ => (None, &query),
        };
        if filter[0] == "=" && filter[1] != "node_state" {
            let field = filter[1].as_str().unwrap();
            rows.retain(|row| row[field] == filter[2]);
        }
        let order_by = param("order_by").map_or(Vec::new(), fields);
        sort(&mut rows, &order_by, self.collation);
        let total = (param("include_total") == Some("true")).then_some(rows.len() as u64);
        rows.truncate(param("limit").map_or(usize::MAX, |limit| limit.parse().unwrap()));
        if let Some(columns) = columns {
            let columns = columns.as_array().unwrap();
            for row in &mut rows {
                let shown = |name: &String| columns.iter().any(|column| column == name);
                row.retain(|name, _| shown(name));
                assert_eq!(row.len(), columns.len(), "unknown columns in {target}");
            }
        }
        let body = rows.into_iter().collect::<Value>().to_string();
        Sent { body, total }
    }
}

/// The fields of an `order_by` with whether they descend.
pub(crate) fn fields(text: &str) -> Vec<(String, bool)> {
    let items: Vec<BTreeMap<String, String>> = serde_json::from_str(text).unwrap();
    let items = items.into_iter();
    items
        .map(|item| {
            let descends = item.get("order").is_some_and(|order| order == "desc");
            (item["field"].clone(), descends)
        })
        .collect()
}

pub(crate) fn sort(rows: &mut [Record], order_by: &[(String, bool)], collation: Collation) {
    rows.sort_by(|a, b| {
        order_by
            .iter()
            .fold(Ordering::Equal, |order, (field, descends)| {
                order.then_with(|| {
                    let order = compare(field, &a[field], &b[field], collation);
                    if *descends { order.reverse() } else { order }
                })
            })
    });
}

fn compare(field: &str, a: &Value, b: &Value, collation: Collation) -> Ordering {
    // A null in jsonb is a value; in any other column it is absence, the greatest.
    let rank = |value: &Value| match value {
        Value::Null if field == "value" => 0,
        Value::String(_) => 1,
        Value::Number(_) => 2,
        Value::Bool(_) => 3,
        _ => 4,
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let letters = |value: &Value| match collation {
        Collation::Bytes => String::new(),
        Collation::Language => text(value)
            .to_lowercase()
            .chars()
            .filter(|c| c.is_alphanumeric())
            .collect(),
    };
    rank(a)
        .cmp(&rank(b))
        .then_with(|| letters(a).cmp(&letters(b)))
        .then_with(|| text(a).cmp(&text(b)))
        .then_with(|| a.as_i64().cmp(&b.as_i64()))
        .then_with(|| a.as_bool().cmp(&b.as_bool()))
}

/// The names of the backends, in configured order.
pub(crate) fn names(estate: &[Backend]) -> Vec<String> {
    (0..estate.len()).map(|at| format!("pdb-{at}")).collect()
}

pub(crate) fn ids(estate: &[Backend]) -> impl Iterator<Item = (BackendId, &Backend)> {
    (0..).map(BackendId).zip(estate)
}
