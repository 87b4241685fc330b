//! Asking each backend for the nodes that it owns (`merge: exact`).
//!
//! The nodes are divided among the backends that answer. One that fails owns nothing: its nodes go
//! to whoever else holds them, and those are asked again. A node that appears in a second backend
//! while the division is remembered would be counted twice, so each backend is asked beside the
//! question how many nodes it has, or how many of those that matter.

use std::sync::Arc;

use pdbmux_core::merge::Fan;
use pdbmux_core::merge::owners::{FreshnessMap, Share, Shares};
use pdbmux_core::plan::{Ask, Doubt, census, census_ask, watched_ask};
use pdbmux_core::round::{BackendId, Reply};
use tokio::time::Instant;

use super::fan::Gathered;
use super::serve::App;
use crate::upstream::trace::{note_instead, note_share};
use crate::upstream::{Asked, Failure, Pool, Room};

/// How often the nodes are listed anew because they changed meanwhile.
const RENEWALS: usize = 3;

/// More than a record of a node takes, in bytes.
const NODE: usize = 1 << 10;

impl App {
    /// Asks every backend for its share. Those that fail are moved to `failed`, unless all do.
    pub(super) async fn gather_shares(
        &self,
        plan: &Arc<Fan>,
        since: Instant,
        room: usize,
        failed: &mut Vec<Asked>,
    ) -> Gathered {
        let Pool { asked, skipped } = self.upstream.pool();
        let mut map = self.freshness.map().await;
        map = self.freshness.covering(map, &asked, since).await;
        let mut answered: Vec<(Ask, Asked)> = Vec::new();
        let mut renewals = 0;
        let (mut doubts, mut by, mut instead);
        loop {
            let has_failed = |backend| failed.iter().any(|asked| asked.backend == backend);
            let (among, unlisted): (Vec<_>, Vec<_>) = asked
                .iter()
                .copied()
                .filter(|backend| !has_failed(*backend))
                .partition(|backend| map.covers(*backend));
            failed.extend(
                unlisted
                    .into_iter()
                    .map(|backend| Asked::new(backend, Err(Failure::Unlisted))),
            );
            let shares = self.freshness.shares(&map, &among).await;
            let shares = if plan.is_history() && shares.overlap() {
                match self.freshness.with_history(shares).await {
                    Ok(shares) => shares,
                    Err(backends) => {
                        failed.extend(
                            backends
                                .into_iter()
                                .map(|backend| Asked::new(backend, Err(Failure::Unlisted))),
                        );
                        continue;
                    }
                }
            } else {
                shares
            };
            instead = plan.among(&shares, self.max_listed).map(Arc::new);
            note_instead(instead.as_ref());
            let fan = instead.as_ref().unwrap_or(plan);
            let asks = questions(fan, &shares, &among);
            by = shares;
            let is_of = |(ask, part): &(Ask, Asked), (backend, now): &(BackendId, Ask)| {
                *backend == part.backend && now == ask
            };
            answered.retain(|known| asks.iter().any(|asked| is_of(known, asked)));
            for (_, part) in &mut answered {
                part.forget_scan();
            }
            let open: Vec<_> = asks
                .iter()
                .filter(|asked| !answered.iter().any(|known| is_of(known, asked)))
                .cloned()
                .collect();
            let (round, changed) = self
                .ask_watching(fan, &open, (&map, &by), room, failed)
                .await;
            answered.extend(open.into_iter().map(|(_, ask)| ask).zip(round));
            if changed && renewals < RENEWALS {
                renewals += 1;
                answered.clear();
                map = self.freshness.renewed(map).await;
                continue;
            }
            doubts = changed
                .then_some(Doubt::EstateChanges)
                .into_iter()
                .collect();
            // In the order of the questions, whenever each was answered.
            answered.sort_by_key(|known| asks.iter().position(|asked| is_of(known, asked)));
            let bad = failing(fan, &answered);
            let is_bad = |(_, part): &(Ask, Asked)| bad.contains(&part.backend);
            let is_lacking = failed.iter().any(|part| part.lack().is_some());
            if bad.is_empty()
                || is_lacking
                || !answered.iter().any(|it| it.1.is_success() && !is_bad(it))
            {
                break;
            }
            let (lost, good): (Vec<_>, Vec<_>) = answered.drain(..).partition(is_bad);
            let lost = lost.into_iter().map(|(_, part)| part);
            failed.extend(lost.filter(|part| !answers(fan, part)));
            answered = good;
        }
        let (asks, round) = answered.into_iter().unzip();
        Gathered {
            round,
            asks,
            skipped,
            map: Some(map),
            doubts,
            shares: Some(by),
            instead,
        }
    }

    /// Asks `open`, and whether tells whether nodes have come or gone since the map was made.
    async fn ask_watching(
        &self,
        fan: &Arc<Fan>,
        open: &[(BackendId, Ask)],
        (map, shares): (&FreshnessMap, &Shares),
        room: usize,
        failed: &mut Vec<Asked>,
    ) -> (Vec<Asked>, bool) {
        // What is written while it arrives is not counted before.
        let is_told = fan.lists_nodes && owned(shares) <= room / NODE;
        let watched = if fan.is_census() {
            Default::default()
        } else {
            watch(map, shares)
        };
        // What is done instead may be something that has to be held whole.
        let room = match fan.streamed() {
            Some(_) => Room::of(room),
            None => Room::unbounded(),
        };
        let asking = self.ask_reading(fan, open, room);
        if !is_told {
            return tokio::join!(asking, self.has_changed(watched, failed));
        }
        let round = asking.await;
        let is_confirmed = confirmed(fan, shares, &round);
        let changed = !is_confirmed && self.has_changed(watched, failed).await;
        (round, changed)
    }

    /// Whether some backend has another number of nodes than is known. What cannot be learnt shows in
    /// the answer to the question itself, but for whom pdbmux could not ask: that one is moved to
    /// `failed`.
    async fn has_changed(
        &self,
        (asks, known): (Vec<(BackendId, Ask)>, Vec<Option<u64>>),
        failed: &mut Vec<Asked>,
    ) -> bool {
        // The question keeps its places meanwhile.
        let aside = Room::unconditional();
        let mut changed = false;
        let told = self.upstream.fan_out_within(&asks, aside).await;
        for (asked, known) in told.into_iter().zip(known) {
            let reply = asked.part().reply.filter(Reply::is_success);
            let told = reply.and_then(|reply| census(reply.body));
            changed |= told.is_some() && told != known;
            if asked.lack().is_some() {
                failed.push(asked);
            }
        }
        changed
    }
}

/// What is asked beside a question to learn if the backends still have the nodes that they had by
/// `map`, and the numbers known. With one backend it does not matter.
fn watch(map: &FreshnessMap, shares: &Shares) -> (Vec<(BackendId, Ask)>, Vec<Option<u64>>) {
    if shares.backends().nth(1).is_none() {
        return Default::default();
    }
    let watched = |backend| match shares.of(backend).and_then(Share::watched) {
        Some(watched) => ((backend, watched_ask(watched)), Some(watched.nodes())),
        None => ((backend, census_ask()), map.held_by(backend)),
    };
    shares.backends().map(watched).unzip()
}

/// How many nodes there are by `shares`.
fn owned(shares: &Shares) -> usize {
    let each = shares.backends().filter_map(|backend| shares.of(backend));
    each.map(Share::nodes).sum()
}

/// Whether the answers of `round` themselves show that all backends have the nodes by which they were
/// given `shares`.
fn confirmed(fan: &Fan, shares: &Shares, round: &[Asked]) -> bool {
    shares.backends().all(|backend| {
        let asked = round.iter().find(|asked| asked.backend == backend);
        let reply = asked.and_then(|asked| asked.part().reply);
        let scan = reply.and_then(|reply| reply.scan);
        let share = shares.of(backend).zip(scan);
        share.is_some_and(|(share, scan)| fan.confirms(share, scan))
    })
}

/// What each of `among` is asked.
fn questions(fan: &Fan, shares: &Shares, among: &[BackendId]) -> Vec<(BackendId, Ask)> {
    let shares = among.iter().filter_map(|id| Some((*id, shares.of(*id)?)));
    shares
        .flat_map(|(backend, share)| {
            note_share(backend, share);
            let asks = fan.asks().filter(|ask| ask.concerns(share));
            asks.map(move |ask| (backend, ask.within(share)))
        })
        .collect()
}

/// Those that did not answer all that they were asked.
fn failing(fan: &Fan, answered: &[(Ask, Asked)]) -> Vec<BackendId> {
    let parts = answered.iter().map(|(_, part)| part);
    let failing = parts.filter(|part| !answers(fan, part));
    failing.map(|part| part.backend).collect()
}

/// Whether a backend spoke for its share.
fn answers(fan: &Fan, part: &Asked) -> bool {
    let reply = part.part().reply;
    reply.is_some_and(|reply| reply.is_success() || fan.tolerates(reply.status))
}
