//! The nodes as the estate page shows them, and who owned how many of them at which time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use jiff::Timestamp;
use pdbmux_core::merge::owners::FreshnessMap;
use pdbmux_core::settings::Settings;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::page::history::History;
use crate::drift::{self, Estate};
use crate::flight::{Flight, Flights};
use crate::upstream::{Freshness, Upstream};
use crate::work;

/// How long a page waits for the nodes before it shows those that it has.
const PATIENCE: Duration = Duration::from_secs(3);

/// How often the owners are noted.
const PAUSE: Duration = Duration::from_mins(1);

/// What is kept for the estate page.
#[derive(Debug)]
pub(in crate::http) struct Estates {
    upstream: Arc<Upstream>,
    freshness: Arc<Freshness>,
    settings: Arc<Settings>,
    /// How long nodes are shown without asking anew.
    ttl: Duration,
    last: Mutex<Option<(Instant, Arc<Estate>)>>,
    /// The listing that is under way; there is one kind alone.
    listings: Flights<Arc<Estate>>,
    history: Mutex<History>,
}

impl Estates {
    /// Asks nobody yet. Notes each minute who owns how many nodes, by the map that requests are
    /// answered with, for as long as somebody holds this.
    pub(in crate::http) fn new(
        upstream: Arc<Upstream>,
        freshness: Arc<Freshness>,
        settings: Arc<Settings>,
        ttl: Duration,
    ) -> Arc<Self> {
        let estates = Arc::new(Self {
            history: Mutex::new(History::of(settings.backends.clone())),
            upstream,
            freshness,
            settings,
            ttl,
            last: Mutex::default(),
            listings: Flights::new(),
        });
        tokio::spawn(note(Arc::downgrade(&estates)));
        estates
    }

    /// Takes over what `before` knows, whose backends must be the same.
    pub(in crate::http) fn take_over(&self, before: &Self) {
        let (last, history) = (lock(&before.last).clone(), before.history());
        *lock(&self.last) = last;
        *lock(&self.history) = history;
    }

    /// The nodes: listed anew where they are older than their time, and those from before if that
    /// takes long. `None` if there are none yet.
    pub(in crate::http) async fn nodes(self: &Arc<Self>) -> Option<Arc<Estate>> {
        let last = lock(&self.last).clone();
        if let Some((listed, estate)) = &last
            && listed.elapsed() < self.ttl
        {
            return Some(Arc::clone(estate));
        }
        let listing = self.listings.join("", || Arc::clone(self).list());
        // Whoever looks may leave; the next to look shall find the nodes.
        tokio::spawn(finish(Arc::clone(&listing)));
        let listed = timeout(PATIENCE, listing.landed()).await;
        listed.unwrap_or_else(|_| last.map(|(_, estate)| estate))
    }

    /// Who owned how many nodes.
    pub(in crate::http) fn history(&self) -> History {
        lock(&self.history).clone()
    }

    async fn list(self: Arc<Self>) -> Arc<Estate> {
        let began = Instant::now();
        let estate = drift::list(&self.upstream, self.settings.strategy).await;
        let estate = Arc::new(estate);
        *lock(&self.last) = Some((began, Arc::clone(&estate)));
        if estate.missing.is_empty() {
            let owned = estate.summary().backends.into_iter();
            let owned = owned.map(|counts| counts.owned).collect();
            lock(&self.history).keep(estate.at, owned);
        }
        estate
    }

    /// Notes the owners of a map that is in use. One that lacks a backend would show its nodes as if
    /// they had moved.
    async fn note(&self) {
        let Some((built, map)) = self.freshness.kept() else {
            return;
        };
        let is_whole = self.upstream.backends().iter().all(|it| map.covers(it.id));
        if !is_whole || built.elapsed() > self.ttl.max(PAUSE) {
            return;
        }
        let (settings, backends) = (Arc::clone(&self.settings), self.upstream.backends().len());
        // As much work as to read some 32 bytes a node.
        let owned = work::run(map.len() * 32, move || owned(&map, &settings, backends)).await;
        lock(&self.history).keep(Timestamp::now(), owned);
    }
}

fn owned(map: &FreshnessMap, settings: &Settings, backends: usize) -> Vec<u64> {
    let mut owned = vec![0; backends];
    for copies in map.copies(settings.strategy) {
        owned[copies.held[0].backend.index()] += 1;
    }
    owned
}

async fn note(estates: Weak<Estates>) {
    let mut minutes = interval(PAUSE);
    minutes.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        minutes.tick().await;
        let Some(estates) = estates.upgrade() else {
            return;
        };
        estates.note().await;
    }
}

async fn finish(listing: Arc<Flight<Arc<Estate>>>) {
    // What became of it is kept, or logged, where it is made.
    let _listed = listing.landed().await;
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
