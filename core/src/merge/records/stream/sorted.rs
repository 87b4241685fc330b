//! Bodies that are held because their order is not ours, and are put in order one by one.

use crate::answer::{ArrayPieces, Pieces};
use crate::json::{Records, Span, check_utf8};
use crate::merge::damage::Damage;
use crate::merge::records::RecordMerge;

/// By how many members, the leading ones, a body is put in order. The rest is left to the merge.
pub(super) const AGREED: usize = 1;

/// A body's records in the order of the answer's leading member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sorted {
    /// They are already.
    AsTheyAre,
    /// They are when it is written so, the body being
    /// [`Source::Reply`](crate::answer::Source::Reply) 0.
    As(Pieces),
}

impl Sorted {
    /// Puts the records of a whole body in order. Neighbours that are equal in the leading member
    /// are moved as one, so that little is noted of a body that is nearly in order.
    pub fn of(plan: &RecordMerge, body: &[u8]) -> Result<Self, Damage> {
        check_utf8(body)?;
        let lead: Vec<&str> = plan
            .order
            .members()
            .iter()
            .take(AGREED)
            .map(|lead| &**lead)
            .collect();
        let value = |span: &Option<Span>| span.clone().map(|span| &body[span]);
        let compare = |a: &Option<Span>, b: &Option<Span>| {
            let of = |span, at| if at < AGREED { value(span) } else { None };
            plan.order.compare(|at| of(a, at), |at| of(b, at))
        };
        let mut records = Records::new(body, &lead);
        let mut field = [None];
        let mut stretches: Vec<(Option<Span>, Span)> = Vec::new();
        let mut is_sorted = true;
        while let Some(span) = records.next(&mut field)? {
            let [key] = &field;
            match stretches.last_mut() {
                Some((last, stretch)) if value(last) == value(key) => stretch.end = span.end,
                last => {
                    is_sorted &= last.is_none_or(|(last, _)| compare(last, key).is_le());
                    stretches.push((key.clone(), span));
                }
            }
        }
        if is_sorted {
            return Ok(Self::AsTheyAre);
        }
        stretches.sort_by(|(a, _), (b, _)| compare(a, b));
        let bodies = [body];
        let mut array = ArrayPieces::new(&bodies);
        for (_, stretch) in stretches {
            array.element(0, stretch);
        }
        Ok(Self::As(array.finish()))
    }
}
