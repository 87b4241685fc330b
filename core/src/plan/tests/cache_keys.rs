use super::*;

/// The key behind the API's root; `None` if the answer is not cached.
fn key(target: &str) -> Option<String> {
    let Plan::Fan(fan) = planned(&encoded(target)).unwrap() else {
        return None;
    };
    let key = fan.cache_key?;
    Some(key.strip_prefix("/pdb/query/v4/").unwrap().to_owned())
}

#[test]
fn r204_a_key_is_the_path_and_the_sorted_parameters() {
    for (target, expected) in [
        ("nodes", "nodes"),
        ("nodes?", "nodes"),
        ("fact-names?offset=1&limit=2", "fact-names?limit=2&offset=1"),
        ("facts/os/a%2Fb?pretty=true", "facts/os/a%2Fb?pretty=true"),
        ("nodes?b=z&a=2&b=%79&a=1", "nodes?a=1&a=2&b=y&b=z"),
        ("nodes?x=a%20b&q=%c3%a9", "nodes?q=%C3%A9&x=a+b"),
        // It is written to a backend's log and decides nothing.
        ("nodes?origin=board", "nodes"),
    ] {
        assert_eq!(key(target).as_deref(), Some(expected), "{target}");
    }
    let query = key(r#"facts?query=["=","certname","a"]"#);
    assert_eq!(
        query.as_deref(),
        Some("facts?query=%5B%22%3D%22%2C%22certname%22%2C%22a%22%5D")
    );
}

#[test]
fn r205_the_order_and_the_spelling_of_parameters_do_not_matter() {
    for (one, other) in [
        ("nodes?limit=1&offset=2", "nodes?offset=2&&limit=1"),
        ("nodes?a=1&a=2", "nodes?a=2&a=1"),
        ("nodes?x=a+b", "nodes?%78=a%20b"),
    ] {
        assert_eq!(key(one), key(other), "{one}");
    }
}

#[test]
fn what_decides_an_answer_is_in_its_key() {
    let targets = [
        "nodes",
        "nodes?limit=1",
        "nodes?limit=2",
        "nodes?offset=1",
        "nodes?include_total=true",
        "nodes?pretty=true",
        "nodes?x=1%26y=2",
        "nodes?x=1&y=2",
        "facts",
        "facts/a",
        "facts/a/b",
        "facts/a%2Fb",
        // R224: the first has no source facts added.
        r#"facts?query=["=","name","a"]"#,
    ];
    let mut keys: Vec<_> = targets.iter().map(|target| key(target).unwrap()).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), targets.len(), "{keys:#?}");
}

#[test]
fn r203_r141_aggregates_and_all_other_routes_have_no_key() {
    let count = r#"query=["extract",[["function","count"]]]"#;
    for target in [
        format!("nodes?{count}"),
        format!("facts?{count}"),
        format!("facts/os?{count}"),
        format!("facts/pdbmux_source?{count}"),
        "nodes?explain=analyze".to_owned(),
        "nodes/a".to_owned(),
        "resources".to_owned(),
        "reports".to_owned(),
        "events".to_owned(),
        "event-counts?summarize_by=certname".to_owned(),
        "reports/a/events".to_owned(),
        "factsets".to_owned(),
    ] {
        assert_eq!(key(&target), None, "{target}");
    }
    for path in ["/pdb/meta/v1/version", "/metrics/v2/read/a:b=c"] {
        let Plan::Fan(fan) = planned_with(&settings(), path).unwrap() else {
            panic!("not merged")
        };
        assert_eq!(fan.cache_key, None, "{path}");
    }
}

#[test]
fn r225_the_source_facts_path_leaves_out_what_is_applied_to_the_shared_entry() {
    for target in [
        "facts/pdbmux_source",
        "facts/pdbmux_source/pdb-a",
        "facts/pdbmux_source/pdb%2Db?limit=1&offset=2&include_total=true",
        r#"facts/pdbmux_source/pdb-b?pretty=true&order_by=[{"field":"certname"}]"#,
    ] {
        assert_eq!(key(target).as_deref(), Some("facts/pdbmux_source"));
    }
    let narrowed = r#"facts/pdbmux_source/pdb-a?query=["=","certname","a"]"#;
    let expected = encoded(r#"facts/pdbmux_source?query=["=","certname","a"]"#);
    assert_eq!(key(narrowed), Some(expected));
    // Ruling 13: repeated, a parameter goes upstream as it came.
    assert_eq!(
        key("facts/pdbmux_source/pdb-a?limit=1&limit=2").as_deref(),
        Some("facts/pdbmux_source?limit=1&limit=2")
    );
    // R067: a fact like any other.
    let mut settings = settings();
    settings.source = None;
    let path = "/pdb/query/v4/facts/pdbmux_source/pdb-a";
    let Plan::Fan(fan) = planned_with(&settings, path).unwrap() else {
        panic!("not merged")
    };
    assert_eq!(fan.cache_key.as_deref(), Some(path));
}
