//! A page of what two backends hold is that page of what they hold together, whatever their limits
//! cut off on the way and however their databases order text.

#![no_main]

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use pdbmux_core::json::Elements;
use pdbmux_core::merge::owners::FreshnessMap;
use pdbmux_core::merge::{Fan, Merge, Outcome};
use pdbmux_core::paging::{OrderBy, RecordOrder, Window};
use pdbmux_core::plan::Plan;
use pdbmux_core::round::BackendId;
use pdbmux_core::settings::{Settings, Strategy};
use pdbmux_fuzz::round::{planned, settings, settle, text};

/// Names that bytes and a language order differently.
const CERTNAMES: [&str; 6] = ["B", "a", "a-1", "a1", "c", "d"];
const FACTS: [&str; 3] = ["os", "pdbmux_source", "uptime"];
const TIMES: [&str; 3] = [
    "null",
    "\"2020-01-01T00:00:00.000Z\"",
    "\"2021-01-01T00:00:00.000Z\"",
];

/// What is asked for, and columns to order it by.
const ENTITIES: [(&str, [&str; 3]); 3] = [
    ("nodes", ["certname", "report_timestamp", "environment"]),
    ("facts", ["certname", "name", "value"]),
    ("reports", ["certname", "receive_time", "hash"]),
];

fuzz_target!(|input: &[u8]| {
    let _ = check(&mut Unstructured::new(input));
});

fn check(input: &mut Unstructured<'_>) -> Result<()> {
    let settings = settings(*input.choose(&[Strategy::Freshness, Strategy::Static])?);
    let (entity, columns) = input.choose(&ENTITIES)?;
    let mut order_by = Vec::new();
    for _ in 0..input.int_in_range(0..=2)? {
        let (field, direction) = (input.choose(columns)?, input.choose(&["asc", "desc"])?);
        order_by.push(format!(r#"{{"field":"{field}","order":"{direction}"}}"#));
    }
    let (limit, offset) = (input.int_in_range(1..=4)?, input.int_in_range(0..=4)?);
    let order_by = order_by.join(",");
    let target =
        format!("/pdb/query/v4/{entity}?limit={limit}&offset={offset}&order_by=[{order_by}]");
    let Some(Plan::Fan(fan)) = planned(&target, &settings) else {
        panic!("{target} is not planned")
    };
    let Merge::Records(merge) = &fan.merge else {
        panic!("{target} lists no records")
    };

    let by_certname = RecordOrder::new(&OrderBy::default().and_then_by(&["certname"]), "nodes");
    let databases = [Database::new(input)?, Database::new(input)?];
    let nodes = databases
        .each_ref()
        .map(|it| array(&it.listed("nodes", &by_certname)));
    let nodes = [
        (BackendId(0), nodes[0].as_bytes()),
        (BackendId(1), nodes[1].as_bytes()),
    ];
    let (map, _) = FreshnessMap::build(&nodes);
    let lists = databases
        .each_ref()
        .map(|it| it.listed(entity, &merge.order));

    let mut whole = fan.clone();
    whole.ask = whole.ask.with_limit(None);
    if let Merge::Records(merge) = &mut whole.merge {
        merge.window = Window::default();
    }
    let expected = served(&whole, &settings, &map, &lists);
    let page = served(&fan, &settings, &map, &lists);
    assert_eq!(page, merge.window.cut(&expected), "{target} of {lists:#?}");
    Ok(())
}

/// The members of a record, their values as JSON.
type Record = Vec<(&'static str, String)>;

/// What one backend holds.
struct Database {
    nodes: Vec<Record>,
    facts: Vec<Record>,
    reports: Vec<Record>,
    collation: Collation,
}

/// How a database orders text.
#[derive(Clone, Copy)]
enum Collation {
    Bytes,
    Language,
}

impl Database {
    fn new(input: &mut Unstructured<'_>) -> Result<Self> {
        let (mut nodes, mut facts, mut reports) = (Vec::new(), Vec::new(), Vec::new());
        let collation = *input.choose(&[Collation::Bytes, Collation::Language])?;
        for (name, number) in CERTNAMES.iter().zip(0..) {
            if !input.ratio(2, 3)? {
                continue;
            }
            let certname = ("certname", format!("\"{name}\""));
            let environment = ("environment", format!("\"{}\"", input.int_in_range(0..=1)?));
            let time = (*input.choose(&TIMES)?).to_owned();
            nodes.push(vec![
                certname.clone(),
                ("report_timestamp", time),
                environment.clone(),
            ]);
            for fact in FACTS {
                if input.ratio(1, 2)? {
                    let value = input.int_in_range(0..=2)?.to_string();
                    let name = ("name", format!("\"{fact}\""));
                    facts.push(vec![
                        certname.clone(),
                        environment.clone(),
                        name,
                        ("value", value),
                    ]);
                }
            }
            // The same report wherever it was sent to, but for when it got there.
            for hash in [number, number + 10] {
                if input.ratio(1, 2)? {
                    let time = ("receive_time", (*input.choose(&TIMES[1..])?).to_owned());
                    reports.push(vec![
                        certname.clone(),
                        time,
                        ("hash", format!("\"{hash:02}\"")),
                    ]);
                }
            }
        }
        Ok(Self {
            nodes,
            facts,
            reports,
            collation,
        })
    }

    /// All records of `entity`, as this database orders them.
    fn listed(&self, entity: &str, order: &RecordOrder) -> Vec<String> {
        let mut records = match entity {
            "nodes" => self.nodes.clone(),
            "facts" => self.facts.clone(),
            _ => self.reports.clone(),
        };
        let keys = |record: &Record| -> Vec<Option<String>> {
            let member = |name: &String| record.iter().find(|(known, _)| known == name);
            let members = order.members().iter().map(member);
            members
                .map(|member| Some(self.collation.key(&member?.1)))
                .collect()
        };
        records.sort_by(|a, b| {
            let (a, b) = (keys(a), keys(b));
            order.compare(
                |at| Some(a[at].as_deref()?.as_bytes()),
                |at| Some(b[at].as_deref()?.as_bytes()),
            )
        });
        records.iter().map(json).collect()
    }
}

impl Collation {
    /// A value that orders by bytes as `value` does here.
    fn key(self, value: &str) -> String {
        match self {
            Self::Language if value.starts_with('"') => {
                let letters = value.trim_matches('"').replace('-', "").to_lowercase();
                format!("\"{letters} {}", &value[1..])
            }
            Self::Language | Self::Bytes => value.to_owned(),
        }
    }
}

fn json(record: &Record) -> String {
    let members = record
        .iter()
        .map(|(name, value)| format!("\"{name}\":{value}"));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

fn array(records: &[String]) -> String {
    format!("[{}]", records.join(","))
}

/// The records of the answer to `fan`, where the backends list `lists`.
fn served(
    fan: &Fan,
    settings: &Settings,
    map: &FreshnessMap,
    lists: &[Vec<String>; 2],
) -> Vec<String> {
    let (merged, bodies) = settle(fan, &settings.backends, Some(map), |at, limit| {
        let list = &lists[at];
        let end = limit.map_or(list.len(), |limit| list.len().min(limit as usize));
        Some(array(&list[..end]).into_bytes())
    });
    let Outcome::Answer(answer) = &merged.outcome else {
        panic!("no answer but {:?}", merged.outcome)
    };
    let text = text(answer, &merged, &bodies);
    let spans = Elements::new(&text).map(|span| span.expect("an answer is JSON"));
    spans
        .map(|span| String::from_utf8_lossy(&text[span]).into_owned())
        .collect()
}
