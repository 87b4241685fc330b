use super::*;
use crate::merge::owners::{FreshnessMap, Shares};
use crate::merge::prior::Foreknown;
use crate::round::BackendId;

/// Two backends that hold the same nodes, of which each owns every other one, or the first all.
fn shares(nodes: u32, is_split: bool) -> Shares {
    let (a, b) = (BackendId(0), BackendId(1));
    let body = |holder: u32| {
        let nodes = (0..nodes).map(|n| {
            let owner = if is_split { n % 2 } else { 0 };
            // Times tell nothing: copies that count are as old as those that do not.
            let second = 2 * n + u32::from(holder == owner);
            let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
            let at = format!("2026-01-01T{hour:02}:{minute:02}:{second:02}Z");
            format!(r#"{{"certname":"n{n}","report_timestamp":"{at}","facts_timestamp":"{at}"}}"#)
        });
        format!("[{}]", nodes.collect::<Vec<_>>().join(","))
    };
    let (of_a, of_b) = (body(0), body(1));
    let (map, _) = FreshnessMap::build(&[(a, of_a.as_bytes()), (b, of_b.as_bytes())]);
    map.shares(
        &[a, b],
        None,
        &["pdb-a".to_owned(), "pdb-b".to_owned()],
        usize::MAX,
    )
}

/// How a question is put where these are the shares and no more than `most` may be listed.
fn put(path: &str, query: &str, shares: &Shares, most: usize) -> &'static str {
    let settings = Settings {
        strategy: Strategy::Exact,
        ..settings()
    };
    let raw = match query {
        "" => String::new(),
        query => crate::params::encode("query", query),
    };
    let path = format!("/pdb/query/v4/{path}");
    let route = Route::find(&path).unwrap().unwrap();
    let Ok(Plan::Fan(fan)) = plan(&route, &Params::read(&raw).unwrap(), &settings) else {
        panic!("{path} {query}")
    };
    match fan.among(shares, most) {
        None => "listed",
        Some(Fan {
            merge: Merge::Tally(_),
            ..
        }) => "tallied",
        Some(fan) => {
            assert!(matches!(fan.ask.scope(), Scope::OwnedWithin(_)));
            let expected = matches!(fan.merge, Merge::Sifted(_) | Merge::Records(_));
            assert!(expected, "{:?}", fan.merge);
            "all"
        }
    }
}

#[test]
fn each_question_is_put_by_the_length_of_its_lists() {
    let (few, many, none) = (shares(20, true), shares(3000, true), shares(3000, false));
    assert_eq!((few.longest_list(), many.longest_list()), (10, 1500));
    assert_eq!(none.longest_list(), 0);
    let count = r#"["extract",[["function","count"]]]"#;
    let failed = r#"["extract",[["function","count"]],["=","latest_report_status","failed"]]"#;
    let named = r#"["and",["=","name","role"],["~","certname","."]]"#;
    let types = r#"["extract",[["function","count"],"type"],["group_by","type"]]"#;
    for (path, query, expected) in [
        // Of few, of many, of none, of many if none may be listed.
        ("nodes", count, ["tallied"; 4]),
        ("nodes", failed, ["listed", "all", "listed", "all"]),
        ("nodes", "", ["listed", "all", "listed", "all"]),
        ("facts", named, ["listed", "all", "listed", "all"]),
        ("facts/role", "", ["listed", "all", "listed", "all"]),
        ("facts", "", ["listed", "listed", "listed", "all"]),
        (
            "facts",
            r#"["~","name","role"]"#,
            ["listed", "listed", "listed", "all"],
        ),
        ("resources", types, ["listed", "listed", "listed", "all"]),
        ("inventory", "", ["listed", "listed", "listed", "all"]),
        // What is told apart by more than its node.
        ("reports", "", ["listed"; 4]),
        ("environments", "", ["listed"; 4]),
    ] {
        let found = [
            put(path, query, &few, 20_000),
            put(path, query, &many, 20_000),
            put(path, query, &none, 20_000),
            put(path, query, &many, 0),
        ];
        assert_eq!(found, expected, "{path} {query}");
    }
}

#[test]
fn what_cannot_be_told_apart_is_asked_for_with_what_can() {
    let shares = shares(20, true);
    let settings = Settings {
        strategy: Strategy::Exact,
        ..settings()
    };
    for (path, query, expected) in [
        (
            "resources",
            r#"["extract",[["function","count"],"type"],["group_by","type"]]"#,
            r#"["extract",[["function","count"],"type","certname"],["group_by","type","certname"]]"#,
        ),
        (
            "resources",
            r#"["extract",[["function","avg","line"]]]"#,
            r#"["extract",[["function","sum","line"],["function","count","line"],"certname"],["group_by","certname"]]"#,
        ),
        (
            "facts",
            r#"["extract",["name"],["=","name","a"]]"#,
            r#"["extract",["name","certname"],["=","name","a"]]"#,
        ),
        (
            "nodes",
            r#"["extract",["pdbmux_source"]]"#,
            r#"["extract",["certname"]]"#,
        ),
        (
            "nodes",
            r#"["extract",[["function","count"],"pdbmux_source"],["group_by","pdbmux_source"]]"#,
            r#"["extract",[["function","count"],"certname"],["group_by","certname"]]"#,
        ),
    ] {
        let raw = crate::params::encode("query", query);
        let path = format!("/pdb/query/v4/{path}");
        let route = Route::find(&path).unwrap().unwrap();
        let Ok(Plan::Fan(fan)) = plan(&route, &Params::read(&raw).unwrap(), &settings) else {
            panic!("{path} {query}")
        };
        let share = shares.of(BackendId(0)).unwrap();
        let asked = fan.among(&shares, 0).unwrap().ask.within(share).target();
        let asked = asked.split_once('?').unwrap().1.to_owned();
        let asked = Params::read(&asked).unwrap();
        assert_eq!(asked.get("query"), Some(expected), "{path} {query}");
    }
}

#[test]
fn what_is_known_of_subqueries_stands_in_what_is_asked_instead_too() {
    let settings = Settings {
        strategy: Strategy::Exact,
        ..settings()
    };
    let failed =
        r#"["in","certname",["extract","certname",["select_reports",["=","status","failed"]]]]"#;
    for (path, query) in [
        ("nodes", failed.to_owned()),
        ("facts", format!(r#"["and",["=","name","a"],{failed}]"#)),
        (
            "resources",
            format!(r#"["extract",[["function","count"]],{failed}]"#),
        ),
    ] {
        let raw = crate::params::encode("query", &query);
        let path = format!("/pdb/query/v4/{path}");
        let route = Route::find(&path).unwrap().unwrap();
        let Ok(Plan::Fan(mut fan)) = plan(&route, &Params::read(&raw).unwrap(), &settings) else {
            panic!("{path} {query}")
        };
        let prior = fan.priors.pop().unwrap();
        let known = prior.read(br#"[{"certname":"n1"}]"#).unwrap();
        let fan = fan.with_known(&Foreknown(vec![(prior, known)]));
        let asked = fan.among(&shares(4, true), 0).unwrap().ask.target();
        assert!(
            asked.contains("n1") && !asked.contains("select_reports"),
            "{asked}"
        );
    }
}
