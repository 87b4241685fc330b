//! Sets: records that belong to no node, such as environments.
//!
//! A record that several backends list is one record. Once each is left with the first backend that
//! lists it, the answers are disjoint, and whatever the client asked for is made of them as it is
//! of records of nodes.

use std::collections::HashSet;

use crate::json::{Records, ScanError, Span, check_utf8};
use crate::merge::damage::Damage;
use crate::merge::fold::Canonical;
use crate::merge::group::{Group, by_backend};
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
    let mut seen = HashSet::new();
    let (taken, damaged) = take(&groups, |_, listed, further| {
        plan.take(listed, further, &mut seen)
    });
    let bodies = plan.shape.bodies(&taken);
    let disjoint = Disjoint {
        taken,
        bodies,
        damaged,
    };
    disjoint.merge(&groups, &plan.then, context)
}

/// Backends whose body could not be read.
type Damaged = Vec<(BackendId, Damage)>;

/// What `records` makes of each backend that answered all questions, given its place among `groups`
/// and its answers to the first and to the second, if there was one.
pub(super) fn take<'b>(
    groups: &[Group<'_, 'b>],
    mut records: impl FnMut(usize, &'b [u8], Option<&'b [u8]>) -> Result<Vec<Record<'b>>, ScanError>,
) -> (Vec<Taken<'b>>, Damaged) {
    let mut damaged = Vec::new();
    let mut taken = Vec::new();
    for (at, group) in groups.iter().enumerate() {
        let backend = group.backend();
        taken.push(match group.answers() {
            Err(speaker) => Taken::Nothing(speaker),
            Ok(answers) => {
                let mut bodies = answers.map(|answer| answer.body);
                match records(at, bodies.next().unwrap_or_default(), bodies.next()) {
                    Ok(records) => Taken::Records(backend, records),
                    Err(error) => {
                        damaged.push((backend, error.into()));
                        let reply = None;
                        Taken::Nothing(Part { backend, reply })
                    }
                }
            }
        });
    }
    (taken, damaged)
}

/// What is left of each backend's answers so that no record is in two of them.
pub(super) struct Disjoint<'b> {
    pub(super) taken: Vec<Taken<'b>>,
    /// The body for each of them.
    pub(super) bodies: Vec<Vec<u8>>,
    pub(super) damaged: Damaged,
}

impl Disjoint<'_> {
    /// Merges them, as `then` does it, into the answer of the round that `groups` divides.
    pub(super) fn merge(
        mut self,
        groups: &[Group<'_, '_>],
        then: &Merge,
        context: Context<'_>,
    ) -> Merged {
        let parts = self.taken.iter().zip(&self.bodies);
        let parts: Vec<_> = parts
            .map(|(taken, body)| match *taken {
                Taken::Nothing(part) => part,
                Taken::Records(backend, _) => Part {
                    backend,
                    reply: Some(Reply {
                        status: 200,
                        total: None,
                        body,
                        scan: None,
                    }),
                },
            })
            .collect();
        let mut merged = then.run(&parts, &vec![None; parts.len()], context);
        // Bodies that were made here are sound; those that were read are not all.
        merged.damaged.append(&mut self.damaged);
        if let Outcome::Replay(at) = &mut merged.outcome {
            *at = groups[*at].spoke_at();
        }
        merged.detached(&parts)
    }
}

/// What is taken of one backend.
pub(super) enum Taken<'b> {
    /// No record: it gave this instead.
    Nothing(Part<'b>),
    /// The records that no other backend's are taken for.
    Records(BackendId, Vec<Record<'b>>),
}

impl<'b> Taken<'b> {
    pub(super) fn records(&self) -> &[Record<'b>] {
        match self {
            Self::Nothing(_) => &[],
            Self::Records(_, records) => records,
        }
    }
}

/// A record, and the values of the columns that tell it apart.
pub(super) struct Record<'b> {
    pub(super) text: &'b [u8],
    pub(super) columns: Vec<Option<&'b [u8]>>,
}

/// What tells a record apart, by value.
pub(super) type Key<'b> = Vec<Canonical<'b>>;

pub(super) fn key<'b>(columns: impl Iterator<Item = Option<&'b [u8]>>) -> Key<'b> {
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
pub(super) fn read<'b>(body: &'b [u8], columns: &[&str]) -> Result<Vec<Record<'b>>, ScanError> {
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

/// A JSON list of these texts.
pub(super) fn list(texts: &[Vec<u8>]) -> Vec<u8> {
    [b"[", &*texts.join(&b','), b"]"].concat()
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
            list(&rows)
        };
        taken.iter().map(body).collect()
    }
}
