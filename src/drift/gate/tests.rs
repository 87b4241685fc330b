use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;

fn backends() -> Vec<String> {
    ["pdb-old", "pdb.new_2", "7"].map(str::to_owned).into()
}

/// Backend `n` has ten times `n` more of each than the count before.
fn summary() -> Summary {
    let counts = |of: u64| Counts {
        held: of,
        owned: of + 1,
        active: of + 2,
        inactive: of + 3,
        only: of + 4,
        shared: of + 5,
        stale: of + 6,
        moved: Some(of + 7),
    };
    Summary {
        backends: vec![counts(10), counts(20), counts(30)],
        all: counts(0),
    }
}

fn holds(text: &str) -> bool {
    Gate::parse(text, &backends()).unwrap().holds(&summary())
}

#[test]
fn a_gate_compares_counts_of_a_backend_or_of_all() {
    for (text, expected) in [
        ("held == 0", true),
        ("owned(pdb-old) > 0", true),
        ("owned(pdb-old)>11", false),
        ("owned(pdb-old) >= 11", true),
        (" active ( pdb.new_2 ) == 22 ", true),
        ("inactive(7) <= 32", false),
        ("only != 4", false),
        ("shared < stale", true),
        ("moved(7) == 37", true),
        ("1 < 2", true),
        // `and` binds before `or`, `not` before both.
        ("1 == 1 or 1 == 2 and 1 == 2", true),
        ("(1 == 1 or 1 == 2) and 1 == 2", false),
        ("not 1 == 2 and 1 == 1", true),
        ("not (1 == 2 or 1 == 1)", false),
        ("not not 1 == 1", true),
    ] {
        assert_eq!(holds(text), expected, "{text}");
    }
}

#[test]
fn an_expression_that_cannot_be_read_is_one_sentence_with_its_column() {
    let first = "a count, a number, \"not\" or \"(\" belongs there";
    for (text, expected) in [
        ("", format!("1: {first}, not the end")),
        ("   ", format!("4: {first}, not the end")),
        ("> 1", format!("1: {first}, not \">\"")),
        ("é > 1", format!("1: {first}, not \"é\"")),
        (
            "stale",
            "6: one of == != < <= > >= belongs there, not the end".to_owned(),
        ),
        (
            "stale = 1",
            "7: one of == != < <= > >= belongs there, not \"=\"".to_owned(),
        ),
        (
            "stale > ",
            "9: a count or a number belongs there, not the end".to_owned(),
        ),
        (
            "stale > 1 2",
            "11: \"and\", \"or\" or the end belongs there, not \"2\"".to_owned(),
        ),
        (
            "(stale > 1",
            "11: \")\" belongs there, not the end".to_owned(),
        ),
        (
            "owned(pdb-old > 1",
            "15: \")\" belongs there, not \">\"".to_owned(),
        ),
        (
            "owned() > 1",
            "7: the name of a backend belongs there, not \")\"".to_owned(),
        ),
        (
            "1 > 3x",
            "5: a count or a number belongs there, not \"3x\"".to_owned(),
        ),
        (
            "nodes > 1",
            "1: nothing is counted as \"nodes\": there are held, owned, active, inactive, only, \
             shared, stale and moved"
                .to_owned(),
        ),
        (
            "1 == owned(pdb)",
            "12: no backend is named \"pdb\": there are pdb-old, pdb.new_2, 7".to_owned(),
        ),
        (
            "1 < 99999999999999999999",
            "5: the number is too large".to_owned(),
        ),
    ] {
        let why = Gate::parse(text, &backends()).unwrap_err().to_string();
        let expected = format!("--fail-if cannot be read at column {expected}");
        assert_eq!(why, expected, "{text:?}");
    }
    let deep = "(".repeat(10_000);
    let why = Gate::parse(&deep, &backends()).unwrap_err();
    assert_eq!(why.why, GateTrouble::TooDeep);
}

#[test]
fn who_moved_is_only_asked_for_where_it_counts() {
    let asks = |text| Gate::parse(text, &backends()).unwrap().needs_moves();
    assert!(asks("moved > 1") && asks("not (1 < moved(7) or stale > 1)"));
    assert!(!asks("stale > 1 and shared == 0"));
}

fn number() -> impl Strategy<Value = Number> {
    let count = || (0..COUNTS.len()).prop_map(|at| COUNTS[at].1);
    prop_oneof![
        (0..40u64).prop_map(Number::Plain),
        count().prop_map(Number::OfAll),
        (count(), 0..3u16).prop_map(|(count, at)| Number::Of(count, BackendId(at))),
    ]
}

fn gate() -> impl Strategy<Value = Gate> {
    const COMPARISONS: [Comparison; 6] = [
        Comparison::Equal,
        Comparison::Unequal,
        Comparison::Less,
        Comparison::AtMost,
        Comparison::More,
        Comparison::AtLeast,
    ];
    let comparison = (0..6usize).prop_map(|at| COMPARISONS[at]);
    let leaf = (number(), comparison, number());
    let leaf = leaf.prop_map(|(a, comparison, b)| Gate::Compare(a, comparison, b));
    leaf.prop_recursive(5, 24, 2, |inner| {
        let two = || (inner.clone(), inner.clone());
        prop_oneof![
            two().prop_map(|(a, b)| Gate::Or(a.into(), b.into())),
            two().prop_map(|(a, b)| Gate::And(a.into(), b.into())),
            inner.clone().prop_map(|inner| Gate::Not(inner.into())),
        ]
    })
}

/// Written with all parentheses there can be.
fn written(gate: &Gate, text: &mut String) {
    let side = |number: &Number| match number {
        Number::Plain(number) => number.to_string(),
        Number::OfAll(count) => name(*count).to_owned(),
        Number::Of(count, backend) => {
            format!("{}({})", name(*count), backends()[backend.index()])
        }
    };
    match gate {
        Gate::Or(a, b) | Gate::And(a, b) => {
            text.push('(');
            written(a, text);
            text.push_str(if matches!(gate, Gate::Or(..)) {
                ")or("
            } else {
                ")and("
            });
            written(b, text);
            text.push(')');
        }
        Gate::Not(inner) => {
            text.push_str("not(");
            written(inner, text);
            text.push(')');
        }
        Gate::Compare(a, comparison, b) => {
            let sign = match comparison {
                Comparison::Equal => "==",
                Comparison::Unequal => "!=",
                Comparison::Less => "<",
                Comparison::AtMost => "<=",
                Comparison::More => ">",
                Comparison::AtLeast => ">=",
            };
            write!(text, "{} {sign}{}", side(a), side(b)).unwrap();
        }
    }
}

fn name(count: Count) -> &'static str {
    COUNTS.iter().find(|(_, known)| *known == count).unwrap().0
}

proptest! {
    #[test]
    fn what_is_written_is_read_as_it_was_meant(gate in gate()) {
        let mut text = String::new();
        written(&gate, &mut text);
        prop_assert_eq!(Gate::parse(&text, &backends()), Ok(gate), "{}", text);
    }

    #[test]
    fn any_text_is_read_or_refused_at_a_column_of_it(text in "[a-z0-9()<>=! é.-]{0,40}") {
        if let Err(why) = Gate::parse(&text, &backends()) {
            prop_assert!((1..=text.chars().count() + 1).contains(&why.column));
        }
    }
}
