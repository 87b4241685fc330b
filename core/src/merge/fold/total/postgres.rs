//! Values read off PostgreSQL 15.18 through the JDBC driver and JSON writer of PuppetDB 7.12.1.

use super::*;

/// Inputs, and what `sum` and `avg` of them look like on the wire.
const AGGREGATES: &str = include_str!("aggregates.tsv");

/// A dividend, a whole divisor and their quotient.
const QUOTIENTS: &str = include_str!("quotients.tsv");

fn table(text: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    text.lines().map(|line| {
        let mut cells = line.split('\t');
        let mut cell = || cells.next().unwrap();
        (cell(), cell(), cell())
    })
}

fn total(text: &str) -> Total {
    Total::parse(text.as_bytes(), &mut Effort::default()).unwrap()
}

fn sum(texts: impl Iterator<Item = Total>) -> Total {
    texts
        .reduce(|a, b| a.add(b, &mut Effort::default()).unwrap())
        .unwrap()
}

fn divided(sum: Total, count: Total) -> String {
    let quotient = sum.divide(count, &mut Effort::default()).unwrap();
    quotient.unwrap().to_string()
}

#[test]
fn r116_sums_print_as_a_single_server_prints_them() {
    for (inputs, expected, _) in table(AGGREGATES) {
        let forward = sum(inputs.split(' ').map(total));
        assert_eq!(forward.to_string(), expected, "sum of {inputs}");
        let backward = sum(inputs.rsplit(' ').map(total));
        assert_eq!(
            backward.to_string(),
            *expected,
            "sum of {inputs}, backwards"
        );
    }
}

#[test]
fn averages_print_as_a_single_server_prints_them() {
    for (inputs, _, expected) in table(AGGREGATES) {
        let count = Total::Integer(inputs.split(' ').count() as i128);
        let average = divided(sum(inputs.split(' ').map(total)), count);
        assert_eq!(average, expected, "average of {inputs}");
    }
}

#[test]
fn quotients_have_the_scale_that_postgresql_chooses() {
    for (sum, count, expected) in table(QUOTIENTS) {
        assert_eq!(
            divided(total(sum), total(count)),
            *expected,
            "{sum} / {count}"
        );
    }
}

#[test]
fn printed_sums_read_back_as_themselves() {
    for (_, sum, average) in table(AGGREGATES) {
        assert_eq!(total(sum).to_string(), sum);
        assert_eq!(total(average).to_string(), average);
    }
}

#[test]
fn numbers_beyond_numeric_are_out_of_range() {
    for (text, fits) in [
        ("1e131071", true),
        ("-9.99e131071", true),
        ("1e131072", false),
        ("0.001e131074", true),
        ("0.001e131075", false),
        ("1e-16383", true),
        ("1e-16384", false),
        ("0e-16383", true),
        ("0e-16384", false),
        ("0e131072", true),
        ("1e3000000", false),
        ("1e99999999999999999999", false),
    ] {
        let read = Total::parse(text.as_bytes(), &mut Effort::default());
        assert_eq!(read.is_ok(), fits, "{text}");
        assert_eq!(in_range(text.as_bytes()).is_ok(), fits, "{text}");
    }
}

#[test]
fn a_sum_is_out_of_range_only_at_its_end() {
    let huge = || total("9e131071");
    let over = sum([huge(), huge()].into_iter());
    assert_eq!(over.check(), Err(NumberError::OutOfRange));
    let back = sum([over, total("-9e131071")].into_iter());
    assert_eq!(back.check(), Ok(()));
    assert_eq!(back, huge());
}

#[test]
fn endless_work_is_cut_short() {
    let mut effort = Effort::default();
    let outcome = (0..1000).try_fold(Total::Integer(0), |sum, _| {
        sum.add(Total::parse(b"1e131071", &mut effort)?, &mut effort)
    });
    assert_eq!(outcome, Err(NumberError::TooMuchWork));
}

#[test]
fn a_million_averages_are_no_endless_work() {
    let Effort(budget) = Effort::default();
    let mut effort = Effort(budget / 1000);
    for _ in 0..1000 {
        let sum = Total::parse(b"123456789012.75", &mut effort).unwrap();
        let sum = sum.add(Total::Integer(7), &mut effort).unwrap();
        assert!(sum.divide(Total::Integer(3), &mut effort).is_ok());
    }
}
