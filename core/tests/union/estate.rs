//! Small random histories, and a simulated PuppetDB that answers from one backend's part of them.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// A record by its columns, each as the JSON text that stands for it.
pub(crate) type Row = BTreeMap<String, String>;

/// Bytes and a language's rules disagree about these, and about the titles.
pub(crate) const CERTNAMES: [&str; 5] = ["a-1.x", "a1.x", "A1.x", "b.x", "B.x"];
const STATUSES: [&str; 3] = ["changed", "failed", "unchanged"];
const TITLES: [&str; 4] = ["B", "a_c", "ab", "é\"/"];

/// What happened, whichever backends stored it.
#[derive(Debug, Clone)]
pub(crate) struct Happening {
    certname: usize,
    minute: u8,
    status: usize,
    title: usize,
    /// `None` for a null.
    value: Option<u8>,
}

/// A copy of the happening at `of`, stored at a second of the backend's own clock.
#[derive(Debug, Clone)]
pub(crate) struct Copy {
    of: usize,
    received: u8,
    /// How often the backend lists it, where it may list it more than once.
    times: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Collation {
    Bytes,
    /// Case and punctuation count only where nothing else differs.
    Language,
}

#[derive(Debug, Clone)]
pub(crate) struct Backend {
    copies: Vec<self::Copy>,
    pub(crate) collation: Collation,
    /// Whether it spells JSON in columns as PostgreSQL does, with blanks and in its own order.
    spaced: bool,
    /// How rows lie in the tables.
    seed: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Estate {
    happenings: Vec<Happening>,
    pub(crate) backends: Vec<Backend>,
}

pub(crate) fn estate() -> impl Strategy<Value = Estate> {
    let happening = (
        0..CERTNAMES.len(),
        0..2u8,
        0..STATUSES.len(),
        0..TITLES.len(),
        prop::option::weighted(0.8, 0..3u8),
    );
    let happening = happening.prop_map(|(certname, minute, status, title, value)| Happening {
        certname,
        minute,
        status,
        title,
        value,
    });
    let happenings = prop::collection::vec(happening, 1..13);
    happenings.prop_flat_map(|happenings| {
        let copy = (0..60u8, prop_oneof![5 => Just(1_usize), 1 => Just(2)]);
        let copies = prop::collection::vec(prop::option::weighted(0.6, copy), happenings.len());
        let backend = (
            copies,
            prop::bool::weighted(0.4),
            any::<bool>(),
            any::<u64>(),
        );
        let backend = backend.prop_map(|(copies, language, spaced, seed)| Backend {
            copies: copies
                .into_iter()
                .enumerate()
                .filter_map(|(of, copy)| {
                    let (received, times) = copy?;
                    Some(self::Copy {
                        of,
                        received,
                        times,
                    })
                })
                .collect(),
            collation: if language {
                Collation::Language
            } else {
                Collation::Bytes
            },
            spaced,
            seed,
        });
        let backends = prop::collection::vec(backend, 1..=4);
        (Just(happenings), backends).prop_map(|(happenings, backends)| Estate {
            happenings,
            backends,
        })
    })
}

/// What a backend sends for an ask.
pub(crate) struct Sent {
    pub(crate) body: String,
    pub(crate) total: Option<u64>,
}

impl Estate {
    /// All rows of an entity as they lie in a backend's tables.
    pub(crate) fn rows(&self, backend: &Backend, entity: &str) -> Vec<Row> {
        let mut rows = Vec::new();
        for copy in &backend.copies {
            let Happening {
                certname,
                minute,
                status,
                title,
                value,
            } = self.happenings[copy.of];
            let time = format!("2026-01-01T00:0{minute}:00.000Z");
            let received = format!("2026-01-02T00:00:{:02}.000Z", copy.received);
            let hash = format!("{:02x}", copy.of.wrapping_mul(157) % 256);
            match entity {
                "reports" => rows.push(json!({
                    "hash": hash,
                    "certname": CERTNAMES[certname],
                    "status": STATUSES[status],
                    "start_time": time,
                    "receive_time": received,
                    "noop": value.map(|value| value == 0),
                })),
                "events" => rows.extend(std::iter::repeat_n(
                    json!({
                        "certname": CERTNAMES[certname],
                        // A report is of one node; its events differ in other columns.
                        "report": format!("{certname:02x}"),
                        "resource_type": "File",
                        "resource_title": TITLES[title],
                        "property": value.map(|_| "mode"),
                        "timestamp": time,
                        "status": STATUSES[status],
                        "new_value": value,
                        "old_value": null,
                        "message": null,
                        "report_receive_time": received,
                    }),
                    copy.times,
                )),
                "nodes" => {}
                other => panic!("no entity {other}"),
            }
        }
        if entity == "nodes" {
            // Every backend knows every node, so that the freshness map sees its order.
            rows.extend(CERTNAMES.map(|name| json!({"certname": name, "report_timestamp": null})));
        }
        let mut rows: Vec<Row> = rows.iter().map(|row| self::row(row, backend)).collect();
        if backend.seed.is_multiple_of(2) {
            rows.sort_by_key(|row| {
                let text = format!("{row:?}");
                text.bytes().fold(backend.seed, |hash, byte| {
                    hash.wrapping_mul(31) ^ u64::from(byte)
                })
            });
        }
        rows
    }

    /// Answers as a PuppetDB does, as far as plans ask anything of it.
    pub(crate) fn answer(&self, backend: &Backend, target: &str) -> Sent {
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
        let entity = path.strip_prefix("/pdb/query/v4/").unwrap();
        let mut rows = self.rows(backend, entity);
        let query: Value = param("query").map_or(Value::Null, |q| serde_json::from_str(q).unwrap());
        let (columns, filter) = match query[0].as_str() {
            Some("extract") => (query[1].as_array(), &query[2]),
            _ => (None, &query),
        };
        if filter[0] == "=" && filter[1] != "node_state" {
            let field = filter[1].as_str().unwrap();
            let value = filter[2].to_string();
            rows.retain(|row| row[field] == value);
        }
        let order_by = param("order_by").map_or(Vec::new(), fields);
        sort(&mut rows, &order_by, backend.collation);
        let total = (param("include_total") == Some("true")).then_some(rows.len() as u64);
        rows.truncate(param("limit").map_or(usize::MAX, |limit| limit.parse().unwrap()));
        if let Some(columns) = columns {
            for row in &mut rows {
                row.retain(|name, _| columns.iter().any(|column| column == name));
                assert_eq!(row.len(), columns.len(), "unknown columns in {target}");
            }
        }
        let rows: Vec<_> = rows.iter().map(text).collect();
        let body = format!("[{}]", rows.join(","));
        Sent { body, total }
    }
}

/// A row as `backend` spells it: versions of PuppetDB write JSON inside a column otherwise.
fn row(columns: &Value, backend: &Backend) -> Row {
    let spell = |(name, value): (&String, &Value)| {
        let text = match (name.as_str(), value) {
            ("new_value", Value::Number(x)) if backend.spaced => {
                format!(r#"{{"y": [{x}.0], "x": "\u00e9"}}"#)
            }
            ("new_value", Value::Number(x)) => format!(r#"{{"x":"é","y":[{x}]}}"#),
            _ => value.to_string(),
        };
        (name.clone(), text)
    };
    columns.as_object().unwrap().iter().map(spell).collect()
}

fn text(row: &Row) -> String {
    let members = row.iter().map(|(name, value)| format!("{name:?}:{value}"));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// The rows of a body.
pub(crate) fn read(body: &str) -> Vec<Row> {
    let rows: Vec<BTreeMap<String, Box<RawValue>>> = serde_json::from_str(body).unwrap();
    let raw = |row: BTreeMap<String, Box<RawValue>>| {
        let columns = row.into_iter();
        columns
            .map(|(name, raw)| (name, raw.get().to_owned()))
            .collect()
    };
    rows.into_iter().map(raw).collect()
}

/// The fields of an `order_by` with whether they descend.
pub(crate) fn fields(text: &str) -> Vec<(String, bool)> {
    let items: Vec<BTreeMap<String, String>> = serde_json::from_str(text).unwrap();
    let field = |item: &BTreeMap<String, String>| {
        let descends = item.get("order").is_some_and(|order| order == "desc");
        (item["field"].clone(), descends)
    };
    items.iter().map(field).collect()
}

pub(crate) fn sort(rows: &mut [Row], order_by: &[(String, bool)], collation: Collation) {
    rows.sort_by(|a, b| {
        let mut orders = order_by.iter().map(|(field, descends)| {
            let order = compare(field, &a[field], &b[field], collation);
            if *descends { order.reverse() } else { order }
        });
        let decided = orders.find(|order| order.is_ne());
        decided.unwrap_or(Ordering::Equal)
    });
}

/// Nulls come last, but for values that are stored as their JSON text.
fn compare(field: &str, a: &str, b: &str, collation: Collation) -> Ordering {
    let is_null = |text: &str| text == "null" && !field.ends_with("_value");
    let letters = |text: &str| match collation {
        Collation::Bytes => String::new(),
        Collation::Language => {
            let letters = text.chars().filter(|c| c.is_alphanumeric());
            letters.collect::<String>().to_lowercase()
        }
    };
    let value = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| text.to_owned());
    (is_null(a).cmp(&is_null(b)))
        .then_with(|| letters(a).cmp(&letters(b)))
        .then_with(|| value(a).cmp(&value(b)))
}
