//! What the scanner reads in blocks, and what it guesses from the record before: always what it
//! would have found byte by byte, wherever the blocks begin.

#![cfg(test)]

#[path = "scan/oracle.rs"]
mod oracle;

use oracle::{elements, members, oracle_elements, oracle_members, oracle_records, records};
use proptest::prelude::*;

/// Containers with all that JSON can place side by side.
const SOUND: [&str; 6] = [
    r#"{"a":1,"b":[true,-2.5e3,{}],"c\"]":{"d":"e{","":[]}}"#,
    r#"[["x","y"],[],{},[0],"\\",null,12345678901234567890,"\\\""]"#,
    "{ \"a\" : [ 1 ,\n\t2 ] , \"b\" : { } ,\r\"c\" : false }",
    r#"{"k":"a long string, which with commas: colons and [brackets] fills a block","n":0}"#,
    r#"[{"a":{"b":{"c":[[[1,2],3],4]}}},{"é":"€"},"\u00e9\\\\\\\"",1e+5]"#,
    r#"{"one":1.0,"two":-2,"three":[{"four":"4"},{"five":5}],"six":true,"seven":null}"#,
];

/// Bytes that change what a text means.
const TELLING: &[u8] = b"\"\\[]{},:  \n0-et.x\x00\xff";

/// An array with `container` at this offset, and something behind it.
fn at_offset(offset: usize, container: &[u8]) -> Vec<u8> {
    let before = " ".repeat(offset);
    [b"[", before.as_bytes(), container, b",1]"].concat()
}

#[test]
fn sound_containers_are_read_alike_wherever_they_begin() {
    for container in SOUND {
        for offset in 0..130 {
            let text = at_offset(offset, container.as_bytes());
            assert_eq!(elements(&text).ok(), oracle_elements(&text), "{container}");
            assert!(elements(&text).is_ok(), "{container}");
            let found = members(&text[1 + offset..1 + offset + container.len()]);
            let expected = oracle_members(container.as_bytes());
            let count = expected.map(|members| members.len());
            assert_eq!(
                found.ok().map(|members| members.len()),
                count,
                "{container}"
            );
        }
    }
}

#[test]
fn one_wrong_byte_is_judged_alike_wherever_it_is() {
    for (container, offset) in SOUND.iter().zip([0, 13, 29, 40, 50, 63]) {
        for at in 0..container.len() {
            for telling in TELLING {
                for remove in 0..=2 {
                    let mut damaged = container.as_bytes().to_vec();
                    let end = (at + remove).min(damaged.len());
                    damaged.splice(at..end, [*telling]);
                    // All levels are compared in here.
                    let _ = elements(&at_offset(offset, &damaged));
                    let _ = members(&damaged);
                }
            }
        }
    }
}

#[test]
fn numbers_and_words_may_lie_across_blocks() {
    let cases = [
        ("1234567890", true),
        ("123456789.0", true),
        ("1234567890.", false),
        ("-12345e-10", true),
        ("12345678-", false),
        ("true", true),
        ("false", true),
        ("null", true),
        ("nul", false),
        ("nulll", false),
        ("true1", false),
        ("1true", false),
        ("tru e", false),
        ("1 2", false),
        ("\"a\"1", false),
        ("1\"a\"", false),
        ("\\", false),
        ("\u{1}", false),
    ];
    for (scalar, is_sound) in cases {
        for before in 40..70 {
            for after in ["]", " ]", ",2]", "\n,[]]"] {
                let text = format!("[[\"{}\",{scalar}{after}]", "x".repeat(before));
                assert_eq!(elements(text.as_bytes()).is_ok(), is_sound, "{text}");
            }
        }
    }
}

#[test]
fn long_runs_fill_whole_blocks() {
    for length in 50..300 {
        for inside in [
            "1".repeat(length),
            format!("-{}", "1".repeat(length)),
            format!("\"{}\"", "\\\\".repeat(length)),
            format!("\"{}\"", "{".repeat(length)),
            format!("{}1", " ".repeat(length)),
            format!("[{}1]", "\n".repeat(length)),
        ] {
            let text = format!("[{{\"a\":{inside},\"b\":[{inside}]}}]");
            let expected = oracle_elements(text.as_bytes());
            assert!(expected.is_some(), "{text}");
            assert_eq!(elements(text.as_bytes()).ok(), expected, "{text}");
        }
    }
}

/// The members of a record: few different ones, so that neighbours are often alike.
fn record() -> impl Strategy<Value = String> {
    let member = prop::sample::select(vec![
        r#""certname":"a""#,
        r#""certname":"ab""#,
        r#""certname":12"#,
        r#""certname":123"#,
        r#""name":"a""#,
        r#""name" : {"a":[1]}"#,
        r#""n\u0061me":null"#,
        r#""names":true"#,
        r#""value":[]"#,
        r#""a key of some length":"name""#,
    ]);
    let separator = prop::sample::select(vec![",", ",", ",", " , "]);
    (prop::collection::vec(member, 0..5), separator)
        .prop_map(|(members, separator)| format!("{{{}}}", members.join(separator)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn what_neighbours_have_in_common_is_read_in_each(
        kinds in prop::collection::vec(record(), 1..4),
        which in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let all: Vec<_> = which.iter().map(|at| at.get(&kinds).as_str()).collect();
        let text = format!("[{}]", all.join(","));
        let expected = oracle_records(text.as_bytes());
        prop_assert!(expected.is_some());
        prop_assert_eq!(records(text.as_bytes()).ok(), expected);
        // A cut cannot hide behind what was guessed.
        for at in 0..text.len() {
            prop_assert!(records(&text.as_bytes()[..at]).is_err());
        }
    }
}
