//! What is told apart by more than one member, or by what is known of owners, in no order.

use super::*;
use crate::stub::FRESHNESS;

const EVENTS: &str = "/pdb/query/v4/events";
const EARLY: &str = "2026-01-01T00:00:00Z";
const LATE: &str = "2026-01-02T00:00:00Z";

/// A node's record, `padded` by so many bytes.
fn node(certname: &str, reported: &str, padded: usize) -> String {
    let padding = "x".repeat(padded);
    json!({"certname": certname, "report_timestamp": reported, "catalog_environment": padding})
        .to_string()
}

/// `both` is newer in b, by what the backends list and by what is known beforehand.
async fn nodes_pair() -> (Stub, Stub) {
    let (a, b) = pair().await;
    a.on(
        NODES,
        Answer::counted(2, list(&[node("both", EARLY, 0), node("only-a", EARLY, 0)])),
    );
    b.on(
        NODES,
        Answer::counted(2, list(&[node("only-b", EARLY, 0), node("both", LATE, 0)])),
    );
    (a, b)
}

fn event(title: &str, received: &str) -> String {
    let event = json!({"report": "r", "resource_title": title, "report_receive_time": received,
        "new_value": {"a": 1}});
    event.to_string()
}

#[tokio::test]
async fn r031_node_records_are_streamed_from_whom_has_the_newest() {
    for merge in [Strategy::Freshness, Strategy::Static] {
        let (a, b) = nodes_pair().await;
        let asked = format!("{NODES}?include_total=true");
        let held = Pdbmux::with(&[&a, &b], |config| config.merge = merge).await;
        let held = held.get(&asked).await;
        let mux = streaming(&[&a, &b], merge, Duration::ZERO).await;
        let streamed = mux.get(&asked).await;
        assert_eq!(streamed.header("transfer-encoding"), Some("chunked"));
        assert_eq!(rows(&streamed.json()), rows(&held.json()), "{merge:?}");
        assert!(streamed.ok().contains(LATE) && streamed.ok().contains("pdb-b"));
        for header in ["content-type", "x-records", "x-backends"] {
            assert_eq!(streamed.header(header), held.header(header), "{header}");
        }
    }
}

#[tokio::test]
async fn r031_what_records_tell_counts_more_than_what_was_known_before() {
    let (a, b) = nodes_pair().await;
    // It was newer in b once, and has reported to a meanwhile.
    let newest = node("both", "2026-01-03T00:00:00Z", 0);
    a.on(NODES, list(std::slice::from_ref(&newest)));
    let mux = uncached(&[&a, &b]).await;
    let streamed = mux.get(NODES).await;
    assert_eq!(streamed.header("transfer-encoding"), Some("chunked"));
    assert!(streamed.ok().contains("2026-01-03") && !streamed.ok().contains(LATE));
}

#[tokio::test]
async fn where_it_is_not_known_who_holds_what_node_records_are_held() {
    let (a, b) = nodes_pair().await;
    b.on(FRESHNESS, Answer::status(500, "ill"));
    let mux = uncached(&[&a, &b]).await;
    let held = mux.get(NODES).await;
    assert_eq!(held.header("transfer-encoding"), None);
    assert!(held.ok().contains(LATE) && held.ok().contains("only-a"));
    assert_eq!(held.backends(), Some("2/2"));
}

#[tokio::test]
async fn a_node_record_waits_for_those_alone_that_hold_the_node() {
    let (a, b) = nodes_pair().await;
    let gate = Gate::new();
    let late = Answer::chunked().chunk("[\n").hold(&gate).chunk("]");
    a.on(NODES, late.last_chunk());
    let mux = uncached(&[&a, &b]).await;
    let mut client = mux.connect().await;
    client.send(request("GET", NODES)).await;
    client.until_received("only-b").await;
    // What it has newer than a had it when the backends were asked, too.
    client.until_received(LATE).await;
    gate.open();
    assert_eq!(rows(&client.response().await.json()).len(), 2);
}

#[tokio::test]
async fn a_backend_is_not_read_while_all_its_node_records_can_only_wait() {
    let (a, b) = nodes_pair().await;
    let (gate, sent) = (Gate::new(), Gate::new());
    let newer = node("both", LATE, 0);
    for (stub, time) in [(&a, LATE), (&b, EARLY)] {
        stub.fresh(&[("both", time)]);
    }
    let held = Answer::chunked().chunk("[\n").hold(&gate).chunk(&newer);
    a.on(NODES, held.chunk("]").last_chunk());
    let record = node("both", EARLY, 1 << 20);
    let answer = (0..64).fold(Answer::chunked().chunk("["), |answer, at| {
        let comma = if at == 0 { "" } else { "," };
        answer.chunk(format!("{comma}{record}"))
    });
    b.on(NODES, answer.chunk("]").open(&sent).last_chunk());
    let mux = Pdbmux::with(&[&a, &b], |config| {
        config.facts_ttl = Duration::ZERO;
        config.buffer_bytes = 1;
    })
    .await;
    let mut client = mux.connect().await;
    client.send(request("GET", NODES)).await;
    b.until_seen(2).await;
    // Longer than b would need.
    tokio::time::sleep(SHORT).await;
    assert!(!sent.is_open(), "64 MB were taken from b that wait for a");
    gate.open();
    let response = client.response().await;
    assert_eq!(rows(&response.json()).len(), 1);
    assert!(response.ok().contains(LATE));
}

#[tokio::test]
async fn r094_events_held_twice_are_streamed_once_and_listed_twice_twice() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    let (one, two, three) = (event("1", EARLY), event("2", EARLY), event("3", LATE));
    a.on(EVENTS, list(&[one.clone(), two.clone(), two.clone()]));
    // Each has received them at another time.
    b.on(EVENTS, list(&[event("1", LATE), event("2", LATE), three]));
    let mux = uncached(&[&a, &b]).await;
    let response = mux.get(EVENTS).await;
    assert_eq!(response.header("transfer-encoding"), Some("chunked"));
    let rows = response.json();
    let titles = rows.as_array().unwrap().iter();
    let mut titles: Vec<_> = titles.map(|row| row["resource_title"].clone()).collect();
    titles.sort_by_key(Value::to_string);
    assert_eq!(titles, ["1", "2", "2", "3"]);
}

#[tokio::test]
async fn of_everything_a_backend_sends_what_it_does_not_own_is_left_out() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    for (stub, own, time) in [(&a, "m", EARLY), (&b, "n", LATE)] {
        stub.makes(NODES, move |seen| {
            let query = seen.param("query").unwrap_or_default();
            let body = if query.contains("\"count\"") {
                json!([{"count": 2}]).to_string()
            } else {
                nodes_body(&[(own, EARLY), ("both", time)])
            };
            Answer::json(body)
        });
        stub.on(
            FACTS,
            list(&[fact(own, "os", own), fact("both", "os", own)]),
        );
    }
    for order in ["", "?order_by=%5B%7B%22field%22%3A%22certname%22%7D%5D"] {
        let mux = Pdbmux::with(&[&a, &b], |config| {
            config.merge = Strategy::Exact;
            config.max_listed_nodes = 0;
            config.facts_ttl = Duration::ZERO;
            config.buffer_bytes = 1;
        })
        .await;
        let response = mux.get(&format!("{FACTS}{order}")).await;
        assert_eq!(response.header("transfer-encoding"), Some("chunked"));
        let source = |node: &str, name: &str| fact(node, "pdbmux_source", name);
        let mut expected = [
            fact("m", "os", "m"),
            source("m", "pdb-a"),
            fact("n", "os", "n"),
            source("n", "pdb-b"),
            fact("both", "os", "n"),
            source("both", "pdb-b"),
        ];
        expected.sort();
        assert_eq!(rows(&response.json()), expected, "{order}");
    }
}

#[tokio::test]
async fn what_fails_under_way_or_is_left_ends_as_other_streams_do() {
    for (path, record) in [
        (NODES, node("only-b", EARLY, 0)),
        (EVENTS, event("1", EARLY)),
    ] {
        let begun = || Answer::chunked().chunk(format!("[{record},"));
        let (a, b) = nodes_pair().await;
        a.on(EVENTS, "[]");
        let mux = uncached(&[&a, &b]).await;
        for broken in [
            begun().close(),
            begun().hang(),
            begun().chunk("nonsense]").last_chunk(),
        ] {
            b.on(path, broken);
            let response = mux.get(path).await;
            assert_eq!(
                (response.status, response.end),
                (200, End::Broken),
                "{path}"
            );
        }
        b.on(path, begun().hang());
        let mux = Pdbmux::with(&[&a, &b], |config| {
            config.facts_ttl = Duration::ZERO;
            config.buffer_bytes = 1;
        })
        .await;
        let mut client = mux.connect().await;
        client.send(request("GET", path)).await;
        client.until_received(&record[..record.len() - 1]).await;
        drop(client);
        b.until_hung_up_on().await;
    }
}

#[tokio::test]
async fn all_who_want_the_same_nodes_are_sent_all_of_them_and_short_lists_are_kept() {
    let (a, b) = nodes_pair().await;
    let gate = Gate::new();
    a.on(
        NODES,
        Answer::json(list(&[node("only-a", EARLY, 0)])).behind(&gate),
    );
    let mux = streaming(&[&a, &b], Strategy::Freshness, Duration::from_secs(30)).await;
    let mut clients: Vec<Client> = Vec::new();
    for _ in 0..3 {
        let mut client = mux.connect().await;
        client.send(request("GET", NODES)).await;
        clients.push(client);
    }
    b.until_seen(1).await;
    gate.open();
    for mut client in clients {
        let response = client.response().await;
        assert_eq!(rows(&response.json()).len(), 3);
        assert_eq!(response.header("x-cache"), Some("miss"));
    }
    let mux = Pdbmux::with(&[&a, &b], |config| {
        config.buffer_bytes = 1;
        config.facts_ttl = Duration::from_secs(30);
    })
    .await;
    for origin in ["miss", "hit"] {
        let response = mux.get(NODES).await;
        assert_eq!(rows(&response.json()).len(), 3);
        assert_eq!(response.header("x-cache"), Some(origin));
        assert_eq!(response.header("transfer-encoding"), None);
    }
}
