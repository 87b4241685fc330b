//! What the bodies of answers may take while they are held.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::places::Stay;

/// Bodies up to this size are not counted: what they take together is bounded by the connections.
const UNCOUNTED: usize = 64 << 10;
/// What is counted in one: permits are fewer than bytes can be.
const UNIT: usize = 4 << 10;
/// How much is taken at least, where it is not known how much will come.
const STEP: usize = 1 << 20;

/// What the bodies that are held at one time take together, whoever asked for them.
#[derive(Debug, Clone)]
pub(super) struct Memory(Option<Bounded>);

#[derive(Debug, Clone)]
struct Bounded {
    left: Arc<Semaphore>,
    /// How much there is at all.
    whole: usize,
}

/// What the bodies of a round may take.
#[derive(Debug)]
pub struct Room {
    left: AtomicUsize,
    beyond: Beyond,
}

/// What becomes of a body for which there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beyond {
    /// What is left of it is read while the answer is written.
    Streams,
    /// It waits until others need theirs no longer.
    Waits,
    /// It is held all the same: others depend on it.
    Held,
}

/// That there is no room for a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoRoom {
    /// What is left of it need not be held.
    Streams,
    /// It must be, and no room came free in time.
    Refused,
}

impl Memory {
    /// So many bytes; `None` is without bound.
    pub(super) fn of(bytes: Option<usize>) -> Self {
        Self(bytes.map(|bytes| {
            let whole = (bytes / UNIT).clamp(1, Semaphore::MAX_PERMITS);
            let left = Arc::new(Semaphore::new(whole));
            Bounded { left, whole }
        }))
    }

    /// The same memory if it is as large as `before`: what is held of that counts on.
    pub(super) fn or(self, before: &Self) -> Self {
        let whole = |memory: &Self| memory.0.as_ref().map(|bounded| bounded.whole);
        if whole(&self) == whole(before) {
            before.clone()
        } else {
            self
        }
    }
}

impl Memory {
    /// How much there is at all and how much is taken, in bytes, if it is bounded.
    pub(super) fn taken(&self) -> Option<(usize, usize)> {
        let Bounded { left, whole } = self.0.as_ref()?;
        let taken = whole.saturating_sub(left.available_permits());
        Some((whole * UNIT, taken * UNIT))
    }
}

impl Room {
    /// Room for this many bytes, after which what is left is streamed.
    pub fn of(bytes: usize) -> Self {
        Self {
            left: AtomicUsize::new(bytes),
            beyond: Beyond::Streams,
        }
    }

    /// Room for whatever comes, as soon as there is some.
    pub fn unbounded() -> Self {
        Self {
            beyond: Beyond::Waits,
            ..Self::of(usize::MAX)
        }
    }

    /// Room for whatever comes, for what all others wait for.
    pub fn unconditional() -> Self {
        Self {
            beyond: Beyond::Held,
            ..Self::of(usize::MAX)
        }
    }

    /// How long what is read into it is under way.
    pub(super) fn stay(&self) -> Stay {
        match self.beyond {
            Beyond::Streams | Beyond::Waits => Stay::Long,
            Beyond::Held => Stay::Short,
        }
    }

    /// Whether what there is no room for is left unread while others are waited for.
    pub(super) fn streams(&self) -> bool {
        self.beyond == Beyond::Streams
    }

    /// Takes room for more bytes, if there is as much. Once there was not, there is none.
    pub(super) fn take(&self, bytes: usize) -> bool {
        if self.beyond != Beyond::Streams {
            return true;
        }
        let left = |room: usize| Some(room.saturating_sub(bytes));
        let before = self.left.fetch_update(Relaxed, Relaxed, left);
        before.is_ok_and(|before| before >= bytes)
    }
}

/// A body's part of the memory, which it has for as long as it is.
#[derive(Debug)]
pub struct Hold {
    memory: Memory,
    taken: Option<OwnedSemaphorePermit>,
    wait: Duration,
}

impl Hold {
    /// None yet of `memory`; to get some is waited for `wait`.
    pub(super) fn new(memory: &Memory, wait: Duration) -> Self {
        Self {
            memory: memory.clone(),
            taken: None,
            wait,
        }
    }

    /// Takes as much as a body of `bytes` needs, of which `more` are known to come.
    pub(super) async fn grow(
        &mut self,
        room: &Room,
        bytes: usize,
        more: usize,
    ) -> Result<(), NoRoom> {
        let Some(memory) = &self.memory.0 else {
            return Ok(());
        };
        let known = self
            .taken
            .as_ref()
            .map_or(0, OwnedSemaphorePermit::num_permits);
        let needed = bytes.div_ceil(UNIT);
        if room.beyond == Beyond::Held || bytes <= UNCOUNTED || needed <= known {
            return Ok(());
        }
        let full = match room.beyond {
            Beyond::Streams => NoRoom::Streams,
            Beyond::Waits | Beyond::Held => NoRoom::Refused,
        };
        // What never fits is not waited for.
        if needed + more.div_ceil(UNIT) > memory.whole {
            return Err(full);
        }
        let wanted = (bytes + more.max(STEP)).div_ceil(UNIT).min(memory.whole);
        let step = u32::try_from(wanted - known).unwrap_or(u32::MAX);
        let left = Arc::clone(&memory.left);
        let taken = match full {
            NoRoom::Streams => left.try_acquire_many_owned(step).ok(),
            NoRoom::Refused => {
                let taken = timeout(self.wait, left.acquire_many_owned(step)).await;
                taken.ok().and_then(Result::ok)
            }
        };
        let taken = taken.ok_or(full)?;
        match &mut self.taken {
            Some(known) => known.merge(taken),
            None => self.taken = Some(taken),
        }
        Ok(())
    }

    /// `body` with what it takes, which is given back with its last byte.
    pub(super) fn keep(mut self, body: Vec<u8>) -> Bytes {
        let Some(mut taken) = self.taken.take() else {
            return Bytes::from(body);
        };
        let needed = body.len().div_ceil(UNIT);
        drop(taken.split(taken.num_permits().saturating_sub(needed)));
        Bytes::from_owner(Held {
            body,
            _taken: taken,
        })
    }
}

/// A body and its part of the memory.
struct Held {
    body: Vec<u8>,
    _taken: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEGABYTE: usize = 1 << 20;

    #[tokio::test(start_paused = true)]
    async fn a_body_has_its_room_until_its_last_byte_is_gone() {
        let memory = Memory::of(Some(4 * MEGABYTE));
        let room = Room::unbounded();
        let wait = Duration::from_secs(1);
        let mut first = Hold::new(&memory, wait);
        first.grow(&room, 3 * MEGABYTE, 0).await.unwrap();
        let first = first.keep(vec![0; 3 * MEGABYTE]);
        let rest = first.slice(..1);
        drop(first);
        let mut second = Hold::new(&memory, wait);
        assert_eq!(
            second.grow(&room, 2 * MEGABYTE, 0).await,
            Err(NoRoom::Refused)
        );
        let streams = Room::of(usize::MAX);
        assert_eq!(
            second.grow(&streams, 2 * MEGABYTE, 0).await,
            Err(NoRoom::Streams)
        );
        let waiting = tokio::spawn(async move { second.grow(&room, 2 * MEGABYTE, 0).await });
        tokio::task::yield_now().await;
        drop(rest);
        assert_eq!(waiting.await.unwrap(), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn small_bodies_and_those_that_others_wait_for_need_no_room() {
        let memory = Memory::of(Some(1));
        let mut hold = Hold::new(&memory, Duration::ZERO);
        let waits = Room::unbounded();
        assert_eq!(hold.grow(&waits, UNCOUNTED, 0).await, Ok(()));
        assert_eq!(hold.grow(&waits, MEGABYTE, 0).await, Err(NoRoom::Refused));
        let unconditional = Room::unconditional();
        assert_eq!(hold.grow(&unconditional, MEGABYTE, 0).await, Ok(()));
    }
}
