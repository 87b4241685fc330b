//! Sets: records that belong to no node, such as environments.
//!
//! A record that several backends list is one record. Once each is left with the first backend that
//! lists it, the answers are disjoint, and whatever the client asked for is made of them as it is
//! of records of nodes.

use std::collections::HashSet;

use crate::answer::Pieces;
use crate::json::{Records, ScanError, Span, check_utf8};
use crate::merge::fold::Canonical;
use crate::merge::group::by_backend;
use crate::merge::records::strip;
use crate::merge::subjects::{Counts, Subject};
use crate::merge::{Context, Merge, Merged, Outcome};
use crate::round::{BackendId, Part, Reply};

/// How the records of several backends become one set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetMerge {
    /// The columns that tell records apart. Those that agree in all of them are one.
    pub identity: &'static [&'static str],
    /// The columns by which a record is known in the answer to a further question, if one was asked:
    /// a record that is not there is not listed.
    pub living: &'static [&'static str],
    /// What becomes of each record.
    pub shape: Shape,
    /// How the answer is made of them.
    pub then: Box<Merge>,
}

/// What becomes of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// It stays, without the columns that were asked for beside the client's own.
    AsItCame {
        /// Those columns.
        strip: Vec<String>,
        /// The row that stands for no record at all, where functions make one of nothing.
        nothing: Option<String>,
    },
    /// It is something that happened to a subject, and is counted there.
    Counted(Subject),
}

/// Merges a round.
pub(super) fn merge(plan: &SetMerge, round: &[Part<'_>], context: Context<'_>) -> Merged {
    let groups = by_backend(round);
    let mut damaged = Vec::new();
    let mut seen = HashSet::new();
    let taken: Vec<_> = groups
        .iter()
        .map(|group| match group.answers() {
            Err(speaker) => Taken::Nothing(speaker),
            Ok(answers) => {
                let backend = group.part(0).backend;
                let mut bodies = answers.map(|answer| answer.body);
                match plan.take(bodies.next().unwrap_or_default(), bodies.next(), &mut seen) {
                    Ok(records) => Taken::Records(backend, records),
                    Err(error) => {
                        damaged.push((backend, error.into()));
                        Taken::Nothing(Part {
                            backend,
                            reply: None,
                        })
                    }
                }
            }
        })
        .collect();
    let bodies = plan.shape.bodies(&taken);
    let disjoint: Vec<_> = taken
        .iter()
        .zip(&bodies)
        .map(|(taken, body)| match *taken {
            Taken::Nothing(part) => part,
            Taken::Records(backend, _) => Part {
                backend,
                reply: Some(Reply {
                    status: 200,
                    total: None,
                    body,
                }),
            },
        })
        .collect();
    let mut merged = plan
        .then
        .run(&disjoint, &vec![None; disjoint.len()], context);
    // Bodies that were made here are sound; those that were read are not all.
    merged.damaged.append(&mut damaged);
    match &mut merged.outcome {
        Outcome::Answer(answer) => {
            let parts = disjoint.iter().filter_map(|part| part.reply);
            let bodies: Vec<_> = parts
                .filter(Reply::is_success)
                .map(|reply| reply.body)
                .collect();
            let whole = answer.pieces.assemble(&bodies);
            answer.pieces = Pieces::default();
            answer.pieces.push_made(&whole);
        }
        Outcome::Replay(at) => *at = groups[*at].spoke_at(),
        Outcome::Nothing | Outcome::Unfoldable(_) | Outcome::Instead(_) | Outcome::AskAgain(_) => {}
    }
    merged
}

/// What is taken of one backend.
enum Taken<'b> {
    /// No record: it gave this instead.
    Nothing(Part<'b>),
    /// The records that no backend before it listed.
    Records(BackendId, Vec<Record<'b>>),
}

impl<'b> Taken<'b> {
    fn records(&self) -> &[Record<'b>] {
        match self {
            Self::Nothing(_) => &[],
            Self::Records(_, records) => records,
        }
    }
}

/// A record, and the values of the columns that tell it apart.
struct Record<'b> {
    text: &'b [u8],
    columns: Vec<Option<&'b [u8]>>,
}

/// What tells a record apart, by value.
type Key<'b> = Vec<Canonical<'b>>;

fn key<'b>(columns: impl Iterator<Item = Option<&'b [u8]>>) -> Key<'b> {
    columns
        .map(|raw| Canonical::new(raw.unwrap_or(b"null")))
        .collect()
}

impl SetMerge {
    /// The records of `listed` that are not among those `seen`, nor missing among the `living`.
    fn take<'b>(
        &self,
        listed: &'b [u8],
        living: Option<&'b [u8]>,
        seen: &mut HashSet<Key<'b>>,
    ) -> Result<Vec<Record<'b>>, ScanError> {
        let living: Option<HashSet<Key<'b>>> = match living {
            None => None,
            Some(body) => {
                let records = read(body, self.living)?.into_iter();
                Some(
                    records
                        .map(|record| key(record.columns.into_iter()))
                        .collect(),
                )
            }
        };
        let known_as: Vec<_> = self
            .living
            .iter()
            .filter_map(|column| self.identity.iter().position(|known| known == column))
            .collect();
        let mut records = read(listed, self.identity)?;
        records.retain(|Record { columns, .. }| {
            let lives = living
                .as_ref()
                .is_none_or(|living| living.contains(&key(known_as.iter().map(|at| columns[*at]))));
            lives && seen.insert(key(columns.iter().copied()))
        });
        Ok(records)
    }
}

/// The records of `body`, with the values of `columns`.
fn read<'b>(body: &'b [u8], columns: &[&str]) -> Result<Vec<Record<'b>>, ScanError> {
    check_utf8(body)?;
    let mut fields: Vec<Option<Span>> = vec![None; columns.len()];
    let mut records = Records::new(body, columns);
    let mut read = Vec::new();
    while let Some(span) = records.next(&mut fields)? {
        let columns = fields.iter().cloned();
        read.push(Record {
            text: &body[span],
            columns: columns.map(|span| span.map(|span| &body[span])).collect(),
        });
    }
    Ok(read)
}

impl Shape {
    /// A body of the records taken of each backend.
    fn bodies(&self, taken: &[Taken<'_>]) -> Vec<Vec<u8>> {
        let all = || taken.iter().flat_map(Taken::records);
        let counts = Counts::of(all().map(|record| &*record.columns));
        let row = |record: &Record<'_>| match self {
            Self::AsItCame { strip: columns, .. } if columns.is_empty() => record.text.to_vec(),
            Self::AsItCame { strip: columns, .. } => strip(record.text, columns),
            Self::Counted(subject) => subject.row(counts, &record.columns),
        };
        let nothing = match self {
            Self::AsItCame { nothing, .. } if all().next().is_none() => nothing.as_deref(),
            Self::AsItCame { .. } | Self::Counted(_) => None,
        };
        let mut nothing = nothing.map(|row| row.as_bytes().to_vec());
        let body = |taken: &Taken<'_>| {
            let mut rows: Vec<_> = taken.records().iter().map(row).collect();
            if let Taken::Records(..) = taken {
                rows.extend(nothing.take());
            }
            [b"[", &*rows.join(&b','), b"]"].concat()
        };
        taken.iter().map(body).collect()
    }
}
