//! Reports of the agent's runs, and the events in them.

use serde_json::{Value, json};

use super::identity::hash;
use super::{Agent, Node, RUNS, Run};

/// One change to a resource, as a run found or made it.
struct Event {
    status: &'static str,
    resource: (&'static str, &'static str),
    property: &'static str,
    class: &'static str,
    old: &'static str,
    new: &'static str,
    message: &'static str,
}

const CONTENT: Event = Event {
    status: "success",
    resource: ("File", "/etc/motd"),
    property: "content",
    class: "Main",
    old: "{sha256}5891b5b522d5df08",
    new: "{sha256}98ea6e4f216f2fb4",
    message: "content changed '{sha256}5891b5b522d5df08' to '{sha256}98ea6e4f216f2fb4'",
};

const RESTART: Event = Event {
    status: "success",
    resource: ("Service", "ssh"),
    property: "ensure",
    class: "Ssh",
    old: "stopped",
    new: "running",
    message: "ensure changed 'stopped' to 'running'",
};

const PACKAGE: Event = Event {
    status: "failure",
    resource: ("Package", "openssh-server"),
    property: "ensure",
    class: "Ssh",
    old: "absent",
    new: "present",
    message: "change from 'absent' to 'present' failed: could not find package openssh-server",
};

impl Run {
    const fn status(self) -> &'static str {
        match self {
            Self::Unchanged | Self::Noop => "unchanged",
            Self::Changed => "changed",
            Self::Failed => "failed",
        }
    }

    fn events(self) -> Vec<Event> {
        let with = |status, event| Event { status, ..event };
        match self {
            Self::Unchanged => vec![],
            Self::Changed => vec![CONTENT, RESTART],
            Self::Failed => vec![PACKAGE, with("skipped", RESTART)],
            Self::Noop => vec![with("noop", CONTENT)],
        }
    }
}

impl Node {
    /// The latest run as described, and runs before it that changed something now and then.
    fn run(&self, back: i64) -> Run {
        match back {
            0 => self.held.latest,
            back if (i64::from(self.held.host.address) + back) % 3 == 0 => Run::Changed,
            _ => Run::Unchanged,
        }
    }

    /// The status of the run that is `back` runs before the latest.
    pub(super) fn status(&self, back: i64) -> &'static str {
        self.run(back).status()
    }

    /// The hash of that run's report: the same wherever it is stored.
    pub(super) fn report_hash(&self, back: i64) -> String {
        hash(&format!("report {} {}", self.certname(), self.end(back)))
    }

    /// The records of `/reports` and of `/events`.
    pub(super) fn reports(&self) -> (Vec<Value>, Vec<Value>) {
        let runs = || 0..RUNS;
        (
            runs().map(|back| self.report(back)).collect(),
            runs().flat_map(|back| self.events(back)).collect(),
        )
    }

    fn report(&self, back: i64) -> Value {
        let run = self.run(back);
        let hash = self.report_hash(back);
        let end = self.end(back);
        let href = |part| format!("/pdb/query/v4/reports/{hash}/{part}");
        let noop = run == Run::Noop;
        json!({
            "catalog_uuid": self.catalog_uuid(back),
            "receive_time": self.received(self.produced(back)),
            "producer": self.producer(),
            "transaction_uuid": self.transaction_uuid(back),
            "puppet_version": match self.held.agent {
                Agent::Puppet7 => "7.34.0",
                Agent::Puppet8 => "8.10.0",
            },
            "noop": noop,
            "corrective_change": null,
            "logs": {"data": self.logs(back), "href": href("logs")},
            "report_format": 12,
            "start_time": end.plus_millis(-15_000).to_string(),
            "producer_timestamp": self.produced(back).to_string(),
            "type": "agent",
            "cached_catalog_status": "not_used",
            "end_time": end.to_string(),
            "resource_events": {"data": self.resource_events(back), "href": href("events")},
            "status": run.status(),
            "configuration_version": self.version(back),
            "environment": self.held.environment,
            "code_id": null,
            "noop_pending": noop,
            "certname": self.certname(),
            "metrics": {"data": metrics(run), "href": href("metrics")},
            "job_id": null,
            "hash": hash,
        })
    }

    fn events(&self, back: i64) -> Vec<Value> {
        let end = self.end(back);
        let record = |event: Event| {
            let (kind, title) = event.resource;
            json!({
                "new_value": event.new,
                "report": self.report_hash(back),
                "corrective_change": false,
                "run_start_time": end.plus_millis(-15_000).to_string(),
                "property": event.property,
                "file": "/etc/puppetlabs/code/environments/production/manifests/site.pp",
                "old_value": event.old,
                "containing_class": event.class,
                "line": 12,
                "resource_type": kind,
                "status": event.status,
                "configuration_version": self.version(back),
                "resource_title": title,
                "environment": self.held.environment,
                "timestamp": end.plus_millis(-3_000).to_string(),
                "run_end_time": end.to_string(),
                "report_receive_time": self.received(self.produced(back)),
                "containment_path": ["Stage[main]", event.class, format!("{kind}[{title}]")],
                "certname": self.certname(),
                "message": event.message,
                "name": null,
            })
        };
        self.run(back).events().into_iter().map(record).collect()
    }

    /// The events as a report embeds them, with PostgreSQL's spelling of their times.
    fn resource_events(&self, back: i64) -> Vec<Value> {
        let time = self.end(back).plus_millis(-3_000).to_string();
        let time = time.replace('Z', "+00:00");
        let embedded = |mut event: Value| {
            event["timestamp"] = time.clone().into();
            let of_the_report = [
                "report",
                "run_start_time",
                "run_end_time",
                "report_receive_time",
                "configuration_version",
                "environment",
                "certname",
            ];
            if let Some(members) = event.as_object_mut() {
                members.retain(|key, _| !of_the_report.contains(&key.as_str()));
            }
            event
        };
        self.events(back).into_iter().map(embedded).collect()
    }

    fn logs(&self, back: i64) -> Vec<Value> {
        let log = |level: &str, source: String, message: &str, before: i64| {
            json!({
                "file": null,
                "line": null,
                "level": level,
                "message": message,
                "source": source,
                "tags": [level],
                "time": self.end(back).plus_millis(-before).to_string(),
            })
        };
        let changes = self.run(back).events().into_iter().map(|event| {
            let (kind, title) = event.resource;
            let level = if event.status == "failure" {
                "err"
            } else {
                "notice"
            };
            let source = format!("/Stage[main]/{}/{kind}[{title}]", event.class);
            log(level, source, event.message, 3_000)
        });
        let applied = log(
            "notice",
            "Puppet".to_owned(),
            "Applied catalog in 1.25 seconds",
            0,
        );
        changes.chain([applied]).collect()
    }
}

fn metrics(run: Run) -> Vec<Value> {
    let events = run.events();
    let count = |status| events.iter().filter(|event| event.status == status).count();
    let metric = |category: &str, name: &str, value: Value| json!({"category": category, "name": name, "value": value});
    vec![
        metric("resources", "total", 6.into()),
        metric("resources", "changed", count("success").into()),
        metric("resources", "failed", count("failure").into()),
        metric("resources", "skipped", count("skipped").into()),
        metric("time", "total", 1.25.into()),
        metric("changes", "total", count("success").into()),
        metric("events", "success", count("success").into()),
        metric("events", "failure", count("failure").into()),
        metric("events", "noop", count("noop").into()),
        metric("events", "total", events.len().into()),
    ]
}
