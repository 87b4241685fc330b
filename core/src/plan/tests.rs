use super::*;
use crate::merge::Merge;

fn settings() -> Settings {
    Settings {
        backends: vec!["pdb-a".into(), "pdb-b".into()],
        strategy: Strategy::Freshness,
        source: Some("pdbmux_source".into()),
    }
}

fn planned_with(settings: &Settings, target: &str) -> Result<Plan, Refusal> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let route = Route::find(path).unwrap().unwrap();
    plan(&route, &Params::read(query).unwrap(), settings)
}

fn planned(target: &str) -> Result<Plan, Refusal> {
    planned_with(&settings(), &format!("/pdb/query/v4/{target}"))
}

/// The request line that goes to every backend, and whether all are asked at once.
fn asked(target: &str) -> (&'static str, String) {
    let plan = planned(&encoded(target)).unwrap();
    let (how, ask) = match plan {
        Plan::Fan(ask, _) => ("all", ask),
        Plan::Turns(ask, Turns::Configured) => ("in turn", ask),
        Plan::Turns(ask, Turns::OwnerFirst { .. }) => ("owner first", ask),
        Plan::Ready(body) => return ("none", body.to_owned()),
        Plan::Write => panic!("{target} writes"),
    };
    let target = ask.target();
    (how, target.strip_prefix("/pdb/query/v4/").unwrap().into())
}

fn records(target: &str) -> RecordMerge {
    match planned(&encoded(target)).unwrap() {
        Plan::Fan(_, Merge::Records(records)) => records,
        other => panic!("{target}: {other:?}"),
    }
}

/// `target` with its JSON parameters form-encoded, so that cases stay readable.
fn encoded(target: &str) -> String {
    let Some((path, query)) = target.split_once('?') else {
        return target.to_owned();
    };
    let pairs = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, json)) if json.starts_with(['[', '{']) => crate::params::encode(name, json),
        _ => pair.to_owned(),
    });
    format!("{path}?{}", pairs.collect::<Vec<_>>().join("&"))
}

fn assert_asked(cases: &[(&str, &str, &str)]) {
    for (target, how, expected) in cases {
        assert_eq!(asked(target), (*how, encoded(expected)), "{target}");
    }
}

#[test]
fn r005_a_request_goes_upstream_byte_for_byte_where_no_rule_rewrites_it() {
    for (target, how) in [
        ("nodes", "all"),
        ("facts", "all"),
        ("facts/os", "all"),
        ("nodes?query=", "all"),
        ("nodes?query=%5b%22%3d%22,%22certname%22,+%22a%22%5D", "all"),
        ("facts?query=facts%20%7B%7D&origin=x%20y&pretty=true", "all"),
        ("facts?order_by=%5b%5D&include_total=TRUE", "all"),
        ("facts?order_by=[{%22field%22:%22value%22}]", "all"),
        (
            "nodes?query=[%22extract%22,[%22certname%22,%22report_timestamp%22]]",
            "all",
        ),
        ("nodes?limit=1&limit=2", "all"),
        // R056, T54: segments as they came.
        ("facts/a%2Fb%2b/c%20d", "all"),
        // R240, R242 and R228: passed through.
        (
            "resources?query=[%22=%22,%22type%22,%22File%22]&limit=3&offset=2",
            "in turn",
        ),
        ("reports?limit=3&offset=2&order_by=x", "in turn"),
        ("?query=nodes%7B%7D", "in turn"),
        ("nodes/a%2Db/facts?offset=1", "owner first"),
        ("factsets/a?limit=x", "owner first"),
    ] {
        let found = planned(target).unwrap();
        let ask = match found {
            Plan::Fan(ask, _) if how == "all" => ask,
            Plan::Turns(ask, Turns::Configured) if how == "in turn" => ask,
            Plan::Turns(ask, Turns::OwnerFirst { .. }) if how == "owner first" => ask,
            other => panic!("{target}: {other:?}"),
        };
        assert_eq!(ask.target(), format!("/pdb/query/v4/{target}"));
    }
}

#[test]
fn t65_a_query_plan_is_asked_of_one_backend_as_it_came() {
    assert_asked(&[
        (
            "nodes?limit=2&offset=1&explain=analyze",
            "in turn",
            "nodes?limit=2&offset=1&explain=analyze",
        ),
        (
            r#"facts?explain=x&query=["extract",[["function","avg","value"]]]"#,
            "in turn",
            r#"facts?explain=x&query=["extract",[["function","avg","value"]]]"#,
        ),
    ]);
}

#[test]
fn r146_a_window_is_asked_for_from_its_start_in_a_total_order() {
    let by = |json: &str| json.to_owned();
    let certname = by(r#"[{"field":"certname","order":"asc"}]"#);
    let certname_name =
        by(r#"[{"field":"certname","order":"asc"},{"field":"name","order":"asc"}]"#);
    let value = by(
        r#"[{"field":"value","order":"desc"},{"field":"certname","order":"asc"},{"field":"name","order":"asc"}]"#,
    );
    let cases = [
        (
            "nodes?limit=2".to_owned(),
            format!("nodes?order_by={certname}&limit=2"),
        ),
        (
            "nodes?limit=2&offset=5".into(),
            format!("nodes?order_by={certname}&limit=7"),
        ),
        // R154: an offset alone needs everything.
        (
            "nodes?offset=5".into(),
            format!("nodes?order_by={certname}"),
        ),
        ("nodes?offset=0&pretty=x".into(), "nodes?pretty=x".into()),
        // T19: the sum is more than a backend takes.
        (
            "nodes?limit=1&offset=2147483647".into(),
            format!("nodes?order_by={certname}"),
        ),
        (
            "facts?limit=%2B03".into(),
            format!("facts?order_by={certname_name}&limit=3"),
        ),
        // T16: ties are broken behind the client's own order.
        (
            r#"facts?order_by=[{"field":"value","order":"desc"}]&limit=1"#.into(),
            format!("facts?order_by={value}&limit=1"),
        ),
        // T20: no ordering.
        (
            "nodes?order_by={}&limit=1".into(),
            format!("nodes?order_by={certname}&limit=1"),
        ),
        // The name is in the path.
        (
            "facts/os?limit=1".into(),
            format!("facts/os?order_by={certname}&limit=1"),
        ),
        (
            "facts/os/x?limit=1".into(),
            format!("facts/os/x?order_by={certname}&limit=1"),
        ),
        // Ruling 13: what is repeated is the backends' to refuse.
        (
            "nodes?limit=1&offset=1&offset=2".into(),
            format!("nodes?offset=1&offset=2&order_by={certname}&limit=1"),
        ),
    ];
    for (target, expected) in cases {
        assert_eq!(asked(&target), ("all", encoded(&expected)), "{target}");
    }
}

#[test]
fn ruling_4_columns_that_the_merge_reads_are_asked_for_and_taken_out_again() {
    let cases: [(&str, &str, &[&str]); 9] = [
        (
            r#"nodes?query=["extract",["deactivated"],["=","certname","a"]]"#,
            r#"nodes?query=["extract",["deactivated","certname","report_timestamp"],["=","certname","a"]]"#,
            &["certname", "report_timestamp"],
        ),
        (
            r#"nodes?query=["extract","certname"]"#,
            r#"nodes?query=["extract",["certname","report_timestamp"]]"#,
            &["report_timestamp"],
        ),
        (
            r#"facts?query=["extract",["name","value"]]"#,
            r#"facts?query=["extract",["name","value","certname"]]"#,
            &["certname"],
        ),
        (
            r#"facts?query=["extract",["certname","value"]]"#,
            r#"facts?query=["extract",["certname","value"]]"#,
            &[],
        ),
        // T11: what is sorted by, too.
        (
            r#"facts?query=["extract",["certname"]]&order_by=[{"field":"name"}]"#,
            r#"facts?order_by=[{"field":"name"}]&query=["extract",["certname","name"]]"#,
            &["name"],
        ),
        (
            r#"facts/os?query=["extract",["value"]]&limit=4&offset=1"#,
            r#"facts/os?order_by=[{"field":"certname","order":"asc"}]&query=["extract",["value","certname"]]&limit=5"#,
            &["certname"],
        ),
        // T9: what PuppetDB does not project is not rewritten.
        (
            r#"nodes?query=["extract",[]]"#,
            r#"nodes?query=["extract",[]]"#,
            &[],
        ),
        (
            r#"nodes?query=["extract",["certname"],["=","a",1],["limit",1]]"#,
            r#"nodes?query=["extract",["certname"],["=","a",1],["limit",1]]"#,
            &[],
        ),
        (
            r#"nodes?query=["in","certname",["extract",["certname"],["select_facts",["=","name","x"]]]]"#,
            r#"nodes?query=["in","certname",["extract",["certname"],["select_facts",["=","name","x"]]]]"#,
            &[],
        ),
    ];
    for (target, expected, stripped) in cases {
        assert_eq!(asked(target), ("all", encoded(expected)), "{target}");
        assert_eq!(records(target).strip, stripped, "{target}");
    }
}

#[test]
fn r126_r135_rows_that_fold_are_asked_for_whole() {
    assert_asked(&[
        (
            r#"nodes?query=["extract",[["function","count"]]]&limit=2&offset=1&include_total=true"#,
            "all",
            r#"nodes?query=["extract",[["function","count"]]]"#,
        ),
        (
            r#"facts/os?query=["extract",[["function","avg","value"],"name"],["group_by","name"]]&order_by=[{"field":"avg"}]"#,
            "all",
            r#"facts/os?query=["extract",[["function","sum","value"],["function","count","value"],"name"],["group_by","name"]]"#,
        ),
        // Ruling 9: a group that the client does not see.
        (
            r#"resources?query=["extract",[["function","count"]],["group_by","type"]]"#,
            "all",
            r#"resources?query=["extract",[["function","count"],"type"],["group_by","type"]]"#,
        ),
        // R065: also on the source fact's own path.
        (
            r#"facts/pdbmux_source?query=["extract",[["function","count"]]]"#,
            "all",
            r#"facts/pdbmux_source?query=["extract",[["function","count"]]]"#,
        ),
        // R129, R130: rows that do not fold keep the limit.
        (
            r#"nodes?query=["extract",[["function","to_string","report_timestamp","YYYY"]]]&limit=2&offset=1"#,
            "all",
            r#"nodes?query=["extract",[["function","to_string","report_timestamp","YYYY"]]]&limit=3"#,
        ),
    ]);
}

#[test]
fn r057_the_source_fact_is_made_of_the_facts_merge() {
    let query = r#"query=["=","environment","lab"]"#;
    assert_asked(&[
        ("facts/pdbmux_source", "all", "facts"),
        ("facts/%70dbmux_source", "all", "facts"),
        // R059: narrowed by the client's own query; R063: the value stays here.
        (
            &format!("facts/pdbmux_source/pdb-b?{query}"),
            "all",
            &format!("facts?{query}"),
        ),
        (
            "facts/pdbmux_source?limit=1&offset=2&include_total=true&order_by=[]",
            "all",
            "facts",
        ),
        // R062: a value that names no backend.
        ("facts/pdbmux_source/pdb-c", "none", "[]"),
        ("facts/pdbmux_source/PDB-A", "none", "[]"),
        // R066: shapes that gain no source fact.
        (
            r#"facts/pdbmux_source?query=["extract",["value"]]"#,
            "none",
            "[]",
        ),
        (
            r#"facts/pdbmux_source?query=["=","name","x"]"#,
            "none",
            "[]",
        ),
        ("facts/pdbmux_source/pdb-a?query=facts{}", "none", "[]"),
    ]);
    for (target, only) in [
        ("facts/pdbmux_source", None),
        ("facts/pdbmux_source/pdb-b", Some(BackendId(1))),
    ] {
        assert_eq!(
            records(target).provenance.mark,
            Mark::FactsOnly(only),
            "{target}"
        );
    }
    // T15: its pages are cut from a total order like any other.
    let order = records("facts/pdbmux_source?limit=1").order;
    assert_eq!(order.members(), ["certname"]);
    // R067: without injection it is a fact like any other.
    let mut settings = settings();
    settings.source = None;
    let path = "/pdb/query/v4/facts/pdbmux_source/pdb-c";
    let Plan::Fan(ask, Merge::Records(records)) = planned_with(&settings, path).unwrap() else {
        panic!("not merged")
    };
    assert_eq!(ask.target(), path);
    assert_eq!(records.provenance.mark, Mark::Nothing);
}

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
        let Plan::Fan(_, Merge::Records(records)) = planned_with(&settings, path).unwrap() else {
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
            Plan::Fan(_, merge) => merge,
            other => panic!("{other:?}"),
        }
    };
    let mut age = |strategy, target: &str| match merge(strategy, target) {
        Merge::Records(records) => (records.age, records.needs_freshness()),
        other => panic!("{other:?}"),
    };
    let (fresh, fixed) = (Strategy::Freshness, Strategy::Static);
    assert_eq!(age(fresh, "nodes"), (Age::OwnReport, false));
    assert_eq!(age(fixed, "nodes"), (Age::OwnReport, false));
    for target in ["facts", "facts/os", "facts/pdbmux_source", "facts?limit=1"] {
        assert_eq!(age(fresh, target), (Age::FreshnessMap, true), "{target}");
        // No `/nodes` request is made.
        assert_eq!(age(fixed, target), (Age::Unknown, false), "{target}");
    }
    // T12: the map knows by what a backend orders certnames.
    assert_eq!(age(fresh, "nodes?limit=1"), (Age::OwnReport, true));
    assert_eq!(age(fresh, "nodes?offset=1"), (Age::OwnReport, false));
    let by_time = "nodes?limit=1&order_by=[{%22field%22:%22report_timestamp%22}]";
    assert_eq!(age(fresh, by_time), (Age::OwnReport, false));
}

#[test]
fn a_single_backends_own_order_is_the_order() {
    let mut settings = settings();
    let mut text_order = |backends: &[&str], target: &str| {
        settings.backends = backends.iter().map(|&name| name.to_owned()).collect();
        let target = format!("/pdb/query/v4/{target}");
        match planned_with(&settings, &target).unwrap() {
            Plan::Fan(_, Merge::Records(records)) => records.text_order,
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
        ("facts/pdbmux_source?include_total=true", Total::Counted),
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
            Plan::Fan(_, Merge::Records(records)) => records.total,
            Plan::Fan(_, Merge::Aggregates(aggregates)) => aggregates.total,
            other => panic!("{target}: {other:?}"),
        };
        assert_eq!(total, expected, "{target}");
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
fn r133_a_repeated_plain_column_is_not_refused() {
    assert_asked(&[(
        r#"facts?query=["extract",["certname","name","name"]]"#,
        "all",
        r#"facts?query=["extract",["certname","name","name"]]"#,
    )]);
}

#[test]
fn r228_r239_routes_of_one_node_ask_its_owner_first() {
    for strategy in [Strategy::Freshness, Strategy::Static] {
        let settings = Settings {
            strategy,
            ..settings()
        };
        let plan = planned_with(&settings, "/pdb/query/v4/catalogs/%C3%A9%2Fb/edges");
        let Ok(Plan::Turns(_, turns)) = plan else {
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
            Plan::Fan(ask, merge) => {
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
    let Plan::Fan(ask, merge) = planned_with(&settings(), path).unwrap() else {
        panic!("not merged")
    };
    assert_eq!(ask.target(), path);
    assert!(matches!(merge, Merge::Metrics(_)));
}

#[test]
fn r044_the_freshness_map_is_asked_for_in_order_and_over_all_states() {
    let query = r#"["extract",["certname","report_timestamp"],["=","node_state","any"]]"#;
    let target = format!(r#"/pdb/query/v4/nodes?query={query}&order_by=[{{"field":"certname"}}]"#);
    assert_eq!(freshness_ask().target(), encoded(&target));
}
