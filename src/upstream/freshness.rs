//! The freshness map: kept for its time, built once for all who wait.

mod nodes;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::future::join_all;
use pdbmux_core::json::ScanError;
use pdbmux_core::merge::owners::history::{Pasts, check_hashes, spans_ask};
use pdbmux_core::merge::owners::{Census, FreshnessMap, Nodes, Shares};
use pdbmux_core::plan::{Ask, freshness_ask};
use pdbmux_core::round::{BackendId, Reply};
use pdbmux_core::settings::Settings;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::group::Answered;
use super::{Asked, Room, Turn, Upstream};
use crate::config::Config;
use crate::flight::{Flight, Flights};
use crate::metrics::{Estate, EstateOfBackend, Metrics};
use crate::{request, work};

/// To put a node into the map is as much work as to read so many bytes.
const NODE: usize = 256;

/// Whose data is newest, as far as it is known (R044).
#[derive(Debug)]
pub struct Freshness {
    upstream: Arc<Upstream>,
    settings: Arc<Settings>,
    metrics: Arc<Metrics>,
    ttl: Duration,
    /// Most certnames of one list, where times can stand for it.
    most_listed: usize,
    state: Mutex<State>,
    /// The build that is under way; there is one kind alone.
    builds: Flights<Arc<FreshnessMap>>,
}

#[derive(Debug, Default)]
struct State {
    map: Option<(Instant, Arc<FreshnessMap>)>,
    /// How the nodes were divided last, by which map and among whom.
    divided: Option<Division>,
}

#[derive(Debug)]
struct Division {
    map: Arc<FreshnessMap>,
    among: Vec<BackendId>,
    shares: Arc<Shares>,
    /// The same shares with what counts of the history, once somebody needed that.
    history: Arc<OnceCell<Arc<Shares>>>,
}

impl Freshness {
    /// A map of the nodes of `upstream`, each copy of it used for the time that is configured. Shares
    /// list no more certnames than is configured where times can stand for them. `metrics` are told how
    /// the nodes are spread.
    pub fn new(
        upstream: Arc<Upstream>,
        settings: Arc<Settings>,
        config: &Config,
        metrics: &Arc<Metrics>,
    ) -> Arc<Self> {
        Arc::new(Self {
            upstream,
            settings,
            metrics: Arc::clone(metrics),
            ttl: config.freshness_ttl,
            most_listed: config.max_listed_nodes,
            state: Mutex::default(),
            builds: Flights::new(),
        })
    }

    /// Takes over the map of `before`, whose backends must be the same.
    pub fn take_over(&self, before: &Self) {
        let map = before.state().map.clone();
        self.state().map = map;
    }

    /// The last map, however old, and when it was begun to be built.
    pub fn kept(&self) -> Option<(Instant, Arc<FreshnessMap>)> {
        self.state().map.clone()
    }

    /// The map, built first if there is none that is young enough.
    pub async fn map(self: &Arc<Self>) -> Arc<FreshnessMap> {
        let build = {
            let state = self.state();
            match &state.map {
                Some((built, map)) if built.elapsed() < self.ttl => return Arc::clone(map),
                _ => self.join(),
            }
        };
        built(&build).await
    }

    /// A map that covers every backend of `contributors`, as far as they answer; `since` is when the
    /// request began that needs it.
    ///
    /// A backend that was away when the map was built owns nothing in it. Once it answers again it
    /// must not lose its nodes to older copies for the rest of the map's time.
    pub async fn covering(
        self: &Arc<Self>,
        map: Arc<FreshnessMap>,
        contributors: &[BackendId],
        since: Instant,
    ) -> Arc<FreshnessMap> {
        if contributors.iter().all(|backend| map.covers(*backend)) {
            return map;
        }
        let build = {
            let state = self.state();
            match &state.map {
                // Somebody else has built a newer one meanwhile.
                Some((_, newer)) if !Arc::ptr_eq(newer, &map) => return Arc::clone(newer),
                // It was built for this request: whoever is missing has just been asked, and to
                // ask again would cost the client a second timeout.
                Some((started, _)) if *started >= since => return map,
                _ => self.join(),
            }
        };
        built(&build).await
    }

    /// A map that is newer than `map`.
    pub async fn renewed(self: &Arc<Self>, map: Arc<FreshnessMap>) -> Arc<FreshnessMap> {
        let build = {
            let state = self.state();
            match &state.map {
                Some((_, newer)) if !Arc::ptr_eq(newer, &map) => return Arc::clone(newer),
                _ => self.join(),
            }
        };
        built(&build).await
    }

    /// A map that was begun to be built at `since` or later.
    pub async fn since(self: &Arc<Self>, since: Instant) -> Arc<FreshnessMap> {
        loop {
            let build = {
                let state = self.state();
                match &state.map {
                    Some((started, map)) if *started >= since => return Arc::clone(map),
                    _ => self.join(),
                }
            };
            // It may be one that others had begun before.
            built(&build).await;
        }
    }

    /// What each of `among` speaks for by `map`.
    pub async fn shares(&self, map: &Arc<FreshnessMap>, among: &[BackendId]) -> Arc<Shares> {
        if let Some(known) = &self.state().divided
            && Arc::ptr_eq(&known.map, map)
            && known.among == among
        {
            return Arc::clone(&known.shares);
        }
        let (dividing, settings) = (Arc::clone(map), Arc::clone(&self.settings));
        let (divided, most) = (among.to_vec(), self.most_listed);
        let divide = move || {
            let source = settings.source.as_deref();
            Arc::new(dividing.shares(&divided, source, &settings.backends, most))
        };
        // As much work as to read some 32 bytes a node.
        let shares = work::run(map.len() * 32, divide).await;
        self.state().divided = Some(Division {
            map: Arc::clone(map),
            among: among.to_vec(),
            shares: Arc::clone(&shares),
            history: Arc::default(),
        });
        shares
    }

    /// `shares` with what counts of each backend's history. Built once for all who wait for it, and
    /// kept for as long as the shares are.
    ///
    /// # Errors
    /// The backends that could not tell their reports.
    pub async fn with_history(&self, shares: Arc<Shares>) -> Result<Arc<Shares>, Vec<BackendId>> {
        let cell = {
            let state = self.state();
            let divided = state.divided.as_ref();
            divided
                .filter(|known| Arc::ptr_eq(&known.shares, &shares))
                .map(|known| Arc::clone(&known.history))
        };
        let history = async || self.build_history(&shares).await;
        let known = cell.unwrap_or_default();
        known.get_or_try_init(history).await.map(Arc::clone)
    }

    async fn build_history(&self, shares: &Arc<Shares>) -> Result<Arc<Shares>, Vec<BackendId>> {
        let Some(ask) = spans_ask(shares) else {
            return Ok(Arc::clone(shares));
        };
        let among: Vec<_> = shares.backends().collect();
        let check = |told: &[(BackendId, &[u8])]| Pasts::read(told).1;
        let spans = self.tell(&among, &ask, check).await?;
        let overlaps = Pasts::read(&borrowed(&spans)).0.overlaps_ask();
        let hashes = match overlaps {
            None => Vec::new(),
            Some(ask) => {
                let check = |told: &[(BackendId, &[u8])]| {
                    let told = told.iter();
                    told.filter_map(|(backend, body)| Some((*backend, check_hashes(body).err()?)))
                        .collect()
                };
                self.tell(&among, &ask, check).await?
            }
        };
        let shares = Shares::clone(shares);
        let size = hashes.iter().map(|(_, body)| body.len()).sum();
        let with_history = move || {
            let (pasts, _) = Pasts::read(&borrowed(&spans));
            Arc::new(shares.with_history(&pasts, &borrowed(&hashes)))
        };
        Ok(work::run(size, with_history).await)
    }

    /// Asks all of `among` the same; all must answer, and `check` finds nothing damaged.
    async fn tell(
        &self,
        among: &[BackendId],
        ask: &Ask,
        check: impl Fn(&[(BackendId, &[u8])]) -> Vec<(BackendId, ScanError)>,
    ) -> Result<Vec<(BackendId, Bytes)>, Vec<BackendId>> {
        let mut round = self.ask_each(among, ask).await;
        loop {
            let damaged = check(&told(&round));
            if damaged.is_empty() || !self.replaced(&mut round, ask, damaged).await {
                break;
            }
        }
        let mut told = Vec::new();
        let mut silent = Vec::new();
        for asked in round {
            match asked.result {
                Ok(received) if (200..300).contains(&received.status) => {
                    told.push((asked.backend, received.body));
                }
                Ok(_) | Err(_) => silent.push(asked.backend),
            }
        }
        if silent.is_empty() {
            Ok(told)
        } else {
            Err(silent)
        }
    }

    async fn ask_each(&self, among: &[BackendId], ask: &Ask) -> Vec<Asked> {
        let asks: Vec<_> = among
            .iter()
            .map(|backend| (*backend, ask.clone()))
            .collect();
        loop {
            let asked = self.upstream.fan_out_within(&asks, Room::unconditional());
            let round = asked.await;
            // A backend that only pdbmux could not ask must not lose its nodes to others.
            if round.iter().all(|asked| asked.lack().is_none()) {
                return round;
            }
        }
    }

    /// Whether others have answered in the place of those that sent damage.
    async fn replaced(
        &self,
        round: &mut [Asked],
        ask: &Ask,
        damaged: Vec<(BackendId, ScanError)>,
    ) -> bool {
        let damaged: Vec<_> = damaged
            .into_iter()
            .map(|(backend, error)| (backend, error.into()))
            .collect();
        let asks = vec![ask.clone(); round.len()];
        let replaced = self
            .upstream
            .replace_damaged(round, &asks, &damaged, Room::unconditional());
        Box::pin(replaced).await
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn join(self: &Arc<Self>) -> Arc<Flight<Arc<FreshnessMap>>> {
        self.builds
            .join("", || request::carried(Arc::clone(self).build()))
    }

    async fn build(self: Arc<Self>) -> Arc<FreshnessMap> {
        let ask = freshness_ask(self.settings.strategy);
        let asked = self.upstream.shared_pool().asked;
        let started = Instant::now();
        let lists = asked.iter().map(|id| self.upstream.nodes_of(*id, &ask));
        let round = join_all(lists).await;
        let fared = round.iter().map(|(via, told)| {
            let status = told.as_ref().map(Answered::status);
            (*via, status)
        });
        self.upstream.judge_each(fared);
        // Whoever is missing is named by the request that needed it.
        let told = round.into_iter().filter_map(|(_, told)| match told {
            Ok(Turn::Success(nodes)) => Some(nodes),
            Ok(Turn::Refused(_)) | Err(_) => None,
        });
        let told: Vec<_> = told.collect();
        let nodes: usize = told.iter().map(Nodes::count).sum();
        let (map, census) = work::run(nodes * NODE, move || {
            let map = FreshnessMap::of(told);
            let census = map.census();
            (Arc::new(map), census)
        })
        .await;
        // Where nobody answered, nothing was learnt.
        if !census.backends.is_empty() {
            self.metrics.learn_estate(self.estate(census));
        }
        self.state().map = Some((started, Arc::clone(&map)));
        map
    }
}

impl Freshness {
    fn estate(&self, census: Census) -> Estate {
        let backends = census.backends.into_iter().map(|of| EstateOfBackend {
            name: self.upstream.backend(of.backend).name.clone(),
            nodes: of.owned + of.stale,
            owned: of.owned,
            stale: of.stale,
        });
        Estate {
            when: SystemTime::now(),
            nodes: census.nodes,
            shared: census.shared,
            backends: backends.collect(),
        }
    }
}

/// What came of a build. A panic in it goes on in whoever waits.
async fn built(build: &Flight<Arc<FreshnessMap>>) -> Arc<FreshnessMap> {
    match build.landed().await {
        Some(map) => map,
        None => std::panic::resume_unwind(Box::new("the build of the freshness map panicked")),
    }
}

fn borrowed(bodies: &[(BackendId, Bytes)]) -> Vec<(BackendId, &[u8])> {
    let bodies = bodies.iter();
    bodies.map(|(backend, body)| (*backend, &**body)).collect()
}

/// What those told that answered.
fn told(round: &[Asked]) -> Vec<(BackendId, &[u8])> {
    let parts = round.iter().map(Asked::part);
    parts
        .filter_map(|part| Some((part.backend, part.reply.filter(Reply::is_success)?.body)))
        .collect()
}
