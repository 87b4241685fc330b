//! Reading the configuration again while requests are answered.

mod listeners;
pub(crate) mod load;
mod watched;

use std::fs;
use std::path::PathBuf;

use pdbmux::config::Protocol;
use pdbmux::daemon::Order;
use serde_json::Value;
use tempfile::TempDir;

use crate::client::in_time;
use crate::facts::fact;
use crate::harness::Pdbmux;
use crate::stub::{Answer, Stub, nodes_body};

const NODES: &str = "/pdb/query/v4/nodes";
const FACTS: &str = "/pdb/query/v4/facts";
const PROBE: &str = "/status/v1/services";
const OLD: &str = "2024-05-01T10:00:00.000Z";
const NEW: &str = "2024-05-02T10:00:00.000Z";

/// The config file of a test.
pub(crate) struct File {
    dir: TempDir,
    /// What stands in it whatever else does.
    always: String,
}

impl File {
    /// Nothing is probed or cached, where a test does not say otherwise.
    fn new() -> Self {
        Self::with("listen: 127.0.0.1:0\nhealth_probe_enabled: false\nfacts_ttl: 0s\n")
    }

    pub(crate) fn with(always: &str) -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            // Stubs are no whole PuppetDBs.
            always: format!("detect_shared_database: false\n{always}"),
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("pdbmux.yaml")
    }

    /// Puts another file in its place.
    pub(crate) fn write(&self, backends: &[(&str, &Stub)], more: &str) {
        let mut text = format!("{}{more}\nbackends:\n", self.always);
        for (name, stub) in backends {
            let http2 = stub.protocol() == Protocol::Http2;
            let (url, http2) = (stub.url(), http2.to_string());
            text.extend([
                "- {name: ",
                name,
                ", url: '",
                &url,
                "', http2: ",
                &http2,
                "}\n",
            ]);
        }
        self.replace(&text);
    }

    pub(crate) fn replace(&self, text: &str) {
        let new = self.dir.path().join("new");
        fs::write(&new, text).unwrap();
        fs::rename(new, self.path()).unwrap();
    }
}

/// What pdbmux tells of its configuration once it was read again so often.
async fn until_read(mux: &Pdbmux, attempts: &mut u64) -> Value {
    *attempts += 1;
    let config = in_time(async {
        loop {
            let config = mux.get("/healthz").await.json()["config"].clone();
            if config["attempts"].as_u64() >= Some(*attempts) {
                return config;
            }
        }
    });
    config.await
}

/// Tells pdbmux to read its configuration, and waits until that is done.
pub(crate) async fn reload(mux: &Pdbmux, attempts: &mut u64) -> Value {
    mux.tell(Order::Reload);
    until_read(mux, attempts).await
}

/// A backend that holds these nodes, all of which have the fact `os` of this value.
async fn backend(nodes: &[(&str, &str)], os: &str) -> Stub {
    let stub = Stub::start().await;
    let facts: Vec<_> = nodes.iter().map(|(node, _)| fact(node, "os", os)).collect();
    stub.fresh(nodes)
        .on(NODES, nodes_body(nodes))
        .on("/pdb/query/v4/nodes?limit=1", "[]")
        .on(FACTS, format!("[{}]", facts.join(",")).as_str())
        .on(PROBE, Answer::status(503, "starting"));
    stub
}

/// Certnames and sources of the nodes there are.
async fn sources(mux: &Pdbmux) -> Vec<(String, String)> {
    let nodes = mux.get(NODES).await.json();
    let text = |node: &Value, key: &str| node[key].as_str().unwrap_or_default().to_owned();
    let nodes = nodes.as_array().unwrap().iter();
    nodes
        .map(|node| (text(node, "certname"), text(node, "pdbmux_source")))
        .collect()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(a, b): &(&str, &str)| ((*a).to_owned(), (*b).to_owned());
    pairs.iter().map(owned).collect()
}

#[tokio::test]
async fn backends_can_be_added_renamed_and_removed() {
    let (a, b) = (
        backend(&[("m", OLD)], "a").await,
        backend(&[("n", NEW)], "b").await,
    );
    let (file, mut read) = (File::new(), 0);
    file.write(&[("one", &a)], "");
    let mux = Pdbmux::of_file(&file.path()).await;
    assert_eq!(sources(&mux).await, pairs(&[("m", "one")]));
    for (backends, nodes) in [
        (
            &[("one", &a), ("two", &b)][..],
            &[("m", "one"), ("n", "two")][..],
        ),
        (&[("two", &b), ("uno", &a)], &[("n", "two"), ("m", "uno")]),
        (&[("two", &b)], &[("n", "two")]),
    ] {
        file.write(backends, "");
        let told = reload(&mux, &mut read).await;
        assert_eq!(
            (&told["generation"], &told["last_reload_successful"]),
            (&read.into(), &true.into())
        );
        assert_eq!(sources(&mux).await, pairs(nodes));
    }
}

#[tokio::test]
async fn another_merge_mode_is_in_the_next_answer_whatever_is_cached() {
    let (a, b) = (
        backend(&[("n", OLD)], "a").await,
        backend(&[("n", NEW)], "b").await,
    );
    let (file, mut read) = (
        File::with("listen: 127.0.0.1:0\nhealth_probe_enabled: false\n"),
        0,
    );
    let backends = [("pdb-a", &a), ("pdb-b", &b)];
    file.write(&backends, "merge: freshness");
    let mux = Pdbmux::of_file(&file.path()).await;
    let source = async || {
        let facts = mux.get(FACTS).await.json();
        let facts = facts.as_array().unwrap().iter();
        let values = facts.map(|fact| fact["value"].as_str().unwrap().to_owned());
        values.collect::<Vec<_>>()
    };
    assert_eq!(source().await, ["b", "pdb-b"]);
    file.write(&backends, "merge: static");
    reload(&mux, &mut read).await;
    assert_eq!(source().await, ["a", "pdb-a"]);
}

#[tokio::test]
async fn cached_answers_and_the_list_of_nodes_stay_while_nothing_changes_them() {
    let (a, b) = (
        backend(&[("n", OLD)], "a").await,
        backend(&[("n", NEW)], "b").await,
    );
    let file = File::with("listen: 127.0.0.1:0\nhealth_probe_enabled: false\n");
    let (backends, mut read) = ([("pdb-a", &a), ("pdb-b", &b)], 0);
    file.write(&backends, "");
    let mux = Pdbmux::of_file(&file.path()).await;
    mux.get(FACTS).await.ok();
    assert_eq!(a.freshness_asks(), 1);
    for (more, cached, built) in [
        ("idle_timeout: 5s\nlog_level: warn\ntimeout: 3s", "hit", 1),
        ("source_fact: whence", "miss", 2),
        ("source_fact: whence\nfacts_ttl: 10s", "miss", 3),
    ] {
        file.write(&backends, more);
        reload(&mux, &mut read).await;
        let response = mux.get(FACTS).await;
        assert_eq!(response.header("x-cache"), Some(cached), "{more}");
        // What has not been asked before needs the list.
        mux.ask(FACTS, &[("query", r#"["=","certname","n"]"#)])
            .await
            .ok();
        assert_eq!(a.freshness_asks(), built, "{more}");
    }
}

#[tokio::test]
async fn what_cannot_be_used_changes_nothing_and_is_told() {
    let a = backend(&[("n", OLD)], "a").await;
    let (file, mut read) = (File::new(), 0);
    file.write(&[("pdb-a", &a)], "");
    let mux = Pdbmux::of_file(&file.path()).await;
    assert_eq!(mux.get("/healthz").await.json().get("config"), None);
    for text in [
        "merge: newest",
        "nonsense: 1",
        "backends: []",
        "{",
        "backends:\n- {name: b, url: 'http://127.0.0.1:1'}\nlisten: 192.0.2.1:80",
    ] {
        file.replace(text);
        let told = reload(&mux, &mut read).await;
        assert_eq!(
            (&told["generation"], &told["last_reload_successful"]),
            (&0.into(), &false.into()),
            "{text}"
        );
        assert_eq!(sources(&mux).await, pairs(&[("n", "pdb-a")]));
    }
    fs::remove_file(file.path()).unwrap();
    reload(&mux, &mut read).await;
    assert_eq!(sources(&mux).await, pairs(&[("n", "pdb-a")]));
    file.write(&[("back", &a)], "");
    let told = reload(&mux, &mut read).await;
    assert_eq!(
        (&told["generation"], &told["last_reload_successful"]),
        (&1.into(), &true.into())
    );
    assert_eq!(sources(&mux).await, pairs(&[("n", "back")]));
}

#[tokio::test]
pub(crate) async fn connections_to_a_backend_that_is_reached_as_before_are_kept() {
    let a = backend(&[("n", OLD)], "a").await;
    let (file, mut read) = (File::new(), 0);
    file.write(&[("pdb-a", &a)], "");
    let mux = Pdbmux::of_file(&file.path()).await;
    sources(&mux).await;
    let before = a.connections();
    for (name, more) in [
        ("renamed", ""),
        ("again", "timeout: 5s\nbackend_gzip: true"),
    ] {
        file.write(&[(name, &a)], more);
        reload(&mux, &mut read).await;
        assert_eq!(sources(&mux).await, pairs(&[("n", name)]));
    }
    assert_eq!(a.connections(), before);
    file.write(
        &[("again", &a)],
        "backend_user: me\nbackend_password: env:HOME",
    );
    // Nobody is at home here, so that this is refused.
    reload(&mux, &mut read).await;
    assert_eq!(a.connections(), before);
    let secret = file.dir.path().join("secret");
    fs::write(&secret, "sesame").unwrap();
    let access = format!(
        "backend_headers: X-Authentication=file:{}",
        secret.display()
    );
    file.write(&[("again", &a)], &access);
    reload(&mux, &mut read).await;
    sources(&mux).await;
    assert_eq!(a.connections(), before + 1);
    let sent = a.seen().pop().unwrap().headers;
    assert!(sent.contains(&("x-authentication".to_owned(), "sesame".to_owned())));
}

#[tokio::test]
async fn a_backend_that_is_down_stays_so_and_is_probed_when_its_next_probe_is_due() {
    let (a, b) = (
        backend(&[("m", OLD)], "a").await,
        backend(&[("n", NEW)], "b").await,
    );
    a.on(PROBE, Answer::status(200, "running"));
    let always = "listen: 127.0.0.1:0\nfacts_ttl: 0s\nhealth_probe_interval: 1h\n\
                  health_probe_failures: 1\n";
    let (file, mut read) = (File::with(always), 0);
    file.write(&[("pdb-a", &a), ("pdb-b", &b)], "");
    let mux = Pdbmux::of_file(&file.path()).await;
    let state = async |name: &str| {
        let health = mux.get("/healthz").await.json();
        let backends = health["backends"].as_array().unwrap();
        let backend = backends.iter().find(|backend| backend["name"] == name);
        backend.unwrap()["state"].as_str().unwrap().to_owned()
    };
    in_time(async { while state("pdb-b").await != "unhealthy" {} }).await;
    in_time(async { while state("pdb-a").await != "healthy" {} }).await;
    let queries = |stub: &Stub| stub.targets().iter().filter(|it| **it == NODES).count();
    let probes = |stub: &Stub| stub.targets().iter().filter(|it| **it == PROBE).count();
    for name in ["pdb-b", "renamed"] {
        // It stands before the other now.
        file.write(
            &[(name, &b), ("pdb-a", &a)],
            "timeout: 9s\nhealth_probe_successes: 3",
        );
        reload(&mux, &mut read).await;
        assert_eq!(sources(&mux).await, pairs(&[("m", "pdb-a")]));
        assert_eq!(state(name).await, "unhealthy");
    }
    assert_eq!((queries(&b), probes(&a), probes(&b)), (0, 1, 1));
    // One that is new is probed at once; what was known of it is gone.
    file.write(&[("pdb-a", &a)], "");
    reload(&mux, &mut read).await;
    file.write(&[("pdb-a", &a), ("pdb-b", &b)], "");
    reload(&mux, &mut read).await;
    in_time(async {
        while probes(&b) < 2 {
            b.until_seen(1).await;
        }
    })
    .await;
}
