//! The lowest of several versions.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

use pdbmux_core::merge::damage::Damage;
use pdbmux_core::merge::version::{Version, lowest};
use proptest::prelude::*;

#[path = "laws/order.rs"]
mod order;

fn version(text: &str) -> Version {
    text.parse().unwrap()
}

/// The body that a PuppetDB sends.
fn body(version: &str) -> String {
    format!("{{\n  \"version\" : \"{version}\"\n}}")
}

fn winner(bodies: &[&str]) -> Option<(usize, String)> {
    let bodies: Vec<&[u8]> = bodies.iter().map(|body| body.as_bytes()).collect();
    let (index, version) = lowest(&bodies).winner?;
    Some((index, version.to_string()))
}

#[test]
fn t68_origin_is_taken_from_6_19_and_7_6_on() {
    for (text, takes_origin) in [
        ("5.2.19", false),
        ("6.18.9", false),
        ("6.19.0", true),
        ("6.22.1", true),
        ("7.0.0", false),
        ("7.5.1", false),
        ("7.6.0", true),
        ("7.21.1", true),
        ("8.0.0", true),
        ("9.0.0-beta1", true),
        ("10.1", true),
        ("8", false),
        ("8.x", false),
    ] {
        assert_eq!(version(text).takes_origin(), takes_origin, "{text}");
    }
}

#[test]
fn r244_and_ruling_11_versions_have_this_order() {
    let ascending = [
        "0.9",
        "7.9.0",
        "7.12.0",
        "7.12.1",
        "8",
        "8.8",
        "8.8.2-SNAPSHOT",
        "8.8.2",
        "8.15.0",
        "9.0.0-SNAPSHOT",
        "9.0.0-beta",
        "9.0.0-beta.1",
        "9.0.0-beta2",
        "9.0.0-beta10",
        "9.0.0-rc1",
        "9.0.0",
        "9.0.0.1",
        "9.0.1a",
        "9.0.a",
        "9.0.b",
        "9.01",
        "9.1",
        "10.0.0",
        "18446744073709551616.0",
        "18446744073709551617.0",
    ];
    for (i, lower) in ascending.iter().enumerate() {
        assert_eq!(version(lower), version(lower));
        for higher in &ascending[i + 1..] {
            assert!(version(lower) < version(higher), "{lower} < {higher}");
            assert!(version(higher) > version(lower), "{higher} > {lower}");
        }
    }
}

#[test]
fn the_order_has_no_circle_where_numbers_meet_words() {
    assert!(version("9") < version("10"));
    assert!(version("10") < version("1a"));
    assert!(version("9") < version("1a"));
}

#[test]
fn r243_equal_versions_are_served_from_the_first_backend() {
    let same = body("8.15.0");
    assert_eq!(winner(&[&same, &same]), Some((0, "8.15.0".into())));
}

#[test]
fn r243_different_versions_are_served_as_the_lowest() {
    for (versions, index) in [
        (["8.15.0", "7.12.1", "8.4.1"], 1),
        (["7.9.0", "7.12.0", "8.0.0"], 0),
        (["9.0.0", "9.0.0", "9.0.0-beta1"], 2),
    ] {
        let bodies = versions.map(body);
        let bodies = [&*bodies[0], &*bodies[1], &*bodies[2]];
        assert_eq!(
            winner(&bodies),
            Some((index, versions[index].into())),
            "{versions:?}"
        );
    }
}

#[test]
fn r245_a_body_without_a_version_is_skipped_and_reported() {
    let good = body("8.15.0");
    for (bad, damage) in [
        ("<html>", Damage::Malformed { line: 1, column: 1 }),
        (
            "{\"version\":\"7",
            Damage::Malformed {
                line: 1,
                column: 13,
            },
        ),
        ("{}", Damage::NotAVersion),
        ("[\"7.0.0\"]", Damage::NotAVersion),
        ("\"7.0.0\"", Damage::NotAVersion),
        ("{\"version\":7}", Damage::NotAVersion),
        ("{\"version\":null}", Damage::NotAVersion),
        ("{\"version\":\"\"}", Damage::NotAVersion),
        ("{\"version\":\"unknown\"}", Damage::NotAVersion),
    ] {
        let merged = lowest(&[bad.as_bytes(), good.as_bytes()]);
        assert_eq!(merged.winner, Some((1, version("8.15.0"))), "{bad}");
        assert_eq!(merged.damaged, [(0, damage)], "{bad}");
        assert_eq!(lowest(&[bad.as_bytes()]).winner, None, "{bad}");
    }
    assert_eq!(lowest(&[]).winner, None);
}

/// Texts in which the rules of the order meet often.
fn any_version() -> impl Strategy<Value = Version> {
    "[0-9](\\.?[019ab]{1,2}|-|-?beta[0-9]{1,2}){0,4}".prop_map(|text| version(&text))
}

proptest! {
    #[test]
    fn the_order_is_total(a in any_version(), b in any_version(), c in any_version()) {
        prop_assert_eq!(a == b, a.cmp(&b).is_eq());
        order::assert_total(&[a, b, c], Version::cmp);
    }

    #[test]
    fn plain_releases_compare_as_lists_of_numbers(
        a in prop::collection::vec(0u64.., 1..5),
        b in prop::collection::vec(0u64.., 1..5),
    ) {
        let text = |numbers: &[u64]| {
            let texts: Vec<_> = numbers.iter().map(u64::to_string).collect();
            version(&texts.join("."))
        };
        prop_assert_eq!(text(&a).cmp(&text(&b)), a.cmp(&b));
    }

    #[test]
    fn a_suffix_never_lifts_a_version_to_its_release(release in "[0-9]{1,3}(\\.[0-9]{1,3}){0,3}", suffix in "\\PC{0,8}") {
        let suffixed = version(&format!("{release}-{suffix}"));
        prop_assert!(suffixed < version(&release));
    }

    #[test]
    fn whatever_bytes_come_nothing_panics(bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 0..4)) {
        let bodies: Vec<&[u8]> = bodies.iter().map(Vec::as_slice).collect();
        let merged = lowest(&bodies);
        prop_assert!(merged.damaged.len() <= bodies.len());
    }
}
