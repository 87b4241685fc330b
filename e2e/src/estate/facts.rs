//! `replace_facts` version 5.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::{Command, Holding, IMPOSTOR, Node, Side, moment};

type Facts = BTreeMap<&'static str, Box<RawValue>>;

/// The node's facts as `held` has them. A copy tells itself from the other by `site`, and
/// each has a fact that the other lacks.
pub(super) fn command(node: &Node, held: Holding) -> Result<Command> {
    let produced = moment(held.run.unwrap_or(100), 0);
    let body = json!({
        "certname": node.certname,
        "environment": node.environment(held.side),
        "producer": producer(held.side),
        "producer_timestamp": produced,
        "package_inventory": packages(node, held.side),
    });
    // The values go in as text: some numbers fit no Rust type.
    let mut fields: BTreeMap<String, Box<RawValue>> = BTreeMap::new();
    for (name, value) in body.as_object().into_iter().flatten() {
        fields.insert(name.clone(), to_raw_value(value)?);
    }
    fields.insert("values".into(), to_raw_value(&values(node, held.side)?)?);
    Ok(node.command(
        "replace_facts",
        "5",
        produced,
        serde_json::to_string(&fields)?,
    ))
}

/// The server the copy came through.
pub(super) fn producer(side: Side) -> &'static str {
    match side {
        Side::A => "server-a.example.com",
        Side::B => "server-b.example.com",
    }
}

fn values(node: &Node, side: Side) -> Result<Facts> {
    let n = node.index;
    let family = if n.is_multiple_of(5) {
        "RedHat"
    } else {
        "Debian"
    };
    let (place, only, extra) = match side {
        Side::A => ("a", "only_in_a", 1),
        Side::B => ("b", "only_in_b", 2),
    };
    let mut facts = Facts::new();
    for (name, value) in [
        (
            "architecture",
            json!(if n.is_multiple_of(4) {
                "aarch64"
            } else {
                "x86_64"
            }),
        ),
        ("empty_list", json!([])),
        ("empty_map", json!({})),
        ("is_virtual", json!(n.is_multiple_of(2))),
        ("kernel", json!("Linux")),
        ("motd", json!(format!("Grüße, 日本 🐧 \"{n}\"\\\n\tend/"))),
        ("mount/data", json!("/srv/data")),
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
            json!({"family": family, "name": family, "release": {"full": "12.5", "major": "12"}}),
        ),
        (
            "processors",
            json!({"count": 1 + n % 8, "models": ["cpu one", "cpu two"]}),
        ),
        ("site", json!(place)),
        (
            "trusted",
            json!({"authenticated": "remote", "certname": node.certname, "extensions": {}}),
        ),
        ("uptime_seconds", json!(1000 * n + extra)),
        (only, json!(true)),
    ] {
        facts.insert(name, to_raw_value(&value)?);
    }
    for (name, number) in [
        // Beyond what a float holds, beyond what 64 bits hold, and two spellings of floats.
        (
            "big_integer",
            format!("{}", 9_007_199_254_740_993_u64 + u64::from(n)),
        ),
        ("huge_integer", format!("184467440737095516{:02}", 17 + n)),
        ("load", format!("{}.50", n % 7)),
        ("whole_float", "1.0".to_owned()),
    ] {
        facts.insert(name, RawValue::from_string(number)?);
    }
    if node.certname == IMPOSTOR {
        facts.insert("pdbmux_source", to_raw_value("an impostor")?);
    }
    Ok(facts)
}

fn packages(node: &Node, side: Side) -> Value {
    match side {
        Side::A => json!([
            ["bash", "5.2.15", "apt"],
            ["openssl", format!("3.0.{}", node.index % 3), "apt"]
        ]),
        Side::B => json!([["bash", "5.2.21", "apt"], ["curl", "8.5.0", "apt"]]),
    }
}
