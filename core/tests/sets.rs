//! Sets under `merge: exact`: plans and merges against a simulated estate and a naive union.

// Helpers of tests may fail a test like the tests themselves.
#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used)]

use std::collections::{BTreeMap, BTreeSet};

use pdbmux_core::merge::{Context, Fan, Outcome};
use pdbmux_core::params::Params;
use pdbmux_core::plan::{Plan, plan};
use pdbmux_core::round::{BackendId, Part, Reply};
use pdbmux_core::route::Route;
use pdbmux_core::settings::{Settings, Strategy as Owners};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// A fact path: what tells it apart, in the columns `path`, `type` and `name`.
type Record = (Vec<String>, &'static str);

/// What a backend lists, and the paths of the facts that it owns.
type Backend = (BTreeSet<Record>, Vec<Vec<String>>);

fn columns((path, of): &Record) -> BTreeMap<&'static str, Value> {
    BTreeMap::from([
        ("path", json!(path)),
        ("type", json!(of)),
        ("name", json!(path[0])),
    ])
}

fn record() -> impl Strategy<Value = Record> {
    let path = prop::collection::vec(prop::sample::select(vec!["a", "b", "é"]), 1..3);
    let of = prop::sample::select(vec!["string", "integer"]);
    let owned = |path: Vec<&str>| path.into_iter().map(str::to_owned).collect();
    (path, of).prop_map(move |(path, of)| (owned(path), of))
}

fn estate() -> impl Strategy<Value = Vec<Backend>> {
    let backend = prop::collection::btree_set(record(), 0..8).prop_flat_map(|listed| {
        let paths: Vec<_> = listed.iter().map(|(path, _)| path.clone()).collect();
        let some = prop::sample::subsequence(paths.clone(), 0..=paths.len());
        (Just(listed), some)
    });
    prop::collection::vec(backend, 1..4)
}

/// The records of a PuppetDB that holds what owners hold.
fn union(estate: &[Backend]) -> BTreeSet<Record> {
    let listed = estate.iter().flat_map(|(listed, living)| {
        let lives = |(path, _): &&Record| living.contains(path);
        listed.iter().filter(lives)
    });
    listed.cloned().collect()
}

/// What PuppetDB makes of `records` under `["extract", columns, null?, ["group_by", ...]?]`.
fn evaluate(query: &Value, records: &BTreeSet<Record>) -> Vec<Value> {
    let records: Vec<_> = records.iter().map(columns).collect();
    let Some(projected) = query.get(1).and_then(Value::as_array) else {
        return records.iter().map(|record| json!(record)).collect();
    };
    let is_group = |item: &&Value| item[0] == "group_by";
    let by: Vec<_> = query.as_array().unwrap().iter().filter(is_group).collect();
    let is_function = |column: &&Value| column.is_array();
    let groups: Vec<Vec<_>> = if by.is_empty() && projected.iter().any(|it| is_function(&it)) {
        vec![records.iter().collect()]
    } else if by.is_empty() {
        records.iter().map(|record| vec![record]).collect()
    } else {
        let mut groups: BTreeMap<String, Vec<_>> = BTreeMap::new();
        let names = &by[0].as_array().unwrap()[1..];
        for record in &records {
            let key: Vec<_> = names.iter().map(|n| &record[n.as_str().unwrap()]).collect();
            groups
                .entry(json!(key).to_string())
                .or_default()
                .push(record);
        }
        groups.into_values().collect()
    };
    let row = |group: &Vec<&BTreeMap<&str, Value>>| {
        let mut row = Map::new();
        for column in projected {
            if let Some(name) = column.as_str() {
                row.insert(name.to_owned(), group[0][name].clone());
                continue;
            }
            let values = || {
                group
                    .iter()
                    .map(|record| &record[column[2].as_str().unwrap()])
            };
            let text = |value: &&Value| value.as_str().unwrap().to_owned();
            let (name, value) = match column[1].as_str().unwrap() {
                "count" => ("count", json!(group.len())),
                "min" => ("min", json!(values().min_by_key(text))),
                "max" => ("max", json!(values().max_by_key(text))),
                other => panic!("{other}"),
            };
            row.insert(name.to_owned(), value);
        }
        Value::Object(row)
    };
    groups.iter().map(row).collect()
}

fn planned(estate: &[Backend], parameters: &[(&str, &str)]) -> Fan {
    let settings = Settings {
        backends: (0..estate.len()).map(|at| format!("pdb-{at}")).collect(),
        strategy: Owners::Exact,
        source: Some("a".into()),
    };
    let raw = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(parameters)
        .finish();
    let route = Route::find("/pdb/query/v4/fact-paths").unwrap().unwrap();
    match plan(&route, &Params::read(&raw).unwrap(), &settings).unwrap() {
        Plan::Fan(fan) => fan,
        other => panic!("{other:?}"),
    }
}

/// Rows and total as pdbmux serves them.
fn serve(estate: &[Backend], parameters: &[(&str, &str)]) -> (Vec<Value>, Option<u64>) {
    let fan = planned(estate, parameters);
    let target = fan.ask.target();
    let (_, raw) = target.split_once('?').unwrap_or_default();
    let params = Params::read(raw).unwrap();
    let query = params
        .get("query")
        .map_or(Value::Null, |query| serde_json::from_str(query).unwrap());
    let bodies: Vec<_> = estate
        .iter()
        .flat_map(|(listed, living)| {
            let paths: Vec<_> = living.iter().map(|path| json!({"path": path})).collect();
            [
                json!(evaluate(&query, listed)).to_string(),
                json!(paths).to_string(),
            ]
        })
        .collect();
    let parts: Vec<_> = bodies
        .iter()
        .enumerate()
        .map(|(at, body)| Part {
            backend: BackendId(u16::try_from(at / 2).unwrap()),
            reply: Some(Reply {
                status: 200,
                total: Some(99),
                body: body.as_bytes(),
                scan: None,
            }),
        })
        .collect();
    let context = Context {
        backends: &[],
        freshness: None,
        shares: None,
    };
    let merged = fan.merge(&parts, &vec![None; parts.len()], context);
    assert_eq!(merged.damaged, []);
    let Outcome::Answer(answer) = merged.outcome else {
        panic!("{:?}", merged.outcome)
    };
    assert_eq!(answer.contributed, estate.len());
    let text = answer.pieces.assemble(&[]);
    (serde_json::from_slice(&text).unwrap(), answer.total)
}

fn sorted(rows: &[Value]) -> Vec<String> {
    let mut rows: Vec<_> = rows.iter().map(ToString::to_string).collect();
    rows.sort();
    rows
}

const QUERIES: [&str; 9] = [
    "null",
    r#"["extract",["path","type"]]"#,
    r#"["extract",["name"]]"#,
    r#"["extract",["name"],["group_by","name"]]"#,
    r#"["extract",["type"],["group_by","type","name"]]"#,
    r#"["extract",[["function","count"]]]"#,
    r#"["extract",[["function","max","name"],["function","count"]]]"#,
    r#"["extract",[["function","count"],"type"],["group_by","type"]]"#,
    r#"["extract",[["function","min","type"],"name"],["group_by","name"]]"#,
];

proptest! {
    #[test]
    fn the_answer_is_that_of_one_puppetdb_that_holds_what_owners_hold(
        estate in estate(),
        query in prop::sample::select(&QUERIES[..]),
    ) {
        let expected: Value = serde_json::from_str(query).unwrap();
        let expected = evaluate(&expected, &union(&estate));
        let (rows, total) = serve(&estate, &[("query", query), ("include_total", "true")]);
        prop_assert_eq!(total, Some(expected.len() as u64));
        prop_assert_eq!(sorted(&rows), sorted(&expected));
    }

    #[test]
    fn r153_pages_hold_every_record_of_the_union_once(estate in estate(), size in 1usize..4) {
        // One backend's order is taken as it is, and the simulated ones have none.
        prop_assume!(estate.len() > 1);
        let whole = evaluate(&Value::Null, &union(&estate));
        let mut walked = Vec::new();
        loop {
            let (limit, offset) = (size.to_string(), walked.len().to_string());
            let order = r#"[{"field":"name","order":"desc"}]"#;
            let page = [("limit", &*limit), ("offset", &*offset), ("order_by", order)];
            let (page, _) = serve(&estate, &page);
            if page.is_empty() {
                break;
            }
            walked.extend(page);
        }
        let names = walked.iter().map(|row| row["name"].as_str().unwrap().to_owned());
        prop_assert!(names.rev().is_sorted());
        prop_assert_eq!(sorted(&walked), sorted(&whole));
    }
}
