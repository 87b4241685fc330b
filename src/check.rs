//! `pdbmux check`: whether each configured backend can be used, and what stands in the way.
//!
//! `ask` looks at the backends, `judge` makes findings of what was seen, `show` prints them.

mod ask;
mod collation;
mod judge;
mod show;

use std::fmt;

use futures_util::future::join_all;
use serde::Serialize;

use crate::config::Config;
use crate::names::Names;
use crate::upstream::Upstream;

pub use show::Paint;

/// What is looked at, in the order in which one depends on the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Aspect {
    /// The host of its URL has an address.
    Name,
    /// Its port takes connections.
    Connection,
    /// Its own certificate, and whom that leads to.
    Certificate,
    /// The certificate that it is shown.
    ClientCertificate,
    /// What is spoken with it.
    Protocol,
    /// Whether it answers who asks.
    Authorization,
    /// Which PuppetDB it is.
    Version,
    /// How far its clock is from this machine's.
    Clock,
    /// Whether it orders text by bytes.
    Collation,
    /// Whether it translates PQL.
    Pql,
    /// Whether it tells its metrics.
    Metrics,
    /// How many nodes it has.
    Nodes,
}

impl Aspect {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Name,
        Self::Connection,
        Self::Certificate,
        Self::ClientCertificate,
        Self::Protocol,
        Self::Authorization,
        Self::Version,
        Self::Clock,
        Self::Collation,
        Self::Pql,
        Self::Metrics,
        Self::Nodes,
    ];
}

impl fmt::Display for Aspect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Name => "name",
            Self::Connection => "connection",
            Self::Certificate => "certificate",
            Self::ClientCertificate => "client certificate",
            Self::Protocol => "protocol",
            Self::Authorization => "authorization",
            Self::Version => "version",
            Self::Clock => "clock",
            Self::Collation => "collation",
            Self::Pql => "PQL",
            Self::Metrics => "metrics",
            Self::Nodes => "nodes",
        })
    }
}

/// How a thing is found. The later, the worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It does not matter, or could not be looked at for something else that is told.
    Skipped,
    /// As it should be.
    Ok,
    /// Works, and somebody should know.
    Warn,
    /// Requests to this backend fail, or some of them do.
    Fail,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Skipped => "skipped",
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        })
    }
}

/// What a finding is about, as a number or a word.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "unit", content = "value", rename_all = "snake_case")]
pub enum Measure {
    /// A time that something took.
    Milliseconds(f64),
    /// Whole days that are left; below 0 if they are over.
    Days(i64),
    /// How far a clock is ahead; below 0 if it is behind.
    Seconds(f64),
    /// A version as it was told.
    Version(String),
    /// Certnames.
    Nodes(u64),
}

/// One thing about one backend.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// What was looked at.
    #[serde(rename = "check")]
    pub aspect: Aspect,
    /// How it is.
    pub outcome: Outcome,
    /// One sentence.
    pub text: String,
    /// What was measured, if something was.
    #[serde(flatten)]
    pub measure: Option<Measure>,
}

/// What was found of one backend.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// Its name.
    pub name: String,
    /// Its base URL.
    pub url: String,
    /// One of each [`Aspect`], in their order.
    pub findings: Vec<Finding>,
}

impl Checked {
    /// The worst that was found.
    pub fn outcome(&self) -> Outcome {
        let outcomes = self.findings.iter().map(|finding| finding.outcome);
        outcomes.max().unwrap_or(Outcome::Ok)
    }
}

/// What was found of all backends that were looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// In configured order.
    pub backends: Vec<Checked>,
}

/// What counts as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// Whatever works.
    Lenient,
    /// Whatever gives nobody a reason to look.
    Strict,
}

/// Why a check does not end well.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// There is no such backend.
    #[error("no backend is named {name:?}: there are {known}")]
    Unknown {
        /// The name given.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// Something is wrong with a backend.
    #[error("{0} cannot be used as configured")]
    Failed(String),
    /// Something is to be looked at.
    #[error("{0} has warnings, which --strict does not take")]
    Warned(String),
}

impl Report {
    /// Whether all is well; names the backends that are not.
    pub fn verdict(&self, strictness: Strictness) -> Result<(), CheckError> {
        let named = |outcome: Outcome| {
            let such = self.backends.iter().filter(|it| it.outcome() == outcome);
            let names: Vec<_> = such.map(|it| it.name.as_str()).collect();
            (!names.is_empty()).then(|| names.join(", "))
        };
        if let Some(failed) = named(Outcome::Fail) {
            return Err(CheckError::Failed(failed));
        }
        match (strictness, named(Outcome::Warn)) {
            (Strictness::Strict, Some(warned)) => Err(CheckError::Warned(warned)),
            (Strictness::Strict | Strictness::Lenient, _) => Ok(()),
        }
    }
}

/// Looks at the configured backends at the same time, or at the one of this name alone. Each step is
/// bounded by the backend's `timeout`.
///
/// # Errors
///
/// There is no backend of that name.
pub async fn run(config: &Config, only: Option<&str>) -> Result<Report, CheckError> {
    let mut config = config.clone();
    if let Some(name) = only {
        let known: Vec<_> = config.backends.iter().map(|it| it.name.clone()).collect();
        config.backends.retain(|backend| backend.name == name);
        if config.backends.is_empty() {
            return Err(CheckError::Unknown {
                name: name.to_owned(),
                known: known.join(", "),
            });
        }
    }
    let (upstream, names) = (Upstream::new(&config), Names::of_system());
    let checked = upstream.members().map(async |backend| Checked {
        name: backend.name.clone(),
        url: backend.url().to_string(),
        findings: ask::look(&upstream, backend, &names).await,
    });
    Ok(Report {
        backends: join_all(checked).await,
    })
}
