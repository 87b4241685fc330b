//! What holds of flights under every schedule.

use real::panic::resume_unwind;
use real::sync::Arc;
use real::sync::atomic::{AtomicU64, Ordering::SeqCst};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use shuttle::future::{block_on, spawn, yield_now};
use shuttle::rand::{Rng, thread_rng};
use shuttle_tokio::sync::watch;

use crate::flight::Flights;

/// A name and what is run under each schedule.
pub type Model = (&'static str, fn());

/// Lists functions under their own names.
macro_rules! models {
    ($($model:ident),* $(,)?) => {
        &[$((stringify!($model), $model as fn())),*]
    };
}

pub const ALL: &[Model] = models![
    r217_one_round_for_all_who_ask_meanwhile,
    r218_who_leaves_takes_nothing_from_others,
    r219_the_last_to_leave_ends_it,
    a_panic_ends_every_wait,
    whatever_happens_nobody_waits_for_ever,
];

/// What came of a round: its number, and that of the newest round when it ended.
type Done = (u64, u64);

/// The flights of one key and what is known of its rounds.
#[derive(Clone)]
struct Estate {
    flights: Arc<Flights<Done>>,
    /// How many rounds there have been.
    rounds: Arc<AtomicU64>,
    /// The newest round that anybody has heard of.
    heard: Arc<AtomicU64>,
}

/// What a round does after some steps.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Lands,
    Panics,
}

impl Estate {
    fn new() -> Self {
        Self {
            flights: Arc::new(Flights::new()),
            rounds: Arc::default(),
            heard: Arc::default(),
        }
    }

    /// A round of the backends.
    fn round(&self, fate: Fate) -> BoxFuture<'static, Done> {
        let rounds = Arc::clone(&self.rounds);
        let number = rounds.fetch_add(1, SeqCst) + 1;
        async move {
            yield_now().await;
            yield_now().await;
            if fate == Fate::Panics {
                resume_unwind(Box::new("on purpose"));
            }
            (number, rounds.load(SeqCst))
        }
        .boxed()
    }

    /// Asks and stays to the end.
    async fn ask(&self, fate: Fate) -> Option<u64> {
        let heard = self.heard.load(SeqCst);
        let flight = self.flights.join("key", || self.round(fate));
        let done = flight.landed().await;
        drop(flight);
        let (number, newest) = done?;
        assert_eq!(
            number, newest,
            "another round began while this one was waited for"
        );
        assert!(number > heard, "round {number} was over when it was joined");
        self.heard.fetch_max(number, SeqCst);
        Some(number)
    }

    /// Asks and leaves after some looks at what came of it.
    async fn leave(&self, fate: Fate) {
        let flight = self.flights.join("key", || self.round(fate));
        let mut landed = Box::pin(flight.landed());
        for _ in 0..thread_rng().gen_range(0..3) {
            if landed.as_mut().now_or_never().is_some() {
                return;
            }
            yield_now().await;
        }
    }

    /// No flight is left on the list, once tasks that were told to end have ended.
    async fn is_over(&self) {
        while !format!("{:?}", self.flights).contains("flights: {}") {
            yield_now().await;
        }
    }
}

/// Nobody leaves: all rounds end, and nobody is given one that was over when they asked.
fn r217_one_round_for_all_who_ask_meanwhile() {
    block_on(async {
        let estate = Estate::new();
        let clients = (0..3).map(|_| {
            let estate = estate.clone();
            spawn(async move {
                assert!(estate.ask(Fate::Lands).await.is_some());
                assert!(estate.ask(Fate::Lands).await.is_some());
            })
        });
        join_all(clients.collect::<Vec<_>>()).await;
        estate.is_over().await;
    });
}

/// Two leave at any moment, also before or after the others come, who stay and are answered.
fn r218_who_leaves_takes_nothing_from_others() {
    block_on(async {
        let estate = Estate::new();
        let mut clients = Vec::new();
        for _ in 0..2 {
            let (leaving, staying) = (estate.clone(), estate.clone());
            clients.push(spawn(async move { leaving.leave(Fate::Lands).await }));
            clients.push(spawn(async move {
                assert!(staying.ask(Fate::Lands).await.is_some());
            }));
        }
        join_all(clients).await;
        estate.is_over().await;
    });
}

/// A round that would never end is dropped when all have left, and not before.
fn r219_the_last_to_leave_ends_it() {
    block_on(async {
        let flights = Arc::new(Flights::<()>::new());
        let (alive, ended) = watch::channel(());
        let round = |ended: watch::Receiver<()>| async move {
            let _ended = ended;
            real::future::pending::<()>().await;
        };
        let first = flights.join("key", || round(ended.clone()));
        let other = flights.join("key", async || unreachable!());
        drop(ended);
        let leaving = spawn(async move { drop(first) });
        yield_now().await;
        assert!(!alive.is_closed(), "it ended before the last had left");
        drop(other);
        leaving.await.unwrap();
        alive.closed().await;
        while !format!("{flights:?}").contains("flights: {}") {
            yield_now().await;
        }
    });
}

/// Every round ends in a panic: whoever waits is told, and the next who asks gets a new round.
fn a_panic_ends_every_wait() {
    block_on(async {
        let estate = Estate::new();
        let clients = (0..3).map(|_| {
            let estate = estate.clone();
            spawn(async move { assert_eq!(estate.ask(Fate::Panics).await, None) })
        });
        join_all(clients.collect::<Vec<_>>()).await;
        assert!(estate.ask(Fate::Lands).await.is_some());
        estate.is_over().await;
    });
}

/// Clients that stay, leave and ask again, while a round may panic.
fn whatever_happens_nobody_waits_for_ever() {
    block_on(async {
        let estate = Estate::new();
        let clients = (0..3).map(|client| {
            let estate = estate.clone();
            spawn(async move {
                for turn in 0..2 {
                    // One at most: shuttle cannot follow two tasks that unwind at a time.
                    let fate = match (client, turn) {
                        (0, 0) => Fate::Panics,
                        _ => Fate::Lands,
                    };
                    if thread_rng().gen_bool(0.5) {
                        estate.leave(fate).await;
                    } else {
                        estate.ask(fate).await;
                    }
                }
            })
        });
        join_all(clients.collect::<Vec<_>>()).await;
        estate.is_over().await;
    });
}
