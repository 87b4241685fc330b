//! Ordering: against tables read off PostgreSQL, and on records.

// Helpers of tests may fail a test like the tests themselves.
#![allow(clippy::unwrap_used)]

use std::cmp::Ordering;

use pdbmux_core::paging::{ColumnKind, OrderBy, RecordOrder, compare_values};

const KINDS: [ColumnKind; 5] = [
    ColumnKind::Plain,
    ColumnKind::Jsonb,
    ColumnKind::NullableJsonb,
    ColumnKind::JsonText,
    ColumnKind::FactPath,
];

/// Checks every pair of `ranked`, values with their rank as PostgreSQL sees it.
fn assert_order(kind: ColumnKind, ranked: &[(usize, &str)]) {
    for (rank_a, a) in ranked {
        for (rank_b, b) in ranked {
            let order = compare_values(kind, a.as_bytes(), b.as_bytes());
            assert_eq!(order, rank_a.cmp(rank_b), "{a} and {b} as {kind:?}");
        }
    }
}

#[test]
fn ruling_8_jsonb_sorts_as_in_postgresql() {
    let table = include_str!("data/jsonb-order.txt");
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    let ranked: Vec<_> = lines
        .map(|line| {
            let (rank, value) = line.split_once(' ').unwrap();
            (rank.parse().unwrap(), value)
        })
        .collect();
    assert_eq!(ranked.len(), 119);
    assert_order(ColumnKind::Jsonb, &ranked);
}

#[test]
fn ruling_6_an_sql_null_comes_last_where_jsonb_can_be_absent() {
    let ranked = ["[]", r#""a""#, "1", "true", "[1]", "{}", "null"];
    let ranked: Vec<_> = ranked.into_iter().enumerate().collect();
    assert_order(ColumnKind::NullableJsonb, &ranked);
}

#[test]
fn text_arrays_sort_as_in_postgresql() {
    // Read off PostgreSQL 15.18, `order by a` of a `text[]` column.
    let ranked = [
        (1, "[]"),
        (2, r#"[""]"#),
        (3, r#"["A"]"#),
        (4, r#"["a"]"#),
        (5, r#"["a",10]"#),
        (6, r#"["a",9]"#),
        (7, r#"["a","b"]"#),
        (7, r#"[ "\u0061" , "b" ]"#),
        (9, r#"["a",null]"#),
        (10, r#"["a\tb"]"#),
        (11, r#"["a b"]"#),
        (12, r#"["aa"]"#),
        (13, r#"["b"]"#),
        (14, r#"["z","a","b"]"#),
        (15, r#"["é"]"#),
        (16, "[null]"),
        (17, "null"),
    ];
    assert_order(ColumnKind::Plain, &ranked);
    let ranked = [
        (1, r#"[["a","b"],["b","a"]]"#),
        (2, r#"[["a","z"]]"#),
        (3, r#"[["a","z"],["b","a"]]"#),
        (4, r#"[["b","a"]]"#),
    ];
    assert_order(ColumnKind::Plain, &ranked);
}

#[test]
fn plain_columns_sort_by_value() {
    let lines: [&[&str]; 4] = [
        &[
            r#""""#,
            r#""Beta""#,
            r#""\u0061""#,
            r#""a-1""#,
            r#""aa""#,
            r#""éb""#,
            "null",
        ],
        &[
            r#""2026-11-13T00:01:00.014Z""#,
            r#""2026-11-13T00:01:00.015Z""#,
            "null",
        ],
        &[
            "-1",
            "0",
            "9",
            "10",
            "9007199254740992",
            "9007199254740993",
            "null",
        ],
        &["false", "true", "null"],
    ];
    for line in lines {
        let ranked: Vec<_> = line.iter().copied().enumerate().collect();
        assert_order(ColumnKind::Plain, &ranked);
    }
}

#[test]
fn event_values_sort_as_the_text_they_are_stored_as() {
    let ranked = [r#""z""#, "10", "9", "[1]", "null", "true", r#"{"a":1}"#];
    let ranked: Vec<_> = ranked.into_iter().enumerate().collect();
    assert_order(ColumnKind::JsonText, &ranked);
}

#[test]
fn fact_paths_sort_as_the_string_they_are_stored_as() {
    // What PuppetDB's encoding makes of the path stands behind each.
    let ranked = [
        r#"[""]"#,            // ""
        r#"["1"]"#,           // "1"
        r#"["a"]"#,           // a
        r#"["a b"]"#,         // a b
        r#"["a!","z"]"#,      // a!#~z
        r#"["a#","a"]"#,      // a##~a
        r#"["a##~"]"#,        // a#\#\~
        r#"["a#\\b"]"#,       // a#\b
        r#"["a","10"]"#,      // a#~"10"
        r##"["a","#","b"]"##, // a#~##~b
        r#"["a",10]"#,        // a#~10
        r#"["a",9]"#,         // a#~9
        r#"["a","a"]"#,       // a#~a
        r#"["a","~"]"#,       // a#~~
        r#"["a#\\~"]"#,       // a\#\\~
        r#"["a#~"]"#,         // a\#\~
        r#"["a\\#~"]"#,       // a\\#\~
        r#"["a~"]"#,          // a~
        "null",
    ];
    let ranked: Vec<_> = ranked.into_iter().enumerate().collect();
    assert_order(ColumnKind::FactPath, &ranked);
}

#[test]
fn values_nested_beyond_all_measure_are_still_ordered() {
    let nested = |leaf: &str| format!("{}{leaf}{}", r#"{"a":["#.repeat(500), "]}".repeat(500));
    let (a, b) = (nested("1"), nested("2"));
    for kind in KINDS {
        let order = compare_values(kind, a.as_bytes(), b.as_bytes());
        let expected = match kind {
            // Not an array, hence no path.
            ColumnKind::FactPath => Ordering::Equal,
            _ => Ordering::Less,
        };
        assert_eq!(order, expected, "{kind:?}");
    }
}

fn parsed(order_by: &str) -> OrderBy {
    OrderBy::parse(order_by).unwrap()
}

/// A record as the raw values of the members asked for.
type Record = Vec<Option<&'static str>>;

fn member(record: &Record, index: usize) -> Option<&'static [u8]> {
    record[index].map(str::as_bytes)
}

#[test]
fn r145_a_record_that_lacks_the_field_comes_first_in_either_direction() {
    let records: [Record; 4] = [
        vec![Some("null")],
        vec![Some(r#""a""#)],
        vec![None],
        vec![Some(r#""b""#)],
    ];
    let cases: [(&str, [Option<&str>; 4]); 2] = [
        ("asc", [None, Some(r#""a""#), Some(r#""b""#), Some("null")]),
        ("desc", [None, Some("null"), Some(r#""b""#), Some(r#""a""#)]),
    ];
    for (direction, expected) in cases {
        let order_by = parsed(&format!(r#"[{{"field":"file","order":"{direction}"}}]"#));
        let order = RecordOrder::new(&order_by, "resources");
        let mut sorted = records.clone();
        order.sort(&mut sorted, member);
        assert_eq!(sorted.map(|record| record[0]), expected, "{direction}");
    }
}

#[test]
fn r144_ties_keep_their_order() {
    let order = RecordOrder::new(&parsed(r#"[{"field":"line","order":"desc"}]"#), "events");
    let mut records: Vec<Record> = ["1", "2.0", "1.0", "2", "1e0"]
        .map(|n| vec![Some(n)])
        .into();
    order.sort(&mut records, member);
    let lines: Vec<_> = records.iter().map(|record| record[0].unwrap()).collect();
    assert_eq!(lines, ["2.0", "2", "1", "1.0", "1e0"]);
}

#[test]
fn no_ordering_leaves_everything_where_it_is() {
    let order = RecordOrder::new(&OrderBy::default(), "nodes");
    let mut records: Vec<Record> = vec![vec![Some("2")], vec![Some("1")]];
    assert!(order.members().is_empty());
    order.sort(&mut records, member);
    assert_eq!(records, [vec![Some("2")], vec![Some("1")]]);
}

#[test]
fn t22_event_counts_are_ordered_by_what_their_subject_holds() {
    let order_by = parsed(
        r#"[{"field":"resource_type","order":"desc"},{"field":"resource_title"},{"field":"failures"}]"#,
    );
    let order = RecordOrder::new(&order_by, "event-counts");
    assert_eq!(order.members(), ["subject", "failures"]);
    let mut records: Vec<Record> = vec![
        vec![Some(r#"{"type":"File","title":"b"}"#), Some("1")],
        vec![Some(r#"{"title":"z", "t\u0079pe":"Service"}"#), Some("1")],
        vec![Some(r#"{"type":"File","title":"a"}"#), Some("10")],
        vec![Some(r#"{"type":"File","title":"a"}"#), Some("9")],
        vec![Some(r#"{"title":"lacks its type"}"#), Some("0")],
    ];
    let expected = [4, 1, 3, 2, 0].map(|i| records[i].clone());
    order.sort(&mut records, member);
    assert_eq!(records, expected);
}
