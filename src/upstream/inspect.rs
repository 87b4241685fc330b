//! Looking at a PuppetDB step by step, as requests never do: its host, its port, its certificates.

use std::net::IpAddr;

use jiff::Timestamp;
use rustls::pki_types::CertificateDer;
use tokio::time::timeout;

use super::{Failure, Member, TlsError};
use crate::certificate::Which;
use crate::config::{BaseUrl, Protocol};
use crate::names::{LookupError, Names};

impl Member {
    /// Where it is.
    pub fn url(&self) -> &BaseUrl {
        &self.url
    }

    /// What is to be spoken with it, if it can.
    pub fn wanted(&self) -> Protocol {
        self.access.http2.unwrap_or(Protocol::Http1)
    }

    /// What is spoken on the connection to it that was made last, if one was.
    pub fn spoken(&self) -> Option<Protocol> {
        self.connections.spoken()
    }

    /// The certificates of the file that it is shown, pdbmux's own first; `None` if it is shown none.
    pub fn shown(&self) -> Option<Result<Vec<CertificateDer<'static>>, TlsError>> {
        self.tls.shown()
    }

    /// The certificates of its `ca`; none where those count that the machine trusts.
    pub fn authorities(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        self.tls.authorities()
    }

    /// When each certificate ends that counts towards it, as far as it is known; none where its URL is
    /// no `https`.
    pub fn certificate_ends(&self) -> impl Iterator<Item = (Which, Timestamp)> + use<> {
        let ends = self.url.is_secure().then(|| self.tls.ends());
        ends.into_iter().flatten()
    }

    /// The addresses of its host. `Ok(None)` if that took longer than its `timeout`.
    pub async fn addresses(&self, names: &Names) -> Result<Option<Vec<IpAddr>>, LookupError> {
        let host = self.url.authority().host();
        let v6 = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        let found = timeout(self.timeout, names.addresses(v6.unwrap_or(host)));
        found.await.ok().transpose()
    }

    /// Connects to its port and leaves.
    pub async fn knock(&self) -> Result<(), Failure> {
        let origin = self.url.origin().map_err(Failure::Unsendable)?;
        let reached = timeout(self.timeout, self.connections.connector().reach(origin));
        let reached = reached.await.map_err(|_| Failure::Timeout(self.timeout))?;
        reached.map_err(Failure::Unconnected)
    }

    /// Connects as for a request and leaves. The certificates that it shows, its own first; none
    /// where its URL is no `https`.
    pub async fn greet(&self) -> Result<Vec<CertificateDer<'static>>, Failure> {
        let origin = self.url.origin().map_err(Failure::Unsendable)?;
        let greeted = timeout(self.timeout, self.connections.connector().greet(origin));
        let greeted = greeted.await.map_err(|_| Failure::Timeout(self.timeout))?;
        greeted.map_err(|error| self.explain(Failure::Unconnected(error)))
    }
}
