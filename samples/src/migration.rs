//! The two estates of a migration in progress, for the demo: `pdb-old` and `pdb-new`.
//!
//! The tables below are the whole description; the records follow from them. They hold each case
//! that a merge has to decide: nodes in one estate only, nodes newer here or there, a tie, a node
//! deactivated where it is newest, and an environment that only `pdb-new` knows.

mod catalog;
mod facts;
mod identity;
mod report;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::estate::Estate;
use crate::schema::Entity;
use crate::time::Timestamp;

/// One of the two estates, with the name it is configured under.
#[derive(Debug, Clone)]
pub struct Sample {
    /// `pdb-old` or `pdb-new`.
    pub name: &'static str,
    /// What it holds.
    pub estate: Estate,
}

/// Both estates, `pdb-old` first. All their times lie shortly before `now`; the same `now` always
/// makes the same records.
pub fn samples(now: Timestamp) -> [Sample; 2] {
    [&OLD, &NEW].map(|site| Sample {
        name: site.name,
        estate: site.estate(now),
    })
}

/// A machine, as its facts describe it.
struct Host {
    name: &'static str,
    role: &'static str,
    os: Os,
    /// The last byte of its address in 10.20.0.0/24; also what tells hosts apart in their times.
    address: u8,
    cores: u8,
    memory_gib: u8,
    hardware: Hardware,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Os {
    Debian12,
    Ubuntu2404,
    Rocky9,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Hardware {
    Kvm,
    Physical,
}

/// What an estate holds of a host.
struct Held {
    host: &'static Host,
    environment: &'static str,
    agent: Agent,
    /// How many minutes ago the latest run ended.
    age: i64,
    latest: Run,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Agent {
    Puppet7,
    Puppet8,
}

/// How a run of the agent ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Run {
    Unchanged,
    Changed,
    Failed,
    Noop,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Active,
    Deactivated,
}

/// One of the two PuppetDBs.
struct Site {
    name: &'static str,
    version: &'static str,
    /// Milliseconds from the compiling server to this PuppetDB's own stamp.
    lag: i64,
    held: &'static [Held],
}

#[rustfmt::skip]
mod hosts {
    use super::{Hardware::{Kvm, Physical}, Host, Os::{self, Debian12, Rocky9, Ubuntu2404}, Hardware};

    const fn host(
        name: &'static str, role: &'static str, os: Os,
        address: u8, cores: u8, memory_gib: u8, hardware: Hardware,
    ) -> Host {
        Host { name, role, os, address, cores, memory_gib, hardware }
    }

    pub(super) static WEB_1:    Host = host("web-1",    "web",    Debian12,   11, 4,  8,   Kvm);
    pub(super) static WEB_2:    Host = host("web-2",    "web",    Debian12,   12, 4,  8,   Kvm);
    pub(super) static APP_1:    Host = host("app-1",    "app",    Ubuntu2404, 21, 8,  32,  Kvm);
    pub(super) static APP_2:    Host = host("app-2",    "app",    Ubuntu2404, 22, 8,  32,  Kvm);
    pub(super) static DNS_1:    Host = host("dns-1",    "dns",    Debian12,   53, 2,  4,   Kvm);
    pub(super) static LEGACY_1: Host = host("legacy-1", "app",    Rocky9,     66, 2,  8,   Physical);
    pub(super) static DB_1:     Host = host("db-1",     "db",     Rocky9,     31, 16, 128, Physical);
    pub(super) static MAIL_1:   Host = host("mail-1",   "mail",   Debian12,   25, 4,  16,  Kvm);
    pub(super) static CI_1:     Host = host("ci-1",     "ci",     Ubuntu2404, 41, 16, 64,  Kvm);
    pub(super) static CACHE_1:  Host = host("cache-1",  "cache",  Rocky9,     42, 4,  64,  Kvm);
}

#[rustfmt::skip]
mod sites {
    use super::{Agent::{self, Puppet7, Puppet8}, Held, Host, Run::{self, Changed, Failed, Noop, Unchanged}, Site, State};
    use super::hosts::{APP_1, APP_2, CACHE_1, CI_1, DB_1, DNS_1, LEGACY_1, MAIL_1, WEB_1, WEB_2};

    const fn held(
        host: &'static Host, environment: &'static str, agent: Agent, age: i64, latest: Run,
    ) -> Held {
        Held { host, environment, agent, age, latest, state: State::Active }
    }

    const fn deactivated(
        host: &'static Host, environment: &'static str, agent: Agent, age: i64, latest: Run,
    ) -> Held {
        Held { host, environment, agent, age, latest, state: State::Deactivated }
    }

    pub(super) static OLD: Site = Site {
        name: "pdb-old", version: "7.12.1", lag: 310,
        held: &[
            held(&DB_1,     "production", Puppet7, 15,     Changed),   // here only
            held(&MAIL_1,   "production", Puppet7, 33,     Noop),      // here only
            held(&WEB_1,    "production", Puppet7, 2_880,  Unchanged), // moved
            held(&WEB_2,    "production", Puppet7, 2_910,  Unchanged), // moved
            held(&APP_1,    "production", Puppet7, 1_500,  Changed),   // moved
            held(&APP_2,    "production", Puppet7, 9,      Unchanged), // moved and went back
            held(&DNS_1,    "production", Puppet8, 21,     Changed),   // reports to both
            held(&LEGACY_1, "production", Puppet7, 20_000, Unchanged), // deactivated in the other
        ],
    };

    pub(super) static NEW: Site = Site {
        name: "pdb-new", version: "8.15.0", lag: 120,
        held: &[
            held(&CI_1,     "staging",    Puppet8, 5,      Changed),   // here only
            held(&CACHE_1,  "production", Puppet8, 28,     Unchanged), // here only
            held(&WEB_1,    "production", Puppet8, 12,     Unchanged),
            held(&WEB_2,    "production", Puppet8, 25,     Changed),
            held(&APP_1,    "production", Puppet8, 18,     Failed),
            held(&APP_2,    "production", Puppet8, 4_300,  Failed),
            held(&DNS_1,    "production", Puppet8, 21,     Changed),
            deactivated(&LEGACY_1, "production", Puppet8, 10_000, Unchanged),
        ],
    };
}

use sites::{NEW, OLD};

/// The runs of the agent that an estate remembers of each node, and the minutes between them.
const RUNS: i64 = 3;
const INTERVAL: i64 = 30;

impl Site {
    fn estate(&self, now: Timestamp) -> Estate {
        let mut estate = Estate::new(self.version);
        let names: BTreeSet<_> = self.held.iter().map(|it| it.environment).collect();
        let names = names.into_iter().map(|name| json!({"name": name}));
        estate = estate.with(Entity::Environments, names);
        for held in self.held {
            let node = Node {
                held,
                lag: self.lag,
                now,
            };
            let (reports, events) = node.reports();
            estate = estate
                .with(Entity::Nodes, [node.record()])
                .with(Entity::Facts, node.facts())
                .with(Entity::Factsets, [node.factset()])
                .with(Entity::Inventory, [node.inventory()])
                .with(Entity::Resources, node.resources())
                .with(Entity::Catalogs, [node.catalog()])
                .with(Entity::Reports, reports)
                .with(Entity::Events, events);
        }
        estate
    }
}

/// A held host at a point in time: what all records of a node are made from.
struct Node {
    held: &'static Held,
    lag: i64,
    now: Timestamp,
}

impl Node {
    fn certname(&self) -> String {
        format!("{}.example.org", self.held.host.name)
    }

    /// The end of the run that is `back` runs before the latest.
    fn end(&self, back: i64) -> Timestamp {
        let age = self.held.age + back * INTERVAL;
        let own = i64::from(self.held.host.address) * 137;
        self.now.minus_minutes(age).plus_millis(-own)
    }

    /// The compiling server's stamp on the report of that run.
    fn produced(&self, back: i64) -> Timestamp {
        self.end(back).plus_millis(640)
    }

    /// When this PuppetDB stored something that was submitted at `time`.
    fn received(&self, time: Timestamp) -> String {
        time.plus_millis(self.lag).to_string()
    }

    fn producer(&self) -> &'static str {
        match self.held.agent {
            Agent::Puppet7 => "puppet-7.example.org",
            Agent::Puppet8 => "puppet-8.example.org",
        }
    }

    fn record(&self) -> Value {
        let held = self.held;
        let deactivated = match held.state {
            State::Active => Value::Null,
            State::Deactivated => self.end(0).plus_millis(86_400_000).to_string().into(),
        };
        json!({
            "certname": self.certname(),
            "deactivated": deactivated,
            "expired": null,
            "facts_environment": held.environment,
            "catalog_environment": held.environment,
            "report_environment": held.environment,
            "facts_timestamp": self.received(self.compiled()),
            "catalog_timestamp": self.received(self.compiled().plus_millis(1_900)),
            "report_timestamp": self.end(0).to_string(),
            "latest_report_hash": self.report_hash(0),
            "latest_report_status": self.status(0),
            "latest_report_noop": held.latest == Run::Noop,
            "latest_report_noop_pending": held.latest == Run::Noop,
            "latest_report_corrective_change": null,
            "latest_report_job_id": null,
            "cached_catalog_status": "not_used",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at() -> Timestamp {
        Timestamp::parse("2026-11-13T00:00:00Z").unwrap()
    }

    fn node(estate: &Estate, name: &str) -> Option<Value> {
        let certname = format!("{name}.example.org");
        let nodes = estate.rows(Entity::Nodes);
        nodes.iter().find(|it| it["certname"] == certname).cloned()
    }

    #[test]
    fn the_same_moment_makes_the_same_records() {
        for (one, other) in samples(at()).iter().zip(&samples(at())) {
            assert_eq!(one.estate, other.estate);
        }
    }

    #[test]
    fn each_case_of_a_merge_is_there() {
        let [old, new] = samples(at()).map(|sample| sample.estate);
        let newer = |name| match (node(&old, name), node(&new, name)) {
            (Some(_), None) => "only old",
            (None, Some(_)) => "only new",
            (Some(a), Some(b)) => {
                match a["report_timestamp"]
                    .as_str()
                    .cmp(&b["report_timestamp"].as_str())
                {
                    std::cmp::Ordering::Greater => "old",
                    std::cmp::Ordering::Less => "new",
                    std::cmp::Ordering::Equal => "tie",
                }
            }
            (None, None) => "nowhere",
        };
        for (name, expected) in [
            ("db-1", "only old"),
            ("mail-1", "only old"),
            ("ci-1", "only new"),
            ("cache-1", "only new"),
            ("web-1", "new"),
            ("web-2", "new"),
            ("app-1", "new"),
            ("app-2", "old"),
            ("dns-1", "tie"),
            ("legacy-1", "new"),
        ] {
            assert_eq!(newer(name), expected, "{name}");
        }
        assert!(node(&new, "legacy-1").unwrap()["deactivated"].is_string());
        assert!(node(&old, "legacy-1").unwrap()["deactivated"].is_null());
        let environments = |estate: &Estate| estate.rows(Entity::Environments).into_owned();
        assert_eq!(environments(&old), [json!({"name": "production"})]);
        assert_eq!(
            environments(&new),
            [json!({"name": "production"}), json!({"name": "staging"})]
        );
    }

    #[test]
    fn a_run_reported_to_both_differs_in_the_receipt_alone() {
        let [old, new] = samples(at()).map(|sample| sample.estate);
        for (entity, receipt) in [
            (Entity::Reports, "receive_time"),
            (Entity::Events, "report_receive_time"),
        ] {
            let of = |estate: &Estate| {
                let rows = estate.rows(entity).into_owned();
                let mut rows: Vec<_> = rows
                    .into_iter()
                    .filter(|row| row["certname"] == "dns-1.example.org")
                    .collect();
                let times: Vec<_> = rows.iter_mut().map(|row| row[receipt].take()).collect();
                (rows, times)
            };
            let ((old_rows, old_times), (new_rows, new_times)) = (of(&old), of(&new));
            assert!(!old_rows.is_empty());
            assert_eq!(old_rows, new_rows);
            assert_ne!(old_times, new_times);
        }
    }

    #[test]
    fn every_record_has_exactly_the_columns_that_are_returned() {
        for sample in samples(at()) {
            for entity in Entity::ALL {
                let rows = sample.estate.rows(entity);
                assert!(!rows.is_empty(), "{entity:?}");
                let columns = entity.columns().iter().filter(|it| it.is_returned());
                let columns: BTreeSet<_> = columns.map(|it| it.name).collect();
                for row in rows.iter() {
                    let keys = row.as_object().unwrap().keys();
                    let keys: BTreeSet<_> = keys.map(String::as_str).collect();
                    assert_eq!(keys, columns, "{entity:?}");
                }
            }
        }
    }

    #[test]
    fn a_node_has_about_twenty_facts_of_every_type() {
        for sample in samples(at()) {
            let facts = sample.estate.rows(Entity::Facts);
            for node in sample.estate.rows(Entity::Nodes).iter() {
                let own = facts.iter().filter(|it| it["certname"] == node["certname"]);
                let values: Vec<_> = own.map(|it| &it["value"]).collect();
                assert!((18..=25).contains(&values.len()), "{}", values.len());
                for is_type in [
                    Value::is_string,
                    Value::is_boolean,
                    Value::is_object,
                    Value::is_number,
                    Value::is_array,
                ] {
                    assert!(values.iter().any(|value| is_type(value)));
                }
            }
        }
    }
}
