//! `/healthz`: which backends answer right now (R189-R192).

use futures_util::future::join_all;
use http::{Response, StatusCode};
use pdbmux_core::plan::Ask;
use serde::Serialize;

use super::body::Body;
use super::replay::Addresses;
use super::respond;
use super::{cached, cached::AnswerCache};
use crate::upstream::{Failure, Upstream};

#[derive(Serialize)]
struct Health<'h> {
    status: &'static str,
    backends: Vec<Backend<'h>>,
    cache: cached::Report,
}

#[derive(Serialize)]
struct Backend<'h> {
    name: &'h str,
    /// `ok`, or why a query was not answered.
    reachable: String,
}

/// Asks every backend a small query, all at once, each within the configured timeout.
pub(super) async fn answer(
    upstream: &Upstream,
    addresses: &Addresses,
    cache: Option<&AnswerCache>,
) -> Response<Body> {
    // A real query: one that never reaches the database would call a backend well that is not.
    let target = Ask::own("/pdb/query/v4/nodes", &[("limit", "1")]).target();
    let backends = join_all(upstream.backends().iter().map(async |backend| {
        let asked = upstream.fan_out(&[(backend.id, target.clone())]).await;
        let reachable = match asked.first().map(|asked| &asked.result) {
            Some(Ok(received)) if received.status == 200 => "ok".to_owned(),
            Some(Ok(received)) => Failure::Status(received.status).to_string(),
            Some(Err(failure)) => failure.to_string(),
            None => "not asked".to_owned(),
        };
        Backend {
            name: &backend.name,
            reachable: addresses.strip(&reachable).into_owned(),
        }
    }))
    .await;
    let well = backends
        .iter()
        .filter(|backend| backend.reachable == "ok")
        .count();
    let (status, code) = match well {
        0 => ("down", StatusCode::SERVICE_UNAVAILABLE),
        _ if well < backends.len() => ("degraded", StatusCode::OK),
        _ => ("ok", StatusCode::OK),
    };
    match serde_json::to_string(&Health {
        status,
        backends,
        cache: cached::report(cache).await,
    }) {
        Ok(body) => respond::json(code, body),
        Err(_) => respond::internal_error(),
    }
}
