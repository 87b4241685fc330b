//! Names, history, counts, what hangs below a report, metrics.

use super::*;
use crate::merge::Layout;
use crate::merge::jolokia::Metrics;

fn fan(target: &str) -> Fan {
    match planned(&encoded(target)).unwrap() {
        Plan::Fan(fan) => fan,
        other => panic!("{target}: {other:?}"),
    }
}

#[test]
fn r005_r100_what_no_rule_rewrites_goes_upstream_as_it_came() {
    for target in [
        "fact-names?order_by=[]&include_total=true&query=%5b%5D",
        "reports?query=[%22=%22,%20%22certname%22,%22a%22]",
        "reports?order_by=[%7B%22field%22:%22noop%22%7D]&origin=a%20b",
        "events?distinct_resources=true&distinct_start_time=0&distinct_end_time=1",
        "events?query=events%7B%7D",
        "event-counts?summarize_by=resource&count_by=certname&order_by=[%7B%22field%22:%22x%22%7D]",
        "aggregate-event-counts?summarize_by=certname,resource&limit=x&pretty=true",
        "reports/a%2Db+/events?limit=1&offset=2&pretty=true",
        "reports/a%2Fb/logs?pretty=true&query=x",
        "reports/a/metrics?limit=x",
    ] {
        let Plan::Fan(fan) = planned(target).unwrap() else {
            panic!("{target} is not merged")
        };
        assert_eq!(fan.ask.target(), format!("/pdb/query/v4/{target}"));
    }
}

#[test]
fn r089_t12_names_are_asked_for_whole() {
    assert_asked(&[
        ("fact-names?limit=2&offset=1", "all", "fact-names"),
        (
            r#"fact-names?order_by=[{"field":"name","order":"desc"}]&limit=2&include_total=true"#,
            "all",
            r#"fact-names?order_by=[{"field":"name","order":"desc"}]&include_total=true"#,
        ),
    ]);
}

#[test]
fn r087_r088_names_are_ordered_by_name_alone() {
    use crate::paging::Direction;
    for (order_by, expected) in [
        ("", Direction::Asc),
        ("[]", Direction::Asc),
        (r#"[{"field":"name"}]"#, Direction::Asc),
        (r#"[{"field":"name","order":"DESC"}]"#, Direction::Desc),
        // The first of a repeated field decides.
        (
            r#"[{"field":"name","order":"desc"},{"field":"name"}]"#,
            Direction::Desc,
        ),
    ] {
        let Merge::List(list) = fan(&format!("fact-names?order_by={order_by}")).merge else {
            panic!("not a list")
        };
        assert_eq!(list.direction, expected, "{order_by}");
    }
    for other in ["certname", "Name", "value"] {
        let target = format!(r#"fact-names?order_by=[{{"field":"name"}},{{"field":"{other}"}}]"#);
        let expected = Refusal::NotAFactNameColumn {
            field: other.into(),
        };
        assert_eq!(planned(&encoded(&target)), Err(expected));
    }
}

#[test]
fn r093_r094_history_keeps_each_record_by_its_identity() {
    assert_eq!(records("reports").keep, Keep::Each(&["hash"]));
    let Keep::Each(identity) = records("events").keep else {
        panic!("events compete")
    };
    for receipt in ["report_receive_time", "configuration_version", "certname"] {
        assert!(!identity.contains(&receipt));
    }
    for target in ["reports", "events"] {
        let records = records(target);
        assert_eq!(records.provenance.mark, Mark::Nothing);
        assert_eq!(records.strip, [""; 0]);
        assert!(!records.needs_freshness(), "{target}");
    }
    // T12: the map vouches for the order of certnames, where that decides a cut.
    let by = |field: &str| format!(r#"reports?limit=1&order_by=[{{"field":"{field}"}}]"#);
    assert!(records(&by("certname")).needs_freshness());
    assert!(!records(&by("start_time")).needs_freshness());
}

#[test]
fn t15_t16_pages_of_history_are_cut_from_a_total_order() {
    let hash = r#"{"field":"hash","order":"asc"}"#;
    let event = [
        "report",
        "resource_type",
        "resource_title",
        "property",
        "timestamp",
        "status",
        "new_value",
        "old_value",
        "message",
    ];
    let event = event.map(|field| format!(r#"{{"field":"{field}","order":"asc"}}"#));
    let event = event.join(",");
    let start = r#"{"field":"start_time","order":"desc"}"#;
    for (target, expected) in [
        (
            "reports?limit=2&offset=3".to_owned(),
            format!("reports?order_by=[{hash}]&limit=5"),
        ),
        (
            format!("reports?order_by=[{start}]&limit=2"),
            format!("reports?order_by=[{start},{hash}]&limit=2"),
        ),
        // R154.
        (
            "reports?offset=3".into(),
            format!("reports?order_by=[{hash}]"),
        ),
        (
            "events?limit=2".into(),
            format!("events?order_by=[{event}]&limit=2"),
        ),
        // T4, T5, T11: what tells records apart and what is sorted by is asked for.
        (
            r#"reports?query=["extract",["status"]]&limit=1&order_by=[{"field":"start_time","order":"desc"}]"#.into(),
            format!(r#"reports?order_by=[{start},{hash}]&query=["extract",["status","hash","start_time"]]&limit=1"#),
        ),
    ] {
        assert_eq!(asked(&target), ("all", encoded(&expected)), "{target}");
    }
    let target =
        r#"reports?query=["extract",["status"]]&limit=1&order_by=[{"field":"start_time"}]"#;
    assert_eq!(records(target).strip, ["hash", "start_time"]);
}

#[test]
fn ruling_3_t4_t5_t9_projections_gain_the_identity_where_puppetdb_projects() {
    let all = r#""report","resource_type","resource_title","property","timestamp","new_value","old_value","message""#;
    let wider = format!(r#"events?query=["extract",["status",{all}],["=","certname","a"]]"#);
    assert_asked(&[
        (
            r#"events?query=["extract",["status"],["=","certname","a"]]"#,
            "all",
            &wider,
        ),
        (
            r#"reports?query=["extract","hash"]"#,
            "all",
            r#"reports?query=["extract","hash"]"#,
        ),
        (
            r#"reports?query=["extract",[]]"#,
            "all",
            r#"reports?query=["extract",[]]"#,
        ),
        (
            r#"reports?query=["extract",["status"],["=","a",1],["limit",1]]"#,
            "all",
            r#"reports?query=["extract",["status"],["=","a",1],["limit",1]]"#,
        ),
    ]);
}

#[test]
fn r098_r099_functions_on_history_are_folded_but_not_over_distinct_resources() {
    let count = r#"query=["extract",[["function","count"],"status"],["group_by","status"]]"#;
    for entity in ["reports", "events"] {
        let target = format!("{entity}?{count}&limit=1&offset=1");
        assert!(matches!(fan(&target).merge, Merge::Aggregates(_)));
        assert_asked(&[(&target, "all", &format!("{entity}?{count}"))]);
    }
    for distinct in ["true", "TRUE"] {
        let distinct = format!("distinct_resources={distinct}&{count}");
        let refused = planned(&encoded(&format!("events?{distinct}")));
        assert_eq!(refused, Err(Refusal::DistinctAggregate));
        // R101.
        fan(&format!("reports?{distinct}"));
    }
    fan(&format!("events?distinct_resources=false&{count}"));
}

#[test]
fn r136_t31_counts_are_asked_for_whole_and_ordered_cut_and_counted_here() {
    let order = r#"order_by=[{"field":"resource_title","order":"desc"},{"field":"failures"}]"#;
    let target =
        format!("event-counts?limit=1&offset=2&include_total=true&summarize_by=resource&{order}");
    let Merge::Aggregates(counts) = fan(&target).merge else {
        panic!("not folded")
    };
    // T22: by the SQL's names, at the rows' places.
    assert_eq!(counts.order.members(), ["subject", "failures"]);
    assert_eq!((counts.window.offset, counts.window.limit), (2, Some(1)));
    assert_eq!(counts.total, Total::Counted);
    let expected = format!("event-counts?summarize_by=resource&{order}");
    assert_asked(&[(&target, "all", &expected)]);
}

#[test]
fn t30_a_filter_of_counts_is_applied_here_unless_it_is_the_backends_to_refuse() {
    let filter = r#"counts_filter=[">","failures",1]"#;
    let target = format!("event-counts?{filter}&summarize_by=certname");
    assert_asked(&[(&target, "all", "event-counts?summarize_by=certname")]);
    for forwarded in [
        r#"event-counts?counts_filter=["=","total",1]"#,
        "event-counts?counts_filter=[x",
        // What it takes away there are subjects, which are not told.
        r#"aggregate-event-counts?counts_filter=["=","failures",1]"#,
    ] {
        assert_asked(&[(forwarded, "all", forwarded)]);
    }
}

#[test]
fn d13_the_events_of_a_report_can_be_asked_for_otherwise() {
    let otherwise = |target: &str| match fan(target).merge {
        Merge::Holder(otherwise) => otherwise.map(|fan| fan.ask.target()),
        other => panic!("{target}: {other:?}"),
    };
    let clause = r#"["=","report","a\"b"]"#;
    for (query, expected) in [
        ("", clause.to_owned()),
        (
            r#"?query=["=","status","x"]"#,
            format!(r#"["and",{clause},["=","status","x"]]"#),
        ),
    ] {
        let found = otherwise(&format!("reports/a%22b/events{query}"));
        let expected = encoded(&format!("/pdb/query/v4/events?query={expected}"));
        assert_eq!(found, Some(expected), "{query}");
    }
    assert_eq!(otherwise("reports/a/events?query=events{}"), None);
    assert_eq!(otherwise("reports/a/logs"), None);
    assert_eq!(otherwise("reports/a/metrics"), None);
    // What the events refuse is refused before the holder is asked.
    for bad in ["limit=0", "offset=x", "order_by=1"] {
        assert!(planned(&format!("reports/a/events?{bad}")).is_err());
    }
}

#[test]
fn ruling_13_a_report_is_not_forgotten_beside_a_repeated_query() {
    let target = r#"reports/a/events?query=["=","x",1]&query=["=","x",2]"#;
    let Merge::Holder(otherwise) = fan(target).merge else {
        panic!("not asked of its holder")
    };
    assert_eq!(otherwise, None);
}

#[test]
fn t64_pretty_is_laid_out_where_the_answer_is_made() {
    for (target, made_here) in [
        ("fact-names", true),
        ("reports", true),
        ("events", true),
        ("nodes", true),
        ("facts/os", true),
        ("event-counts?summarize_by=x", true),
        (r#"reports?query=["extract",[["function","count"]]]"#, true),
        // The backends refuse it.
        ("aggregate-event-counts?summarize_by=x", false),
        // Served as it comes.
        ("reports/a/logs", false),
        ("reports/a/events", false),
    ] {
        let (path, rest) = target.split_once('?').unwrap_or((target, "origin=x"));
        let fan = fan(&format!("{path}?pretty=true&{rest}"));
        let expected = if made_here {
            Layout::Pretty
        } else {
            Layout::AsItCame
        };
        assert_eq!(fan.layout, expected, "{target}");
        assert_eq!(fan.ask.target().contains("pretty"), !made_here, "{target}");
    }
    assert_eq!(fan("reports?pretty=yes").layout, Layout::AsItCame);
}

#[test]
fn r258_to_r260_metrics_are_merged_under_their_raw_path_unless_reshaped() {
    let metrics = |path: &str| match planned_with(&settings(), path).unwrap() {
        Plan::Fan(Fan { ask, merge, .. }) => {
            assert_eq!(ask.target(), path);
            match merge {
                Merge::Metrics(metrics) => Some(metrics),
                other => panic!("{other:?}"),
            }
        }
        Plan::Turns(ask, Turns::Configured, _) => {
            assert_eq!(ask.target(), path);
            None
        }
        other => panic!("{other:?}"),
    };
    for (path, expected) in [
        ("/metrics/v2/list", Metrics::List),
        ("/metrics/v2/list/java.lang?maxDepth=2", Metrics::List),
        ("/metrics/v1/mbeans", Metrics::MBeans),
        ("/metrics/v1/mbeans/a%3Ab", Metrics::MBean("a%3Ab".into())),
    ] {
        assert_eq!(metrics(path), Some(expected), "{path}");
    }
    // T75.
    for path in [
        "/metrics/v2/list?callback=x",
        "/metrics/v2/read/a?mimeType=text/plain",
        "/metrics/v1/mbeans?callback=x",
        "/metrics/v2/search/a",
    ] {
        assert_eq!(metrics(path), None, "{path}");
    }
}
