//! What `merge: exact` asks for so that any functions can be combined.

use super::*;

fn exact() -> Settings {
    Settings {
        strategy: Strategy::Exact,
        ..settings()
    }
}

fn exactly(target: &str) -> Result<Fan, Refusal> {
    match planned_with(&exact(), &format!("/pdb/query/v4/{}", encoded(target)))? {
        Plan::Fan(fan) => Ok(fan),
        other => panic!("{target}: {other:?}"),
    }
}

fn asked_exactly(target: &str) -> String {
    let target = exactly(target).unwrap().ask.target();
    target.strip_prefix("/pdb/query/v4/").unwrap().to_owned()
}

#[test]
fn r125_r131_only_the_default_modes_refuse_repeats() {
    for (target, expected) in [
        (
            r#"nodes?query=["extract",[["function","count"],["function","count","report_timestamp"]]]"#,
            r#"nodes?query=["extract",[["function","count"],["function","count","report_timestamp"]]]"#,
        ),
        (
            r#"facts?query=["extract",[["function","avg","value"],["function","count"]]]"#,
            r#"facts?query=["extract",[["function","sum","value"],["function","count","value"],["function","count"]]]"#,
        ),
        // Their rows have room for one count, which here is the same.
        (
            r#"fact-contents?query=["extract",[["function","avg","value"],["function","count"]]]"#,
            r#"fact-contents?query=["extract",[["function","sum","value"],["function","count"]]]"#,
        ),
        (
            r#"resources/File?query=["extract",[["function","avg","line"],["function","sum","line"]]]"#,
            r#"resources/File?query=["extract",[["function","count","line"],["function","sum","line"]]]"#,
        ),
    ] {
        assert_eq!(asked_exactly(target), encoded(expected), "{target}");
    }
    for target in [
        r#"nodes?query=["extract",[["function","count"],["function","count","report_timestamp"]]]"#,
        r#"facts?query=["extract",[["function","avg","value"],["function","count"]]]"#,
    ] {
        let refused = planned(&encoded(target));
        assert!(matches!(refused, Err(Refusal::Fold(_))), "{target}");
    }
    let average = r#"resources?query=["extract",[["function","avg","line"],["function","count"]]]"#;
    assert!(matches!(exactly(average), Err(Refusal::Fold(_))));
}

#[test]
fn rows_of_row_functions_are_records_with_an_order_and_a_window() {
    let rows =
        r#"["function","to_string","end_time","YYYY"],["function","to_string","end_time","MM"]"#;
    let by = r#"order_by=[{"field":"end_time"}]&limit=2"#;
    let fan = exactly(&format!(r#"reports?query=["extract",[{rows}]]&{by}"#)).unwrap();
    let Merge::Records(merge) = fan.merge else {
        panic!("{:?}", fan.merge)
    };
    assert_eq!(merge.window.limit, Some(2));
    assert_eq!(merge.strip, ["end_time", "hash"]);
    // Grouped, they are groups like any other.
    let grouped = format!(r#"reports?query=["extract",[{rows}],["group_by","to_string"]]"#);
    assert!(matches!(
        exactly(&grouped).unwrap().merge,
        Merge::Aggregates(_)
    ));
}

#[test]
fn a_count_of_rows_tells_by_source_where_there_are_none() {
    for (target, expected) in [
        (
            r#"reports?query=["extract",["pdbmux_source",["function","max","end_time"]],["group_by","pdbmux_source"]]"#,
            r#"reports?query=["extract",[["function","max","end_time"],["function","count"]]]"#,
        ),
        // A count of one column can be zero where there are rows.
        (
            r#"reports?query=["extract",["pdbmux_source",["function","count","noop"]],["group_by","pdbmux_source"]]"#,
            r#"reports?query=["extract",[["function","count","noop"],["function","count"]]]"#,
        ),
        (
            r#"reports?query=["extract",["pdbmux_source",["function","count"]],["group_by","pdbmux_source"]]"#,
            r#"reports?query=["extract",[["function","count"]]]"#,
        ),
        // Here it must do, since a second one is a fault.
        (
            r#"resources?query=["extract",["pdbmux_source",["function","count","line"]],["group_by","pdbmux_source"]]"#,
            r#"resources?query=["extract",[["function","count","line"]]]"#,
        ),
        (
            r#"reports?query=["extract",["pdbmux_source",["function","max","end_time"]],["group_by","pdbmux_source","status"]]"#,
            r#"reports?query=["extract",[["function","max","end_time"],"status"],["group_by","status"]]"#,
        ),
        (
            r#"reports?query=["extract",["pdbmux_source"],["group_by","pdbmux_source"]]"#,
            r#"reports?query=["extract",[["function","count"]]]"#,
        ),
    ] {
        assert_eq!(asked_exactly(target), encoded(expected), "{target}");
        let merge = exactly(target).unwrap().merge;
        assert!(matches!(merge, Merge::Aggregates(_)), "{merge:?}");
    }
    // Rows of row functions count nothing.
    let rows =
        r#"reports?query=["extract",["pdbmux_source",["function","to_string","end_time","YYYY"]]]"#;
    let merge = exactly(rows).unwrap().merge;
    assert!(matches!(merge, Merge::Records(_)), "{merge:?}");
}
