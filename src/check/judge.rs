//! What was seen of a backend, as findings. No I/O and no clock.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use pdbmux_core::merge::version;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::collation::{self, Collation};
use super::{Aspect, Finding, Measure, Outcome};
use crate::certificate::Certificate;
use crate::config::Protocol;
use crate::names::LookupError;
use crate::upstream::{Failure, Received, TlsError};

/// Days from which on a certificate should be replaced.
const FEW_DAYS: i64 = 30;

/// How far clocks may be apart: reports of one node that are told apart by their times come further
/// apart than this.
const NEAR: SignedDuration = SignedDuration::from_secs(5);

/// The oldest version that pdbmux is held against.
const OLDEST: (u32, u32) = (7, 12);

/// Where OpenVoxDB's numbers begin; those of PuppetDB's public releases end before.
const OPENVOX: (u32, u32) = (8, 9);

/// What a backend said to a question.
#[derive(Debug)]
pub(super) enum Said {
    /// An answer.
    Answer {
        /// Its status.
        status: u16,
        /// Its body.
        body: Bytes,
    },
    /// None, and why.
    Nothing(String),
}

impl Said {
    /// The body of a success; else a sentence.
    pub(super) fn success(&self) -> Result<&[u8], String> {
        match self {
            Self::Answer { status: 200, body } => Ok(body),
            Self::Answer { status, .. } => Err(Failure::Status(*status).to_string()),
            Self::Nothing(why) => Err(why.clone()),
        }
    }

    /// The body of a success, as it should be.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, String> {
        let unlike = |_| "its answer is not what a PuppetDB says".to_owned();
        serde_json::from_slice(self.success()?).map_err(unlike)
    }
}

/// Two clocks at the same time, give or take `half`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clocks {
    /// The backend's.
    pub(super) theirs: Timestamp,
    /// This machine's.
    pub(super) ours: Timestamp,
    /// Half of what the question took.
    pub(super) half: SignedDuration,
}

fn finding(aspect: Aspect, outcome: Outcome, text: impl Into<String>) -> Finding {
    Finding {
        aspect,
        outcome,
        text: text.into(),
        measure: None,
    }
}

impl Finding {
    fn with(self, measure: Measure) -> Self {
        Self {
            measure: Some(measure),
            ..self
        }
    }
}

/// What was not looked at.
pub(super) fn skipped(aspect: Aspect, why: &str) -> Finding {
    finding(aspect, Outcome::Skipped, why)
}

/// `Ok(None)` where the lookup took too long.
pub(super) fn name(found: Result<Option<Vec<IpAddr>>, LookupError>) -> Finding {
    match found {
        Ok(Some(addresses)) => {
            let addresses: Vec<_> = addresses.iter().map(ToString::to_string).collect();
            finding(Aspect::Name, Outcome::Ok, addresses.join(", "))
        }
        Ok(None) => finding(
            Aspect::Name,
            Outcome::Fail,
            "no DNS server told its address in time",
        ),
        Err(why) => finding(Aspect::Name, Outcome::Fail, why.to_string()),
    }
}

pub(super) fn connection(knocked: Result<(), Failure>, took: Duration) -> Finding {
    match knocked {
        Ok(()) => {
            let took = took.as_secs_f64() * 1_000.0;
            finding(Aspect::Connection, Outcome::Ok, format!("in {took:.1} ms"))
                .with(Measure::Milliseconds(took))
        }
        Err(why) => finding(Aspect::Connection, Outcome::Fail, why.to_string()),
    }
}

/// What it shows, and those of its `ca`.
pub(super) fn certificate(
    greeted: Result<Vec<Certificate>, Failure>,
    authorities: &[Certificate],
    now: Timestamp,
) -> Finding {
    let shown = match greeted {
        Ok(shown) => shown,
        Err(why) => return finding(Aspect::Certificate, Outcome::Fail, why.to_string()),
    };
    let Some((own, issuers)) = shown.split_first() else {
        let text = "what it shows cannot be read here, though it is trusted";
        return finding(Aspect::Certificate, Outcome::Warn, text);
    };
    let whole = lasting(Aspect::Certificate, own, now);
    // Puppet's own authority ends after some years, and all that it issued with it.
    let issuers = issuers.iter().chain(authorities);
    let first = issuers.min_by_key(|issuer| issuer.until);
    match first {
        Some(issuer) if issuer.until < own.until && issuer.days_left(now) < FEW_DAYS => {
            let issuer = lasting(Aspect::Certificate, issuer, now);
            let text = format!("{}; of those it leads to, {}", whole.text, issuer.text);
            Finding {
                outcome: Outcome::Warn.max(whole.outcome),
                text,
                measure: issuer.measure,
                ..whole
            }
        }
        _ => whole,
    }
}

/// The chain of the file that is shown, if one is.
pub(super) fn client_certificate(
    shown: Option<&Result<Vec<Certificate>, TlsError>>,
    now: Timestamp,
) -> Finding {
    let aspect = Aspect::ClientCertificate;
    match shown {
        None => skipped(aspect, "none is configured"),
        Some(Err(why)) => finding(aspect, Outcome::Fail, why.to_string()),
        Some(Ok(chain)) => match chain.first() {
            Some(own) => lasting(aspect, own, now),
            None => finding(aspect, Outcome::Fail, "the cert holds no X.509 certificate"),
        },
    }
}

fn lasting(aspect: Aspect, certificate: &Certificate, now: Timestamp) -> Finding {
    let (days, name, day) = (
        certificate.days_left(now),
        &certificate.name,
        certificate.day(),
    );
    let (outcome, text) = match days {
        ..0 => (Outcome::Fail, format!("{name} ended on {day}")),
        0..FEW_DAYS => (
            Outcome::Warn,
            format!("{name} ends in {days} days, on {day}"),
        ),
        FEW_DAYS.. => (Outcome::Ok, format!("{name} until {day}, {days} days left")),
    };
    finding(aspect, outcome, text).with(Measure::Days(days))
}

/// What was to be spoken, and what is.
pub(super) fn protocol(wanted: Protocol, spoken: Protocol) -> Finding {
    let text = match (wanted, spoken) {
        (Protocol::Http2, Protocol::Http1) => {
            format!("{spoken}, since it does not take the offered {wanted}")
        }
        _ => spoken.to_string(),
    };
    finding(Aspect::Protocol, Outcome::Ok, text)
}

/// What came of the first question; `own` is the certificate that it was shown.
pub(super) fn authorization(
    answered: &Result<Received, Failure>,
    own: Option<&Certificate>,
) -> Finding {
    let fails = |text| finding(Aspect::Authorization, Outcome::Fail, text);
    let status = match answered {
        Err(why) => return fails(why.to_string()),
        Ok(received) => received.status,
    };
    match (status, own) {
        (200, _) => finding(Aspect::Authorization, Outcome::Ok, "it answers"),
        (401, _) => fails(
            "it wants to know who asks: set user and password, or a token in headers".to_owned(),
        ),
        (403, Some(own)) => fails(format!(
            "it does not allow {}: add that name to the file that its certificate-allowlist names",
            own.name
        )),
        (403, None) => fails(
            "it allows nobody without a certificate that it knows: set cert and key".to_owned(),
        ),
        (404, _) => fails(
            "there is no PuppetDB at its url: is the port another, or the path before /pdb?"
                .to_owned(),
        ),
        (503, _) => {
            fails("it answers with status 503: it is starting, or in maintenance".to_owned())
        }
        (status, _) => fails(Failure::Status(status).to_string()),
    }
}

pub(super) fn version(said: &Said) -> Finding {
    #[derive(Deserialize)]
    struct Version {
        version: String,
    }
    let version = match said.read::<Version>() {
        Ok(told) => told.version,
        Err(why) => return finding(Aspect::Version, Outcome::Warn, why),
    };
    let numbers = version.parse::<version::Version>().ok();
    let numbers = numbers.and_then(|version| version.numbers());
    let (outcome, text) = match numbers {
        None => (
            Outcome::Warn,
            format!("{version:?} is no version that is known"),
        ),
        Some(numbers) if numbers < OLDEST => (
            Outcome::Warn,
            format!(
                "PuppetDB {version} is older than {}.{}, the oldest that pdbmux is tested with",
                OLDEST.0, OLDEST.1
            ),
        ),
        Some(numbers) if numbers < OPENVOX => (Outcome::Ok, format!("PuppetDB {version}")),
        Some(_) => (
            Outcome::Ok,
            format!("{version}, by its number an OpenVoxDB"),
        ),
    };
    finding(Aspect::Version, outcome, text).with(Measure::Version(version))
}

pub(super) fn clock(told: Result<Clocks, String>) -> Finding {
    let clocks = match told {
        Ok(clocks) => clocks,
        Err(why) => return finding(Aspect::Clock, Outcome::Warn, why),
    };
    let ahead = clocks.theirs.duration_since(clocks.ours);
    let seconds = ahead.as_secs_f64();
    let way = if ahead.is_negative() {
        "behind"
    } else {
        "ahead"
    };
    let off = format!("{:.1} s {way}", seconds.abs());
    // What the question took may be all in one way of it.
    let surely = ahead.abs().saturating_sub(clocks.half);
    let (outcome, text) = if surely > NEAR {
        let why = "a node's owner is told by times, so set one of the clocks right";
        (Outcome::Warn, format!("{off}: {why}"))
    } else {
        (Outcome::Ok, off)
    };
    finding(Aspect::Clock, outcome, text).with(Measure::Seconds(seconds))
}

/// Ordered certnames, and ordered names of facts.
pub(super) fn collation(lists: &[Said; 2]) -> Finding {
    let lists: Result<Vec<Vec<String>>, String> = (|| {
        #[derive(Deserialize)]
        struct Node {
            certname: String,
        }
        let [certnames, facts] = lists;
        let nodes: Vec<Node> = certnames.read()?;
        let certnames = nodes.into_iter().map(|node| node.certname).collect();
        Ok(vec![certnames, facts.read()?])
    })();
    let (outcome, text) = match lists.map(|lists| collation::shown_by(&lists)) {
        Err(why) => (
            Outcome::Fail,
            format!("its names could not be listed: {why}"),
        ),
        Ok(Collation::Bytes) => (Outcome::Ok, "by bytes, as pdbmux orders text".to_owned()),
        Ok(Collation::Unknown) => (
            Outcome::Ok,
            "unknown: it has no names that would tell".to_owned(),
        ),
        Ok(Collation::Other) => (
            Outcome::Warn,
            "its database does not order text by bytes: pages in the order of names cost more \
             (LC_COLLATE C would not)"
                .to_owned(),
        ),
    };
    finding(Aspect::Collation, outcome, text)
}

pub(super) fn pql(said: &Said) -> Finding {
    let (outcome, text) = match said.read::<Vec<serde_json::Value>>() {
        Ok(_) => (Outcome::Ok, "it translates PQL".to_owned()),
        Err(why) => (
            Outcome::Warn,
            format!("it does not translate PQL, which merge: exact needs of one backend: {why}"),
        ),
    };
    finding(Aspect::Pql, outcome, text)
}

/// An MBean that each PuppetDB has. Jolokia answers with 200 and its own status inside.
pub(super) fn metrics(said: &Said) -> Finding {
    #[derive(Deserialize)]
    struct Envelope {
        status: u16,
    }
    let (outcome, text) = match (said, said.read::<Envelope>()) {
        (_, Ok(Envelope { status: 200 })) => (Outcome::Ok, "it tells them".to_owned()),
        (
            Said::Answer {
                status: 401 | 403, ..
            },
            _,
        )
        | (_, Ok(Envelope { status: 403 })) => (
            Outcome::Warn,
            "it does not tell them: its auth.conf allows /metrics by https and a certificate alone"
                .to_owned(),
        ),
        (_, Ok(Envelope { status })) => (
            Outcome::Warn,
            format!("it does not tell them: Jolokia says {status}"),
        ),
        (_, Err(why)) => (Outcome::Warn, format!("it does not tell them: {why}")),
    };
    finding(Aspect::Metrics, outcome, text)
}

/// All nodes, and the active ones.
pub(super) fn nodes(counts: &[Said; 2]) -> Finding {
    #[derive(Deserialize)]
    struct Row {
        count: u64,
    }
    let count = |said: &Said| match said.read::<[Row; 1]>() {
        Ok([row]) => Ok(row.count),
        Err(why) => Err(why),
    };
    match (count(&counts[0]), count(&counts[1])) {
        (Ok(all), Ok(active)) => {
            let text = match all.saturating_sub(active) {
                0 => all.to_string(),
                inactive => format!("{all}, {inactive} of them inactive"),
            };
            finding(Aspect::Nodes, Outcome::Ok, text).with(Measure::Nodes(all))
        }
        (Err(why), _) | (_, Err(why)) => {
            let text = format!("they could not be counted: {why}");
            finding(Aspect::Nodes, Outcome::Fail, text)
        }
    }
}

#[cfg(test)]
mod tests;
