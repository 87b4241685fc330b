//! A request carried through from its target to its answer, on two backends. The input is the
//! target and the bodies, an empty line between them; a backend without one is silent.

#![no_main]

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use pdbmux_core::merge::Outcome;
use pdbmux_core::merge::owners::FreshnessMap;
use pdbmux_core::plan::Plan;
use pdbmux_core::round::BackendId;
use pdbmux_core::settings::Strategy;
use pdbmux_fuzz::near::Words;
use pdbmux_fuzz::round::{planned, settings, settle, text};
use pdbmux_fuzz::{is_json, is_records, parts};

const WORDS: Words = Words {
    keys: &[
        "certname",
        "report_timestamp",
        "name",
        "value",
        "environment",
        "hash",
        "pdbmux_source",
        "count",
        "cert\\u006eame",
    ],
    scalars: &[
        "\"a\"",
        "\"b\"",
        "\"\\u0061\"",
        "null",
        "\"2020-01-01T00:00:00.000Z\"",
        "1.50",
        "{ }",
        "\"2021-01-01T00:00:00.000Z\"",
        "\"pdbmux_source\"",
        "[1,\"x\"]",
        "true",
    ],
};

const TARGETS: [&str; 6] = [
    "/pdb/query/v4/nodes",
    "/pdb/query/v4/facts",
    "/pdb/query/v4/facts/pdbmux_source",
    "/pdb/query/v4/reports",
    "/pdb/query/v4/events",
    "/pdb/query/v4/event-counts",
];

fuzz_target!(|input: &[u8]| {
    let parts = parts(input);
    let Ok(target) = std::str::from_utf8(parts[0]) else {
        return;
    };
    check(target, &parts[1..parts.len().min(3)]);
    let query = target.split_once('?').map_or("", |(_, query)| query);
    let _ = generated(query, &mut Unstructured::new(input));
});

fn generated(query: &str, input: &mut Unstructured<'_>) -> Result<()> {
    let target = format!("{}?{query}", input.choose(&TARGETS)?);
    let bodies = [WORDS.records(input)?, WORDS.records(input)?];
    check(&target, &bodies.each_ref().map(String::as_bytes));
    Ok(())
}

fn check(target: &str, bodies: &[&[u8]]) {
    for strategy in [Strategy::Freshness, Strategy::Static] {
        let settings = settings(strategy);
        let Some(Plan::Fan(fan)) = planned(target, &settings) else {
            return;
        };
        let nodes: Vec<_> = bodies
            .iter()
            .zip(0..)
            .map(|(body, id)| (BackendId(id), *body))
            .collect();
        let (map, _) = FreshnessMap::build(&nodes);
        let ask = |at: usize, _| bodies.get(at).map(|body| body.to_vec());
        let (merged, sent) = settle(&fan, &settings.backends, Some(&map), ask);
        if let Outcome::Answer(answer) = &merged.outcome {
            let text = text(answer, &merged, &sent);
            assert!(answer.contributed >= 1 && answer.contributed <= bodies.len());
            if bodies.iter().all(|body| is_records(body)) {
                assert!(
                    is_json(&text),
                    "{} is no JSON",
                    String::from_utf8_lossy(&text)
                );
            }
        }
    }
}
