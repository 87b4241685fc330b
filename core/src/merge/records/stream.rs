//! Records that are written while they arrive, for answers that are too large to be held.
//!
//! What is served is what [`merge`](super::merge) would serve, in another order: a record waits only
//! as long as a copy that goes before it may still come.

mod choice;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::answer::{ArrayPieces, Pieces};
use crate::json::{Arrived, Arriving, Origin, Span, check_utf8};
use crate::merge::damage::Damage;
use crate::merge::owners::FreshnessMap;
use crate::round::BackendId;

use super::RecordMerge;
use super::scan::Layout;
use super::writer::{Marks, Writer};

use choice::{Choice, Fate, Held, Record};

/// A merge under way.
#[derive(Debug)]
pub struct Stream {
    plan: RecordMerge,
    marks: Marks,
    choice: Choice,
    /// How far each backend's body was read, in configured order.
    bodies: Vec<Arriving>,
    /// Whether a record was written.
    written: bool,
    dropped: usize,
}

/// Where records that are served lie.
enum Place {
    /// At this span of the part that was fed.
    Part(Span),
    /// Elsewhere, for a while.
    Aside,
}

impl Stream {
    /// Begins to merge what `sources` send, in configured order. `names` are those of all backends.
    pub fn new(
        plan: &RecordMerge,
        sources: &[BackendId],
        freshness: Option<Arc<FreshnessMap>>,
        names: &[String],
    ) -> Self {
        Self {
            marks: Marks::of(plan, sources.iter().copied(), names),
            choice: Choice::new(plan, sources, freshness),
            plan: plan.clone(),
            bodies: sources.iter().map(|_| Arriving::default()).collect(),
            written: false,
            dropped: 0,
        }
    }

    /// How many bytes of records wait for another backend.
    pub fn held(&self) -> usize {
        self.choice.held_bytes()
    }

    /// Whom to read next, by their places among the sources: all that have not ended, or those
    /// alone whom much is waiting for.
    pub fn wanted(&self) -> Vec<u16> {
        self.choice.wanted()
    }

    /// How many upstream records bore the source fact's name and were dropped (R070).
    pub fn dropped(&self) -> usize {
        self.dropped
    }

    /// Reads the next bytes of the backend at `from` among the sources, and gives what is to be
    /// written after what was before; [`Source::Reply`](crate::answer::Source::Reply) 0 is `part`.
    pub fn feed(&mut self, from: u16, part: &[u8]) -> Result<Pieces, Damage> {
        let layout = Layout::of(&self.plan);
        let parts = [part];
        let array = ArrayPieces::resume(&parts, self.written);
        let mut writer = Writer::new(&self.plan, &self.marks, array);
        let (choice, dropped) = (&mut self.choice, &mut self.dropped);
        // What whole records span, to be looked at in one go.
        let mut spanned: Option<Span> = None;
        let mut characters = Ok(());
        self.bodies[usize::from(from)].feed(layout.keys(), part, |arrived| {
            let Arrived {
                text,
                origin,
                span,
                fields,
            } = arrived;
            let place = match origin {
                Origin::Copy => {
                    characters = characters.and_then(|()| check_utf8(&text[span.clone()]));
                    Place::Aside
                }
                Origin::Chunk => {
                    let start = spanned.as_ref().map_or(span.start, |spanned| spanned.start);
                    spanned = Some(start..span.end);
                    Place::Part(span.clone())
                }
            };
            let Some(found) = layout.found(text, fields) else {
                *dropped += 1;
                return;
            };
            let within = |mark: Span| mark.start - span.start..mark.end - span.start;
            let record = Record {
                from,
                bytes: &text[span.clone()],
                mark: found.mark.map(within),
            };
            let number = found.name.map(|name| choice.number(name));
            match number.map_or(Fate::Serve, |number| choice.fate(from, number)) {
                Fate::Drop => {}
                Fate::Hold => choice.hold(number, &record),
                Fate::Serve => serve(&mut writer, choice, number, &record, &place),
            }
        })?;
        characters?;
        check_utf8(&part[spanned.unwrap_or_default()])?;
        let (pieces, written) = writer.array().pause();
        self.written = written;
        Ok(pieces)
    }

    /// Says that the backend at `from` has sent everything, and gives what only waited for it. A
    /// body that is not whole is damaged.
    pub fn end(&mut self, from: u16) -> Result<Pieces, Damage> {
        self.bodies[usize::from(from)].finish()?;
        let waiting = self.choice.end(from);
        Ok(self.serve_waiting(waiting))
    }

    /// Goes by `map` from now on, and gives what need not wait any longer.
    pub fn learn(&mut self, map: Arc<FreshnessMap>) -> Pieces {
        let waiting = self.choice.learn(map);
        self.serve_waiting(waiting)
    }

    fn serve_waiting(&mut self, waiting: Vec<(u32, Vec<Held>)>) -> Pieces {
        let array = ArrayPieces::resume(&[], self.written);
        let mut writer = Writer::new(&self.plan, &self.marks, array);
        for (number, held) in waiting {
            for held in held {
                let (choice, record) = (&mut self.choice, held.record());
                serve(&mut writer, choice, Some(number), &record, &Place::Aside);
            }
        }
        let (pieces, written) = writer.array().pause();
        self.written = written;
        pieces
    }
}

/// Writes what is served of a record, and its node's synthetic fact behind the first.
fn serve(
    writer: &mut Writer<'_, '_>,
    choice: &mut Choice,
    number: Option<u32>,
    record: &Record<'_>,
    place: &Place,
) {
    let mark = record.mark.clone();
    match place {
        _ if writer.writes_facts_only() => {}
        Place::Part(span) => {
            let mark = mark.map(|mark| mark.start + span.start..mark.end + span.start);
            writer.records(0, record.from, span, mark);
        }
        Place::Aside => writer.copy(record.from, record.bytes, mark),
    }
    if let Some(number) = number.filter(|_| writer.writes_facts())
        && choice.is_first(number)
    {
        let environment = record.mark.clone().map(|mark| &record.bytes[mark]);
        let environment = environment.unwrap_or(b"null");
        writer.fact(record.from, choice.name(number), environment);
    }
}
