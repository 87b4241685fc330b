use pdbmux_core::settings::Strategy;
use serde_json::{Value, json};

use super::backend::{Backend, exact};
use crate::harness::Pdbmux;
use crate::stub::{Answer, Stub};

async fn explained(mux: &Pdbmux, target: &str) -> Value {
    let request = format!("GET {target} HTTP/1.1\r\nHost: pdbmux\r\nX-Pdbmux-Explain: 1\r\n\r\n");
    let mut client = mux.connect().await;
    client.send(request.as_bytes()).await;
    let response = client.response().await;
    assert_eq!(response.status, 200);
    assert!(
        !response.text().contains("127.0.0.1"),
        "{}",
        response.text()
    );
    response.json()
}

#[tokio::test]
async fn an_answer_tells_what_was_asked_of_whom_and_what_was_left_out() {
    let a = Backend::holding(&[("moved", 1), ("n", 1)]).await;
    let b = Backend::holding(&[("moved", 2)]).await;
    let mux = exact(&[&a, &b]).await;
    let told = explained(&mux, "/pdb/query/v4/inventory").await;
    assert_eq!(told["merge"], "exact");
    assert_eq!(told["done_instead"], Value::Null);
    assert_eq!(told["plan"]["each_is_asked_for"], "the nodes that it owns");
    let shares = json!([
        {"backend": "pdb-a", "owns": 1, "left_out": ["moved"]},
        {"backend": "pdb-b", "owns": 1, "left_out": []},
    ]);
    assert_eq!(told["backends"], shares);
    let asked = told["asked"].as_array().unwrap();
    let rows = |backend: &str| {
        let of = asked.iter().filter(|step| step["backend"] == backend);
        let mut of = of.filter(|step| step["target"].as_str().unwrap().contains("/inventory"));
        of.next().unwrap()["rows"].clone()
    };
    assert_eq!((rows("pdb-a"), rows("pdb-b")), (json!(1), json!(1)));
    assert_eq!(told["outcome"]["contributed"], 2);
}

#[tokio::test]
async fn what_is_done_in_place_of_a_plan_is_told() {
    let a = Backend::holding(&[("moved", 1), ("n", 1)]).await;
    let b = Backend::holding(&[("moved", 2)]).await;
    let mux = Pdbmux::with(&[&a.stub, &b.stub], |config| {
        config.merge = Strategy::Exact;
        config.max_listed_nodes = 0;
    })
    .await;
    let told = explained(&mux, "/pdb/query/v4/inventory").await;
    let each = &told["done_instead"]["each_is_asked_for"];
    assert_eq!(
        each,
        "the nodes that it owns, or everything if that takes a long list"
    );
}

#[tokio::test]
async fn failures_and_refusals_are_told_in_every_mode() {
    let (a, gone) = (Stub::start().await, Stub::closed());
    a.otherwise(Answer::status(400, "no such column"));
    let mux = Pdbmux::start(&[&a, &gone]).await;
    let told = explained(&mux, "/pdb/query/v4/reports").await;
    // In the order in which they answered.
    let steps = told["asked"].as_array().unwrap();
    let of = |backend: &str| {
        steps
            .iter()
            .find(|step| step["backend"] == backend)
            .unwrap()
    };
    assert_eq!(of("pdb-a")["said"], "no such column");
    assert_eq!(of("pdb-b")["failure"], "unreachable");
    assert_eq!(told["outcome"]["status"], 502);
    let told = explained(&mux, "/pdb/query/v4/environments").await;
    assert_eq!(told["outcome"]["status"], 502);
    assert_eq!(told["asked"].as_array().unwrap().len(), 2);
}
