use std::io::Read;
use std::time::Duration;

use flate2::read::GzDecoder;

use super::{ENVIRONMENTS, FACTS, NODES, accepting, decompress, get};
use crate::client::{End, Response};
use crate::facts::fact;
use crate::harness::{Pdbmux, SHORT};
use crate::stub::{Answer, Gate, Stub};

const OLD: &str = "2024-05-01T10:00:00.000Z";

/// A list of facts of some 100 bytes each.
fn facts(count: usize) -> String {
    let facts = (0..count).map(|at| fact(&format!("n{at}"), "os", "a value of some length"));
    format!("[{}]", facts.collect::<Vec<_>>().join(","))
}

async fn holding(count: usize) -> Stub {
    let stub = Stub::start().await;
    let body = facts(count);
    stub.fresh(&[]).on(FACTS, &*body).on(ENVIRONMENTS, &*body);
    stub
}

/// The text of a compressed answer.
#[track_caller]
fn compressed(response: &Response) -> String {
    assert_eq!((response.status, response.end), (200, End::Whole));
    assert_eq!(response.header("content-encoding"), Some("gzip"));
    assert_eq!(response.header("vary"), Some("Accept-Encoding"));
    decompress(&response.body)
}

/// All headers but those that tell how the body is sent.
fn rest(response: &Response) -> Vec<&(String, String)> {
    let framing = [
        "content-encoding",
        "content-length",
        "transfer-encoding",
        "date",
        "age",
    ];
    let headers = response.headers.iter();
    headers
        .filter(|(name, _)| !framing.contains(&&**name))
        .collect()
}

#[tokio::test]
async fn an_answer_is_compressed_for_who_asks_for_it_and_is_the_same_otherwise() {
    for count in [20, 5_000] {
        let (a, down) = (holding(count).await, Stub::closed());
        let mux = Pdbmux::with(&[&a, &down], |_| {}).await;
        for target in [&format!("{FACTS}?include_total=true"), ENVIRONMENTS] {
            let plain = mux.get(target).await;
            plain.ok();
            assert_eq!(plain.header("content-encoding"), None);
            let gzip = get(&mux, target, "gzip;q=1.0,deflate;q=0.6,identity;q=0.3").await;
            assert_eq!(compressed(&gzip), plain.text());
            assert!(gzip.body.len() < plain.body.len() / 4);
            assert_eq!(rest(&gzip), rest(&plain));
        }
        let unasked = get(&mux, FACTS, "identity, gzip;q=0.5").await;
        assert_eq!(unasked.header("content-encoding"), None);
        assert_eq!(unasked.header("vary"), Some("Accept-Encoding"));
    }
}

#[tokio::test]
async fn short_answers_and_answers_where_it_is_turned_off_are_plain() {
    let a = holding(8).await;
    let length = Pdbmux::start(&[&a]).await.get(FACTS).await.body.len();
    for (gzip, min, expected) in [
        (true, length, Some("gzip")),
        (true, length + 1, None),
        (false, 0, None),
    ] {
        let mux = Pdbmux::with(&[&a], |config| {
            (config.gzip, config.gzip_min_bytes) = (gzip, min);
        })
        .await;
        let response = get(&mux, FACTS, "gzip").await;
        assert_eq!(response.header("content-encoding"), expected);
        let vary = gzip.then_some("Accept-Encoding");
        assert_eq!(response.header("vary"), vary);
    }
}

#[tokio::test]
async fn who_takes_no_plain_body_gets_a_short_one_compressed() {
    let a = Stub::start().await;
    a.on(NODES, "[]");
    let mux = Pdbmux::start(&[&a]).await;
    let response = get(&mux, NODES, "gzip, identity;q=0").await;
    assert_eq!(compressed(&response), "[]");
}

#[tokio::test]
async fn refusals_errors_and_answers_to_head_are_plain() {
    let a = Stub::start().await;
    a.on(NODES, Answer::status(500, &"x".repeat(5_000)));
    let mux = Pdbmux::with(&[&a], |config| config.gzip_min_bytes = 0).await;
    for (target, status) in [
        (NODES, 500),
        ("/nothing", 404),
        ("/pdb/query/v4/nodes?limit=0", 400),
    ] {
        let response = get(&mux, target, "gzip").await;
        assert_eq!(response.status, status);
        assert_eq!(response.header("content-encoding"), None, "{target}");
        assert!(!response.text().is_empty());
    }
    let mut client = mux.connect().await;
    client.send(accepting("HEAD", "/livez", "gzip")).await;
    let head = client.head().await;
    assert_eq!((head.status, head.header("content-encoding")), (200, None));
}

#[tokio::test]
async fn a_cached_answer_is_compressed_once_for_all_and_counted() {
    let a = holding(2_000).await;
    let mux = Pdbmux::with(&[&a], |config| config.facts_ttl = Duration::from_hours(1)).await;
    let bytes = async || mux.get("/healthz").await.json()["cache"]["bytes"].clone();
    a.on("/pdb/query/v4/nodes", "[]");
    let plain = mux.get(FACTS).await;
    assert_eq!(bytes().await, plain.body.len());
    let all = (0..16).map(|_| get(&mux, FACTS, "gzip"));
    let all = futures_util::future::join_all(all).await;
    for gzip in &all {
        assert_eq!(compressed(gzip), plain.text());
        assert_eq!(gzip.header("x-cache"), Some("hit"));
        // As it is kept: its length is known.
        let length = gzip.body.len().to_string();
        assert_eq!(gzip.header("content-length"), Some(&*length));
        assert_eq!(gzip.body, all[0].body);
    }
    assert_eq!(bytes().await, plain.body.len() + all[0].body.len());
    assert_eq!(mux.get(FACTS).await.text(), plain.text());
    assert_eq!(
        a.asked().iter().filter(|target| *target == FACTS).count(),
        1
    );
}

#[tokio::test]
async fn the_first_who_asks_for_a_compressed_answer_gets_it_as_it_is_kept() {
    let a = holding(2_000).await;
    let mux = Pdbmux::with(&[&a], |config| config.facts_ttl = Duration::from_hours(1)).await;
    let first = get(&mux, FACTS, "gzip").await;
    assert_eq!(first.header("x-cache"), Some("miss"));
    let second = get(&mux, FACTS, "gzip").await;
    assert_eq!(second.header("x-cache"), Some("hit"));
    assert_eq!(compressed(&first), compressed(&second));
    assert!(second.header("content-length").is_some());
}

#[tokio::test]
async fn views_of_a_cached_answer_are_compressed_each_for_itself() {
    let a = holding(200).await;
    let mux = Pdbmux::with(&[&a], |config| config.facts_ttl = Duration::from_hours(1)).await;
    for page in ["?limit=50", "?limit=60&offset=7", "/pdb-a"] {
        let target = format!("{FACTS}/pdbmux_source{page}");
        let plain = mux.get(&target).await;
        assert!(plain.ok().len() > 1_024, "{}", plain.text());
        assert_eq!(compressed(&get(&mux, &target, "gzip").await), plain.ok());
    }
}

/// As much of a compressed text as can be read of its first chunks.
fn readable(mut wire: &[u8]) -> String {
    let mut gzip = Vec::new();
    while let Some(end) = wire.windows(2).position(|two| two == b"\r\n") {
        let size = std::str::from_utf8(&wire[..end]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        let Some(chunk) = wire.get(end + 2..end + 2 + size) else {
            break;
        };
        gzip.extend_from_slice(chunk);
        wire = wire.get(end + 4 + size..).unwrap_or_default();
    }
    let mut text = Vec::new();
    // It breaks off, which what was read before is kept of.
    let _cut = GzDecoder::new(&*gzip).read_to_end(&mut text);
    String::from_utf8(text).unwrap()
}

/// pdbmux that writes while answers arrive.
async fn streaming(stubs: &[&Stub]) -> Pdbmux {
    Pdbmux::with(stubs, |config| {
        config.buffer_bytes = 1;
        config.timeout = SHORT;
    })
    .await
}

#[tokio::test]
async fn what_has_come_of_a_stream_is_readable_while_the_rest_is_waited_for() {
    let a = Stub::start().await;
    let gate = Gate::new();
    let (first, last) = (fact("n1", "os", "first"), fact("n2", "os", "last"));
    a.fresh(&[("n1", OLD), ("n2", OLD)]).on(
        FACTS,
        Answer::chunked()
            .chunk(format!("[{first}"))
            .hold(&gate)
            .chunk(format!(",{last}]"))
            .last_chunk(),
    );
    let mux = Pdbmux::with(&[&a], |config| config.buffer_bytes = 1).await;
    let mut client = mux.connect().await;
    client.send(accepting("GET", FACTS, "gzip")).await;
    // The record is known to be whole, and so written, with what follows it.
    let begun = client.head().await;
    assert_eq!(begun.header("content-encoding"), Some("gzip"));
    client.until(|wire| readable(wire).contains("first")).await;
    gate.open();
    let response = client.body_of(begun).await;
    assert_eq!(response.end, End::Whole);
    let text = decompress(&response.body);
    assert!(text.contains("first") && text.contains("last"), "{text}");
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_no_whole_compressed_answer() {
    let (a, b) = (Stub::start().await, holding(3).await);
    a.fresh(&[]).on(
        FACTS,
        Answer::chunked()
            .chunk(format!("[{},", fact("m", "os", "x")))
            .hang(),
    );
    let mux = streaming(&[&a, &b]).await;
    let response = get(&mux, FACTS, "gzip").await;
    assert_eq!(response.header("content-encoding"), Some("gzip"));
    assert_eq!(response.end, End::Broken);
}
