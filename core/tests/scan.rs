//! The record scanner: the same as serde_json on whatever is valid, and a refusal of whatever is
//! damaged in its structure.

#![cfg(test)]

#[path = "scan/oracle.rs"]
mod oracle;

use pdbmux_core::json::{Elements, Members, Records, ScanError, ScanProblem, Span, unquote};
use proptest::prelude::*;

use oracle::{elements, members, oracle_elements, oracle_members, oracle_records, records};

/// Texts of the regular expression `pattern`, which is read here once and not for each text.
fn like(pattern: &str) -> impl Strategy<Value = String> + use<> {
    prop::string::string_regex(pattern).unwrap()
}

fn blanks() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => Just(String::new()),
        3 => like("[ \t\r\n]{1,3}"),
        1 => like("[ \n]{60,70}"),
    ]
}

/// The inside of a string that has characters, so no halves of surrogate pairs.
fn characters() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => like("[a-z0-9 ._-]{0,12}"),
        1 => like("[\\[\\]{}:,]{1,4}"),
        1 => like("[é€😀\u{7f}\u{80}\u{2028}\u{ffff}]{1,3}"),
        1 => like(r#"\\["\\/bfnrt]"#),
        1 => like(r"\\u00[0-9a-fA-F]{2}"),
        1 => Just(r"\ud83d\uDE00".to_owned()),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

fn string() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => characters(),
        1 => Just(r"\ud800".to_owned()),
        1 => Just(r"\udc00\ud800x".to_owned()),
    ]
    .prop_map(|inside| format!("\"{inside}\""))
}

/// A key of an object, often a wanted one, in one of its spellings, or nearly one.
fn key() -> impl Strategy<Value = String> {
    let known = [
        "certname",
        "name",
        r#"é\""#,
        r"\u006eame",
        r"n\u0061m\u0065",
        r"\u00e9\u0022",
        r"cert\u006E\u0061me",
        "names",
        "nam",
        "nama",
        r"certname\u0000",
    ];
    prop_oneof![
        3 => prop::sample::select(known.to_vec()).prop_map(str::to_owned),
        2 => characters(),
    ]
    .prop_map(|inside| format!("\"{inside}\""))
}

/// Items with blanks around them, between brackets.
fn list(
    open: char,
    item: impl Strategy<Value = String>,
    close: char,
) -> impl Strategy<Value = String> {
    let item = (blanks(), item, blanks()).prop_map(|(before, item, after)| before + &item + &after);
    (prop::collection::vec(item, 0..5), blanks()).prop_map(move |(items, empty)| {
        let empty = if items.is_empty() {
            empty
        } else {
            String::new()
        };
        format!("{open}{empty}{}{close}", items.join(","))
    })
}

fn array(value: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    list('[', value, ']')
}

fn object(value: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    let member = (key(), blanks(), blanks(), value)
        .prop_map(|(key, before, after, value)| format!("{key}{before}:{after}{value}"));
    list('{', member, '}')
}

fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("false".to_owned()),
        like("-?(0|[1-9][0-9]{0,40})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,4})?"),
        string(),
    ];
    leaf.prop_recursive(4, 16, 4, |inner| {
        prop_oneof![array(inner.clone()), object(inner)]
    })
}

/// A whole text with blanks around it.
fn document(value: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    (blanks(), value, blanks()).prop_map(|(before, value, after)| before + &value + &after)
}

fn record_array() -> impl Strategy<Value = String> {
    prop_oneof![document(array(object(value()))), document(neighbours())]
}

/// Records as PuppetDB lists them: the same members, whose values are mostly those of the record
/// before. Some vary, some are longer by what comes before their end, and now and then a member is
/// missing.
fn neighbours() -> impl Strategy<Value = String> {
    let first = prop_oneof![like("-?(0|[1-9][0-9]{0,3})"), value()];
    let member = (key(), blanks(), first, "[0-9]{0,2}", value(), blanks());
    let member = member.prop_map(|(key, blank, value, more, another, behind)| {
        let longer = match value.strip_suffix('"') {
            Some(value) => format!("{value}{more}\""),
            // Behind a zero no digit may come.
            None if matches!(&*value, "0" | "-0") => value.clone(),
            None if value.ends_with(|c: char| c.is_ascii_digit()) => value.clone() + &more,
            None => value.clone(),
        };
        [value, longer, another].map(|value| format!("{key}:{blank}{value}{behind}"))
    });
    let which =
        prop_oneof![12 => Just(Some(0)), 2 => Just(Some(1)), 1 => Just(Some(2)), 1 => Just(None)];
    let members = prop::collection::vec(member, 0..8);
    let rows = prop::collection::vec(prop::collection::vec(which, 8), 0..12);
    (members, rows).prop_map(|(members, rows)| {
        let record = |row: Vec<Option<usize>>| {
            let chosen = members.iter().zip(row);
            let chosen = chosen.filter_map(|(member, which)| Some(&*member[which?]));
            format!("{{{}}}", chosen.collect::<Vec<_>>().join(","))
        };
        let records: Vec<_> = rows.into_iter().map(record).collect();
        format!("[{}]", records.join(","))
    })
}

/// A text with one byte replaced, taken out or put in.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        any::<u8>(),
        prop::sample::select(b"\"\\[]{},: \n0-e\x00tn".to_vec()),
    ];
    let place = any::<prop::sample::Index>();
    (record_array(), place, byte, 0..3).prop_map(|(text, place, byte, how)| {
        let mut text = text.into_bytes();
        let at = place.index(text.len());
        match how {
            0 => text[at] = byte,
            1 => drop(text.remove(at)),
            _ => text.insert(at, byte),
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn elements_are_those_of_serde_json(text in document(array(value()))) {
        let expected = oracle_elements(text.as_bytes());
        prop_assert!(expected.is_some());
        prop_assert_eq!(elements(text.as_bytes()).ok(), expected);
    }

    #[test]
    fn members_are_those_of_serde_json(text in document(object(value()))) {
        let bytes = text.as_bytes();
        let found: Option<Vec<_>> = members(bytes)
            .unwrap()
            .into_iter()
            .map(|(key, value)| Some((unquote(&bytes[key])?.into_owned(), value)))
            .collect();
        prop_assert!(found.is_some());
        prop_assert_eq!(found, oracle_members(bytes));
    }

    #[test]
    fn records_and_their_fields_are_those_of_serde_json(text in record_array()) {
        let expected = oracle_records(text.as_bytes());
        prop_assert!(expected.is_some());
        prop_assert_eq!(records(text.as_bytes()).ok(), expected);
    }

    #[test]
    fn a_damaged_text_is_refused_or_still_split_between_records(text in damaged()) {
        // These need only not panic.
        let _ = (elements(&text), members(&text));
        let expected = oracle_records(&text);
        let Ok(found) = records(&text) else {
            prop_assert_eq!(expected, None, "serde_json accepts it");
            return Ok(());
        };
        if let Some(expected) = expected {
            prop_assert_eq!(&found, &expected);
        }
        // Outside of the records there is only what separates them.
        let mut rest = 0;
        let mut outside = Vec::new();
        for (record, fields) in &found {
            let bytes = &text[record.clone()];
            prop_assert_eq!((bytes[0], bytes[bytes.len() - 1]), (b'{', b'}'));
            for field in fields.iter().flatten() {
                prop_assert!(record.start < field.start && field.end < record.end);
                prop_assert!(!field.is_empty());
            }
            outside.extend_from_slice(&text[rest..record.start]);
            rest = record.end;
        }
        outside.extend_from_slice(&text[rest..]);
        outside.retain(|byte| !b" \t\r\n".contains(byte));
        let commas = b",".repeat(found.len().saturating_sub(1));
        prop_assert_eq!(outside, [b"[", commas.as_slice(), b"]"].concat());
        // Put together again, they are the same records.
        let pieces: Vec<_> = found.iter().map(|(record, _)| &text[record.clone()]).collect();
        let joined = [b"[", pieces.join(&b',').as_slice(), b"]"].concat();
        let again = records(&joined).unwrap();
        let again: Vec<_> = again.into_iter().map(|(record, _)| &joined[record]).collect();
        prop_assert_eq!(again, pieces);
    }
}

proptest! {
    // Each case is as many texts as it has bytes.
    #![proptest_config(ProptestConfig::with_cases(50))]

    #[test]
    fn every_truncation_is_refused(text in record_array(), one in document(object(value()))) {
        let whole = text.trim_ascii_end().as_bytes();
        for at in 0..whole.len() {
            let error = ScanError { at, problem: ScanProblem::Truncated };
            prop_assert_eq!(records(&whole[..at]), Err(error));
            prop_assert_eq!(elements(&whole[..at]), Err(error));
        }
        let whole = one.trim_ascii_end().as_bytes();
        for at in 0..whole.len() {
            let error = ScanError { at, problem: ScanProblem::Truncated };
            prop_assert_eq!(members(&whole[..at]), Err(error));
        }
    }
}

/// A list of one span, which as a literal would look like the list of its offsets.
fn only(element: Span) -> Vec<Span> {
    std::iter::once(element).collect()
}

#[test]
fn awkward_bytes_at_every_offset_are_read_like_anywhere_else() {
    // Beyond all widths by which a string is searched: 8, 16, 32 and 64 bytes.
    let pieces = [
        "", r#"\""#, r"\\", r#"\\\""#, r"\u0022", "[", "]", "{", "}", ",", ":", "é", "€", "😀",
    ];
    for piece in pieces {
        for before in 0..140 {
            for after in [0, 1, 7, 40] {
                let inside = ["a".repeat(before).as_str(), piece, &"b".repeat(after)].concat();
                let text = format!(r#"[{{"name":"{inside}","{inside}":["{inside}"]}},{{}}]"#);
                let expected = oracle_records(text.as_bytes());
                assert!(expected.is_some(), "{text}");
                assert_eq!(records(text.as_bytes()).ok(), expected, "{text}");
            }
        }
    }
}

#[test]
fn a_string_may_end_anywhere_near_the_end_of_the_text() {
    for length in 0..40 {
        for blanks in 0..10 {
            let text = format!("[\"{}\"]{}", "x".repeat(length), " ".repeat(blanks));
            assert_eq!(elements(text.as_bytes()), Ok(only(1..length + 3)), "{text}");
        }
    }
}

#[test]
fn a_value_may_nest_1024_levels_and_no_more() {
    for (open, close) in [("[", "]"), (r#"{"k":"#, "}"), (r#"[{"k":"#, "}]")] {
        let levels = open.matches(['[', '{']).count();
        let nested = |n: usize| format!("[{}1{}]", open.repeat(n), close.repeat(n));
        let most = nested(1024 / levels);
        assert_eq!(elements(most.as_bytes()), Ok(only(1..most.len() - 1)));
        let error = ScanError {
            at: 1 + open.len() * (1024 / levels),
            problem: ScanProblem::TooDeep,
        };
        let more = nested(1024 / levels + 1);
        assert_eq!(elements(more.as_bytes()), Err(error));
    }
}

#[test]
fn each_bracket_must_close_its_own_kind() {
    let depth = 130;
    for seed in 0..128_usize {
        let is_object = |at: usize| ((seed >> (at % 7)) ^ (at / 3)) & 1 == 1;
        let open: Vec<u8> = (0..depth)
            .flat_map(|at| {
                if is_object(at) {
                    &br#"{"k":"#[..]
                } else {
                    b"["
                }
            })
            .copied()
            .collect();
        let close: Vec<u8> = (0..depth)
            .rev()
            .map(|at| if is_object(at) { b'}' } else { b']' })
            .collect();
        let text = [b"[", open.as_slice(), b"0", &close, b"]"].concat();
        assert_eq!(elements(&text), Ok(only(1..text.len() - 1)));
        for at in text.len() - 1 - depth..text.len() - 1 {
            let mut wrong = text.clone();
            wrong[at] ^= b']' ^ b'}';
            let problem = ScanProblem::Unexpected(wrong[at]);
            assert_eq!(elements(&wrong), Err(ScanError { at, problem }));
        }
    }
}

#[test]
fn a_wrong_text_is_refused_where_it_goes_wrong() {
    use ScanProblem::{Truncated, Unexpected};
    let cases: &[(&[u8], usize, ScanProblem)] = &[
        (b"", 0, Truncated),
        (b" \n", 2, Truncated),
        (b"[", 1, Truncated),
        (b"[{", 2, Truncated),
        (b"[{}", 3, Truncated),
        (b"[{}]]", 4, Unexpected(b']')),
        (b"[{}] []", 5, Unexpected(b'[')),
        (b"[{}]\0", 4, Unexpected(0)),
        (b"[{}],", 4, Unexpected(b',')),
        (b"[{},]", 4, Unexpected(b']')),
        (b"[,{}]", 1, Unexpected(b',')),
        (b"[{},,{}]", 4, Unexpected(b',')),
        (b"[{}{}]", 3, Unexpected(b'{')),
        (b"[{} {}]", 4, Unexpected(b'{')),
        (b"[{}}", 3, Unexpected(b'}')),
        (b"\xef\xbb\xbf[]", 0, Unexpected(0xef)),
        (b"[\x00{\x00}\x00]\x00", 1, Unexpected(0)),
        (b"[\x0b{}]", 1, Unexpected(0x0b)),
        (b"[\xa0{}]", 1, Unexpected(0xa0)),
        (b"{}", 0, Unexpected(b'{')),
        (b"null", 0, Unexpected(b'n')),
        (b"[1]", 1, Unexpected(b'1')),
        (b"[[]]", 1, Unexpected(b'[')),
        (b"[null]", 1, Unexpected(b'n')),
        (b"[{]", 2, Unexpected(b']')),
        (b"[{,}]", 2, Unexpected(b',')),
        (b"[{a:1}]", 2, Unexpected(b'a')),
        (b"[{1:1}]", 2, Unexpected(b'1')),
        (b"[{'a':1}]", 2, Unexpected(b'\'')),
        (br#"[{"a"}]"#, 5, Unexpected(b'}')),
        (br#"[{"a" 1}]"#, 6, Unexpected(b'1')),
        (br#"[{"a":}]"#, 6, Unexpected(b'}')),
        (br#"[{"a":1,}]"#, 8, Unexpected(b'}')),
        (br#"[{"a":1 "b":2}]"#, 8, Unexpected(b'"')),
        (br#"[{"a":1;"b":2}]"#, 7, Unexpected(b';')),
        (br#"[{"a":[1,]}]"#, 9, Unexpected(b']')),
        (br#"[{"a":[,1]}]"#, 7, Unexpected(b',')),
        (br#"[{"a":[1 2]}]"#, 9, Unexpected(b'2')),
        (br#"[{"a":[[]1]}]"#, 9, Unexpected(b'1')),
        (br#"[{"a":[[],]}]"#, 10, Unexpected(b']')),
        (br#"[{"a":{"b":{},}}]"#, 14, Unexpected(b'}')),
        (br#"[{"a":{"b":{}"c":1}}]"#, 13, Unexpected(b'"')),
        (br#"[{"a":{[]}}]"#, 7, Unexpected(b'[')),
        (br#"[{"a":["b":1]}]"#, 10, Unexpected(b':')),
        (br#"[{"a":tru}]"#, 9, Unexpected(b'}')),
        (br#"[{"a":True}]"#, 6, Unexpected(b'T')),
        (br#"[{"a":nulll}]"#, 10, Unexpected(b'l')),
        (br#"[{"a":fals"#, 10, Truncated),
        (br#"[{"a":NaN}]"#, 6, Unexpected(b'N')),
        (br#"[{"a":-}]"#, 7, Unexpected(b'}')),
        (br#"[{"a":+1}]"#, 6, Unexpected(b'+')),
        (br#"[{"a":.5}]"#, 6, Unexpected(b'.')),
        (br#"[{"a":1.}]"#, 8, Unexpected(b'}')),
        (br#"[{"a":1e}]"#, 8, Unexpected(b'}')),
        (br#"[{"a":0x1}]"#, 7, Unexpected(b'x')),
        (br#"[{"a":/* */1}]"#, 6, Unexpected(b'/')),
        (br#"[{"a":"b}]"#, 10, Truncated),
        (br#"[{"a":"b\"}]"#, 12, Truncated),
        (br#"[{"a":"b\"#, 9, Truncated),
    ];
    for &(text, at, problem) in cases {
        let shown = String::from_utf8_lossy(text);
        assert_eq!(records(text), Err(ScanError { at, problem }), "{shown}");
        assert_eq!(oracle_records(text), None, "{shown}");
    }
}

#[test]
fn the_inside_of_strings_and_numbers_passes_unread() {
    let insides: &[&[u8]] = &[
        br#""\x""#,
        br#""\u12""#,
        br#""\ud800""#,
        b"\"a\nb\"",
        b"\"\x00\"",
        b"\"\xff\xfe\"",
        b"01",
        b"-01",
        b"1e+-5",
        b"1.2.3",
        b"1e400",
    ];
    for inside in insides {
        let text = [br#"[{"name":"#, *inside, b"}]"].concat();
        let name = Some(9..9 + inside.len());
        let expected = (1..text.len() - 1, [None, name, None]);
        assert_eq!(records(&text), Ok(vec![expected]));
    }
}

#[test]
fn the_last_of_repeated_members_counts_however_it_is_spelled() {
    let text =
        br#"[{"name":1,"n\u0061me":2},{"n\u0061me":3,"name":4},{"\u006Eame":5,"x":{"name":6}}]"#;
    let names: Vec<_> = records(text)
        .unwrap()
        .into_iter()
        .map(|(_, [_, name, _])| &text[name.unwrap()])
        .collect();
    assert_eq!(names, [b"2", b"4", b"5"]);
}

#[test]
fn a_wanted_name_is_found_whatever_its_length() {
    for length in 0..80 {
        let name = "n".repeat(length);
        let keys = [name.as_str()];
        let text = format!(r#"[{{"{name}n":1,"{name}":2,"x{name}":3}}]"#);
        let mut fields = [None];
        let record = Records::new(text.as_bytes(), &keys).next(&mut fields);
        assert_eq!(record, Ok(Some(1..text.len() - 1)));
        let [found] = fields;
        assert_eq!(&text[found.unwrap()], "2");
    }
}

#[test]
fn a_missing_member_leaves_no_span_of_the_record_before() {
    let found = records(br#"[{"name":1},{}]"#).unwrap();
    let name = [None, Some(9..10), None];
    assert_eq!(found, [(1..11, name), (12..14, [None, None, None])]);
}

#[test]
fn a_refused_text_stays_refused() {
    // Read on from where it failed, some of these would give a record.
    for text in ["[,{}]", "[1,{}]", "[{}{},{}]", r#"[{"a"},{}]"#] {
        let mut reader = Records::new(text.as_bytes(), &[]);
        let error = loop {
            match reader.next(&mut []) {
                Ok(record) => assert!(record.is_some(), "{text}"),
                Err(error) => break error,
            }
        };
        assert_eq!(reader.next(&mut []), Err(error), "{text}");
    }
    let mut elements = Elements::new(b"[1 2,3]");
    assert_eq!(elements.next(), Some(Ok(1..2)));
    assert!(elements.next().is_some_and(|next| next.is_err()));
    assert_eq!(elements.next(), None);
    let mut members = Members::new(br#"{"a":1 2,"b":3}"#);
    assert_eq!(members.next(), Some(Ok((1..4, 5..6))));
    assert!(members.next().is_some_and(|next| next.is_err()));
    assert_eq!(members.next(), None);
}

#[test]
fn an_end_stays_the_end() {
    let mut reader = Records::new(b"[{}]", &[]);
    assert_eq!(reader.next(&mut []), Ok(Some(1..3)));
    assert_eq!(reader.next(&mut []), Ok(None));
    assert_eq!(reader.next(&mut []), Ok(None));
    assert_eq!(Elements::new(b" [ ] ").next(), None);
    assert_eq!(Members::new(b" { } ").next(), None);
}
