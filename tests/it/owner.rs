//! Routes of one node: its owner speaks first (R228-R239, R303).

use pdbmux_core::settings::Strategy;

use crate::harness::Pdbmux;
use crate::stub::{Answer, Stub};

const NODE: &str = "/pdb/query/v4/nodes/n";
const OLD: &str = "2024-05-01T10:00:00.000Z";
const NEW: &str = "2024-05-02T10:00:00.000Z";

/// Two backends of which the second owns `n`.
async fn owned(a: Answer, b: Answer) -> (Stub, Stub, Pdbmux) {
    let (first, second) = (Stub::start().await, Stub::start().await);
    first.fresh(&[("n", OLD)]).otherwise(a);
    second.fresh(&[("n", NEW)]).otherwise(b);
    let mux = Pdbmux::start(&[&first, &second]).await;
    (first, second, mux)
}

fn none() -> Answer {
    let headers = [("Content-Type", "application/json;charset=utf-8")];
    Answer::with(
        404,
        &headers,
        r#"{"error":"No information is known about node n"}"#,
    )
}

#[tokio::test]
async fn r228_r236_r238_the_owner_is_asked_first_and_served_verbatim() {
    let body = "{ \"certname\" :\"n\",\"x\":1.0 }";
    let (a, b, mux) = owned(Answer::status(500, "oh"), Answer::json(body)).await;
    for path in [
        NODE,
        "/pdb/query/v4/nodes/n/facts",
        "/pdb/query/v4/nodes/n/resources/File/%2Fetc",
        "/pdb/query/v4/factsets/n",
        "/pdb/query/v4/factsets/n/facts",
        "/pdb/query/v4/catalogs/n",
        "/pdb/query/v4/catalogs/n/edges?limit=5&offset=2",
    ] {
        let response = mux.get(path).await;
        assert_eq!(response.ok(), body);
        assert_eq!(b.asked().pop().unwrap(), path);
    }
    assert_eq!(a.asked(), [""; 0]);
}

#[tokio::test]
async fn r228_the_certname_is_read_decoded_and_forwarded_raw() {
    let (a, b, mux) = owned(Answer::json("{}"), Answer::json(r#"{"of":"b"}"#)).await;
    assert_eq!(
        mux.get("/pdb/query/v4/nodes/%6E").await.ok(),
        r#"{"of":"b"}"#
    );
    assert_eq!(b.asked(), ["/pdb/query/v4/nodes/%6E"]);
    assert_eq!(a.asked(), [""; 0]);
}

#[tokio::test]
async fn r229_after_the_owner_the_others_are_tried_in_configured_order() {
    let stubs = [
        Stub::start().await,
        Stub::start().await,
        Stub::start().await,
    ];
    for (stub, reported) in stubs.iter().zip(["", OLD, NEW]) {
        stub.otherwise(none());
        if reported.is_empty() {
            stub.fresh(&[]);
        } else {
            stub.fresh(&[("n", reported)]);
        }
    }
    stubs[0].on(NODE, r#"{"of":"a"}"#);
    let mux = Pdbmux::start(&[&stubs[0], &stubs[1], &stubs[2]]).await;
    assert_eq!(mux.get(NODE).await.ok(), r#"{"of":"a"}"#);
    assert_eq!(stubs[2].asked(), [NODE]);
}

#[tokio::test]
async fn r230_a_node_that_only_a_non_owner_holds_is_served() {
    let (_a, _b, mux) = owned(Answer::json("{}"), none()).await;
    assert_eq!(mux.get(NODE).await.ok(), "{}");
}

#[tokio::test]
async fn r231_a_node_that_nobody_holds_is_puppetdbs_own_404() {
    let (_a, _b, mux) = owned(none(), none()).await;
    let response = mux.get(NODE).await;
    assert_eq!(response.status, 404);
    assert_eq!(
        response.text(),
        r#"{"error":"No information is known about node n"}"#
    );
    assert_eq!(
        response.header("content-type"),
        Some("application/json;charset=utf-8")
    );
}

#[tokio::test]
async fn r232_to_r234_r303_without_a_success_the_first_answer_in_owner_first_order_is_served() {
    for (other, owner) in [(404, 500), (500, 404), (400, 503), (503, 400)] {
        let (_a, _b, mux) = owned(
            Answer::status(other, "the other's"),
            Answer::status(owner, "the owner's"),
        )
        .await;
        let response = mux.get(NODE).await;
        assert_eq!((response.status, response.text()), (owner, "the owner's"));
    }
}

#[tokio::test]
async fn r235_an_unreachable_owner_falls_through_to_the_next_answer() {
    let gone = [
        Answer::reset(),
        Answer::default().close(),
        Answer::default().send("garbage\r\n\r\n").close(),
    ];
    for broken in gone {
        for (answer, status) in [
            (Answer::json("{}"), 200),
            (none(), 404),
            (Answer::status(500, "oh"), 500),
        ] {
            let (_a, _b, mux) = owned(answer, broken.clone()).await;
            assert_eq!(mux.get(NODE).await.status, status);
        }
        let (_a, _b, mux) = owned(broken.clone(), broken).await;
        assert_eq!(mux.get(NODE).await.status, 502);
    }
}

#[tokio::test]
async fn r235_an_error_that_breaks_off_is_no_answer() {
    let cut = Answer::head(500, &[("Content-Length", "100")])
        .send("half")
        .close();
    let (_a, _b, mux) = owned(none(), cut).await;
    assert_eq!(mux.get(NODE).await.status, 404);
}

#[tokio::test]
async fn r239_static_merging_takes_the_first_configured_holder() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    a.otherwise(Answer::json(r#"{"of":"a"}"#));
    b.otherwise(Answer::json(r#"{"of":"b"}"#));
    let mux = Pdbmux::with(&[&a, &b], |config| config.merge = Strategy::Static).await;
    assert_eq!(mux.get(NODE).await.ok(), r#"{"of":"a"}"#);
    a.otherwise(none());
    assert_eq!(mux.get(NODE).await.ok(), r#"{"of":"b"}"#);
    assert_eq!((a.freshness_asks(), b.freshness_asks()), (0, 0));
}
