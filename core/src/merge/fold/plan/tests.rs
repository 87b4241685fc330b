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
    FoldPlan::new(&extract(columns, &[]), Repeats::Refused).unwrap_err()
}

fn planned(columns: &[Column], group_by: &[Column]) -> (FoldPlan, Extract) {
    planned_with(columns, group_by, Repeats::Refused)
}

fn planned_with(columns: &[Column], group_by: &[Column], repeats: Repeats) -> (FoldPlan, Extract) {
    let extract = extract(columns, group_by);
    FoldPlan::new(&extract, repeats).unwrap().unwrap()
}

/// What the client sees, as `name` or `name=column` or `name=sum/count`.
fn shown(plan: &FoldPlan) -> Vec<String> {
    let shown = plan.shown().unwrap_or_default().iter();
    shown
        .map(|Shown { name, made }| match made {
            Made::Of(asked) if asked == name => name.clone(),
            Made::Of(asked) => format!("{name}={asked}"),
            Made::Average { sum, count } => format!("{name}={sum}/{count}"),
        })
        .collect()
}

#[test]
fn r134_a_function_without_a_rule_is_refused() {
    for name in ["stddev", "COUNT", ""] {
        let unknown = FoldRefusal::UnknownFunction(name.into());
        let extract = extract(&[function(name, &["line"])], &[]);
        for repeats in [Repeats::Refused, Repeats::Named, Repeats::Failing] {
            assert_eq!(FoldPlan::new(&extract, repeats), Err(unknown.clone()));
        }
        assert!(FoldPlan::combines(&extract));
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
    assert_eq!(shown(&plan), ["min", "avg=sum/count"]);
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
    assert!(plan.hides("facts.os"));
    assert_eq!(plan.rule("facts.os"), None);
    assert!(!plan.hides("status"));
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
        for repeats in [Repeats::Refused, Repeats::Named, Repeats::Failing] {
            assert_eq!(FoldPlan::new(&extract, repeats), Ok(None));
        }
    }
}

/// A function as PQL writes it, or a plain column.
fn column(text: &str) -> Column {
    match text.strip_suffix(')').and_then(|text| text.split_once('(')) {
        Some((name, "")) => function(name, &[]),
        Some((name, args)) => function(name, &args.split(',').collect::<Vec<_>>()),
        None => plain(text),
    }
}

fn columns(texts: &[&str]) -> Vec<Column> {
    texts.iter().map(|text| column(text)).collect()
}

#[test]
fn named_repeats_are_asked_for_and_averages_find_their_parts_among_them() {
    let cases: [(&[&str], &[&str], &[&str]); 11] = [
        (
            &["count()", "max(a)", "count()"],
            &["count()", "max(a)", "count()"],
            &["count", "max", "count_2"],
        ),
        (
            &["count()", "count(a)"],
            &["count()", "count(a)"],
            &["count", "count_2"],
        ),
        (
            &["avg(a)", "count()"],
            &["sum(a)", "count(a)", "count()"],
            &["avg=sum/count", "count=count_2"],
        ),
        (
            &["count()", "avg(a)"],
            &["count()", "sum(a)", "count(a)"],
            &["count", "avg=sum/count_2"],
        ),
        (
            &["sum(a)", "avg(a)", "count(a)"],
            &["sum(a)", "count(a)"],
            &["sum", "avg=sum/count", "count"],
        ),
        (
            &["avg(a)", "sum(b)", "sum(a)"],
            &["count(a)", "sum(b)", "sum(a)"],
            &["avg=sum_2/count", "sum", "sum_2"],
        ),
        (
            &["avg(a)", "avg(b)", "avg(a)"],
            &[
                "sum(a)", "count(a)", "sum(b)", "count(b)", "sum(a)", "count(a)",
            ],
            &["avg=sum/count", "avg_2=sum_2/count_2", "avg_3=sum/count"],
        ),
        (
            &["max(a)", "k", "min(a)", "max(b)", "k"],
            &["max(a)", "k", "min(a)", "max(b)", "k"],
            &["max", "min", "max_2"],
        ),
        (
            &["to_string(t,Y)", "count()", "to_string(t,M)"],
            &["to_string(t,Y)", "count()", "to_string(t,M)"],
            &["count"],
        ),
        // No entity has such a column, which is a backend's to say.
        (&["max(a)", "max"], &["max(a)", "max"], &["max"]),
        (
            &["avg(a)", "sum"],
            &["sum(a)", "count(a)", "sum"],
            &["avg=sum/count"],
        ),
    ];
    for (asked, forwarded, expected) in cases {
        let (plan, found) = planned_with(&columns(asked), &[], Repeats::Named);
        assert_eq!(found.columns, columns(forwarded), "{asked:?}");
        assert_eq!(shown(&plan), expected, "{asked:?}");
        assert_eq!(plan.rewrites(), asked != forwarded, "{asked:?}");
    }
}

#[test]
fn no_repeat_is_asked_for_where_a_backend_fails_on_it() {
    let cases: [(&[&str], &[&str], &[&str]); 7] = [
        (
            &["avg(line)", "sum(line)", "max(line)"],
            &["count(line)", "sum(line)", "max(line)"],
            &["avg=sum/count", "sum", "max"],
        ),
        (
            &["count(line)", "avg(line)"],
            &["count(line)", "sum(line)"],
            &["count", "avg=sum/count"],
        ),
        // Beside their sum, only numbers are counted.
        (
            &["avg(value)", "count()"],
            &["sum(value)", "count()"],
            &["avg=sum/count", "count"],
        ),
        (
            &["count(certname)", "avg(value)", "sum(value)"],
            &["count(certname)", "sum(value)"],
            &["count", "avg=sum/count", "sum"],
        ),
        (
            &["avg(value)"],
            &["sum(value)", "count(value)"],
            &["avg=sum/count"],
        ),
        // What the client repeats, a backend is to fail on.
        (
            &["count()", "count(line)"],
            &["count()", "count(line)"],
            &["count", "count_2"],
        ),
        (
            &["avg(line)", "avg(line)"],
            &["sum(line)", "count(line)", "sum(line)", "count(line)"],
            &["avg=sum/count", "avg_2=sum/count"],
        ),
    ];
    for (asked, forwarded, expected) in cases {
        let (plan, found) = planned_with(&columns(asked), &[], Repeats::Failing);
        assert_eq!(found.columns, columns(forwarded), "{asked:?}");
        assert_eq!(shown(&plan), expected, "{asked:?}");
    }
}

#[test]
fn an_average_that_takes_a_second_count_is_refused_where_there_can_be_none() {
    for (asked, average) in [
        (["avg(line)", "count()"], "line"),
        (["count(file)", "avg(line)"], "line"),
        // An environment may be null.
        (["avg(value)", "count(environment)"], "value"),
    ] {
        let extract = extract(&columns(&asked), &[]);
        let refused = FoldPlan::new(&extract, Repeats::Failing).unwrap_err();
        assert_eq!(refused, FoldRefusal::SecondCount(average.into()));
        assert!(refused.to_string().contains(average), "{refused}");
        assert!(FoldPlan::new(&extract, Repeats::Named).is_ok());
    }
    // Two averages are the client's own repeat.
    let own = extract(&columns(&["avg(line)", "avg(line)", "count()"]), &[]);
    assert!(FoldPlan::new(&own, Repeats::Failing).is_ok());
}

#[test]
fn row_functions_alone_are_records_unless_they_are_grouped() {
    let rows = columns(&["to_string(t,Y)", "to_string(t,M)", "k"]);
    let by = [plain("to_string"), plain("k")];
    for repeats in [Repeats::Named, Repeats::Failing] {
        assert_eq!(FoldPlan::new(&extract(&rows, &[]), repeats), Ok(None));
        let (plan, forwarded) = planned_with(&rows, &by, repeats);
        assert_eq!(forwarded, extract(&rows, &by));
        assert!(!plan.forwards_paging() && !plan.lists_records());
    }
    assert!(!FoldPlan::combines(&extract(&rows, &[])));
    // R129 knows no such difference.
    let (plan, _) = planned(&rows[1..], &by);
    assert!(plan.lists_records());
}

#[test]
fn the_count_of_rows_is_known_and_can_be_hidden() {
    let rows = |asked: &[&str], by: &[&str], repeats| {
        let (plan, _) = planned_with(&columns(asked), &columns(by), repeats);
        let name = plan.rows().map(str::to_owned);
        (name, shown(&plan.hiding_count()).join(" "))
    };
    let (named, failing) = (Repeats::Named, Repeats::Failing);
    let some = |name: &str| Some(name.to_owned());
    let all: &[&str] = &["avg(a)", "count(b)", "count()"];
    let expected = (some("count_3"), "avg=sum/count count=count_2".into());
    assert_eq!(rows(all, &[], named), expected);
    assert_eq!(rows(&["count(a)"], &[], named), (None, "count".into()));
    assert_eq!(rows(&["count(a)"], &[], failing).0, some("count"));
    assert_eq!(rows(&["avg(a)"], &[], failing).0, some("count"));
    // A group without a value is a group.
    assert_eq!(rows(&["count(a)"], &["k"], failing).0, None);
    assert_eq!(
        rows(&["count()"], &["k"], failing),
        (some("count"), String::new())
    );
}
