//! Records that are written while they arrive, for answers that are too large to be held.
//!
//! What is served is what [`merge`](super::merge) would serve. Where that is in no order, a record
//! waits only as long as a copy that goes before it may still come ([`arrival`]); where every one is
//! served once, none waits ([`once`]). Where the backends send their records in the order of the
//! answer, they are merged as they come ([`queues`]).

mod arrival;
mod choice;
mod group;
mod nodes;
mod once;
mod queues;
mod sorted;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::answer::{ArrayPieces, Pieces};
use crate::json::{Arrived, Arriving, Origin, Span, check_utf8};
use crate::merge::damage::Damage;
use crate::merge::owners::{FreshnessMap, Shares, canonical};
use crate::round::BackendId;

use super::scan::{Found, Layout};
use super::writer::{Marks, Writer};
use super::{Keep, RecordMerge};

use choice::{Choice, Held};
use once::Once;
use queues::Queues;

pub use sorted::Sorted;

/// A merge under way.
#[derive(Debug)]
pub struct Stream {
    plan: RecordMerge,
    marks: Marks,
    /// Who owns what, where backends send records of others' nodes too.
    shares: Option<Arc<Shares>>,
    /// In configured order.
    senders: Vec<Sender>,
    /// Whether a record was written.
    written: bool,
    dropped: usize,
    by: By,
}

/// What a stream knows beside its plan and what comes.
#[derive(Debug, Clone, Copy)]
pub struct Known<'k> {
    /// Names of all configured backends, by [`BackendId`].
    pub backends: &'k [String],
    /// Whose data is newest, if that is known.
    pub freshness: Option<&'k Arc<FreshnessMap>>,
    /// Who owns what, where the nodes were divided.
    pub shares: Option<&'k Arc<Shares>>,
}

/// How far a backend's body was read.
#[derive(Debug)]
struct Sender {
    backend: BackendId,
    text: Arriving,
    /// The last name in it, and whether another backend owns that node.
    before: (Vec<u8>, Whose),
}

/// Whose node a record is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    Own,
    Others,
}

/// What decides which record is written next.
#[derive(Debug)]
enum By {
    /// That it has come, and none can go before it.
    Arrival(Box<Choice>),
    /// That it has come for the first time.
    Once(Box<Once>),
    /// The order of the answer.
    Order(Box<Queues>),
}

impl Stream {
    /// Begins to merge what `sources` send, in configured order; records that are ordered here must
    /// come so ([`RecordMerge::arrives_in_order`]).
    pub fn new(plan: &RecordMerge, sources: &[BackendId], known: Known<'_>) -> Self {
        let freshness = known.freshness.map(Arc::clone);
        let by = if plan.is_ordered_here() {
            let agreed = plan.agreed_among(sources, freshness.as_deref());
            By::Order(Box::new(Queues::new(plan, sources, freshness, agreed)))
        } else if let Keep::Each(_) = plan.keep {
            By::Once(Box::new(Once::new(sources.len())))
        } else {
            By::Arrival(Box::new(Choice::new(plan, sources, freshness)))
        };
        Self::deciding(by, plan, sources, known)
    }

    /// Begins to merge what [`Sorted`] makes of bodies that were held for their order.
    pub fn of_sorted(plan: &RecordMerge, sources: &[BackendId], known: Known<'_>) -> Self {
        let freshness = known.freshness.map(Arc::clone);
        let queues = Queues::new(plan, sources, freshness, sorted::AGREED);
        Self::deciding(By::Order(Box::new(queues)), plan, sources, known)
    }

    fn deciding(by: By, plan: &RecordMerge, sources: &[BackendId], known: Known<'_>) -> Self {
        let sender = |backend: &BackendId| Sender {
            backend: *backend,
            text: Arriving::default(),
            before: (Vec::new(), Whose::Own),
        };
        Self {
            marks: Marks::of(plan, sources.iter().copied(), known.backends),
            shares: known
                .shares
                .filter(|_| plan.keep == Keep::OfOwner)
                .map(Arc::clone),
            senders: sources.iter().map(sender).collect(),
            plan: plan.clone(),
            written: false,
            dropped: 0,
            by,
        }
    }

    /// How many bytes it takes to know what was written, or wait for another backend, or for the end
    /// of their own record.
    pub fn held(&self) -> usize {
        let waiting = match &self.by {
            By::Arrival(choice) => choice.held_bytes(),
            By::Once(once) => once.bytes(),
            By::Order(queues) => queues.held_bytes(),
        };
        let begun = self.senders.iter().map(|sender| sender.text.carried());
        waiting + begun.sum::<usize>()
    }

    /// Whom to read next, by their places among the sources; nobody once all have ended. The part
    /// that came last of these is not looked at again, those of the others are.
    pub fn wanted(&self) -> Vec<u16> {
        match &self.by {
            By::Arrival(choice) => choice.wanted(),
            By::Once(once) => once.open().to_vec(),
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
            sender: &mut self.senders[usize::from(from)],
            shares: self.shares.as_deref(),
            layout: &layout,
            dropped: &mut self.dropped,
        };
        let part = parts[usize::from(from)];
        match &mut self.by {
            By::Arrival(choice) => arrival::feed(choice, from, part, body, &mut writer)?,
            By::Once(once) => once::feed(once, from, part, body, &mut writer)?,
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
        self.senders[usize::from(from)].text.finish()?;
        let layout = Layout::of(&self.plan);
        let array = ArrayPieces::resume(parts, self.written);
        let mut writer = Writer::new(&self.plan, &self.marks, array);
        match &mut self.by {
            By::Arrival(choice) => {
                let waiting = choice.end(from);
                serve_waiting(choice, &waiting, &mut writer);
            }
            By::Once(once) => once.end(from),
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
        serve_waiting(choice, &waiting, &mut writer);
        self.pause(writer.array())
    }

    fn pause(&mut self, array: ArrayPieces<'_>) -> Pieces {
        let (pieces, written) = array.pause();
        self.written = written;
        pieces
    }
}

fn serve_waiting(choice: &mut Choice, waiting: &[(u32, Vec<Held>)], writer: &mut Writer<'_, '_>) {
    for (number, held) in waiting {
        arrival::serve_waiting(choice, *number, held, writer);
    }
}

/// A backend's body, and how it is read.
struct Body<'s, 'p> {
    sender: &'s mut Sender,
    shares: Option<&'s Shares>,
    layout: &'s Layout<'p>,
    dropped: &'s mut usize,
}

impl Body<'_, '_> {
    /// Calls `each` for the records that end in `part` and are neither dropped for their name nor of
    /// a node that another backend owns.
    fn read(
        self,
        part: &[u8],
        mut each: impl FnMut(&Arrived<'_>, Found<'_>),
    ) -> Result<(), Damage> {
        let Sender {
            backend,
            text,
            before,
        } = self.sender;
        // What whole records span, to be looked at in one go.
        let mut spanned: Option<Span> = None;
        let mut characters = Ok(());
        text.feed(self.layout.keys(), part, |arrived| {
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
            let Some(found) = self.layout.found(arrived.text, arrived.fields) else {
                *self.dropped += 1;
                return;
            };
            let is_others = |(shares, name)| whose(shares, *backend, name, before) == Whose::Others;
            if !self.shares.zip(found.name).is_some_and(is_others) {
                each(&arrived, found);
            }
        })?;
        characters?;
        check_utf8(&part[spanned.unwrap_or_default()])?;
        Ok(())
    }
}

/// Whose the node is that `raw` names. `before` is what was found last: neighbours are mostly of one
/// node.
fn whose(shares: &Shares, backend: BackendId, raw: &[u8], before: &mut (Vec<u8>, Whose)) -> Whose {
    if before.0 != raw {
        let stale = shares.stale(backend);
        let is_others = stale.is_some_and(|stale| stale.contains(&*canonical(raw)));
        before.0.clear();
        before.0.extend_from_slice(raw);
        before.1 = if is_others { Whose::Others } else { Whose::Own };
    }
    before.1
}
