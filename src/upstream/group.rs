//! A backend as answers know it: one PuppetDB, or several on one database, of which one answers for
//! all.
//!
//! All questions go to the same one for as long as it answers, and to the next when it does not: what
//! is told in one request then fits together, also where one of them reads a copy of the database
//! that lags behind, and only one of many requests waits for a PuppetDB that hangs.

mod budget;
mod member;
mod stand_in;

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use futures_util::future::{Either, select};
use http::Response;
use pdbmux_core::health::ejection::Outcome;
use pdbmux_core::plan::{Ask, Sent};
use pdbmux_core::round::BackendId;
use tokio::time::{Instant, sleep};

use super::eject::Role;
use super::monitor::Monitor;
use super::places::{Place, Stay};
use super::room::Room;
use super::{Failure, Incoming, Upstream, Via, trace};
use crate::config::{Config, Group};
use crate::metrics::{self, TakeOver};
use budget::Budget;

pub(super) use member::Means;
pub use member::{Member, MemberId};

/// What answers as one backend, and the ways to ask it.
#[derive(Debug)]
pub struct Backend {
    /// Its place in the configured order.
    pub id: BackendId,
    /// Its name in answers and logs: a PuppetDB's, or a group's.
    pub name: String,
    /// What is counted of its answers; the questions are of its members.
    pub counts: Arc<metrics::Backend>,
    /// Whether an answer without it is none.
    pub is_required: bool,
    members: Vec<Member>,
    /// Which of them answered last.
    preferred: AtomicUsize,
    budget: Budget,
    /// What is counted of it as a group.
    grouped: Arc<metrics::Group>,
}

/// What can be told of an answer that was asked for, whole or not.
pub(super) trait Answered {
    /// Its status.
    fn status(&self) -> u16;
    /// Its body, if it was read.
    fn body(&self) -> Option<Bytes>;
}

/// How a question is asked.
#[derive(Debug)]
pub(super) struct Asking {
    /// How long it is under way.
    pub(super) stay: Stay,
    /// The place that it has already, and who is asked there first.
    pub(super) reserved: Option<Reserved>,
    /// Who of the group has answered it in vain, and what was wrong with that.
    pub(super) instead_of: Option<(MemberId, TakeOver)>,
}

/// A place that was taken, or not to be had, before the question is asked.
#[derive(Debug)]
pub(super) struct Reserved {
    member: MemberId,
    place: Result<Place, Failure>,
    since: Instant,
}

impl Asking {
    /// One that has no place yet.
    pub(super) fn at(stay: Stay) -> Self {
        Self {
            stay,
            reserved: None,
            instead_of: None,
        }
    }
}

/// The beginning of an answer, or why there is none.
struct Head<'b> {
    member: &'b Member,
    sent: Sent,
    began: Instant,
    result: Result<Response<Incoming>, Failure>,
}

impl Head<'_> {
    fn via(&self) -> Via {
        Via {
            member: self.member.id,
            asked: self.began,
            role: Role::Speaker,
        }
    }

    fn is_good(&self) -> bool {
        matches!(&self.result, Ok(response) if response.status().as_u16() < 500)
    }
}

impl Backend {
    /// A backend of a configuration. Connects to nobody yet.
    pub(super) fn new(
        id: BackendId,
        group: &Group<'_>,
        means: &Means<'_>,
        config: &Config,
    ) -> Self {
        let members = group.members.iter().zip(0..).map(|(member, at)| {
            let id = MemberId { backend: id, at };
            Member::new(id, member, means, config)
        });
        Self {
            id,
            name: group.name.to_owned(),
            counts: means.metrics.backend(group.name),
            is_required: group.is_required(),
            members: members.collect(),
            preferred: AtomicUsize::new(0),
            budget: Budget::new(),
            grouped: match group.members.len() {
                // There is nothing to count.
                ..2 => Arc::default(),
                2.. => means.metrics.group(group.name),
            },
        }
    }

    /// The PuppetDBs that answer for it, in configured order; one, if it is no group.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Its name, if it is a group.
    pub(super) fn group(&self) -> Option<&str> {
        (self.members.len() > 1).then_some(&self.name)
    }

    /// Those of its members that can be asked now, the one first that answered last; those last that
    /// are asked as much as they may be.
    fn candidates(&self, monitor: &Monitor, stay: Stay) -> VecDeque<&Member> {
        let preferred = self.preferred.load(Relaxed);
        let mut candidates: Vec<_> = self.members.iter().map(|member| member.id).collect();
        candidates[..=preferred].rotate_right(1);
        let usable = monitor.usable(&candidates, Instant::now());
        let usable = usable.iter().map(|id| &self.members[id.index()]);
        let mut usable: Vec<_> = usable.collect();
        usable.sort_by_key(|member| !member.places.is_free(stay));
        usable.into()
    }
}

impl Upstream {
    /// Asks a backend and has `read` make something of its answer. Where it is a group, one member is
    /// asked after the other until that succeeds.
    pub(super) async fn ask_for<T, R>(
        &self,
        backend: BackendId,
        ask: &Ask,
        asking: Asking,
        read: impl Fn(Response<Incoming>) -> R,
    ) -> (Option<Via>, Result<T, Failure>)
    where
        T: Answered,
        R: Future<Output = Result<T, Failure>>,
    {
        let backend = self.backend(backend);
        match &*backend.members {
            [only] => {
                let head = self.head(only, ask, asking).await;
                (Some(head.via()), finish(head, &read).await)
            }
            // Rare: boxed, so that no other question makes room for it.
            _ => Box::pin(self.ask_group(backend, ask, asking, read)).await,
        }
    }

    /// Takes places for questions that may keep them while others of the same round are waited for:
    /// one after the other, in configured order. Otherwise two rounds could each wait for what the
    /// other has. None where nothing is to be waited for.
    pub(super) async fn reserve(&self, asks: &[(BackendId, Ask)], room: &Room) -> Vec<Reserved> {
        let mut reserved = Vec::new();
        if !room.streams() || !self.members().any(|member| member.places.are_bounded()) {
            return reserved;
        }
        let (stay, since) = (room.stay(), Instant::now());
        for (backend, _) in asks {
            let candidates = self.backend(*backend).candidates(&self.monitor, stay);
            if let Some(member) = candidates.front() {
                reserved.push(Reserved {
                    member: member.id,
                    place: member.place(stay, since).await,
                    since,
                });
            }
        }
        reserved
    }

    async fn ask_group<T, R>(
        &self,
        backend: &Backend,
        ask: &Ask,
        mut asking: Asking,
        read: impl Fn(Response<Incoming>) -> R,
    ) -> (Option<Via>, Result<T, Failure>)
    where
        T: Answered,
        R: Future<Output = Result<T, Failure>>,
    {
        backend.budget.earn();
        let stay = asking.stay;
        let mut left = backend.candidates(&self.monitor, stay);
        if let Some(reserved) = &asking.reserved {
            left.retain(|member| member.id != reserved.member);
            left.push_front(self.member(reserved.member));
        }
        let mut broken = None;
        if let Some((member, why)) = asking.instead_of {
            left.retain(|other| other.id != member);
            broken = Some(why);
        }
        let mut last = (None, Err(Failure::OutOfService));
        // Whose error the question may be to blame for, until another answers it.
        let mut erring = Vec::new();
        while let Some(member) = left.pop_front() {
            let now = std::mem::replace(&mut asking, Asking::at(stay));
            let head = self.first_head(member, ask, now, backend, &mut left).await;
            let (member, via) = (head.member, head.via());
            let result = finish(head, &read).await;
            let why = match &result {
                Ok(answer) if answer.status() >= 500 => {
                    erring.push(via);
                    broken = Some(TakeOver::Failure);
                    Failure::Status(answer.status()).to_string()
                }
                Err(failure) if !failure.is_for_lack_of_room() => {
                    if !left.is_empty() {
                        self.judge_failure(Some(via), failure);
                    }
                    broken = Some(failure.take_over());
                    failure.to_string()
                }
                Ok(_) | Err(_) => {
                    if let (Some(why), Ok(_)) = (broken, &result) {
                        backend.grouped.taken_over(why);
                    }
                    backend.preferred.store(member.id.index(), Relaxed);
                    for via in erring {
                        self.learn_by(via, Outcome::Failure);
                    }
                    return (Some(via), result);
                }
            };
            last = (Some(via), result);
            if !left.is_empty() {
                let (group, backend) = (&backend.name, &member.name);
                tracing::warn!(backend, group, why, "another of its group is asked");
            }
        }
        last
    }

    /// Asks a member of a group, and if its answer does not begin in time, the next as well: the first
    /// good answer counts, and the other is given up.
    async fn first_head<'b>(
        &self,
        member: &'b Member,
        ask: &Ask,
        asking: Asking,
        backend: &Backend,
        left: &mut VecDeque<&'b Member>,
    ) -> Head<'b> {
        let stay = asking.stay;
        let mut first = pin!(self.head(member, ask, asking));
        let (Some(after), Some(next)) = (member.hedge_after, left.front().copied()) else {
            return first.await;
        };
        match select(first.as_mut(), pin!(sleep(after))).await {
            Either::Left((head, _)) => return head,
            Either::Right(_) if backend.budget.spend() => backend.grouped.hedged(),
            Either::Right(_) => {
                backend.grouped.not_hedged();
                return first.await;
            }
        }
        let second = pin!(self.head(next, ask, Asking::at(stay)));
        left.pop_front();
        let head = match select(first, second).await {
            Either::Left((head, _)) | Either::Right((head, _)) if head.is_good() => head,
            Either::Left((bad, other)) | Either::Right((bad, other)) => {
                note(&bad);
                if let Err(failure) = &bad.result {
                    self.judge_failure(Some(bad.via()), failure);
                }
                other.await
            }
        };
        if head.member.id == next.id && head.is_good() {
            backend.grouped.hedge_won();
        }
        head
    }

    async fn head<'b>(&self, member: &'b Member, ask: &Ask, asking: Asking) -> Head<'b> {
        let sent = member.sent(ask);
        let (place, began) = if let Some(Reserved { place, since, .. }) = asking.reserved {
            (place, since)
        } else {
            let now = Instant::now();
            (member.place(asking.stay, now).await, now)
        };
        let result = match place {
            Ok(place) => self.begin(member, &sent, place, began).await,
            Err(failure) => {
                self.asks(member, &sent).ends(failure.outcome());
                Err(failure)
            }
        };
        Head {
            member,
            sent,
            began,
            result,
        }
    }
}

/// Reads the rest of an answer, and notes the question.
async fn finish<T, R>(head: Head<'_>, read: &impl Fn(Response<Incoming>) -> R) -> Result<T, Failure>
where
    T: Answered,
    R: Future<Output = Result<T, Failure>>,
{
    let Head {
        member,
        sent,
        began,
        result,
    } = head;
    let result = match result {
        Ok(response) => read(response).await,
        Err(failure) => Err(failure),
    };
    trace::note_asked(member.id, &sent, began, || match &result {
        Ok(answer) => Ok((answer.status(), answer.body())),
        Err(failure) => Err(failure.reason()),
    });
    result
}

/// Notes a question whose answer is not read.
fn note(head: &Head<'_>) {
    trace::note_asked(head.member.id, &head.sent, head.began, || {
        match &head.result {
            Ok(response) => Ok((response.status().as_u16(), None)),
            Err(failure) => Err(failure.reason()),
        }
    });
}
