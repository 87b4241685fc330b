//! Whose copy of a report counts where several backends have it.
//!
//! History is a union: every report counts, whoever holds it, and once. Only nodes that several
//! backends hold can have a report twice, and only where the times of their reports overlap. So the
//! backends are asked for the span of each such node's reports, then for the hashes inside the
//! overlaps. The node's owner speaks for a report that it has, else the first that has it.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;

use super::shares::{ALWAYS, Shares, among, one_of};
use crate::json::{Records, ScanError};
use crate::plan::Ask;
use crate::round::BackendId;

/// What is left out of a backend's reports, as conditions on what counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// On reports.
    pub(super) reports: String,
    /// On events.
    pub(super) events: String,
}

/// The reports of one node in one backend.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Past<'b> {
    certname: &'b [u8],
    count: u64,
    first: Timestamp,
    last: Timestamp,
    /// When the last of them came, by the backend's clock.
    received: Timestamp,
}

/// Certname and hash of a report, as JSON.
type Held<'b> = (&'b [u8], &'b [u8]);

/// The spans of the reports of nodes that are held twice.
#[derive(Debug, PartialEq, Eq)]
pub struct Pasts<'b> {
    backends: Vec<(BackendId, Vec<Past<'b>>)>,
}

/// The question for the spans; `None` if no node is held twice.
///
/// Without the type, PuppetDB leaves out reports of plans.
pub fn spans_ask(shares: &Shares) -> Option<Ask> {
    let certnames = shares.shared();
    if certnames.is_empty() {
        return None;
    }
    let query = format!(
        r#"["extract",["certname",["function","count"],["function","min","producer_timestamp"],["function","max","producer_timestamp"],["function","max","receive_time"]],["and",["=","type","any"],{}],["group_by","certname"]]"#,
        among(certnames)
    );
    Some(Ask::own("/pdb/query/v4/reports", &[("query", &query)]))
}

impl<'b> Pasts<'b> {
    /// Reads the answers to [`spans_ask`]; those that cannot be read are told.
    pub fn read(bodies: &[(BackendId, &'b [u8])]) -> (Self, Vec<(BackendId, ScanError)>) {
        let mut damaged = Vec::new();
        let mut backends = Vec::new();
        for &(backend, body) in bodies {
            match read_pasts(body) {
                Ok(pasts) => backends.push((backend, pasts)),
                Err(error) => damaged.push((backend, error)),
            }
        }
        (Self { backends }, damaged)
    }

    /// The question for the reports that may be held twice; `None` if no spans overlap.
    pub fn overlaps_ask(&self) -> Option<Ask> {
        let mut spans: HashMap<&[u8], Vec<(Timestamp, Timestamp)>> = HashMap::new();
        for past in self.backends.iter().flat_map(|(_, pasts)| pasts) {
            let known = spans.entry(past.certname).or_default();
            known.push((past.first, past.last));
        }
        let overlap = |spans: &[(Timestamp, Timestamp)]| {
            let pairs = spans.iter().enumerate().flat_map(|(at, one)| {
                let others = spans[at + 1..].iter();
                others.map(move |other| (one.0.max(other.0), one.1.min(other.1)))
            });
            pairs.filter(|(from, to)| from <= to).reduce(widest)
        };
        let overlaps: Vec<_> = spans
            .iter()
            .filter_map(|(certname, spans)| Some((*certname, overlap(spans)?)))
            .collect();
        let (from, to) = overlaps.iter().map(|(_, span)| *span).reduce(widest)?;
        let names = overlaps.iter().map(|(certname, _)| *certname).collect();
        let query = format!(
            r#"["extract",["certname","hash"],["and",["=","type","any"],[">=","producer_timestamp","{from}"],["<=","producer_timestamp","{to}"],{}]]"#,
            among(names)
        );
        Some(Ask::own("/pdb/query/v4/reports", &[("query", &query)]))
    }
}

fn widest(a: (Timestamp, Timestamp), b: (Timestamp, Timestamp)) -> (Timestamp, Timestamp) {
    (a.0.min(b.0), a.1.max(b.1))
}

fn read_pasts(body: &[u8]) -> Result<Vec<Past<'_>>, ScanError> {
    // The second of two columns of one function is called `max_2`.
    let mut records = Records::new(body, &["certname", "count", "min", "max", "max_2"]);
    let mut fields = [const { None }; 5];
    let mut pasts = Vec::new();
    while records.next(&mut fields)?.is_some() {
        let text = |at: usize| fields[at].clone().map(|span| &body[span]);
        let count = text(1).and_then(|raw| std::str::from_utf8(raw).ok()?.parse().ok());
        let (Some(certname), Some(count), Some(first), Some(last), Some(received)) = (
            text(0),
            count,
            super::time(text(2)),
            super::time(text(3)),
            super::time(text(4)),
        ) else {
            continue;
        };
        pasts.push(Past {
            certname,
            count,
            first,
            last,
            received,
        });
    }
    Ok(pasts)
}

impl Shares {
    /// The same shares, with what counts of each backend's history. `hashes` are the answers to
    /// [`Pasts::overlaps_ask`], empty if there was nothing to ask.
    #[must_use]
    pub fn with_history(mut self, pasts: &Pasts<'_>, hashes: &[(BackendId, &[u8])]) -> Self {
        let held: Vec<(BackendId, Vec<Held<'_>>)> = hashes
            .iter()
            .map(|(backend, body)| (*backend, read_hashes(body)))
            .collect();
        // Owners speak first: what they have is told before what others have.
        let mut told: HashSet<&[u8]> = HashSet::new();
        for (backend, hashes) in &held {
            let stale = self.stale(*backend);
            let is_stale = |certname: &[u8]| stale.is_some_and(|it| it.contains(certname));
            let own = hashes.iter().filter(|(certname, _)| !is_stale(certname));
            told.extend(own.map(|(_, hash)| *hash));
        }
        for (backend, share) in &mut self.shares {
            let stale = &share.stale;
            let hashes = held.iter().find(|(id, _)| id == backend);
            let mut twice: HashMap<&[u8], Vec<&[u8]>> = HashMap::new();
            for (certname, hash) in hashes.map_or(&[][..], |(_, hashes)| hashes) {
                if stale.contains(*certname) && !told.insert(hash) {
                    twice.entry(certname).or_default().push(hash);
                }
            }
            let pasts = pasts.backends.iter().find(|(id, _)| id == backend);
            let pasts = pasts.map_or(&[][..], |(_, pasts)| pasts);
            share.history = Some(conditions(stale, twice, pasts));
        }
        self
    }
}

/// What counts of one backend's history. `stale` are the nodes that others own, `twice` the reports
/// of them that others speak for.
fn conditions(
    stale: &HashSet<Box<[u8]>>,
    mut twice: HashMap<&[u8], Vec<&[u8]>>,
    pasts: &[Past<'_>],
) -> History {
    // A node all of whose reports are told elsewhere is left out by its name.
    let mut whole = Vec::new();
    for past in pasts {
        let all = |hashes: &Vec<&[u8]>| hashes.len() as u64 == past.count;
        if twice.get(past.certname).is_some_and(all) {
            twice.remove(past.certname);
            whole.push(past.certname);
        }
    }
    let rest: Vec<_> = stale
        .iter()
        .map(|name| &**name)
        .filter(|name| !whole.contains(name))
        .collect();
    let received = pasts.iter().map(|past| past.received).max();
    let hashes: Vec<_> = twice.into_values().flatten().collect();
    let written = |hash: &str, received_by: &str| {
        let mut clauses = Vec::new();
        if !whole.is_empty() {
            clauses.push(format!("[\"not\",{}]", among(whole.clone())));
        }
        if !rest.is_empty() {
            let rest = among(rest.clone());
            // What came after the spans were told may have come to the owner as well.
            clauses.push(match received.and_then(just_after) {
                Some(end) => {
                    format!("[\"not\",[\"and\",[\">\",\"{received_by}\",\"{end}\"],{rest}]]")
                }
                None => format!("[\"not\",{rest}]"),
            });
        }
        if !hashes.is_empty() {
            clauses.push(format!("[\"not\",{}]", one_of(hash, hashes.clone())));
        }
        match &*clauses {
            [] => ALWAYS.to_owned(),
            [only] => only.clone(),
            _ => format!("[\"and\",{}]", clauses.join(",")),
        }
    };
    History {
        reports: written("hash", "receive_time"),
        events: written("report", "report_receive_time"),
    }
}

/// PuppetDB keeps microseconds and tells milliseconds.
fn just_after(time: Timestamp) -> Option<Timestamp> {
    time.checked_add(jiff::SignedDuration::from_millis(1)).ok()
}

/// Certname and hash of each report. What is damaged here was found to be sound before.
fn read_hashes(body: &[u8]) -> Vec<Held<'_>> {
    let mut records = Records::new(body, &["certname", "hash"]);
    let mut fields = [const { None }; 2];
    let mut hashes = Vec::new();
    while let Ok(Some(_)) = records.next(&mut fields) {
        if let [Some(certname), Some(hash)] = &fields {
            hashes.push((&body[certname.clone()], &body[hash.clone()]));
        }
    }
    hashes
}

/// Whether a body can be read as [`Shares::with_history`] reads it.
pub fn check_hashes(body: &[u8]) -> Result<(), ScanError> {
    let mut records = Records::new(body, &[]);
    while records.next(&mut [])?.is_some() {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::owners::FreshnessMap;

    const A: BackendId = BackendId(0);
    const B: BackendId = BackendId(1);

    /// Reports of one node: hash and the minute in which each was made.
    type Reports<'r> = &'r [(&'r str, u32)];

    fn minute(minute: u32) -> String {
        format!("2026-01-01T00:{minute:02}:00.000Z")
    }

    fn spans(certname: &str, reports: Reports<'_>) -> String {
        let minutes = || reports.iter().map(|(_, minute)| *minute);
        let (Some(first), Some(last)) = (minutes().min(), minutes().max()) else {
            return "[]".to_owned();
        };
        format!(
            r#"[{{"certname":"{certname}","count":{},"min":"{}","max":"{}","max_2":"{}"}}]"#,
            reports.len(),
            minute(first),
            minute(last),
            minute(last + 30)
        )
    }

    fn hashes(certname: &str, reports: Reports<'_>) -> String {
        let rows = reports.iter();
        let rows = rows.map(|(hash, _)| format!(r#"{{"certname":"{certname}","hash":"{hash}"}}"#));
        format!("[{}]", rows.collect::<Vec<_>>().join(","))
    }

    /// What counts of each backend's reports of `n`, which b owns, and whether hashes were needed.
    fn counted(a: Reports<'_>, b: Reports<'_>) -> ([String; 2], bool) {
        let node = |at| {
            format!(
                r#"[{{"certname":"n","report_timestamp":"{}"}}]"#,
                minute(at)
            )
        };
        let (old, new) = (node(1), node(2));
        let (map, _) = FreshnessMap::build(&[(A, old.as_bytes()), (B, new.as_bytes())]);
        let shares = map.shares(&[A, B], None, &[], usize::MAX);
        assert!(spans_ask(&shares).unwrap().target().contains("max"));
        let spans = [spans("n", a), spans("n", b)];
        let (pasts, damaged) = Pasts::read(&[(A, spans[0].as_bytes()), (B, spans[1].as_bytes())]);
        assert!(damaged.is_empty());
        let asked = pasts.overlaps_ask().is_some();
        let hashes = [hashes("n", a), hashes("n", b)];
        let hashes = [(A, hashes[0].as_bytes()), (B, hashes[1].as_bytes())];
        let shares = shares.with_history(&pasts, if asked { &hashes } else { &[] });
        let reports = |id| shares.of(id).unwrap().reports().unwrap().to_owned();
        ([reports(A), reports(B)], asked)
    }

    const N: &str = r#"["or",["in","certname",["array",["n"]]]]"#;

    fn until(end: &str) -> String {
        format!(r#"["not",["and",[">","receive_time","{end}"],{N}]]"#)
    }

    #[test]
    fn reports_of_a_node_that_moved_all_count_up_to_what_was_seen() {
        let (counts, asked) = counted(&[("x", 1), ("y", 2)], &[("z", 3)]);
        assert!(!asked, "no span overlaps another");
        assert_eq!(
            counts,
            [until("2026-01-01T00:32:00.001Z"), ALWAYS.to_owned()]
        );
    }

    #[test]
    fn a_copy_of_what_the_owner_has_does_not_count() {
        let (counts, asked) = counted(&[("x", 1), ("y", 3)], &[("y", 3), ("z", 4)]);
        assert!(asked);
        let copy = r#"["not",["or",["in","hash",["array",["y"]]]]]"#;
        let end = until("2026-01-01T00:33:00.001Z");
        assert_eq!(
            counts,
            [format!("[\"and\",{end},{copy}]"), ALWAYS.to_owned()]
        );
    }

    #[test]
    fn a_node_all_of_whose_reports_are_copies_is_left_out_by_name() {
        let (counts, _) = counted(&[("x", 1), ("y", 2)], &[("x", 1), ("y", 2), ("z", 4)]);
        assert_eq!(counts, [format!("[\"not\",{N}]"), ALWAYS.to_owned()]);
    }

    #[test]
    fn spans_that_overlap_without_a_copy_count_in_both() {
        let (counts, asked) = counted(&[("x", 1), ("y", 4)], &[("z", 3)]);
        assert!(asked);
        assert_eq!(
            counts,
            [until("2026-01-01T00:34:00.001Z"), ALWAYS.to_owned()]
        );
    }

    #[test]
    fn a_node_without_reports_in_one_backend_has_no_copies() {
        let (counts, asked) = counted(&[], &[("z", 3)]);
        assert!(!asked);
        assert_eq!(counts, [format!("[\"not\",{N}]"), ALWAYS.to_owned()]);
    }

    #[test]
    fn events_count_with_their_reports() {
        let node = r#"[{"certname":"n"}]"#.as_bytes();
        let (map, _) = FreshnessMap::build(&[(A, node), (B, node)]);
        let shares = map.shares(&[A, B], None, &[], usize::MAX);
        let (a, b) = (
            spans("n", &[("x", 1), ("y", 3)]),
            spans("n", &[("w", 2), ("y", 3)]),
        );
        let (pasts, _) = Pasts::read(&[(A, a.as_bytes()), (B, b.as_bytes())]);
        let (a, b) = (hashes("n", &[("y", 3)]), hashes("n", &[("w", 2), ("y", 3)]));
        let shares = shares.with_history(&pasts, &[(A, a.as_bytes()), (B, b.as_bytes())]);
        let end = "2026-01-01T00:33:00.001Z";
        // Of equals the first owns.
        assert_eq!(shares.of(A).unwrap().events(), Some(ALWAYS));
        assert_eq!(
            shares.of(B).unwrap().events(),
            Some(&*format!(
                r#"["and",["not",["and",[">","report_receive_time","{end}"],{N}]],["not",["or",["in","report",["array",["y"]]]]]]"#
            ))
        );
    }

    #[test]
    fn a_damaged_answer_is_told() {
        let (_, damaged) = Pasts::read(&[(A, b"[{]")]);
        assert_eq!(damaged.len(), 1);
        assert!(check_hashes(b"[{}").is_err());
        assert!(check_hashes(b"[{}]").is_ok());
    }
}
