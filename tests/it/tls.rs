//! Backends behind TLS, and what they are told of who asks.

mod credentials;
mod rotation;
mod trouble;

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use pdbmux::config::{Access, Config};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use crate::harness::Pdbmux;
use crate::stub::Stub;

const NODES: &str = "/pdb/query/v4/nodes";

/// A private authority, as every Puppet site has one.
pub(crate) struct Authority {
    pub(crate) certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate with its key, both as PEM.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// When a certificate ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    Later,
    Ended,
    /// At the beginning of this year, month and day.
    OnDay(i32, u8, u8),
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = named(name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self {
            certificate: params.self_signed(&key).unwrap().pem(),
            issuer: Issuer::new(params, key),
        }
    }

    pub(crate) fn identity(&self, name: &str) -> Identity {
        self.identity_that(name, Ends::Later)
    }

    pub(crate) fn identity_that(&self, name: &str, ends: Ends) -> Identity {
        let mut params = named(name);
        match ends {
            Ends::Later => {}
            Ends::Ended => {
                params.not_before = date_time_ymd(2020, 1, 1);
                params.not_after = date_time_ymd(2021, 1, 1);
            }
            Ends::OnDay(year, month, day) => {
                params.not_after = date_time_ymd(year, month, day);
            }
        }
        let key = KeyPair::generate().unwrap();
        Identity {
            certificate: params.signed_by(&key, &self.issuer).unwrap().pem(),
            key: key.serialize_pem(),
        }
    }

    pub(crate) fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        let own = CertificateDer::from_pem_slice(self.certificate.as_bytes());
        roots.add(own.unwrap()).unwrap();
        roots
    }
}

fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

/// TLS before a stub.
pub(crate) struct Front {
    address: SocketAddr,
    /// The certificates that were shown, in their order.
    shown: Arc<Mutex<Vec<Vec<u8>>>>,
    _serving: JoinSet<()>,
}

impl Front {
    /// One that shows `own` and, if there are `clients`, lets those alone in whom they issued.
    pub(crate) async fn before(stub: &Stub, own: &Identity, clients: Option<&Authority>) -> Self {
        let config = Self::config(own, clients);
        Self::with(config, stub.address()).await
    }

    /// The same that speaks HTTP/2 as the stub does, and nothing else.
    pub(crate) async fn by_http2(stub: &Stub, own: &Identity, clients: Option<&Authority>) -> Self {
        let mut config = Self::config(own, clients);
        config.alpn_protocols = vec![b"h2".to_vec()];
        Self::with(config, stub.front()).await
    }

    fn config(own: &Identity, clients: Option<&Authority>) -> ServerConfig {
        let config = ServerConfig::builder();
        let config = match clients {
            None => config.with_no_client_auth(),
            Some(clients) => {
                let roots = Arc::new(clients.roots());
                let verifier = WebPkiClientVerifier::builder(roots).build().unwrap();
                config.with_client_cert_verifier(verifier)
            }
        };
        let certificate = CertificateDer::from_pem_slice(own.certificate.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes()).unwrap();
        config.with_single_cert(vec![certificate], key).unwrap()
    }

    async fn with(config: ServerConfig, plain: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shown = Arc::default();
        let mut serving = JoinSet::new();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        serving.spawn(terminate(listener, acceptor, plain, Arc::clone(&shown)));
        Self {
            address,
            shown,
            _serving: serving,
        }
    }

    /// One that speaks no TLS, as a web server's port for plain HTTP does.
    async fn plain() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut hello = [0; 1];
                stream.read_exact(&mut hello).await.unwrap();
                let refusal = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
                stream.write_all(refusal).await.unwrap();
                // Open until it is left, so that the refusal is read before the end.
                while stream.read(&mut hello).await.is_ok_and(|read| read > 0) {}
            }
        });
        Self {
            address,
            shown: Arc::default(),
            _serving: serving,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("https://{}", self.address)
    }
}

async fn terminate(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    plain: SocketAddr,
    shown: Arc<Mutex<Vec<Vec<u8>>>>,
) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (acceptor, shown) = (acceptor.clone(), Arc::clone(&shown));
        connections.spawn(async move {
            let Ok(mut stream) = acceptor.accept(stream).await else {
                return;
            };
            let of_client = stream.get_ref().1.peer_certificates();
            let first = of_client.and_then(|all| all.first());
            shown
                .lock()
                .unwrap()
                .push(first.map(|it| it.to_vec()).unwrap_or_default());
            let mut onward = TcpStream::connect(plain).await.unwrap();
            let _broken = copy_bidirectional(&mut stream, &mut onward).await;
        });
    }
}

/// Files of a site.
pub(crate) struct Files(TempDir);

impl Files {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    /// What is needed of these.
    pub(crate) fn access(&self, ca: &Authority, own: &Identity) -> Access {
        Access {
            ca: Some(self.write("ca.pem", &ca.certificate)),
            cert: Some(self.write("cert.pem", &own.certificate)),
            key: Some(self.write("key.pem", &own.key)),
            server_name: Some("puppetdb".to_owned()),
            ..Access::default()
        }
    }
}

/// pdbmux with one backend behind TLS.
async fn behind(front: &Front, access: Access, change: impl FnOnce(&mut Config)) -> Pdbmux {
    let nobody = Stub::closed();
    Pdbmux::with(&[&nobody], |config| {
        config.backends[0].url = front.url().parse().unwrap();
        config.backends[0].access = access;
        change(config);
    })
    .await
}
