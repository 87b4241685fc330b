//! `store_report` version 8.

use serde_json::{Value, json};

use super::facts::producer;
use super::{Copy, Node};
use crate::estate::{Command, moment, uuid};

/// The copy's reports, one an hour: its last run and up to two before; of some nodes a plan's.
pub(super) fn commands(node: &Node, copy: Copy) -> Vec<Command> {
    let Some(run) = copy.run else {
        return Vec::new();
    };
    let mut all: Vec<_> = (0..=node.number % 3)
        .rev()
        .map(|before| command(node, copy, run - 60 * before, before, "agent"))
        .collect();
    if node.number.is_multiple_of(13) {
        all.push(command(node, copy, run - 30, 1, "plan"));
    }
    all
}

/// How the run went that was so many `before` the last: a stale copy's last run went otherwise
/// than the owner's.
pub(super) fn status(node: &Node, copy: Copy, before: u32) -> &'static str {
    let from = u32::try_from(copy.from).unwrap_or_default();
    ["failed", "changed", "unchanged"][((node.number + from + before) % 3) as usize]
}

fn command(node: &Node, copy: Copy, end: u32, before: u32, kind: &str) -> Command {
    let produced = moment(end, 20);
    let status = status(node, copy, before);
    let from = u32::try_from(copy.from).unwrap_or_default();
    let number = node.number * 100_000 + end * 4 + from;
    let noop = node.number % 7 == 3;
    let body = json!({
        "certname": node.certname,
        "environment": node.environment(copy),
        "puppet_version": if node.number.is_multiple_of(2) { "8.4.0" } else { "7.32.1" },
        "report_format": 11 + node.number % 2,
        "configuration_version": format!("v{end}"),
        "start_time": moment(end - 1, 0),
        "end_time": moment(end, 0),
        "producer_timestamp": produced,
        "producer": producer(copy),
        "transaction_uuid": uuid(0xee, number),
        "catalog_uuid": if before == 0 { json!(uuid(0xcb, node.number * 4 + from)) } else { Value::Null },
        "code_id": null,
        "job_id": null,
        "cached_catalog_status": if node.number % 5 == 4 { "explicitly_requested" } else { "not_used" },
        "noop": noop,
        "noop_pending": noop && status == "changed",
        "corrective_change": false,
        "status": status,
        "type": kind,
        "resources": resources(node, copy, status, end),
        "metrics": [
            {"category": "resources", "name": "total", "value": 4 + node.number % 3},
            {"category": "time", "name": "total", "value": 1.25},
        ],
        "logs": [{
            "file": null, "line": null, "level": "notice", "source": "Puppet", "tags": ["notice", "a"],
            "message": format!("Applied catalog in 1.25 seconds – {} {end}", node.certname),
            "time": moment(end - 1, 30),
        }],
    });
    node.command("store_report", "8", produced, body.to_string())
}

/// A failed run fails a file, skips a service, and changes a package; a changed one changes two
/// and would change a third; of an unchanged one there is nothing to tell.
fn resources(node: &Node, copy: Copy, status: &str, end: u32) -> Vec<Value> {
    let happened = moment(end - 1, 30);
    let tool = format!("tool{}", node.number % 4);
    let of = |kind: &str, title: &str, status: &str, line: u32, new: &Value| {
        json!({
            "timestamp": happened,
            "resource_type": kind,
            "resource_title": title,
            "skipped": status == "skipped",
            "events": [{
                "status": status,
                "timestamp": happened,
                "name": "change",
                "property": if kind == "Package" { "ensure" } else { "content" },
                "new_value": new,
                "old_value": if line == 7 { Value::Null } else { json!("old") },
                "message": format!("{kind}[{title}]: {status} by {}", producer(copy)),
                "corrective_change": false,
            }],
            "file": if line == 7 { Value::Null } else { json!("/etc/puppet/site.pp") },
            "line": line,
            "containment_path": ["Stage[main]", "Main", format!("{kind}[{title}]")],
            "corrective_change": false,
        })
    };
    match status {
        "changed" => vec![
            of("File", "/etc/motd", "success", 7, &json!("new text")),
            of("Package", &tool, "success", 20, &json!(["1.0", 2])),
            of("Service", "ssh", "noop", 9, &json!(true)),
        ],
        "failed" => vec![
            of(
                "File",
                "/etc/motd",
                "failure",
                7,
                &json!({"nested": [1, 2.5]}),
            ),
            of("Package", &tool, "success", 20, &json!("1.1")),
            of("Service", "ssh", "skipped", 9, &json!("running")),
        ],
        _ => Vec::new(),
    }
}
