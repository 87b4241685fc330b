//! Addresses that come and go.

use std::net::{SocketAddr, TcpListener};

use super::{File, NODES, OLD, backend, pairs, reload, sources};
use crate::client::{Client, in_time, request};
use crate::harness::Pdbmux;
use crate::stub::{Answer, Gate};

/// An address that is free now, on a loopback address where no other test listens: a port that is closed
/// there is not opened by somebody else.
fn free(host: u8) -> SocketAddr {
    let held = TcpListener::bind(SocketAddr::from(([127, 77, 1, host], 0))).unwrap();
    held.local_addr().unwrap()
}

async fn until_refused(address: SocketAddr) {
    in_time(async { while tokio::net::TcpStream::connect(address).await.is_ok() {} }).await;
}

#[tokio::test]
async fn an_address_that_is_added_is_served_and_one_that_is_removed_is_closed() {
    let a = backend(&[("n", OLD)], "a").await;
    let (file, mut read) = (File::new(), 0);
    let (first, second) = (free(1), free(2));
    file.write(&[("pdb-a", &a)], "");
    let mux = Pdbmux::of_file(&file.path()).await;
    for (admin, gone) in [(first, None), (second, Some(first))] {
        file.write(&[("pdb-a", &a)], &format!("admin_listen: {admin}"));
        reload(&mux, &mut read).await;
        Client::connect(admin).await.get("/livez").await.ok();
        if let Some(gone) = gone {
            until_refused(gone).await;
        }
    }
    file.write(&[("pdb-a", &a)], "");
    let mut idle = Client::connect(second).await;
    idle.get("/livez").await.ok();
    reload(&mux, &mut read).await;
    until_refused(second).await;
    assert_eq!(idle.until_closed().await, b"");
    // That of clients is the same one all the time.
    assert_eq!(sources(&mux).await, pairs(&[("n", "pdb-a")]));
}

#[tokio::test]
async fn clients_that_move_to_another_address_are_answered_at_the_old_one_to_the_end() {
    let (a, gate) = (backend(&[("n", OLD)], "a").await, Gate::new());
    let moved = free(3);
    let file = File::with("health_probe_enabled: false\nfacts_ttl: 0s\n");
    file.write(&[("pdb-a", &a)], "listen: 127.77.1.4:0");
    let mux = Pdbmux::of_file(&file.path()).await;
    a.on(
        "/pdb/query/v4/environments",
        Answer::json("[1]").behind(&gate),
    );
    let mut client = mux.connect().await;
    client
        .send(request("GET", "/pdb/query/v4/environments"))
        .await;
    a.until_seen(1).await;
    file.write(&[("pdb-a", &a)], &format!("listen: {moved}"));
    mux.tell(pdbmux::daemon::Order::Reload);
    until_refused(mux.address()).await;
    assert!(
        Client::connect(moved)
            .await
            .get(NODES)
            .await
            .ok()
            .contains("pdb-a")
    );
    gate.open();
    assert_eq!(client.response().await.ok(), "[1]");
    assert_eq!(client.until_closed().await, b"");
}

#[tokio::test]
async fn an_address_that_cannot_be_had_refuses_the_whole_configuration() {
    let a = backend(&[("n", OLD)], "a").await;
    let (file, mut read) = (File::new(), 0);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().map(|address| (taken, address)).unwrap();
    file.write(&[("pdb-a", &a)], "");
    let mux = Pdbmux::of_file(&file.path()).await;
    file.write(&[("renamed", &a)], &format!("admin_listen: {}", taken.1));
    let told = reload(&mux, &mut read).await;
    assert_eq!(told["last_reload_successful"], false);
    assert_eq!(sources(&mux).await, pairs(&[("n", "pdb-a")]));
    drop(taken.0);
    let told = reload(&mux, &mut read).await;
    assert_eq!(told["last_reload_successful"], true);
    assert_eq!(sources(&mux).await, pairs(&[("n", "renamed")]));
}

#[tokio::test]
async fn addresses_of_clients_and_operators_change_places_in_one_reload() {
    let (a, gate, mut read) = (backend(&[("n", OLD)], "a").await, Gate::new(), 0);
    let (one, other) = (free(5), free(6));
    let file = File::with("health_probe_enabled: false\nfacts_ttl: 0s\n");
    let (slow, settled) = ("/pdb/query/v4/environments", "listen: 127.77.1.7:0");
    a.on(slow, Answer::json("[1]").behind(&gate));
    let places = |clients, operators| {
        let second = format!("127.77.1.7:0,{clients}");
        format!("listen: {second}\nadmin_listen: {operators}")
    };
    file.write(&[("pdb-a", &a)], settled);
    let mux = Pdbmux::of_file(&file.path()).await;
    file.write(&[("pdb-a", &a)], &places(one, other));
    reload(&mux, &mut read).await;
    let mut busy = Client::connect(one).await;
    busy.send(request("GET", slow)).await;
    a.until_seen(1).await;
    file.write(&[("pdb-a", &a)], &places(other, one));
    let told = reload(&mux, &mut read).await;
    assert_eq!(told["last_reload_successful"], true, "{told}");
    // Only operators are told the metrics of pdbmux, and only clients are answered from backends.
    let pdbmux_metrics = async |at| {
        let response = Client::connect(at).await.get("/metrics").await;
        response.text().contains("pdbmux_build_info")
    };
    assert!(pdbmux_metrics(one).await);
    assert!(!pdbmux_metrics(other).await);
    Client::connect(other).await.get(NODES).await.ok();
    gate.open();
    assert_eq!(busy.response().await.ok(), "[1]");
    assert_eq!(busy.until_closed().await, b"");
}

#[tokio::test]
async fn an_address_that_is_being_left_can_be_had_again() {
    let (a, gate, mut read) = (backend(&[("n", OLD)], "a").await, Gate::new(), 0);
    let (kept, moved) = (free(8), free(9));
    let file = File::with("health_probe_enabled: false\nfacts_ttl: 0s\n");
    let slow = "/pdb/query/v4/environments";
    a.on(slow, Answer::json("[1]").behind(&gate));
    file.write(&[("pdb-a", &a)], &format!("listen: 127.77.1.7:0,{kept}"));
    let mux = Pdbmux::of_file(&file.path()).await;
    let mut busy = Client::connect(kept).await;
    busy.send(request("GET", slow)).await;
    a.until_seen(1).await;
    for at in [moved, kept, moved, kept] {
        file.write(&[("pdb-a", &a)], &format!("listen: 127.77.1.7:0,{at}"));
        let told = reload(&mux, &mut read).await;
        assert_eq!(told["last_reload_successful"], true, "{told}");
        Client::connect(at).await.get(NODES).await.ok();
    }
    gate.open();
    assert_eq!(busy.response().await.ok(), "[1]");
}
