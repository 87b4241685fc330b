//! Folding as a whole: what the client gets from what the backends sent.

// The configured leave for tests reaches functions marked as tests, not their helpers.
#![allow(clippy::unwrap_used)]

use pdbmux_core::merge::fold::{FoldError, FoldPlan, Repeats, Row, Rows, fold};
use pdbmux_core::query::{Column, Extract};

#[path = "fold/laws.rs"]
mod laws;
#[path = "fold/repeats.rs"]
mod repeats;

fn plan(functions: &[&str], plain: &[&str], group_by: &[&str]) -> FoldPlan {
    let named = |names: &[&str]| -> Vec<Column> {
        names.iter().map(|n| Column::Plain((*n).into())).collect()
    };
    let functions = functions.iter().map(|name| Column::Function {
        name: (*name).into(),
        args: vec!["value".into()],
    });
    let extract = Extract {
        columns: functions.chain(named(plain)).collect(),
        group_by: named(group_by),
    };
    FoldPlan::new(&extract, Repeats::Refused)
        .unwrap()
        .unwrap()
        .0
}

fn folded<'b>(plan: &FoldPlan, bodies: &[&'b str]) -> Result<Vec<Row<'b>>, FoldError> {
    let answers = bodies
        .iter()
        .map(|body| Rows::read(plan, body.as_bytes()).unwrap())
        .collect();
    fold(plan, answers)
}

fn texts(plan: &FoldPlan, bodies: &[&str]) -> Vec<String> {
    folded(plan, bodies)
        .unwrap()
        .iter()
        .map(|row| String::from_utf8(row.bytes().to_vec()).unwrap())
        .collect()
}

/// Checks what `bodies` fold to, as one JSON array.
#[track_caller]
fn check(plan: &FoldPlan, bodies: &[&str], expected: &str) {
    let rows = texts(plan, bodies);
    assert_eq!(format!("[{}]", rows.join(",")), expected, "from {bodies:?}");
}

#[test]
fn r109_event_counts_are_added_per_subject() {
    check(
        &FoldPlan::event_counts(),
        &[
            r#"[{"failures":1,"skips":0,"subject_type":"resource","subject":{"type":"File","title":"/a"}},{"failures":4,"skips":1,"subject_type":"resource","subject":{"type":"File","title":"/b"}}]"#,
            r#"[{"failures":2,"skips":3,"subject_type":"resource","subject":{"title": "/a", "type": "File"}}]"#,
        ],
        r#"[{"failures":3,"skips":3,"subject_type":"resource","subject":{"type":"File","title":"/a"}},{"failures":4,"skips":1,"subject_type":"resource","subject":{"type":"File","title":"/b"}}]"#,
    );
}

#[test]
fn r107_equal_subjects_of_different_types_stay_apart() {
    let body = r#"[{"failures":1,"subject_type":"certname","subject":{"title":"a"}},{"failures":2,"subject_type":"containing_class","subject":{"title":"a"}}]"#;
    let (first, second) = body.split_at(body.find("},{").unwrap() + 1);
    check(
        &FoldPlan::event_counts(),
        &[&format!("{first}]"), &format!("[{}", &second[1..])],
        body,
    );
}

#[test]
fn event_counts_of_different_editions_have_the_union_of_their_columns() {
    check(
        &FoldPlan::event_counts(),
        &[
            r#"[{"failures":1,"successes":2,"subject_type":"certname","subject":{"title":"a"}}]"#,
            r#"[{"failures":1,"intentional_successes":5,"corrective_successes":6,"subject_type":"certname","subject":{"title":"a"}}]"#,
        ],
        r#"[{"failures":2,"successes":2,"subject_type":"certname","subject":{"title":"a"},"corrective_successes":6,"intentional_successes":5}]"#,
    );
}

#[test]
fn r110_summaries_are_added_per_summarize_by() {
    let resource = r#"{"summarize_by":"resource","failures":1,"total":3}"#;
    let certname = r#"{"summarize_by":"certname","failures":8,"total":8}"#;
    check(
        &FoldPlan::aggregate_event_counts(),
        &[
            &format!("[{resource},{certname}]"),
            &format!("[{certname},{resource}]"),
        ],
        r#"[{"summarize_by":"resource","failures":2,"total":6},{"summarize_by":"certname","failures":16,"total":16}]"#,
    );
}

#[test]
fn a_summary_asked_for_twice_is_not_added_to_itself() {
    let once = r#"{"summarize_by":"certname","total":2}"#;
    let twice = format!("[{once},{once}]");
    let plan = FoldPlan::aggregate_event_counts();
    check(&plan, &[&twice], &twice);
    check(
        &plan,
        &[&twice, &twice],
        r#"[{"summarize_by":"certname","total":4},{"summarize_by":"certname","total":4}]"#,
    );
}

#[test]
fn r111_rows_with_equal_keys_collapse_each_column_by_its_rule() {
    check(
        &plan(&["count", "sum", "min", "max"], &["name"], &["name"]),
        &[
            r#"[{"count":2,"sum":30,"min":10,"max":20,"name":"mem"}]"#,
            r#"[{"count":3,"sum":9.5,"min":-1.5,"max":9,"name":"mem"}]"#,
        ],
        r#"[{"count":5,"sum":39.5,"min":-1.5,"max":20,"name":"mem"}]"#,
    );
}

#[test]
fn r112_a_key_of_one_backend_keeps_its_bytes() {
    let odd = r#"{ "sum" : 1.50E1 , "na\u006de" :"x","name_2": "x" }"#;
    let other = r#"{"sum":1,"name":"y","name_2":"y"}"#;
    check(
        &plan(&["sum"], &["name", "name"], &["name"]),
        &[&format!("[{odd}]"), &format!("[{other}]")],
        &format!("[{odd},{other}]"),
    );
}

#[test]
fn r113_absent_and_null_are_skipped() {
    check(
        &plan(&["sum", "min", "max"], &[], &[]),
        &[
            r#"[{"sum":null,"min":null,"max":null}]"#,
            r#"[{"sum":-5,"min":-5}]"#,
            r#"[{"sum":-7.0,"min":-2,"max":-1}]"#,
        ],
        r#"[{"sum":-12.0,"min":-5,"max":-1}]"#,
    );
}

#[test]
fn r114_nulls_from_all_are_null() {
    let nulls = r#"[{"count":0,"sum":null,"min":null}]"#;
    check(
        &plan(&["count", "sum", "min"], &[], &[]),
        &[nulls, nulls],
        nulls,
    );
}

#[test]
fn r115_r116_sums_are_exact_at_any_size() {
    for (a, b, sum) in [
        ("9007199254740993", "9007199254740993", "18014398509481986"),
        (
            "170141183460469231731687303715884105727",
            "1",
            "170141183460469231731687303715884105728",
        ),
        ("0.1", "0.2", "0.3"),
        ("1.10", "-1.1", "0.00"),
        ("1E2", "1", "101"),
        ("1.0E10", "0.5", "10000000000.5"),
    ] {
        check(
            &plan(&["sum"], &[], &[]),
            &[
                &format!(r#"[{{"sum":{a}}}]"#),
                &format!(r#"[{{"sum":{b}}}]"#),
            ],
            &format!(r#"[{{"sum":{sum}}}]"#),
        );
    }
}

#[test]
fn r117_r118_extremes_keep_the_spelling_of_the_winner() {
    for (a, b, min, max) in [
        ("9", "10", "9", "10"),
        ("1E2", "20.0", "20.0", "1E2"),
        ("-0.10", "-0.2", "-0.2", "-0.10"),
        ("1.0", "1", "1.0", "1.0"),
        (
            "9007199254740993",
            "9007199254740992",
            "9007199254740992",
            "9007199254740993",
        ),
        (r#""Zeta""#, r#""alpha""#, r#""Zeta""#, r#""alpha""#),
        (r#""10""#, r#""9""#, r#""10""#, r#""9""#),
        (r#""\u00e9""#, r#""z""#, r#""z""#, r#""\u00e9""#),
        (
            r#""2026-11-13T00:01:00.014Z""#,
            r#""2026-11-13T00:00:59.999Z""#,
            r#""2026-11-13T00:00:59.999Z""#,
            r#""2026-11-13T00:01:00.014Z""#,
        ),
    ] {
        check(
            &plan(&["min", "max"], &[], &[]),
            &[
                &format!(r#"[{{"min":{a},"max":{a}}}]"#),
                &format!(r#"[{{"min":{b},"max":{b}}}]"#),
            ],
            &format!(r#"[{{"min":{min},"max":{max}}}]"#),
        );
    }
}

#[test]
fn r119_r120_r122_r123_avg_is_total_sum_by_total_count_and_shows_alone() {
    check(
        &plan(&["max", "avg"], &["name"], &["name"]),
        &[
            r#"[{"max":1,"sum":100,"count":1,"name":"a"}]"#,
            r#"[{"max":2,"sum":0,"count":9,"name":"a"},{"max":3,"sum":77,"count":6,"name":"b"}]"#,
        ],
        r#"[{"max":2,"avg":10.0000000000000000,"name":"a"},{"max":3,"avg":12.8333333333333333,"name":"b"}]"#,
    );
}

#[test]
fn r121_avg_over_no_rows_is_null() {
    let plan = plan(&["avg"], &[], &[]);
    let empty = r#"[{"sum":null,"count":0}]"#;
    let one = r#"[{"sum":3001,"count":1}]"#;
    check(&plan, &[empty], r#"[{"avg":null}]"#);
    check(&plan, &[empty, empty], r#"[{"avg":null}]"#);
    check(&plan, &[empty, one], r#"[{"avg":3001.0000000000000000}]"#);
    check(&plan, &[r#"[{"sum":1,"count":0}]"#], r#"[{"avg":null}]"#);
    check(&plan, &["[{}]"], r#"[{"avg":null}]"#);
}

#[test]
fn r127_row_functions_are_part_of_the_key() {
    check(
        &plan(&["count", "to_string"], &[], &["to_string"]),
        &[
            r#"[{"count":1,"to_string":"2025"},{"count":2,"to_string":"2026"}]"#,
            r#"[{"count":3,"to_string":"2026"}]"#,
        ],
        r#"[{"count":1,"to_string":"2025"},{"count":5,"to_string":"2026"}]"#,
    );
}

#[test]
fn r129_rows_of_row_functions_alone_stay_as_they_came() {
    let row = r#"{"to_string":"2026","certname":"a"}"#;
    let body = format!("[{row}, {row}]");
    check(
        &plan(&["to_string"], &["certname"], &[]),
        &[&body, &body],
        &format!("[{row},{row},{row},{row}]"),
    );
}

#[test]
fn group_by_without_a_function_is_a_union_of_distinct_rows() {
    check(
        &plan(&[], &["certname", "status"], &["certname", "status"]),
        &[
            r#"[{"certname":"a","status":"failed"},{"certname":"b","status":null}]"#,
            r#"[{"status":null,"certname":"b"},{"certname":"a","status":"changed"}]"#,
        ],
        r#"[{"certname":"a","status":"failed"},{"certname":"b","status":null},{"certname":"a","status":"changed"}]"#,
    );
}

#[test]
fn a_repeated_plain_column_belongs_to_the_key_and_stays() {
    let body = r#"[{"count":1,"status":"x","status_2":"x"}]"#;
    check(
        &plan(&["count"], &["status", "status"], &["status"]),
        &[body, body],
        r#"[{"count":2,"status":"x","status_2":"x"}]"#,
    );
}

#[test]
fn groups_that_differ_in_a_column_not_projected_stay_apart() {
    let plan = plan(&["count"], &[], &["status"]);
    let bodies = [
        r#"[{"count":1,"status":"failed"},{"count":2,"status":null}]"#,
        r#"[{"count":30,"status":null},{"count":4,"status":"changed"}]"#,
    ];
    check(&plan, &bodies, r#"[{"count":1},{"count":32},{"count":4}]"#);
    let rows = folded(&plan, &bodies).unwrap();
    let by: Vec<_> = rows.iter().map(|row| row.column("status")).collect();
    let expected = [&b"\"failed\""[..], b"null", b"\"changed\""];
    assert_eq!(by, expected.map(Some));
}

#[test]
fn json_keys_meet_by_value_and_null_is_a_group() {
    check(
        &plan(&["count"], &["value"], &["value"]),
        &[
            r#"[{"count":1,"value":{"a": 1, "b": [1.0]}},{"count":1,"value":null},{"count":1,"value":"1"}]"#,
            r#"[{"count":2,"value":null},{"count":2,"value":{"b":[1],"a":1e0}},{"count":2,"value":1}]"#,
        ],
        r#"[{"count":3,"value":{"a": 1, "b": [1.0]}},{"count":3,"value":null},{"count":1,"value":"1"},{"count":2,"value":1}]"#,
    );
}

#[test]
fn of_a_repeated_member_the_last_counts() {
    let body = r#"[{"count":1,"name":"x","count":2,"name":"a"}]"#;
    check(
        &plan(&["count"], &["name"], &["name"]),
        &[r#"[{"count":5,"name":"a"}]"#, body],
        r#"[{"count":7,"name":"a"}]"#,
    );
}

#[test]
fn pretty_rows_stay_pretty() {
    let row = "{\n  \"sum\" : 1,\n  \"count\" : 1,\n  \"name\" : \"a\",\n  \"os\" : 1\n}";
    let body = format!("[ {row} ]");
    check(
        &plan(&["avg"], &["name"], &["name", "os"]),
        &[&body, &body],
        "[{\n  \"avg\" : 1.00000000000000000000,\n  \"name\" : \"a\"\n}]",
    );
}

#[test]
fn every_column_can_be_ordered_by() {
    let plan = plan(&["avg", "max"], &["name"], &["name", "os"]);
    let body = r#"[{"sum":2,"count":1,"max":2.50,"name":"a","os":"x"}]"#;
    let rows = folded(&plan, &[body]).unwrap();
    for (column, expected) in [
        ("avg", Some("2.0000000000000000")),
        ("max", Some("2.50")),
        ("name", Some(r#""a""#)),
        ("os", Some(r#""x""#)),
        ("sum", None),
        ("count", None),
    ] {
        let found = rows[0]
            .column(column)
            .map(|raw| str::from_utf8(raw).unwrap());
        assert_eq!(found, expected, "{column}");
    }
}

#[test]
fn numbers_that_postgresql_cannot_hold_fail_only_where_they_are_worked_on() {
    let plan = plan(&["sum", "max"], &["name"], &[]);
    let outcome = |a: &str, b: &str| folded(&plan, &[a, b]).map(|rows| rows.len());
    let out_of_range = |column: &str| Err(FoldError::OutOfRange(column.into()));
    let one = r#"[{"sum":1,"max":1,"name":"a"}]"#;
    assert_eq!(outcome(r#"[{"sum":1e3000000,"name":"b"}]"#, one), Ok(2));
    assert_eq!(
        outcome(r#"[{"sum":1e3000000,"name":"a"}]"#, one),
        out_of_range("sum")
    );
    assert_eq!(
        outcome(r#"[{"max":1e-999999999999999999999,"name":"a"}]"#, one),
        out_of_range("max")
    );
    let huge = r#"[{"sum":9e131071,"name":"a"}]"#;
    assert_eq!(outcome(huge, huge), out_of_range("sum"));
}

#[test]
fn many_long_numbers_end_in_an_error_and_not_in_a_stall() {
    let rows: Vec<String> = (0..200)
        .map(|name| format!(r#"{{"sum":1e131071,"name":{name}}}"#))
        .collect();
    let body = format!("[{}]", rows.join(","));
    let outcome = folded(&plan(&["sum"], &["name"], &["name"]), &[&body, &body]);
    assert_eq!(outcome, Err(FoldError::TooMuchWork("sum".into())));
}
