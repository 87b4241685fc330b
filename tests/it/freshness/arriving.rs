//! Long lists of nodes, which are read while they arrive.

use super::{FACTS, NEW, OLD, owner, pair};
use crate::harness::{Pdbmux, SHORT};
use crate::stub::{Answer, FRESHNESS, Gate, Stub, nodes_body};

/// Some 90 bytes of text for each, of which pdbmux keeps 45.
const NODES: usize = 15_000;

/// `n`, which is new, and many others.
pub(crate) fn long_list() -> String {
    let others: Vec<_> = (0..NODES)
        .map(|at| format!("node{at:06}.long.example.net"))
        .collect();
    let others = others.iter().map(|name| (&**name, OLD));
    let nodes: Vec<_> = std::iter::once(("n", NEW)).chain(others).collect();
    nodes_body(&nodes)
}

/// What may become of it when a part of it has come, the new node first, and nothing was wrong yet.
pub(crate) fn broken_off() -> [Answer; 4] {
    let list = long_list();
    let half = list.rfind(r#",{"certname":"node007"#).unwrap();
    let begun = || Answer::promising(list.len()).send(&list[..half]);
    [
        begun().close(),
        begun().hang(),
        Answer::json(format!("{}}}{}", &list[..half], &list[half..])),
        Answer::json(&list[..half]),
    ]
}

async fn listing(list: Answer) -> (Stub, Stub) {
    let (a, b) = pair().await;
    b.on(FRESHNESS, list);
    (a, b)
}

#[tokio::test]
async fn a_list_that_comes_in_pieces_is_told_whole() {
    let mut list = long_list();
    // At the end, so that nothing less will do.
    let new = nodes_body(&[("n", NEW)]);
    list = list.replacen(&new[1..new.len() - 1], r#"{"certname":"first"}"#, 1);
    list.replace_range(list.len() - 1.., &format!(",{}", &new[1..]));
    let (gate, half) = (Gate::new(), list.len() / 2);
    let mut answer = Answer::chunked();
    for (at, piece) in list.as_bytes().chunks(7_001).enumerate() {
        answer = answer.chunk(piece);
        if at == half / 7_001 {
            answer = answer.hold(&gate);
        }
    }
    let (a, b) = listing(answer.last_chunk()).await;
    let mux = Pdbmux::start(&[&a, &b]).await;
    let open = async {
        b.until_seen(2).await;
        gate.open();
    };
    let (owner, ()) = tokio::join!(owner(&mux), open);
    assert_eq!(owner, "b");
    assert_eq!(b.freshness_asks(), 1);
}

#[tokio::test]
async fn a_list_that_breaks_off_tells_nothing() {
    for trouble in broken_off() {
        let (a, b) = listing(trouble).await;
        let mux = Pdbmux::with(&[&a, &b], |config| config.timeout = SHORT).await;
        let response = mux.get(FACTS).await;
        assert_eq!(response.json()[0]["value"], "a");
        assert_eq!(response.backends(), Some("2/2"));
    }
}

#[tokio::test]
async fn only_what_is_kept_of_a_list_is_bounded() {
    let list = long_list();
    for (max_body_bytes, expected) in [(list.len() * 3 / 5, "b"), (list.len() * 2 / 5, "a")] {
        let (a, b) = listing(Answer::json(&list)).await;
        let mux = Pdbmux::with(&[&a, &b], |config| config.max_body_bytes = max_body_bytes).await;
        assert_eq!(owner(&mux).await, expected, "{max_body_bytes}");
    }
}

#[tokio::test]
async fn a_backend_whose_list_breaks_off_is_left_out_as_one_that_fails_is() {
    for trouble in broken_off() {
        let (a, b) = listing(trouble).await;
        let mux = Pdbmux::with(&[&a, &b], |config| {
            config.timeout = SHORT;
            config.eject_failures = 1;
        })
        .await;
        assert_eq!(mux.get(FACTS).await.backends(), Some("2/2"));
        let response = mux.get(FACTS).await;
        assert_eq!(response.missing(), ["pdb-b; reason=out-of-service"]);
    }
}
