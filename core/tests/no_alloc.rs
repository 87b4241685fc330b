//! The scanner's promise that nothing is allocated per record.

use std::fmt::Write;

use pdbmux_core::json::{Elements, Members, Records};

/// An array of ten thousand facts with all that a value can hold.
fn facts() -> String {
    let mut text = String::from("[");
    for node in 0..10_000 {
        let comma = if node == 0 { "" } else { ",\n " };
        let _ = write!(
            text,
            r#"{comma}{{"certname" : "n{node}.example.net", "environment" : "production", "name" : "a", "value" : {{"{}":["\"é\u00e9{}",[[-1.5e3,{{}}],null,true]]}}}}"#,
            "k".repeat(node % 70),
            "v".repeat(node % 90),
        );
    }
    text.push(']');
    text
}

#[test]
fn nothing_is_allocated_however_many_records_there_are() {
    let text = facts();
    let mut count = 0;
    let allocations = allocation_counter::measure(|| {
        let mut records = Records::new(text.as_bytes(), &["certname", "name"]);
        let mut fields = [None, None];
        while let Ok(Some(record)) = records.next(&mut fields) {
            count += 1;
            count += Members::new(&text.as_bytes()[record]).count();
        }
        count += Elements::new(text.as_bytes()).count();
    });
    assert_eq!(count, 10_000 * (1 + 4 + 1));
    assert_eq!(allocations.count_total, 0);
}

#[test]
fn the_counter_counts() {
    let allocations = allocation_counter::measure(|| drop(facts()));
    assert!(allocations.count_total > 0);
}
