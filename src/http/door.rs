//! What stands between a connection and the answers: who is let in, and how many at one time.

mod base;
mod cors;
mod credentials;
mod error;
mod guard;
mod limits;
mod peer;
mod refused;
mod tls;
mod tokens;
mod users;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Request, Uri};
use jiff::Timestamp;
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use self::cors::Cors;
use self::guard::{Guard, Judgement};
use self::limits::Limits;
use self::peer::{Peers, Shown};
use self::tls::{Allowlist, Tls};
use crate::certificate::Which;
use crate::config::{Config, Protocol};
use crate::request;

pub(crate) use base::Lead;
pub(crate) use cors::Sharing;
pub use error::DoorError;
pub(crate) use guard::Wanted;
pub(crate) use limits::{Crowd, Place};
pub(crate) use peer::Peer;
pub(crate) use refused::Refused;

/// Lets requests in, as it is configured.
#[derive(Debug)]
pub(crate) struct Door {
    base: Option<String>,
    cors: Option<Cors>,
    tls: Option<Tls>,
    allowlist: Option<Allowlist>,
    guard: Option<Guard>,
    peers: Arc<Peers>,
    limits: Limits,
}

impl Door {
    /// As it is configured. Nothing is read yet.
    pub(crate) fn of(config: &Config) -> Self {
        let config = &config.door;
        Self {
            base: config.base_path.clone(),
            cors: Cors::of(&config.cors_origins),
            tls: Tls::of(config),
            allowlist: Allowlist::of(config),
            guard: Guard::of(config),
            peers: Peers::of(config),
            limits: Limits::of(config),
        }
    }

    /// Reads its files; what is wrong with the first that cannot be used.
    pub(crate) fn check(&self) -> Result<(), DoorError> {
        if let Some(tls) = &self.tls {
            tls.config()?;
        }
        if let Some(allowlist) = &self.allowlist {
            allowlist.names()?;
        }
        if let Some(guard) = &self.guard {
            guard.check()?;
        }
        Ok(())
    }

    /// When each certificate ends that counts towards clients.
    pub(super) fn certificate_ends(&self) -> impl Iterator<Item = (Which, Timestamp)> + use<> {
        self.tls.as_ref().map(Tls::ends).into_iter().flatten()
    }

    /// The other side of a connection from `address`.
    pub(crate) fn peer(&self, address: SocketAddr) -> Arc<Peer> {
        Arc::new(Peer::new(&self.peers, address, Shown::Nothing))
    }

    /// The same for a connection that is to be encrypted, with it and what is spoken on it; `None` if
    /// it cannot be within `patience`.
    pub(crate) async fn secure(
        &self,
        stream: TcpStream,
        address: SocketAddr,
        patience: Duration,
    ) -> Option<(Arc<Peer>, Protocol, TlsStream<TcpStream>)> {
        let tls = self.tls.as_ref()?;
        let stream = tls.accept(stream, address, patience).await?;
        let shown = Shown::Certificate(tls::names(&stream));
        let peer = Arc::new(Peer::new(&self.peers, address, shown));
        Some((peer, tls::protocol(&stream), stream))
    }

    /// Where the path of a request leads.
    pub(super) fn lead(&self, uri: &Uri) -> Lead {
        base::lead(self.base.as_deref(), uri)
    }

    /// What a browser is told of the answer to a request.
    pub(super) fn sharing<B>(&self, request: &Request<B>) -> Sharing {
        let cors = self.cors.as_ref();
        cors.map_or(Sharing::Untold, |cors| cors.sharing(request))
    }

    /// Whether a request is a browser's question what it may ask, and is answered as such.
    pub(super) fn is_preflight<B>(&self, request: &Request<B>) -> bool {
        self.cors.is_some() && cors::is_preflight(request)
    }

    /// A place for a request of `peer` with these headers, which is told whom it was let in as. To wait
    /// for one is left off by dropping the future.
    pub(super) async fn admit(
        &self,
        peer: &Arc<Peer>,
        headers: &HeaderMap,
    ) -> Result<Place, Refused> {
        let admitted = async {
            let mut user = self.know(peer)?;
            // Counted before: to look at passwords is work.
            let counted = self.limits.count(peer)?;
            if let Some(guard) = &self.guard {
                match guard.judge(headers).await? {
                    Judgement::Known(name) => user = name.or(user),
                    Judgement::Bare(wanted) => return Err(Refused::Bare(wanted)),
                    Judgement::Unknown(wanted) => return Err(Refused::Unknown(wanted)),
                }
            }
            if let Some(user) = user {
                request::let_in(user);
            }
            Ok(self.limits.place(counted).await?)
        };
        admitted
            .await
            .inspect_err(|why: &Refused| why.log(peer.address()))
    }

    /// The name of the certificate that lets it in, if it has shown one. Refuses whose certificate has
    /// none of the names that it must have.
    fn know(&self, peer: &Peer) -> Result<Option<Arc<str>>, Refused> {
        let Shown::Certificate(names) = peer.shown() else {
            return Ok(None);
        };
        let Some(allowlist) = &self.allowlist else {
            return Ok(names.first().cloned());
        };
        let allowed = allowlist.names()?;
        match names.iter().find(|name| allowed.contains(&***name)) {
            Some(name) => Ok(Some(Arc::clone(name))),
            None => Err(Refused::Unlisted(names.first().map(ToString::to_string))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::request::{self, Notes};

    /// Whom a client with a certificate of two names is let in as.
    async fn user(change: impl FnOnce(&mut Config), header: (&str, &str)) -> Option<String> {
        let mut config = Config::default();
        change(&mut config);
        let door = Door::of(&config);
        let names = ["board.example", "board"].map(Arc::from);
        let address = ([127, 0, 0, 1], 1).into();
        let shown = Shown::Certificate(names.into());
        let peer = Arc::new(Peer::new(&door.peers, address, shown));
        let head = Request::get("/")
            .header(header.0, header.1)
            .body(())
            .unwrap();
        let request = request::Request::new(&head, None, Notes::Off, None);
        let admitted = request.follow(door.admit(&peer, head.headers())).await;
        assert_eq!(admitted.is_ok(), request.user().is_some());
        request.user().map(str::to_owned)
    }

    #[tokio::test]
    async fn a_client_is_let_in_as_its_user_or_as_the_name_that_counts_of_its_certificate() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            fs::write(dir.path().join(name), text).unwrap();
            Some(dir.path().join(name))
        };
        let none = ("accept", "*/*");
        assert_eq!(user(|_| {}, none).await.unwrap(), "board.example");
        let listed = |config: &mut Config| config.door.tls_allowlist = file("list", "x\nboard\n");
        assert_eq!(user(listed, none).await.unwrap(), "board");
        let unlisted = |config: &mut Config| config.door.tls_allowlist = file("none", "x\n");
        assert_eq!(user(unlisted, none).await, None);
        let tokens = |config: &mut Config| config.door.tokens = file("tokens", "ann hush\nother\n");
        for (token, name) in [("hush", "ann"), ("other", "board.example")] {
            let told = user(tokens, ("x-authentication", token)).await;
            assert_eq!(told.unwrap(), name);
        }
        assert_eq!(user(tokens, none).await, None);
    }
}
