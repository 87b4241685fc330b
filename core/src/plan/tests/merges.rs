//! What is done with the answers, and what is refused.

use super::*;

#[test]
fn r033_to_r085_each_query_shape_has_its_mark() {
    for (target, expected) in [
        ("nodes", Mark::Key),
        (r#"nodes?query=["=","certname","a"]"#, Mark::Key),
        // R040: a name pins facts only.
        (r#"nodes?query=["=","name","a"]"#, Mark::Key),
        // R039.
        (r#"nodes?query=["extract",["certname"]]"#, Mark::Nothing),
        (
            r#"nodes?query=["and",["extract",["certname"]]]"#,
            Mark::Nothing,
        ),
        ("nodes?query=nodes{}", Mark::Nothing),
        ("nodes?query={}", Mark::Nothing),
        // R085: no query, or none that filters.
        ("facts", Mark::Fact),
        ("facts?query=", Mark::Fact),
        ("facts?query=null", Mark::Fact),
        (r#"facts?query=["=","certname","a"]"#, Mark::Fact),
        // R077, R079, R080.
        (r#"facts?query=["extract",["name"]]"#, Mark::Nothing),
        (r#"facts?query=["not",["extract",["name"]]]"#, Mark::Nothing),
        ("facts?query=facts{}", Mark::Nothing),
        (
            r#"facts?query=["or",["=","name","os"],["=","certname","a"]]"#,
            Mark::Nothing,
        ),
        // R078, R081: subqueries are not the outer query.
        (
            r#"facts?query=["in","certname",["extract",["certname"],["select_facts",["=","name","x"]]]]"#,
            Mark::Fact,
        ),
        // R055.
        ("facts/os", Mark::Nothing),
        ("facts/os/x", Mark::Nothing),
    ] {
        assert_eq!(records(target).provenance.mark, expected, "{target}");
    }
    // R082.
    let mut settings = settings();
    settings.source = None;
    for path in ["/pdb/query/v4/nodes", "/pdb/query/v4/facts"] {
        let Plan::Fan(Fan {
            merge: Merge::Records(records),
            ..
        }) = planned_with(&settings, path).unwrap()
        else {
            panic!("not merged")
        };
        assert_eq!(records.provenance, Provenance::default(), "{path}");
    }
}

#[test]
fn r037_r043_r045_owners_are_found_as_configured() {
    let mut settings = settings();
    let mut merge = |strategy, target: &str| {
        settings.strategy = strategy;
        let target = format!("/pdb/query/v4/{target}");
        match planned_with(&settings, &target).unwrap() {
            Plan::Fan(Fan { merge, .. }) => merge,
            other => panic!("{other:?}"),
        }
    };
    let mut keep = |strategy, target: &str| match merge(strategy, target) {
        Merge::Records(records) => (records.keep, records.needs_freshness()),
        other => panic!("{other:?}"),
    };
    let (fresh, fixed) = (Strategy::Freshness, Strategy::Static);
    assert_eq!(keep(fresh, "nodes"), (Keep::NewestReport, false));
    assert_eq!(keep(fixed, "nodes"), (Keep::NewestReport, false));
    for target in ["facts", "facts/os", "facts/pdbmux_source", "facts?limit=1"] {
        assert_eq!(keep(fresh, target), (Keep::Freshest, true), "{target}");
        // No `/nodes` request is made.
        assert_eq!(keep(fixed, target), (Keep::First, false), "{target}");
    }
    // T12: the map knows by what a backend orders certnames.
    assert_eq!(keep(fresh, "nodes?limit=1"), (Keep::NewestReport, true));
    assert_eq!(keep(fresh, "nodes?offset=1"), (Keep::NewestReport, false));
    let by_time = "nodes?limit=1&order_by=[{%22field%22:%22report_timestamp%22}]";
    assert_eq!(keep(fresh, by_time), (Keep::NewestReport, false));
}

#[test]
fn a_single_backends_own_order_is_the_order() {
    let mut settings = settings();
    let mut text_order = |backends: &[&str], target: &str| {
        settings.backends = backends.iter().map(|&name| name.to_owned()).collect();
        let target = format!("/pdb/query/v4/{target}");
        match planned_with(&settings, &target).unwrap() {
            Plan::Fan(Fan {
                merge: Merge::Records(records),
                ..
            }) => records.text_order,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(text_order(&["a"], "nodes?limit=1"), TextOrder::Backend);
    assert_eq!(text_order(&["a"], "facts/os"), TextOrder::Backend);
    // Source facts have no place in it.
    assert_eq!(text_order(&["a"], "facts"), TextOrder::Bytes);
    assert_eq!(text_order(&["a", "b"], "nodes?limit=1"), TextOrder::Bytes);
}

#[test]
fn r149_r137_totals_are_added_counted_or_not_sent() {
    for (target, expected) in [
        ("nodes", Total::Unasked),
        ("nodes?include_total=false", Total::Unasked),
        ("nodes?include_total=1", Total::Unasked),
        ("nodes?include_total=True", Total::Added),
        ("facts?include_total=true&limit=1", Total::Added),
        ("facts/os?include_total=true", Total::Added),
        (
            r#"nodes?include_total=true&query=["extract",[["function","count"]]]"#,
            Total::Counted,
        ),
        (
            r#"nodes?include_total=true&query=["extract",[["function","to_string","report_timestamp","Y"]]]"#,
            Total::Counted,
        ),
        (
            r#"nodes?include_total=true&limit=1&query=["extract",[["function","to_string","report_timestamp","Y"]]]"#,
            Total::Added,
        ),
    ] {
        let total = match planned(&encoded(target)).unwrap() {
            Plan::Fan(Fan {
                merge: Merge::Records(records),
                ..
            }) => records.total,
            Plan::Fan(Fan {
                merge: Merge::Aggregates(aggregates),
                ..
            }) => aggregates.total,
            other => panic!("{target}: {other:?}"),
        };
        assert_eq!(total, expected, "{target}");
    }
    for (target, expected) in [
        ("facts/pdbmux_source?include_total=true", Total::Counted),
        ("facts/pdbmux_source/pdb-a", Total::Unasked),
    ] {
        assert_eq!(drilldown(target).total, expected, "{target}");
    }
}

#[test]
fn r150_r152_r131_r134_what_is_refused_is_told_in_one_sentence() {
    let limit = |it| format!("limit takes a whole number from 1 to 2147483647, not '{it}'");
    let offset = |it| format!("offset takes a whole number from 0 to 2147483647, not '{it}'");
    let cases = [
        ("nodes?limit=0", limit("0")),
        ("facts?limit=-1", limit("-1")),
        ("facts/os?limit=", limit("")),
        ("facts/pdbmux_source?limit=1.5", limit("1.5")),
        ("nodes?offset=-1", offset("-1")),
        // R066 does not hide it.
        (r#"facts/pdbmux_source?offset=x&query=["extract",["name"]]"#, offset("x")),
        (
            r#"nodes?limit=x&query=["extract",[["function","count"]]]"#,
            limit("x"),
        ),
        (
            "nodes?order_by=[1]",
            r#"each item of order_by is an object such as {"field": "certname"}, not 1"#.into(),
        ),
        // R131, R132, R125, R134.
        (
            r#"facts?query=["extract",[["function","max","value"],["function","max","value"]]]"#,
            "the function max is projected twice, so two columns would be named max".into(),
        ),
        (
            r#"nodes?query=["extract",[["function","count"],"count"]]"#,
            "the column count has the name of a projected function, so two columns would be named count".into(),
        ),
        (
            r#"resources?query=["extract",[["function","avg","line"],["function","sum","line"]]]"#,
            "avg is computed from sum and count, so sum cannot be projected beside it".into(),
        ),
        (
            r#"nodes?query=["extract",[["function","median","x"]]]"#,
            "the function median cannot be combined across backends; \
             count, sum, avg, min, max, to_string and jsonb_typeof can"
                .into(),
        ),
        (
            r#"nodes?query=["extract",[["function","count"]]]&order_by=[{"field":"certname"}]"#,
            "order_by names the column 'certname', which the grouped rows do not have".into(),
        ),
    ];
    for (target, expected) in cases {
        let refusal = planned(&encoded(target)).unwrap_err();
        assert_eq!(refusal.to_string(), expected, "{target}");
    }
    let deep = format!("nodes?query={}{}", "[".repeat(200), "]".repeat(200));
    assert_eq!(
        planned(&encoded(&deep)).unwrap_err().to_string(),
        "the query is nested deeper than 128 levels"
    );
}

#[test]
fn r228_r239_routes_of_one_node_ask_its_owner_first() {
    for strategy in [Strategy::Freshness, Strategy::Static] {
        let settings = Settings {
            strategy,
            ..settings()
        };
        let plan = planned_with(&settings, "/pdb/query/v4/catalogs/%C3%A9%2Fb/edges");
        let Ok(Plan::Turns(_, turns, _)) = plan else {
            panic!("{plan:?}")
        };
        let certname = "é/b".to_owned();
        assert_eq!(
            turns,
            Turns::OwnerFirst {
                certname,
                by: strategy
            }
        );
    }
}

#[test]
fn r243_to_r248_and_writes_have_their_plans() {
    for (path, expected) in [
        ("/pdb/meta/v1/version", Some(Merge::Version)),
        ("/pdb/meta/v1/server-time", Some(Merge::First)),
        ("/pdb/cmd/v1", None),
        ("/pdb/admin/v1/archive", None),
    ] {
        let found = match planned_with(&settings(), path).unwrap() {
            Plan::Fan(Fan { ask, merge, .. }) => {
                assert_eq!(ask.target(), path);
                Some(merge)
            }
            Plan::Write => None,
            other => panic!("{path}: {other:?}"),
        };
        assert_eq!(found, expected, "{path}");
    }
    // R258: neither escaping is lost.
    let path = "/metrics/v2/read/java.lang%3Atype=Memory!/x/HeapMemoryUsage?maxDepth=3";
    let Plan::Fan(Fan { ask, merge, .. }) = planned_with(&settings(), path).unwrap() else {
        panic!("not merged")
    };
    assert_eq!(ask.target(), path);
    assert!(matches!(merge, Merge::Metrics(_)));
}

#[test]
fn an_environment_named_like_the_source_fact_is_an_environment() {
    let settings = Settings {
        strategy: Strategy::Exact,
        ..settings()
    };
    for (path, is_drilldown) in [
        ("facts/pdbmux_source", true),
        ("facts/pdbmux_source/pdb-a", true),
        ("environments/pdbmux_source/facts", false),
        ("environments/pdbmux_source/facts/kernel", false),
    ] {
        let plan = planned_with(&settings, &format!("/pdb/query/v4/{path}")).unwrap();
        let Plan::Fan(fan) = plan else {
            panic!("{path}: {plan:?}");
        };
        assert_eq!(fan.drilldown.is_some(), is_drilldown, "{path}");
    }
}
