//! What a request costs while one of two backends hangs: nothing, once it is out of service.
//!
//! Prints the time that `/nodes` takes before the healthy backend alone, beside one that hangs and is
//! out of service, and beside one that hangs and is not probed. The first two are measured in turns,
//! so that their ratio means something on a busy machine.

// Helpers of benches may fail like tests.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Uri};
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use pdbmux::config::{BackendConfig, Config};
use pdbmux_samples::migration::samples;
use pdbmux_samples::{Timestamp, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Requests of each kind.
const REQUESTS: usize = 2_000;
/// Those that wait for the `timeout`.
const WAITING: usize = 5;
const TIMEOUT: Duration = Duration::from_millis(500);

type Http = Client<HttpConnector, Empty<Bytes>>;

#[tokio::main]
async fn main() -> io::Result<()> {
    let [sample, _] = samples(Timestamp::parse("2026-11-30T12:00:00Z").unwrap());
    let healthy = serve(sample.estate, SocketAddr::from(([127, 0, 0, 1], 0))).await?;
    let hangs = Arc::new(AtomicBool::new(false));
    let dying = dying(Arc::clone(&hangs)).await?;
    let both = [healthy.url(), format!("http://{dying}")];
    let client = Client::builder(TokioExecutor::new()).build_http();

    let alone = pdbmux(&both[..1], true).await?;
    let beside = pdbmux(&both, true).await?;
    let unprobed = pdbmux(&both, false).await?;
    until(&client, &beside, "x-backends", "2/2").await;
    hangs.store(true, Ordering::Relaxed);
    until(
        &client,
        &beside,
        "x-pdbmux-missing",
        "b; reason=out-of-service",
    )
    .await;

    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..REQUESTS {
        for (times, nodes) in times.iter_mut().zip([&alone, &beside]) {
            times.push(asked(&client, nodes).await.0);
        }
    }
    let [alone, beside] = times.map(|mut times| {
        times.sort();
        [times[REQUESTS / 2], times[REQUESTS * 99 / 100]]
    });
    let mut waited = Vec::new();
    for _ in 0..WAITING {
        waited.push(asked(&client, &unprobed).await.0);
    }
    waited.sort();
    println!("median and 99th percentile of {REQUESTS} requests, by turns:");
    println!("  the healthy backend alone          {alone:.2?}");
    println!("  beside one that is out of service  {beside:.2?}");
    let ratio = beside[0].as_secs_f64() / alone[0].as_secs_f64();
    println!("  ratio of the medians               {ratio:.3}");
    println!(
        "beside one that hangs and is not probed ({TIMEOUT:?} of patience): {:.0?}",
        waited[WAITING / 2]
    );
    Ok(())
}

/// A backend that answers everything with nothing until it hangs.
async fn dying(hangs: Arc<AtomicBool>) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, Arc::clone(&hangs)));
        }
    });
    Ok(address)
}

async fn answer(mut stream: TcpStream, hangs: Arc<AtomicBool>) {
    let reply = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n[]";
    let mut request = [0; 8192];
    while stream.read(&mut request).await.is_ok_and(|read| read > 0) {
        if !hangs.load(Ordering::Relaxed) && stream.write_all(reply).await.is_err() {
            return;
        }
    }
}

/// Where `/nodes` of a pdbmux before these backends is, which asks them each time.
async fn pdbmux(urls: &[String], health_probe_enabled: bool) -> io::Result<Uri> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let backends = urls
        .iter()
        .zip(["a", "b"])
        .map(|(url, name)| BackendConfig {
            name: name.to_owned(),
            url: url.parse().unwrap(),
            access: pdbmux::config::Access::default(),
        });
    let config = Config {
        backends: backends.collect(),
        facts_ttl: Duration::ZERO,
        timeout: TIMEOUT,
        health_probe_enabled,
        health_probe_interval: Duration::from_millis(200),
        health_probe_timeout: TIMEOUT,
        ..Config::default()
    };
    tokio::spawn(pdbmux::run(config, listener, std::future::pending()));
    let nodes = format!("http://{address}/pdb/query/v4/nodes");
    nodes.parse().map_err(io::Error::other)
}

async fn asked(client: &Http, nodes: &Uri) -> (Duration, HeaderMap) {
    let began = Instant::now();
    let (head, body) = client.get(nodes.clone()).await.unwrap().into_parts();
    body.collect().await.unwrap();
    (began.elapsed(), head.headers)
}

/// Waits until the head of an answer says so.
async fn until(client: &Http, nodes: &Uri, header: &str, wanted: &str) {
    while asked(client, nodes)
        .await
        .1
        .get(header)
        .is_none_or(|it| it != wanted)
    {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
