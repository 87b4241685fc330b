//! Metrics of up to three backends: whatever is merged is JSON with the members of all of them. The
//! input is the path of a read and the bodies, an empty line between them.

#![no_main]

use std::collections::BTreeSet;

use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;
use pdbmux_core::merge::jolokia::{Body, Merged, ReadRequest, list, mbean, mbeans_index, read};
use pdbmux_fuzz::near::Words;
use pdbmux_fuzz::parts;
use serde::Deserialize;
use serde_json::value::RawValue;

const WORDS: Words = Words {
    keys: &[
        "Value",
        "Count",
        "min",
        "Max",
        "used",
        "committed",
        "Mean",
        "Uptime",
        "99thPercentile",
        "a\\/b",
        "java.lang:type=Memory",
    ],
    scalars: &[
        "1",
        "-1",
        "2.50",
        "1e308",
        "9223372036854775807",
        "\"1\\/2\"",
        "\"x\"",
        "null",
        "true",
        "-0.0",
        "1E2",
    ],
};

fuzz_target!(|input: &[u8]| {
    let parts = parts(input);
    let path = String::from_utf8_lossy(parts[0]);
    check(&path, &parts[1..parts.len().min(4)]);

    let mut input = Unstructured::new(input);
    let values: Vec<String> = (0..3)
        .map_while(|_| WORDS.object(&mut input, 3).ok())
        .collect();
    let bare: Vec<&[u8]> = values.iter().map(String::as_bytes).collect();
    check(&path, &bare);
    let wrapped = values.iter().map(|value| {
        format!(
            r#"{{"request":{{"mbean":"a:name=x"}},"value":{value},"timestamp":1,"status":200}}"#
        )
    });
    let wrapped: Vec<String> = wrapped.collect();
    check(
        &path,
        &wrapped.iter().map(String::as_bytes).collect::<Vec<_>>(),
    );
});

fn check(path: &str, bodies: &[&[u8]]) {
    let request = ReadRequest::from_path(path);
    for merged in [
        read(&request, bodies),
        read(&ReadRequest::default(), bodies),
        list(bodies),
    ] {
        check_merged(&merged, bodies, |body| {
            let envelope: Envelope<'_> = serde_json::from_str(body).ok()?;
            keys(envelope.value.get())
        });
    }
    for merged in [mbeans_index(bodies), mbean(path, bodies)] {
        check_merged(&merged, bodies, keys);
    }
}

#[derive(Deserialize)]
struct Envelope<'b> {
    #[serde(borrow)]
    value: &'b RawValue,
}

/// The names of an object's members; `None` if it is no object.
fn keys(text: &str) -> Option<BTreeSet<String>> {
    let object: std::collections::BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
    Some(object.into_keys().collect())
}

fn check_merged(
    merged: &Merged,
    bodies: &[&[u8]],
    keys: impl Fn(&str) -> Option<BTreeSet<String>>,
) {
    let Merged {
        body,
        contributed,
        skipped,
        damaged,
    } = merged;
    let mut told: Vec<usize> = damaged.iter().map(|(at, _)| *at).collect();
    told.extend(contributed.iter().chain(skipped));
    told.sort_unstable();
    assert!(
        told.into_iter().eq(0..bodies.len()),
        "a body counts twice or not at all"
    );

    match body {
        Body::Nothing => assert!(contributed.is_empty() && skipped.is_empty()),
        Body::Verbatim(at) => assert!(contributed.contains(at) || contributed.is_empty()),
        Body::Made(text) => {
            let text = std::str::from_utf8(text).expect("an answer is text");
            let json: &RawValue = serde_json::from_str(text).expect("an answer is JSON");
            let sent = contributed
                .iter()
                .map(|at| std::str::from_utf8(bodies[*at]).ok());
            let sent: Option<Vec<_>> = sent.map(|body| keys(body?)).collect();
            if let Some(sent) = sent {
                let united = sent.into_iter().flatten().collect();
                assert_eq!(keys(json.get()), Some(united));
            }
        }
    }
}
