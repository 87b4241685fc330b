//! How long transfers may take: bytes that flow are never cut, silence is (R011).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::client::End;
use crate::harness::{Pdbmux, SHORT};
use crate::stub::{Answer, Seen, Stub};

const NODES: &str = "/pdb/query/v4/nodes";
const ENVIRONMENTS: &str = "/pdb/query/v4/environments";

/// An answer of ten parts whose pauses add up to more than the timeout, each far below it.
fn dripping(whole: &str) -> Answer {
    let size = whole.len().div_ceil(10);
    let parts = whole.as_bytes().chunks(size);
    let answer = parts.fold(Answer::chunked(), |answer, part| {
        answer.pause(SHORT / 4).chunk(part)
    });
    answer.last_chunk()
}

async fn start(stubs: &[&Stub]) -> Pdbmux {
    Pdbmux::with(stubs, |config| config.timeout = SHORT).await
}

#[tokio::test]
pub(crate) async fn a_transfer_that_flows_for_longer_than_the_timeout_is_not_cut() {
    let body = r#"[{"certname":"n1","report_timestamp":null}]"#;
    let a = Stub::start().await;
    a.on(NODES, dripping(body)).on(ENVIRONMENTS, dripping(body));
    let mux = Pdbmux::with(&[&a], |config| {
        config.timeout = 2 * SHORT;
        config.source_fact_enabled = false;
    })
    .await;
    let start = std::time::Instant::now();
    let (merged, passed) = tokio::join!(mux.get(NODES), mux.get(ENVIRONMENTS));
    assert_eq!((merged.ok(), passed.ok()), (body, body));
    assert!(
        start.elapsed() > 2 * SHORT,
        "the test itself: it dripped too fast"
    );
}

#[tokio::test]
pub(crate) async fn a_stall_is_a_timeout_wherever_it_begins() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    b.on(NODES, "[]");
    let mux = start(&[&a, &b]).await;
    for stalled in [
        Answer::hung(),
        Answer::default().send("HTTP/1.1 200 OK\r\nContent-").hang(),
        Answer::promising(10).hang(),
        Answer::promising(10).send("[").hang(),
        Answer::chunked().hang(),
        Answer::chunked().chunk("[").hang(),
        Answer::chunked().chunk("[]").send("5\r\n").hang(),
        Answer::chunked().chunk("[]").hang(),
    ] {
        a.on(NODES, stalled);
        let response = mux.get(NODES).await;
        assert_eq!((response.ok(), response.backends()), ("[]", Some("1/2")));
        assert_eq!(response.missing(), ["pdb-a; reason=timeout"]);
    }
}

#[tokio::test]
pub(crate) async fn a_body_that_breaks_off_is_never_merged_as_far_as_it_came() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    b.on(NODES, "[]");
    let mux = start(&[&a, &b]).await;
    let record = r#"[{"certname":"n"}]"#;
    for broken in [
        Answer::promising(100).send(record).close(),
        Answer::promising(0).close().send(""),
        Answer::chunked().chunk(record).close(),
        Answer::chunked().chunk(record).send("ff\r\n{}").close(),
        Answer::chunked().chunk(record).send("nonsense\r\n").close(),
    ] {
        let shown = format!("{broken:?}");
        a.on(NODES, broken);
        let response = mux.get(NODES).await;
        assert_eq!(
            (response.ok(), response.backends()),
            ("[]", Some("1/2")),
            "{shown}"
        );
        let missing = response.missing();
        assert!(
            missing == ["pdb-a; reason=cut"] || missing == ["pdb-a; reason=damaged"],
            "{shown}: {missing:?}"
        );
    }
}

#[tokio::test]
async fn what_is_no_http_is_a_failed_backend() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    b.otherwise("[]");
    let mux = start(&[&a, &b]).await;
    let plenty = "X: y\r\n".repeat(100_000);
    for garbage in [
        "",
        "\r\n\r\n",
        "[]",
        "HTTP/1.1\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n[]",
        "HTTP/3.0 200 OK\r\n\r\n[]",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n[]",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n[]",
        "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n[]",
        "SSH-2.0-OpenSSH_9.9\r\n",
        &format!("HTTP/1.1 200 OK\r\n{plenty}\r\n[]"),
    ] {
        a.otherwise(Answer::default().send(garbage).close());
        let response = mux.get(NODES).await;
        let start: String = garbage.chars().take(80).collect();
        assert_eq!(
            (response.ok(), response.backends()),
            ("[]", Some("1/2")),
            "{start}"
        );
        assert_eq!(response.missing(), ["pdb-a; reason=unreachable"], "{start}");
        assert_eq!(mux.get(ENVIRONMENTS).await.ok(), "[]", "{start}");
    }
}

#[tokio::test]
async fn bytes_behind_an_answer_are_never_the_next_answer() {
    let a = Stub::start().await;
    let smuggled = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n[6]";
    a.on(ENVIRONMENTS, Answer::json("[1]").send(smuggled));
    a.on(NODES, Answer::json("[]").send(smuggled));
    let mux = start(&[&a]).await;
    for _ in 0..10 {
        assert_eq!(mux.get(ENVIRONMENTS).await.ok(), "[1]");
        assert_eq!(mux.get(NODES).await.ok(), "[]");
    }
}

#[tokio::test]
async fn a_kept_connection_that_its_backend_closes_costs_no_answer() {
    let a = Stub::start().await;
    // Each second request finds a connection that was good for one.
    let calls = AtomicUsize::new(0);
    a.makes(NODES, move |_: &Seen| {
        match calls.fetch_add(1, Ordering::Relaxed) % 2 {
            0 => Answer::json("[]"),
            _ => Answer::default().close(),
        }
    });
    let mux = start(&[&a]).await;
    for _ in 0..10 {
        assert_eq!(mux.get(NODES).await.ok(), "[]");
    }
    assert_eq!(a.seen().len(), 19);
}

#[tokio::test]
async fn a_backend_that_closes_every_connection_is_asked_twice_and_not_for_ever() {
    let a = Stub::start().await;
    for broken in [Answer::default().close(), Answer::reset()] {
        let before = a.seen().len();
        a.on(NODES, broken);
        let mux = start(&[&a]).await;
        let response = mux.get(NODES).await;
        assert_eq!(
            (response.status, response.missing()),
            (502, vec!["pdb-a; reason=unreachable"])
        );
        assert_eq!(a.seen().len(), before + 2);
    }
}

#[tokio::test]
pub(crate) async fn a_body_above_the_ceiling_is_a_failed_backend_promised_or_not() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    b.on(NODES, "[]");
    let mux = Pdbmux::with(&[&a, &b], |config| config.max_body_bytes = 20).await;
    let (fits, over) = (r#"[{"certname": "nn"}]"#, r#"[{"certname":  "nn"}]"#);
    assert_eq!((fits.len(), over.len()), (20, 21));
    let chunked = |body: &str| {
        Answer::chunked()
            .chunk(&body[..7])
            .chunk(&body[7..])
            .last_chunk()
    };
    for (answer, backends) in [
        (Answer::json(fits), "2/2"),
        (chunked(fits), "2/2"),
        (Answer::json(over), "1/2"),
        (chunked(over), "1/2"),
        (Answer::chunked().chunk(over).last_chunk(), "1/2"),
        // The promise alone is enough: nobody waits for what would be thrown away.
        (Answer::promising(usize::MAX / 2).hang(), "1/2"),
    ] {
        a.on(NODES, answer);
        // What is laid out here is held, whatever it promises to become.
        let response = mux.get(&format!("{NODES}?pretty=true")).await;
        response.ok();
        assert_eq!(response.backends(), Some(backends));
        if backends == "1/2" {
            assert_eq!(response.missing(), ["pdb-a; reason=too-long"]);
        }
    }
}

#[tokio::test]
pub(crate) async fn a_slow_client_gets_all_of_a_large_answer() {
    let record = format!(r#"{{"certname":"n","x":"{}"}}"#, "y".repeat(8 << 20));
    let a = Stub::start().await;
    a.on(NODES, format!("[{record}]"))
        .on(ENVIRONMENTS, format!("[{record}]"));
    let mux = Pdbmux::with(&[&a], |config| {
        config.timeout = SHORT;
        config.source_fact_enabled = false;
    })
    .await;
    for path in [NODES, ENVIRONMENTS] {
        let mut client = mux.connect().await;
        client.send(crate::client::request("GET", path)).await;
        // Nothing is read for longer than a backend may be silent.
        tokio::time::sleep(SHORT + Duration::from_millis(100)).await;
        let response = client.response().await;
        assert_eq!(
            (response.end, response.body.len()),
            (End::Whole, record.len() + 2),
            "{path}"
        );
    }
}
