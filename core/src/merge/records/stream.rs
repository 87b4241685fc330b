//! Records that are written while they arrive, for answers that are too large to be held.
//!
//! What is served is what [`merge`](super::merge) would serve. Where that is in no order, a record
//! waits only as long as a copy that goes before it may still come ([`arrival`]). Where the backends
//! send their records in the order of the answer, they are merged as they come ([`queues`]).

mod arrival;
mod choice;
mod group;
mod nodes;
mod queues;
mod sorted;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::answer::{ArrayPieces, Pieces};
use crate::json::{Arrived, Arriving, Origin, Span, check_utf8};
use crate::merge::damage::Damage;
use crate::merge::owners::FreshnessMap;
use crate::round::BackendId;

use super::RecordMerge;
use super::scan::{Found, Layout};
use super::writer::{Marks, Writer};

use choice::Choice;
use queues::Queues;

pub use sorted::Sorted;

/// A merge under way.
#[derive(Debug)]
pub struct Stream {
    plan: RecordMerge,
    marks: Marks,
    /// How far each backend's body was read, in configured order.
    bodies: Vec<Arriving>,
    /// Whether a record was written.
    written: bool,
    dropped: usize,
    by: By,
}

/// What decides which record is written next.
#[derive(Debug)]
enum By {
    /// That it has come.
    Arrival(Box<Choice>),
    /// The order of the answer.
    Order(Box<Queues>),
}

impl Stream {
    /// Begins to merge what `sources` send, in configured order; records that are ordered here must
    /// come so ([`RecordMerge::arrives_in_order`]). `names` are those of all backends.
    pub fn new(
        plan: &RecordMerge,
        sources: &[BackendId],
        freshness: Option<Arc<FreshnessMap>>,
        names: &[String],
    ) -> Self {
        Self {
            marks: Marks::of(plan, sources.iter().copied(), names),
            by: if plan.is_ordered_here() {
                let agreed = plan.agreed_among(sources, freshness.as_deref());
                By::Order(Box::new(Queues::new(plan, sources, freshness, agreed)))
            } else {
                By::Arrival(Box::new(Choice::new(plan, sources, freshness)))
            },
            plan: plan.clone(),
            bodies: sources.iter().map(|_| Arriving::default()).collect(),
            written: false,
            dropped: 0,
        }
    }

    /// Begins to merge what [`Sorted`] makes of bodies that were held for their order.
    pub fn of_sorted(
        plan: &RecordMerge,
        sources: &[BackendId],
        freshness: Option<Arc<FreshnessMap>>,
        names: &[String],
    ) -> Self {
        let queues = Queues::new(plan, sources, freshness, sorted::AGREED);
        Self {
            by: By::Order(Box::new(queues)),
            ..Self::new(plan, sources, None, names)
        }
    }

    /// How many bytes of records wait for another backend, or for their own end.
    pub fn held(&self) -> usize {
        let waiting = match &self.by {
            By::Arrival(choice) => choice.held_bytes(),
            By::Order(queues) => queues.held_bytes(),
        };
        let begun: usize = self.bodies.iter().map(Arriving::carried).sum();
        waiting + begun
    }

    /// Whom to read next, by their places among the sources; nobody once all have ended. The part
    /// that came last of these is not looked at again, those of the others are.
    pub fn wanted(&self) -> Vec<u16> {
        match &self.by {
            By::Arrival(choice) => choice.wanted(),
            By::Order(queues) => queues.wanted(),
        }
    }

    /// How many upstream records bore the source fact's name and were dropped (R070).
    pub fn dropped(&self) -> usize {
        self.dropped
    }

    /// Reads the next bytes of the backend at `from` among the sources, which is wanted, and gives
    /// what is to be written after what was before. `parts` are the bytes that came last of each;
    /// [`Source::Reply`](crate::answer::Source::Reply) counts them.
    pub fn feed(&mut self, from: u16, parts: &[&[u8]]) -> Result<Pieces, Damage> {
        let layout = Layout::of(&self.plan);
        let array = ArrayPieces::resume(parts, self.written);
        let mut writer = Writer::new(&self.plan, &self.marks, array);
        let body = Body {
            text: &mut self.bodies[usize::from(from)],
            layout: &layout,
            dropped: &mut self.dropped,
        };
        let part = parts[usize::from(from)];
        match &mut self.by {
            By::Arrival(choice) => arrival::feed(choice, from, part, body, &mut writer)?,
            By::Order(queues) => {
                queues.feed(from, part, body)?;
                queues.write(&layout, parts, &mut writer);
            }
        }
        Ok(self.pause(writer.array()))
    }

    /// Says that the backend at `from` has sent everything, and gives what only waited for it. A
    /// body that is not whole is damaged.
    pub fn end(&mut self, from: u16, parts: &[&[u8]]) -> Result<Pieces, Damage> {
        self.bodies[usize::from(from)].finish()?;
        let layout = Layout::of(&self.plan);
        let array = ArrayPieces::resume(parts, self.written);
        let mut writer = Writer::new(&self.plan, &self.marks, array);
        match &mut self.by {
            By::Arrival(choice) => {
                let waiting = choice.end(from);
                arrival::serve_waiting(choice, waiting, &mut writer);
            }
            By::Order(queues) => {
                queues.end(from);
                queues.write(&layout, parts, &mut writer);
            }
        }
        Ok(self.pause(writer.array()))
    }

    /// Goes by `map` from now on, and gives what need not wait any longer.
    pub fn learn(&mut self, map: Arc<FreshnessMap>) -> Pieces {
        let By::Arrival(choice) = &mut self.by else {
            return Pieces::default();
        };
        let waiting = choice.learn(map);
        let array = ArrayPieces::resume(&[], self.written);
        let mut writer = Writer::new(&self.plan, &self.marks, array);
        arrival::serve_waiting(choice, waiting, &mut writer);
        self.pause(writer.array())
    }

    fn pause(&mut self, array: ArrayPieces<'_>) -> Pieces {
        let (pieces, written) = array.pause();
        self.written = written;
        pieces
    }
}

/// A backend's body, and how it is read.
struct Body<'s, 'p> {
    text: &'s mut Arriving,
    layout: &'s Layout<'p>,
    dropped: &'s mut usize,
}

impl Body<'_, '_> {
    /// Calls `each` for the records that end in `part` and are not dropped for their name.
    fn read(
        self,
        part: &[u8],
        mut each: impl FnMut(&Arrived<'_>, Found<'_>),
    ) -> Result<(), Damage> {
        // What whole records span, to be looked at in one go.
        let mut spanned: Option<Span> = None;
        let mut characters = Ok(());
        self.text.feed(self.layout.keys(), part, |arrived| {
            let span = arrived.span.clone();
            match arrived.origin {
                Origin::Copy => {
                    characters = characters.and_then(|()| check_utf8(&arrived.text[span]));
                }
                Origin::Chunk => {
                    let start = spanned.as_ref().map_or(span.start, |spanned| spanned.start);
                    spanned = Some(start..span.end);
                }
            }
            match self.layout.found(arrived.text, arrived.fields) {
                Some(found) => each(&arrived, found),
                None => *self.dropped += 1,
            }
        })?;
        characters?;
        check_utf8(&part[spanned.unwrap_or_default()])?;
        Ok(())
    }
}
