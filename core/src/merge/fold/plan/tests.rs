use super::*;

fn plain(name: &str) -> Column {
    Column::Plain(name.into())
}

fn function(name: &str, args: &[&str]) -> Column {
    Column::Function {
        name: name.into(),
        args: args.iter().map(ToString::to_string).collect(),
    }
}

fn extract(columns: &[Column], group_by: &[Column]) -> Extract {
    Extract {
        columns: columns.to_vec(),
        group_by: group_by.to_vec(),
    }
}

fn refused(columns: &[Column]) -> FoldRefusal {
    FoldPlan::new(&extract(columns, &[])).unwrap_err()
}

fn planned(columns: &[Column], group_by: &[Column]) -> (FoldPlan, Extract) {
    FoldPlan::new(&extract(columns, group_by)).unwrap().unwrap()
}

#[test]
fn r134_a_function_without_a_rule_is_refused() {
    for name in ["stddev", "COUNT", ""] {
        assert_eq!(
            refused(&[function(name, &["line"])]),
            FoldRefusal::UnknownFunction(name.into())
        );
    }
}

#[test]
fn r131_the_same_function_twice_is_refused() {
    for known in Function::ALL {
        let name = known.name();
        let twice = [function(name, &["a"]), plain("x"), function(name, &["b"])];
        assert_eq!(refused(&twice), FoldRefusal::RepeatedFunction(name.into()));
    }
}

#[test]
fn r132_a_plain_column_named_like_a_projected_function_is_refused() {
    for columns in [
        [function("max", &["line"]), plain("max")],
        [plain("max"), function("max", &["line"])],
    ] {
        assert_eq!(
            refused(&columns),
            FoldRefusal::NamedLikeFunction("max".into())
        );
    }
    planned(&[function("max", &["line"]), plain("min")], &[]);
}

#[test]
fn r125_sum_and_count_are_refused_beside_avg() {
    let avg = function("avg", &["value"]);
    for (other, name) in [
        (function("sum", &["value"]), "sum"),
        (function("count", &[]), "count"),
        (plain("count"), "count"),
    ] {
        let clash = FoldRefusal::BesideAverage(name.into());
        assert_eq!(refused(&[avg.clone(), other.clone()]), clash);
        assert_eq!(refused(&[other, avg.clone()]), clash);
    }
}

#[test]
fn refusals_name_the_culprit() {
    let text = refused(&[function("stddev", &["line"])]).to_string();
    assert!(text.contains("stddev"), "{text}");
    let text = refused(&[function("avg", &["v"]), function("sum", &["v"])]).to_string();
    assert!(text.contains("sum cannot"), "{text}");
}

#[test]
fn r119_avg_is_asked_for_as_sum_and_count_of_the_same_column() {
    let columns = [
        function("min", &["value"]),
        function("avg", &["value"]),
        plain("name"),
    ];
    let (plan, forwarded) = planned(&columns, &[plain("name")]);
    assert_eq!(
        forwarded,
        extract(
            &[
                function("min", &["value"]),
                function("sum", &["value"]),
                function("count", &["value"]),
                plain("name"),
            ],
            &[plain("name")]
        )
    );
    assert_eq!(plan.shown("sum"), Shown::Average);
    assert_eq!(plan.shown("count"), Shown::Hidden);
    assert_eq!(plan.shown("min"), Shown::Same);
}

#[test]
fn r133_a_repeated_plain_column_is_forwarded_and_part_of_the_key() {
    let columns = [function("count", &[]), plain("status"), plain("status")];
    let (plan, forwarded) = planned(&columns, &[plain("status")]);
    assert_eq!(forwarded.columns, columns);
    assert_eq!(plan.rule("status_2"), None);
    assert_eq!(plan.rule("count"), Some(Rule::Add));
}

#[test]
fn a_grouped_column_that_is_not_projected_is_asked_for_and_hidden() {
    let count = function("count", &[]);
    let by = [plain("status"), plain("facts.os"), plain("facts.os")];
    let (plan, forwarded) = planned(&[count.clone(), plain("status")], &by);
    assert_eq!(
        forwarded.columns,
        [count, plain("status"), plain("facts.os")]
    );
    assert_eq!(forwarded.group_by, by);
    assert_eq!(plan.shown("facts.os"), Shown::Hidden);
    assert_eq!(plan.rule("facts.os"), None);
    assert_eq!(plan.shown("status"), Shown::Same);
}

#[test]
fn r128_a_group_by_that_names_a_row_function_is_its_column() {
    let columns = [
        function("count", &[]),
        function("to_string", &["end_time", "YYYY"]),
    ];
    for named in [
        plain("to_string"),
        function("to_string", &["end_time", "MM"]),
    ] {
        let (plan, forwarded) = planned(&columns, std::slice::from_ref(&named));
        assert_eq!(forwarded, extract(&columns, &[named]));
        assert_eq!(plan.rule("to_string"), None);
        assert!(!plan.rewrites());
    }
}

#[test]
fn r130_only_rows_that_are_records_keep_their_paging_upstream() {
    let row_function = function("to_string", &["end_time", "YYYY"]);
    let (records, _) = planned(&[row_function.clone(), plain("certname")], &[]);
    assert!(records.forwards_paging());
    let (folds, _) = planned(&[row_function, function("count", &[])], &[]);
    let (distinct, _) = planned(&[plain("status")], &[plain("status")]);
    for plan in [
        folds,
        distinct,
        FoldPlan::event_counts(),
        FoldPlan::aggregate_event_counts(),
    ] {
        assert!(!plan.forwards_paging());
    }
}

#[test]
fn r139_a_query_that_lists_records_has_no_plan() {
    for extract in [
        extract(&[plain("certname"), plain("facts.count")], &[]),
        extract(&[plain("count")], &[]),
        extract(&[], &[plain("certname")]),
        Extract::default(),
    ] {
        assert_eq!(FoldPlan::new(&extract), Ok(None));
    }
}
