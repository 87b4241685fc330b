//! Answers of one of a group that come whole and are of no use: another answers instead.

use pdbmux_core::settings::Strategy;

use super::{COUNT, NODES, asked, grouped, trio};
use crate::exact::estate::knows;
use crate::freshness::arriving::broken_off;
use crate::harness::Pdbmux;
use crate::seeing::Scrape;
use crate::stub::{Answer, Stub};

/// What is sent with a status of success and is not what was asked for.
const DAMAGED: [&str; 3] = ["<html>", r#"[{"count":3}"#, r#"[{"count":3}]]"#];

/// How often another answered, by why.
async fn taken_over(mux: &Pdbmux) -> [i64; 2] {
    let scrape = Scrape::of(mux).await;
    ["failure", "damaged"].map(|reason| {
        let labels = [("backend", "eu"), ("reason", reason)];
        scrape.sum("pdbmux_take_overs_total", &labels)
    })
}

#[tokio::test]
async fn a_damaged_answer_that_is_held_is_another_ones_and_so_is_the_next() {
    for damaged in DAMAGED {
        let stubs = trio().await;
        let mux = grouped(&stubs, |_| {}).await;
        stubs[0].otherwise(damaged);
        for _ in 0..2 {
            let response = mux.ask(NODES, &[COUNT]).await;
            assert_eq!(response.ok(), r#"[{"count":5}]"#, "{damaged}");
            assert_eq!(
                (response.backends(), response.missing()),
                (Some("2/2"), vec![])
            );
        }
        assert_eq!(asked(&stubs), [1, 2, 2], "{damaged}");
        assert_eq!(taken_over(&mux).await, [0, 1]);
    }
}

#[tokio::test]
async fn if_all_of_a_group_send_damage_it_has_failed_and_none_is_asked_twice() {
    let stubs = trio().await;
    let mux = grouped(&stubs, |_| {}).await;
    stubs[0].otherwise("<html>");
    stubs[2].otherwise("[");
    let response = mux.ask(NODES, &[COUNT]).await;
    assert_eq!(
        (response.ok(), response.backends()),
        (r#"[{"count":2}]"#, Some("1/2"))
    );
    assert_eq!(response.missing(), ["eu; reason=damaged"]);
    assert_eq!(asked(&stubs), [1, 1, 1]);
}

#[tokio::test]
async fn where_another_fails_instead_the_group_has_failed_as_that_one_did() {
    let stubs = trio().await;
    let mux = grouped(&stubs, |_| {}).await;
    stubs[0].otherwise("<html>");
    stubs[2].otherwise(Answer::status(503, "not ready"));
    let response = mux.ask(NODES, &[COUNT]).await;
    assert_eq!(response.ok(), r#"[{"count":2}]"#);
    assert_eq!(response.missing(), ["eu; reason=status-503"]);
    assert_eq!(taken_over(&mux).await, [0, 0]);
}

#[tokio::test]
async fn a_member_that_sends_damage_is_left_out_as_one_that_fails_is() {
    let stubs = trio().await;
    let mux = grouped(&stubs, |config| config.eject_failures = 1).await;
    stubs[0].otherwise("<html>");
    let ask = || mux.ask(NODES, &[COUNT]);
    assert_eq!(ask().await.ok(), r#"[{"count":5}]"#);
    stubs[2].otherwise(Answer::status(500, "oh"));
    assert_eq!(ask().await.missing(), ["eu; reason=status-500"]);
    assert_eq!(asked(&stubs), [1, 2, 2]);
}

#[tokio::test]
async fn what_is_passed_on_is_another_ones_if_it_is_no_json() {
    let path = "/pdb/query/v4/environments";
    let stubs = trio().await;
    let mux = grouped(&stubs, |_| {}).await;
    stubs[0].on(path, "<html>");
    stubs[2].on(path, r#"[{"name":"production"}]"#);
    assert_eq!(mux.get(path).await.ok(), r#"[{"name":"production"}]"#);
    assert_eq!(asked(&stubs), [1, 0, 1]);
    assert_eq!(taken_over(&mux).await, [0, 1]);
}

#[tokio::test]
async fn a_list_that_begins_with_damage_is_written_from_another() {
    let node = |name: &str| format!(r#"[{{"certname":"{name}"}}]"#);
    // What is long is written while it arrives: but for the first bytes nothing is held.
    for order in ["", r#"[{"field":"certname"}]"#] {
        let stubs = trio().await;
        let mux = grouped(&stubs, |config| {
            config.buffer_bytes = 1;
            config.merge = Strategy::Static;
        })
        .await;
        stubs[0].on(NODES, "<html>");
        stubs[1].on(NODES, &*node("b"));
        stubs[2].on(NODES, &*node("a"));
        let parameters: &[_] = if order.is_empty() {
            &[]
        } else {
            &[("order_by", order)]
        };
        let response = mux.ask(NODES, parameters).await;
        let mut names: Vec<_> = response.json().as_array().unwrap().clone();
        names.sort_by_key(ToString::to_string);
        let names: Vec<_> = names.iter().map(|it| it["certname"].clone()).collect();
        assert_eq!(names, ["a", "b"], "{order}");
        assert_eq!(response.backends(), Some("2/2"));
        // Whose record is newest, or how a backend sorts, is told by its list of nodes, which is damaged
        // as well.
        assert_eq!(taken_over(&mux).await, [0, 2], "{order}");
    }
}

#[tokio::test]
async fn a_list_that_breaks_off_while_it_is_held_to_be_put_in_order_is_another_ones() {
    let node = |name: &str| format!(r#"{{"certname":"{name}"}}"#);
    let stubs = trio().await;
    let mux = grouped(&stubs, |config| {
        config.buffer_bytes = 1;
        config.merge = Strategy::Static;
    })
    .await;
    for stub in &stubs {
        // In no order that pdbmux knows.
        stub.fresh(&[("x", ""), ("b", ""), ("c", "")]);
    }
    let cut = format!("[{}", node("x"));
    stubs[0].on(NODES, Answer::promising(100).send(cut).close());
    stubs[1].on(NODES, format!("[{}]", node("c")));
    stubs[2].on(NODES, format!("[{},{}]", node("x"), node("b")));
    let order = ("order_by", r#"[{"field":"certname"}]"#);
    let response = mux.ask(NODES, &[order]).await;
    let names: Vec<_> = response.json().as_array().unwrap().clone();
    let names: Vec<_> = names.iter().map(|it| it["certname"].clone()).collect();
    assert_eq!(names, ["b", "c", "x"]);
    assert_eq!(response.backends(), Some("2/2"));
    assert_eq!(taken_over(&mux).await, [1, 0]);
}

#[tokio::test]
async fn whose_nodes_are_newest_is_told_by_another_if_one_breaks_off_or_tells_nonsense() {
    let nonsense = Answer::json("[{");
    for trouble in broken_off().into_iter().chain([nonsense]) {
        let stubs = trio().await;
        let mux = grouped(&stubs, |_| {}).await;
        let facts = "/pdb/query/v4/facts/os";
        let fact = |value: &str| {
            format!(r#"[{{"certname":"n","environment":"e","name":"os","value":"{value}"}}]"#)
        };
        let (old, new) = ("2024-05-01T00:00:00.000Z", "2026-01-02T00:00:00.000Z");
        let told = |stub: &Stub, when, value| {
            stub.fresh(&[("n", when)]).on(facts, fact(value));
        };
        told(&stubs[0], new, "newest");
        told(&stubs[1], old, "old");
        told(&stubs[2], new, "newest");
        stubs[0].on(crate::stub::FRESHNESS, trouble);
        let response = mux.get(facts).await;
        assert!(response.ok().contains("newest"), "{}", response.text());
        assert_eq!(response.backends(), Some("2/2"));
        assert_eq!(stubs[2].freshness_asks(), 1);
        assert_eq!(taken_over(&mux).await.iter().sum::<i64>(), 1);
    }
}

#[tokio::test]
async fn a_share_is_told_by_another_as_well() {
    let stubs = trio().await;
    for (stub, node) in stubs.iter().zip(["x", "y", "x"]) {
        knows(stub, &[(node, 1)]);
        stub.on("/pdb/query/v4/resources", "[{}]");
    }
    stubs[0].on("/pdb/query/v4/resources", "[{}");
    let mux = grouped(&stubs, |config| config.merge = Strategy::Exact).await;
    let response = mux.get("/pdb/query/v4/resources").await;
    assert_eq!(
        (response.ok(), response.backends()),
        ("[{},{}]", Some("2/2"))
    );
    assert_eq!(response.missing(), [""; 0]);
    assert_eq!(taken_over(&mux).await, [0, 1]);
}
