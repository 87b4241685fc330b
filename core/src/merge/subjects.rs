//! Subjects of events: what happened to each, and how many there are.

use std::ops::Range;

use crate::answer::{Answer, Pieces};
use crate::json::{Elements, Kind, Members, kind, quote, spells, unquote};
use crate::merge::group::by_backend;
use crate::merge::{Context, Merge, Merged, Outcome};
use crate::round::{Part, Reply};

/// What events are summarized by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// Their node.
    Certname,
    /// Their resource.
    Resource,
    /// The class that their resource is in.
    ContainingClass,
}

/// The columns that PuppetDB counts in. Whether it tells corrective changes from intentional ones
/// is a matter of its edition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counts {
    Plain,
    WithCorrective,
}

/// Where [`Subject::columns`] hold the status, and whether the change was corrective.
const STATUS: usize = 0;
const CORRECTIVE: usize = 1;

impl Counts {
    /// Those of events that have these values of [`Subject::columns`].
    pub(super) fn of<'b>(mut events: impl Iterator<Item = &'b [Option<&'b [u8]>]>) -> Self {
        let tells = |event: &[Option<&[u8]>]| {
            let corrective = event.get(CORRECTIVE).copied().flatten();
            corrective.is_some_and(|corrective| kind(corrective) == Kind::Bool)
        };
        if events.any(tells) {
            Self::WithCorrective
        } else {
            Self::Plain
        }
    }
}

impl Subject {
    /// The one that `summarize_by` calls `name`.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let all = [Self::Certname, Self::Resource, Self::ContainingClass];
        all.into_iter().find(|subject| subject.name() == name)
    }

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Certname => "certname",
            Self::Resource => "resource",
            Self::ContainingClass => "containing_class",
        }
    }

    /// The columns of an event that `count_by=certname` tells apart: on each subject it counts a
    /// node once for each status.
    pub(crate) fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Certname => &["status", "corrective_change", "certname"],
            Self::Resource => &[
                "status",
                "corrective_change",
                "certname",
                "resource_type",
                "resource_title",
            ],
            Self::ContainingClass => &[
                "status",
                "corrective_change",
                "certname",
                "containing_class",
            ],
        }
    }

    /// The columns that tell events of these apart, the former first.
    pub(crate) fn event_columns(self) -> &'static [&'static str] {
        match self {
            Self::Certname | Self::Resource => &[
                "status",
                "corrective_change",
                "certname",
                "resource_type",
                "resource_title",
                "property",
                "name",
                "timestamp",
                "report",
                "new_value",
                "old_value",
                "message",
            ],
            Self::ContainingClass => &[
                "status",
                "corrective_change",
                "certname",
                "containing_class",
                "resource_type",
                "resource_title",
                "property",
                "name",
                "timestamp",
                "report",
                "new_value",
                "old_value",
                "message",
            ],
        }
    }

    /// The row of event counts that one event makes.
    pub(super) fn row(self, counts: Counts, event: &[Option<&[u8]>]) -> Vec<u8> {
        let value = |at: usize| event.get(at).copied().flatten().unwrap_or(b"null");
        let is = |status| u8::from(spells(value(STATUS), status));
        let corrective = u8::from(value(CORRECTIVE) == b"true");
        let text = |at: usize| String::from_utf8_lossy(value(at));
        let subject = match self {
            Self::Certname => format!("{{\"title\":{}}}", text(2)),
            Self::Resource => format!("{{\"type\":{},\"title\":{}}}", text(3), text(4)),
            Self::ContainingClass => format!("{{\"title\":{}}}", text(3)),
        };
        let (success, noop) = (is("success"), is("noop"));
        let changes = match counts {
            Counts::Plain => format!("\"successes\":{success},\"noops\":{noop}"),
            Counts::WithCorrective => {
                let (by_intent, by_correction) = (1 - corrective, corrective);
                format!(
                    "\"intentional_successes\":{},\"corrective_successes\":{},\
                     \"intentional_noops\":{},\"corrective_noops\":{}",
                    success * by_intent,
                    success * by_correction,
                    noop * by_intent,
                    noop * by_correction,
                )
            }
        };
        let (failures, skips) = (is("failure"), is("skipped"));
        format!(
            "{{\"failures\":{failures},\"skips\":{skips},{changes},\
             \"subject_type\":\"{}\",\"subject\":{subject}}}",
            self.name()
        )
        .into_bytes()
    }
}

/// How many subjects there are, by what happened to them: one row for each way to summarize.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summaries(pub Vec<Summary>);

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// What is counted.
    pub subject: Subject,
    /// The places of the questions whose answers it is made of.
    pub asks: Range<usize>,
    /// How the backends' answers become one list of subjects.
    pub counts: Merge,
}

/// Merges a round.
pub(super) fn merge(
    Summaries(summaries): &Summaries,
    round: &[Part<'_>],
    context: Context<'_>,
) -> Merged {
    let groups = by_backend(round);
    let mut rows = Vec::new();
    let mut damaged = Vec::new();
    let mut contributed = groups.len();
    for summary in summaries {
        let parts = groups.iter().map(|group| group.parts(summary.asks.clone()));
        let parts: Vec<_> = parts.flatten().collect();
        let limits = vec![None; parts.len()];
        let mut merged = summary.counts.run(&parts, &limits, context);
        damaged.append(&mut merged.damaged);
        let answer = match merged.outcome {
            Outcome::Answer(answer) => answer,
            Outcome::Replay(at) => {
                let spoke = parts.get(at).map(|part| part.backend);
                let group = groups.iter().find(|group| Some(group.backend()) == spoke);
                let outcome = group.map_or(Outcome::Nothing, |it| Outcome::Replay(it.spoke_at()));
                return Merged { outcome, damaged };
            }
            outcome => return Merged { outcome, damaged },
        };
        contributed = contributed.min(answer.contributed);
        let bodies = parts.iter().filter_map(|part| part.reply);
        let bodies: Vec<_> = bodies
            .filter(Reply::is_success)
            .map(|reply| reply.body)
            .collect();
        rows.push(summary.row(&answer.pieces.assemble(&bodies)));
    }
    let mut pieces = Pieces::default();
    pieces.push_made(format!("[{}]", rows.join(",")).as_bytes());
    Merged {
        outcome: Outcome::Answer(Answer {
            pieces,
            total: None,
            contributed,
            dropped: 0,
        }),
        damaged,
    }
}

impl Summary {
    /// The row, given the event counts of each subject.
    fn row(&self, counts: &[u8]) -> String {
        let mut columns: Vec<(String, u64)> = Vec::new();
        let mut total: u64 = 0;
        for row in Elements::new(counts).flatten() {
            total += 1;
            let row = &counts[row];
            for (name, count) in Members::new(row).flatten() {
                let count = &row[count];
                let Some(name) = unquote(&row[name]).filter(|_| kind(count) == Kind::Number) else {
                    continue;
                };
                let has_any = serde_json::from_slice(count).is_ok_and(|count: f64| count > 0.0);
                match columns.iter_mut().find(|(known, _)| **known == *name) {
                    Some((_, subjects)) => *subjects += u64::from(has_any),
                    None => columns.push((name.into_owned(), u64::from(has_any))),
                }
            }
        }
        if columns.is_empty() {
            columns = ["failures", "skips", "successes", "noops"]
                .map(|name| (name.to_owned(), 0))
                .to_vec();
        }
        let columns: Vec<_> = columns
            .iter()
            .map(|(name, subjects)| format!("{}:{subjects}", quote(name)))
            .collect();
        format!(
            "{{\"summarize_by\":\"{}\",{},\"total\":{total}}}",
            self.subject.name(),
            columns.join(",")
        )
    }
}
