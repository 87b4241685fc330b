//! The same with an order, and what has to be held for it.

use super::*;

const BY_CERTNAME: &str = "order_by=%5B%7B%22field%22%3A%22certname%22%7D%5D";

/// Two backends that order certnames by bytes, and what they send if asked for that.
async fn ordered_pair() -> (Stub, Stub) {
    let (a, b) = (Stub::start().await, Stub::start().await);
    a.fresh(&[("m", "2026-01-01T00:00:00Z"), ("n", "2026-01-01T00:00:00Z")]);
    b.fresh(&[("n", "2026-01-02T00:00:00Z"), ("o", "2026-01-01T00:00:00Z")]);
    a.on(
        FACTS,
        list(&[
            fact("m", "os", "a"),
            fact("m", "arch", "a"),
            fact("n", "os", "old"),
        ]),
    );
    b.on(FACTS, list(&[fact("n", "os", "new"), fact("o", "os", "b")]));
    (a, b)
}

#[tokio::test]
pub(crate) async fn what_the_backends_order_as_we_do_is_streamed_in_order() {
    let order =
        "order_by=%5B%7B%22field%22%3A%22certname%22%7D%2C%7B%22field%22%3A%22name%22%7D%5D";
    for merge in [Strategy::Freshness, Strategy::Static] {
        for order in [BY_CERTNAME, order] {
            let (a, b) = ordered_pair().await;
            let asked = format!("{FACTS}?{order}");
            let held = Pdbmux::with(&[&a, &b], |config| config.merge = merge).await;
            let held = held.get(&asked).await;
            let mux = streaming(&[&a, &b], merge, Duration::ZERO).await;
            let streamed = mux.get(&asked).await;
            assert_eq!(streamed.header("transfer-encoding"), Some("chunked"));
            assert_eq!(streamed.ok(), held.ok(), "{merge:?} {order}");
        }
    }
}

#[tokio::test]
async fn node_records_are_streamed_by_certname_and_reports_by_time() {
    let (a, b) = ordered_pair().await;
    let nodes = [("m", "2026-01-01T00:00:00Z"), ("n", "2026-01-01T00:00:00Z")];
    a.on(NODES, nodes_body(&nodes));
    let nodes = [("n", "2026-01-02T00:00:00Z"), ("o", "2026-01-01T00:00:00Z")];
    b.on(NODES, nodes_body(&nodes));
    let mux = streaming(&[&a, &b], Strategy::Freshness, Duration::ZERO).await;
    let nodes = mux.get(&format!("{NODES}?{BY_CERTNAME}")).await;
    assert_eq!(
        nodes.header("transfer-encoding"),
        Some("chunked"),
        "{}",
        nodes.ok()
    );
    let nodes = nodes.json();
    let nodes: Vec<_> = nodes.as_array().unwrap().iter().collect();
    let told = |node: &&Value| (node["certname"].clone(), node["pdbmux_source"].clone());
    let told: Vec<_> = nodes.iter().map(told).collect();
    let expected = [("m", "pdb-a"), ("n", "pdb-b"), ("o", "pdb-b")];
    assert_eq!(
        told,
        expected.map(|(node, source)| (json!(node), json!(source)))
    );

    let report = |hash: &str, time: &str| json!({"hash": hash, "end_time": time}).to_string();
    let (early, both, late) = (
        report("1", "2026-01-01"),
        report("2", "2026-01-02"),
        report("3", "2026-01-03"),
    );
    a.on(REPORTS, list(&[early.clone(), both.clone()]));
    b.on(REPORTS, list(&[both.clone(), late.clone()]));
    let order = "order_by=%5B%7B%22field%22%3A%22end_time%22%7D%5D";
    let reports = mux.get(&format!("{REPORTS}?{order}")).await;
    assert_eq!(reports.header("transfer-encoding"), Some("chunked"));
    assert_eq!(reports.ok(), list(&[early, both, late]));
}

#[tokio::test]
pub(crate) async fn a_list_out_of_order_is_broken_off_once_and_held_from_then_on() {
    let (a, b) = ordered_pair().await;
    let (first, second) = (fact("o", "os", "b"), fact("n", "os", "new"));
    b.on(
        FACTS,
        Answer::chunked()
            .chunk(format!("[{first},"))
            .chunk(format!("{second}]"))
            .last_chunk(),
    );
    let mux = streaming(&[&a, &b], Strategy::Freshness, Duration::ZERO).await;
    let asked = format!("{FACTS}?{BY_CERTNAME}");
    let broken = mux.get(&asked).await;
    assert_eq!((broken.status, broken.end), (200, End::Broken));
    let held = mux.get(&asked).await;
    let held = held.ok().to_owned();
    let at = |fact: &str| held.find(fact).unwrap();
    assert!(at(&second) < at(&first) && !held.contains("old"));
}

#[tokio::test]
async fn what_the_backends_order_otherwise_is_held_and_put_in_order() {
    for merge in [Strategy::Freshness, Strategy::Static] {
        // Their certnames are in no order.
        let (a, b) = pair().await;
        let asked = format!("{FACTS}?{BY_CERTNAME}&include_total=true");
        let held = Pdbmux::with(&[&a, &b], |config| config.merge = merge).await;
        let held = held.get(&asked).await;
        let mux = streaming(&[&a, &b], merge, Duration::ZERO).await;
        let sorted = mux.get(&asked).await;
        assert_eq!(sorted.header("transfer-encoding"), Some("chunked"));
        assert_eq!(sorted.ok(), held.ok(), "{merge:?}");
        assert_eq!(sorted.header("x-records"), Some("5"));
        // One that is damaged is left out, as long as nothing was sent.
        b.on(FACTS, format!("[{},", fact("only-b", "os", "b")));
        let partial = mux.get(&asked).await;
        assert!(partial.ok().contains("old"));
        assert_eq!(partial.backends(), Some("1/2"));
        assert_eq!(partial.missing(), ["pdb-b; reason=damaged"]);
    }
}

#[tokio::test]
async fn a_list_that_begins_out_of_order_is_held_at_once() {
    let (a, b) = ordered_pair().await;
    let (first, second) = (fact("o", "os", "b"), fact("n", "os", "new"));
    b.on(FACTS, list(&[first.clone(), second.clone()]));
    let mux = streaming(&[&a, &b], Strategy::Freshness, Duration::ZERO).await;
    let held = mux.get(&format!("{FACTS}?{BY_CERTNAME}")).await;
    let held = held.ok().to_owned();
    let at = |fact: &str| held.find(fact).unwrap();
    assert!(at(&second) < at(&first) && !held.contains("old"));
    assert_eq!((a.asked().len(), b.asked().len()), (1, 1));
}

#[tokio::test]
async fn what_must_be_sorted_or_cut_is_held() {
    let (a, b) = pair().await;
    let mux = uncached(&[&a, &b]).await;
    for question in [
        r#"order_by=[{"field":"name"}]"#,
        "limit=2&order_by=[{\"field\":\"certname\"}]",
        "pretty=true",
    ] {
        let question = question
            .replace('[', "%5B")
            .replace(']', "%5D")
            .replace('"', "%22");
        let question = question.replace('{', "%7B").replace('}', "%7D");
        let response = mux.get(&format!("{FACTS}?{question}")).await;
        response.ok();
        assert_eq!(response.header("transfer-encoding"), None, "{question}");
    }
}

/// What must be sorted here and comes to some 300 KB of each backend.
async fn disorderly_pair() -> (Stub, Stub) {
    let (a, b) = pair().await;
    for stub in [&a, &b] {
        let value = "x".repeat(300 << 10);
        stub.on(FACTS, list(&[fact("n", "z", &value), fact("n", "a", "x")]));
    }
    (a, b)
}

#[tokio::test]
pub(crate) async fn what_must_be_held_and_has_no_room_is_refused_and_comes_later() {
    let (a, b) = disorderly_pair().await;
    let mux = Pdbmux::with(&[&a, &b], |config| {
        config.facts_ttl = Duration::ZERO;
        config.timeout = SHORT;
        config.memory_bytes = 500 << 10;
    })
    .await;
    let asked = format!("{FACTS}?{BY_CERTNAME}");
    let refused = mux.get(&asked).await;
    assert_eq!((refused.status, refused.end), (503, End::Whole));
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(
        refused.json()["error"],
        "there was no memory for the backends' answers for 250ms"
    );
    // Without an order nothing must be held.
    let streamed = mux.get(FACTS).await;
    assert_eq!(streamed.header("transfer-encoding"), Some("chunked"));
    assert!(streamed.ok().len() > 300 << 10);
    // What was taken for the one that was refused is there again.
    a.on(FACTS, list(&[fact("n", "z", &"x".repeat(300 << 10))]));
    b.on(FACTS, "[]");
    mux.get(&asked).await.ok();
}
