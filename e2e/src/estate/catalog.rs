//! `replace_catalog` version 9.

use serde_json::{Value, json};

use super::facts::producer;
use super::{Command, Node, Side, moment, uuid};

/// The folder of the files that nodes export, one each.
pub const EXPORTED: &str = "/srv/exported";

/// The catalog the node got at `run`: a class, a file, a service and an exported file each, more of
/// them in some nodes.
pub(super) fn command(node: &Node, side: Side, run: u32) -> Command {
    let produced = moment(run - 1, 30);
    let mut resources = vec![
        resource("Stage", "main", &json!({})),
        resource("Class", "Main", &json!({})),
        resource(
            "File",
            "/etc/motd",
            &json!({"ensure": "file", "mode": "0644", "site": producer(side)}),
        ),
        resource(
            "Service",
            "ssh",
            &json!({"ensure": "running", "enable": true}),
        ),
    ];
    for number in 0..node.index % 3 {
        resources.push(resource(
            "Package",
            &format!("tool{number}"),
            &json!({"ensure": "present", "order": number}),
        ));
    }
    let mut exported = resource(
        "File",
        &format!("{EXPORTED}/{}", node.certname),
        &json!({"ensure": "file", "content": format!("seen by {}", producer(side))}),
    );
    exported["exported"] = json!(true);
    resources.push(exported);
    let edges: Vec<_> = resources[2..]
        .iter()
        .map(|target| {
            json!({
                "source": {"type": "Class", "title": "Main"},
                "target": {"type": target["type"], "title": target["title"]},
                "relationship": "contains",
            })
        })
        .collect();
    let number = node.index * 2 + u32::from(side == Side::B);
    let body = json!({
        "certname": node.certname,
        "version": format!("v{run}"),
        "environment": node.environment(side),
        "transaction_uuid": uuid(0xca, number),
        "catalog_uuid": uuid(0xcb, number),
        "code_id": null,
        "job_id": null,
        "producer_timestamp": produced,
        "producer": producer(side),
        "edges": edges,
        "resources": resources,
    });
    node.command("replace_catalog", "9", produced, body.to_string())
}

fn resource(kind: &str, title: &str, parameters: &Value) -> Value {
    json!({
        "type": kind,
        "title": title,
        "exported": false,
        "file": "/etc/puppet/site.pp",
        "line": 7,
        "tags": [kind.to_lowercase(), "site"],
        "parameters": parameters,
    })
}
