//! A process that may open few files.

use std::io::{BufReader, Read};
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use tempfile::{TempDir, tempdir};

use super::serve::Running;
use super::std_program;
use crate::client::{Client, End, request};
use crate::stub::{Answer, Gate, Stub};

const NODES: &str = "/pdb/query/v4/nodes";
const HELD: &str = "/pdb/query/v4/environments";

/// Starts the program under a limit that it cannot raise; where it listens, and its log from then on.
fn start(
    dir: &TempDir,
    stub: &Stub,
    limit: usize,
    more: &[(&str, &str)],
) -> (Running, SocketAddr, BufReader<impl Read + use<>>) {
    let program = std_program(dir);
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("ulimit -n {limit}; exec \"$0\"")])
        .arg(program.get_program())
        .current_dir(dir.path())
        .env_clear()
        .env("PDBMUX_BACKENDS", format!("pdb-a={}", stub.url()))
        .env("PDBMUX_LISTEN", "127.0.0.1:0")
        .env("PDBMUX_FACTS_TTL", "0s")
        .env("PDBMUX_HEALTH_PROBE_ENABLED", "false")
        .envs(more.iter().copied())
        .stdin(Stdio::null());
    let (running, line, log) = Running::start(&mut command);
    let address = line.trim_end().rsplit(' ').next().unwrap().parse().unwrap();
    (running, address, log)
}

/// The lines that warn, once the program has been stopped.
fn warnings(mut running: Running, mut log: BufReader<impl Read>) -> Vec<String> {
    running.signal("TERM");
    let mut text = String::new();
    log.read_to_string(&mut text).unwrap();
    assert!(running.0.wait().unwrap().success());
    let lines = text.lines().filter(|line| line.contains("WARN"));
    lines.map(str::to_owned).collect()
}

async fn backend() -> Stub {
    let stub = Stub::start().await;
    stub.on(NODES, "[]");
    stub
}

#[tokio::test]
async fn the_client_that_is_idle_for_longest_makes_room_and_no_request_fails() {
    let (dir, stub, gate) = (tempdir().unwrap(), backend().await, Gate::new());
    stub.on(HELD, Answer::promising(3).send("[1").hold(&gate).send("]"));
    // That is room for ten.
    let (running, address, log) = start(&dir, &stub, 64, &[]);
    let mut busy = Client::connect(address).await;
    busy.send(request("GET", HELD)).await;
    busy.until_received("[1").await;
    let mut clients = Vec::new();
    for number in 0..30 {
        let mut client = Client::connect(address).await;
        let response = client.get(NODES).await;
        assert_eq!((response.ok(), response.backends()), ("[]", Some("1/1")));
        clients.push(client);
        if number == 9 {
            // It was the eleventh in all: the first of the idle ones had to go, and no other.
            assert_eq!(clients[0].until_closed().await, b"");
            assert_eq!(clients[1].get(NODES).await.ok(), "[]");
        }
    }
    gate.open();
    let response = busy.response().await;
    assert_eq!((response.ok(), response.end), ("[1]", End::Whole));
    let warnings = warnings(running, log);
    assert_eq!(warnings.len(), 1, "{warnings:#?}");
    assert!(warnings[0].contains("there are as many connections as there may be, 10"));
}

#[tokio::test]
async fn where_no_descriptor_is_left_idle_clients_make_room_as_well() {
    let (dir, stub) = (tempdir().unwrap(), backend().await);
    let more = [("PDBMUX_MAX_CONNECTIONS", "1000")];
    let (running, address, log) = start(&dir, &stub, 64, &more);
    let mut first = Client::connect(address).await;
    first.get("/livez").await.ok();
    let mut idle = Vec::new();
    for _ in 0..70 {
        idle.push(Client::connect(address).await);
    }
    let mut client = Client::connect(address).await;
    assert_eq!(client.get("/livez").await.status, 200);
    assert_eq!(first.until_closed().await, b"");
    let warnings = warnings(running, log);
    assert_eq!(warnings.len(), 1, "{warnings:#?}");
    assert!(
        warnings[0].contains("a connection could not be accepted: "),
        "{warnings:?}"
    );
}
