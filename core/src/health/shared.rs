//! Whether two backends are on one database, which would count everything twice.
//!
//! A node that reports to two PuppetDBs leaves reports of one hash in both, but each PuppetDB notes by
//! its own clock, to the millisecond, when it received them. Where that is the same for all that both
//! list, the rows are the same ones: of one database, or of a copy of one that has received nothing
//! since. Reports are compared where both lists reach, since one may have been read a moment later, or
//! of a copy that lags behind.

use std::collections::BTreeSet;

use serde::Deserialize;

/// How many reports are compared.
pub const NEWEST: usize = 20;
/// How many must be the same to tell anything.
const FEWEST: usize = 3;

/// What a report is known by. The order is that of the time at which its run ended.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct Receipt {
    end_time: String,
    hash: String,
    receive_time: String,
}

/// The parameters of the question for the newest reports, to be put to `/reports`. Databases have an
/// index on the time that they are ordered by.
pub fn newest_parameters() -> [(&'static str, String); 3] {
    let query = r#"["extract",["hash","end_time","receive_time"]]"#;
    let order = r#"[{"field":"end_time","order":"desc"}]"#;
    [
        ("query", query.to_owned()),
        ("order_by", order.to_owned()),
        ("limit", NEWEST.to_string()),
    ]
}

/// Reads what that is answered with; `None` if it is nothing of the kind.
pub fn read_newest(body: &[u8]) -> Option<Vec<Receipt>> {
    serde_json::from_slice(body).ok()
}

/// Whether two backends that list these as their newest reports are on one database.
pub fn is_one_database(one: &[Receipt], other: &[Receipt]) -> bool {
    // What is as old as the oldest of a full list may have been cut off.
    let begin = |list: &[Receipt]| {
        let oldest = list.iter().min().filter(|_| list.len() >= NEWEST);
        oldest.map_or(String::new(), |oldest| oldest.end_time.clone())
    };
    let end = |list: &[Receipt]| list.iter().max().map(|newest| newest.end_time.clone());
    let begin = begin(one).max(begin(other));
    let Some(end) = end(one).min(end(other)) else {
        return false;
    };
    let within = |list| -> BTreeSet<&Receipt> {
        let list: &[Receipt] = list;
        let reached = |it: &&Receipt| it.end_time > begin && it.end_time <= end;
        list.iter().filter(reached).collect()
    };
    let (one, other) = (within(one), within(other));
    one.len() >= FEWEST && one == other
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reports by the minute at which they ended, received by this clock.
    fn received(minutes: impl IntoIterator<Item = usize>, clock: usize) -> Vec<Receipt> {
        let receipt = |minute| Receipt {
            end_time: format!("2024-05-01T10:{minute:02}:00.000Z"),
            hash: format!("{minute:040x}"),
            receive_time: format!("2024-05-01T10:{minute:02}:01.{clock:03}Z"),
        };
        minutes.into_iter().map(receipt).collect()
    }

    #[test]
    fn reports_of_one_hash_and_one_time_of_receipt_tell_one_database() {
        let cases = [
            ("the same", received(0..20, 7), received(0..20, 7), true),
            (
                "read a moment later",
                received(0..20, 7),
                received(2..22, 7),
                true,
            ),
            ("much later", received(0..20, 7), received(20..40, 7), false),
            ("few", received(0..3, 7), received(0..3, 7), true),
            ("too few", received(0..2, 7), received(0..2, 7), false),
            ("none", Vec::new(), Vec::new(), false),
            ("none of one", received(0..20, 7), Vec::new(), false),
            (
                "reported to both",
                received(0..20, 7),
                received(0..20, 8),
                false,
            ),
            (
                "one received by both at once",
                received(0..20, 7),
                [received(0..1, 7), received(1..20, 8)].concat(),
                false,
            ),
            (
                "a copy that has gone its own way",
                received((0..10).chain(20..30), 7),
                received((0..10).chain(30..40), 7),
                false,
            ),
            (
                "other nodes",
                received((0..40).step_by(2), 7),
                received((1..41).step_by(2), 7),
                false,
            ),
        ];
        for (name, one, other, expected) in cases {
            assert_eq!(is_one_database(&one, &other), expected, "{name}");
            assert_eq!(is_one_database(&other, &one), expected, "{name}");
        }
    }

    #[test]
    fn what_is_no_list_of_reports_tells_nothing() {
        for body in ["", "{}", "[{}]", r#"[{"hash":"a"}]"#, "[1"] {
            assert_eq!(read_newest(body.as_bytes()), None);
        }
        let body = br#"[{"receive_time":"b","end_time":"a","hash":"c"}]"#;
        assert_eq!(read_newest(body).map(|list| list.len()), Some(1));
    }
}
