//! Filters made at random, of values that the estates hold.

use serde_json::{Value, json};

use super::super::sample::Sample;
use super::dice::Dice;
use super::schema::{Column, Entity, Kind};

/// A tree of conditions on an entity's columns, at most this deep.
pub(super) fn tree(dice: &mut Dice, entity: &Entity, sample: &Sample, depth: u32) -> Value {
    if depth == 0 || dice.chance(45) {
        return leaf(dice, entity, sample);
    }
    let below = |dice: &mut Dice| tree(dice, entity, sample, depth - 1);
    match dice.below(6) {
        0 => json!(["and", below(dice), below(dice)]),
        1..=4 => json!(["or", below(dice), below(dice)]),
        _ => json!(["not", below(dice)]),
    }
}

/// A condition on the node's state, now and then, where the entity has one.
pub(super) fn state(dice: &mut Dice, entity: &Entity) -> Option<Value> {
    (entity.has_state && dice.chance(12)).then(|| match dice.below(4) {
        0 => json!(["=", "node_state", "active"]),
        1 => json!(["=", ["node", "active"], true]),
        _ => json!(["=", "node_state", "any"]),
    })
}

/// A condition on what another entity holds of the node.
pub(super) fn subquery(dice: &mut Dice, sample: &Sample) -> Value {
    let inner = match dice.below(7) {
        0 => (
            "facts",
            json!([
                "and",
                ["=", "name", "site"],
                ["=", "value", dice.pick(&["a", "b"])]
            ]),
        ),
        1 => (
            "resources",
            json!(["=", "type", dice.pick(&["Package", "Sshkey"])]),
        ),
        2 => (
            "reports",
            json!(["=", "status", dice.pick(&["failed", "changed"])]),
        ),
        3 => (
            "reports",
            json!([
                "and",
                ["=", "latest_report?", dice.chance(80)],
                ["=", "status", dice.pick(&["failed", "changed"])]
            ]),
        ),
        4 => (
            "events",
            json!(["=", "status", dice.pick(&["failure", "noop"])]),
        ),
        5 => (
            "fact_contents",
            json!(["and", ["=", "name", "site"], ["~", "value", "^[ab]$"]]),
        ),
        _ => (
            "nodes",
            json!([
                "=",
                "latest_report_status",
                dice.pick(&["failed", "changed"])
            ]),
        ),
    };
    let (entity, condition) = inner;
    match dice.below(3) {
        0 => json!(["subquery", entity, condition]),
        1 => json!([
            "in",
            "certname",
            ["from", entity, ["extract", ["certname"], condition]]
        ]),
        _ => {
            let certname = text(dice, "certname", entity, sample);
            let own = json!(["or", condition, ["=", "certname", certname]]);
            json!([
                "in",
                "certname",
                ["extract", "certname", [format!("select_{entity}"), own]]
            ])
        }
    }
}

fn leaf(dice: &mut Dice, entity: &Entity, sample: &Sample) -> Value {
    let column = dice.pick(entity.columns);
    let name = column.name;
    match column.kind {
        Kind::Text => text_leaf(dice, entity, column, sample),
        Kind::Time => {
            if dice.chance(15) {
                return json!(["null?", name, dice.chance(50)]);
            }
            let operator = dice.pick(&["<", "<=", ">", ">="]);
            let hour = dice.below(20);
            json!([operator, name, format!("2025-03-01T{hour:02}:00:00Z")])
        }
        Kind::Flag => json!(["=", name, dice.chance(50)]),
        Kind::Number => {
            let operator = dice.pick(&["=", "<", "<=", ">", ">="]);
            json!([operator, name, dice.below(24)])
        }
        Kind::Json => value_leaf(dice),
    }
}

fn text_leaf(dice: &mut Dice, entity: &Entity, column: &Column, sample: &Sample) -> Value {
    let name = column.name;
    let value = |dice: &mut Dice| text(dice, name, entity.path, sample);
    match dice.below(8) {
        0..=3 => json!(["=", name, value(dice)]),
        4 if column.shown => {
            let some = [value(dice), value(dice), value(dice)];
            json!(["in", name, ["array", some]])
        }
        5 if column.shown => json!(["null?", name, dice.chance(30)]),
        6 => json!([
            "~",
            name,
            dice.pick(&["^[a-m]", "e", "^[A-Z]", "[0-9]$", "."])
        ]),
        _ => {
            // What a value begins with finds that one and its like.
            let letters = value(dice).chars().take(3).collect::<String>();
            let letters = letters.replace(['.', '/', '+'], ".");
            json!(["~", name, format!("^{letters}")])
        }
    }
}

/// A fact's value is asked with its name: of all facts it would be of every type at once.
fn value_leaf(dice: &mut Dice) -> Value {
    let (name, condition) = match dice.below(6) {
        0 => ("site", json!(["=", "value", dice.pick(&["a", "b"])])),
        1 => ("is_virtual", json!(["=", "value", dice.chance(50)])),
        2 => ("architecture", json!(["~", "value", "64$"])),
        3 => ("load", json!(["<", "value", 3.5])),
        _ => {
            let operator = dice.pick(&["=", "<", "<=", ">", ">="]);
            let bound = 1000 * dice.below(60) + 1;
            ("uptime_seconds", json!([operator, "value", bound]))
        }
    };
    json!(["and", ["=", "name", name], condition])
}

/// A text that a column may hold.
fn text(dice: &mut Dice, column: &str, entity: &str, sample: &Sample) -> String {
    let fixed: &[&str] = match (column, entity) {
        ("certname", _) if !sample.active.is_empty() && dice.chance(90) => {
            return dice.pick(&sample.active).clone();
        }
        ("hash" | "report" | "latest_report_hash", _) if !sample.reports.is_empty() => {
            return dice.pick(&sample.reports).clone();
        }
        (name, _) if name.ends_with("environment") => &ENVIRONMENTS,
        ("name", "environments") => &ENVIRONMENTS,
        ("producer", _) | ("name", "producers") => &PRODUCERS,
        ("name", "catalog-input-contents") => &["profile::version", "nosuch"],
        ("name", _) => &[
            "site",
            "kernel",
            "os",
            "uptime_seconds",
            "only_in_a",
            "only_in_b",
        ],
        ("latest_report_status", _) | ("status", "reports") => &["failed", "changed", "unchanged"],
        ("status", _) => &["success", "failure", "noop", "skipped"],
        ("type", "fact-paths") => &["string", "integer", "float", "boolean", "null"],
        ("type", "catalog-input-contents") => &["hiera"],
        ("type" | "resource_type" | "source_type" | "target_type", _) => {
            &["File", "Service", "Package", "Class", "Sshkey"]
        }
        ("title" | "resource_title" | "source_title" | "target_title", _) => {
            &["/etc/motd", "ssh", "tool0", "tool1", "Main"]
        }
        ("tag", _) => &["site", "class", "FILE", "nosuch"],
        ("package_name", _) => &["bash", "openssl", "curl"],
        ("version", _) => &["5.2.15", "5.2.21", "3.0.1", "v700", "v600"],
        ("cached_catalog_status", _) => &["not_used", "explicitly_requested"],
        ("configuration_version", _) => &["v400", "v700", "v600"],
        ("property", _) => &["content", "ensure"],
        _ => &["nosuch", "Main", "contains", "apt", "8.4.0"],
    };
    (*dice.pick(fixed)).to_owned()
}

const ENVIRONMENTS: [&str; 4] = ["production", "staging", "legacy", "nosuch"];
const PRODUCERS: [&str; 3] = [
    "server-a.example.com",
    "server-b.example.com",
    "server-c.example.com",
];
