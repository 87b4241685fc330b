//! The listeners that are served, and their ends.

use std::sync::Arc;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, Listen};
use crate::http::{self, Crowd, Current, Ending};
use crate::listener::{self, Audience, BindError, Listener};
use crate::names::Names;

/// All listeners.
#[derive(Debug, Default)]
pub(super) struct Serving {
    open: Vec<Open>,
    /// Those of clients, closed ones included until they have drained.
    clients: Served,
    /// The same of those of operators.
    operators: Served,
    /// Ends all of their connections.
    cut: CancellationToken,
}

/// What is served for an audience.
#[derive(Debug, Default)]
struct Served {
    tasks: JoinSet<()>,
    crowd: Arc<Crowd>,
}

/// A listener that takes connections.
#[derive(Debug)]
struct Open {
    at: Listen,
    audience: Audience,
    ending: Ending,
}

impl Serving {
    /// Begins to serve these.
    pub(super) fn open(&mut self, current: &Arc<Current>, listeners: Vec<Listener>) {
        for listener in listeners {
            if let Ok(address) = listener.socket.local_addr() {
                match listener.audience {
                    Audience::Clients => tracing::info!("listening on {address}"),
                    Audience::Operators => tracing::info!("telling operators on {address}"),
                }
            }
            let ending = Ending {
                closed: CancellationToken::new(),
                cut: self.cut.child_token(),
            };
            self.open.push(Open {
                at: listener.at.clone(),
                audience: listener.audience,
                ending: ending.clone(),
            });
            let served = self.served(listener.audience);
            // Those that have ended are forgotten.
            while served.tasks.try_join_next().is_some() {}
            let (current, crowd) = (Arc::clone(current), Arc::clone(&served.crowd));
            let serving = http::serve(current, listener, crowd, ending);
            served.tasks.spawn(serving);
        }
    }

    /// Opens the addresses of a configuration that are not open yet: all of them, or none.
    pub(super) async fn lacking(
        &self,
        config: &Config,
        names: &Names,
    ) -> Result<Vec<Listener>, BindError> {
        let mut opened = Vec::new();
        for (at, audience) in listener::configured(config) {
            if !self.open.iter().any(|open| open.is(&at, audience)) {
                opened.push(Listener::open(at, audience, names).await?);
            }
        }
        Ok(opened)
    }

    /// Closes the listeners that a configuration does not name. Their connections end in their time.
    pub(super) fn close_others(&mut self, config: &Config) {
        let named = listener::configured(config);
        self.open.retain(|open| {
            let stays = named.iter().any(|(at, audience)| open.is(at, *audience));
            if !stays {
                tracing::info!("no longer listening on {}", open.at);
                open.ending.closed.cancel();
            }
            stays
        });
    }

    /// What ends all connections at once.
    pub(super) fn cut(&self) -> CancellationToken {
        self.cut.clone()
    }

    /// Closes all listeners of an audience, and waits until their connections have ended.
    pub(super) async fn end(&mut self, audience: Audience) {
        for open in self.open.iter().filter(|open| open.audience == audience) {
            open.ending.closed.cancel();
        }
        let tasks = &mut self.served(audience).tasks;
        while tasks.join_next().await.is_some() {}
    }

    fn served(&mut self, audience: Audience) -> &mut Served {
        match audience {
            Audience::Clients => &mut self.clients,
            Audience::Operators => &mut self.operators,
        }
    }
}

impl Open {
    fn is(&self, at: &Listen, audience: Audience) -> bool {
        self.at == *at && self.audience == audience
    }
}
