//! The bodies of an answer under way, each read when something can be made of it.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt};
use tokio::time::Instant;

use crate::upstream::Failure;

/// How long a body may go unread. A PuppetDB gives up a client that takes nothing for 30 seconds.
const UNREAD: Duration = Duration::from_secs(8);
/// How much is read of it then. A sender notices once a third of its buffer, which may be 4 MB, is
/// free again.
const MOVED: usize = 512 << 10;

/// What comes of a body: more bytes, or its end.
pub(super) type Next = Option<Result<Bytes, Failure>>;

/// The bodies, by the places of their backends.
pub(super) struct Feeds {
    bodies: Vec<Feed>,
    /// Whose turn it is to be looked at first, so that none is starved.
    turn: usize,
    /// When the bodies that nobody wants were looked at last.
    moved: Instant,
}

/// One body.
struct Feed {
    /// What came before it was wanted.
    ahead: VecDeque<Next>,
    /// How much more may be read before it is wanted.
    allowed: usize,
    rest: BoxStream<'static, Result<Bytes, Failure>>,
}

impl Feed {
    /// Reads ahead as far as that is allowed.
    fn poll_ahead(&mut self, context: &mut Context<'_>) {
        while self.allowed > 0 && !matches!(self.ahead.back(), Some(None | Some(Err(_)))) {
            let Poll::Ready(next) = self.rest.poll_next_unpin(context) else {
                return;
            };
            let length = next.as_ref().and_then(|next| next.as_ref().ok());
            self.allowed = self.allowed.saturating_sub(length.map_or(0, Bytes::len));
            self.ahead.push_back(next);
        }
    }
}

impl Feeds {
    /// Nothing yet.
    pub(super) fn new() -> Self {
        Self {
            bodies: Vec::new(),
            turn: 0,
            moved: Instant::now(),
        }
    }

    /// Adds the next backend's body: what has come of it, and the rest.
    pub(super) fn add(
        &mut self,
        ahead: VecDeque<Bytes>,
        rest: BoxStream<'static, Result<Bytes, Failure>>,
    ) {
        let ahead = ahead.into_iter().map(|bytes| Some(Ok(bytes))).collect();
        self.bodies.push(Feed {
            ahead,
            allowed: 0,
            rest,
        });
    }

    /// How many bytes came before they were wanted.
    pub(super) fn ahead(&self) -> usize {
        let ahead = self.bodies.iter().flat_map(|feed| &feed.ahead);
        ahead.flatten().flatten().map(Bytes::len).sum()
    }

    /// Waits for what comes first of the bodies at `wanted`.
    pub(super) async fn next(&mut self, wanted: &[u16]) -> (u16, Next) {
        self.keep_moving(wanted);
        self.turn = self.turn.wrapping_add(1);
        let turn = self.turn % wanted.len().max(1);
        let (later, first) = wanted.split_at(turn);
        poll_fn(|context| {
            for (feed, at) in self.bodies.iter_mut().zip(0u16..) {
                if !wanted.contains(&at) {
                    feed.poll_ahead(context);
                }
            }
            for at in first.iter().chain(later) {
                let feed = &mut self.bodies[usize::from(*at)];
                if let Some(next) = feed.ahead.pop_front() {
                    return Poll::Ready((*at, next));
                }
                if let Poll::Ready(next) = feed.rest.poll_next_unpin(context) {
                    return Poll::Ready((*at, next));
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Allows to read a little of the bodies that are not wanted, lest their backends take pdbmux for
    /// gone.
    fn keep_moving(&mut self, wanted: &[u16]) {
        if self.moved.elapsed() < UNREAD {
            return;
        }
        self.moved = Instant::now();
        for (feed, at) in self.bodies.iter_mut().zip(0u16..) {
            feed.allowed = if wanted.contains(&at) { 0 } else { MOVED };
        }
    }
}
