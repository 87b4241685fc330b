//! The root route and child routes under `merge: exact`.

use super::*;

fn exact() -> Settings {
    Settings {
        strategy: Strategy::Exact,
        ..settings()
    }
}

/// How the root route is asked with these parameters, and what.
fn root(parameters: &str) -> (&'static str, String) {
    asked_with(&exact(), &format!("/pdb/query/v4?{parameters}"))
}

fn assert_root(cases: &[(&str, &str, &str)]) {
    for (parameters, how, expected) in cases {
        assert_eq!(root(parameters), (*how, encoded(expected)), "{parameters}");
    }
}

#[test]
fn t41_each_entity_takes_its_own_route() {
    for (entity, path) in [
        ("nodes", "nodes"),
        ("facts", "facts"),
        ("fact_contents", "fact-contents"),
        ("fact-contents", "fact-contents"),
        ("factsets", "factsets"),
        ("inventory", "inventory"),
        ("resources", "resources"),
        ("edges", "edges"),
        ("package_inventory", "package-inventory"),
        ("catalog-inputs", "catalog-inputs"),
        ("catalog_input_contents", "catalog-input-contents"),
    ] {
        let asked = root(&format!("query=[\"from\",\"{entity}\"]"));
        assert_eq!(asked, ("all", path.to_owned()));
    }
}

#[test]
fn t25_parameters_of_the_url_win_over_clauses_of_the_query() {
    let query = r#"["from","facts",["=","name","a"],["order_by",["value"]],["limit",3]]"#;
    let ask = |rest: &str| match planned_with(
        &exact(),
        &encoded(&format!("/pdb/query/v4?query={query}{rest}")),
    ) {
        Ok(Plan::Fan(fan)) => fan.ask.target(),
        other => panic!("{other:?}"),
    };
    let asked = |rest: &str| {
        let target = ask(rest);
        let params = target.split_once('?').unwrap().1.to_owned();
        let params = Params::read(&params).unwrap();
        (
            params.get("limit").map(str::to_owned),
            params.get("order_by").map(|it| it.contains("value")),
        )
    };
    let limit = |limit: &str| Some(limit.to_owned());
    assert_eq!(asked(""), (limit("3"), Some(true)));
    assert_eq!(asked("&limit=2&offset=2"), (limit("4"), Some(true)));
    assert_eq!(asked("&order_by="), (limit("3"), Some(true)));
    assert_eq!(asked("&order_by=[]"), (limit("3"), Some(false)));
    assert_eq!(
        asked(r#"&order_by=[{"field":"name"}]"#),
        (limit("3"), Some(false))
    );
}

#[test]
fn t42_inactive_nodes_are_hidden_unless_the_query_names_their_state() {
    let active = r#"["=","node_state","active"]"#;
    for entity in ["reports", "events", "catalogs"] {
        for (query, expected) in [
            (String::new(), active.to_owned()),
            (
                r#",["=","certname","a"]"#.to_owned(),
                format!(r#"["and",{active},["=","certname","a"]]"#),
            ),
            (
                r#",["not",["=",["node","active"],false]]"#.to_owned(),
                r#"["not",["=",["node","active"],false]]"#.to_owned(),
            ),
            (
                r#",["subquery","nodes",["=","node_state","any"]]"#.to_owned(),
                r#"["subquery","nodes",["=","node_state","any"]]"#.to_owned(),
            ),
        ] {
            let asked = root(&format!("query=[\"from\",\"{entity}\"{query}]"));
            let expected = encoded(&format!("{entity}?query={expected}"));
            assert_eq!(asked, ("all", expected), "{entity} {query}");
        }
    }
    assert_root(&[
        (
            r#"query=["from","facts",["=","name","a"]]"#,
            "all",
            r#"facts?query=["=","name","a"]"#,
        ),
        (
            r#"query=["from","fact_names",["=","node_state","any"]]"#,
            "all",
            r#"fact-names?query=["=","node_state","any"]"#,
        ),
    ]);
}

#[test]
fn what_cannot_be_classified_goes_as_it_came() {
    for parameters in [
        "",
        "limit=1",
        "query=[]",
        r#"query=["from","nosuch"]"#,
        r#"query=["from","event_counts"]"#,
        r#"query=["from","../nodes"]"#,
        r#"query=["from","fact_names"]"#,
        r#"query=["from","fact-paths"]"#,
        r#"query=["from","producers"]"#,
        r#"query=["from","nodes",["limit",0]]"#,
        r#"query=["from","nodes"]&foo=1"#,
        r#"query=["from","events"]&distinct_resources=true"#,
        r#"query=["from","nodes"]&explain=analyze"#,
        "query=nodes{}&foo=1",
        "query=a&query=b",
    ] {
        assert_eq!(
            root(parameters),
            (
                "in turn",
                encoded(&format!("?{parameters}"))
                    .trim_end_matches('?')
                    .to_owned()
            ),
            "{parameters}"
        );
    }
}

#[test]
fn pql_is_translated_and_a_translation_passed_on() {
    assert_root(&[
        (
            "query=nodes{}&limit=1",
            "translated",
            "?query=nodes%7B%7D&ast_only=true",
        ),
        ("query=", "translated", "?query=&ast_only=true"),
        ("query={}", "translated", "?query={}&ast_only=true"),
        (
            "query=nodes{}&ast_only=TRUE",
            "in turn",
            "?query=nodes{}&ast_only=TRUE",
        ),
    ]);
    let target = "/pdb/query/v4";
    let route = Route::find(target).unwrap().unwrap();
    let params = Params::read("query=nodes%7B%7D&ast_only=false&limit=1&pretty=true").unwrap();
    let plan = translated(&route, &params, r#"[ "from", "nodes" ]"#, &exact()).unwrap();
    let Plan::Fan(fan) = plan else {
        panic!("{plan:?}");
    };
    assert_eq!((fan.ask.limit(), fan.layout), (Some(1), Layout::Pretty));
    assert!(!fan.ask.target().contains("ast_only"));
    // What cannot be planned is asked as the client wrote it.
    let plan = translated(&route, &params, r#"["from","nosuch"]"#, &exact()).unwrap();
    let Plan::Turns(ask, _, uncertain) = plan else {
        panic!("{plan:?}");
    };
    assert!(ask.target().contains("query=nodes%7B%7D"));
    assert_eq!(uncertain.doubts, [Doubt::OneBackend]);
}

#[test]
fn nothing_is_added_to_whole_records_and_nothing_cached() {
    let plan = |settings: &Settings, target: &str| match planned_with(settings, &encoded(target)) {
        Ok(Plan::Fan(fan)) => {
            let Merge::Records(records) = &fan.merge else {
                panic!("{fan:?}");
            };
            (records.provenance.mark, fan.cache_key.is_some())
        }
        other => panic!("{other:?}"),
    };
    let exact = exact();
    assert_eq!(plan(&exact, "/pdb/query/v4/nodes"), (Mark::Key, true));
    let root = |query: &str| plan(&exact, &format!("/pdb/query/v4?query={query}"));
    assert_eq!(root(r#"["from","nodes"]"#), (Mark::Nothing, false));
    assert_eq!(root(r#"["from","facts"]"#), (Mark::Nothing, false));
    assert_eq!(
        root(r#"["from","nodes",["extract",["certname","pdbmux_source"]]]"#),
        (Mark::Key, false)
    );
}

#[test]
fn r305_in_the_default_modes_the_root_route_is_passed_on() {
    for query in [r#"["from","nodes"]"#, "nodes{}"] {
        let target = format!("?query={query}");
        let (how, _) = asked_with(&settings(), &format!("/pdb/query/v4{target}"));
        assert_eq!(how, "in turn", "{query}");
    }
}

#[test]
fn children_are_asked_of_the_owner_or_of_all() {
    for (path, how) in [
        ("nodes/a", "owner first"),
        ("nodes/a/facts/os", "owner first"),
        ("factsets/a/facts", "owner first"),
        ("catalogs/a/resources", "owner first"),
        ("package-inventory/a", "owner first"),
        ("producers/p/factsets/a", "owner first"),
        ("producers/p/catalogs/a/resources/File", "owner first"),
        ("environments/e", "all"),
        ("producers/p", "all"),
        ("environments/e/facts", "all"),
        ("producers/p/catalogs", "all"),
        ("reports/h/logs", "all"),
    ] {
        let asked = asked_with(&exact(), &format!("/pdb/query/v4/{path}"));
        assert_eq!(asked, (how, path.to_owned()));
    }
    for (path, expected) in [
        ("catalogs/a/edges", "edges"),
        ("environments/e/reports/h/logs", "reports/h/logs"),
        ("producers/p/reports/h/metrics", "reports/h/metrics"),
        (
            "environments/e/reports/h/events",
            r#"reports/h/events?query=["=","environment","e"]"#,
        ),
    ] {
        let asked = asked_with(&exact(), &format!("/pdb/query/v4/{path}"));
        assert_eq!(asked, ("all below a parent", encoded(expected)));
    }
    let last = planned_with(&exact(), "/pdb/query/v4/producers/p/factsets/%61").unwrap();
    let Plan::Turns(_, Turns::OwnerFirst { certname, by }, _) = last else {
        panic!("{last:?}");
    };
    assert_eq!((&*certname, by), ("a", Strategy::Exact));
}
