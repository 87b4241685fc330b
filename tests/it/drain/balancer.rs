//! Two pdbmux behind a balancer, restarted one after the other under load.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::{NODES, backend};
use crate::client::{Client, End, in_time, request, split_head};
use crate::harness::Pdbmux;

/// Time between two looks of the balancer at each of its servers; much less than the delay of a drain.
const LOOK: Duration = Duration::from_millis(10);
const DELAY: Duration = Duration::from_secs(1);

/// A server behind the balancer.
struct Server {
    address: SocketAddr,
    ready: AtomicBool,
    /// Connections without a request.
    idle: Mutex<Vec<Client>>,
    requests: AtomicUsize,
}

/// Sends each request to the next server that is ready, on a connection that it keeps. It never asks
/// twice: what fails at a server fails at its client.
struct Balancer {
    address: SocketAddr,
    servers: Arc<Vec<Server>>,
    _tasks: JoinSet<()>,
}

impl Balancer {
    async fn before(addresses: &[SocketAddr]) -> Self {
        let server = |address: &SocketAddr| Server {
            address: *address,
            ready: AtomicBool::new(false),
            idle: Mutex::default(),
            requests: AtomicUsize::new(0),
        };
        let servers: Arc<Vec<_>> = Arc::new(addresses.iter().map(server).collect());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(look(Arc::clone(&servers)));
        let turn = Arc::new(AtomicUsize::new(0));
        let serving = Arc::clone(&servers);
        tasks.spawn(async move {
            let mut clients = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                clients.spawn(serve(stream, Arc::clone(&serving), Arc::clone(&turn)));
            }
        });
        Self {
            address,
            servers,
            _tasks: tasks,
        }
    }

    async fn until_ready(&self, server: usize) {
        in_time(async {
            while !self.servers[server].ready.load(Ordering::SeqCst) {
                tokio::time::sleep(LOOK).await;
            }
        })
        .await;
    }

    fn requests(&self) -> Vec<usize> {
        let requests = self
            .servers
            .iter()
            .map(|it| it.requests.load(Ordering::SeqCst));
        requests.collect()
    }
}

/// Asks each server again and again whether it is ready.
async fn look(servers: Arc<Vec<Server>>) {
    loop {
        for server in servers.iter() {
            let ready = is_ready(server.address).await;
            server.ready.store(ready, Ordering::SeqCst);
            if !ready {
                server.idle.lock().unwrap().clear();
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}

async fn is_ready(server: SocketAddr) -> bool {
    let Ok(stream) = TcpStream::connect(server).await else {
        return false;
    };
    let mut client = Client::over(stream);
    client.send_while_open(request("GET", "/readyz")).await;
    let answered = client.until_answered_or_closed().await;
    answered.is_some_and(|response| response.status == 200)
}

/// Serves the requests of one client, which have no bodies.
async fn serve(mut stream: TcpStream, servers: Arc<Vec<Server>>, turn: Arc<AtomicUsize>) {
    let mut buffer = Vec::new();
    loop {
        let first = loop {
            if let Some(((first, _), rest)) = split_head(&buffer) {
                let first = first.clone();
                buffer = rest.to_vec();
                break first;
            }
            match stream.read_buf(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        };
        // One turn, so that others who take theirs meanwhile leave no server unlooked at.
        let turn = turn.fetch_add(1, Ordering::SeqCst);
        let server = (0..servers.len())
            .map(|next| &servers[turn.wrapping_add(next) % servers.len()])
            .find(|server| server.ready.load(Ordering::SeqCst))
            .expect("no server is ready");
        server.requests.fetch_add(1, Ordering::SeqCst);
        let kept = server.idle.lock().unwrap().pop();
        let mut upstream = match kept {
            Some(kept) => kept,
            None => Client::connect(server.address).await,
        };
        let target = first.split(' ').nth(1).unwrap();
        let response = upstream.get(target).await;
        let length = response.body.len();
        let head = format!(
            "HTTP/1.1 {} X\r\nContent-Length: {length}\r\n\r\n",
            response.status
        );
        if response.end == End::Whole && response.header("connection") != Some("close") {
            server.idle.lock().unwrap().push(upstream);
        }
        let answer = [head.as_bytes(), &response.body].concat();
        if stream.write_all(&answer).await.is_err() {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_of_two_behind_a_balancer_costs_no_request() {
    let a = backend().await;
    let start = async |address: &str| {
        let listen = vec![address.parse().unwrap()];
        Pdbmux::with(&[&a], |config| {
            config.listen = listen;
            config.drain_delay = DELAY;
        })
        .await
    };
    // Where no other test takes the port of one that is away.
    let mut running = vec![start("127.77.2.1:0").await, start("127.77.2.2:0").await];
    let addresses: Vec<_> = running.iter().map(Pdbmux::address).collect();
    let balancer = Balancer::before(&addresses).await;
    balancer.until_ready(0).await;
    balancer.until_ready(1).await;
    let done = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let (done, address) = (Arc::clone(&done), balancer.address);
            tokio::spawn(async move {
                let mut client = Client::connect(address).await;
                let mut answered = 0;
                while !done.load(Ordering::SeqCst) {
                    client.send(request("GET", NODES)).await;
                    assert_eq!(client.response().await.ok(), "[]");
                    answered += 1;
                }
                answered
            })
        })
        .collect();
    for (place, address) in addresses.iter().enumerate() {
        let old = running.remove(0);
        old.stop();
        old.until_stopped().await;
        running.push(start(&address.to_string()).await);
        let before = balancer.requests()[place];
        balancer.until_ready(place).await;
        in_time(async {
            while balancer.requests()[place] < before + 50 {
                tokio::time::sleep(LOOK).await;
            }
        })
        .await;
    }
    done.store(true, Ordering::SeqCst);
    for client in clients {
        assert!(client.await.unwrap() > 50);
    }
}
