//! Aggregate rows of up to three backends. The input is a query and the bodies, an empty line
//! between them.

#![no_main]

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use pdbmux_core::json::Elements;
use pdbmux_core::merge::fold::{FoldPlan, Repeats, Rows, fold};
use pdbmux_core::query::{Column, Extract, Query};
use pdbmux_fuzz::near::Words;
use pdbmux_fuzz::{is_json, is_records, parts};

const WORDS: Words = Words {
    keys: &[
        "count",
        "sum",
        "min",
        "max",
        "name",
        "environment",
        "subject",
        "c\\u006funt",
    ],
    scalars: &[
        "1",
        "-2.50",
        "null",
        "0",
        "\"a\"",
        "1e30",
        "9007199254740993",
        "1e300",
        "-0.0",
        "true",
        "170141183460469231731687303715884105727",
    ],
};

const FUNCTIONS: [&str; 7] = [
    "count",
    "sum",
    "avg",
    "min",
    "max",
    "to_string",
    "jsonb_typeof",
];

fuzz_target!(|input: &[u8]| {
    let parts = parts(input);
    let query = std::str::from_utf8(parts[0]).ok();
    let query = query.and_then(|text| Query::read(Some(text)).ok());
    let bodies: Vec<&[u8]> = parts[1..].iter().copied().take(3).collect();
    check_all(query.as_ref().and_then(Query::extract), &bodies);

    let _ = generated(&mut Unstructured::new(input));
});

fn generated(input: &mut Unstructured<'_>) -> Result<()> {
    let mut columns = |functions: &[&str]| -> Result<Vec<Column>> {
        let count = input.int_in_range(0..=3)?;
        let columns = (0..count).map(|_| {
            let name = input.choose(functions)?;
            Ok(if FUNCTIONS.contains(name) {
                Column::Function {
                    name: (*name).to_owned(),
                    args: vec!["value".to_owned()],
                }
            } else {
                Column::Plain((*name).to_owned())
            })
        });
        columns.collect()
    };
    let all = [&FUNCTIONS[..], &WORDS.keys[4..6]].concat();
    let extract = Extract {
        columns: columns(&all)?,
        group_by: columns(&WORDS.keys[4..6])?,
    };
    let bodies = [
        WORDS.records(input)?,
        WORDS.records(input)?,
        WORDS.records(input)?,
    ];
    check_all(Some(&extract), &bodies.each_ref().map(String::as_bytes));
    Ok(())
}

fn check_all(extract: Option<&Extract>, bodies: &[&[u8]]) {
    for repeats in [Repeats::Refused, Repeats::Named, Repeats::Failing] {
        if let Some(extract) = extract
            && let Ok(Some((plan, forwarded))) = FoldPlan::new(extract, repeats)
        {
            let again = FoldPlan::new(&forwarded, repeats);
            let again = again.expect("what is forwarded can be combined");
            assert_eq!(
                again.map(|(_, forwarded)| forwarded).as_ref(),
                Some(&forwarded)
            );
            check(&plan, forwarded == *extract, bodies);
        }
    }
    check(&FoldPlan::event_counts(), true, bodies);
    check(&FoldPlan::aggregate_event_counts(), true, bodies);
}

/// `verbatim` says that a backend is asked for what the client gets.
fn check(plan: &FoldPlan, verbatim: bool, bodies: &[&[u8]]) {
    let read = |body: &&'_ [u8]| Rows::read(plan, body).is_ok();
    let good: Vec<&[u8]> = bodies.iter().copied().filter(read).collect();
    let rows = |bodies: &[&[u8]]| -> Option<Vec<Vec<u8>>> {
        let answers = bodies.iter().map(|body| Rows::read(plan, body).ok());
        let rows = fold(plan, answers.collect::<Option<_>>()?).ok()?;
        Some(rows.iter().map(|row| row.bytes().to_vec()).collect())
    };
    let sizes: Vec<usize> = good
        .iter()
        .map(|body| Elements::new(body).count())
        .collect();

    for body in &good {
        if let Some(rows) = rows(&[body]) {
            let sent: Vec<&[u8]> = Elements::new(body)
                .flatten()
                .map(|row| &body[row])
                .collect();
            assert_eq!(rows.len(), sent.len(), "rows of one backend met each other");
            assert!(
                !verbatim || rows == sent,
                "one backend's answer was changed"
            );
        }
    }
    let Some(folded) = rows(&good) else { return };
    assert!(folded.len() >= sizes.iter().copied().max().unwrap_or_default());
    assert!(folded.len() <= sizes.iter().sum());
    if good.iter().all(|body| is_records(body)) {
        for row in &folded {
            assert!(is_json(row), "{} is no JSON", String::from_utf8_lossy(row));
        }
    }
    for at in 0..=good.len() {
        let mut more = good.clone();
        more.insert(at, b"[ ]");
        assert_eq!(
            rows(&more).as_ref(),
            Some(&folded),
            "an empty answer changed the rows"
        );
    }
}
