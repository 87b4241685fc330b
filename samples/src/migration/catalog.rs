//! Resources, and the catalog that holds them.

use serde_json::{Value, json};

use super::Node;
use super::identity::{hash, uuid};

impl Node {
    /// The records of `/resources`.
    pub(super) fn resources(&self) -> Vec<Value> {
        let record = |mut resource: Value| {
            // The hash is of the content, so nodes share it; the node is none of it.
            resource["resource"] = hash(&resource.to_string()).into();
            resource["certname"] = self.certname().into();
            resource["environment"] = self.held.environment.into();
            resource
        };
        self.content().into_iter().map(record).collect()
    }

    /// The record of `/catalogs`.
    pub(super) fn catalog(&self) -> Value {
        let certname = self.certname();
        let class = format!("Role::{}", capitalized(self.held.host.role));
        let edges = self
            .content()
            .into_iter()
            .filter(|it| it["type"] != "Class")
            .map(|it| {
                json!({
                    "source_type": "Class",
                    "source_title": class,
                    "target_type": it["type"],
                    "target_title": it["title"],
                    "relationship": "contains",
                })
            });
        let href = |part| format!("/pdb/query/v4/catalogs/{certname}/{part}");
        json!({
            "catalog_uuid": self.catalog_uuid(0),
            "producer": self.producer(),
            "hash": hash(&Value::from(self.content()).to_string()),
            "edges": {"data": edges.collect::<Vec<_>>(), "href": href("edges")},
            "transaction_uuid": self.transaction_uuid(0),
            "version": self.version(0),
            "code_id": null,
            "resources": {"data": self.resources(), "href": href("resources")},
            "producer_timestamp": self.compiled().plus_millis(1_900).to_string(),
            "environment": self.held.environment,
            "certname": certname,
            "job_id": null,
        })
    }

    /// The UUIDs of a run are the agent's, so they are the same wherever it reports.
    pub(super) fn catalog_uuid(&self, back: i64) -> String {
        uuid(&format!("catalog {} {}", self.certname(), self.end(back)))
    }

    pub(super) fn transaction_uuid(&self, back: i64) -> String {
        uuid(&format!("run {} {}", self.certname(), self.end(back)))
    }

    pub(super) fn version(&self, back: i64) -> String {
        self.end(back).plus_millis(-14_000).seconds().to_string()
    }

    fn content(&self) -> Vec<Value> {
        let role = self.held.host.role;
        let class = |title: String| {
            let tag = title.to_lowercase();
            resource("Class", &title, None, &json!({}), &["class", &tag])
        };
        vec![
            class("Main".to_owned()),
            class("Ssh".to_owned()),
            class(format!("Role::{}", capitalized(role))),
            resource(
                "Package",
                "openssh-server",
                Some(4),
                &json!({"ensure": "installed"}),
                &["ssh"],
            ),
            resource(
                "Service",
                "ssh",
                Some(8),
                &json!({"enable": true, "ensure": "running"}),
                &["ssh"],
            ),
            resource(
                "File",
                "/etc/motd",
                Some(12),
                &json!({"content": format!("This is a {role} server.\n"), "mode": "0644"}),
                &["motd"],
            ),
        ]
    }
}

fn resource(kind: &str, title: &str, line: Option<u8>, parameters: &Value, tags: &[&str]) -> Value {
    let file = line.map(|_| "/etc/puppetlabs/code/environments/production/manifests/site.pp");
    let mut tags: Vec<_> = tags.iter().map(|tag| (*tag).to_owned()).collect();
    tags.push(kind.to_lowercase());
    tags.sort_unstable();
    tags.dedup();
    json!({
        "type": kind,
        "title": title,
        "tags": tags,
        "file": file,
        "line": line,
        "parameters": parameters,
        "exported": false,
    })
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}
