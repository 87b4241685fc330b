//! The daemon from its first listener to its last answer.

use std::future::Future;
use std::sync::Arc;

use tokio::task::JoinSet;

use crate::config::Config;
use crate::http::{self, App, Current, Ending};
use crate::listener::{Audience, Listener};
use crate::upstream::prober;

/// Serves `listeners` until `shutdown`, then lets the answers under way end, for as long as the
/// configuration allows. Operators are answered until clients are.
///
/// The listeners are served at once, whatever state the backends are in.
pub async fn run(config: Config, listeners: Vec<Listener>, shutdown: impl Future<Output = ()>) {
    let app = App::new(&config);
    let mut probes = prober::start(app.upstream(), &config);
    let current = Arc::new(Current::new(app));
    let (clients, operators) = (Ending::default(), Ending::default());
    let (mut public, mut admin) = (JoinSet::new(), JoinSet::new());
    for listener in listeners {
        let (serving, ending) = match listener.audience {
            Audience::Clients => (&mut public, &clients),
            Audience::Operators => (&mut admin, &operators),
        };
        serving.spawn(http::serve(Arc::clone(&current), listener, ending.clone()));
    }
    shutdown.await;
    current.app().drain();
    clients.closed.cancel();
    while public.join_next().await.is_some() {}
    operators.closed.cancel();
    while admin.join_next().await.is_some() {}
    probes.shutdown().await;
}
