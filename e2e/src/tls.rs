//! TLS before a server that speaks plain HTTP, for clients that take nothing else.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::Result;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd,
};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// A private authority, as every Puppet site has one.
#[derive(Debug)]
pub struct Authority {
    /// Its own certificate, as PEM.
    pub certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate with its key, both as PEM.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

/// Until when a certificate is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// For longer than anybody waits.
    Later,
    /// Until the first day of 2021.
    Ended,
}

/// Takes TLS off what goes on to a plain server, until it is dropped.
#[derive(Debug)]
pub struct Front {
    /// Where it listens on 127.0.0.1.
    pub port: u16,
    _runtime: Runtime,
}

impl Authority {
    /// A new one.
    pub fn new() -> Result<Self> {
        let mut params = named("Puppet CA", Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?.pem();
        Ok(Self {
            certificate,
            issuer: Issuer::new(params, key),
        })
    }

    fn sign(&self, name: &str, ends: Ends) -> Result<(Certificate, KeyPair)> {
        let key = KeyPair::generate()?;
        let mut params = named(name, vec![name.to_owned()])?;
        if ends == Ends::Ended {
            params.not_before = date_time_ymd(2020, 1, 1);
            params.not_after = date_time_ymd(2021, 1, 1);
        }
        Ok((params.signed_by(&key, &self.issuer)?, key))
    }

    /// What `name` shows that it is `name`.
    pub fn identity(&self, name: &str) -> Result<Identity> {
        self.identity_that(name, Ends::Later)
    }

    /// The same with this end.
    pub fn identity_that(&self, name: &str, ends: Ends) -> Result<Identity> {
        let (certificate, key) = self.sign(name, ends)?;
        Ok(Identity {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        })
    }

    /// Puts TLS before the server at `plain`, which is known as `name` to its clients.
    pub fn front(&self, name: &str, plain: SocketAddr) -> Result<Front> {
        let (own, key) = self.sign(name, Ends::Later)?;
        let config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(
                vec![own.der().clone()],
                PrivateKeyDer::Pkcs8(key.serialize_der().into()),
            )?;
        let runtime = Runtime::new()?;
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        let port = listener.local_addr()?.port();
        runtime.spawn(terminate(listener, Arc::new(config).into(), plain));
        Ok(Front {
            port,
            _runtime: runtime,
        })
    }
}

/// What is certified about `name`. Two that have the same are taken for one (by OpenSSL).
fn named(name: &str, reached_by: Vec<String>) -> Result<CertificateParams> {
    let mut params = CertificateParams::new(reached_by)?;
    params.distinguished_name.push(DnType::CommonName, name);
    Ok(params)
}

async fn terminate(listener: TcpListener, acceptor: TlsAcceptor, plain: SocketAddr) {
    while let Ok((stream, _)) = listener.accept().await {
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            // A client that goes away is no matter of the front.
            if let Ok(mut secure) = acceptor.accept(stream).await
                && let Ok(mut plain) = TcpStream::connect(plain).await
            {
                let _ended = copy_bidirectional(&mut secure, &mut plain).await;
            }
        });
    }
}
