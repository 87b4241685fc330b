//! The freshness map is the same however the lists of nodes arrive, and takes little room meanwhile.

#![cfg(test)]

use std::fmt::Write;

use jiff::Timestamp;
use pdbmux_core::json::ScanError;
use pdbmux_core::merge::owners::copies::{Copies, State, Told};
use pdbmux_core::merge::owners::{ArrivingNodes, Census, FreshnessMap, Nodes, Shares};
use pdbmux_core::round::BackendId;
use pdbmux_core::settings::Strategy;
use proptest::prelude::{Just, Strategy as Generate, any, prop_assert_eq, prop_oneof, proptest};
use proptest::{collection, option};

/// Certnames as they may be spelled; the first two are one.
const NAMES: [&str; 6] = [r"a\/b", "a/b", r"\u00e9", "a-1", "a1", "B"];

#[derive(Debug, Clone)]
struct Node {
    name: usize,
    times: [Option<u8>; 3],
    state: State,
}

fn node() -> impl Generate<Value = Node> {
    let time = || option::of(0..3u8);
    let state = prop_oneof![Just(State::Active), Just(State::Inactive)];
    (0..NAMES.len(), [time(), time(), time()], state).prop_map(|(name, times, state)| Node {
        name,
        times,
        state,
    })
}

/// No backend holds a node twice.
fn backend() -> impl Generate<Value = Vec<Node>> {
    collection::vec(node(), 0..6).prop_map(|mut nodes| {
        let mut seen = std::collections::BTreeSet::new();
        nodes.retain(|node| seen.insert(certname(node.name)));
        nodes
    })
}

fn certname(name: usize) -> String {
    serde_json::from_str(&format!("\"{}\"", NAMES[name])).unwrap()
}

fn time(seconds: u8) -> String {
    format!("2026-01-01T00:00:{seconds:02}.000Z")
}

fn body(nodes: &[Node]) -> String {
    let nodes = nodes.iter().map(|node| {
        let [report, facts, catalog] = node
            .times
            .map(|at| at.map_or("null".into(), |at| format!("\"{}\"", time(at))));
        let expired = match node.state {
            State::Active => "null",
            State::Inactive => "\"2026-01-01T00:00:00.000Z\"",
        };
        format!(
            r#"{{"certname":"{}","report_timestamp":{report},"facts":[{{"]":1}}],"facts_timestamp":{facts},
            "catalog_timestamp":{catalog},"deactivated":null,"expired":{expired}}}"#,
            NAMES[node.name]
        )
    });
    format!("[{}]", nodes.collect::<Vec<_>>().join(",\n"))
}

/// Reads a text in pieces that end at these places.
fn in_pieces(backend: BackendId, text: &[u8], cuts: &[usize]) -> Result<Nodes, ScanError> {
    let mut ends: Vec<_> = cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
    ends.push(text.len());
    ends.sort_unstable();
    let mut nodes = ArrivingNodes::of(backend);
    let mut start = 0;
    for end in ends {
        nodes.feed(&text[start..end])?;
        start = end;
    }
    nodes.finish()
}

/// All that a map can be asked, about these backends.
#[derive(Debug, PartialEq)]
struct Answers<'m> {
    copies: [Vec<Copies<'m>>; 3],
    holders: Vec<Vec<BackendId>>,
    census: Census,
    len: usize,
    of_backends: Vec<(bool, bool, Option<u64>)>,
    shares: Shares,
}

fn answers(map: &FreshnessMap, backends: usize) -> Answers<'_> {
    let ids: Vec<_> = (0..).map(BackendId).take(backends).collect();
    let of = |id: &BackendId| (map.covers(*id), map.lists_by_bytes(*id), map.held_by(*id));
    let names: Vec<_> = ids.iter().map(|id| format!("pdb-{}", id.0)).collect();
    Answers {
        copies: [Strategy::Exact, Strategy::Freshness, Strategy::Static]
            .map(|strategy| map.copies(strategy).collect()),
        holders: (0..NAMES.len())
            .map(|name| map.holders(&certname(name)))
            .collect(),
        census: map.census(),
        len: map.len(),
        of_backends: ids.iter().map(of).collect(),
        shares: map.shares(&ids, Some("source"), &names, 1),
    }
}

proptest! {
    #[test]
    fn however_the_answers_are_cut_the_map_is_that_of_the_whole(
        backends in collection::vec((backend(), collection::vec(any::<usize>(), 0..12)), 1..4),
        // Where an answer breaks off, if it does, or what stands there instead of what was sent.
        damage in option::of((0..3usize, any::<usize>(), option::of(any::<u8>()))),
    ) {
        let mut bodies: Vec<_> = backends.iter().map(|(nodes, _)| body(nodes).into_bytes()).collect();
        if let Some((at, place, byte)) = damage && let Some(text) = bodies.get_mut(at) {
            let place = place % text.len();
            match byte {
                Some(byte) => text[place] = byte,
                None => text.truncate(place),
            }
        }
        let parts: Vec<_> = (0..).map(BackendId).zip(bodies.iter().map(Vec::as_slice)).collect();
        let (whole, damaged) = FreshnessMap::build(&parts);
        let (mut lists, mut refused) = (Vec::new(), Vec::new());
        for ((id, text), (_, cuts)) in parts.iter().zip(&backends) {
            match in_pieces(*id, text, cuts) {
                Ok(nodes) => lists.push(nodes),
                Err(error) => refused.push((*id, error)),
            }
        }
        let arrived = FreshnessMap::of(lists);
        prop_assert_eq!(refused, damaged);
        prop_assert_eq!(answers(&arrived, parts.len()), answers(&whole, parts.len()));
    }

    #[test]
    fn r044_the_map_tells_what_the_records_say(backends in collection::vec(backend(), 1..4)) {
        let lists = (0..).map(BackendId).zip(&backends).map(|(id, nodes)| {
            Nodes::read(id, body(nodes).as_bytes()).unwrap()
        });
        let map = FreshnessMap::of(lists.collect());
        let mut names: Vec<_> = backends.iter().flatten().map(|node| certname(node.name)).collect();
        names.sort_unstable_by_key(|name| serde_json::to_string(name).unwrap());
        names.dedup();
        let told: Vec<_> = map.copies(Strategy::Exact).map(|it| it.certname.into_owned()).collect();
        prop_assert_eq!(&told, &names);
        for copies in map.copies(Strategy::Exact) {
            let mut expected: Vec<_> = (0..)
                .map(BackendId)
                .zip(&backends)
                .flat_map(|(id, nodes)| nodes.iter().map(move |node| (id, node)))
                .filter(|(_, node)| certname(node.name) == copies.certname)
                .map(|(id, node)| (std::cmp::Reverse(node.times), id, node.state))
                .collect();
            expected.sort_unstable_by_key(|(times, id, _)| (*times, *id));
            let held: Vec<_> = copies
                .held
                .iter()
                .map(|held| {
                    let times = Told::ALL.map(|told| held.stamp.of(told));
                    (times, held.backend, held.state)
                })
                .collect();
            let read = |at: Option<u8>| at.map(|at| time(at).parse::<Timestamp>().unwrap());
            let expected: Vec<_> = expected
                .into_iter()
                .map(|(times, id, state)| (times.0.map(read), id, state))
                .collect();
            prop_assert_eq!(held, expected);
        }
    }
}

/// Many nodes as PuppetDB tells them, with these columns beside the certname.
fn many(nodes: usize, columns: &str) -> String {
    let mut text = String::from("[");
    for node in 0..nodes {
        let comma = if node == 0 { "" } else { "," };
        let _ = write!(
            text,
            r#"{comma}{{"certname":"node{node:06}.example.net",{columns}}}"#
        );
    }
    text.push(']');
    text
}

#[test]
fn what_is_kept_while_a_list_arrives_is_less_than_its_text() {
    let whole = concat!(
        r#""report_timestamp":"2026-01-01T00:00:00.000Z","facts_timestamp":"2026-01-01T00:00:00.000Z","#,
        r#""catalog_timestamp":"2026-01-01T00:00:00.000Z","deactivated":null,"expired":null,"#,
        r#""facts_environment":"production","catalog_environment":"production","#,
        r#""report_environment":"production","latest_report_status":"unchanged","#,
        r#""latest_report_hash":"0123456789012345678901234567890123456789","latest_report_noop":false,"#,
        r#""latest_report_noop_pending":false,"latest_report_corrective_change":false,"#,
        r#""latest_report_job_id":null,"cached_catalog_status":"not_used""#
    );
    let asked_for = r#""report_timestamp":"2026-01-01T00:00:00.000Z""#;
    // In hundredths of the text: what is kept, and the most at one time, with room to grow into.
    for (columns, kept, at_most) in [(whole, 10, 25), (asked_for, 50, 85)] {
        let text = many(5_000_000 / (columns.len() + 38), columns);
        let mut held = 0;
        let mut nodes = None;
        let allocated = allocation_counter::measure(|| {
            let mut arriving = ArrivingNodes::of(BackendId(0));
            for chunk in text.as_bytes().chunks(64 << 10) {
                arriving.feed(chunk).unwrap();
            }
            held = arriving.held();
            nodes = Some(arriving.finish().unwrap());
        });
        let of_text = |bytes: usize| bytes * 100 / text.len();
        let room = usize::try_from(allocated.bytes_max).unwrap();
        let left = usize::try_from(allocated.bytes_current).unwrap();
        assert!(of_text(held) <= kept, "{} %", of_text(held));
        assert!(of_text(room) <= at_most, "{} %", of_text(room));
        assert!(left <= held, "{left} bytes are left of {held}");
        // None for each node.
        assert!(allocated.count_total < 300, "{}", allocated.count_total);
        let map = allocation_counter::measure(|| {
            let map = FreshnessMap::of(nodes.take().into_iter().collect());
            assert!(map.len() > 5_000);
        });
        let room = usize::try_from(map.bytes_max).unwrap();
        assert!(of_text(room) <= at_most, "{} %", of_text(room));
        assert!(map.count_total < 100, "{}", map.count_total);
    }
}
