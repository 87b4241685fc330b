//! What the sample answers to queries, as tables against hand-made expectations.

use pdbmux_samples::{Answer, Entity, Estate, Request, Timestamp};
use serde_json::{Value, json};

/// Three active nodes and a deactivated one, `c`; `b` has never reported.
fn estate() -> Estate {
    let node = |name: &str, reported: Option<&str>, hash: Option<&str>, gone: Option<&str>| {
        json!({
            "certname": name, "report_timestamp": reported, "latest_report_hash": hash,
            "deactivated": gone, "latest_report_noop": hash.map(|_| name == "d"),
        })
    };
    let fact = |certname: &str, name: &str, value: Value| json!({"certname": certname, "environment": "production", "name": name, "value": value});
    let report = |certname: &str, hash: &str, status: &str, kind: &str| {
        json!({
            "certname": certname, "hash": hash, "status": status, "type": kind,
            "report_format": 12, "end_time": "2026-11-13T00:00:00.000Z",
            "logs": {"data": [{"level": "notice"}]},
        })
    };
    let event = |certname: &str, report: &str, status: &str| {
        json!({
            "certname": certname, "report": report, "status": status,
            "resource_type": "Service", "resource_title": "ntp", "containing_class": null,
        })
    };
    let inventory = |certname: &str, facts: Value| {
        json!({
            "certname": certname, "environment": "production", "facts": facts,
            "timestamp": "2026-11-13T00:00:00.000Z", "trusted": {"certname": certname},
        })
    };
    let resource = |certname: &str, title: &str, tags: Value, parameters: Value| {
        json!({
            "certname": certname, "type": "File", "title": title, "tags": tags, "line": 3,
            "exported": title == "/x", "parameters": parameters, "resource": "r1",
        })
    };
    Estate::new("8.15.0")
        .with(
            Entity::Nodes,
            [
                node("a", Some("2026-11-13T00:01:00.014Z"), Some("h2"), None),
                node("b", None, None, None),
                node(
                    "c",
                    Some("2026-11-12T00:00:00.000Z"),
                    Some("h4"),
                    Some("2026-11-13T00:00:00.000Z"),
                ),
                node("d", Some("2026-11-13T00:00:30.000Z"), Some("h3"), None),
            ],
        )
        .with(
            Entity::Facts,
            [
                fact("a", "kernel", json!("Linux")),
                fact("a", "uptime", json!(10)),
                fact("a", "virtual", json!(true)),
                fact("b", "kernel", json!("Linux")),
                fact("b", "uptime", json!(2.5)),
                fact("c", "kernel", json!("AIX")),
                fact("c", "uptime", json!(7)),
                fact("d", "kernel", json!("FreeBSD")),
                fact("d", "note", json!(null)),
                fact("d", "os", json!({"bb": 1, "a": 2})),
            ],
        )
        .with(
            Entity::Reports,
            [
                report("a", "h1", "failed", "agent"),
                report("a", "h2", "changed", "agent"),
                report("d", "h3", "changed", "agent"),
                report("c", "h4", "unchanged", "agent"),
                report("a", "h5", "changed", "plan"),
            ],
        )
        .with(
            Entity::Events,
            [
                event("a", "h1", "failure"),
                event("a", "h2", "success"),
                event("a", "h2", "success"),
                event("d", "h3", "noop"),
                event("c", "h4", "skipped"),
            ],
        )
        .with(
            Entity::Inventory,
            [
                inventory(
                    "a",
                    json!({"os": {"family": "Debian", "major": 12}, "up": 5, "a.b": "x"}),
                ),
                inventory("b", json!({"os": {"family": "RedHat"}, "up": "5"})),
                inventory("d", json!({"up": true})),
            ],
        )
        .with(
            Entity::Resources,
            [
                resource("a", "/x", json!(["file", "web"]), json!({"mode": "0644"})),
                resource("d", "/y", json!(["file"]), json!({})),
            ],
        )
        .with(Entity::Environments, [json!({"name": "production"})])
}

fn get(estate: &Estate, path: &str, params: &[(&str, &str)]) -> Answer {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(params);
    let request = Request {
        method: "GET",
        path: &format!("/pdb/query/v4{path}"),
        query: &query.finish(),
        ..Request::default()
    };
    estate.answer(&request, Timestamp::from_millis(0))
}

fn ask(path: &str, query: &Value) -> Answer {
    get(&estate(), path, &[("query", &query.to_string())])
}

/// The values of one column, joined, or the text of the refusal.
fn column(answer: &Answer, name: &str) -> String {
    match serde_json::from_str(&answer.body) {
        Ok(Value::Array(rows)) => {
            let cells = rows.iter().map(|row| match &row[name] {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            });
            cells.collect::<Vec<_>>().join(" ")
        }
        _ => format!("{} {}", answer.status, answer.body),
    }
}

#[test]
fn filters_on_nodes_keep_what_puppetdb_keeps() {
    for (query, certnames) in [
        (json!(null), "a b d"),
        (json!(["=", "certname", "a"]), "a"),
        (json!(["=", "certname", "A"]), ""),
        (json!(["~", "certname", "^[ab]$"]), "a b"),
        (
            json!([">", "report_timestamp", "2026-11-13T00:00:30Z"]),
            "a",
        ),
        (
            json!([">=", "report_timestamp", "2026-11-13T00:00:30Z"]),
            "a d",
        ),
        (json!(["<", "report_timestamp", "2026-11-13 00:01:00"]), "d"),
        (
            json!(["<=", "report_timestamp", 1_794_528_030_000_i64]),
            "d",
        ),
        (
            json!(["=", "report_timestamp", "2026-11-13T00:01:00.014Z"]),
            "a",
        ),
        (json!(["null?", "report_timestamp", true]), "b"),
        (json!(["null?", "report_timestamp", false]), "a d"),
        (json!(["=", "report_timestamp", null]), "b"),
        (json!(["=", "latest_report_noop", true]), "d"),
        // b's flag is unknown, and so is its negation.
        (json!(["not", ["=", "latest_report_noop", true]]), "a"),
        (
            json!(["and", ["=", "certname", "a"], ["=", "certname", "b"]]),
            "",
        ),
        (
            json!([
                "or",
                ["=", "certname", "a"],
                ["=", "latest_report_noop", true]
            ]),
            "a d",
        ),
        (json!(["in", "certname", ["array", ["a", "c", "x"]]]), "a"),
        (json!(["not", ["in", "certname", ["array", ["a"]]]]), "b d"),
        (
            json!([
                "in",
                "certname",
                [
                    "extract",
                    "certname",
                    ["select_facts", ["=", "value", "FreeBSD"]]
                ]
            ]),
            "d",
        ),
        (
            json!([
                "in",
                "certname",
                [
                    "from",
                    "facts",
                    ["extract", ["certname"], ["=", "name", "virtual"]]
                ]
            ]),
            "a",
        ),
        (
            json!([
                "in",
                ["certname", "latest_report_hash"],
                [
                    "from",
                    "reports",
                    ["extract", ["certname", "hash"], ["=", "status", "changed"]]
                ]
            ]),
            "a d",
        ),
        // A subquery that yields NULL makes the rest unknown.
        (
            json!([
                "not",
                [
                    "in",
                    "latest_report_hash",
                    [
                        "from",
                        "nodes",
                        ["extract", "latest_report_hash", ["=", "certname", "b"]]
                    ]
                ]
            ]),
            "",
        ),
        (json!(["=", ["fact", "kernel"], "Linux"]), "a b"),
        (json!([">", ["fact", "uptime"], 5]), "a"),
        (json!(["~", ["fact", "kernel"], "BSD$"]), "d"),
    ] {
        let answer = ask("/nodes", &query);
        assert_eq!(column(&answer, "certname"), certnames, "{query}");
    }
}

#[test]
fn inactive_nodes_show_only_where_and_when_puppetdb_shows_them() {
    for (path, query, certnames) in [
        ("/nodes", json!(["=", ["node", "active"], true]), "a b d"),
        ("/nodes", json!(["=", ["node", "active"], "false"]), "a b d"),
        ("/nodes", json!(["=", ["node", "active"], false]), "c"),
        ("/nodes", json!(["=", "node_state", "Inactive"]), "c"),
        ("/nodes", json!(["=", "node_state", "any"]), "a b c d"),
        (
            "/nodes",
            json!([
                "and",
                ["=", "node_state", "any"],
                ["null?", "deactivated", false]
            ]),
            "c",
        ),
        ("/facts/kernel", json!(null), "a b d"),
        ("/facts/kernel", json!(["=", "node_state", "inactive"]), "c"),
        ("/nodes/c/facts", json!(null), ""),
        ("/reports", json!(null), "a a d c"),
        ("/events", json!(["=", "status", "skipped"]), "c"),
        ("", json!(["from", "reports"]), "a a d"),
        (
            "",
            json!(["from", "nodes", ["=", "node_state", "any"]]),
            "a b c d",
        ),
    ] {
        let answer = ask(path, &query);
        assert_eq!(column(&answer, "certname"), certnames, "{path} {query}");
    }
    let answer = ask("/nodes", &json!(["=", "node_state", "zz"]));
    assert_eq!(
        (answer.status, answer.body.as_str()),
        (400, "No matching clause: zz")
    );
}

#[test]
fn fact_values_compare_as_json() {
    for (query, names) in [
        (json!(["=", "value", "Linux"]), "kernel kernel"),
        (json!(["=", "value", 10]), "uptime"),
        (json!(["=", "value", 10.0]), "uptime"),
        (json!(["=", "value", "10"]), ""),
        (json!(["=", "value", true]), "virtual"),
        (json!(["=", "value", {"a": 2, "bb": 1}]), "os"),
        (json!(["null?", "value", true]), "note"),
        // A regular expression sees a number's text, and never the JSON null.
        (json!(["~", "value", "^1|^2"]), "uptime uptime"),
        (
            json!(["and", ["=", "name", "uptime"], [">", "value", 2.5]]),
            "uptime",
        ),
        (
            json!(["and", ["=", "name", "uptime"], [">=", "value", 2.5]]),
            "uptime uptime",
        ),
        // Booleans and objects stand behind all numbers in the order of jsonb.
        (json!([">", "value", 99]), "virtual os"),
        (
            json!(["in", "value", ["array", ["FreeBSD", true]]]),
            "virtual kernel",
        ),
    ] {
        assert_eq!(column(&ask("/facts", &query), "name"), names, "{query}");
    }
    for (path, certnames) in [
        ("/facts/kernel/Linux", "a b"),
        ("/facts/uptime/10", ""),
        ("/facts/nope", ""),
        ("/nodes/a/facts/kernel", "a"),
        ("/facts/kernel/Free%42SD", "d"),
    ] {
        assert_eq!(
            column(&get(&estate(), path, &[]), "certname"),
            certnames,
            "{path}"
        );
    }
}

#[test]
fn dotted_paths_lead_into_inventory() {
    for (query, certnames) in [
        (json!(["=", "facts.os.family", "Debian"]), "a"),
        (json!(["not", ["=", "facts.os.family", "Debian"]]), "b d"),
        (json!(["~", "facts.os.family", "^R"]), "b"),
        (json!([">", "facts.os.major", 11]), "a"),
        // true > 4 and 5 > 4, but no text is.
        (json!([">", "facts.up", 4]), "a d"),
        (json!(["not", [">", "facts.nope", 4]]), "a b d"),
        (json!(["null?", "facts.os.major", true]), "b d"),
        (json!(["=", "facts.\"a.b\"", "x"]), "a"),
        (json!(["=", "trusted.certname", "d"]), "d"),
        (
            json!(["in", "facts.os.family", ["array", ["Debian", "RedHat"]]]),
            "a b",
        ),
    ] {
        assert_eq!(
            column(&ask("/inventory", &query), "certname"),
            certnames,
            "{query}"
        );
    }
    let answer = ask(
        "/inventory",
        &json!(["extract", ["certname", "facts.os.family"]]),
    );
    assert_eq!(
        answer.body,
        r#"[{"certname":"a","facts.os.family":"Debian"},{"certname":"b","facts.os.family":"RedHat"},{"certname":"d","facts.os.family":null}]"#
    );
}

#[test]
fn reports_events_and_resources_have_fields_of_their_own() {
    for (path, query, name, values) in [
        (
            "/reports",
            json!(["=", "latest_report?", true]),
            "hash",
            "h2 h3 h4",
        ),
        (
            "/reports",
            json!(["=", "latest_report?", false]),
            "hash",
            "h1",
        ),
        (
            "/reports",
            json!(["=", "type", "any"]),
            "hash",
            "h1 h2 h3 h4 h5",
        ),
        ("/reports", json!(["=", "type", "plan"]), "hash", "h5"),
        ("/reports", json!([">", "report_format", 12]), "hash", ""),
        (
            "/reports",
            json!(["=", "report_format", 12]),
            "hash",
            "h1 h2 h3 h4",
        ),
        (
            "/events",
            json!(["=", "latest_report?", true]),
            "status",
            "success success noop skipped",
        ),
        ("/resources", json!(["=", "tag", "WEB"]), "title", "/x"),
        (
            "/resources",
            json!(["=", "parameters.mode", "0644"]),
            "title",
            "/x",
        ),
        ("/resources", json!(["=", "exported", false]), "title", "/y"),
        ("/resources/File/%2Fx", json!(null), "certname", "a"),
        ("/resources/file", json!(null), "certname", ""),
    ] {
        assert_eq!(column(&ask(path, &query), name), values, "{path} {query}");
    }
}

#[test]
fn extracts_and_functions_make_the_rows_of_puppetdb() {
    let count = json!(["function", "count"]);
    let of = |function: &str, column: &str| json!(["function", function, column]);
    let uptime = json!(["=", "name", "uptime"]);
    for (path, query, body) in [
        (
            "/nodes",
            json!(["extract", "certname"]),
            r#"[{"certname":"a"},{"certname":"b"},{"certname":"d"}]"#,
        ),
        (
            "/nodes",
            json!(["extract", ["certname", "certname"], ["=", "certname", "a"]]),
            r#"[{"certname":"a","certname_2":"a"}]"#,
        ),
        ("/nodes", json!(["extract", [count]]), r#"[{"count":3}]"#),
        (
            "/nodes",
            json!(["extract", [count], ["=", "certname", "x"]]),
            r#"[{"count":0}]"#,
        ),
        (
            "/nodes",
            json!([
                "extract",
                [count, of("count", "report_timestamp"), of("count", "nope")]
            ]),
            r#"[{"count":3,"count_2":2,"count_3":0}]"#,
        ),
        (
            "/nodes",
            json!([
                "extract",
                [of("max", "report_timestamp"), of("min", "certname")]
            ]),
            r#"[{"max":"2026-11-13T00:01:00.014Z","min":"a"}]"#,
        ),
        (
            "/nodes",
            json!(["extract", [of("max", "certname")], ["=", "certname", "x"]]),
            r#"[{"max":null}]"#,
        ),
        (
            "/facts",
            json!([
                "extract",
                [
                    of("sum", "value"),
                    of("avg", "value"),
                    of("min", "value"),
                    of("max", "value"),
                    count
                ],
                uptime
            ]),
            r#"[{"sum":12.5,"avg":6.2500000000000000,"min":2.5,"max":10,"count":2}]"#,
        ),
        (
            "/facts",
            json!([
                "extract",
                [of("sum", "value"), of("avg", "value")],
                ["=", "name", "x"]
            ]),
            r#"[{"sum":null,"avg":null}]"#,
        ),
        // A cast narrows the whole row to numeric facts.
        (
            "/facts",
            json!(["extract", [of("sum", "value"), count]]),
            r#"[{"sum":12.5,"count":2}]"#,
        ),
        ("/facts", json!(["extract", [count]]), r#"[{"count":8}]"#),
        (
            "/reports",
            json!(["extract", ["status", count], null, ["group_by", "status"]]),
            r#"[{"count":1,"status":"failed"},{"count":2,"status":"changed"},{"count":1,"status":"unchanged"}]"#,
        ),
        (
            "/reports",
            json!(["extract", [count], ["group_by", "status"]]),
            r#"[{"count":1},{"count":2},{"count":1}]"#,
        ),
        (
            "/reports",
            json!([
                "extract",
                "status",
                ["=", "certname", "a"],
                ["group_by", "status"]
            ]),
            r#"[{"status":"failed"},{"status":"changed"}]"#,
        ),
        (
            "/reports",
            json!([
                "extract",
                [count],
                ["=", "certname", "x"],
                ["group_by", "status"]
            ]),
            "[]",
        ),
        (
            "/nodes",
            json!([
                "extract",
                [count, "deactivated"],
                ["=", "node_state", "any"],
                ["group_by", "deactivated"]
            ]),
            r#"[{"count":3,"deactivated":null},{"count":1,"deactivated":"2026-11-13T00:00:00.000Z"}]"#,
        ),
        (
            "/facts/os",
            json!(null),
            r#"[{"certname":"d","environment":"production","name":"os","value":{"a":2,"bb":1}}]"#,
        ),
        (
            "/inventory",
            json!(["extract", "facts", ["=", "certname", "b"]]),
            r#"[{"facts":{"os": {"family": "RedHat"}, "up": "5"}}]"#,
        ),
    ] {
        assert_eq!(ask(path, &query).body, body, "{path} {query}");
    }
}

#[test]
fn before_8_6_a_path_is_no_filter_that_narrows_to_numeric_facts() {
    let old = Estate::new("7.12.1").with(
        Entity::Facts,
        [
            json!({"certname": "a", "name": "x", "value": 1}),
            json!({"certname": "b", "name": "x", "value": "one"}),
        ],
    );
    let query = r#"["extract",[["function","sum","value"]]]"#;
    assert_eq!(get(&old, "/facts/x", &[("query", query)]).status, 500);
    let query = r#"["extract",[["function","sum","value"]],["~","certname","."]]"#;
    assert_eq!(
        get(&old, "/facts/x", &[("query", query)]).body,
        r#"[{"sum":1}]"#
    );
}

#[test]
fn order_limit_offset_and_total_work_together() {
    let by = |field: &str, order: &str| format!(r#"[{{"field":"{field}","order":"{order}"}}]"#);
    for (path, params, name, values, total) in [
        (
            "/nodes",
            vec![("order_by", by("report_timestamp", "asc"))],
            "certname",
            "d a b",
            None,
        ),
        (
            "/nodes",
            vec![("order_by", by("report_timestamp", "desc"))],
            "certname",
            "b a d",
            None,
        ),
        (
            "/nodes",
            vec![("limit", "2".into()), ("include_total", "true".into())],
            "certname",
            "a b",
            Some(3),
        ),
        (
            "/nodes",
            vec![("limit", "2".into()), ("offset", "2".into())],
            "certname",
            "d",
            None,
        ),
        (
            "/nodes",
            vec![("offset", "9".into()), ("include_total", "TRUE".into())],
            "certname",
            "",
            Some(3),
        ),
        (
            "/nodes",
            vec![("include_total", "1".into())],
            "certname",
            "a b d",
            None,
        ),
        (
            "/facts",
            vec![("order_by", by("value", "asc")), ("limit", "3".into())],
            "name",
            "note kernel kernel",
            None,
        ),
        (
            "/reports",
            vec![
                (
                    "query",
                    r#"["extract",["status",["function","count"]],["group_by","status"]]"#.into(),
                ),
                ("order_by", by("status", "desc")),
                ("limit", "2".into()),
                ("include_total", "true".into()),
            ],
            "status",
            "unchanged failed",
            Some(3),
        ),
        (
            "",
            vec![(
                "query",
                r#"["from","nodes",["order_by",[["certname","desc"]]],["limit",2],["offset",1]]"#
                    .into(),
            )],
            "certname",
            "b a",
            None,
        ),
        // Parameters beat the clauses in the query.
        (
            "",
            vec![
                ("query", r#"["from","nodes",["limit",2]]"#.into()),
                ("limit", "1".into()),
            ],
            "certname",
            "a",
            None,
        ),
    ] {
        let params: Vec<_> = params
            .iter()
            .map(|(key, value)| (*key, value.as_str()))
            .collect();
        let answer = get(&estate(), path, &params);
        assert_eq!(column(&answer, name), values, "{path} {params:?}");
        assert_eq!(answer.total, total, "{path} {params:?}");
    }
}

#[test]
fn fact_names_are_sorted_strings_of_all_nodes() {
    let names = |params: &[(&str, &str)]| get(&estate(), "/fact-names", params).body;
    assert_eq!(names(&[]), r#"["kernel","note","os","uptime","virtual"]"#);
    assert_eq!(
        names(&[
            ("order_by", r#"[{"field":"name","order":"desc"}]"#),
            ("limit", "2")
        ]),
        r#"["virtual","uptime"]"#
    );
    assert_eq!(
        names(&[("pretty", "true"), ("limit", "2")]),
        r#"[ "kernel", "note" ]"#
    );
}

#[test]
fn event_counts_count_every_status_of_a_subject() {
    let counts = |params: &[(&str, &str)]| get(&estate(), "/event-counts", params).body;
    assert_eq!(
        counts(&[
            ("summarize_by", "certname"),
            ("query", r#"["=","latest_report?",true]"#)
        ]),
        "[{\"failures\":0,\"skips\":0,\"successes\":2,\"noops\":0,\"subject_type\":\"certname\",\"subject\":{\"title\":\"a\"}},\
         {\"failures\":0,\"skips\":0,\"successes\":0,\"noops\":1,\"subject_type\":\"certname\",\"subject\":{\"title\":\"d\"}},\
         {\"failures\":0,\"skips\":1,\"successes\":0,\"noops\":0,\"subject_type\":\"certname\",\"subject\":{\"title\":\"c\"}}]"
    );
    assert_eq!(
        counts(&[("summarize_by", "resource")]),
        r#"[{"failures":1,"skips":1,"successes":2,"noops":1,"subject_type":"resource","subject":{"type":"Service","title":"ntp"}}]"#
    );
    assert_eq!(
        counts(&[]),
        "Missing required query parameter 'summarize_by'"
    );
    assert_eq!(
        counts(&[("summarize_by", "certname,resource")]),
        "Unsupported value for 'summarize_by': 'certname,resource'"
    );
}

#[test]
fn mistakes_get_the_status_of_puppetdb() {
    let bad = |part: &'static str| (400, part);
    for (path, query, (status, part)) in [
        (
            "/nodes",
            json!([]),
            bad("[] is not well-formed: queries must contain at least one operator"),
        ),
        (
            "/nodes",
            json!({}),
            (500, "Output of convert-query-params does not match schema"),
        ),
        (
            "/nodes",
            json!(["=", "nope", 1]),
            bad(
                "'nope' is not a queryable object for nodes. Known queryable objects are 'cached_catalog_status', ",
            ),
        ),
        (
            "/nodes",
            json!(["extract", ["nope"]]),
            bad("Can't extract unknown 'nodes' field 'nope'. Acceptable fields are "),
        ),
        (
            "/nodes",
            json!(["extract", ["function", "count"]]),
            bad("Can't extract unknown 'nodes' field"),
        ),
        (
            "/nodes",
            json!(["extract", "certname", []]),
            bad("not well-formed"),
        ),
        (
            "/nodes",
            json!(["extract", "certname", ["limit", 1]]),
            bad("Unrecognized AST clause"),
        ),
        ("/nodes", json!(["and"]), bad("requires at least one term")),
        (
            "/nodes",
            json!(["not", ["=", "certname", "a"], ["=", "certname", "b"]]),
            bad("takes exactly one argument"),
        ),
        (
            "/nodes",
            json!(["AND", ["=", "certname", "a"]]),
            bad("AST validation failed"),
        ),
        (
            "/nodes",
            json!(["or", ["extract", "certname"]]),
            bad("Unrecognized AST clause"),
        ),
        (
            "/nodes",
            json!(["from", "nodes"]),
            bad("Unrecognized AST clause"),
        ),
        (
            "/nodes",
            json!([">", "certname", "a"]),
            bad("Query operators >,>=,<,<= are not allowed on field certname"),
        ),
        (
            "/nodes",
            json!(["=", "certname", 1]),
            (500, "ERROR: operator does not exist"),
        ),
        (
            "/nodes",
            json!(["=", "report_timestamp", "soon"]),
            bad("not a valid timestamp"),
        ),
        (
            "/nodes",
            json!(["~", "certname", "("]),
            bad("ERROR: invalid regular expression: "),
        ),
        (
            "/nodes",
            json!(["extract", [["function", "COUNT"]]]),
            (500, "An unexpected error occurred"),
        ),
        (
            "/nodes",
            json!(["extract", [["function", "sum", "certname"]]]),
            (500, "ERROR: function sum"),
        ),
        (
            "/nodes",
            json!(["extract", [["function", "max", "latest_report_noop"]]]),
            (500, "ERROR: function max"),
        ),
        (
            "/nodes",
            json!(["extract", ["certname", ["function", "count"]]]),
            (500, "must appear in the GROUP BY clause"),
        ),
        (
            "/nodes",
            json!(["extract", ["certname"], ["group_by"]]),
            (500, "ERROR: syntax error"),
        ),
        (
            "/nodes",
            json!(["in", ["certname", "deactivated"], ["array", [["a", "b"]]]]),
            (500, "single field"),
        ),
        (
            "/reports",
            json!(["=", "report_format", "12"]),
            bad("incompatible with the numeric field"),
        ),
        (
            "/facts",
            json!(["extract", [["function", "count", "value"]]]),
            (500, "invalid input syntax for type numeric"),
        ),
        (
            "/environments",
            json!(["=", ["node", "active"], true]),
            bad("does not evaluate"),
        ),
        (
            "",
            json!(["=", "certname", "a"]),
            bad(r#"This query must be of the form ["from", <entity>, (<optional-query>)]."#),
        ),
        (
            "",
            json!(["from", "nosuch"]),
            bad("Invalid entity 'nosuch' in query"),
        ),
        ("", json!(["from", "fact_names"]), (500, "does not exist")),
        // What a real PuppetDB could answer is refused as well, never guessed.
        (
            "/nodes",
            json!(["subquery", "facts", ["=", "name", "os"]]),
            bad("does not evaluate"),
        ),
        (
            "/nodes",
            json!([
                "extract",
                [["function", "to_string", "report_timestamp", "DAY"]]
            ]),
            bad("does not evaluate"),
        ),
        (
            "/inventory",
            json!(["=", "facts.os", {"family": "Debian"}]),
            bad("does not evaluate"),
        ),
        (
            "/inventory",
            json!(["=", "facts.a[0]", 1]),
            bad("does not evaluate"),
        ),
        (
            "/events",
            json!(["=", "new_value", "x"]),
            bad("does not evaluate"),
        ),
        (
            "/nodes",
            json!([
                "in",
                "certname",
                ["from", "facts", ["extract", "certname"], ["limit", 1]]
            ]),
            bad("does not evaluate"),
        ),
        (
            "/edges",
            json!(null),
            bad("does not evaluate /pdb/query/v4/edges"),
        ),
    ] {
        let answer = ask(path, &query);
        assert_eq!(answer.status, status, "{path} {query}: {}", answer.body);
        assert!(
            answer.body.contains(part),
            "{path} {query}: {}",
            answer.body
        );
        assert_eq!(
            answer.content_type,
            Some("text/plain;charset=utf-8"),
            "{path} {query}"
        );
    }
}

#[test]
fn single_records_are_found_whatever_their_state_and_written_pretty() {
    let answer = get(&estate(), "/environments/production", &[]);
    assert_eq!(answer.body, "{\n  \"name\" : \"production\"\n}");
    let answer = get(
        &estate(),
        "/nodes/c",
        &[("query", r#"["=","certname","a"]"#)],
    );
    assert!(
        answer.body.contains("\"certname\" : \"c\""),
        "{}",
        answer.body
    );
    let answer = get(&estate(), "/reports/h1/logs", &[]);
    assert_eq!(answer.body, r#"[{"level": "notice"}]"#);
    for (path, text) in [
        ("/nodes/x", "node x"),
        ("/nodes/x/facts", "node x"),
        ("/factsets/x", "factset x"),
        ("/catalogs/x/resources", "catalog x"),
        ("/environments/x", "environment x"),
        ("/reports/x/metrics", "report x"),
    ] {
        let answer = get(&estate(), path, &[]);
        let body = format!("{{\n  \"error\" : \"No information is known about {text}\"\n}}");
        assert_eq!((answer.status, answer.body), (404, body));
        assert_eq!(answer.content_type, Some("application/json;charset=utf-8"));
    }
}
