//! Rows of nodes that a backend holds and another owns, left out here: the backend was not asked to
//! do so.

use crate::json::{Records, ScanError, Span, check_utf8};
use crate::merge::aggregates::{self, AggregateMerge};
use crate::merge::owners::canonical;
use crate::merge::records::strip;
use crate::merge::{Context, Merged};
use crate::round::{Part, Reply};

/// Aggregates of each node by itself: those of owned nodes are combined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sift {
    /// The columns that were asked for beside the client's own, taken out again.
    pub strip: Vec<String>,
    /// The row that stands for no record at all, where functions make one of nothing.
    pub nothing: Option<String>,
    /// How the rows that are left become one answer.
    pub then: AggregateMerge,
}

/// Merges a round.
pub(super) fn merge(plan: &Sift, round: &[Part<'_>], context: Context<'_>) -> Merged {
    let mut damaged = Vec::new();
    let mut sifted: Vec<Option<Vec<Vec<u8>>>> = Vec::new();
    for part in round {
        let body = part.reply.filter(Reply::is_success).map(|reply| reply.body);
        let rows = body.map(|body| plan.rows(body, part, context)).transpose();
        sifted.push(rows.unwrap_or_else(|error| {
            damaged.push((part.backend, error.into()));
            None
        }));
    }
    if let Some(nothing) = &plan.nothing
        && sifted.iter().flatten().all(Vec::is_empty)
        && let Some(first) = sifted.iter_mut().flatten().next()
    {
        first.push(nothing.clone().into_bytes());
    }
    let body = |rows: &Vec<Vec<u8>>| [b"[", &*rows.join(&b','), b"]"].concat();
    let bodies: Vec<_> = sifted.iter().map(|rows| rows.as_ref().map(body)).collect();
    let is_damaged = |part: &Part<'_>| damaged.iter().any(|(id, _)| *id == part.backend);
    let sifted: Vec<_> = round
        .iter()
        .zip(&bodies)
        .map(|(part, body)| Part {
            backend: part.backend,
            reply: match (part.reply, body) {
                (Some(reply), Some(body)) => Some(reply.with_body(body)),
                (_, None) if is_damaged(part) => None,
                (reply, _) => reply,
            },
        })
        .collect();
    let mut merged = aggregates::merge(&plan.then, &sifted, context).detached(&sifted);
    merged.damaged.append(&mut damaged);
    merged
}

impl Sift {
    /// The rows of a backend's answer that count, as the client asked for them.
    fn rows(
        &self,
        body: &[u8],
        part: &Part<'_>,
        context: Context<'_>,
    ) -> Result<Vec<Vec<u8>>, ScanError> {
        check_utf8(body)?;
        let stale = context.stale(part.backend);
        let mut fields: [Option<Span>; 1] = [None];
        let mut records = Records::new(body, &["certname"]);
        let mut rows = Vec::new();
        while let Some(span) = records.next(&mut fields)? {
            let certname = fields[0].clone().map(|span| canonical(&body[span]));
            if certname.is_some_and(|name| stale.is_some_and(|it| it.contains(&*name))) {
                continue;
            }
            let row = &body[span];
            rows.push(match &*self.strip {
                [] => row.to_vec(),
                columns => strip(row, columns),
            });
        }
        Ok(rows)
    }
}
