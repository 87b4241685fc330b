//! The differences that are allowed, each with its reason. Whatever else differs is a fault.
//!
//! Besides these, [`super::compare`] never looks at receipt times (each PuppetDB stamps its own,
//! wire 4.1), at the order of members and of lists that PostgreSQL gathers in no order, nor at
//! the words of a refusal (they differ between versions, wire 13).

use crate::http::Answer;

use super::ask::{Ask, Method};
use super::canon::Json;
use super::compare::{Difference, What};
use super::shape::Shape;

/// A difference that was found, and what is needed to judge it.
#[derive(Debug)]
pub struct Found<'a> {
    /// The question.
    pub ask: &'a Ask,
    /// What it is about.
    pub shape: &'a Shape,
    /// The union's answer.
    pub union: &'a Answer,
    /// pdbmux's answer.
    pub got: &'a Answer,
    /// What each backend says to the same question itself.
    pub backends: &'a [Answer],
    /// Whether the estate has nodes that never reported.
    pub silent_nodes: bool,
    /// Whether a backend orders text otherwise than the union.
    pub other_order: bool,
    /// How the two differ.
    pub differences: &'a [Difference],
}

/// A difference that is allowed.
#[derive(Debug)]
pub struct Tolerated {
    /// A short name, for the report.
    pub name: &'static str,
    /// Why it is no fault.
    pub reason: &'static str,
    /// Whether it explains all of what was found.
    pub covers: fn(&Found<'_>) -> bool,
}

/// All of them; the first that covers a difference explains it.
pub static TOLERATED: &[Tolerated] = &[
    Tolerated {
        name: "the versions disagree",
        reason: "PuppetDBs of different versions refuse the same mistake with different statuses \
                 (wire 13); pdbmux answers one backend's, or 502 where they are not unanimous",
        covers: |found| {
            let mut statuses = found.backends.iter().map(|answer| answer.status);
            let unanimous = found
                .backends
                .windows(2)
                .all(|pair| pair[0].status == pair[1].status);
            found.union.status >= 400
                && statuses.all(|status| status >= 400)
                && !unanimous
                && (found.got.status == 502
                    || found
                        .backends
                        .iter()
                        .any(|answer| answer.status == found.got.status))
        },
    },
    Tolerated {
        name: "a mistake that PuppetDB stumbles over",
        reason: "PuppetDB answers some mistakes with an internal failure (500); pdbmux refuses them \
                 with a sentence (400, ruling 7)",
        covers: |found| found.union.status == 500 && found.got.status == 400,
    },
    Tolerated {
        name: "a mistake that each backend words otherwise",
        reason: "a query that cannot be compiled is narrowed for each backend, which stumble over \
                 different parts of it; all refuse, and pdbmux answers 502 where they disagree",
        covers: |found| {
            let mut statuses = found.backends.iter().map(|answer| answer.status);
            found.union.status == 500
                && found.got.status == 502
                && statuses.all(|status| status >= 400)
        },
    },
    Tolerated {
        name: "an operator that nobody knows",
        reason: "/event-counts ignores an unknown operator at the top of a query and counts \
                 everything (T67); narrowed to what a backend speaks for, it is refused (400)",
        covers: |found| {
            found.shape.entity == "event-counts"
                && found.union.status == 200
                && found.got.status == 400
                && found
                    .got
                    .body
                    .contains("No implementation of method: :-plan->sql")
        },
    },
    Tolerated {
        name: "the type of a refusal",
        reason: "a media type that is not taken is refused by PuppetDB with text before 8.8 and \
                 with JSON since; pdbmux refuses it with JSON",
        covers: |found| found.union.status == 415 && found.got.status == 415,
    },
    Tolerated {
        name: "other methods",
        reason: "PuppetDB refuses other methods than GET and POST with 400, pdbmux with 405 and \
                 what is allowed",
        covers: |found| {
            matches!(found.ask.method, Method::Other(_))
                && found.union.status == 400
                && found.got.status == 405
        },
    },
    Tolerated {
        name: "a client's own headers",
        reason: "Accept and X-PDB-Sync-Ver are not forwarded (T62): backends are asked with \
                 pdbmux's own, so they do not refuse (406, 409) and pdbmux answers",
        covers: |found| {
            matches!(found.union.status, 406 | 409)
                && found.got.status == 200
                && !found.ask.headers.is_empty()
        },
    },
    Tolerated {
        name: "a path that is no route",
        reason: "PuppetDBs before 8.6 redirect to their dashboard (302), later ones and pdbmux \
                 answer 404 (wire 1.5)",
        covers: |found| found.union.status == 302 && found.got.status == 404,
    },
    Tolerated {
        name: "a malformed percent-escape",
        reason: "PuppetDB drops it and answers everything (T61); pdbmux refuses it (ruling 13)",
        covers: |found| {
            found.union.status == 200 && found.got.status == 400 && found.ask.path.contains("=%zz")
        },
    },
    Tolerated {
        name: "order by a function's column",
        reason: "PuppetDB orders by no function's column (400); pdbmux sorts what it folded \
                 (ruling 7)",
        covers: |found| {
            found.union.status == 400
                && found.got.status == 200
                && ["count", "sum", "avg", "min", "max"].iter().any(|name| {
                    let said = format!("Unrecognized column '{name}' specified in :order_by");
                    found.union.body.starts_with(&said)
                })
        },
    },
    Tolerated {
        name: "events that are not of a latest report",
        reason: "PuppetDB finds none of them as soon as one node never reported (its NOT IN meets \
                 a null); pdbmux finds them",
        covers: |found| {
            let query = found.shape.query.as_ref().map(Json::spell);
            let query = query.unwrap_or_default();
            matches!(
                found.shape.entity.as_str(),
                "events" | "event-counts" | "aggregate-event-counts"
            ) && found.union.status == 200
                && found.got.status == 200
                && (query.contains(r#""latest_report?",false"#)
                    || query.contains(r#"["not",["=","latest_report?",true]"#))
                && found.silent_nodes
        },
    },
    Tolerated {
        name: "events of a report",
        reason: "/reports/<hash>/events is broken in every PuppetDB since 6.22 (500, T3); pdbmux \
                 answers it from /events",
        covers: |found| {
            found.union.status == 500
                && found.got.status == 200
                && found.ask.path.contains("/reports/")
                && found.ask.path.ends_with("/events")
        },
    },
    Tolerated {
        name: "a subquery that PuppetDB stumbles over",
        reason: "orders and columns that are fine in a query of their own are a 500 in some \
                 subqueries (\"does not exist\", \"is ambiguous\", reports beside an extract without \
                 a filter); pdbmux asks the subquery first, as a query of its own, and answers",
        covers: |found| {
            let query = found.shape.query.as_ref().map(Json::spell);
            let has_subquery = query.is_some_and(|query| query.contains(r#"["in","#));
            let said = &found.union.body;
            found.union.status == 500
                && found.got.status == 200
                && has_subquery
                && (said.contains("Unrecognized ast clause")
                    || said.contains("does not exist")
                    || said.contains("is ambiguous"))
        },
    },
    Tolerated {
        name: "a column of a dropped join",
        reason: "ordering or grouping by a column that is not projected is a 500 where it stands \
                 in another table (T11); pdbmux projects it and takes it out again",
        covers: |found| {
            found.union.status == 500
                && found.got.status == 200
                && found.union.body.contains("missing FROM-clause entry")
        },
    },
    Tolerated {
        name: "how equal numbers are written",
        reason: "42 and 42.0 are one value to PostgreSQL; a group shows the one that it met first",
        covers: |found| {
            let query = found.shape.query.as_ref().map(Json::spell);
            let is_grouped = query.is_some_and(|text| text.contains("[\"group_by\","));
            let of_rows = |one: &Difference| one.what == What::Rows;
            is_grouped
                && found.differences.iter().all(of_rows)
                && by_value(&found.union.body) == by_value(&found.got.body)
        },
    },
    Tolerated {
        name: "the least and the greatest text",
        reason: "a backend whose database orders text by a language finds another one than the \
                 union, which orders by bytes; the text that it found is all that it tells",
        covers: |found| {
            let without = |body: &str| without_ends(by_value(body)?);
            found.other_order
                && found.union.status == 200
                && found.got.status == 200
                && without(&found.union.body).is_some()
                && without(&found.union.body) == without(&found.got.body)
        },
    },
    Tolerated {
        name: "packages without their nodes",
        reason: "asked for nodes in any state and for nothing of them, PuppetDB leaves them out of \
                 /package-inventory and tells each package once; narrowed to the nodes that a \
                 backend speaks for, it tells it once for each node",
        covers: |found| {
            let query = found.shape.query.as_ref().map(Json::spell);
            let query = query.unwrap_or_default();
            found.shape.entity == "package-inventory"
                && found.union.status == 200
                && found.got.status == 200
                && query.contains(r#""node_state","any""#)
                && query.contains(r#""extract""#)
                && !query.contains(r#""certname""#)
        },
    },
];

/// The rows without what `min` and `max` found among texts; `None` if they found none.
fn without_ends(rows: Vec<Json>) -> Option<Vec<Json>> {
    let mut found = false;
    let mut rows: Vec<_> = rows
        .into_iter()
        .map(|row| match row {
            Json::Map(mut fields) => {
                fields.retain(|name, value| {
                    let is_end = (name.starts_with("min") || name.starts_with("max"))
                        && value.text().is_some();
                    found |= is_end;
                    !is_end
                });
                Json::Map(fields)
            }
            other => other,
        })
        .collect();
    rows.sort();
    found.then_some(rows)
}

/// The rows of an answer in an order of their own, each number without the zeros that it ends with;
/// `None` if it has no rows.
fn by_value(body: &str) -> Option<Vec<Json>> {
    match shortest(Json::parse(body).ok()?) {
        Json::List(mut rows) => {
            rows.sort();
            Some(rows)
        }
        _ => None,
    }
}

fn shortest(json: Json) -> Json {
    match json {
        Json::Number(text) if text.contains('.') && !text.contains(['e', 'E']) => {
            let text = text.trim_end_matches('0').trim_end_matches('.');
            Json::Number(text.to_owned())
        }
        Json::List(elements) => Json::List(elements.into_iter().map(shortest).collect()),
        Json::Map(fields) => {
            let fields = fields.into_iter();
            Json::Map(
                fields
                    .map(|(name, value)| (name, shortest(value)))
                    .collect(),
            )
        }
        other => other,
    }
}

/// What explains a difference, if anything does.
pub fn explanation(found: &Found<'_>) -> Option<&'static Tolerated> {
    TOLERATED.iter().find(|one| (one.covers)(found))
}

/// What pdbmux itself says is not exact about an answer, and why.
pub fn mark(got: &Answer) -> Option<&str> {
    got.header("x-pdbmux-exact")
        .filter(|said| said.starts_with("no"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_equal_however_many_zeros_they_end_with() {
        let equal = |one, other| by_value(one) == by_value(other);
        assert!(equal(
            r#"[{"v":42.0},{"v":[1.50,0.0]}]"#,
            r#"[{"v":[1.5,0]},{"v":42}]"#
        ));
        for (one, other) in [
            (r#"[{"v":420}]"#, r#"[{"v":42}]"#),
            (r#"[{"v":"42.0"}]"#, r#"[{"v":"42"}]"#),
            (r#"[{"v":1.0e10}]"#, r#"[{"v":1.0e1}]"#),
            (r#"[{"v":1}]"#, r#"[{"v":1},{"v":1}]"#),
        ] {
            assert!(!equal(one, other), "{one} {other}");
        }
    }
}
