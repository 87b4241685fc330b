use serde_json::json;

use super::backend::{Backend, exact};
use crate::stub::Answer;

const NUM_NODES: &str = "/metrics/v2/read/puppetlabs.puppetdb.population%3Aname%3Dnum-nodes";

fn gauge(nodes: u64) -> Answer {
    let body = json!({"request": {"type": "read"}, "value": {"Value": nodes}, "status": 200});
    Answer::json(body.to_string())
}

#[tokio::test]
async fn a_node_that_two_backends_hold_is_one_in_the_population() {
    let a = Backend::holding(&[("moved", 1), ("n", 1)]).await;
    let b = Backend::holding(&[("moved", 2)]).await;
    a.stub.on(NUM_NODES, gauge(2));
    b.stub.on(NUM_NODES, gauge(1));
    let mux = exact(&[&a, &b]).await;
    let told = mux.get(NUM_NODES).await;
    assert_eq!(told.json()["value"], json!({"Value": 2}));
    assert_eq!(told.header("x-backends"), Some("2/2"));
}

#[tokio::test]
async fn where_no_node_is_held_twice_the_gauges_are_added_and_nothing_is_counted() {
    let a = Backend::holding(&[("m", 1)]).await;
    let b = Backend::holding(&[("n", 1)]).await;
    a.stub.on(NUM_NODES, gauge(1));
    b.stub.on(NUM_NODES, gauge(1));
    let mux = exact(&[&a, &b]).await;
    assert_eq!(
        mux.get(NUM_NODES).await.json()["value"],
        json!({"Value": 2})
    );
    assert_eq!(a.queries(super::backend::NODES), []);
}
