//! Looking at one backend: the steps, each of which needs those before it.

use std::time::SystemTime;

use futures_util::future::join5;
use jiff::{SignedDuration, Timestamp};
use pdbmux_core::plan::{Ask, census_ask};
use serde::Deserialize;
use tokio::time::Instant;

use super::judge::{self, Said};
use super::{Aspect, Finding, Outcome};
use crate::certificate::Certificate;
use crate::names::Names;
use crate::upstream::{Failure, Member, Received, TlsError, Upstream};

/// How many names a backend is asked to order. More would show no more.
const MOST_NAMES: u32 = 5_000;

/// One finding for each aspect.
pub(super) async fn look(upstream: &Upstream, backend: &Member, names: &Names) -> Vec<Finding> {
    let mut findings = Vec::new();
    let now = Timestamp::now();
    let shown = backend.shown().map(|read| read.map(|all| read_all(&all)));
    findings.push(judge::client_certificate(shown.as_ref(), now));
    let unreached = steps(upstream, backend, names, now, &mut findings)
        .await
        .err();
    for aspect in Aspect::ALL {
        if !findings.iter().any(|finding| finding.aspect == aspect) {
            let because = unreached.unwrap_or(aspect);
            findings.push(judge::skipped(
                aspect,
                &format!("not looked at, since the {because} fails"),
            ));
        }
    }
    findings.sort_by_key(|finding| finding.aspect);
    findings
}

/// Stops at what all that follows would need.
async fn steps(
    upstream: &Upstream,
    backend: &Member,
    names: &Names,
    now: Timestamp,
    findings: &mut Vec<Finding>,
) -> Result<(), Aspect> {
    let shows_what_fails = findings.iter().any(|it| it.outcome == Outcome::Fail);
    let mut step = |finding: Finding| {
        let (aspect, outcome) = (finding.aspect, finding.outcome);
        findings.push(finding);
        match outcome {
            Outcome::Fail => Err(aspect),
            Outcome::Skipped | Outcome::Ok | Outcome::Warn => Ok(()),
        }
    };
    step(judge::name(backend.addresses(names).await))?;
    let began = Instant::now();
    let knocked = backend.knock().await;
    step(judge::connection(knocked, began.elapsed()))?;
    if backend.url().is_secure() {
        let greeted = backend.greet().await.map(|all| read_all(&all));
        let authorities = backend.authorities().unwrap_or_default();
        step(judge::certificate(greeted, &read_all(&authorities), now))?;
    } else {
        step(judge::skipped(Aspect::Certificate, "its url is http"))?;
    }
    let alone = async |ask: Ask| upstream.ask_alone(backend, &ask).await;
    let version = alone(Ask::own("/pdb/meta/v1/version", &[])).await;
    let is_refused = matches!(version, Err(Failure::Tls(TlsError::Refused { .. })));
    if shows_what_fails && is_refused {
        return Err(Aspect::ClientCertificate);
    }
    let own = backend.shown().and_then(Result::ok);
    let own = own.and_then(|all| Certificate::read(all.first()?));
    if let Some(spoken) = backend.spoken() {
        step(judge::protocol(backend.wanted(), spoken))?;
    }
    step(judge::authorization(&version, own.as_ref()))?;
    step(judge::version(&said(version)))?;

    let (clock, lists, pql, metrics, nodes) = join5(
        clock(&alone),
        async { [alone(certnames()).await, alone(fact_names()).await].map(said) },
        async { said(alone(pql()).await) },
        async { said(alone(metrics()).await) },
        async { [alone(census_ask()).await, alone(census_of_active()).await].map(said) },
    )
    .await;
    findings.extend([
        judge::clock(clock),
        judge::collation(&lists),
        judge::pql(&pql),
        judge::metrics(&metrics),
        judge::nodes(&nodes),
    ]);
    Ok(())
}

#[derive(Deserialize)]
struct Time {
    server_time: String,
}

/// What the backend's clock showed, what this machine's did in the middle of the question, and half
/// the time that the question took.
async fn clock(
    alone: &impl AsyncFn(Ask) -> Result<Received, Failure>,
) -> Result<judge::Clocks, String> {
    let (asked, began) = (SystemTime::now(), Instant::now());
    let told = said(alone(Ask::own("/pdb/meta/v1/server-time", &[])).await);
    let half = began.elapsed() / 2;
    let told: Time = told.read()?;
    let theirs = told.server_time.parse();
    let ours = Timestamp::try_from(asked + half).map_err(|why| why.to_string())?;
    Ok(judge::Clocks {
        theirs: theirs.map_err(|_| "what it tells is no time".to_owned())?,
        ours,
        half: SignedDuration::try_from(half).map_err(|why| why.to_string())?,
    })
}

fn certnames() -> Ask {
    let query = r#"["extract",["certname"],["=","node_state","any"]]"#;
    let order_by = r#"[{"field":"certname"}]"#;
    let ask = Ask::own(
        "/pdb/query/v4/nodes",
        &[("query", query), ("order_by", order_by)],
    );
    ask.with_limit(Some(MOST_NAMES))
}

/// A backend orders these by name without being asked to.
fn fact_names() -> Ask {
    Ask::own("/pdb/query/v4/fact-names", &[]).with_limit(Some(MOST_NAMES))
}

fn pql() -> Ask {
    let query = r#"nodes[certname] { certname = "pdbmux" }"#;
    Ask::own("/pdb/query/v4", &[("query", query), ("ast_only", "true")])
}

fn metrics() -> Ask {
    let path = "/metrics/v2/read/puppetlabs.puppetdb.population:name=num-nodes";
    Ask::own(path, &[])
}

fn census_of_active() -> Ask {
    let query = r#"["extract",[["function","count"]]]"#;
    Ask::own("/pdb/query/v4/nodes", &[("query", query)])
}

fn said(answered: Result<Received, Failure>) -> Said {
    match answered {
        Ok(received) => Said::Answer {
            status: received.status,
            body: received.body,
        },
        Err(failure) => Said::Nothing(failure.to_string()),
    }
}

fn read_all(chain: &[impl AsRef<[u8]>]) -> Vec<Certificate> {
    let read = chain.iter().map(|der| Certificate::read(der.as_ref()));
    read.flatten().collect()
}
