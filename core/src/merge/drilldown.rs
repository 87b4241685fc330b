//! What a request for the source fact shows of all its records.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::records::{self, Keep, RecordMerge, TextOrder, Total};
use super::{Context, Layout, Outcome};
use crate::answer::pretty;
use crate::paging::{RecordOrder, Window};
use crate::provenance::Provenance;
use crate::round::{BackendId, Part, Reply};

/// The part of the source fact's records that a request asks for, taken after the merge: requests
/// that differ in it alone share one cache entry (R225).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drilldown {
    /// The backend whose nodes are shown; all if the path names none (R061).
    pub value: Option<String>,
    /// The order of what is shown; empty for the order of the merged set.
    pub order: RecordOrder,
    /// The part of it that is served.
    pub window: Window,
    /// What `X-Records` says.
    pub total: Total,
    /// How it is written.
    pub layout: Layout,
}

/// The one member of a source fact that decides here.
#[derive(Deserialize)]
struct Fact<'b> {
    #[serde(borrow)]
    value: Cow<'b, str>,
}

impl Drilldown {
    /// Cuts `whole`, the array of all records of the source fact, down to what was asked for: the
    /// body to serve and its total. `None` if `whole` is no such array, which no merge makes.
    pub fn apply(&self, whole: &[u8]) -> Option<(Vec<u8>, Option<u64>)> {
        let shown = self.of_value(whole)?;
        let part = Part {
            backend: BackendId(0),
            reply: Some(Reply {
                status: 200,
                total: None,
                body: &shown,
                scan: None,
            }),
        };
        let cut = RecordMerge {
            keep: Keep::First,
            order: self.order.clone(),
            text_order: TextOrder::Bytes,
            window: self.window,
            strip: Vec::new(),
            provenance: Provenance::default(),
            total: self.total,
        };
        let context = Context {
            backends: &[],
            freshness: None,
            shares: None,
        };
        let Outcome::Answer(answer) = records::merge(&cut, &[part], &[None], context).outcome
        else {
            return None;
        };
        let body = answer.pieces.assemble(&[&shown]);
        let body = match self.layout {
            Layout::AsItCame => body,
            Layout::Pretty => pretty(&body),
        };
        Some((body, answer.total))
    }

    fn of_value<'b>(&self, whole: &'b [u8]) -> Option<Cow<'b, [u8]>> {
        let Some(value) = &self.value else {
            return Some(Cow::Borrowed(whole));
        };
        let all: Vec<&RawValue> = serde_json::from_slice(whole).ok()?;
        let mut shown = Vec::new();
        for record in all {
            let fact: Fact<'_> = serde_json::from_str(record.get()).ok()?;
            if fact.value == *value {
                shown.push(record.get());
            }
        }
        Some(Cow::Owned(format!("[{}]", shown.join(",")).into_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paging::OrderBy;

    const WHOLE: &str = r#"[{"certname":"a","environment":null,"name":"s","value":"x"},{"certname":"b","environment":"e","name":"s","value":"y\"z"},{"certname":"c","environment":"e","name":"s","value":"x"}]"#;

    fn all() -> Drilldown {
        Drilldown {
            value: None,
            order: RecordOrder::default(),
            window: Window::default(),
            total: Total::Unasked,
            layout: Layout::AsItCame,
        }
    }

    /// The certnames shown and the total.
    fn shown(drilldown: &Drilldown) -> (Vec<String>, Option<u64>) {
        let (body, total) = drilldown.apply(WHOLE.as_bytes()).unwrap();
        let records: Vec<serde_json::Value> = serde_json::from_slice(&body).unwrap();
        let certname = |record: &serde_json::Value| record["certname"].as_str().unwrap().to_owned();
        (records.iter().map(certname).collect(), total)
    }

    #[test]
    fn r057_without_a_value_it_is_the_merged_set_byte_for_byte() {
        let (body, total) = all().apply(WHOLE.as_bytes()).unwrap();
        assert_eq!((body.as_slice(), total), (WHOLE.as_bytes(), None));
    }

    #[test]
    fn r061_r225_a_value_shows_its_nodes_only() {
        for (value, expected) in [
            ("x", &["a", "c"][..]),
            ("y\"z", &["b"]),
            ("X", &[]),
            ("", &[]),
        ] {
            let drilldown = Drilldown {
                value: Some(value.to_owned()),
                ..all()
            };
            assert_eq!(shown(&drilldown).0, expected, "{value}");
        }
    }

    #[test]
    fn the_window_is_cut_after_the_value_and_the_total_counts_before_it() {
        let order = OrderBy::parse(r#"[{"field":"certname","order":"desc"}]"#).unwrap();
        let drilldown = Drilldown {
            value: Some("x".to_owned()),
            order: RecordOrder::new(&order, "facts"),
            window: Window {
                offset: 1,
                limit: Some(1),
            },
            total: Total::Counted,
            ..all()
        };
        assert_eq!(shown(&drilldown), (vec!["a".to_owned()], Some(2)));
    }

    #[test]
    fn pretty_lays_out_what_is_shown() {
        let drilldown = Drilldown {
            layout: Layout::Pretty,
            ..all()
        };
        let (body, _) = drilldown.apply(WHOLE.as_bytes()).unwrap();
        assert_eq!(body, pretty(WHOLE.as_bytes()));
    }

    #[test]
    fn what_is_no_array_of_source_facts_shows_nothing() {
        let drilldown = Drilldown {
            value: Some("x".to_owned()),
            ..all()
        };
        for body in ["{}", "[1]", r#"[{"certname":"a"}]"#, "["] {
            assert_eq!(drilldown.apply(body.as_bytes()), None, "{body}");
        }
    }
}
