use super::*;
use crate::plan::{Ask, Scope};

const A: BackendId = BackendId(0);
const B: BackendId = BackendId(1);
const C: BackendId = BackendId(2);

/// A node with the minutes of its last report, facts and catalog; 0 for never.
fn node(certname: &str, minutes: [u32; 3]) -> String {
    let columns = ["report_timestamp", "facts_timestamp", "catalog_timestamp"];
    let times = columns.iter().zip(minutes).map(|(column, minute)| {
        let time = match minute {
            0 => "null".to_owned(),
            _ => format!("\"2026-01-01T00:{minute:02}:00.000Z\""),
        };
        format!(",\"{column}\":{time}")
    });
    format!(
        "{{\"certname\":\"{certname}\"{}}}",
        times.collect::<String>()
    )
}

fn map(backends: &[&[(&str, [u32; 3])]]) -> FreshnessMap {
    let body = |nodes: &&[(&str, [u32; 3])]| {
        let nodes: Vec<_> = nodes.iter().map(|(name, at)| node(name, *at)).collect();
        format!("[{}]", nodes.join(","))
    };
    let bodies: Vec<_> = backends.iter().map(body).collect();
    let bodies: Vec<_> = (0..)
        .map(BackendId)
        .zip(bodies.iter().map(String::as_bytes))
        .collect();
    FreshnessMap::build(&bodies).0
}

fn names() -> Vec<String> {
    ["pdb-a", "pdb-b", "pdb-c"].map(str::to_owned).to_vec()
}

fn owned(map: &FreshnessMap, among: &[BackendId], of: BackendId) -> Option<String> {
    let shares = map.shares(among, None, &names(), usize::MAX);
    shares.of(of).unwrap().owned().map(str::to_owned)
}

fn in_array(names: &str) -> String {
    format!(r#"["or",["in","certname",["array",[{names}]]]]"#)
}

#[test]
fn a_node_goes_to_the_newest_report_then_facts_then_catalog_then_the_first() {
    for (a, b, goes_to) in [
        ([2, 1, 1], [1, 9, 9], A),
        ([1, 9, 9], [2, 1, 1], B),
        ([0, 9, 9], [1, 0, 0], B),
        ([1, 2, 1], [1, 1, 9], A),
        ([1, 1, 9], [1, 2, 1], B),
        ([0, 0, 1], [0, 0, 2], B),
        ([1, 1, 1], [1, 1, 1], A),
        ([0, 0, 0], [0, 0, 0], A),
    ] {
        let map = map(&[&[("n", a)], &[("n", b)]]);
        let expected = |id| if id == goes_to { ALWAYS } else { NEVER };
        for id in [A, B] {
            assert_eq!(
                owned(&map, &[A, B], id).as_deref(),
                Some(expected(id)),
                "{a:?} {b:?}"
            );
        }
    }
}

#[test]
fn whoever_is_out_owns_nothing() {
    let map = map(&[
        &[("m", [1, 0, 0]), ("n", [1, 0, 0])],
        &[("n", [2, 0, 0])],
        &[("n", [3, 0, 0])],
    ]);
    let not_n = format!("[\"not\",{}]", in_array(r#""n""#));
    assert_eq!(owned(&map, &[A, B, C], A), Some(not_n.clone()));
    assert_eq!(owned(&map, &[A, B, C], B).as_deref(), Some(NEVER));
    assert_eq!(owned(&map, &[A, B, C], C).as_deref(), Some(ALWAYS));
    assert_eq!(owned(&map, &[A, B], A), Some(not_n));
    assert_eq!(owned(&map, &[A, B], B).as_deref(), Some(ALWAYS));
    // Alone it has nothing that another holds.
    assert_eq!(owned(&map, &[B], B), None);
}

#[test]
fn where_no_node_is_held_twice_nothing_is_asked_beside_the_query() {
    let map = map(&[&[("m", [1, 0, 0])], &[("n", [2, 0, 0])]]);
    let shares = map.shares(&[A, B], None, &names(), usize::MAX);
    assert!(!shares.overlap());
    assert_eq!(shares.of(A).unwrap().owned(), None);
    assert_eq!(shares.of(C), None, "it is not part of the map");
}

#[test]
fn the_shorter_list_is_sent_and_long_ones_in_chunks() {
    let held: Vec<_> = (0..250).map(|at| format!("n{at:03}")).collect();
    let all: Vec<_> = held.iter().map(|name| (&**name, [1, 0, 0])).collect();
    let newer: Vec<_> = held[..101]
        .iter()
        .map(|name| (&**name, [2, 0, 0]))
        .collect();
    let both = map(&[&all, &newer]);
    let condition = owned(&both, &[A, B], A).unwrap();
    assert!(
        condition.starts_with("[\"not\",[\"or\",[\"in\""),
        "{condition}"
    );
    assert_eq!(condition.matches("\"in\"").count(), 2);
    assert_eq!(condition.matches("\"n").count() - 1, 101);
    let most: Vec<_> = held[1..].iter().map(|name| (&**name, [2, 0, 0])).collect();
    assert_eq!(
        owned(&map(&[&all, &most]), &[A, B], A),
        Some(in_array(r#""n000""#))
    );
}

#[test]
fn each_backend_is_asked_for_its_own() {
    let map = map(&[&[("m", [1, 0, 0]), ("n", [1, 0, 0])], &[("n", [2, 0, 0])]]);
    let shares = map.shares(&[A, B], Some("src"), &names(), usize::MAX);
    let asked = |query: &str, of| {
        let ask = Ask::own("/pdb/query/v4/nodes", &[("query", query)]).of(Scope::Owned);
        let target = ask.within(shares.of(of).unwrap()).target();
        let (_, query) = target.split_once('?').unwrap();
        let params = crate::params::Params::read(query).unwrap();
        params.get("query").map(str::to_owned)
    };
    let not_n = format!("[\"not\",{}]", in_array(r#""n""#));
    let condition = r#"["=","a",1.0]"#;
    assert_eq!(
        asked(condition, A),
        Some(format!(r#"["and",{not_n},{condition}]"#))
    );
    assert_eq!(
        asked(condition, B),
        Some(format!(r#"["and",{ALWAYS},{condition}]"#))
    );
    // The source is a constant in each of them.
    assert_eq!(asked(r#"["=","src","pdb-a"]"#, A), Some(not_n.clone()));
    assert_eq!(asked(r#"["=","src","pdb-a"]"#, B).as_deref(), Some(NEVER));
    // PuppetDB would take what is left of these for something else.
    let any = r#"["=","node_state","any"]"#;
    for connective in ["and", "or"] {
        let both = format!(r#"["{connective}",["=","src","pdb-a"],{any}]"#);
        for (of, share, truth) in [(A, &*not_n, ALWAYS), (B, ALWAYS, NEVER)] {
            assert_eq!(
                asked(&both, of),
                Some(format!(r#"["and",{share},["{connective}",{truth},{any}]]"#))
            );
        }
    }
    // A stale copy's latest report is not the node's.
    let latest = r#"["=","latest_report?",true]"#;
    assert_eq!(
        asked(latest, A),
        Some(format!(r#"["and",{not_n},["and",{not_n},{latest}]]"#))
    );
    let older = r#"["=","latest_report?",false]"#;
    assert_eq!(
        asked(older, A),
        Some(format!(r#"["and",{not_n},["or",["not",{not_n}],{older}]]"#))
    );
    // No stale copy matches in a subquery either; history is everybody's.
    let subqueries = r#"["and",["in","hash",["from","nodes",["extract",["h"],["=","x",1]]]],["in","c",["extract","c",["select_facts",["subquery","reports",["=","y",2]]]]],["in","z",["from","catalogs",["limit",1]]]]"#;
    let expected = format!(
        r#"["and",{not_n},["and",["in","hash",["from","nodes",["extract",["h"],["and",{not_n},["=","x",1]]]]],["in","c",["extract","c",["select_facts",["and",{not_n},["subquery","reports",["=","y",2]]]]]],["in","z",["from","catalogs",{not_n},["limit",1]]]]]"#
    );
    assert_eq!(asked(subqueries, A), Some(expected));
    // Every column.
    assert_eq!(
        asked(r#"["extract",[]]"#, A),
        Some(format!(r#"["extract",[],{not_n}]"#))
    );
    assert_eq!(
        asked("[]", A).as_deref(),
        Some("[]"),
        "for the backend to refuse"
    );
    // What is no AST is for the backend to refuse.
    assert_eq!(asked("nodes {}", A).as_deref(), Some("nodes {}"));
}

#[test]
fn a_question_without_a_condition_gets_one_and_keeps_its_limit() {
    let map = map(&[&[("n", [1, 0, 0])], &[("n", [2, 0, 0])]]);
    let shares = map.shares(&[A, B], None, &names(), usize::MAX);
    let ask = Ask::own("/pdb/query/v4/nodes", &[("origin", "x")]);
    let ask = ask.of(Scope::Owned).with_limit(Some(7));
    let target = ask.within(shares.of(A).unwrap()).target();
    let never = "%5B%22%3D%22%2C%22certname%22%2C%22%22%5D";
    assert_eq!(
        target,
        format!("/pdb/query/v4/nodes?origin=x&query={never}&limit=7")
    );
    let everything = ask.of(Scope::Everything);
    assert_eq!(everything.within(shares.of(A).unwrap()), everything);
}

#[test]
fn t47_the_state_of_a_node_is_its_owners_also_for_its_history() {
    let old = r#"{"certname":"m","report_timestamp":"2026-01-01T00:00:00Z","expired":null}"#;
    let gone = r#"{"certname":"m","report_timestamp":"2026-01-02T00:00:00Z","deactivated":"2026-01-03T00:00:00Z"}"#;
    let here = r#"{"certname":"n","deactivated":null,"expired":null}"#;
    let (a, b) = (format!("[{old},{here}]"), format!("[{gone}]"));
    let (map, _) = FreshnessMap::build(&[(A, a.as_bytes()), (B, b.as_bytes())]);
    let asked = |map: &FreshnessMap, scope, query| {
        let ask = Ask::own("/pdb/query/v4/reports", &[("query", query)]).of(scope);
        let shares = map.shares(&[A, B], None, &names(), usize::MAX);
        let target = ask.within(shares.of(A).unwrap()).target();
        let query = target.split_once('?').map(|(_, query)| query.to_owned());
        let query = query.unwrap_or_default();
        let params = crate::params::Params::read(&query).unwrap();
        params.get("query").map(str::to_owned)
    };
    let others = format!("[\"not\",{}]", in_array(r#""m""#));
    for (query, expected) in [
        (r#"["=","node_state","Active"]"#, &*others),
        (r#"["=",["node","active"],true]"#, &others),
        (r#"["=","node_state","any"]"#, r#"["=","node_state","any"]"#),
        (
            r#"["=",["node","active"],false]"#,
            r#"["=",["node","active"],false]"#,
        ),
    ] {
        assert_eq!(
            asked(&map, Scope::Reports, query).as_deref(),
            Some(expected),
            "{query}"
        );
    }
    // What it owns it knows itself.
    let active = r#"["=","node_state","active"]"#;
    let owned = asked(&map, Scope::Owned, active).unwrap();
    assert!(owned.contains(active), "{owned}");
    // Where all are active there is nothing to leave out.
    let both = format!("[{old}]");
    let both = both.as_bytes();
    let (map, _) = FreshnessMap::build(&[(A, both), (B, both)]);
    assert_eq!(asked(&map, Scope::Events, active), None);
}
