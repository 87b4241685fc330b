//! Throughput of the record scanner, beside what bounds it and what it replaces.
//!
//! `cargo bench -p pdbmux-core --bench scan`. Wall time on a shared machine swings, so quote the
//! column `fastest`, and its ratio to `memchr` of the same run. The allocation columns of `records`
//! must stay empty: nothing is allocated per record.

#[path = "scan/bodies.rs"]
mod bodies;

use std::fmt;
use std::sync::LazyLock;

use divan::counter::BytesCount;
use divan::{AllocProfiler, Bencher, black_box};
use pdbmux_core::json::{Arriving, Elements, Level, Records, check_utf8};
use serde::Deserialize;
use serde_json::value::RawValue;

use bodies::{Shape, facts};

#[global_allocator]
static ALLOCATIONS: AllocProfiler = AllocProfiler::system();

/// Read within a time slice, so that the fastest samples on a busy machine are undisturbed ones.
const BODY: usize = 4 << 20;

/// Read in turn, more than a last-level cache holds: each sample comes from memory.
const COPIES: usize = 24;

fn main() {
    divan::main();
}

const SHAPES: [Shape; 3] = [Shape::Facts, Shape::OneFact, Shape::Pretty];

impl Shape {
    fn bodies(self) -> &'static [String] {
        static FACTS: LazyLock<Vec<String>> =
            LazyLock::new(|| vec![facts(Shape::Facts, BODY); COPIES]);
        static ONE: LazyLock<Vec<String>> =
            LazyLock::new(|| vec![facts(Shape::OneFact, BODY); COPIES]);
        static PRETTY: LazyLock<Vec<String>> =
            LazyLock::new(|| vec![facts(Shape::Pretty, BODY); COPIES]);
        match self {
            Self::Facts => &FACTS,
            Self::OneFact => &ONE,
            Self::Pretty => &PRETTY,
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Facts => "facts",
            Self::OneFact => "one fact",
            Self::Pretty => "pretty",
        })
    }
}

/// Runs `read` over one body of the shape a sample.
fn run<T>(bencher: Bencher<'_, '_>, shape: Shape, mut read: impl FnMut(&[u8]) -> T) {
    let mut bodies = shape.bodies().iter().map(String::as_bytes).cycle();
    bencher
        .with_inputs(|| bodies.next().unwrap_or_default())
        .input_counter(|body| BytesCount::of_slice(*body))
        .bench_local_values(|body| read(black_box(body)));
}

#[divan::bench(args = SHAPES, sample_count = 300, sample_size = 1)]
fn records(bencher: Bencher<'_, '_>, shape: Shape) {
    scan(bencher, shape, Level::best());
}

/// The same byte by byte.
#[divan::bench(args = SHAPES, sample_count = 300, sample_size = 1)]
fn records_plain(bencher: Bencher<'_, '_>, shape: Shape) {
    scan(bencher, shape, Level::PLAIN);
}

/// The same with the next level, which any x86-64 processor has.
#[divan::bench(args = SHAPES, sample_count = 300, sample_size = 1)]
fn records_baseline(bencher: Bencher<'_, '_>, shape: Shape) {
    scan(bencher, shape, Level::all().nth(1).unwrap_or(Level::PLAIN));
}

fn scan(bencher: Bencher<'_, '_>, shape: Shape, level: Level) {
    run(bencher, shape, |body| {
        let mut records = Records::new(body, &["certname", "name"]).on(level);
        let mut fields = [None, None];
        let mut count = 0_usize;
        while let Ok(Some(record)) = records.next(&mut fields) {
            black_box((record, &fields));
            count += 1;
        }
        assert!(count > 5_000, "the body is refused");
    });
}

/// The same as it comes from a connection.
#[divan::bench(args = SHAPES, sample_count = 300, sample_size = 1)]
fn records_arriving(bencher: Bencher<'_, '_>, shape: Shape) {
    run(bencher, shape, |body| {
        let mut records = Arriving::default();
        let mut count = 0_usize;
        for chunk in body.chunks(16 << 10) {
            let fed = records.feed(&["certname", "name"], chunk, |record| {
                black_box((record.span, record.fields));
                count += 1;
            });
            assert!(fed.is_ok(), "the body is refused");
        }
        assert!(count > 5_000, "the body is refused");
    });
}

#[divan::bench(args = SHAPES, sample_count = 300, sample_size = 1)]
fn elements(bencher: Bencher<'_, '_>, shape: Shape) {
    run(bencher, shape, |body| {
        let count = Elements::new(body).map_while(Result::ok).count();
        assert!(count > 5_000, "the body is refused");
    });
}

#[divan::bench(args = SHAPES, sample_count = 300, sample_size = 1)]
fn utf8(bencher: Bencher<'_, '_>, shape: Shape) {
    run(bencher, shape, check_utf8);
}

/// A pass that looks at every byte once: the ceiling.
#[divan::bench(args = SHAPES, sample_count = 300, sample_size = 1)]
fn memchr(bencher: Bencher<'_, '_>, shape: Shape) {
    run(bencher, shape, |body| memchr::memchr(0, body));
}

#[divan::bench(args = SHAPES, sample_count = 300, sample_size = 1)]
fn memcpy(bencher: Bencher<'_, '_>, shape: Shape) {
    let mut copy = vec![1; 2 * BODY];
    run(bencher, shape, |body| {
        copy[..body.len()].copy_from_slice(body);
        black_box(&copy);
    });
}

/// What the scanner replaces: a list of raw values, then the wanted members of each.
#[divan::bench(args = SHAPES, sample_count = 50, sample_size = 1)]
fn serde_json_raw(bencher: Bencher<'_, '_>, shape: Shape) {
    #[derive(Deserialize)]
    struct Record<'b> {
        #[serde(borrow)]
        certname: &'b RawValue,
        #[serde(borrow)]
        name: &'b RawValue,
    }
    run(bencher, shape, |body| {
        let records: Vec<&RawValue> = serde_json::from_slice(body).unwrap_or_default();
        for record in &records {
            if let Ok(Record { certname, name }) = serde_json::from_str(record.get()) {
                black_box((certname, name));
            }
        }
        assert!(records.len() > 5_000, "the body is refused");
    });
}
