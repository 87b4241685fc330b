//! Two sample PuppetDBs that are reached by name, one of them over TLS, and the DNS that has its
//! name. All on loopback.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::SystemTime;

use pdbmux_e2e::tls::{Authority, Front};
use pdbmux_samples::{Server, migration, serve};
use tokio::net::UdpSocket;
use tokio::runtime::Runtime;

/// In the hosts file.
pub(crate) const PLAIN: &str = "plain.pdbmux.test";
/// In DNS.
pub(crate) const SECURE: &str = "secure.pdbmux.test";
/// The DNS server: its port cannot be chosen, so that it has an address of its own.
pub(crate) const DNS: Ipv4Addr = Ipv4Addr::new(127, 53, 53, 53);

/// They run until this goes.
pub(crate) struct Backends {
    pub(crate) plain_port: u16,
    /// Before the one over TLS.
    pub(crate) front: Front,
    /// The private authority that vouches for it, as PEM.
    pub(crate) authority: String,
    _servers: [Server; 2],
    _runtime: Runtime,
}

impl Backends {
    pub(crate) fn start() -> Self {
        let runtime = Runtime::new().unwrap();
        let servers = runtime.block_on(async {
            let [old, new] = migration::samples(SystemTime::now().into());
            let old = serve(old.estate, loopback(0)).await.unwrap();
            let new = serve(new.estate, loopback(0)).await.unwrap();
            let dns = UdpSocket::bind((DNS, 53)).await.unwrap();
            tokio::spawn(answer(dns));
            [old, new]
        });
        let authority = Authority::new().unwrap();
        Self {
            plain_port: servers[0].address().port(),
            front: authority.front(SECURE, servers[1].address()).unwrap(),
            authority: authority.certificate,
            _servers: servers,
            _runtime: runtime,
        }
    }
}

fn loopback(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
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
