//! Compressed answers: to clients who ask for them, and from backends that are asked for them.

pub(crate) mod backends;
mod clients;

use std::io::{Read, Write as _};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use crate::client::Response;
use crate::harness::Pdbmux;

const FACTS: &str = "/pdb/query/v4/facts";
const NODES: &str = "/pdb/query/v4/nodes";
const ENVIRONMENTS: &str = "/pdb/query/v4/environments";

fn compress(body: impl AsRef<[u8]>) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(body.as_ref()).unwrap();
    gzip.finish().unwrap()
}

fn decompress(body: &[u8]) -> String {
    let mut text = String::new();
    GzDecoder::new(body).read_to_string(&mut text).unwrap();
    text
}

/// A request that says what it takes.
fn accepting(method: &str, target: &str, accept: &str) -> String {
    format!("{method} {target} HTTP/1.1\r\nHost: pdbmux\r\nAccept-Encoding: {accept}\r\n\r\n")
}

async fn get(mux: &Pdbmux, target: &str, accept: &str) -> Response {
    let mut client = mux.connect().await;
    client.send(accepting("GET", target, accept)).await;
    client.response().await
}
