//! Answers that are written while the backends' answers arrive, since they are too long to be held.
//!
//! Nothing runs ahead of the client: a backend is read once the client has taken what was written
//! before. A backend that fails after the head has gone out breaks the answer off, so that nobody
//! takes it for a whole one.

mod feed;

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, OptionFuture};
use futures_util::stream::{self, StreamExt};
use pdbmux_core::answer::Pieces;
use pdbmux_core::merge::damage::Damage;
use pdbmux_core::merge::owners::FreshnessMap;
use pdbmux_core::merge::records::{Keep, Known, RecordMerge, Sorted, Stream, Total};
use pdbmux_core::round::BackendId;
use tokio::time::Instant;

use super::body::{Body, gather, gather_slowly};
use super::fan::{Gathered, note_dropped, successes};
use super::rounds::Completeness;
use super::serve::App;
use crate::upstream::{Asked, Failure, Hold, Incoming, Upstream, Via};
use crate::work;
use feed::{Feeds, Next};

/// What is read ahead of backends that wait for others, while an answer is written in order.
pub(super) const AHEAD: usize = 4 << 20;

/// How much of a beginning is read at once: what is known of its records takes about as much.
const SLICE: usize = 256 << 10;

/// An answer whose records are written while they arrive. It can be sent once.
#[derive(Clone)]
pub(super) struct Streamed(Arc<Mutex<Option<Body>>>);

impl fmt::Debug for Streamed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streamed").finish_non_exhaustive()
    }
}

impl Streamed {
    /// The body, for the first who wants it.
    pub(super) fn take(&self) -> Option<Body> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// What is known of such an answer before any of it is written.
#[derive(Debug)]
pub(super) struct Begun {
    /// What `X-Records` says.
    pub(super) total: Option<u64>,
    /// How many backends contribute.
    pub(super) contributed: usize,
    pub(super) streamed: Streamed,
}

/// What is done with the parts when something has come of a backend. No part is so long that this
/// would hold up others for long.
type Step = fn(&mut Stream, u16, &[&[u8]]) -> Result<Pieces, Damage>;

/// An answer under way.
struct Writing {
    app: Arc<App>,
    merge: Stream,
    /// Whom the merge wants to be read next.
    wanted: Vec<u16>,
    /// Who contributes, in configured order.
    sources: Vec<BackendId>,
    feeds: Feeds,
    /// By whom it comes, where that is still to be learnt from.
    vias: Vec<Option<Via>>,
    /// What came last of each, for as long as it is looked at.
    parts: Vec<Bytes>,
    /// Whose nodes are where, once it is known; until then it is not waited for.
    map: OptionFuture<BoxFuture<'static, Arc<FreshnessMap>>>,
    /// What is to be written before anything else is read.
    ready: VecDeque<Bytes>,
    is_over: bool,
    /// Counts among the answers that are held or written.
    _held: Arc<()>,
    /// Memory for what has to be read ahead, where there is an order.
    _ahead: Option<Hold>,
}

impl App {
    /// Begins to write what the successes of `round` come to. What of their beginnings is damaged is
    /// named instead.
    pub(super) async fn begin_stream(
        self: &Arc<Self>,
        plan: &RecordMerge,
        round: &mut [Asked],
        known: Known<'_>,
        hold: Option<Hold>,
    ) -> Result<Begun, Vec<(BackendId, Damage)>> {
        let contributors = Contributors::of(round);
        let is_ranked = plan.keep == Keep::First && !plan.is_ordered_here();
        let is_map_missing =
            is_ranked && contributors.sources.len() > 1 && known.freshness.is_none();
        let merge = Stream::new(plan, &contributors.sources, known);
        let mut writing = self.writing(merge, contributors.sources.clone(), hold);
        writing.map = is_map_missing.then(|| self.newer_map()).into();
        // What is there is read before the head is written: a page of some server in between is no
        // answer.
        let mut damaged = Vec::new();
        let mut ahead = Vec::new();
        for (bytes, at) in contributors.bodies.iter().cloned().zip(0..) {
            let mut slices = slices(bytes);
            while writing.wanted.contains(&at)
                && let Some(slice) = slices.pop_front()
            {
                if let Err((backend, Failure::Damaged(damage))) = writing.take(at, Some(Ok(slice)))
                {
                    damaged.push((backend, damage));
                    break;
                }
                if !slices.is_empty() {
                    // Other requests of this worker have their turn.
                    tokio::task::yield_now().await;
                }
            }
            ahead.push(slices);
        }
        if !damaged.is_empty() {
            return Err(damaged);
        }
        let unfinished = round.iter_mut().filter(|asked| asked.is_success());
        for (asked, ahead) in unfinished.zip(ahead) {
            writing.vias.push(asked.via.take());
            let rest = asked.rest.take();
            let rest = rest.map(|rest| arriving(Arc::clone(&self.upstream), rest));
            let rest = stream::iter(rest).flatten().boxed();
            writing.feeds.add(ahead, rest);
        }
        Ok(contributors.begin(plan, writing))
    }

    /// Begins to write what the successes of `round` come to, which are there whole, after they were
    /// put in order one by one. What is damaged is named instead.
    pub(super) async fn begin_sorted(
        self: &Arc<Self>,
        plan: &RecordMerge,
        round: &[Asked],
        known: Known<'_>,
    ) -> Result<Begun, Vec<(BackendId, Damage)>> {
        let contributors = Contributors::of(round);
        let sources = &contributors.sources;
        let merge = Stream::of_sorted(plan, sources, known);
        let mut writing = self.writing(merge, sources.clone(), None);
        let mut damaged = Vec::new();
        for (body, backend) in contributors.bodies.iter().cloned().zip(sources) {
            let plan = plan.clone();
            let sort = move || (Sorted::of(&plan, &body), body);
            let sorted = match work::run(usize::MAX, sort).await {
                (Err(damage), _) => {
                    damaged.push((*backend, damage));
                    continue;
                }
                (Ok(Sorted::AsTheyAre), body) => stream::iter(slices(body)).map(Ok).boxed(),
                (Ok(Sorted::As(pieces)), body) => {
                    let slices = gather_slowly(pieces, vec![body]).flat_map(slices);
                    stream::iter(slices).map(Ok).boxed()
                }
            };
            writing.feeds.add(VecDeque::new(), sorted);
        }
        if damaged.is_empty() {
            Ok(contributors.begin(plan, writing))
        } else {
            Err(damaged)
        }
    }

    fn writing(
        self: &Arc<Self>,
        merge: Stream,
        sources: Vec<BackendId>,
        ahead: Option<Hold>,
    ) -> Writing {
        Writing {
            app: Arc::clone(self),
            wanted: merge.wanted(),
            merge,
            feeds: Feeds::new(),
            vias: Vec::new(),
            parts: vec![Bytes::new(); sources.len()],
            sources,
            map: None.into(),
            ready: VecDeque::from([Bytes::from_static(b"[")]),
            is_over: false,
            _held: Arc::clone(&self.held),
            _ahead: ahead,
        }
    }

    /// Whether what comes of `gathered` can be written as it comes: as far as is known it is in the
    /// order of the answer and, where that matters, who holds which node is known.
    pub(super) async fn comes_as_written(
        self: &Arc<Self>,
        plan: &RecordMerge,
        gathered: &mut Gathered,
        since: Instant,
    ) -> bool {
        let sources = successes(&gathered.round);
        if plan.streams_by_holders() && sources.len() > 1 {
            let map = self.newer_map().await;
            let is_known = sources.iter().all(|backend| map.covers(*backend));
            gathered.map = Some(map);
            return is_known;
        }
        if !plan.is_ordered_here() {
            return true;
        }
        if plan.order_needs_freshness() && gathered.map.is_none() {
            let map = self.freshness.map().await;
            gathered.map = Some(self.freshness.covering(map, &sources, since).await);
        }
        let is_distrusted = |backend: &BackendId| self.distrusted().contains(backend);
        !sources.iter().any(is_distrusted)
            && plan.arrives_in_order(&sources, gathered.map.as_deref())
    }

    /// Whose records came otherwise than they were asked for. Their long lists are held, since to
    /// break one off each time would help nobody.
    fn distrusted(&self) -> MutexGuard<'_, BTreeSet<BackendId>> {
        let distrusted = self.distrusted.lock();
        distrusted.unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers a backend that has not kept the order that was asked for. Tells whether it has not.
    pub(super) fn distrust(&self, backend: BackendId, damage: Damage) -> bool {
        let is_disorder = damage == Damage::NotInOrder;
        if is_disorder && self.distrusted().insert(backend) {
            let backend = self.name(backend);
            tracing::warn!(
                backend,
                "its lists are not in the order asked for: they are held"
            );
        }
        is_disorder
    }

    /// A map that is younger than what is being received, so that by it no node is served from the
    /// wrong backend.
    fn newer_map(self: &Arc<Self>) -> BoxFuture<'static, Arc<FreshnessMap>> {
        let (app, now) = (Arc::clone(self), Instant::now());
        let map = async move { app.freshness.since(now).await };
        map.boxed()
    }
}

/// Those of a round that answered.
struct Contributors {
    /// Who they are, in configured order.
    sources: Vec<BackendId>,
    /// What has come of their bodies.
    bodies: Vec<Bytes>,
    /// Their totals added up, if each of them sent one.
    total: Option<u64>,
}

impl Contributors {
    fn of(round: &[Asked]) -> Self {
        let mut those = Self {
            sources: Vec::new(),
            bodies: Vec::new(),
            total: Some(0),
        };
        for asked in round.iter().filter(|asked| asked.is_success()) {
            if let Ok(received) = &asked.result {
                let sum = |sum: u64| sum.checked_add(received.total?);
                those.total = those.total.and_then(sum);
                those.bodies.push(received.body.clone());
                those.sources.push(asked.backend);
            }
        }
        those
    }

    fn begin(self, plan: &RecordMerge, writing: Writing) -> Begun {
        let bytes = stream::unfold(writing, |mut writing| async move {
            let next = writing.next().await?;
            Some((next, writing))
        });
        let body = Body::passing(bytes, None);
        Begun {
            total: self.total.filter(|_| plan.total == Total::Added),
            contributed: self.sources.len(),
            streamed: Streamed(Arc::new(Mutex::new(Some(body)))),
        }
    }
}

impl Writing {
    async fn next(&mut self) -> Option<Result<Bytes, Failure>> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Some(Ok(bytes));
            }
            if self.is_over {
                return None;
            }
            if self.wanted.is_empty() {
                self.is_over = true;
                note_dropped(self.merge.dropped());
                self.app.upstream.judge_successes(&self.vias);
                return Some(Ok(Bytes::from_static(b"]")));
            }
            let (at, next) = tokio::select! {
                next = self.feeds.next(&self.wanted) => next,
                Some(map) = &mut self.map => {
                    self.map = None.into();
                    let pieces = self.merge.learn(map);
                    self.ready.extend(gather(pieces, &[]));
                    self.wanted = self.merge.wanted();
                    continue;
                }
            };
            if let Err((backend, failure)) = self.take(at, next) {
                self.is_over = true;
                let via = self.vias.get(usize::from(at)).copied().flatten();
                self.app.upstream.judge_failure(via, &failure);
                if let Failure::Damaged(damage) = failure {
                    self.app.distrust(backend, damage);
                }
                let backend = self.app.name(backend);
                tracing::warn!(backend, %failure, "an answer under way is broken off");
                let others = self.sources.len().saturating_sub(1);
                self.app.rounds.count(Completeness::Partial, others);
                return Some(Err(failure));
            }
        }
    }

    /// Takes what has come and makes ready what is served of it.
    fn take(&mut self, at: u16, next: Next) -> Result<(), (BackendId, Failure)> {
        let done = match next {
            Some(Err(failure)) => Err(failure),
            Some(Ok(part)) => {
                self.parts[usize::from(at)] = part;
                self.merge(at, Stream::feed)
            }
            None => self.merge(at, Stream::end),
        };
        done.map_err(|failure| (self.sources[usize::from(at)], failure))
    }

    fn merge(&mut self, at: u16, step: Step) -> Result<(), Failure> {
        let parts: Vec<&[u8]> = self.parts.iter().map(|part| &**part).collect();
        let pieces = step(&mut self.merge, at, &parts).map_err(Failure::Damaged)?;
        self.ready.extend(gather(pieces, &self.parts));
        self.wanted = self.merge.wanted();
        for at in &self.wanted {
            self.parts[usize::from(*at)] = Bytes::new();
        }
        let max = self.app.upstream.max_body();
        if self.merge.held() + self.feeds.ahead() > max {
            return Err(Failure::TooLong(max));
        }
        Ok(())
    }
}

fn slices(mut bytes: Bytes) -> VecDeque<Bytes> {
    let mut slices = VecDeque::new();
    while bytes.len() > SLICE {
        slices.push_back(bytes.split_to(SLICE));
    }
    slices.push_back(bytes);
    slices
}

/// The rest of a body, as it arrives.
pub(super) fn arriving(
    upstream: Arc<Upstream>,
    body: Incoming,
) -> impl futures_util::Stream<Item = Result<Bytes, Failure>> + Send {
    stream::unfold((upstream, body), async |(upstream, mut body)| {
        let next = upstream.next_bytes(&mut body).await?;
        Some((next, (upstream, body)))
    })
}
