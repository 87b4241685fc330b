//! What a merge by certname costs, against one pass of memchr over the same bytes.

// Helpers of benches may fail like tests.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

#[path = "merge/estate.rs"]
mod estate;

use std::sync::LazyLock;

use divan::counter::BytesCount;
use divan::{AllocProfiler, Bencher, black_box};
use pdbmux_core::json::Records;

use estate::{Estate, Merging};

#[global_allocator]
static ALLOC: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

/// Bytes of one backend's `/facts`.
const SIZE: usize = 50_000_000;

static ESTATE: LazyLock<Estate> = LazyLock::new(|| Estate::new(SIZE));

fn merge(bencher: Bencher<'_, '_>, path: &str, bodies: &[String; 2]) {
    let merging = Merging::new(&ESTATE, path, bodies);
    let bytes: usize = bodies.iter().map(String::len).sum();
    bencher
        .counter(BytesCount::new(bytes))
        .bench(|| merging.run());
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn memchr(bencher: Bencher<'_, '_>) {
    let bodies = &ESTATE.facts;
    let bytes: usize = bodies.iter().map(String::len).sum();
    bencher.counter(BytesCount::new(bytes)).bench(|| {
        let passes = bodies
            .iter()
            .map(|body| memchr::memchr(0, black_box(body.as_bytes())));
        passes.flatten().count()
    });
}

/// The least that a merge does: finding the records and their members.
#[divan::bench(sample_count = 10, sample_size = 1)]
fn scan(bencher: Bencher<'_, '_>) {
    let bodies = &ESTATE.facts;
    let bytes: usize = bodies.iter().map(String::len).sum();
    bencher.counter(BytesCount::new(bytes)).bench(|| {
        let mut count = 0;
        for body in bodies {
            let keys = ["certname", "name", "environment"];
            let mut records = Records::new(black_box(body.as_bytes()), &keys);
            let mut fields = [None, None, None];
            while records.next(&mut fields).unwrap().is_some() {
                count += 1;
            }
        }
        count
    });
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn facts(bencher: Bencher<'_, '_>) {
    merge(bencher, "/pdb/query/v4/facts", &ESTATE.facts);
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn facts_as_they_arrive(bencher: Bencher<'_, '_>) {
    let merging = Merging::new(&ESTATE, "/pdb/query/v4/facts", &ESTATE.facts);
    let bytes: usize = ESTATE.facts.iter().map(String::len).sum();
    let bencher = bencher.counter(BytesCount::new(bytes));
    bencher.bench(|| merging.stream());
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn facts_of_one_each(bencher: Bencher<'_, '_>) {
    merge(bencher, "/pdb/query/v4/facts/fact_0", &ESTATE.one_fact);
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn facts_in_order(bencher: Bencher<'_, '_>) {
    let path = "/pdb/query/v4/facts?order_by=[{\"field\":\"certname\"}]";
    merge(bencher, path, &ESTATE.facts);
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn nodes(bencher: Bencher<'_, '_>) {
    merge(bencher, "/pdb/query/v4/nodes", &ESTATE.nodes);
}
