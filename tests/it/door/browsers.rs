//! Pages of other sites that ask from browsers.

use pdbmux::config::Origins;

use super::NODES;
use crate::client::Response;
use crate::harness::Pdbmux;
use crate::stub::{Answer, Stub};
use crate::tls::Files;

const BOARD: &str = "Origin: https://board.example\r\n";
const OTHER: &str = "Origin: https://other.example\r\n";

async fn ask(mux: &Pdbmux, method: &str, headers: &str) -> Response {
    let mut client = mux.connect().await;
    let head = format!("{method} {NODES}?include_total=true HTTP/1.1\r\nHost: x\r\n{headers}\r\n");
    client.send(head).await;
    if method == "OPTIONS" {
        return client.head().await;
    }
    client.response().await
}

/// A header of an answer, in the words of the Fetch standard.
fn told<'r>(response: &'r Response, what: &str) -> Option<&'r str> {
    response.header(&format!("access-control-{what}"))
}

async fn sharing(stub: &Stub, origins: Origins) -> Pdbmux {
    stub.on(NODES, Answer::counted(0, "[]"));
    Pdbmux::with(&[stub], |config| config.door.cors_origins = origins).await
}

fn board() -> Origins {
    Origins::These(vec![
        "https://board.example".to_owned(),
        "http://b".to_owned(),
    ])
}

const PREFLIGHT: &str = "Access-Control-Request-Method: POST\r\n\
                         Access-Control-Request-Headers: authorization,content-type\r\n";

#[tokio::test]
async fn without_configuration_browsers_are_told_nothing() {
    let stub = Stub::start().await;
    let mux = sharing(&stub, Origins::Nobody).await;
    let response = ask(&mux, "GET", BOARD).await;
    assert_eq!(response.ok(), "[]");
    assert_eq!(told(&response, "allow-origin"), None);
    assert_eq!(response.all("vary"), ["Accept-Encoding"]);
    let preflight = ask(&mux, "OPTIONS", &format!("{BOARD}{PREFLIGHT}")).await;
    assert_eq!(preflight.status, 405);
}

#[tokio::test]
async fn pages_of_the_configured_origins_may_read_answers_and_what_their_heads_say() {
    let stub = Stub::start().await;
    let mux = sharing(&stub, board()).await;
    let response = ask(&mux, "GET", BOARD).await;
    assert_eq!(response.ok(), "[]");
    assert_eq!(
        told(&response, "allow-origin"),
        Some("https://board.example")
    );
    assert_eq!(
        told(&response, "expose-headers"),
        Some("x-records, x-backends")
    );
    assert_eq!(told(&response, "allow-credentials"), None);
    // What a cache on the way keeps of one page is not for another.
    for headers in [BOARD, OTHER, ""] {
        let vary = ask(&mux, "GET", headers).await;
        assert_eq!(vary.all("vary"), ["Accept-Encoding", "Origin"]);
    }
    assert_eq!(told(&ask(&mux, "GET", OTHER).await, "allow-origin"), None);
    // Refusals can be read, too.
    let refused = ask(&mux, "PUT", BOARD).await;
    assert_eq!(refused.status, 405);
    assert_eq!(
        told(&refused, "allow-origin"),
        Some("https://board.example")
    );
}

#[tokio::test]
async fn any_page_may_read_answers_where_that_is_configured() {
    let stub = Stub::start().await;
    let mux = sharing(&stub, Origins::Anybody).await;
    for headers in [BOARD, OTHER, ""] {
        let response = ask(&mux, "GET", headers).await;
        assert_eq!(told(&response, "allow-origin"), Some("*"));
        assert_eq!(response.all("vary"), ["Accept-Encoding"]);
    }
}

#[tokio::test]
async fn a_browser_learns_what_it_may_ask_without_showing_who_asks() {
    let (stub, files) = (Stub::start().await, Files::new());
    let mux = Pdbmux::with(&[&stub], |config| {
        config.door.cors_origins = board();
        config.door.tokens = Some(files.write("tokens", "token\n"));
    })
    .await;
    let allowed = ask(&mux, "OPTIONS", &format!("{BOARD}{PREFLIGHT}")).await;
    assert_eq!(allowed.status, 204);
    assert_eq!(
        told(&allowed, "allow-origin"),
        Some("https://board.example")
    );
    assert_eq!(told(&allowed, "allow-methods"), Some("GET, HEAD, POST"));
    assert_eq!(
        told(&allowed, "allow-headers"),
        Some("authorization,content-type")
    );
    assert_eq!(told(&allowed, "max-age"), Some("600"));
    assert_eq!(
        allowed.all("vary"),
        ["Access-Control-Request-Headers", "Origin"]
    );
    let other = ask(&mux, "OPTIONS", &format!("{OTHER}{PREFLIGHT}")).await;
    for what in ["allow-origin", "allow-methods", "allow-headers"] {
        assert_eq!(told(&other, what), None, "{what}");
    }
    // What only looks like it is asked who asks, and so is the question itself.
    assert_eq!(ask(&mux, "OPTIONS", BOARD).await.status, 401);
    let bare = ask(&mux, "GET", BOARD).await;
    assert_eq!(bare.status, 401);
    assert_eq!(told(&bare, "allow-origin"), Some("https://board.example"));
    assert_eq!(stub.seen().len(), 0);
}
