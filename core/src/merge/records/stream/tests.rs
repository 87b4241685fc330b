use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::json::{Elements, Members};
use crate::merge::records::{Keep, TextOrder, Total, merge};
use crate::merge::{Context, Outcome};
use crate::paging::{OrderBy, RecordOrder, Window};
use crate::provenance::{Mark, Provenance};
use crate::round::{Part, Reply};

/// What a backend holds: for each node how new its report is, and how many facts of it are sent.
type Estate = BTreeMap<u8, (u8, u8)>;

fn estates() -> impl Strategy<Value = Vec<Estate>> {
    let estate = prop::collection::btree_map(0u8..6, (0u8..4, 0u8..4), 0..6);
    prop::collection::vec(estate, 1..4)
}

fn plan(keep: Keep, mark: Mark, strip: Option<&str>) -> RecordMerge {
    RecordMerge {
        keep,
        order: RecordOrder::default(),
        text_order: TextOrder::Bytes,
        window: Window::default(),
        strip: strip.into_iter().map(str::to_owned).collect(),
        provenance: Provenance {
            name: Some("src".into()),
            mark,
        },
        total: Total::Added,
    }
}

/// A merge that can be streamed, and in what order.
fn plans() -> impl Strategy<Value = RecordMerge> {
    let keeps = [
        Keep::Freshest,
        Keep::First,
        Keep::Owned,
        Keep::NewestReport,
        Keep::OfOwner,
        Keep::Each(&["hash"]),
        Keep::Each(&["hash", "name", "value"]),
    ];
    let marks = [Mark::Nothing, Mark::Fact, Mark::FactsOnly, Mark::Key];
    let strip = [None, Some("value")];
    let orders = [
        "",
        r#"[{"field":"certname"}]"#,
        r#"[{"field":"certname","order":"desc"}]"#,
        r#"[{"field":"certname"},{"field":"name"}]"#,
        r#"[{"field":"certname","order":"desc"},{"field":"name","order":"desc"}]"#,
        r#"[{"field":"hash"},{"field":"value"},{"field":"name"}]"#,
        r#"[{"field":"hash","order":"desc"}]"#,
        r#"[{"field":"hash"},{"field":"certname"}]"#,
    ];
    let streams = |plan: &RecordMerge| plan.can_stream();
    (
        prop::sample::select(keeps.to_vec()),
        prop::sample::select(marks.to_vec()),
        prop::sample::select(strip.to_vec()),
        prop::sample::select(orders.to_vec()),
    )
        .prop_map(|(keep, mark, strip, order)| {
            let mark = match keep {
                // History has no winner to be named, and a node record is no place for a fact.
                Keep::Each(_) => Mark::Nothing,
                Keep::NewestReport if mark != Mark::Nothing => Mark::Key,
                _ => mark,
            };
            let mut plan = plan(keep, mark, strip);
            if !order.is_empty() {
                plan.order = RecordOrder::new(&OrderBy::parse(order).unwrap(), "facts");
            }
            plan
        })
        .prop_filter("it must be held", streams)
}

/// Whose body is read next, and how much of it: a part of a record, or several.
fn steps() -> impl Strategy<Value = Vec<(Index, usize)>> {
    let length = prop_oneof![1usize..80, 1usize..2000];
    prop::collection::vec((any::<Index>(), length), 1..40)
}

/// What backends send under `keep`: each speaks for its own nodes where it is asked for no others.
fn sent(keep: Keep, mut estates: Vec<Estate>) -> Vec<Estate> {
    let mut known = BTreeSet::new();
    for estate in &mut estates {
        estate.retain(|node, _| keep != Keep::Owned || known.insert(*node));
    }
    estates
}

/// The facts of one backend, in its order. Escapes, blanks and a fact of the source's own name occur.
fn facts(plan: &RecordMerge, estate: &Estate, backend: usize) -> String {
    // All copies of a record of history say the same.
    let is_history = matches!(plan.keep, Keep::Each(_));
    let mut records: Vec<_> = estate
        .iter()
        .flat_map(|(node, (time, facts))| {
            (0..*facts).map(move |fact| {
                let certname = if fact == 2 { format!("\\u006e{node}") } else { format!("n{node}") };
                let name = ["t", "f", "z"][usize::from(fact)];
                let name = if node % 2 == 1 && fact == 1 { "src" } else { name };
                format!(
                    "{{\"certname\":\"{certname}\", \"environment\":\"é{node}\",\"name\":\"{name}\",\"value\":[\"]}}\",{backend}],\"hash\":\"{node}-{}\",\"report_timestamp\":{}}}",
                    fact / 2,
                    stamp(if is_history { 0 } else { *time })
                )
            })
        })
        .collect();
    // Of what a backend orders by, the first member alone is ordered as we do.
    let lead = |at: usize| (at == 0).then(|| plan.order.members().first()).flatten();
    records.sort_by(|a, b| {
        let of = |record, at| lead(at).and_then(|name| value(record, name));
        plan.order.compare(|at| of(a, at), |at| of(b, at))
    });
    format!(" [{}\n] ", records.join(" , "))
}

fn value<'r>(record: &'r str, member: &str) -> Option<&'r [u8]> {
    let name = format!("\"{member}\"");
    let mut members = Members::new(record.as_bytes()).map(Result::unwrap);
    let (_, value) = members.find(|(key, _)| record[key.clone()] == name)?;
    Some(&record.as_bytes()[value])
}

fn stamp(time: u8) -> String {
    match time {
        0 => "null".to_owned(),
        time => format!("\"2026-01-01T00:00:0{time}Z\""),
    }
}

fn nodes(estate: &Estate) -> String {
    let nodes: Vec<_> = estate
        .iter()
        .map(|(node, (time, _))| {
            let time = stamp(*time);
            format!("{{\"certname\":\"n{node}\",\"report_timestamp\":{time}}}")
        })
        .collect();
    format!("[{}]", nodes.join(","))
}

/// The records of an answer; sorted, unless it has an order of its own.
fn records(plan: &RecordMerge, text: &[u8]) -> Vec<String> {
    let mut records: Vec<_> = Elements::new(text)
        .map(|span| String::from_utf8(text[span.unwrap()].to_vec()).unwrap())
        .collect();
    if !plan.is_ordered_here() {
        records.sort();
    }
    records
}

struct Feeding<'b> {
    stream: Stream,
    bodies: &'b [String],
    /// How much of each body has come.
    come: Vec<usize>,
    /// The part of each that came last.
    last: Vec<std::ops::Range<usize>>,
    text: Vec<u8>,
    /// After how many more steps the map is learnt.
    unlearnt: Option<(usize, Arc<FreshnessMap>)>,
}

impl<'b> Feeding<'b> {
    fn step(&mut self, from: usize, more: usize) -> Result<(), Damage> {
        match self.unlearnt.take() {
            Some((0, map)) => self.text.extend(self.stream.learn(map).assemble(&[])),
            later => self.unlearnt = later.map(|(steps, map)| (steps - 1, map)),
        }
        let body = self.bodies[from].as_bytes();
        let at = u16::try_from(from).unwrap();
        let come = self.come[from];
        let pieces = if come == body.len() {
            let parts = self.parts();
            self.stream.end(at, &parts)?
        } else {
            self.come[from] = (come + more).min(body.len());
            self.last[from] = come..self.come[from];
            let parts = self.parts();
            self.stream.feed(at, &parts)?
        };
        self.text.extend(pieces.assemble(&self.parts()));
        Ok(())
    }

    fn parts(&self) -> Vec<&'b [u8]> {
        let parts = self.bodies.iter().zip(&self.last);
        parts
            .map(|(body, part)| &body.as_bytes()[part.clone()])
            .collect()
    }
}

/// When it is learnt whose nodes are where.
#[derive(Debug, Clone, Copy)]
enum Learnt {
    Before,
    /// After so many steps, or never if there are fewer.
    After(usize),
}

/// Everything that `map` tells.
fn shares(map: &FreshnessMap, sources: &[BackendId], names: &[String]) -> Arc<Shares> {
    Arc::new(map.shares(sources, None, names, usize::MAX))
}

/// What is written of `bodies`, which come in pieces by turns.
fn streamed(
    plan: &RecordMerge,
    bodies: &[String],
    map: FreshnessMap,
    learnt: Learnt,
    steps: &[(Index, usize)],
) -> Result<Vec<u8>, Damage> {
    let (sources, names) = backends(bodies.len());
    let map = Arc::new(map);
    let shares = shares(&map, &sources, &names);
    let (freshness, unlearnt) = match learnt {
        Learnt::Before => (Some(&map), None),
        Learnt::After(steps) => (None, Some((steps, Arc::clone(&map)))),
    };
    let known = Known {
        backends: &names,
        freshness,
        shares: Some(&shares),
    };
    let stream = Stream::new(plan, &sources, known);
    fed(stream, bodies, unlearnt, steps)
}

fn backends(count: usize) -> (Vec<BackendId>, Vec<String>) {
    let sources: Vec<_> = (0..).take(count).map(BackendId).collect();
    let names = sources.iter().map(|id| format!("pdb{}", id.0)).collect();
    (sources, names)
}

fn fed(
    stream: Stream,
    bodies: &[String],
    unlearnt: Option<(usize, Arc<FreshnessMap>)>,
    steps: &[(Index, usize)],
) -> Result<Vec<u8>, Damage> {
    let mut feeding = Feeding {
        stream,
        unlearnt,
        bodies,
        come: vec![0; bodies.len()],
        last: vec![0..0; bodies.len()],
        text: b"[".to_vec(),
    };
    let mut steps = steps.iter().cycle();
    loop {
        let open = feeding.stream.wanted();
        if open.is_empty() {
            break;
        }
        let (which, more) = steps.next().unwrap();
        feeding.step(usize::from(*which.get(&open)), *more)?;
    }
    if !matches!(feeding.stream.plan.keep, Keep::Each(_)) {
        assert_eq!(feeding.stream.held(), 0);
    }
    feeding.text.push(b']');
    Ok(feeding.text)
}

/// The same of whole bodies, by the map of `estates`.
fn whole(plan: &RecordMerge, bodies: &[String], estates: &[Estate]) -> (Vec<u8>, FreshnessMap) {
    let lists: Vec<_> = estates.iter().map(nodes).collect();
    let (sources, names) = backends(bodies.len());
    let ids = sources.iter().copied();
    let lists: Vec<_> = ids
        .clone()
        .zip(lists.iter().map(String::as_bytes))
        .collect();
    let (map, _) = FreshnessMap::build(&lists);
    let parts = ids.zip(bodies).map(|(backend, body)| {
        let (status, total, body) = (200, None, body.as_bytes());
        let reply = Some(Reply {
            status,
            total,
            body,
            scan: None,
        });
        Part { backend, reply }
    });
    let round: Vec<_> = parts.collect();
    let shares = shares(&map, &sources, &names);
    let context = Context {
        backends: &names,
        freshness: Some(&map),
        shares: Some(&shares),
    };
    let merged = merge(plan, &round, &vec![None; round.len()], context);
    let Outcome::Answer(answer) = merged.outcome else {
        panic!("no answer");
    };
    let parts: Vec<_> = bodies.iter().map(String::as_bytes).collect();
    (answer.pieces.assemble(&parts), map)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_is_streamed_is_what_is_merged_of_whole_bodies(
        plan in plans(),
        estates in estates(),
        steps in steps(),
        after in prop::option::of(0usize..60),
        younger in prop::collection::vec(0u8..3, 18),
    ) {
        let by_records = plan.keep == Keep::NewestReport;
        // Where the map has the last word, it has to be known.
        let learnt = match after {
            Some(steps) if !plan.is_ordered_here() && (by_records || plan.keep == Keep::First) => {
                Learnt::After(steps)
            }
            _ => Learnt::Before,
        };
        let estates = sent(plan.keep, estates);
        // Whichever copy of a report comes first is served: all say the same.
        let says = |at: usize| if let Keep::Each(_) = plan.keep { 0 } else { at };
        let bodies: Vec<_> = estates.iter().enumerate().map(|(at, it)| facts(&plan, it, says(at))).collect();
        // Where it has not, nodes may have reported meanwhile.
        let mut listed = estates.clone();
        for ((_, (time, _)), later) in listed.iter_mut().flatten().zip(younger) {
            *time += if by_records { later } else { 0 };
        }
        let (whole, map) = whole(&plan, &bodies, &listed);
        let text = streamed(&plan, &bodies, map, learnt, &steps).unwrap();
        prop_assert_eq!(records(&plan, &text), records(&plan, &whole));
    }

    #[test]
    fn what_is_put_in_order_body_by_body_is_what_is_merged_of_whole_bodies(
        plan in plans().prop_filter("it has no order", RecordMerge::is_ordered_here),
        estates in estates(),
        turns in prop::collection::vec(any::<Index>(), 1..4),
        steps in steps(),
    ) {
        let estates = sent(plan.keep, estates);
        let says = |at: usize| if let Keep::Each(_) = plan.keep { 0 } else { at };
        let shuffled = |at: usize, estate: &Estate| {
            let body = facts(&plan, estate, says(at));
            let mut records: Vec<_> = Elements::new(body.as_bytes())
                .map(|span| body[span.unwrap()].to_owned())
                .collect();
            for turn in &turns {
                let half = if records.is_empty() { 0 } else { turn.index(records.len()) };
                records.rotate_left(half);
                records[half..].reverse();
            }
            format!("[{}]", records.join(", "))
        };
        let bodies: Vec<_> = estates.iter().enumerate().map(|(at, it)| shuffled(at, it)).collect();
        let (whole, map) = whole(&plan, &bodies, &estates);
        let sorted = |body: &String| match Sorted::of(&plan, body.as_bytes()).unwrap() {
            Sorted::AsTheyAre => body.clone(),
            Sorted::As(pieces) => String::from_utf8(pieces.assemble(&[body.as_bytes()])).unwrap(),
        };
        let bodies: Vec<_> = bodies.iter().map(sorted).collect();
        let (sources, names) = backends(bodies.len());
        let shares = shares(&map, &sources, &names);
        let known = Known {
            backends: &names,
            freshness: Some(&Arc::new(map)),
            shares: Some(&shares),
        };
        let stream = Stream::of_sorted(&plan, &sources, known);
        let text = fed(stream, &bodies, None, &steps).unwrap();
        prop_assert_eq!(records(&plan, &text), records(&plan, &whole));
    }

    #[test]
    fn a_body_that_is_cut_or_goes_on_is_damaged(
        estate in prop::collection::btree_map(0u8..6, (0u8..4, 1u8..4), 1..6),
        cut in any::<Index>(),
        steps in steps(),
    ) {
        let plan = plan(Keep::Owned, Mark::Nothing, None);
        let body = facts(&plan, &estate, 0);
        let whole = body.trim_end();
        let cut = whole[..whole.floor_char_boundary(cut.index(whole.len() - 1))].to_owned();
        for bad in [cut, format!("{body}]"), format!("{body}[]"), body.replacen(" , ", " ; ", 1) + " ,"] {
            prop_assert!(streamed(&plan, &[bad], FreshnessMap::default(), Learnt::Before, &steps).is_err());
        }
    }
}

/// The order in which records of one node come, by backend, and what is served in which step.
#[test]
fn a_record_waits_no_longer_than_a_copy_before_it_may_come() {
    let record = |backend: usize, time: &str| {
        format!("[{{\"certname\":\"n\",\"report_timestamp\":{time},\"value\":{backend}}}")
    };
    let map = |times: [&str; 2]| {
        let node = |time: &str| format!("[{{\"certname\":\"n\",\"report_timestamp\":{time}}}]");
        let lists = times.map(node);
        let lists: Vec<_> = (0..)
            .map(BackendId)
            .zip(lists.iter().map(String::as_bytes))
            .collect();
        Arc::new(FreshnessMap::build(&lists).0)
    };
    let (old, new) = ("\"2026-01-01T00:00:00Z\"", "\"2026-01-02T00:00:00Z\"");
    for (keep, times, from, waits) in [
        (Keep::Freshest, [old, new], 0, true),
        (Keep::Freshest, [old, new], 1, false),
        (Keep::Freshest, [new, old], 0, false),
        // The first configured backend goes before the other where both are as new.
        (Keep::Freshest, [old, old], 0, false),
        (Keep::Freshest, [old, old], 1, true),
        (Keep::First, [old, new], 1, true),
        (Keep::First, [old, new], 0, false),
        (Keep::Owned, [old, new], 0, false),
        (Keep::NewestReport, [old, new], 0, true),
        (Keep::NewestReport, [old, new], 1, false),
        (Keep::NewestReport, [new, old], 0, false),
        (Keep::NewestReport, [old, old], 0, false),
        (Keep::NewestReport, [old, old], 1, true),
    ] {
        let names = ["a".to_owned(), "b".to_owned()];
        let plan = plan(keep, Mark::Nothing, None);
        let known = Known {
            backends: &names,
            freshness: Some(&map(times)),
            shares: None,
        };
        let mut stream = Stream::new(&plan, &[BackendId(0), BackendId(1)], known);
        let part = record(from, times[from]);
        let pieces = stream
            .feed(u16::try_from(from).unwrap(), &[part.as_bytes(); 2])
            .unwrap();
        assert_eq!(stream.held() > 0, waits, "{keep:?} {times:?} {from}");
        assert_eq!(pieces.is_empty(), waits);
    }
}

#[test]
fn once_much_waits_only_the_backend_that_it_waits_for_is_read() {
    let names = ["a".to_owned(), "b".to_owned()];
    let plan = plan(Keep::First, Mark::Nothing, None);
    let known = Known {
        backends: &names,
        freshness: None,
        shares: None,
    };
    let mut stream = Stream::new(&plan, &[BackendId(0), BackendId(1)], known);
    assert_eq!(stream.wanted(), [0, 1]);
    let large = format!(
        "[{{\"certname\":\"n\",\"value\":\"{}\"}}",
        "x".repeat(1 << 20)
    );
    stream.feed(1, &[b"", large.as_bytes()]).unwrap();
    assert_eq!(stream.wanted(), [0]);
    // By the map the first has no such node.
    let lists: [(BackendId, &[u8]); 2] = [
        (BackendId(0), b"[]"),
        (BackendId(1), b"[{\"certname\":\"n\"}]"),
    ];
    let pieces = stream.learn(Arc::new(FreshnessMap::build(&lists).0));
    assert!(pieces.len() > 1 << 20);
    assert_eq!(stream.wanted(), [0, 1]);
    stream.feed(1, &[b"", b"]"]).unwrap();
    stream.end(1, &[b"", b""]).unwrap();
    assert_eq!(stream.wanted(), [0]);
}
