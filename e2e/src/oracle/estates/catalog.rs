//! `replace_catalog` version 9 and `replace_catalog_inputs` version 1.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::facts::producer;
use super::{Copy, Node};
use crate::estate::{Command, moment, uuid};

/// Resources of every node, some of some, one exported, with what they were given.
pub(super) fn command(node: &Node, copy: Copy, run: u32) -> Command {
    let produced = moment(run - 1, 30);
    let n = node.number;
    let mut resources = vec![
        resource("Stage", "main", 1, &json!({})),
        resource("Class", "Main", 1, &json!({})),
        resource(
            "Class",
            &format!("Profile::{}", ["Base", "Web", "db"][(n % 3) as usize]),
            3,
            &json!({"version": copy.from}),
        ),
        resource(
            "File",
            "/etc/motd",
            7,
            &json!({"ensure": "file", "mode": "0644", "site": producer(copy)}),
        ),
        resource(
            "Service",
            "ssh",
            9 + n % 3,
            &json!({"ensure": "running", "enable": true, "options": {"retries": n % 3, "names": ["x", "y"]}}),
        ),
    ];
    for number in 0..n % 3 {
        resources.push(resource(
            "Package",
            &format!("tool{number}"),
            20 + number,
            &json!({"ensure": "present", "order": number}),
        ));
    }
    if n.is_multiple_of(3) {
        let mut key = resource(
            "Sshkey",
            &node.certname,
            30,
            &json!({"key": format!("{n}-{}", producer(copy)), "type": "rsa"}),
        );
        key["exported"] = json!(true);
        resources.push(key);
    }
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
    let body = json!({
        "certname": node.certname,
        "version": format!("v{run}"),
        "environment": node.environment(copy),
        "transaction_uuid": uuid(0xca, number(node, copy)),
        "catalog_uuid": uuid(0xcb, number(node, copy)),
        "code_id": null,
        "job_id": null,
        "producer_timestamp": produced,
        "producer": producer(copy),
        "edges": edges,
        "resources": resources,
    });
    node.command("replace_catalog", "9", produced, body.to_string())
}

/// The command with so many files more in its catalog, if it has one: the same on each node, as most
/// of what a site's nodes have is.
pub fn enlarged(command: Command, files: u32) -> Result<Command> {
    if command.name != "replace_catalog" {
        return Ok(command);
    }
    let mut body: Value = serde_json::from_str(&command.body)?;
    let resources = body["resources"].as_array_mut();
    let resources = resources.context("a catalog without resources")?;
    resources.extend((0..files).map(|number| {
        let title = format!("/etc/site.d/{number:03}.conf");
        resource(
            "File",
            &title,
            100 + number,
            &json!({"ensure": "file", "mode": "0644"}),
        )
    }));
    let body = body.to_string();
    Ok(Command { body, ..command })
}

/// What the catalog was compiled from; of every other node.
pub(super) fn inputs(node: &Node, copy: Copy, run: u32) -> Option<Command> {
    let produced = moment(run - 1, 30);
    let body = json!({
        "certname": node.certname,
        "producer_timestamp": produced,
        "catalog_uuid": uuid(0xcb, number(node, copy)),
        "inputs": [["hiera", "profile::version"], ["hiera", format!("site::{}", producer(copy))]],
    });
    node.number
        .is_multiple_of(2)
        .then(|| node.command("replace_catalog_inputs", "1", produced, body.to_string()))
}

fn number(node: &Node, copy: Copy) -> u32 {
    node.number * 4 + u32::try_from(copy.from).unwrap_or_default()
}

fn resource(kind: &str, title: &str, line: u32, parameters: &Value) -> Value {
    json!({
        "type": kind,
        "title": title,
        "exported": false,
        "file": "/etc/puppet/site.pp",
        "line": line,
        "tags": [kind.to_lowercase(), "site"],
        "parameters": parameters,
    })
}
