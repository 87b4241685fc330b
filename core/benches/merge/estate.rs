//! What merges are measured on. Shared with the instruction counts.

use std::fmt::Write;
use std::hint::black_box;
use std::sync::Arc;

use pdbmux_core::merge::owners::FreshnessMap;
use pdbmux_core::merge::records::{Known, Stream};
use pdbmux_core::merge::{Context, Fan, Merged, Outcome};
use pdbmux_core::params::Params;
use pdbmux_core::plan::{Plan, plan};
use pdbmux_core::round::{BackendId, Part, Reply};
use pdbmux_core::route::Route;
use pdbmux_core::settings::{Settings, Strategy};

/// Facts of a node in the benchmark: about what an agent of today sends.
const FACTS: usize = 60;
/// What a connection to a backend hands on at most.
const PART: usize = 128 << 10;

/// Two backends that share half of their nodes.
pub(crate) struct Estate {
    pub(crate) facts: [String; 2],
    pub(crate) nodes: [String; 2],
    /// The same number of bytes with one record for each node.
    pub(crate) one_fact: [String; 2],
}

impl Estate {
    /// Backends whose `/facts` has `size` bytes.
    pub(crate) fn new(size: usize) -> Self {
        let facts = [0, 1].map(|backend| records(backend, FACTS, size));
        let nodes = [0, 1].map(|backend| {
            let count = facts[backend].1;
            array(certnames(backend, count).enumerate().map(|(at, certname)| {
                let minute = (at + backend) % 2;
                node(at, &certname, &format!("2026-11-13T00:{minute:02}:00.014Z"))
            }))
        });
        Self {
            facts: facts.map(|(text, _)| text),
            nodes,
            one_fact: [0, 1].map(|backend| records(backend, 1, size).0),
        }
    }
}

/// As PuppetDB answers `/nodes`.
fn node(at: usize, certname: &str, time: &str) -> String {
    format!(
        concat!(
            r#"{{"deactivated":null,"latest_report_hash":"{at:040x}","facts_environment":"production","#,
            r#""cached_catalog_status":"not_used","report_environment":"production","#,
            r#""latest_report_corrective_change":false,"catalog_environment":"production","#,
            r#""facts_timestamp":"{time}","latest_report_noop":false,"expired":null,"#,
            r#""latest_report_noop_pending":false,"report_timestamp":"{time}","certname":"{certname}","#,
            r#""catalog_timestamp":"{time}","latest_report_job_id":null,"#,
            r#""latest_report_status":"unchanged"}}"#
        ),
        at = at,
        time = time,
        certname = certname
    )
}

fn certnames(backend: usize, count: usize) -> impl Iterator<Item = String> {
    // The second half of the first backend's nodes is the first half of the other's.
    let first = backend * count / 2;
    (first..first + count).map(|node| format!("node-{node:07}.eu-central.example.com"))
}

fn array(records: impl Iterator<Item = String>) -> String {
    format!("[{}]", records.collect::<Vec<_>>().join(","))
}

fn records(backend: usize, facts: usize, size: usize) -> (String, usize) {
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
    let count = size / of_node;
    let all = certnames(backend, count).flat_map(|certname| {
        (0..facts)
            .map(move |fact| record(&certname, fact))
            .collect::<Vec<_>>()
    });
    (array(all), count)
}

/// Merges what the backends of `estate` answer to `path`: `bodies`.
pub(crate) struct Merging<'e> {
    settings: Settings,
    map: Arc<FreshnessMap>,
    fan: Fan,
    round: [Part<'e>; 2],
}

impl<'e> Merging<'e> {
    pub(crate) fn new(estate: &Estate, path: &str, bodies: &'e [String; 2]) -> Self {
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
        let ids = [BackendId(0), BackendId(1)];
        let (map, _) =
            FreshnessMap::build(&ids.map(|id| (id, estate.nodes[id.index()].as_bytes())));
        let round = ids.map(|backend| Part {
            backend,
            reply: Some(Reply {
                status: 200,
                total: None,
                body: bodies[backend.index()].as_bytes(),
                scan: None,
            }),
        });
        Self {
            settings,
            map: Arc::new(map),
            fan,
            round,
        }
    }

    /// The same as the bodies arrive, by turns and a part at a time.
    pub(crate) fn stream(&self) -> usize {
        let plan = self.fan.streamed().unwrap();
        let known = Known {
            backends: &self.settings.backends,
            freshness: Some(&self.map),
            shares: None,
        };
        let sources = self.round.map(|part| part.backend);
        let mut stream = Stream::new(plan, &sources, known);
        let mut bodies = self.round.map(|part| part.reply.unwrap().body.chunks(PART));
        let mut parts: [&[u8]; 2] = [&[], &[]];
        let mut length = 0;
        while let Some(next) = stream
            .wanted()
            .into_iter()
            .max_by_key(|at| bodies[usize::from(*at)].len())
        {
            let step = match bodies[usize::from(next)].next() {
                Some(part) => {
                    parts[usize::from(next)] = black_box(part);
                    Stream::feed
                }
                None => Stream::end,
            };
            length += step(&mut stream, next, &parts).unwrap().len();
        }
        length
    }

    pub(crate) fn run(&self) -> Merged {
        let context = Context {
            backends: &self.settings.backends,
            freshness: Some(&self.map),
            shares: None,
        };
        let merged = self
            .fan
            .merge(black_box(&self.round), &[None, None], context);
        assert!(matches!(merged.outcome, Outcome::Answer(_)));
        merged
    }
}
