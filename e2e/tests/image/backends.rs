//! Two sample PuppetDBs that are reached by name, one of them over TLS, and the DNS that has its
//! name. All on loopback.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::SystemTime;

use pdbmux_samples::{Server, migration, serve};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// In the hosts file.
pub(crate) const PLAIN: &str = "plain.pdbmux.test";
/// In DNS.
pub(crate) const SECURE: &str = "secure.pdbmux.test";
/// The DNS server: its port cannot be chosen, so that it has an address of its own.
pub(crate) const DNS: Ipv4Addr = Ipv4Addr::new(127, 53, 53, 53);

/// They run until this goes.
pub(crate) struct Backends {
    pub(crate) plain_port: u16,
    pub(crate) secure_port: u16,
    /// The private authority that vouches for the one over TLS, as PEM.
    pub(crate) authority: String,
    _servers: [Server; 2],
    _runtime: Runtime,
}

impl Backends {
    pub(crate) fn start() -> Self {
        let runtime = Runtime::new().unwrap();
        let (servers, secure_port, authority) = runtime.block_on(async {
            let [old, new] = migration::samples(SystemTime::now().into());
            let old = serve(old.estate, loopback(0)).await.unwrap();
            let new = serve(new.estate, loopback(0)).await.unwrap();
            let (acceptor, authority) = tls();
            let listener = TcpListener::bind(loopback(0)).await.unwrap();
            let secure_port = listener.local_addr().unwrap().port();
            tokio::spawn(terminate(listener, acceptor, new.address()));
            let dns = UdpSocket::bind((DNS, 53)).await.unwrap();
            tokio::spawn(answer(dns));
            ([old, new], secure_port, authority)
        });
        Self {
            plain_port: servers[0].address().port(),
            secure_port,
            authority,
            _servers: servers,
            _runtime: runtime,
        }
    }
}

fn loopback(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// A certificate for [`SECURE`], and who vouches for it.
fn tls() -> (TlsAcceptor, String) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap();
    let issuer = Issuer::new(params, key);
    let own_key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![SECURE.to_owned()]).unwrap();
    let own = params.signed_by(&own_key, &issuer).unwrap();
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(
            vec![own.der().clone()],
            PrivateKeyDer::Pkcs8(own_key.serialize_der().into()),
        )
        .unwrap();
    (TlsAcceptor::from(Arc::new(config)), authority.pem())
}

/// Takes TLS off what goes on to `plain`.
async fn terminate(listener: TcpListener, acceptor: TlsAcceptor, plain: SocketAddr) {
    while let Ok((stream, _)) = listener.accept().await {
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            // A client that goes away is no matter of this test.
            if let Ok(mut secure) = acceptor.accept(stream).await
                && let Ok(mut plain) = TcpStream::connect(plain).await
            {
                let _ended = copy_bidirectional(&mut secure, &mut plain).await;
            }
        });
    }
}

/// Answers that [`SECURE`] is on this machine and that there is no other name.
async fn answer(socket: UdpSocket) {
    const HEAD: usize = 12;
    let mut buffer = [0; 512];
    while let Ok((length, client)) = socket.recv_from(&mut buffer).await {
        let name: Vec<u8> = SECURE
            .split('.')
            .flat_map(|label| [&[u8::try_from(label.len()).unwrap()], label.as_bytes()].concat())
            .chain([0])
            .collect();
        let end = HEAD + name.len() + 4;
        if length < end {
            continue;
        }
        let question = &buffer[HEAD..end];
        let (code, answers) = match question.strip_prefix(&name[..]) {
            None => (3, 0),
            Some([0, 1, 0, 1]) => (0, 1),
            Some(_) => (0, 0),
        };
        let mut reply = buffer[..2].to_vec();
        reply.extend([0x81, 0x80 | code, 0, 1, 0, answers, 0, 0, 0, 0]);
        reply.extend(question);
        if answers == 1 {
            // The name of the question, an address, for a minute.
            reply.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1]);
        }
        socket.send_to(&reply, client).await.unwrap();
    }
}
