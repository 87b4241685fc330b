//! How long whoever waits for a backend goes on waiting.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

use crate::upstream::Failure;
use crate::upstream::sockets::Purpose;

/// How long a backend may take.
#[derive(Debug, Clone, Copy)]
pub(in crate::upstream) struct Limits {
    /// When the head of its answer must be there.
    pub(in crate::upstream) head: Instant,
    /// The longest wait for the next part of the body.
    pub(in crate::upstream) silence: Duration,
    /// What it is asked for.
    pub(in crate::upstream) purpose: Purpose,
}

impl Limits {
    /// The same time for the head, from `since` on, as for each silence.
    pub(in crate::upstream) fn since(since: Instant, wait: Duration) -> Self {
        Self {
            head: since + wait,
            silence: wait,
            purpose: Purpose::Request,
        }
    }

    /// The same for a probe.
    pub(in crate::upstream) fn of_probe(wait: Duration) -> Self {
        Self {
            purpose: Purpose::Probe,
            ..Self::since(Instant::now(), wait)
        }
    }
}

/// How long others have to look at what has come, where that is theirs to do.
const LOOK: Duration = Duration::from_millis(10);

/// How long a silence may last.
///
/// The timer stays with the connection: to put it off costs nothing, while a new one would wake the
/// runtime's driver for each answer.
#[derive(Debug)]
pub(super) struct Patience {
    timer: Pin<Box<Sleep>>,
    silence: Duration,
    stage: Stage,
    reader: Reader,
}

/// Who reads what comes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reader {
    /// Whoever waits for it, and so before time is found to be over.
    Waiter,
    /// Another task, which may have had no turn since it came.
    Other,
}

#[derive(Debug, PartialEq, Eq)]
enum Stage {
    /// Something is waited for.
    Waiting,
    /// Time is over, unless it has come and was not looked at.
    Looking,
    /// Nothing is waited for, so that nothing is late.
    Resting,
}

impl Patience {
    pub(super) fn new(reader: Reader) -> Self {
        Self {
            timer: Box::pin(sleep_until(Instant::now())),
            silence: Duration::ZERO,
            stage: Stage::Resting,
            reader,
        }
    }

    /// Begins to wait for the head of an answer.
    pub(super) fn begin(&mut self, limits: Limits) {
        self.silence = limits.silence;
        self.until(limits.head);
    }

    /// Takes in that something has come.
    pub(super) fn rest(&mut self) {
        self.stage = Stage::Resting;
    }

    /// Whether it has run out; the wait begins with the first such question.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Failure> {
        if self.stage == Stage::Resting {
            self.until(Instant::now() + self.silence);
        }
        ready!(self.timer.as_mut().poll(context));
        if self.stage == Stage::Waiting && self.reader == Reader::Other {
            self.until(Instant::now() + LOOK);
            self.stage = Stage::Looking;
            ready!(self.timer.as_mut().poll(context));
        }
        Poll::Ready(Failure::Timeout(self.silence))
    }

    fn until(&mut self, deadline: Instant) {
        self.timer.as_mut().reset(deadline);
        self.stage = Stage::Waiting;
    }
}
