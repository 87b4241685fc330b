//! Several listeners: clients at one, operators at another.

use crate::client::{End, request};
use crate::harness::Pdbmux;
use crate::stub::{Answer, Gate, Stub};

const NODES: &str = "/pdb/query/v4/nodes";

async fn with_admin(stub: &Stub) -> Pdbmux {
    Pdbmux::with(&[stub], |config| {
        config.admin_listen = Some("127.0.0.1:0".parse().unwrap());
    })
    .await
}

#[tokio::test]
async fn operators_are_told_how_pdbmux_is_and_nothing_of_the_api() {
    let a = Stub::start().await;
    a.on(NODES, "[]");
    let mux = with_admin(&a).await;
    let mut operator = mux.connect_admin().await;
    for path in ["/livez", "/readyz", "/healthz"] {
        assert_eq!(operator.get(path).await.json()["status"], "ok");
    }
    let before = a.seen().len();
    for path in [NODES, "/x", "/pdb/meta/v1/version", "/healthz/x"] {
        assert_eq!(operator.get(path).await.status, 404, "{path}");
    }
    assert_eq!(a.seen().len(), before);
    assert_eq!(mux.get(NODES).await.ok(), "[]");
}

#[tokio::test]
async fn operators_are_answered_until_the_last_client_is() {
    let (a, gate) = (Stub::start().await, Gate::new());
    a.on(NODES, Answer::json("[]").behind(&gate));
    let mux = with_admin(&a).await;
    let mut operator = mux.connect_admin().await;
    operator.get("/livez").await.ok();
    let mut client = mux.connect().await;
    client.send(request("GET", NODES)).await;
    a.until_seen(1).await;
    mux.stop();
    mux.until_refused().await;
    let ready = operator.get("/readyz").await;
    assert_eq!(
        (ready.status, &ready.json()["status"]),
        (503, &"draining".into())
    );
    assert_eq!(mux.connect_admin().await.get("/livez").await.status, 200);
    gate.open();
    let response = client.response().await;
    assert_eq!((response.ok(), response.end), ("[]", End::Whole));
    assert_eq!(operator.until_closed().await, b"");
    mux.until_stopped().await;
}

#[tokio::test]
async fn operators_are_answered_while_clients_wait_for_room() {
    let (a, gate) = (Stub::start().await, Gate::new());
    a.on(NODES, Answer::json("[]").behind(&gate));
    let mux = Pdbmux::with(&[&a], |config| {
        config.admin_listen = Some("127.0.0.1:0".parse().unwrap());
        config.max_connections = 1;
    })
    .await;
    let mut client = mux.connect().await;
    client.send(request("GET", NODES)).await;
    a.until_seen(1).await;
    let mut waiting = mux.connect().await;
    waiting.send(request("GET", "/livez")).await;
    let mut operator = mux.connect_admin().await;
    assert_eq!(operator.get("/livez").await.status, 200);
    gate.open();
    assert_eq!(client.response().await.ok(), "[]");
    drop(client);
    assert_eq!(waiting.response().await.status, 200);
}
