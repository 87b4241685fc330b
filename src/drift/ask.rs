//! Reading the estate from the backends.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};
use pdbmux_core::merge::owners::FreshnessMap;
use pdbmux_core::plan::{Ask, freshness_ask};
use pdbmux_core::round::{BackendId, Reply};
use pdbmux_core::settings::Strategy;

use super::moved::Moves as Moving;
use super::{Estate, Moved};
use crate::config::Config;
use crate::upstream::{Asked, Failure, Room, Upstream};
use crate::work;

/// Asks all backends for all their nodes, and those that own shared nodes who of them moved within
/// `lately`, if that is given.
pub async fn read(config: &Config, lately: Option<Duration>) -> Estate {
    let upstream = Upstream::new(config);
    let mut estate = list(&upstream, config.merge).await;
    if let Some(lately) = lately {
        let lately = SignedDuration::try_from(lately).unwrap_or(SignedDuration::MAX);
        let since = estate.at.saturating_sub(lately).unwrap_or(Timestamp::MIN);
        moves(&upstream, &mut estate, since).await;
    }
    estate
}

/// Asks the backends in service for all their nodes; the others are missing.
pub(crate) async fn list(upstream: &Upstream, strategy: Strategy) -> Estate {
    let at = Timestamp::now();
    let names = upstream.backends().iter().map(|it| it.name.clone());
    // Whatever decides in a merge, all times are shown.
    let ask = freshness_ask(Strategy::Exact);
    let pool = upstream.pool();
    let asked = pool.asked.into_iter();
    let asks: Vec<_> = asked.map(|backend| (backend, ask.clone())).collect();
    let round = upstream.fan_out_within(&asks, Room::unconditional()).await;
    let skipped = pool.skipped.into_iter();
    let skipped = skipped.map(|backend| (backend, Failure::OutOfService.to_string()));
    let mut missing: Vec<_> = round.iter().filter_map(trouble).chain(skipped).collect();
    let length = round.iter().map(length).sum();
    let (map, damaged) = work::run(length, move || build(&round)).await;
    missing.extend(damaged);
    missing.sort_unstable_by_key(|(backend, _)| *backend);
    Estate::of(map, names.collect(), strategy, missing, at)
}

/// The map of a round, and the backends whose answers are damaged.
fn build(round: &[Asked]) -> (FreshnessMap, Vec<(BackendId, String)>) {
    let parts = round.iter().map(Asked::part);
    let bodies: Vec<_> = parts
        .filter_map(|part| Some((part.backend, part.reply.filter(Reply::is_success)?.body)))
        .collect();
    let (map, damaged) = FreshnessMap::build(&bodies);
    let damaged = damaged.into_iter();
    let damaged = damaged.map(|(backend, why)| (backend, why.to_string()));
    (map, damaged.collect())
}

fn length(asked: &Asked) -> usize {
    asked.part().reply.map_or(0, |reply| reply.body.len())
}

fn trouble(asked: &Asked) -> Option<(BackendId, String)> {
    let why = match &asked.result {
        Ok(received) if (200..300).contains(&received.status) => return None,
        Ok(received) => Failure::Status(received.status).to_string(),
        Err(why) => why.to_string(),
    };
    Some((asked.backend, why))
}

/// Finds out who moved; an owner that does not tell is missing in the estate.
async fn moves(upstream: &Upstream, estate: &mut Estate, since: Timestamp) {
    let moves = Moving::of(estate, since);
    let mut asks: BTreeMap<BackendId, Vec<Ask>> = BTreeMap::new();
    for (owner, ask) in moves.asks(since) {
        asks.entry(owner).or_default().push(ask);
    }
    // One after the other to each: this is nothing that a PuppetDB should be slow for.
    let told = join_all(asks.into_iter().map(async |(owner, asks)| {
        let mut round = Vec::new();
        for ask in asks {
            round.extend(upstream.fan_out(&[(owner, ask)]).await);
            if round.last().and_then(trouble).is_some() {
                break;
            }
        }
        round
    }));
    let told: Vec<_> = told.await.into_iter().flatten().collect();
    let silent: Vec<_> = told.iter().filter_map(trouble).collect();
    let answers = told.iter().filter_map(|asked| {
        let received = asked.result.as_ref().ok()?;
        Some((asked.backend, &*received.body))
    });
    let nodes = if silent.is_empty() {
        moves.settle(answers)
    } else {
        Ok(moves.moved)
    };
    let nodes = nodes.unwrap_or_else(|backend| {
        let why = "what it says of its reports cannot be read".to_owned();
        estate.missing.push((backend, why));
        HashSet::new()
    });
    estate.missing.extend(silent);
    estate.moved = Some(Moved { since, nodes });
}
