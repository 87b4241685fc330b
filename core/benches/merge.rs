//! What a merge by certname costs, against one pass of memchr over the same bytes.

// Helpers of benches may fail like tests.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::fmt::Write;
use std::sync::LazyLock;

use divan::counter::BytesCount;
use divan::{AllocProfiler, Bencher, black_box};
use pdbmux_core::json::Records;
use pdbmux_core::merge::owners::FreshnessMap;
use pdbmux_core::merge::{Context, Outcome};
use pdbmux_core::params::Params;
use pdbmux_core::plan::{Plan, plan};
use pdbmux_core::round::{BackendId, Part, Reply};
use pdbmux_core::route::Route;
use pdbmux_core::settings::{Settings, Strategy};

#[global_allocator]
static ALLOC: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

/// Facts of a node in the benchmark: about what an agent of today sends.
const FACTS: usize = 60;
/// Bytes of one backend's `/facts`.
const SIZE: usize = 50_000_000;

/// Two backends that share half of their nodes.
struct Estate {
    facts: [String; 2],
    nodes: [String; 2],
    /// The same number of bytes with one record for each node.
    one_fact: [String; 2],
}

static ESTATE: LazyLock<Estate> = LazyLock::new(|| {
    let facts = [0, 1].map(|backend| records(backend, FACTS));
    let nodes = [0, 1].map(|backend| {
        let count = facts[backend].1;
        array(certnames(backend, count).enumerate().map(|(at, certname)| {
            let minute = (at + backend) % 2;
            format!(
                r#"{{"certname":"{certname}","report_timestamp":"2026-11-13T00:0{minute}:00.014Z"}}"#
            )
        }))
    });
    Estate {
        facts: facts.map(|(text, _)| text),
        nodes,
        one_fact: [0, 1].map(|backend| records(backend, 1).0),
    }
});

fn certnames(backend: usize, count: usize) -> impl Iterator<Item = String> {
    // The second half of the first backend's nodes is the first half of the other's.
    let first = backend * count / 2;
    (first..first + count).map(|node| format!("node-{node:07}.eu-central.example.com"))
}

fn array(records: impl Iterator<Item = String>) -> String {
    format!("[{}]", records.collect::<Vec<_>>().join(","))
}

fn records(backend: usize, facts: usize) -> (String, usize) {
    let record = |certname: &str, fact: usize| {
        let value = match fact % 3 {
            0 => format!(r#""value of {fact}""#),
            1 => (fact * 1_048_576).to_string(),
            _ => r#"{"full":"8.15.0","major":"8","list":["a","b"]}"#.into(),
        };
        let mut text = String::new();
        write!(
            text,
            r#"{{"certname":"{certname}","environment":"production","name":"fact_{fact}","value":{value}}}"#
        )
        .unwrap();
        text
    };
    let of_node: usize = (0..facts)
        .map(|fact| record("node-0000000.eu-central.example.com", fact).len() + 1)
        .sum();
    let count = SIZE / of_node;
    let all = certnames(backend, count).flat_map(|certname| {
        (0..facts)
            .map(move |fact| record(&certname, fact))
            .collect::<Vec<_>>()
    });
    (array(all), count)
}

fn merge(bencher: Bencher<'_, '_>, path: &str, bodies: &[String; 2]) {
    let settings = Settings {
        backends: vec!["pdb-a".into(), "pdb-b".into()],
        strategy: Strategy::Freshness,
        source: Some("pdbmux_source".into()),
    };
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let route = Route::find(path).unwrap().unwrap();
    let plan = plan(&route, &Params::read(query).unwrap(), &settings).unwrap();
    let Plan::Fan(fan) = plan else {
        panic!("not merged")
    };
    let nodes = &ESTATE.nodes;
    let ids = [BackendId(0), BackendId(1)];
    let (map, _) = FreshnessMap::build(&ids.map(|id| (id, nodes[id.index()].as_bytes())));
    let context = Context {
        backends: &settings.backends,
        freshness: Some(&map),
    };
    let round = ids.map(|backend| Part {
        backend,
        reply: Some(Reply {
            status: 200,
            total: None,
            body: bodies[backend.index()].as_bytes(),
        }),
    });
    let bytes: usize = bodies.iter().map(String::len).sum();
    bencher.counter(BytesCount::new(bytes)).bench(|| {
        let merged = fan.merge(black_box(&round), &[None, None], context);
        assert!(matches!(merged.outcome, Outcome::Answer(_)));
        merged
    });
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn memchr(bencher: Bencher<'_, '_>) {
    let bodies = &ESTATE.facts;
    let bytes: usize = bodies.iter().map(String::len).sum();
    bencher.counter(BytesCount::new(bytes)).bench(|| {
        let passes = bodies
            .iter()
            .map(|body| memchr::memchr(0, black_box(body.as_bytes())));
        passes.flatten().count()
    });
}

/// The least that a merge does: finding the records and their members.
#[divan::bench(sample_count = 10, sample_size = 1)]
fn scan(bencher: Bencher<'_, '_>) {
    let bodies = &ESTATE.facts;
    let bytes: usize = bodies.iter().map(String::len).sum();
    bencher.counter(BytesCount::new(bytes)).bench(|| {
        let mut count = 0;
        for body in bodies {
            let keys = ["certname", "name", "environment"];
            let mut records = Records::new(black_box(body.as_bytes()), &keys);
            let mut fields = [None, None, None];
            while records.next(&mut fields).unwrap().is_some() {
                count += 1;
            }
        }
        count
    });
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn facts(bencher: Bencher<'_, '_>) {
    merge(bencher, "/pdb/query/v4/facts", &ESTATE.facts);
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn facts_of_one_each(bencher: Bencher<'_, '_>) {
    merge(bencher, "/pdb/query/v4/facts/fact_0", &ESTATE.one_fact);
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn facts_in_order(bencher: Bencher<'_, '_>) {
    let path = "/pdb/query/v4/facts?order_by=[{\"field\":\"certname\"}]";
    merge(bencher, path, &ESTATE.facts);
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn nodes(bencher: Bencher<'_, '_>) {
    merge(bencher, "/pdb/query/v4/nodes", &ESTATE.nodes);
}
