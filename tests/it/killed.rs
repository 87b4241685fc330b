//! A backend that is killed under load, as `kill -9` does it.
//!
//! The backend is a process of its own: a pdbmux that passes on what a stub answers. A killed process
//! ends its connections at whatever point they are, in the middle of a body too.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pdbmux::config::{BackendConfig, Config};
use serde_json::{Value, json};

use crate::client::{Client, End, Response, in_time, request};
use crate::harness::Pdbmux;
use crate::stub::Stub;

const REPORTS: &str = "/pdb/query/v4/reports";
/// Answers of some 40 KB, which take more than one write.
const RECORDS: usize = 800;
const CLIENTS: usize = 8;
/// Answers that are looked at before and after.
const ANSWERS: usize = 40;

struct Process {
    child: Child,
    url: String,
    /// Kept open: what the process logs goes there.
    _log: BufReader<ChildStderr>,
}

impl Process {
    fn before(stub: &Stub) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_pdbmux"))
            .env_clear()
            .env("PDBMUX_BACKENDS", format!("stub={}", stub.url()))
            .env("PDBMUX_HEALTH_PROBE_ENABLED", "false")
            .args(["--listen", "127.0.0.1:0"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("listening on ") {
            line.clear();
            assert!(log.read_line(&mut line).unwrap() > 0, "it does not listen");
        }
        let address = line.trim_end().rsplit(' ').next().unwrap();
        Self {
            child,
            url: format!("http://{address}"),
            _log: log,
        }
    }

    /// Ends it at once.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may be dead already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn reports(of: &str) -> String {
    let report = |at| json!({"certname": "n", "hash": format!("{of}-{at}"), "noop": false});
    let reports: Vec<_> = (0..RECORDS).map(report).collect();
    Value::from(reports).to_string()
}

/// How an answer turned out. One that is wrong ends the test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Full,
    Partial,
    Broken,
}

#[track_caller]
fn kind(response: &Response) -> Kind {
    assert_eq!(response.status, 200, "{response:?}");
    if response.end == End::Broken {
        return Kind::Broken;
    }
    let rows = response.json();
    let of = |name: &str| {
        let hashes = rows.as_array().unwrap().iter();
        hashes
            .filter(|row| row["hash"].as_str().unwrap().starts_with(name))
            .count()
    };
    let (kind, of_b) = match (response.backends(), &*response.missing()) {
        (Some("2/2"), []) => (Kind::Full, RECORDS),
        (Some("1/2"), [missing]) => {
            assert!(missing.starts_with("pdb-b; reason="), "{missing}");
            (Kind::Partial, 0)
        }
        other => panic!("{other:?}"),
    };
    assert_eq!((of("a-"), of("b-")), (RECORDS, of_b));
    kind
}

/// What clients get who ask all the time while the second backend is killed: of each the answers since
/// then. `config` comes to know the processes' addresses.
async fn killed_under_load(change: impl FnOnce(&mut Config, [String; 2])) -> Vec<Vec<Kind>> {
    let (a, b) = (Stub::start().await, Stub::start().await);
    a.on(REPORTS, reports("a"));
    b.on(REPORTS, reports("b"));
    let (mut one, other) = (Process::before(&b), Process::before(&b));
    let urls = [one.url.clone(), other.url.clone()];
    let mux = Arc::new(Pdbmux::with(&[&a, &b], |config| change(config, urls)).await);
    let (answered, killed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (mux, answered, killed) =
                (Arc::clone(&mux), Arc::clone(&answered), Arc::clone(&killed));
            tokio::spawn(async move {
                let mut client = Client::connect(mux.address()).await;
                let mut after = Vec::new();
                while after.len() < ANSWERS / CLIENTS {
                    client.send(request("GET", REPORTS)).await;
                    let kind = kind(&client.response().await);
                    answered.fetch_add(1, Ordering::SeqCst);
                    if killed.load(Ordering::SeqCst) > 0 {
                        after.push(kind);
                    } else {
                        assert_eq!(kind, Kind::Full);
                    }
                    if kind == Kind::Broken {
                        client = Client::connect(mux.address()).await;
                    }
                }
                after
            })
        })
        .collect();
    in_time(async {
        while answered.load(Ordering::SeqCst) < ANSWERS {
            tokio::task::yield_now().await;
        }
    })
    .await;
    killed.store(1, Ordering::SeqCst);
    one.kill();
    let mut all = Vec::new();
    for client in clients {
        all.push(in_time(client).await.unwrap());
    }
    all
}

fn count(answers: &[Kind], kind: Kind) -> usize {
    answers.iter().filter(|it| **it == kind).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_answer_is_wrong_and_each_says_what_it_lacks() {
    let all = killed_under_load(|config, [url, _]| config.backends[1].url = url.parse().unwrap());
    for answers in all.await {
        assert_eq!(count(&answers, Kind::Broken), 0, "{answers:?}");
        assert_eq!(answers.last(), Some(&Kind::Partial), "{answers:?}");
        // Once one lacks it, none has it.
        assert!(
            answers.is_sorted_by_key(|kind| *kind == Kind::Partial),
            "{answers:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_answers_that_are_written_as_they_arrive_one_for_each_client_breaks_off_at_most() {
    let all = killed_under_load(|config, [url, _]| {
        config.backends[1].url = url.parse().unwrap();
        config.buffer_bytes = 1;
    });
    for answers in all.await {
        assert!(count(&answers, Kind::Broken) <= 1, "{answers:?}");
        assert_eq!(answers.last(), Some(&Kind::Partial), "{answers:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_another_of_its_group_lives_no_answer_is_affected() {
    let all = killed_under_load(|config, urls| {
        config.backends.truncate(1);
        for (url, name) in urls.iter().zip(["one", "other"]) {
            let mut member = BackendConfig {
                name: name.to_owned(),
                url: url.parse().unwrap(),
                access: pdbmux::config::Access::default(),
            };
            member.access.group = Some("pdb-b".to_owned());
            config.backends.push(member);
        }
    });
    for answers in all.await {
        assert_eq!(count(&answers, Kind::Full), answers.len(), "{answers:?}");
    }
}
