//! Reloads while clients ask.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures_util::future::join_all;
use pdbmux::daemon::Order;

use super::{File, NEW, NODES, OLD, backend, pairs, reload, sources, until_read};
use crate::client::http2::Http2;
use crate::client::{Client, in_time, request};
use crate::harness::Pdbmux;
use crate::stub::{Answer, Gate};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_hundred_reloads_under_load_cost_no_request_and_no_connection() {
    let (a, b) = (
        backend(&[("m", OLD)], "a").await,
        backend(&[("m", NEW), ("n", NEW)], "b").await,
    );
    let (file, mut read) = (File::new(), 0);
    file.write(&[("pdb-a", &a)], "");
    let mux = Pdbmux::of_file(&file.path()).await;
    let answers = Arc::new(AtomicUsize::new(0));
    let done = Arc::new(AtomicBool::new(false));
    let address = mux.address();
    let clients: Vec<_> = (0..4)
        .map(|number| {
            let (done, answers) = (Arc::clone(&done), Arc::clone(&answers));
            tokio::spawn(async move {
                let (mut answered, mut client) = (0, Client::connect(address).await);
                while !done.load(Ordering::Relaxed) {
                    // One of them makes a connection for each of its requests.
                    if number == 0 {
                        client = Client::connect(address).await;
                    }
                    for path in [NODES, super::FACTS] {
                        let response = client.get(path).await;
                        let whole = matches!(response.backends(), Some("1/1" | "2/2"));
                        assert!(whole, "{response:#?}");
                        assert!(response.ok().contains(r#""certname":"m""#));
                        assert_eq!(response.header("connection"), None);
                        answered += 1;
                        answers.fetch_add(1, Ordering::Relaxed);
                    }
                }
                answered
            })
        })
        .collect();
    let done_by_http2 = Arc::clone(&done);
    let by_http2 = tokio::spawn(async move {
        let (mut answered, client) = (0, Http2::connect(address).await);
        while !done_by_http2.load(Ordering::Relaxed) {
            let both = [NODES, super::FACTS].map(|path| client.get(path));
            for response in join_all(both).await {
                assert!(response.ok().contains(r#""certname":"m""#));
                answered += 1;
            }
        }
        answered
    });
    for round in 0..100 {
        let merge = ["merge: freshness", "merge: static", "merge: exact"][round % 3];
        match round % 4 {
            0 => file.write(&[("pdb-a", &a), ("pdb-b", &b)], merge),
            1 => file.write(&[("pdb-b", &b), ("pdb-a", &a)], merge),
            2 => file.write(&[("renamed", &b)], merge),
            _ => file.replace("merge: none"),
        }
        reload(&mux, &mut read).await;
        // Each finds clients at work.
        let enough = answers.load(Ordering::Relaxed) + 5;
        while answers.load(Ordering::Relaxed) < enough {
            tokio::task::yield_now().await;
        }
    }
    done.store(true, Ordering::Relaxed);
    for client in clients {
        assert!(client.await.unwrap() > 0);
    }
    assert!(by_http2.await.unwrap() > 0);
}

#[tokio::test]
pub(crate) async fn a_request_ends_as_it_began() {
    let (a, b, gate) = (
        backend(&[("m", OLD)], "a").await,
        backend(&[("n", NEW)], "b").await,
        Gate::new(),
    );
    let (file, mut read) = (File::new(), 0);
    file.write(&[("pdb-a", &a)], "");
    let mux = Pdbmux::of_file(&file.path()).await;
    let held = [
        (NODES, Answer::json(r#"[{"certname":"m"}]"#).behind(&gate)),
        (
            "/pdb/query/v4/environments",
            Answer::promising(3).send("[1").hold(&gate).send("]"),
        ),
    ];
    let mut clients = Vec::new();
    for (path, answer) in held {
        a.on(path, answer);
        let mut client = mux.connect().await;
        let before = a.seen().len();
        client.send(request("GET", path)).await;
        in_time(a.until_seen(before + 1)).await;
        clients.push(client);
    }
    file.write(&[("pdb-b", &b)], "");
    mux.tell(Order::Reload);
    until_read(&mux, &mut read).await;
    assert_eq!(sources(&mux).await, pairs(&[("n", "pdb-b")]));
    gate.open();
    let bodies = [r#"[{"certname":"m","pdbmux_source":"pdb-a"}]"#, "[1]"];
    for (mut client, body) in clients.into_iter().zip(bodies) {
        assert_eq!(client.response().await.ok(), body);
        // Its connection goes on, by what holds now.
        assert!(client.get(NODES).await.ok().contains("pdb-b"));
    }
}

#[tokio::test]
async fn reloads_that_are_wanted_at_once_are_done_one_after_the_other() {
    let (a, b) = (
        backend(&[("m", OLD)], "a").await,
        backend(&[("n", NEW)], "b").await,
    );
    let (file, mut read) = (File::new(), 0);
    file.write(&[("pdb-a", &a)], "");
    let mux = Pdbmux::of_file(&file.path()).await;
    for _ in 0..3 {
        mux.tell(Order::Reload);
    }
    file.write(&[("pdb-b", &b)], "");
    mux.tell(Order::Reload);
    for _ in 0..4 {
        until_read(&mux, &mut read).await;
    }
    assert_eq!(sources(&mux).await, pairs(&[("n", "pdb-b")]));
}
