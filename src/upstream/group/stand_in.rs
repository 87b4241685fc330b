//! Answers that turn out to be of no use once they are there: another of the group is asked in the
//! place of who sent them.

use futures_util::future::join_all;
use pdbmux_core::merge::damage::Damage;
use pdbmux_core::plan::Ask;
use pdbmux_core::round::BackendId;

use super::super::eject::Role;
use super::super::{Asked, Failure, Room, Upstream, Via};
use super::Asking;

impl Upstream {
    /// Takes in that answers of a round, which are those to `asks`, are damaged: in a group another is
    /// asked for all of its parts, as far as there is `room`, and whoever else sent damage has failed.
    /// Tells whether the round holds other answers now. Those are not replaced once more.
    pub async fn replace_damaged(
        &self,
        round: &mut [Asked],
        asks: &[Ask],
        damaged: &[(BackendId, Damage)],
        room: Room,
    ) -> bool {
        let mut replaced = false;
        for (backend, damage) in damaged {
            let parts = round.iter_mut().zip(asks);
            let mut parts: Vec<_> = parts.filter(|(it, _)| it.backend == *backend).collect();
            let others = join_all(parts.iter_mut().map(async |(asked, ask)| {
                // What it takes is free before more is asked for.
                asked.rest = None;
                let sent = std::mem::replace(&mut asked.result, Err(Failure::Damaged(*damage)));
                drop(sent);
                self.another(asked.via?, ask, &Failure::Damaged(*damage), &room)
                    .await
            }));
            for (at, (other, (asked, _))) in others.await.into_iter().zip(parts).enumerate() {
                // It has failed once, however many questions it was asked.
                let via = asked.via.take().filter(|_| at == 0);
                match other {
                    Some(other) => {
                        self.judge_failure(via, &Failure::Damaged(*damage));
                        *asked = other;
                        replaced = true;
                    }
                    None => asked.via = via,
                }
            }
        }
        replaced
    }

    /// Takes in that an answer broke off while it was read to its end.
    pub(in crate::upstream) async fn replace_failed(
        &self,
        asked: &mut Asked,
        ask: &Ask,
        failure: Failure,
    ) {
        let other = match asked.via {
            Some(via) if !failure.is_for_lack_of_room() => {
                self.another(via, ask, &failure, &Room::unbounded()).await
            }
            Some(_) | None => None,
        };
        match other {
            Some(other) => {
                self.judge_failure(asked.via, &failure);
                *asked = other;
            }
            None => asked.result = Err(failure),
        }
    }

    /// Asks another of its group than who answered as `via` tells. None if it has no group, has answered
    /// in the place of another itself, or is the only one that can be asked.
    async fn another(&self, via: Via, ask: &Ask, why: &Failure, room: &Room) -> Option<Asked> {
        let backend = via.member.backend;
        let group = self.backend(backend).group()?;
        if via.role == Role::StandIn {
            return None;
        }
        let asking = Asking {
            instead_of: Some((via.member, why.take_over())),
            ..Asking::at(room.stay())
        };
        let asked = self.ask_part(backend, ask, asking, room).await;
        let by = asked.via?;
        let backend = &self.member(via.member).name;
        tracing::warn!(backend, group, %why, "another of its group was asked");
        Some(Asked {
            via: Some(Via {
                role: Role::StandIn,
                ..by
            }),
            ..asked
        })
    }
}
