//! What is asked upstream.

use super::*;

#[test]
fn r005_a_request_goes_upstream_byte_for_byte_where_no_rule_rewrites_it() {
    for (target, how) in [
        ("nodes", "all"),
        ("facts", "all"),
        ("facts/os", "all"),
        ("nodes?query=", "all"),
        ("nodes?query=%5b%22%3d%22,%22certname%22,+%22a%22%5D", "all"),
        ("facts?query=facts%20%7B%7D&origin=x%20y&pretty=no", "all"),
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
        ("environments?limit=3&offset=2&order_by=x", "in turn"),
        ("?query=nodes%7B%7D", "in turn"),
        ("nodes/a%2Db/facts?offset=1", "owner first"),
        ("factsets/a?limit=x", "owner first"),
    ] {
        let found = planned(target).unwrap();
        let ask = match found {
            Plan::Fan(Fan { ask, .. }) if how == "all" => ask,
            Plan::Turns(ask, Turns::Configured, _) if how == "in turn" => ask,
            Plan::Turns(ask, Turns::OwnerFirst { .. }, _) if how == "owner first" => ask,
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
        ("facts/pdbmux_source/pdb-c", "none", "None"),
        ("facts/pdbmux_source/PDB-A", "none", "None"),
        // R066: shapes that gain no source fact.
        (
            r#"facts/pdbmux_source?query=["extract",["value"]]"#,
            "none",
            "None",
        ),
        (
            r#"facts/pdbmux_source?query=["=","name","x"]"#,
            "none",
            "None",
        ),
        ("facts/pdbmux_source/pdb-a?query=facts{}", "none", "None"),
    ]);
    for (target, value) in [
        ("facts/pdbmux_source", None),
        ("facts/pdbmux_source/pdb-b", Some("pdb-b")),
    ] {
        assert_eq!(records(target).provenance.mark, Mark::FactsOnly, "{target}");
        assert_eq!(drilldown(target).value.as_deref(), value, "{target}");
    }
    // T15: its pages are cut from a total order like any other.
    let order = drilldown("facts/pdbmux_source?limit=1").order;
    assert_eq!(order.members(), ["certname"]);
    // R067: without injection it is a fact like any other.
    let mut settings = settings();
    settings.source = None;
    let path = "/pdb/query/v4/facts/pdbmux_source/pdb-c";
    let Plan::Fan(Fan {
        ask,
        merge: Merge::Records(records),
        ..
    }) = planned_with(&settings, path).unwrap()
    else {
        panic!("not merged")
    };
    assert_eq!(ask.target(), path);
    assert_eq!(records.provenance.mark, Mark::Nothing);
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
fn r044_the_freshness_map_is_asked_for_in_order_and_over_all_states() {
    let query = r#"["extract",["certname","report_timestamp"],["=","node_state","any"]]"#;
    let target = format!(r#"/pdb/query/v4/nodes?query={query}&order_by=[{{"field":"certname"}}]"#);
    assert_eq!(
        freshness_ask(Strategy::Freshness).target(),
        encoded(&target)
    );
}

/// A query string with a query of `length` bytes in it.
fn long(length: usize) -> String {
    format!("limit=2&query={}", "x".repeat(length - 14))
}

fn ask(target: &str) -> Ask {
    match planned(target).unwrap() {
        Plan::Fan(fan) => fan.ask,
        Plan::Turns(ask, _, _) => ask,
        other => panic!("{target}: {other:?}"),
    }
}

#[test]
fn a_question_too_long_for_a_request_line_goes_by_post() {
    for path in [
        "nodes",
        "facts",
        "facts/os/a%2Fb",
        "fact-names",
        "resources",
        "reports",
        "event-counts",
        "aggregate-event-counts",
        "nodes/n/facts",
        "inventory",
        "",
    ] {
        let ask = ask(&format!("{path}?{}", long(9000)));
        let Sent { target, body } = ask.send(0, None);
        assert_eq!(target, format!("/pdb/query/v4/{path}"));
        let body: serde_json::Value = serde_json::from_str(&body.unwrap()).unwrap();
        assert_eq!(body["query"].as_str().map(str::len), Some(9000 - 14));
        // Where the limit is not applied here, it is a number in the body.
        let limit = ask.target().contains("limit=2").then_some(2);
        assert_eq!(body["limit"].as_u64(), limit, "{path}");
    }
}

#[test]
fn a_question_goes_by_get_as_long_as_it_fits_behind_the_base_path() {
    let target = "/pdb/query/v4/inventory?";
    let room = (6 << 10) - target.len();
    let fits = ask(&format!("inventory?{}", long(room)));
    let got = Sent {
        target: fits.target(),
        body: None,
    };
    assert_eq!(fits.send(0, None), got);
    assert!(fits.send(1, None).body.is_some());
    assert!(
        ask(&format!("inventory?{}", long(room + 1)))
            .send(0, None)
            .body
            .is_some()
    );
}

#[test]
fn a_long_question_that_no_post_can_put_goes_by_get() {
    for target in [
        // What repeats has no place in an object.
        format!("inventory?limit=1&{}", long(9000)),
        format!("inventory?order_by={}", "x".repeat(9000)),
        // A backend would not read the body.
        format!("reports/h/logs?{}", long(9000)),
        format!("environments/e?{}", long(9000)),
        format!("producers/p?{}", long(9000)),
    ] {
        let ask = ask(&target);
        let got = Sent {
            target: ask.target(),
            body: None,
        };
        assert_eq!(ask.send(0, None), got);
    }
    let metrics = Ask::own("/metrics/v2/read/x", &[("a", &"x".repeat(9000))]);
    assert_eq!(metrics.send(0, None).body, None);
}

#[test]
fn t68_an_origin_is_told_with_queries_that_have_none() {
    let told = |target: &str| {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let ask = Ask::as_it_came(path, &Params::read(query).unwrap());
        ask.send(0, Some("pdbmux:a/b")).target
    };
    for (target, expected) in [
        ("/pdb/query/v4", "/pdb/query/v4?origin=pdbmux%3Aa%2Fb"),
        (
            "/pdb/query/v4/nodes?limit=1",
            "/pdb/query/v4/nodes?limit=1&origin=pdbmux%3Aa%2Fb",
        ),
        ("/pdb/query/v4/nodes?origin=", "/pdb/query/v4/nodes?origin="),
        (
            "/pdb/query/v4/nodes?%6Frigin=x",
            "/pdb/query/v4/nodes?%6Frigin=x",
        ),
        ("/pdb/meta/v1/version", "/pdb/meta/v1/version"),
        ("/metrics/v2/list", "/metrics/v2/list"),
    ] {
        assert_eq!(told(target), expected);
    }
    let long = "x".repeat(6 << 10);
    let ask = Ask::own("/pdb/query/v4/nodes", &[("query", &long)]);
    let body = ask.send(0, Some("pdbmux")).body.unwrap();
    assert!(body.ends_with(r#""origin":"pdbmux"}"#), "{body}");
}
