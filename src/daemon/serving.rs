//! The listeners that are served, and their ends.

use std::sync::{Arc, Weak};

use tokio::net::TcpListener;
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
    /// The sockets of listeners that were told to close, as long as those have them.
    left: Vec<(Listen, Weak<TcpListener>)>,
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
    socket: Weak<TcpListener>,
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
                socket: Arc::downgrade(&listener.socket),
            });
            self.left.retain(|(_, socket)| {
                let socket = socket.upgrade();
                socket.is_some_and(|socket| !Arc::ptr_eq(&socket, &listener.socket))
            });
            let served = self.served(listener.audience);
            // Those that have ended are forgotten.
            while served.tasks.try_join_next().is_some() {}
            let (current, crowd) = (Arc::clone(current), Arc::clone(&served.crowd));
            let serving = http::serve(current, listener, crowd, ending);
            served.tasks.spawn(serving);
        }
    }

    /// Opens the addresses of a configuration that are not open yet: all of them, or none. What is being
    /// left is taken over as it is: an address cannot be opened twice.
    pub(super) async fn lacking(
        &self,
        config: &Config,
        names: &Names,
    ) -> Result<Vec<Listener>, BindError> {
        let wanted = listener::configured(config);
        let mut opened = Vec::<Listener>::new();
        for (at, audience) in &wanted {
            if self.open.iter().any(|open| open.is(at, *audience)) {
                continue;
            }
            let is_new = |it: &Arc<_>| opened.iter().all(|other| !Arc::ptr_eq(it, &other.socket));
            opened.push(match self.left_at(at, &wanted).filter(is_new) {
                Some(socket) => Listener {
                    at: at.clone(),
                    audience: *audience,
                    socket,
                },
                None => Listener::open(at.clone(), *audience, names).await?,
            });
        }
        Ok(opened)
    }

    /// The socket of an address that was left, or is by a configuration of these addresses.
    fn left_at(&self, at: &Listen, named: &[(Listen, Audience)]) -> Option<Arc<TcpListener>> {
        let leaving = self.open.iter().filter(|open| !open.is_named(named));
        let leaving = leaving.map(|open| (&open.at, &open.socket));
        let left = self.left.iter().map(|(at, socket)| (at, socket));
        let mut there = leaving.chain(left).filter(|(it, _)| it.is_place_of(at));
        there.find_map(|(_, socket)| socket.upgrade())
    }

    /// Closes the listeners that a configuration does not name. Their connections end in their time.
    pub(super) fn close_others(&mut self, config: &Config) {
        let named = listener::configured(config);
        self.open.retain(|open| {
            let stays = open.is_named(&named);
            if !stays {
                tracing::info!("no longer listening on {}", open.at);
                open.ending.closed.cancel();
                self.left.push((open.at.clone(), open.socket.clone()));
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

    fn is_named(&self, named: &[(Listen, Audience)]) -> bool {
        named.iter().any(|(at, audience)| self.is(at, *audience))
    }
}
