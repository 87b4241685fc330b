//! The estate behind the tables.

use pdbmux_samples::{Entity, Estate};
use serde_json::{Value, json};

/// Three active nodes and a deactivated one, `c`; `b` has never reported.
pub(crate) fn estate() -> Estate {
    Estate::new("8.15.0")
        .with(Entity::Nodes, nodes())
        .with(Entity::Facts, facts())
        .with(Entity::Reports, reports())
        .with(Entity::Events, events())
        .with(Entity::Inventory, inventory())
        .with(Entity::Resources, resources())
        .with(Entity::Environments, [json!({"name": "production"})])
}

fn nodes() -> [Value; 4] {
    let node = |name: &str, reported: Option<&str>, hash: Option<&str>, gone: Option<&str>| {
        json!({
            "certname": name,
            "report_timestamp": reported,
            "latest_report_hash": hash,
            "latest_report_noop": hash.map(|_| name == "d"),
            "deactivated": gone,
        })
    };
    let (day, hour) = ("2026-11-13T00:00:00.000Z", "2026-11-12T01:00:00.000Z");
    [
        node("a", Some("2026-11-13T00:01:00.014Z"), Some("h2"), None),
        node("b", None, None, None),
        node("c", Some(hour), Some("h4"), Some(day)),
        node("d", Some("2026-11-13T00:00:30.000Z"), Some("h3"), None),
    ]
}

fn facts() -> [Value; 10] {
    let fact = |certname: &str, name: &str, value: Value| {
        json!({
            "certname": certname,
            "environment": "production",
            "name": name,
            "value": value,
        })
    };
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
    ]
}

fn reports() -> [Value; 5] {
    let report = |certname: &str, hash: &str, status: &str, kind: &str| {
        json!({
            "certname": certname,
            "hash": hash,
            "status": status,
            "type": kind,
            "report_format": 12,
            "end_time": "2026-11-13T00:00:00.000Z",
            "logs": {"data": [{"level": "notice"}]},
        })
    };
    [
        report("a", "h1", "failed", "agent"),
        report("a", "h2", "changed", "agent"),
        report("d", "h3", "changed", "agent"),
        report("c", "h4", "unchanged", "agent"),
        report("a", "h5", "changed", "plan"),
    ]
}

fn events() -> [Value; 5] {
    let event = |certname: &str, report: &str, status: &str| {
        json!({
            "certname": certname,
            "report": report,
            "status": status,
            "resource_type": "Service",
            "resource_title": "ntp",
            "containing_class": null,
        })
    };
    [
        event("a", "h1", "failure"),
        event("a", "h2", "success"),
        event("a", "h2", "success"),
        event("d", "h3", "noop"),
        event("c", "h4", "skipped"),
    ]
}

fn inventory() -> [Value; 3] {
    let record = |certname: &str, facts: Value| {
        json!({
            "certname": certname,
            "environment": "production",
            "facts": facts,
            "timestamp": "2026-11-13T00:00:00.000Z",
            "trusted": {"certname": certname},
        })
    };
    [
        record(
            "a",
            json!({"os": {"family": "Debian", "major": 12}, "up": 5, "a.b": "x"}),
        ),
        record("b", json!({"os": {"family": "RedHat"}, "up": "5"})),
        record("d", json!({"up": true})),
    ]
}

fn resources() -> [Value; 2] {
    let file = |certname: &str, title: &str, tags: Value, parameters: Value| {
        json!({
            "certname": certname,
            "type": "File",
            "title": title,
            "tags": tags,
            "line": 3,
            "exported": title == "/x",
            "parameters": parameters,
            "resource": "r1",
        })
    };
    [
        file("a", "/x", json!(["file", "web"]), json!({"mode": "0644"})),
        file("d", "/y", json!(["file"]), json!({})),
    ]
}
