//! Metrics of how many nodes there are: what PuppetDBs count for themselves counts a node twice
//! that two of them hold.

use crate::answer::Pieces;
use crate::json::{Kind, Members, Span, kind, spells};
use crate::merge::group::by_backend;
use crate::merge::jolokia::Metrics;
use crate::merge::{Merged, Outcome, whole};
use crate::plan::census;
use crate::round::{Part, Reply};

/// What a gauge of the population counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gauge {
    /// Whatever the one question beside it counts.
    Count,
    /// The number of the second question beside it for each of the first.
    Ratio,
}

/// A gauge and how it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Population {
    /// How the backends' own metrics are merged.
    pub metrics: Metrics,
    /// What is put in the place of their number.
    pub gauge: Gauge,
}

/// Merges a round: each backend's own metric and, where a node is held twice, its counts of what it
/// owns.
pub(super) fn merge(plan: &Population, round: &[Part<'_>]) -> Merged {
    let groups = by_backend(round);
    let told: Vec<_> = groups.iter().map(|group| group.part(0)).collect();
    let mut merged = whole::metrics(&plan.metrics, &told);
    match &mut merged.outcome {
        Outcome::Answer(answer) => {
            let bodies: Vec<_> = told
                .iter()
                .filter_map(|part| part.reply.filter(Reply::is_success))
                .map(|reply| reply.body)
                .collect();
            let mut text = answer.pieces.assemble(&bodies);
            let counts = groups.iter().filter_map(|group| {
                let counts = group.answers().ok()?.skip(1);
                counts
                    .map(|reply| census(reply.body))
                    .collect::<Option<Vec<_>>>()
            });
            if let (Some(number), Some(place)) = (plan.gauge.of(counts), gauge_of(&text)) {
                text.splice(place, number.into_bytes());
            }
            answer.pieces = Pieces::default();
            answer.pieces.push_made(&text);
        }
        Outcome::Replay(at) => {
            if let Some(group) = groups.get(*at) {
                *at = group.spoke_at();
            }
        }
        _ => {}
    }
    merged
}

impl Gauge {
    /// The number as PuppetDB's metrics spell it, from what each backend counted; `None` if nothing
    /// was.
    fn of(self, counts: impl Iterator<Item = Vec<u64>>) -> Option<String> {
        let mut sums = [0u64; 2];
        let mut counted = 0;
        for counts in counts {
            counted = counted.max(counts.len());
            for (sum, count) in sums.iter_mut().zip(counts) {
                *sum = sum.saturating_add(count);
            }
        }
        match (self, counted, sums) {
            (Self::Count, 1.., [count, _]) => Some(count.to_string()),
            (Self::Ratio, 2.., [of, many]) if of > 0 => Some(ratio(many, of)),
            _ => None,
        }
    }
}

/// `many / of` as Jolokia writes Clojure's ratios: a number if it is whole, else a string.
fn ratio(many: u64, of: u64) -> String {
    let (mut a, mut b) = (many, of);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    match (many / a, of / a) {
        (whole, 1) => whole.to_string(),
        (many, of) => format!("\"{many}\\/{of}\""),
    }
}

/// Where an answer holds the gauge: in the attribute `Value`, or bare where that alone was read.
fn gauge_of(text: &[u8]) -> Option<Span> {
    let value = member(text, 0..text.len(), "value").unwrap_or(0..text.len());
    match kind(&text[value.clone()]) {
        Kind::Object => member(text, value, "Value"),
        Kind::Number | Kind::String | Kind::Null => Some(value),
        Kind::Array | Kind::Bool => None,
    }
}

fn member(text: &[u8], object: Span, name: &str) -> Option<Span> {
    let inside = &text[object.clone()];
    let mut members = Members::new(inside).map_while(Result::ok);
    let (_, value) = members.find(|(key, _)| spells(&inside[key.clone()], name))?;
    Some(object.start + value.start..object.start + value.end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::jolokia::ReadRequest;
    use crate::round::BackendId;

    fn read(gauge: Gauge, round: &[(u16, u16, &str)]) -> Merged {
        let parts: Vec<_> = round
            .iter()
            .map(|(backend, status, body)| Part {
                backend: BackendId(*backend),
                reply: Some(Reply {
                    status: *status,
                    total: None,
                    body: body.as_bytes(),
                    scan: None,
                }),
            })
            .collect();
        let path = "puppetlabs.puppetdb.population:name=num-nodes";
        let plan = Population {
            metrics: Metrics::Read(ReadRequest::from_path(path)),
            gauge,
        };
        merge(&plan, &parts)
    }

    fn text(merged: &Merged) -> String {
        let Outcome::Answer(answer) = &merged.outcome else {
            panic!("{merged:?}")
        };
        String::from_utf8(answer.pieces.assemble(&[])).unwrap()
    }

    const TEN: &str = r#"{"request":{"type":"read"},"value":{"Value":10},"status":200}"#;

    #[test]
    fn what_owners_count_goes_in_the_place_of_the_sum() {
        let told = [
            (0, 200, TEN),
            (0, 200, r#"[{"count":10}]"#),
            (1, 200, TEN),
            (1, 200, r#"[{"count":3}]"#),
        ];
        let expected = TEN.replace("10", "13");
        assert_eq!(text(&read(Gauge::Count, &told)), expected);
        // No node is held twice, so nothing was counted.
        let told = [(0, 200, TEN), (1, 200, TEN)];
        assert_eq!(text(&read(Gauge::Count, &told)), TEN.replace("10", "20"));
        let bare = r#"{"value":10,"status":200}"#;
        let told = [(0, 200, bare), (0, 200, r#"[{"count":4}]"#)];
        assert_eq!(
            text(&read(Gauge::Count, &told)),
            r#"{"value":4,"status":200}"#
        );
    }

    #[test]
    fn a_ratio_is_written_as_puppetdb_writes_it() {
        for (nodes, resources, expected) in
            [(4, 8, "2"), (4, 6, r#""3\/2""#), (3, 0, "0"), (0, 7, "10")]
        {
            let counts = [nodes, resources].map(|count| format!("[{{\"count\":{count}}}]"));
            let told = [(0, 200, TEN), (0, 200, &*counts[0]), (0, 200, &*counts[1])];
            assert_eq!(
                text(&read(Gauge::Ratio, &told)),
                TEN.replace("10", expected)
            );
        }
    }

    #[test]
    fn a_refusal_is_replayed_from_where_it_stands() {
        let told = [
            (0, 403, "no"),
            (0, 200, r#"[{"count":1}]"#),
            (1, 200, r#"[{"count":1}]"#),
            (1, 403, "no"),
        ];
        assert_eq!(read(Gauge::Count, &told).outcome, Outcome::Replay(0));
    }
}
