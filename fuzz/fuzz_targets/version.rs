//! Any three texts as versions: their order is total, and the lowest of their bodies wins. The
//! input is three versions, an empty line between them.

#![no_main]

#[path = "../../core/tests/laws/order.rs"]
mod order;

use libfuzzer_sys::fuzz_target;
use order::assert_total;
use pdbmux_core::merge::version::{Version, lowest};
use pdbmux_fuzz::parts;
use serde_json::json;

fuzz_target!(|input: &[u8]| {
    let parts = parts(input);
    let stated = lowest(&parts);
    assert!(stated.damaged.len() + usize::from(stated.winner.is_some()) <= parts.len());

    let versions = parts
        .iter()
        .filter_map(|part| std::str::from_utf8(part).ok()?.parse().ok());
    let versions: Vec<Version> = versions.collect();
    if let [a, b, c, ..] = &*versions {
        assert_total(&[a, b, c], |a, b| a.cmp(b));
        assert_eq!(a == b, a.cmp(b).is_eq());
        let suffixed: Version = format!("{a}-x")
            .parse()
            .expect("it still begins with a digit");
        assert!(
            a.as_str().contains('-') || suffixed < *a,
            "{suffixed} is not below {a}"
        );
    }
    let bodies = versions
        .iter()
        .map(|version| json!({"version": version.as_str()}).to_string());
    let bodies: Vec<String> = bodies.collect();
    let bodies: Vec<&[u8]> = bodies.iter().map(String::as_bytes).collect();
    let expected = versions.iter().min().cloned();
    let expected =
        expected.and_then(|least| Some((versions.iter().position(|v| *v == least)?, least)));
    assert_eq!(lowest(&bodies).winner, expected);
});
