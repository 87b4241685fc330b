//! `replace_facts` version 5.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::{Copy, HOLDERS, Node};
use crate::estate::{Command, moment};

/// The node's facts as a copy has them: a stale one tells itself by `site`.
pub(super) fn command(node: &Node, copy: Copy) -> Result<Command> {
    let produced = moment(copy.run.unwrap_or(100), 0);
    let mut fields: BTreeMap<&str, Box<RawValue>> = BTreeMap::new();
    for (name, value) in [
        ("certname", json!(node.certname)),
        ("environment", json!(node.environment(copy))),
        ("producer", json!(producer(copy))),
        ("producer_timestamp", json!(produced)),
        ("package_inventory", packages(node, copy)),
    ] {
        fields.insert(name, to_raw_value(&value)?);
    }
    fields.insert("values", to_raw_value(&values(node, copy)?)?);
    let body = serde_json::to_string(&fields)?;
    Ok(node.command("replace_facts", "5", produced, body))
}

/// The server the copy's data came through.
pub(super) fn producer(copy: Copy) -> String {
    format!("server-{}.example.com", HOLDERS[copy.from])
}

fn values(node: &Node, copy: Copy) -> Result<BTreeMap<String, Box<RawValue>>> {
    let n = node.number;
    let extra = u32::try_from(copy.from)? + 1;
    let site = HOLDERS[copy.from];
    let family = ["Debian", "RedHat", "debian"][(n % 3) as usize];
    let architecture = if n.is_multiple_of(4) {
        "aarch64"
    } else {
        "x86_64"
    };
    let mut facts = BTreeMap::new();
    for (name, value) in [
        ("architecture", json!(architecture)),
        ("empty_list", json!([])),
        ("empty_map", json!({})),
        ("is_virtual", json!((n + extra).is_multiple_of(2))),
        ("kernel", json!("Linux")),
        ("mixed", mixed(n, extra)),
        ("motd", json!(format!("Grüße, 日本 🐧 \"{n}\"\\\n\tend/"))),
        ("mount/data", json!("/srv/data")),
        ("dotted.name", json!({"in.side": n % 4})),
        (
            "networking",
            json!({"fqdn": node.certname, "interfaces": {"eth0": {
                "bindings": [{"address": format!("10.{extra}.0.{n}"), "netmask": "255.255.255.0"}],
                "mtu": 1500,
            }}}),
        ),
        ("nothing", Value::Null),
        (
            "os",
            json!({"family": family, "name": family, "release": {"full": format!("{}.5", 10 + extra), "major": "12"}}),
        ),
        (
            "processors",
            json!({"count": 1 + n % 8, "models": ["cpu one", "cpu two"]}),
        ),
        ("site", json!(site)),
        (
            "trusted",
            json!({"authenticated": "remote", "certname": node.certname, "extensions": {"role": format!("role{}", n % 4)}}),
        ),
        ("uptime_seconds", json!(1000 * n + extra)),
        (
            "word",
            json!(
                [
                    "alpha", "Beta", "éa", "foo bar", "foo_bar", "foobar", "Zeta"
                ][(n % 7) as usize]
            ),
        ),
    ] {
        facts.insert(name.to_owned(), to_raw_value(&value)?);
    }
    facts.insert(format!("only_in_{site}"), to_raw_value(&true)?);
    for (name, number) in [
        // Beyond what a float holds, beyond what 64 bits hold, and spellings of floats.
        (
            "big_integer",
            format!("{}", 9_007_199_254_740_993_u64 + u64::from(n)),
        ),
        ("huge_integer", format!("184467440737095516{:02}", 17 + n)),
        ("load", format!("{}.{}5", n % 7, extra)),
        ("negative", format!("-{}.125", n % 5)),
        ("whole_float", "1.0".to_owned()),
    ] {
        facts.insert(name.to_owned(), RawValue::from_string(number)?);
    }
    Ok(facts)
}

/// A value of every kind, by the node and the copy.
fn mixed(number: u32, extra: u32) -> Value {
    match (number + extra) % 9 {
        0 => json!("42"),
        1 => json!(42),
        2 => json!(42.0),
        3 => json!(true),
        4 => Value::Null,
        5 => json!([3, 1, 2]),
        6 => json!({"b": 1, "a": [true]}),
        7 => json!(-1.5),
        _ => json!([]),
    }
}

fn packages(node: &Node, copy: Copy) -> Value {
    match copy.from {
        0 => json!([
            ["bash", "5.2.15", "apt"],
            ["openssl", format!("3.0.{}", node.number % 3), "apt"]
        ]),
        1 => json!([["bash", "5.2.21", "apt"], ["curl", "8.5.0", "apt"]]),
        _ => json!([["bash", "5.2.21", "apt"], ["rubygem", "1.0", "gem"]]),
    }
}
