//! A page of what two backends hold is that page of what they hold together, whatever their limits
//! cut off on the way.

#![no_main]

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use pdbmux_core::json::{Elements, Members};
use pdbmux_core::merge::owners::FreshnessMap;
use pdbmux_core::merge::{Fan, Merge, Outcome};
use pdbmux_core::paging::{RecordOrder, Window};
use pdbmux_core::plan::Plan;
use pdbmux_core::round::BackendId;
use pdbmux_core::settings::{Settings, Strategy};
use pdbmux_fuzz::round::{planned, settings, settle, text};

const TIMES: [&str; 3] = [
    "null",
    "\"2020-01-01T00:00:00.000Z\"",
    "\"2021-01-01T00:00:00.000Z\"",
];
const FACTS: [&str; 3] = ["os", "pdbmux_source", "uptime"];

fuzz_target!(|input: &[u8]| {
    let _ = check(&mut Unstructured::new(input));
});

fn check(input: &mut Unstructured<'_>) -> Result<()> {
    let settings = settings(*input.choose(&[Strategy::Freshness, Strategy::Static])?);
    let path = *input.choose(&["nodes", "facts"])?;
    let columns = match path {
        "nodes" => ["certname", "report_timestamp", "environment"],
        _ => ["certname", "name", "value"],
    };
    let mut order_by = Vec::new();
    for _ in 0..input.int_in_range(0..=2)? {
        let field = input.choose(&columns)?;
        let direction = input.choose(&["asc", "desc"])?;
        order_by.push(format!(r#"{{"field":"{field}","order":"{direction}"}}"#));
    }
    let (limit, offset) = (input.int_in_range(1..=4)?, input.int_in_range(0..=4)?);
    let target = format!(
        "/pdb/query/v4/{path}?limit={limit}&offset={offset}&order_by=[{}]",
        order_by.join(",")
    );
    let Some(Plan::Fan(fan)) = planned(&target, &settings) else {
        panic!("{target} is not planned")
    };
    let Merge::Records(merge) = fan.merge.clone() else {
        panic!("{target} lists no records")
    };
    let estates = [Estate::new(input)?, Estate::new(input)?];
    let nodes = estates.each_ref().map(|estate| array(&estate.nodes));
    let nodes = [
        (BackendId(0), nodes[0].as_bytes()),
        (BackendId(1), nodes[1].as_bytes()),
    ];
    let (map, _) = FreshnessMap::build(&nodes);
    let lists = estates.map(|estate| {
        sorted(
            if path == "nodes" {
                estate.nodes
            } else {
                estate.facts
            },
            &merge.order,
        )
    });

    let page = elements(&fan, &settings, &map, &lists);
    let mut whole = merge;
    let window = std::mem::take(&mut whole.window);
    assert_eq!(
        window,
        Window {
            offset,
            limit: Some(limit)
        }
    );
    let whole = Fan {
        ask: fan.ask.clone().with_limit(None),
        merge: Merge::Records(whole),
        ..fan
    };
    let all = elements(&whole, &settings, &map, &lists);
    assert_eq!(page, window.cut(&all), "{target} of {lists:#?}");
    Ok(())
}

/// The records of one backend.
struct Estate {
    nodes: Vec<String>,
    facts: Vec<String>,
}

impl Estate {
    fn new(input: &mut Unstructured<'_>) -> Result<Self> {
        let (mut nodes, mut facts) = (Vec::new(), Vec::new());
        for certname in ["a", "b", "c", "d", "e", "f"] {
            if !input.ratio(1, 2)? {
                continue;
            }
            let time = input.choose(&TIMES)?;
            let environment = input.int_in_range(0..=1)?;
            nodes.push(format!(
                r#"{{"certname":"{certname}","report_timestamp":{time},"environment":"{environment}"}}"#
            ));
            for name in FACTS {
                if input.ratio(1, 2)? {
                    let value = input.int_in_range(0..=2)?;
                    facts.push(format!(
                        r#"{{"certname":"{certname}","environment":"{environment}","name":"{name}","value":{value}}}"#
                    ));
                }
            }
        }
        Ok(Self { nodes, facts })
    }
}

fn array(records: &[String]) -> String {
    format!("[{}]", records.join(","))
}

/// `records` in the order that a backend is asked for.
fn sorted(mut records: Vec<String>, order: &RecordOrder) -> Vec<String> {
    let member = |record: &String, at: usize| {
        let named = |(key, _): &(std::ops::Range<usize>, _)| {
            record[key.start + 1..key.end - 1] == order.members()[at]
        };
        let (_, value) = Members::new(record.as_bytes()).flatten().find(named)?;
        Some(record[value].to_owned())
    };
    records.sort_by(|a, b| {
        let keys = |record| {
            (0..order.members().len())
                .map(|at| member(record, at))
                .collect()
        };
        let (a, b): (Vec<Option<String>>, Vec<Option<String>>) = (keys(a), keys(b));
        order.compare(
            |at| a[at].as_deref().map(str::as_bytes),
            |at| b[at].as_deref().map(str::as_bytes),
        )
    });
    records
}

/// The records of the answer to `fan` where each backend holds one of `lists`.
fn elements(
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
