//! What PuppetDB tells about itself: health, and the metrics that dashboards read.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::estate::Estate;
use crate::schema::Entity;
use crate::time::Timestamp;

const POPULATION: &str = "puppetlabs.puppetdb.population";

/// `/status/v1/services`.
pub(crate) fn services(estate: &Estate) -> Value {
    json!({
        "puppetdb-status": puppetdb(estate),
        "status-service": {
            "service_version": "1.2.0",
            "service_status_version": 1,
            "detail_level": "info",
            "state": "running",
            "status": {},
            "active_alerts": [],
        },
    })
}

/// `/status/v1/services/<name>`, for the one service that has something to tell.
pub(crate) fn service(estate: &Estate, name: &str) -> Option<Value> {
    if name != "puppetdb-status" {
        return None;
    }
    let mut service = puppetdb(estate);
    service["service_name"] = name.into();
    Some(service)
}

fn puppetdb(estate: &Estate) -> Value {
    json!({
        "service_version": estate.version(),
        "service_status_version": 1,
        "detail_level": "info",
        "state": "running",
        "status": {
            "maintenance_mode?": false,
            "queue_depth": 0,
            "read_db_up?": true,
            "write_db_up?": true,
            "write_dbs_up?": true,
            "write_db": {"default": {"up?": true}},
        },
        "active_alerts": [],
    })
}

/// The MBeans of the sample and their one attribute, `Value`.
fn gauges(estate: &Estate) -> [(&'static str, Value); 5] {
    let nodes = estate.rows(Entity::Nodes).len();
    let inactive = estate.inactive().count();
    let resources = estate.rows(Entity::Resources);
    let hashes = resources.iter().map(|row| row["resource"].to_string());
    let different = hashes.collect::<BTreeSet<_>>().len();
    let active = nodes - inactive;
    [
        ("num-nodes", active.into()),
        ("num-inactive-nodes", inactive.into()),
        ("num-resources", resources.len().into()),
        ("avg-resources-per-node", ratio(resources.len(), active)),
        (
            "pct-resource-dupes",
            ratio(resources.len() - different, resources.len()),
        ),
    ]
}

/// An exact ratio: a number where it is whole, else text.
fn ratio(part: usize, whole: usize) -> Value {
    let divisor = greatest_common_divisor(part, whole).max(1);
    match whole / divisor {
        0 => Value::Null,
        1 => (part / divisor).into(),
        rest => format!("{}/{rest}", part / divisor).into(),
    }
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}

/// `/metrics/v2/list`: domains, the MBeans of each, and their attributes.
pub(crate) fn metric_list(estate: &Estate, now: Timestamp) -> Value {
    let attribute = json!({"attr": {"Value": {"rw": false, "type": "java.lang.Object"}}});
    let names = gauges(estate).map(|(name, _)| (format!("name={name}"), attribute.clone()));
    json!({
        "request": {"type": "list"},
        "value": {POPULATION: names.into_iter().collect::<Map<_, _>>()},
        "timestamp": now.seconds(),
        "status": 200,
    })
}

/// `/metrics/v2/read/<mbean>[/<attribute>]`: Jolokia's envelope, which tells errors inside a `200`.
pub(crate) fn metric(
    estate: &Estate,
    mbean: &str,
    attribute: Option<&str>,
    now: Timestamp,
) -> Value {
    let mut request = json!({"mbean": mbean, "type": "read"});
    if let Some(attribute) = attribute {
        request["attribute"] = attribute.into();
    }
    let failed = |kind: &str| {
        json!({
            "request": request,
            "error_type": format!("javax.management.{kind}Exception"),
            "error": format!("javax.management.{kind}Exception : {mbean}"),
            "status": 404,
        })
    };
    let name = mbean
        .strip_prefix(POPULATION)
        .and_then(|rest| rest.strip_prefix(":name="));
    let mut known = gauges(estate).into_iter();
    let Some((_, value)) = known.find(|(gauge, _)| name == Some(gauge)) else {
        return failed("InstanceNotFound");
    };
    let value = match attribute {
        None => json!({"Value": value}),
        Some("Value") => value,
        Some(_) => return failed("AttributeNotFound"),
    };
    json!({"request": request, "value": value, "timestamp": now.seconds(), "status": 200})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estate() -> Estate {
        let node = |name, deactivated: Value| json!({"certname": name, "deactivated": deactivated});
        let resource = |hash| json!({"resource": hash});
        Estate::new("8.15.0")
            .with(
                Entity::Nodes,
                [
                    node("a", Value::Null),
                    node("b", Value::Null),
                    node("c", "x".into()),
                ],
            )
            .with(Entity::Resources, ["1", "1", "2"].map(resource))
    }

    #[test]
    fn gauges_count_active_nodes_and_spell_ratios_as_text() {
        let now = Timestamp::from_millis(0);
        for (name, value) in [
            ("num-nodes", json!(2)),
            ("num-resources", json!(3)),
            ("avg-resources-per-node", json!("3/2")),
            ("pct-resource-dupes", json!("1/3")),
        ] {
            let mbean = format!("{POPULATION}:name={name}");
            let envelope = metric(&estate(), &mbean, None, now);
            assert_eq!(envelope["value"], json!({"Value": value}), "{name}");
            let one = metric(&estate(), &mbean, Some("Value"), now);
            assert_eq!(one["value"], value, "{name}");
        }
    }

    #[test]
    fn an_unknown_mbean_is_told_in_the_envelope() {
        let envelope = metric(&estate(), "nope:name=x", None, Timestamp::from_millis(0));
        assert_eq!(envelope["status"], 404);
        assert_eq!(envelope.get("value"), None);
    }
}
