//! Work whose instructions are counted: `make instructions`. Wall time tells nothing on a shared
//! machine, and a count repeats to a few in a million.
//!
//! Run with the name of a case, it does that once, within [`measured`]; without, it lists the cases.

// Helpers of benches may fail like tests.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, missing_docs)]

#[path = "scan/bodies.rs"]
mod bodies;
#[path = "merge/estate.rs"]
mod estate;

use std::hint::black_box;

use pdbmux_core::json::{Arriving, Level, Records};

use bodies::{Shape, facts};
use estate::{Estate, Merging};

/// Large enough that what is done once does not show.
const SIZE: usize = 1 << 20;

const CASES: [&str; 11] = [
    "scan/facts",
    "scan/facts/plain",
    "scan/facts/baseline",
    "scan/one-fact",
    "scan/pretty",
    "scan/arriving",
    "merge/facts",
    "merge/one-fact",
    "merge/nodes",
    "stream/facts",
    "stream/one-fact",
];

fn main() {
    match std::env::args().nth(1) {
        Some(name) if CASES.contains(&&*name) => run(&name),
        // Called by `cargo bench`, with an argument of its own, or by hand.
        _ => println!("{}", CASES.join("\n")),
    }
}

fn run(name: &str) {
    let baseline = Level::all().nth(1).unwrap_or(Level::PLAIN);
    match name {
        "scan/facts" => scan(Shape::Facts, Level::best()),
        "scan/facts/plain" => scan(Shape::Facts, Level::PLAIN),
        "scan/facts/baseline" => scan(Shape::Facts, baseline),
        "scan/one-fact" => scan(Shape::OneFact, Level::best()),
        "scan/pretty" => scan(Shape::Pretty, Level::best()),
        "scan/arriving" => arrive(Shape::Facts),
        "merge/facts" => merge("/pdb/query/v4/facts", |estate| &estate.facts),
        "merge/one-fact" => merge("/pdb/query/v4/facts/fact_0", |estate| &estate.one_fact),
        "merge/nodes" => merge("/pdb/query/v4/nodes", |estate| &estate.nodes),
        "stream/facts" => stream("/pdb/query/v4/facts", |estate| &estate.facts),
        "stream/one-fact" => stream("/pdb/query/v4/facts/fact_0", |estate| &estate.one_fact),
        _ => panic!("no such case"),
    }
}

/// What callgrind counts, with all that it calls.
#[inline(never)]
fn measured<T>(work: impl FnOnce() -> T) -> T {
    black_box(work())
}

fn scan(shape: Shape, level: Level) {
    let body = facts(shape, SIZE);
    measured(|| {
        let mut records = Records::new(black_box(body.as_bytes()), &["certname", "name"]).on(level);
        let mut fields = [None, None];
        while let Some(record) = records.next(&mut fields).unwrap() {
            black_box((record, &fields));
        }
    });
}

fn arrive(shape: Shape) {
    let body = facts(shape, SIZE);
    measured(|| {
        let mut records = Arriving::default();
        for chunk in black_box(body.as_bytes()).chunks(16 << 10) {
            let fed = records.feed(&["certname", "name"], chunk, |record| {
                black_box((record.span, record.fields));
            });
            fed.unwrap();
        }
    });
}

fn merge(path: &str, bodies: impl Fn(&Estate) -> &[String; 2]) {
    let estate = Estate::new(SIZE);
    let merging = Merging::new(&estate, path, bodies(&estate));
    measured(|| merging.run());
}

fn stream(path: &str, bodies: impl Fn(&Estate) -> &[String; 2]) {
    let estate = Estate::new(SIZE);
    let merging = Merging::new(&estate, path, bodies(&estate));
    measured(|| merging.stream());
}
