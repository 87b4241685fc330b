//! A process that may open few files.

use std::io::{BufReader, Read};
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use tempfile::{TempDir, tempdir};

use super::serve::Running;
use super::std_program;
use crate::client::{Client, End, in_time, request};
use crate::exact::estate::knows;
use crate::harness::{NAMES, target};
use crate::stub::{Answer, Gate, Stub};

const NODES: &str = "/pdb/query/v4/nodes";
const HELD: &str = "/pdb/query/v4/environments";

/// Starts the program under a limit that it cannot raise; where it listens, and its log from then on.
fn start(
    dir: &TempDir,
    stubs: &[&Stub],
    limit: usize,
    more: &[(&str, &str)],
) -> (Running, SocketAddr, BufReader<impl Read + use<>>) {
    let backends = stubs.iter().zip(NAMES);
    let backends: Vec<_> = backends
        .map(|(stub, name)| format!("{name}={}", stub.url()))
        .collect();
    let program = std_program(dir);
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("ulimit -n {limit}; exec \"$0\"")])
        .arg(program.get_program())
        .current_dir(dir.path())
        .env_clear()
        .envs((!stubs.is_empty()).then(|| ("PDBMUX_BACKENDS", backends.join(","))))
        .env("PDBMUX_LISTEN", "127.0.0.1:0")
        .env("PDBMUX_FACTS_TTL", "0s")
        .env("PDBMUX_HEALTH_PROBE_ENABLED", "false")
        .env("PDBMUX_DETECT_SHARED_DATABASE", "false")
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
    let (running, address, log) = start(&dir, &[&stub], 64, &[]);
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
    let (running, address, log) = start(&dir, &[&stub], 64, &more);
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

#[tokio::test]
async fn a_request_that_asks_more_at_once_than_there_are_descriptors_is_answered_whole() {
    const FACTS: &str = "/pdb/query/v4/facts";
    let (dir, a, b) = (tempdir().unwrap(), Stub::start().await, Stub::start().await);
    for (stub, node) in [(&a, "x"), (&b, "y")] {
        knows(stub, &[(node, 1)]);
        let row = format!(r#"[{{"certname":"{node}"}}]"#);
        stub.on("/pdb/query/v4/reports", row).on(FACTS, "[]");
    }
    let more = [("PDBMUX_MERGE", "exact")];
    let (running, address, log) = start(&dir, &[&a, &b], 64, &more);
    // Each of these is asked of both, and beside it how many nodes they have.
    let reports = (0..32).map(|number| {
        format!(
            r#"["in","certname",["extract","certname",["select_reports",["=","status","{number}"]]]]"#
        )
    });
    let query = format!(r#"["or",{}]"#, reports.collect::<Vec<_>>().join(","));
    let mut client = Client::connect(address).await;
    for _ in 0..2 {
        let response = client.get(&target(FACTS, &[("query", &query)])).await;
        assert_eq!((response.ok(), response.backends()), ("[]", Some("2/2")));
        assert_eq!(response.missing(), [""; 0]);
        assert_eq!(response.header("x-pdbmux-exact"), None);
    }
    let asked = |stub: &Stub| {
        let seen = stub.targets().into_iter();
        seen.filter(|target| target.contains("reports")).count()
    };
    assert_eq!((asked(&a), asked(&b)), (64, 64));
    assert_eq!(warnings(running, log), [""; 0]);
}

#[tokio::test]
async fn a_backend_that_there_is_no_descriptor_to_ask_by_is_none_that_is_missing() {
    let (dir, gate) = (tempdir().unwrap(), Gate::new());
    let (impatient, patient) = (backend().await, backend().await);
    impatient.on(HELD, Answer::status(404, "not here"));
    patient.on(HELD, Answer::promising(3).send("[1").hold(&gate).send("]"));
    let config = format!(
        "max_connections: 1000\nbackends:\n- {{name: pdb-a, url: '{}', timeout: 300ms}}\n- {{name: pdb-b, url: '{}', timeout: 60s}}\n",
        impatient.url(),
        patient.url()
    );
    let file = dir.path().join("pdbmux.yaml");
    std::fs::write(&file, config).unwrap();
    let more = [("PDBMUX_CONFIG", file.to_str().unwrap())];
    let (running, address, log) = start(&dir, &[], 200, &more);
    // A hundred for clients and what they ask, of which twenty are the clients' by right.
    let mut holding = Vec::new();
    for _ in 0..80 {
        let mut client = Client::connect(address).await;
        client.send(request("GET", HELD)).await;
        client.until_received("[1").await;
        holding.push(client);
    }
    let mut client = Client::connect(address).await;
    let response = client.get(HELD).await;
    assert_eq!(
        (response.status, response.header("retry-after")),
        (503, Some("1"))
    );
    let why = "there was no file descriptor for a connection to a backend for 300ms";
    assert!(response.text().contains(why), "{}", response.text());
    gate.open();
    for mut client in holding {
        assert_eq!(client.response().await.ok(), "[1]");
    }
    let response = client.get(NODES).await;
    assert_eq!((response.ok(), response.backends()), ("[]", Some("2/2")));
    assert_eq!(warnings(running, log), [""; 0]);
}

#[tokio::test]
async fn where_no_descriptor_is_left_to_ask_a_backend_idle_clients_make_room_as_well() {
    let (dir, stub) = (tempdir().unwrap(), backend().await);
    let more = [("PDBMUX_MAX_CONNECTIONS", "1000")];
    let (running, address, log) = start(&dir, &[&stub], 64, &more);
    let mut asking = Client::connect(address).await;
    asking.get("/livez").await.ok();
    let mut idle = Vec::new();
    for _ in 0..60 {
        idle.push(Client::connect(address).await);
    }
    let open = format!("/proc/{}/fd", running.0.id());
    in_time(async {
        while std::fs::read_dir(&open).unwrap().count() < 64 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let response = asking.get(NODES).await;
    assert_eq!((response.ok(), response.backends()), ("[]", Some("1/1")));
    assert_eq!(warnings(running, log).len(), 1);
}
