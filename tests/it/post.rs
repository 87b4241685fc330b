//! Questions that travel in a body: a client's own, and those too long for a backend's request line.

mod bad;
mod bounds;
mod clients;
mod equal;
mod upstream;

use crate::client::Response;
use crate::harness::Pdbmux;

/// The media type that POSTs of a query have.
const JSON: &str = "Content-Type: application/json\r\n";
/// That of a form.
const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";

/// A request with a body; `headers` are whole lines.
fn with_body(method: &str, target: &str, headers: &str, body: &str) -> String {
    format!(
        "{method} {target} HTTP/1.1\r\nHost: pdbmux\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// What a request is answered with, on a connection of its own.
async fn answer(mux: &Pdbmux, request: impl AsRef<[u8]>) -> Response {
    let mut client = mux.connect().await;
    client.send(request).await;
    client.response().await
}

async fn post(mux: &Pdbmux, target: &str, body: &str) -> Response {
    answer(mux, with_body("POST", target, JSON, body)).await
}
