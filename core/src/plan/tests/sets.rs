//! Sets and distinct counts under `merge: exact`.

use super::*;
use crate::merge::sets::{SetMerge, Shape};
use crate::plan::carrier;

fn planned_exact(target: &str) -> Result<Plan, Refusal> {
    let settings = Settings {
        strategy: Strategy::Exact,
        ..settings()
    };
    planned_with(&settings, &format!("/pdb/query/v4/{}", encoded(target)))
}

fn exact(target: &str) -> Result<Fan, Refusal> {
    match planned_exact(target)? {
        Plan::Fan(fan) => Ok(fan),
        other => panic!("{target}: {other:?}"),
    }
}

fn query_of(ask: &Ask) -> Option<String> {
    let target = ask.target();
    let (_, query) = target.split_once('?')?;
    let params = Params::read(query).unwrap();
    params.get("query").map(str::to_owned)
}

#[test]
fn each_record_is_grouped_by_where_functions_are_computed() {
    for (target, expected, hidden) in [
        (
            r#"environments?query=["extract",[["function","count"]]]"#,
            r#"["extract",[["function","count"],"name"],["group_by","name"]]"#,
            &["name"][..],
        ),
        (
            r#"environments?query=["extract",[["function","count"]],["~","name","p"]]"#,
            r#"["extract",[["function","count"],"name"],["~","name","p"],["group_by","name"]]"#,
            &["name"],
        ),
        (
            r#"environments?query=["extract",["name"],["group_by","name"]]"#,
            r#"["extract",["name"],["group_by","name"]]"#,
            &[],
        ),
        (
            r#"fact-paths?query=["extract",[["function","avg","depth"],"name"],["group_by","name"]]"#,
            r#"["extract",[["function","sum","depth"],["function","count","depth"],"name","path","type"],["group_by","name","path","type"]]"#,
            &["path", "type"],
        ),
        // Every backend refuses it, and is to see it as it came.
        (
            r#"environments?query=["extract",[["function","count"],"name"]]"#,
            r#"["extract",[["function","count"],"name"]]"#,
            &[],
        ),
    ] {
        let fan = exact(target).unwrap();
        assert_eq!(query_of(&fan.ask).as_deref(), Some(expected), "{target}");
        let Merge::Set(SetMerge {
            shape: Shape::AsItCame { strip, .. },
            ..
        }) = fan.merge
        else {
            panic!("{target}")
        };
        assert_eq!(strip, hidden, "{target}");
    }
}

#[test]
fn whole_sets_are_asked_for_with_the_columns_that_tell_records_apart() {
    for (target, expected) in [
        ("packages?limit=3&offset=1", None),
        (
            r#"packages?query=["extract","version",["~","version","1"]]"#,
            Some(r#"["extract",["version","package_name","provider"],["~","version","1"]]"#),
        ),
        // A path shows its depth, which is no column that can be asked for.
        (
            r#"fact-paths?query=["extract",["name"]]&order_by=[{"field":"depth"}]"#,
            Some(r#"["extract",["name","path","type"]]"#),
        ),
    ] {
        let fan = exact(target).unwrap();
        assert_eq!(query_of(&fan.ask).as_deref(), expected, "{target}");
        assert_eq!(fan.ask.limit(), None, "{target}");
    }
}

#[test]
fn only_paths_are_looked_up_beside_the_question() {
    for (entity, further) in [
        ("environments", 0),
        ("producers", 0),
        ("packages", 0),
        ("fact-names", 0),
        ("fact-paths", 1),
    ] {
        let fan = exact(entity).unwrap();
        assert_eq!(fan.further.len(), further, "{entity}");
        assert!(!fan.is_undivided(), "{entity}");
        // Elsewhere one backend answers, or all are asked the same.
        match planned(entity).unwrap() {
            Plan::Fan(fan) => assert!(fan.is_undivided() && fan.further.is_empty()),
            Plan::Turns(_, Turns::Configured, ..) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_cannot_be_ordered_or_combined_is_refused() {
    let order = r#"&order_by=[{"field":"version"}]"#;
    let grouped = r#"["extract",[["function","count"],"provider"],["group_by","provider"]]"#;
    assert!(matches!(
        exact(&format!("packages?query={grouped}{order}")),
        Err(Refusal::OrderByAbsent { .. })
    ));
    for target in [
        "packages?limit=0",
        "packages?offset=x",
        "packages?order_by=x",
    ] {
        assert!(matches!(exact(target), Err(Refusal::Paging(_))), "{target}");
    }
}

#[test]
fn a_carrier_is_asked_for_its_owned_records_and_history_for_all() {
    let owned = r#"["O"]"#;
    for (carriers, expected) in [
        (
            carrier::PRODUCERS,
            concat!(
                r#"["or",["in","name",["extract","producer",["select_factsets",["O"]]]],"#,
                r#"["in","name",["extract","producer",["select_catalogs",["O"]]]],"#,
                r#"["in","name",["extract","producer",["select_reports",["=","type","any"]]]]]"#,
            ),
        ),
        (
            carrier::PACKAGES,
            concat!(
                r#"["in",["package_name","version","provider"],"#,
                r#"["extract",["package_name","version","provider"],["select_package_inventory",["O"]]]]"#,
            ),
        ),
    ] {
        assert_eq!(carrier::clause(carriers, owned), expected);
    }
}

#[test]
fn summaries_ask_for_each_subject_and_nodes_for_their_events() {
    let fan = exact("aggregate-event-counts?summarize_by=resource,certname&origin=o").unwrap();
    let targets: Vec<_> = fan.asks().map(Ask::target).collect();
    assert_eq!(
        targets,
        [
            "/pdb/query/v4/event-counts?origin=o&summarize_by=resource",
            "/pdb/query/v4/event-counts?origin=o&summarize_by=certname",
        ]
    );
    assert!(fan.asks().all(|ask| ask.scope() == Scope::Events));
    let latest = r#"["=","latest_report?",true]"#;
    let fan = exact(&format!(
        "aggregate-event-counts?summarize_by=certname&count_by=certname&query={latest}"
    ));
    let ask = fan.unwrap().ask;
    assert_eq!(ask.scope(), Scope::Owned);
    let columns = r#""status","corrective_change","certname""#;
    let expected = format!(r#"["extract",[{columns}],{latest},["group_by",{columns}]]"#);
    assert_eq!(query_of(&ask), Some(expected));
}

#[test]
fn what_the_old_compiler_does_not_know_is_for_the_backends_to_refuse() {
    let planned = |query: &str| {
        let target = format!("aggregate-event-counts?summarize_by=certname&query={query}");
        planned_exact(&target).unwrap()
    };
    for known in [
        r#"["or",["=","a",1],["not",["~","b","c"]],[">=","d",2]]"#,
        r#"["in","certname",["extract","certname",["select_facts",["null?","value",true]]]]"#,
        "[]",
    ] {
        assert!(matches!(planned(known), Plan::Fan(_)), "{known}");
    }
    for unknown in [
        r#"["nosuch","x"]"#,
        r#"["null?","status",true]"#,
        r#"["not",["and",["=","a",1],["null?","status",true]]]"#,
        r#"["in","certname",["array",["a"]]]"#,
        r#"["in","certname",["from","nodes",["extract","certname"]]]"#,
        r#"["subquery","reports",["=","a",1]]"#,
    ] {
        let Plan::Turns(_, Turns::Configured, uncertain) = planned(unknown) else {
            panic!("{unknown} is merged")
        };
        let doubts = uncertain.doubts;
        assert_eq!(doubts.first(), Some(&Doubt::OneBackend), "{unknown}");
    }
}
