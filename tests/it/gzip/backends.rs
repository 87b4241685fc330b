use std::time::Duration;

use pdbmux::config::Coding;

use super::{ENVIRONMENTS, FACTS, NODES, compress};
use crate::client::{End, request};
use crate::facts::fact;
use crate::harness::Pdbmux;
use crate::stub::{Answer, Seen, Stub, nodes_body};

const OLD: &str = "2024-05-01T10:00:00.000Z";
const JSON: (&str, &str) = ("Content-Type", "application/json;charset=utf-8");
const GZIP: (&str, &str) = ("Content-Encoding", "gzip");

/// A success that comes compressed.
fn gzipped(body: impl AsRef<[u8]>) -> Answer {
    Answer::with(200, &[JSON, GZIP], compress(body))
}

async fn asking(stubs: &[&Stub]) -> Pdbmux {
    Pdbmux::with(stubs, |config| config.access.gzip = Some(Coding::Gzip)).await
}

fn accepted(seen: &Seen) -> Option<&str> {
    let mut all = seen.headers.iter();
    let found = all.find(|(name, _)| name == "accept-encoding");
    found.map(|(_, value)| &**value)
}

#[tokio::test]
pub(crate) async fn backends_are_asked_to_compress_where_that_is_configured() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    let body = nodes_body(&[("n", OLD)]);
    a.on(NODES, gzipped(&body)).on(ENVIRONMENTS, gzipped("[1]"));
    b.otherwise("[]");
    let mux = asking(&[&a, &b]).await;
    let merged = mux.get(NODES).await;
    assert_eq!(merged.json()[0]["certname"], "n");
    assert_eq!(merged.backends(), Some("2/2"));
    let passed = mux.get(ENVIRONMENTS).await;
    assert_eq!(passed.ok(), "[1]");
    assert_eq!(passed.header("content-encoding"), None);
    assert!(a.seen().iter().all(|seen| accepted(seen) == Some("gzip")));
    let plain = Pdbmux::start(&[&b]).await;
    plain.get(NODES).await;
    assert_eq!(accepted(b.seen().last().unwrap()), None);
}

#[tokio::test]
async fn a_compressed_answer_that_nobody_asked_for_is_read_all_the_same() {
    let a = Stub::start().await;
    a.on(NODES, gzipped("[]")).on(ENVIRONMENTS, gzipped("[1]"));
    let mux = Pdbmux::start(&[&a]).await;
    assert_eq!(mux.get(NODES).await.ok(), "[]");
    assert_eq!(mux.get(ENVIRONMENTS).await.ok(), "[1]");
}

#[tokio::test]
pub(crate) async fn damaged_and_foreign_encodings_are_failed_backends() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    b.on(NODES, "[]").on(ENVIRONMENTS, "[2]");
    let mux = asking(&[&a, &b]).await;
    let whole = compress(nodes_body(&[("n", OLD)]));
    let cut = &whole[..whole.len() - 1];
    let mut flipped = whole.clone();
    flipped[whole.len() - 5] ^= 1;
    for (answer, reason) in [
        (Answer::with(200, &[JSON, GZIP], cut), "cut"),
        (Answer::with(200, &[JSON, GZIP], &whole[..12]), "cut"),
        (Answer::with(200, &[JSON, GZIP], &flipped), "damaged"),
        (Answer::with(200, &[JSON, GZIP], "[]"), "damaged"),
        (
            Answer::with(200, &[JSON, ("Content-Encoding", "br")], "[]"),
            "encoding",
        ),
        (Answer::promising(0).send(""), "damaged"),
    ] {
        a.otherwise(answer);
        let merged = mux.get(NODES).await;
        assert_eq!((merged.ok(), merged.backends()), ("[]", Some("1/2")));
        assert_eq!(merged.missing(), [format!("pdb-a; reason={reason}")]);
    }
    a.otherwise(Answer::with(200, &[JSON, GZIP], "garbage"));
    assert_eq!(mux.get(ENVIRONMENTS).await.ok(), "[2]");
}

#[tokio::test]
async fn a_bomb_is_a_failed_backend_as_soon_as_it_is_too_long() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    let bomb = format!("[{}]", fact("n", "os", &" ".repeat(10 << 20)));
    assert!(compress(&bomb).len() < 20 << 10);
    a.otherwise(gzipped(&bomb));
    b.otherwise("[]");
    for (buffer, path) in [(usize::MAX, NODES), (1, FACTS)] {
        let mux = Pdbmux::with(&[&a, &b], |config| {
            config.access.gzip = Some(Coding::Gzip);
            config.max_body_bytes = 1 << 20;
            config.buffer_bytes = buffer;
        })
        .await;
        let mut client = mux.connect().await;
        client.send(request("GET", path)).await;
        let response = client.until_answered_or_closed().await;
        if path == FACTS {
            // It was begun before that was known.
            assert!(response.is_none_or(|response| response.end == End::Broken));
        } else {
            let response = response.unwrap();
            assert_eq!((response.ok(), response.backends()), ("[]", Some("1/2")));
            assert_eq!(response.missing(), ["pdb-a; reason=too-long"]);
        }
    }
}

#[tokio::test]
pub(crate) async fn compressed_answers_are_streamed_and_break_off_where_they_are_cut() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    let nodes: Vec<_> = (0..5_000).map(|at| format!("n{at}")).collect();
    let map: Vec<_> = nodes.iter().map(|node| (&**node, OLD)).collect();
    let facts: Vec<_> = nodes.iter().map(|node| fact(node, "os", node)).collect();
    let whole = compress(format!("[{}]", facts.join(",")));
    b.fresh(&[]).on(FACTS, gzipped("[]"));
    let mux = Pdbmux::with(&[&a, &b], |config| {
        config.access.gzip = Some(Coding::Gzip);
        config.buffer_bytes = 1;
        config.facts_ttl = Duration::ZERO;
    })
    .await;
    a.fresh(&map)
        .on(FACTS, Answer::with(200, &[JSON, GZIP], &whole));
    let response = mux.get(FACTS).await;
    assert_eq!(response.header("transfer-encoding"), Some("chunked"));
    response.ok();
    // Each with the source fact.
    assert_eq!(response.json().as_array().unwrap().len(), 10_000);
    let cut = Answer::with(200, &[JSON, GZIP], &whole[..whole.len() - 4]);
    a.on(FACTS, cut);
    assert_eq!(mux.get(FACTS).await.end, End::Broken);
}
