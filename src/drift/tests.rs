use std::collections::BTreeMap;

use proptest::prelude::{any, prop_assert_eq, proptest};

use super::*;

/// What a backend has of a node: when it reported and when its facts came, in minutes, and whether
/// it is active.
type Copy = (Option<u8>, Option<u8>, bool);

fn minute(at: Option<u8>) -> Option<String> {
    at.map(|at| format!("2026-01-01T00:{at:02}:00.000Z"))
}

fn body(nodes: &BTreeMap<u8, Copy>) -> Vec<u8> {
    let nodes: Vec<_> = nodes
        .iter()
        .map(|(name, (report, facts, active))| {
            serde_json::json!({
                "certname": format!("n{name}"),
                "report_timestamp": minute(*report),
                "facts_timestamp": minute(*facts),
                "expired": (!active).then_some("2026-01-02T00:00:00.000Z"),
            })
        })
        .collect();
    serde_json::to_vec(&nodes).unwrap()
}

fn estate(backends: &[BTreeMap<u8, Copy>], strategy: Strategy) -> Estate {
    let bodies: Vec<_> = backends.iter().map(body).collect();
    let bodies: Vec<_> = (0..)
        .map(BackendId)
        .zip(bodies.iter().map(Vec::as_slice))
        .collect();
    let (map, damaged) = FreshnessMap::build(&bodies);
    assert!(damaged.is_empty());
    let names = (0..backends.len()).map(|at| format!("pdb-{at}")).collect();
    Estate::of(map, names, strategy, Vec::new(), Timestamp::UNIX_EPOCH)
}

/// The counts of the backend at `of`, or of all, told node by node.
fn naive(backends: &[BTreeMap<u8, Copy>], of: Option<usize>) -> Counts {
    let mut counts = Counts::default();
    for name in 0..8u8 {
        let holders: Vec<(usize, Copy)> = backends
            .iter()
            .enumerate()
            .filter_map(|(at, nodes)| Some((at, *nodes.get(&name)?)))
            .collect();
        let newness =
            |(at, (report, facts, _)): &(usize, Copy)| (*report, *facts, std::cmp::Reverse(*at));
        let Some(owner) = holders.iter().max_by_key(|it| newness(it)) else {
            continue;
        };
        let is_stale = |(_, (report, facts, _)): &(usize, Copy)| {
            let (newest, newest_facts, _) = owner.1;
            // A minute of facts is what is sent to both at once.
            *report != newest
                || match (newest_facts, facts) {
                    (Some(newest), Some(facts)) => newest - facts > 1,
                    (newest, facts) => newest.is_some() != facts.is_some(),
                }
        };
        let is_counted = |holder: &&(usize, Copy)| of.is_none_or(|of| holder.0 == of);
        if !holders.iter().any(|holder| is_counted(&holder)) {
            continue;
        }
        counts.held += 1;
        let owns = is_counted(&owner);
        counts.owned += u64::from(owns);
        counts.active += u64::from(owns && owner.1.2);
        counts.inactive += u64::from(owns && !owner.1.2);
        counts.only += u64::from(holders.len() == 1);
        counts.shared += u64::from(holders.len() > 1);
        let mut counted = holders.iter().filter(is_counted);
        counts.stale += u64::from(counted.any(is_stale));
    }
    counts
}

fn copy() -> impl proptest::strategy::Strategy<Value = Copy> {
    let time = || proptest::option::of(0..4u8);
    (time(), time(), any::<bool>())
}

proptest! {
    #[test]
    fn counts_are_those_of_nodes_looked_at_one_by_one(
        backends in proptest::collection::vec(
            proptest::collection::btree_map(0..8u8, copy(), 0..8),
            1..4,
        ),
    ) {
        let summary = estate(&backends, Strategy::Exact).summary();
        prop_assert_eq!(summary.all, naive(&backends, None));
        for (at, counts) in summary.backends.iter().enumerate() {
            prop_assert_eq!(*counts, naive(&backends, Some(at)));
        }
    }
}

#[test]
fn a_node_tells_why_its_owner_owns_it_and_how_far_the_others_are_behind() {
    let old = BTreeMap::from([
        (1, (Some(1), Some(1), true)),
        (2, (Some(9), Some(1), true)),
        (3, (Some(5), Some(5), true)),
        (4, (Some(5), None, true)),
        (5, (None, Some(5), true)),
    ]);
    let new = BTreeMap::from([
        (2, (Some(8), Some(2), true)),
        (3, (Some(5), Some(7), true)),
        (4, (Some(5), None, true)),
        (5, (Some(1), None, true)),
    ]);
    let backends = [old, new];
    let told = |name: &str, strategy| {
        let estate = estate(&backends, strategy);
        let node = estate.node(name).unwrap();
        let other = node.copies.get(1).map(|copy| copy.behind.sentence());
        let owner = estate.name(node.owner().backend).to_owned();
        (owner, node.why.sentence(), other)
    };
    for (name, strategy, owner, why, other) in [
        ("n1", Strategy::Exact, "pdb-0", "no other has it", None),
        (
            "n2",
            Strategy::Exact,
            "pdb-0",
            "newest report",
            Some("report 1m behind"),
        ),
        (
            "n3",
            Strategy::Exact,
            "pdb-1",
            "newest facts",
            Some("facts 2m behind"),
        ),
        // There facts decide nothing, and the copy that is taken is the older one.
        (
            "n3",
            Strategy::Freshness,
            "pdb-0",
            "configured first",
            Some("level"),
        ),
        (
            "n4",
            Strategy::Exact,
            "pdb-0",
            "configured first",
            Some("level"),
        ),
        (
            "n5",
            Strategy::Exact,
            "pdb-1",
            "newest report",
            Some("no report"),
        ),
        (
            "n5",
            Strategy::Static,
            "pdb-0",
            "configured first",
            Some("level"),
        ),
    ] {
        let expected = (owner.to_owned(), why, other.map(str::to_owned));
        assert_eq!(told(name, strategy), expected, "{name} {strategy:?}");
    }
    let estate = estate(&backends, Strategy::Static);
    assert!(estate.node("n5").unwrap().owner().behind.is_stale());
    assert!(estate.node("n6").is_none());
}

#[test]
fn a_filter_takes_the_nodes_that_it_names_and_another_text_is_refused() {
    let old = BTreeMap::from([
        (1, (Some(1), None, true)),
        (2, (Some(1), None, true)),
        (3, (Some(3), None, false)),
    ]);
    let new = BTreeMap::from([
        (2, (Some(2), None, true)),
        (3, (Some(3), None, true)),
        (4, (Some(3), None, true)),
    ]);
    let mut estate = estate(&[old, new], Strategy::Exact);
    estate.moved = Some(Moved {
        since: Timestamp::UNIX_EPOCH,
        nodes: ["n2".to_owned()].into(),
    });
    for (text, expected) in [
        ("backend=pdb-0", "n1 n2 n3"),
        ("owner=pdb-0", "n1 n3"),
        ("certname=2", "n2"),
        ("certname=", "n1 n2 n3 n4"),
        ("state=shared", "n2 n3"),
        ("state=only", "n1 n4"),
        ("state=stale", "n2"),
        ("state=moved", "n2"),
        ("state=active", "n1 n2 n4"),
        ("state=inactive", "n3"),
    ] {
        let filter = Filter::parse(text, &estate.backends).unwrap();
        let taken = estate.nodes().filter(|node| filter.takes(node));
        let taken: Vec<_> = taken.map(|node| node.certname.into_owned()).collect();
        assert_eq!(taken.join(" "), expected, "{text}");
    }
    for (text, why) in [
        ("shared", "is none of backend=NAME"),
        ("name=x", "is none of backend=NAME"),
        ("owner=pdb-2", "names no backend: there are pdb-0, pdb-1"),
        ("state=new", "names no state"),
    ] {
        let refused = Filter::parse(text, &estate.backends).unwrap_err();
        assert!(refused.to_string().contains(why), "{refused}");
    }
}

#[test]
fn what_depends_on_moves_needs_somebody_to_ask_for_them() {
    let backends = ["a".to_owned()];
    let read = |moves, filter: &str, gate| {
        let filters = [filter.to_owned()];
        Question::read(&backends, moves, Some(&filters), gate)
    };
    for (filter, gate) in [("state=moved", None), ("state=stale", Some("moved(a) > 0"))] {
        assert!(read(Moves::Asked, filter, gate).is_ok());
        let why = read(Moves::Unasked, filter, gate).unwrap_err().to_string();
        assert!(why.ends_with("needs --since: without it nobody knows who moved"));
    }
}

#[test]
fn a_gate_never_opens_while_a_backend_is_missing() {
    let held = BTreeMap::from([(1, (Some(1), None, true))]);
    let mut estate = estate(&[held, BTreeMap::new()], Strategy::Exact);
    let verdict = |estate: &Estate, gate| {
        let question = Question::read(&estate.backends, Moves::Unasked, None, Some(gate));
        question.unwrap().verdict(estate)
    };
    let passes = "owned(pdb-1) > 0";
    assert_eq!(verdict(&estate, passes), Ok(Verdict::Passed));
    let held = Verdict::Held("it holds that owned(pdb-0) > 0".to_owned());
    assert_eq!(verdict(&estate, "owned(pdb-0) > 0"), Ok(held));
    estate
        .missing
        .push((BackendId(1), "it answered with status 503".to_owned()));
    let why = verdict(&estate, passes).unwrap_err().to_string();
    assert_eq!(
        why,
        "the estate could not be read whole: pdb-1: it answered with status 503"
    );
}

#[test]
fn a_backend_to_which_nobody_moved_counts_none_if_somebody_asked() {
    let nodes = BTreeMap::from([(0, (Some(1), Some(1), true))]);
    let mut estate = estate(&[nodes, BTreeMap::new()], Strategy::Exact);
    let moved = |estate: &Estate| {
        let Summary { backends, all } = estate.summary();
        [backends[0].moved, backends[1].moved, all.moved]
    };
    assert_eq!(moved(&estate), [None; 3]);
    estate.moved = Some(Moved {
        since: Timestamp::UNIX_EPOCH,
        nodes: HashSet::new(),
    });
    assert_eq!(moved(&estate), [Some(0); 3]);
}
