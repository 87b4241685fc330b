//! Functions over nodes that one backend alone holds: the halves are disjoint, so the fold
//! must say what one PuppetDB holding both says.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use pdbmux_e2e::http::Answer;
use pdbmux_e2e::records::Record;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::world::{World, canonical, canonicals, same};
use crate::{Case, cases};

pub(crate) const CASES: &[Case] = cases![
    r105_r106_r115_r116_r117_r118_each_function_in_each_grouping,
    r119_r122_averages_weigh_their_backends,
    r116_fractions_are_added_to_the_digit,
    r106_a_null_is_a_group,
    r126_rows_are_ordered_by_what_was_folded,
    r135_r136_r137_folded_rows_are_paged_and_counted,
    r107_r109_event_counts_are_the_oracles,
    r108_r110_aggregate_event_counts_are_the_oracles,
];

/// What can be asked of an entity.
struct Entity {
    path: &'static str,
    /// A condition besides the certnames.
    filter: &'static str,
    /// Columns to group by.
    by: [&'static str; 2],
    /// A column to group by and not to name. The single PuppetDB's own fails for one that it
    /// would have to join (500), pdbmux's does not.
    unnamed: &'static str,
    /// A timestamp, for `to_string`.
    time: Option<&'static str>,
    /// Functions with their arguments.
    functions: &'static [&'static str],
}

const TEXT: &[&str] = &[
    r#"["function","count"]"#,
    r#"["function","count","certname"]"#,
    r#"["function","min","certname"]"#,
    r#"["function","max","certname"]"#,
    r#"["function","min","report_timestamp"],["function","max","report_timestamp"]"#,
    r#"["function","count","report_timestamp"],["function","min","certname"],["function","max","report_timestamp"]"#,
];
const VALUES: &[&str] = &[
    r#"["function","count"]"#,
    r#"["function","count","value"]"#,
    r#"["function","sum","value"]"#,
    r#"["function","min","value"]"#,
    r#"["function","max","value"]"#,
    r#"["function","sum","value"],["function","min","value"],["function","max","value"],["function","count","value"]"#,
];
const LINES: &[&str] = &[
    r#"["function","count"]"#,
    r#"["function","count","line"]"#,
    r#"["function","sum","line"]"#,
    r#"["function","min","line"]"#,
    r#"["function","max","line"]"#,
    r#"["function","min","certname"]"#,
];
const FORMATS: &[&str] = &[
    r#"["function","count"]"#,
    r#"["function","count","catalog_uuid"]"#,
    r#"["function","sum","report_format"]"#,
    r#"["function","min","report_format"]"#,
    r#"["function","max","end_time"]"#,
    r#"["function","min","hash"],["function","max","hash"],["function","count"]"#,
];

const ENTITIES: &[Entity] = &[
    Entity {
        path: "nodes",
        filter: "",
        by: ["facts_environment", "latest_report_status"],
        unnamed: "certname",
        time: Some("report_timestamp"),
        functions: TEXT,
    },
    Entity {
        path: "facts",
        filter: r#"["=","name","uptime_seconds"]"#,
        by: ["environment", "name"],
        unnamed: "certname",
        time: None,
        functions: VALUES,
    },
    Entity {
        path: "facts/uptime_seconds",
        filter: "",
        by: ["environment", "name"],
        unnamed: "certname",
        time: None,
        functions: VALUES,
    },
    Entity {
        path: "resources",
        filter: "",
        by: ["type", "title"],
        unnamed: "title",
        time: None,
        functions: LINES,
    },
    Entity {
        path: "reports",
        filter: "",
        by: ["status", "producer"],
        unnamed: "certname",
        time: Some("end_time"),
        functions: FORMATS,
    },
    Entity {
        path: "events",
        filter: "",
        by: ["status", "resource_type"],
        unnamed: "resource_title",
        time: Some("timestamp"),
        functions: LINES,
    },
];

fn r105_r106_r115_r116_r117_r118_each_function_in_each_grouping(world: &World) -> Result<()> {
    for entity in ENTITIES {
        for functions in entity.functions {
            for query in shapes(world, entity, functions) {
                as_the_oracle(world, entity.path, &[("query", &query)])?;
            }
        }
    }
    Ok(())
}

fn r119_r122_averages_weigh_their_backends(world: &World) -> Result<()> {
    for (entity, column) in [
        (&ENTITIES[1], "value"),
        (&ENTITIES[2], "value"),
        (&ENTITIES[3], "line"),
        (&ENTITIES[4], "report_format"),
        (&ENTITIES[5], "line"),
    ] {
        for query in shapes(world, entity, &format!(r#"["function","avg","{column}"]"#)) {
            let parameters = [("query", query.as_str())];
            let got = averages(&world.query(entity.path, &parameters)?)?;
            let wanted = averages(&world.oracle()?.query(entity.path, &parameters)?)?;
            // Better than R124 asks: the text that one server divides to.
            ensure!(got == wanted, "{query}: {got:?}, wanted {wanted:?}");
        }
    }
    Ok(())
}

fn r116_fractions_are_added_to_the_digit(world: &World) -> Result<()> {
    for fact in ["load", "whole_float", "big_integer"] {
        let entity = format!("facts/{fact}");
        for function in ["min", "max", "sum"] {
            let query = format!(
                r#"["extract",[["function","{function}","value"]],{}]"#,
                certnames(world)
            );
            let parameters = [("query", query.as_str())];
            let got = world.query(&entity, &parameters)?;
            let wanted = world.oracle()?.query(&entity, &parameters)?;
            let number = |answer: &Answer| -> Result<String> {
                let rows = answer.records()?;
                Ok(raw(rows.first().context("no row")?, function)?.to_owned())
            };
            let (got, wanted) = (number(&got)?, number(&wanted)?);
            // Better than R124 asks: no digit is lost beyond 2^53 either.
            ensure!(got == wanted, "{query}: {got}, wanted {wanted}");
        }
    }
    Ok(())
}

fn r106_a_null_is_a_group(world: &World) -> Result<()> {
    let by = "latest_report_status";
    let query = format!(
        r#"["extract",[["function","count"],"{by}"],{},["group_by","{by}"]]"#,
        certnames(world)
    );
    let answer = as_the_oracle(world, "nodes", &[("query", &query)])?;
    let nulls = answer
        .records()?
        .into_iter()
        .filter(|row| row.field(by).is_ok_and(|value| value.is_null()))
        .count();
    // Silent nodes of both backends, in one row.
    ensure!(nulls == 1, "{}", answer.body);
    Ok(())
}

fn r126_rows_are_ordered_by_what_was_folded(world: &World) -> Result<()> {
    for (function, column) in [
        ("count", ""),
        ("sum", "line"),
        ("avg", "line"),
        ("max", "certname"),
    ] {
        let call = match column {
            "" => json!(["function", function]),
            column => json!(["function", function, column]),
        };
        let query = format!(
            r#"["extract",[{call},"type","title"],{},["group_by","type","title"]]"#,
            certnames(world)
        );
        for direction in ["asc", "desc"] {
            let order = json!([
                {"field": function, "order": direction}, {"field": "title"}, {"field": "type"},
            ])
            .to_string();
            let answer = world.query("resources", &[("query", &query), ("order_by", &order)])?;
            let mut keys = Vec::new();
            for row in answer.records()? {
                let value = row.field(function)?;
                let number = value.as_f64().unwrap_or_default();
                let text = value.as_str().unwrap_or_default().to_owned();
                keys.push((number, text, row.text("title")?, row.text("type")?));
            }
            let sorted = keys.is_sorted_by(|left, right| {
                let folded = left.0.total_cmp(&right.0).then(left.1.cmp(&right.1));
                let folded = match direction {
                    "desc" => folded.reverse(),
                    _ => folded,
                };
                folded
                    .then_with(|| (&left.2, &left.3).cmp(&(&right.2, &right.3)))
                    .is_le()
            });
            ensure!(
                sorted && keys.len() > 4,
                "by {function} {direction}: {keys:?}"
            );
        }
    }
    Ok(())
}

fn r135_r136_r137_folded_rows_are_paged_and_counted(world: &World) -> Result<()> {
    let query = format!(
        r#"["extract",[["function","count"],"certname"],{},["group_by","certname"]]"#,
        certnames(world)
    );
    let order = r#"[{"field":"certname","order":"desc"}]"#;
    let fixed = [
        ("query", query.as_str()),
        ("order_by", order),
        ("include_total", "true"),
    ];
    for entity in ["resources", "events", "reports", "facts", "nodes"] {
        for (limit, offset) in [
            ("1", "0"),
            ("3", "2"),
            ("7", "7"),
            ("100", "0"),
            ("5", "99"),
        ] {
            let mut window = fixed.to_vec();
            window.extend([("limit", limit), ("offset", offset)]);
            let got = world.query(entity, &window)?;
            let wanted = world.oracle()?.query(entity, &window)?;
            same(
                &format!("{entity} {limit} from {offset}"),
                &canonicals(&got)?,
                &canonicals(&wanted)?,
            )?;
            ensure!(
                got.header("x-records") == wanted.header("x-records"),
                "{entity} {limit} from {offset}: {:?} groups, the oracle has {:?}",
                got.header("x-records"),
                wanted.header("x-records")
            );
        }
    }
    Ok(())
}

fn r107_r109_event_counts_are_the_oracles(world: &World) -> Result<()> {
    // By the SQL's names, which are no keys of the rows (T22).
    for (summarize, order) in [
        ("certname", r#"[{"field":"certname","order":"desc"}]"#),
        (
            "resource",
            r#"[{"field":"resource_type","order":"desc"},{"field":"resource_title"}]"#,
        ),
        ("containing_class", r#"[{"field":"containing_class"}]"#),
    ] {
        let query = alternatives(world);
        let plain = [("query", query.as_str()), ("summarize_by", summarize)];
        as_the_oracle(world, "event-counts", &plain)?;
        let ordered = [plain[0], plain[1], ("order_by", order)];
        same(
            &format!("event-counts by {order}"),
            &canonicals(&world.query("event-counts", &ordered)?)?,
            &canonicals(&world.oracle()?.query("event-counts", &ordered)?)?,
        )?;
    }
    let query = alternatives(world);
    let order = r#"[{"field":"failures","order":"desc"},{"field":"certname"}]"#;
    let window = [
        ("query", query.as_str()),
        ("summarize_by", "certname"),
        ("order_by", order),
        ("limit", "4"),
        ("offset", "1"),
        ("include_total", "true"),
    ];
    let got = world.query("event-counts", &window)?;
    let wanted = world.oracle()?.query("event-counts", &window)?;
    same("by failures", &canonicals(&got)?, &canonicals(&wanted)?)?;
    ensure!(got.header("x-records") == wanted.header("x-records"));
    Ok(())
}

fn r108_r110_aggregate_event_counts_are_the_oracles(world: &World) -> Result<()> {
    let query = alternatives(world);
    // Subjects that both backends have count twice in the other two summaries (R307).
    let one = [("query", query.as_str()), ("summarize_by", "certname")];
    as_the_oracle(world, "aggregate-event-counts", &one)?;
    let all = "certname,resource,containing_class";
    let parameters = [("query", query.as_str()), ("summarize_by", all)];
    let names = |answer: &Answer| -> Result<Vec<String>> {
        let mut all: Vec<_> = answer
            .records()?
            .into_iter()
            .map(|row| row.text("summarize_by"))
            .collect::<Result<_>>()?;
        all.sort();
        Ok(all)
    };
    same(
        all,
        &names(&world.query("aggregate-event-counts", &parameters)?)?,
        &names(
            &world
                .oracle()?
                .query("aggregate-event-counts", &parameters)?,
        )?,
    )
}

/// No group, one column, two, one that the rows do not name, and a row function.
fn shapes(world: &World, entity: &Entity, functions: &str) -> Vec<String> {
    let [first, second] = entity.by;
    let unnamed = entity.unnamed;
    let nodes = certnames(world);
    let filter = match entity.filter {
        "" => nodes,
        more => format!(r#"["and",{more},{nodes}]"#),
    };
    let mut queries = vec![
        format!(r#"["extract",[{functions}],{filter}]"#),
        format!(r#"["extract",[{functions},"{first}"],{filter},["group_by","{first}"]]"#),
        format!(
            r#"["extract",["{second}",{functions},"{first}"],{filter},["group_by","{first}","{second}"]]"#
        ),
        format!(r#"["extract",[{functions}],{filter},["group_by","{unnamed}"]]"#),
        format!(
            r#"["extract",[{functions},"{first}"],{filter},["group_by","{first}","{unnamed}"]]"#
        ),
    ];
    if let Some(time) = entity.time {
        let call = format!(r#"["function","to_string","{time}","HH24"]"#);
        queries.push(format!(
            r#"["extract",[{functions},{call}],{filter},["group_by",{call}]]"#
        ));
        queries.push(format!(
            r#"["extract",[{call},"{first}",{functions}],{filter},["group_by",{call},"{first}"]]"#
        ));
    }
    queries
}

fn certnames(world: &World) -> String {
    json!(["in", "certname", ["array", world.held_once()]]).to_string()
}

/// The same for entities that take no array.
fn alternatives(world: &World) -> String {
    let each = world.held_once().into_iter();
    let mut clause = vec![json!("or")];
    clause.extend(each.map(|certname| json!(["=", "certname", certname])));
    Value::from(clause).to_string()
}

/// pdbmux's answer, whose rows must be the oracle's in any order.
fn as_the_oracle(world: &World, entity: &str, parameters: &[(&str, &str)]) -> Result<Answer> {
    let answer = world.query(entity, parameters)?;
    let mut got = canonicals(&answer)?;
    let mut wanted = canonicals(&world.oracle()?.query(entity, parameters)?)?;
    got.sort();
    wanted.sort();
    same(&format!("{entity} {parameters:?}"), &got, &wanted)?;
    ensure!(
        !wanted.is_empty(),
        "{entity} {parameters:?}: nothing to see"
    );
    Ok(answer)
}

/// The text of a row's field, to the digit.
fn raw<'r>(row: &Record<'r>, field: &str) -> Result<&'r str> {
    let fields: BTreeMap<&str, &RawValue> = serde_json::from_str(row.0)?;
    let value = fields
        .get(field)
        .with_context(|| format!("no {field} in {}", row.0))?;
    Ok(value.get())
}

/// Each row's average, to the digit, with the rest of the row, sorted.
fn averages(answer: &Answer) -> Result<Vec<(String, String)>> {
    let mut all = Vec::new();
    for row in answer.records()? {
        let average = raw(&row, "avg")?.to_owned();
        let mut fields: serde_json::Map<String, Value> = serde_json::from_str(row.0)?;
        fields.remove("avg");
        all.push((canonical(Record(&json!(fields).to_string()))?, average));
    }
    all.sort();
    Ok(all)
}
