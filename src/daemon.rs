//! The daemon from its first listener to its last answer: it serves, reads its configuration again, and
//! ends.

mod manager;
mod serving;
mod signals;
mod watch;

use std::future;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, timeout_at};

use crate::config::{Config, ConfigError, Source};
use crate::http::{App, Current, DoorError, certificates};
use crate::listener::{Audience, BindError, Listener};
use crate::metrics::Metrics;
use crate::names::Names;
use crate::upstream::prober;

pub use manager::{Manager, Unreachable};
pub use signals::orders;

use manager::Event;
use serving::Serving;
use watch::Watch;

/// What a daemon is told while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// To read its configuration again.
    Reload,
    /// To end, once the answers under way have ended.
    Stop,
}

/// Sets what a configuration says of the process as a whole, such as [`Config::log_level`].
pub type Settle = Box<dyn Fn(&Config) + Send>;

/// What a daemon is connected with besides its listeners.
pub struct Outside {
    /// What it is told. That nobody can tell it anything any more is an order to stop.
    pub orders: mpsc::Receiver<Order>,
    /// Where it reads its configuration again; nowhere if it cannot.
    pub source: Option<Source>,
    /// How a new configuration is put in force beyond what is served, if it is.
    pub settle: Option<Settle>,
    /// Who is told how it is, if somebody wants to know.
    pub manager: Option<Manager>,
}

impl Outside {
    /// One that gives these orders, and nothing else.
    pub fn ordering(orders: mpsc::Receiver<Order>) -> Self {
        Self {
            orders,
            source: None,
            settle: None,
            manager: None,
        }
    }
}

/// Why a configuration is not taken. The one before it stays.
#[derive(Debug, thiserror::Error)]
enum NotTaken {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Bind(#[from] BindError),
    #[error(transparent)]
    Door(#[from] DoorError),
    #[error("reading it broke: {0}")]
    Broken(#[from] JoinError),
}

struct Daemon {
    current: Arc<Current>,
    serving: Serving,
    probes: JoinSet<()>,
    source: Option<Source>,
    settle: Option<Settle>,
    manager: Option<Arc<Manager>>,
}

/// Serves `listeners` until it is told to stop, then lets the answers under way end, for as long as the
/// configuration allows. Operators are answered until clients are.
///
/// The listeners are served at once, whatever state the backends are in.
pub async fn run(config: Config, listeners: Vec<Listener>, outside: Outside) {
    let Outside {
        mut orders,
        source,
        settle,
        manager,
    } = outside;
    let manager = manager.map(Arc::new);
    // Tasks of their own, so that they go on whatever is under way; they end with this.
    let mut watching = JoinSet::new();
    if let Some(manager) = manager.clone() {
        watching.spawn(async move { manager.watch().await });
    }
    let app = App::new(config, &Metrics::new());
    let mut daemon = Daemon {
        probes: prober::start(app.upstream(), app.config()),
        current: Arc::new(Current::new(app)),
        serving: Serving::default(),
        source,
        settle,
        manager,
    };
    watching.spawn(certificates::watch(Arc::clone(&daemon.current)));
    daemon.serving.open(&daemon.current, listeners);
    daemon.tell(Event::Ready(&daemon.status()));
    let mut watch = Watch::default();
    loop {
        let pause = daemon.current.app().config().reload_interval;
        tokio::select! {
            order = orders.recv() => match order {
                Some(Order::Reload) => {}
                Some(Order::Stop) | None => break,
            },
            () = watch.changed(daemon.source.as_ref(), pause) => {}
        }
        daemon.reload().await;
    }
    daemon.end(&mut orders).await;
}

/// Resolves when it is ordered once more to stop.
async fn stopped_again(orders: &mut mpsc::Receiver<Order>) {
    loop {
        match orders.recv().await {
            Some(Order::Stop) => return,
            Some(Order::Reload) => {}
            // Nobody is left who could.
            None => future::pending().await,
        }
    }
}

impl Daemon {
    /// Reads the configuration again, and says what became of that.
    async fn reload(&mut self) {
        let Some(source) = self.source.clone() else {
            tracing::debug!("there is no configuration to read again");
            return;
        };
        self.tell(Event::Reloading);
        let taken = self.take(source).await;
        match &taken {
            Ok(()) => tracing::info!("the configuration was read again"),
            Err(why) => tracing::error!("the configuration stays as it was: {why}"),
        }
        let app = self.current.app();
        app.reloaded(taken.map_err(|why| why.to_string()));
        self.tell(Event::Ready(&self.status()));
    }

    async fn take(&mut self, source: Source) -> Result<(), NotTaken> {
        let before = self.current.app();
        let (config, notes) = tokio::task::spawn_blocking(move || source.read()).await??;
        let opened = self.serving.lacking(&config, &Names::of_system()).await?;
        let app = {
            let before = Arc::clone(&before);
            // It reads files.
            tokio::task::spawn_blocking(move || {
                let app = before.following(config);
                app.door().check().map(|()| app)
            })
            .await??
        };
        // From here on nothing fails.
        let config = app.config();
        for note in notes {
            tracing::warn!("{note}");
        }
        if let Some(settle) = &self.settle {
            settle(config);
        }
        if config.log_format != before.config().log_format {
            tracing::warn!("log_format is changed by a restart alone");
        }
        // What the last probes found must be known before the next are made.
        self.probes.shutdown().await;
        app.upstream().take_over(before.upstream());
        self.probes = prober::start(app.upstream(), config);
        self.current.replace(Arc::clone(&app));
        self.serving.close_others(config);
        self.serving.open(&self.current, opened);
        Ok(())
    }

    fn tell(&self, event: Event<'_>) {
        if let Some(manager) = &self.manager {
            manager.tell(event);
        }
    }

    /// What an operator should see first of a daemon that serves.
    fn status(&self) -> String {
        let app = self.current.app();
        let backends = app.config().backends.len();
        match app.reloads().seen().last_error {
            None => format!("serving {backends} backends"),
            Some(why) => format!("serving {backends} backends; the last reload failed: {why}"),
        }
    }

    /// Lets everything end in its time, or at once when it is told again.
    async fn end(mut self, orders: &mut mpsc::Receiver<Order>) {
        let app = self.current.app();
        let delay = app.config().drain_delay;
        self.tell(Event::Stopping);
        app.drain();
        if !delay.is_zero() {
            tracing::info!(?delay, "requests are still taken, and /readyz says no");
        }
        let (cut, serving) = (self.serving.cut(), &mut self.serving);
        let until = Instant::now() + delay + app.config().shutdown_timeout;
        let in_time = async {
            tokio::time::sleep(delay).await;
            serving.end(Audience::Clients).await;
            let flushed = timeout_at(until, app.flush_spans());
            let ((), flushed) = tokio::join!(serving.end(Audience::Operators), flushed);
            if flushed.is_err() {
                tracing::warn!("the last spans could not be sent in time");
            }
        };
        tokio::select! {
            () = in_time => {}
            () = stopped_again(orders) => {
                tracing::warn!("told again to stop: answers still under way are cut off");
                cut.cancel();
            }
        }
        self.probes.shutdown().await;
    }
}
