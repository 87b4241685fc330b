//! Events of which the newest of each resource on a node counts alone (`distinct_resources`).
//!
//! A backend picks the newest among its own events. For nodes that several backends have the events
//! of, each of them is asked beside it how new its events are, whatever happened: one that is no
//! longer the newest counts nowhere, also where the newer one is not selected.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;

use super::group::by_backend;
use super::owners::time;
use super::sets::{Disjoint, Key, Record, Taken, key, list, read, take};
use super::{Context, Merge, Merged};
use crate::json::ScanError;
use crate::round::Part;

/// What PuppetDB takes for the same resource of a node.
pub(crate) const RESOURCE: [&str; 5] = [
    "certname",
    "resource_type",
    "resource_title",
    "property",
    "name",
];

/// The columns by which events are told apart, but for those of the resource.
const EVENT: [&str; 6] = [
    "timestamp",
    "report",
    "status",
    "new_value",
    "old_value",
    "message",
];

/// How the newest events of each backend become the newest of all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewestMerge {
    /// How the answer is made of them.
    pub then: Box<Merge>,
}

/// Merges a round, in which a backend's events may be followed by the times of the newest of each
/// resource.
pub(super) fn merge(plan: &NewestMerge, round: &[Part<'_>], context: Context<'_>) -> Merged {
    let groups = by_backend(round);
    let mut newest = HashMap::new();
    let mut flaws = Vec::new();
    for group in &groups {
        let times = group.answers().ok().and_then(|mut answers| answers.nth(1));
        flaws.push(times.and_then(|times| learn(times.body, &mut newest).err()));
    }
    let columns = [&RESOURCE[..], &EVENT[..]].concat();
    let mut seen: HashSet<Key<'_>> = HashSet::new();
    let (taken, damaged) = take(&groups, |at, events, _| {
        if let Some(flaw) = flaws[at] {
            return Err(flaw);
        }
        let mut events = read(events, &columns)?;
        events.retain(|event| {
            let (resource, others) = event.columns.split_at(RESOURCE.len());
            let at = time(others.first().copied().flatten());
            let newest = newest.get(&key(resource.iter().copied()));
            newest.is_none_or(|newest| at >= Some(*newest))
                && seen.insert(key(event.columns.iter().copied()))
        });
        Ok(events)
    });
    let texts = |taken: &Taken<'_>| {
        let events = taken.records().iter();
        list(&events.map(|event| event.text.to_vec()).collect::<Vec<_>>())
    };
    let disjoint = Disjoint {
        bodies: taken.iter().map(texts).collect(),
        taken,
        damaged,
    };
    disjoint.merge(&groups, &plan.then, context)
}

/// Adds what a backend says of how new its events are.
fn learn<'b>(body: &'b [u8], newest: &mut HashMap<Key<'b>, Timestamp>) -> Result<(), ScanError> {
    let columns = [&RESOURCE[..], &["max"]].concat();
    for Record { columns, .. } in read(body, &columns)? {
        let (resource, at) = columns.split_at(RESOURCE.len());
        if let Some(at) = time(at.first().copied().flatten()) {
            let known = newest.entry(key(resource.iter().copied())).or_insert(at);
            *known = at.max(*known);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::Outcome;
    use crate::round::{BackendId, Reply};

    fn event(certname: &str, title: &str, minute: u32, status: &str) -> String {
        format!(
            r#"{{"certname":"{certname}","resource_type":"File","resource_title":"{title}","property":null,"name":null,"timestamp":"2024-05-01T10:{minute:02}:00.000Z","report":"r{minute}","status":"{status}"}}"#
        )
    }

    fn at(certname: &str, title: &str, minute: u32) -> String {
        format!(
            r#"{{"max":"2024-05-01T10:{minute:02}:00.000Z","certname":"{certname}","resource_type":"File","resource_title":"{title}","property":null,"name":null}}"#
        )
    }

    /// What is left of each backend's events, given those and, if asked, the times of the newest.
    fn left(backends: &[(&[String], Option<&[String]>)]) -> (Vec<String>, usize) {
        let bodies: Vec<Vec<String>> = backends
            .iter()
            .map(|(events, times)| {
                let body = |texts: &[String]| format!("[{}]", texts.join(","));
                std::iter::once(body(events))
                    .chain(times.map(body))
                    .collect()
            })
            .collect();
        let part = |backend: u16, body: &'static str| Part {
            backend: BackendId(backend),
            reply: Some(Reply {
                status: 200,
                total: None,
                body: body.as_bytes(),
                scan: None,
            }),
        };
        let leaked = |body: &String| -> &'static str { Box::leak(body.clone().into_boxed_str()) };
        let round: Vec<_> = (0..)
            .zip(&bodies)
            .flat_map(|(backend, bodies)| {
                bodies.iter().map(move |body| part(backend, leaked(body)))
            })
            .collect();
        let records = crate::merge::records::RecordMerge {
            keep: crate::merge::records::Keep::Owned,
            order: crate::paging::RecordOrder::default(),
            text_order: crate::merge::records::TextOrder::Bytes,
            window: crate::paging::Window::default(),
            strip: Vec::new(),
            provenance: crate::provenance::Provenance::default(),
            total: crate::merge::records::Total::Counted,
        };
        let plan = NewestMerge {
            then: Box::new(Merge::Records(records)),
        };
        let context = Context {
            backends: &[],
            freshness: None,
            shares: None,
        };
        let merged = merge(&plan, &round, context);
        let Outcome::Answer(answer) = merged.outcome else {
            panic!("{:?}", merged.outcome)
        };
        let whole: Vec<serde_json::Value> =
            serde_json::from_slice(&answer.pieces.assemble(&[])).unwrap();
        assert_eq!(answer.total, Some(whole.len() as u64));
        let told = whole.iter().map(|event| {
            let of = |name: &str| event[name].as_str().unwrap().to_owned();
            format!(
                "{} {} {}",
                of("certname"),
                of("resource_title"),
                of("report")
            )
        });
        (told.collect(), merged.damaged.len())
    }

    #[test]
    fn t66_an_event_counts_unless_another_backend_knows_a_newer_one() {
        for (a, b, expected) in [
            // The newer one wins, whoever has it.
            (
                (vec![event("n", "x", 1, "failure")], vec![at("n", "x", 1)]),
                (vec![event("n", "x", 2, "failure")], vec![at("n", "x", 2)]),
                &["n x r2"][..],
            ),
            // Also where the client does not select it.
            (
                (vec![event("n", "x", 1, "failure")], vec![at("n", "x", 1)]),
                (vec![], vec![at("n", "x", 2)]),
                &[],
            ),
            // Other resources and other nodes have newest events of their own.
            (
                (
                    vec![event("n", "x", 1, "failure"), event("m", "y", 1, "noop")],
                    vec![at("n", "x", 1)],
                ),
                (vec![event("n", "y", 2, "failure")], vec![at("n", "y", 2)]),
                &["n x r1", "m y r1", "n y r2"],
            ),
            // What both have is listed once, what differs twice.
            (
                (vec![event("n", "x", 1, "failure")], vec![at("n", "x", 1)]),
                (
                    vec![event("n", "x", 1, "failure"), event("n", "x", 1, "noop")],
                    vec![at("n", "x", 1)],
                ),
                &["n x r1", "n x r1"],
            ),
        ] {
            let (left, damaged) = left(&[(&a.0, Some(&a.1)), (&b.0, Some(&b.1))]);
            assert_eq!(
                (&*left, damaged),
                (
                    &*expected
                        .iter()
                        .map(|it| (*it).to_owned())
                        .collect::<Vec<_>>(),
                    0
                )
            );
        }
    }

    #[test]
    fn a_node_that_one_backend_holds_needs_no_times() {
        let (left, _) = left(&[
            (&[event("n", "x", 1, "failure")], None),
            (&[event("m", "x", 2, "failure")], Some(&[at("m", "x", 2)])),
        ]);
        assert_eq!(left, ["n x r1", "m x r2"]);
    }

    #[test]
    fn a_backend_whose_times_cannot_be_read_is_left_out() {
        let broken = ["{".to_owned()];
        let (left, damaged) = left(&[
            (&[event("n", "x", 1, "failure")], Some(&[at("n", "x", 1)])),
            (&[event("n", "x", 2, "failure")], Some(&broken)),
        ]);
        assert_eq!((&*left, damaged), (&["n x r1".to_owned()][..], 1));
    }
}
