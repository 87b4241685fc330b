//! The daemon under test.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use pdbmux::config::{Access, BackendConfig, Config, Detection, Environment, Flags, Source};
use pdbmux::daemon::{self, Order, Outside};
use pdbmux::listener::{Audience, Listener};
use pdbmux::names::Names;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::client::{Client, Response, in_time};
use crate::stub::Stub;

/// Names of the stubs, in configured order.
pub(crate) const NAMES: [&str; 3] = ["pdb-a", "pdb-b", "pdb-c"];

/// A `timeout` for tests that wait for it to run out.
pub(crate) const SHORT: Duration = Duration::from_millis(250);

/// A running pdbmux.
#[derive(Debug)]
pub(crate) struct Pdbmux {
    address: SocketAddr,
    /// All addresses of clients, as they are configured.
    addresses: Vec<SocketAddr>,
    admin: Option<SocketAddr>,
    tell: mpsc::Sender<Order>,
    running: JoinHandle<()>,
}

impl Pdbmux {
    /// Serves these backends under [`NAMES`], all else as it is by default.
    pub(crate) async fn start(stubs: &[&Stub]) -> Self {
        Self::with(stubs, |_| {}).await
    }

    /// The same with a changed configuration.
    pub(crate) async fn with(stubs: &[&Stub], change: impl FnOnce(&mut Config)) -> Self {
        let backends = stubs.iter().zip(NAMES).map(|(stub, name)| BackendConfig {
            name: name.to_owned(),
            url: stub.url().parse().unwrap(),
            access: Access {
                http2: Some(stub.protocol()),
                ..Access::default()
            },
        });
        let mut config = Config {
            admin_listen: Some("127.0.0.1:0".parse().unwrap()),
            listen: vec!["127.0.0.1:0".parse().unwrap()],
            backends: backends.collect(),
            // Stubs are no whole PuppetDBs: they answer what a test scripts.
            health_probe_enabled: false,
            // Tests see what backends answer now; those of the cache turn it on.
            facts_ttl: Duration::ZERO,
            detect_shared_database: Detection::Off,
            ..Config::default()
        };
        change(&mut config);
        Self::serve(config, None).await
    }

    /// Serves what a config file of a test says, and reads it again when it is told to.
    pub(crate) async fn of_file(path: &Path) -> Self {
        let flags = Flags {
            config: Some(path.to_owned()),
            ..Flags::default()
        };
        let source = Source::new(flags, Environment::default());
        let (config, _) = source.read().unwrap();
        Self::serve(config, Some(source)).await
    }

    async fn serve(config: Config, source: Option<Source>) -> Self {
        // A dropped sender stops too.
        let (tell, orders) = mpsc::channel(8);
        let outside = Outside {
            source,
            ..Outside::ordering(orders)
        };
        let listeners = Listener::open_all(&config, &Names::of_system())
            .await
            .unwrap();
        let of = |audience| {
            let those = listeners.iter().filter(|it| it.audience == audience);
            let addresses = those.map(|it| it.socket.local_addr().unwrap());
            addresses.collect::<Vec<_>>()
        };
        let addresses = of(Audience::Clients);
        Self {
            address: addresses[0],
            addresses,
            admin: of(Audience::Operators).pop(),
            tell,
            running: tokio::spawn(daemon::run(config, listeners, outside)),
        }
    }

    /// The first address of clients.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The addresses of clients, in configured order.
    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Connects to the address for operators.
    pub(crate) async fn connect_admin(&self) -> Client {
        Client::connect(self.admin.unwrap()).await
    }

    pub(crate) async fn connect(&self) -> Client {
        Client::connect(self.address).await
    }

    /// Asks on a connection of its own. Whatever is asked, no byte of the answer may tell where a
    /// backend is (R018): all of them are on this host.
    pub(crate) async fn get(&self, target: &str) -> Response {
        let response = self.connect().await.get(target).await;
        let wire = format!(
            "{:?}{}",
            response.headers,
            String::from_utf8_lossy(&response.body)
        );
        assert!(!wire.contains("127.0.0.1"), "{target}: {wire}");
        response
    }

    /// Asks `path` with these parameters, encoded.
    pub(crate) async fn ask(&self, path: &str, parameters: &[(&str, &str)]) -> Response {
        self.get(&target(path, parameters)).await
    }

    /// Gives the signal to stop.
    pub(crate) fn stop(&self) {
        self.tell(Order::Stop);
    }

    /// Tells the daemon something, as a signal does.
    pub(crate) fn tell(&self, order: Order) {
        self.tell.try_send(order).unwrap();
    }

    /// Waits until no new connection of a client is taken.
    pub(crate) async fn until_refused(&self) {
        in_time(async { while TcpStream::connect(self.address).await.is_ok() {} }).await;
    }

    /// Waits until pdbmux has stopped.
    pub(crate) async fn until_stopped(self) {
        in_time(self.running).await.unwrap();
    }
}

/// A path with parameters in form encoding.
pub(crate) fn target(path: &str, parameters: &[(&str, &str)]) -> String {
    pdbmux_core::plan::Ask::own(path, parameters).target()
}
