//! Asking each backend for the nodes that it owns (`merge: exact`).
//!
//! The nodes are divided among the backends that answer. One that fails owns nothing: its nodes go
//! to whoever else holds them, and those are asked again. A node that appears in a second backend
//! while the division is remembered would be counted twice, so each backend is asked beside the
//! question how many nodes it has.

use pdbmux_core::merge::Fan;
use pdbmux_core::plan::{Ask, census, census_ask};
use pdbmux_core::round::{BackendId, Reply};
use tokio::time::Instant;

use super::fan::Gathered;
use super::serve::App;
use crate::upstream::trace::note_share;
use crate::upstream::{Asked, Failure, Pool};

/// How often the nodes are listed anew because they changed meanwhile.
const RENEWALS: usize = 3;

impl App {
    /// Asks every backend for its share. Those that fail are moved to `failed`, unless all do.
    pub(super) async fn gather_shares(
        &self,
        fan: &Fan,
        since: Instant,
        failed: &mut Vec<Asked>,
    ) -> Gathered {
        let Pool { asked, skipped } = self.upstream.pool();
        let mut map = self.freshness.map().await;
        map = self.freshness.covering(map, &asked, since).await;
        let mut answered: Vec<(Ask, Asked)> = Vec::new();
        let mut renewals = 0;
        loop {
            let has_failed = |backend| failed.iter().any(|asked| asked.backend == backend);
            let (among, unlisted): (Vec<_>, Vec<_>) = asked
                .iter()
                .copied()
                .filter(|backend| !has_failed(*backend))
                .partition(|backend| map.covers(*backend));
            failed.extend(unlisted.into_iter().map(|backend| Asked {
                backend,
                result: Err(Failure::Unlisted),
            }));
            let shares = self.freshness.shares(&map, &among).await;
            let shares = if fan.ask.scope().is_history() && shares.overlap() {
                match self.freshness.with_history(shares).await {
                    Ok(shares) => shares,
                    Err(backends) => {
                        failed.extend(backends.into_iter().map(|backend| Asked {
                            backend,
                            result: Err(Failure::Unlisted),
                        }));
                        continue;
                    }
                }
            } else {
                shares
            };
            let asks: Vec<_> = among
                .iter()
                .filter_map(|backend| {
                    let share = shares.of(*backend)?;
                    note_share(*backend, share);
                    Some((*backend, fan.ask.within(share)))
                })
                .collect();
            answered.retain(|(ask, part)| {
                let is_it =
                    |(backend, now): &(BackendId, Ask)| *backend == part.backend && now == ask;
                asks.iter().any(is_it)
            });
            let is_known = |backend| answered.iter().any(|(_, part)| part.backend == backend);
            let open: Vec<_> = asks
                .iter()
                .filter(|(backend, _)| !is_known(*backend))
                .cloned()
                .collect();
            let (round, counts) =
                tokio::join!(self.upstream.fan_out(&open), self.count_nodes(&among));
            answered.extend(open.into_iter().map(|(_, ask)| ask).zip(round));
            let changed = counts
                .iter()
                .any(|(backend, nodes)| nodes.is_some() && *nodes != map.held_by(*backend));
            if changed && renewals < RENEWALS {
                renewals += 1;
                answered.clear();
                map = self.freshness.renewed(map).await;
                continue;
            }
            let (good, bad): (Vec<_>, Vec<_>) =
                answered.drain(..).partition(|(_, part)| answers(fan, part));
            if bad.is_empty() || !good.iter().any(|(_, part)| is_success(part)) {
                answered = good.into_iter().chain(bad).collect();
                break;
            }
            failed.extend(bad.into_iter().map(|(_, part)| part));
            answered = good;
        }
        answered.sort_by_key(|(_, part)| part.backend);
        let (asks, round) = answered.into_iter().unzip();
        Gathered {
            round,
            asks,
            skipped,
            map: Some(map),
        }
    }

    /// How many nodes each backend has, in any state. With one backend it does not matter; what
    /// cannot be learnt shows in the answer to the question itself.
    async fn count_nodes(&self, among: &[BackendId]) -> Vec<(BackendId, Option<u64>)> {
        if among.len() < 2 {
            return Vec::new();
        }
        let asks: Vec<_> = among
            .iter()
            .map(|backend| (*backend, census_ask()))
            .collect();
        let counted = |asked: Asked| {
            let reply = asked.part().reply.filter(Reply::is_success);
            (asked.backend, reply.and_then(|reply| census(reply.body)))
        };
        let counts = self.upstream.fan_out(&asks).await.into_iter();
        counts.map(counted).collect()
    }
}

fn is_success(part: &Asked) -> bool {
    part.part().reply.is_some_and(|reply| reply.is_success())
}

/// Whether a backend spoke for its share.
fn answers(fan: &Fan, part: &Asked) -> bool {
    let reply = part.part().reply;
    reply.is_some_and(|reply| reply.is_success() || fan.tolerates(reply.status))
}
