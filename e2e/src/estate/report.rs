//! `store_report` version 8.

use serde_json::{Value, json};

use super::facts::producer;
use super::stories::Story;
use super::{Command, Holding, MOVED, Node, Side, moment, uuid};

/// The copy's reports: its last run, and in every third node the run before.
pub(super) fn commands(node: &Node, held: Holding) -> Vec<Command> {
    let Some(run) = held.run else {
        return Vec::new();
    };
    // One report sent to both backends came through one server.
    let side = if node.story == Story::SameReport {
        Side::A
    } else {
        held.side
    };
    let earlier = node.index.is_multiple_of(3).then(|| run - 60);
    earlier
        .into_iter()
        .chain([run])
        .map(|end| command(node, side, end))
        .collect()
}

fn command(node: &Node, side: Side, end: u32) -> Command {
    // Of reports that ended together, the first backend's was produced last: a PuppetDB
    // that holds both calls that one the latest.
    let produced = moment(end, if side == Side::A { 20 } else { 10 });
    let status = match (node.certname, side) {
        // It failed before it moved.
        (MOVED, Side::A) => "failed",
        (MOVED, Side::B) => "changed",
        _ => ["changed", "failed", "unchanged"][(node.index % 3) as usize],
    };
    let number = node.index * 10_000 + end * 2 + u32::from(side == Side::B);
    let happened = moment(end - 1, 30);
    let body = json!({
        "certname": node.certname,
        "environment": node.environment(side),
        "puppet_version": "8.4.0",
        "report_format": 12,
        "configuration_version": format!("v{end}"),
        "start_time": moment(end - 1, 0),
        "end_time": moment(end, 0),
        "producer_timestamp": produced,
        "producer": producer(side),
        "transaction_uuid": uuid(0xee, number),
        "catalog_uuid": null,
        "code_id": null,
        "job_id": null,
        "cached_catalog_status": "not_used",
        "noop": false,
        "noop_pending": status == "changed",
        "corrective_change": false,
        "status": status,
        "resources": resources(status, &happened),
        "metrics": [
            {"category": "resources", "name": "total", "value": 4 + node.index % 3},
            {"category": "time", "name": "total", "value": 1.25},
        ],
        "logs": [{
            "file": null, "line": null, "level": "notice", "source": "Puppet", "tags": ["notice"],
            "message": format!("Applied catalog in 1.25 seconds – {}", node.certname), "time": happened,
        }],
    });
    node.command("store_report", "8", produced, body.to_string())
}

/// What happened to the resources: success and noop in a changed run, failure and what was
/// skipped for it in a failed one, nothing in an unchanged one.
fn resources(status: &str, happened: &str) -> Vec<Value> {
    match status {
        "changed" => vec![
            resource("File", "/etc/motd", "success", &json!("new text"), happened),
            resource("Service", "ssh", "noop", &json!("running"), happened),
        ],
        "failed" => vec![
            resource(
                "File",
                "/etc/motd",
                "failure",
                &json!({"nested": [1, 2.5]}),
                happened,
            ),
            resource("Service", "ssh", "skipped", &json!("running"), happened),
        ],
        _ => Vec::new(),
    }
}

fn resource(kind: &str, title: &str, status: &str, new_value: &Value, happened: &str) -> Value {
    json!({
        "timestamp": happened,
        "resource_type": kind,
        "resource_title": title,
        "skipped": status == "skipped",
        "events": [{
            "status": status,
            "timestamp": happened,
            "name": "change",
            "property": "content",
            "new_value": new_value,
            "old_value": "old",
            "message": format!("{kind}[{title}]: {status}"),
            "corrective_change": false,
        }],
        "file": "/etc/puppet/site.pp",
        "line": 7,
        "containment_path": ["Stage[main]", "Main", format!("{kind}[{title}]")],
        "corrective_change": false,
    })
}
