//! The connections to one kind of listener, and who of them makes room for others.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::connection::Pace;
use crate::config::plain;

/// A connection that has been idle for less than this is let be: its client may be about to ask.
const GRACE: Duration = Duration::from_secs(1);
/// Time between two looks for idle connections while room is wanted.
const LOOK: Duration = Duration::from_millis(50);
/// Most that are closed at one look, so that one look is for many newcomers.
const AT_ONCE: usize = 32;
/// Time in which a lack of room is told once.
const QUIET: Duration = Duration::from_mins(1);

/// All connections that there are.
#[derive(Debug, Default)]
pub(crate) struct Crowd {
    state: Mutex<State>,
    /// One has ended.
    left: Notify,
}

#[derive(Debug, Default)]
struct State {
    inside: HashMap<u64, Member>,
    next: u64,
    told: Option<Instant>,
}

#[derive(Debug)]
struct Member {
    pace: Arc<Pace>,
    leave: CancellationToken,
}

/// Why connections have to go.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoRoom {
    /// There are so many.
    #[error("there are as many connections as there may be, {0}")]
    Full(usize),
    /// It was not given to this process: mostly for lack of file descriptors.
    #[error("a connection could not be accepted: {}", plain(.0))]
    NotAccepted(#[from] io::Error),
    /// A backend could not be asked for it.
    #[error("there is no file descriptor left to ask a backend")]
    Unconnected,
}

/// Held for as long as a connection is open.
#[derive(Debug)]
pub(crate) struct Inside {
    crowd: Arc<Crowd>,
    number: u64,
}

impl Crowd {
    /// Takes in a connection, which ends when `leave` is cancelled.
    pub(crate) fn enter(self: &Arc<Self>, pace: &Arc<Pace>, leave: &CancellationToken) -> Inside {
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        let member = Member {
            pace: Arc::clone(pace),
            leave: leave.clone(),
        };
        state.inside.insert(number, member);
        Inside {
            crowd: Arc::clone(self),
            number,
        }
    }

    /// Waits until there are fewer than `most`. Those that have been idle for longest are closed for
    /// that; where all are busy, one of them has to end.
    pub(crate) async fn room(&self, most: usize) {
        while self.state().inside.len() >= most {
            self.make_room(&NoRoom::Full(most)).await;
        }
    }

    /// Closes some of those that have been idle for longest, and waits until one has ended, or for a
    /// moment. The log has one line of it in a while.
    pub(crate) async fn make_room(&self, why: &NoRoom) {
        let closed = self.close_idle();
        if self.is_news() {
            tracing::warn!(closed, "{why}: idle ones are closed, new ones wait");
        }
        // To wait for longer than that would be to miss one that has become idle.
        let _ended_or_not = timeout(LOOK, self.left.notified()).await;
    }

    /// How many it closes: an eighth of the idle ones, at least one.
    fn close_idle(&self) -> usize {
        let state = self.state();
        let idle = |member: &Member| member.pace.idle_since();
        let old = |since: &Instant| since.elapsed() >= GRACE;
        let members = state.inside.values();
        let mut idle: Vec<_> = members
            .filter_map(|member| Some((idle(member).filter(old)?, &member.leave)))
            .collect();
        idle.sort_unstable_by_key(|(since, _)| *since);
        let closed = (idle.len() / 8).clamp(1, AT_ONCE).min(idle.len());
        for (_, leave) in &idle[..closed] {
            leave.cancel();
        }
        closed
    }

    fn is_news(&self) -> bool {
        let told = &mut self.state().told;
        let is_news = told.is_none_or(|told| told.elapsed() >= QUIET);
        if is_news {
            *told = Some(Instant::now());
        }
        is_news
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.crowd.state().inside.remove(&self.number);
        self.crowd.left.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const IDLE: Duration = Duration::from_secs(75);

    /// Connections that began one second after the other, and what tells each to leave.
    async fn crowd(count: usize) -> (Arc<Crowd>, Vec<(Arc<Pace>, CancellationToken, Inside)>) {
        let crowd = Arc::<Crowd>::default();
        let mut all = Vec::new();
        for _ in 0..count {
            let (pace, leave) = (Pace::new(IDLE, IDLE), CancellationToken::new());
            let inside = crowd.enter(&pace, &leave);
            all.push((pace, leave, inside));
            advance(Duration::from_secs(1)).await;
        }
        (crowd, all)
    }

    fn told_to_leave(all: &[(Arc<Pace>, CancellationToken, Inside)]) -> Vec<usize> {
        let told = all.iter().enumerate();
        let told = told.filter(|(_, (_, leave, _))| leave.is_cancelled());
        told.map(|(at, _)| at).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn those_idle_for_longest_leave_and_never_one_that_is_busy() {
        let (crowd, all) = crowd(20).await;
        let _busy = all[0].0.request();
        // It has been answered just now.
        drop(all[2].0.request());
        assert_eq!(crowd.close_idle(), 2);
        assert_eq!(told_to_leave(&all), [1, 3]);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_new_is_let_be_for_a_moment() {
        let (crowd, all) = crowd(1).await;
        drop(all[0].0.request());
        assert_eq!(crowd.close_idle(), 0);
        advance(GRACE).await;
        assert_eq!(crowd.close_idle(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn where_all_are_busy_whoever_comes_waits_for_one_to_end() {
        let (crowd, mut all) = crowd(2).await;
        let busy: Vec<_> = all.iter().map(|(pace, ..)| pace.request()).collect();
        assert!(timeout(IDLE, crowd.room(2)).await.is_err());
        assert_eq!(told_to_leave(&all), [0; 0]);
        timeout(LOOK, crowd.room(3)).await.unwrap();
        drop(busy);
        all.pop();
        timeout(LOOK, crowd.room(2)).await.unwrap();
    }
}
