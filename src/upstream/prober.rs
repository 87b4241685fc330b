//! Probing: each backend is asked for its state again and again, whatever requests do.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::StatusCode;
use http_body_util::{BodyExt, Limited};
use pdbmux_core::health::{Finding, Transition, judge};
use pdbmux_core::plan::{Ask, Sent};
use pdbmux_core::round::BackendId;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::client::Limits;
use super::{Failure, Upstream};
use crate::config::Config;

/// Longest body of a probe's answer that is read. PuppetDB sends some hundred bytes.
const MAX_BODY: usize = 1 << 20;

/// What came of a probe.
struct Probed {
    finding: Finding,
    /// The status, if an answer came.
    status: Option<u16>,
    /// Why it is unsuccessful, if it is.
    error: Option<String>,
}

impl Probed {
    fn of(answered: Result<(u16, Vec<u8>), Failure>) -> Self {
        let (status, finding) = match &answered {
            Ok((status, body)) => (Some(*status), judge(*status, body)),
            Err(_) => (None, Finding::Unanswered),
        };
        let error = match (&finding, answered) {
            (Finding::Unhealthy(trouble), _) => Some(trouble.to_string()),
            (Finding::Refused(status), _) => Some(Failure::Status(*status).to_string()),
            (Finding::Healthy | Finding::Unanswered, answered) => {
                answered.err().map(|failure| failure.to_string())
            }
        };
        Self {
            finding,
            status,
            error,
        }
    }
}

/// Begins to probe every backend, unless the configuration says not to (R188). Dropping the tasks
/// ends them.
pub fn start(upstream: &Arc<Upstream>, config: &Config) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    if !config.health_probe_enabled {
        return tasks;
    }
    for backend in upstream.backends() {
        let (upstream, backend) = (Arc::clone(upstream), backend.id);
        let path = config.health_probe_path.to_string();
        let (pause, wait) = (config.health_probe_interval, config.health_probe_timeout);
        tasks.spawn(async move {
            let ask = || async {
                let answered = timeout(wait, upstream.probe(backend, &path, wait)).await;
                answered.unwrap_or(Err(Failure::Timeout(wait)))
            };
            repeat(pause, ask, |probed| upstream.learn(backend, &path, &probed)).await;
        });
    }
    tasks
}

/// Probes at once and then at each `pause`, for ever. A probe that takes longer than that delays
/// the next one: a backend that is slow is not asked twice at a time.
async fn repeat<F>(pause: Duration, ask: impl Fn() -> F, learn: impl Fn(Probed))
where
    F: Future<Output = Result<(u16, Vec<u8>), Failure>>,
{
    let mut ticks = interval(pause);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        learn(Probed::of(ask().await));
    }
}

impl Upstream {
    /// The status and, under 200, the body of a backend's answer to a probe; within `wait` in all.
    async fn probe(
        &self,
        backend: BackendId,
        path: &str,
        wait: Duration,
    ) -> Result<(u16, Vec<u8>), Failure> {
        let sent = Sent {
            target: path.to_owned(),
            body: None,
        };
        let limits = Limits::since(Instant::now(), wait);
        let response = self.send(backend, sent, limits).await?;
        let status = response.status();
        if status != StatusCode::OK {
            return Ok((status.as_u16(), Vec::new()));
        }
        match Limited::new(response.into_body(), MAX_BODY).collect().await {
            Ok(body) => Ok((status.as_u16(), body.to_bytes().into())),
            Err(error) => match error.downcast() {
                Ok(failure) => Err(*failure),
                // Something longer is not PuppetDB's, so its status speaks alone (R159).
                Err(_) => Ok((status.as_u16(), Vec::new())),
            },
        }
    }

    /// Takes in what came of a probe and logs what changed by it, and nothing else (R185).
    fn learn(&self, backend: BackendId, path: &str, probed: &Probed) {
        let Probed {
            finding,
            status,
            error,
        } = probed;
        let now = SystemTime::now();
        let changes = self.monitor.observe(backend, finding, error.clone(), now);
        let backend = self.backend(backend).name.as_str();
        let why = error.as_deref();
        for change in changes {
            match change {
                Transition::Down => {
                    tracing::warn!(backend, path, status, why, "a backend is out of service");
                }
                Transition::Up => {
                    tracing::info!(backend, path, status, "a backend is in service again");
                }
                Transition::Unsupported { refused } => tracing::warn!(
                    backend,
                    path,
                    status = refused,
                    why,
                    "a backend's probe was never answered: it stays in service unverified; is \
                     health_probe_path right?"
                ),
                Transition::Answered => tracing::info!(
                    backend,
                    path,
                    status,
                    "a backend's probe is answered: from now on it decides about service"
                ),
                Transition::NowRefused(status) => tracing::error!(
                    backend,
                    path,
                    status,
                    "a backend refuses a probe that it used to answer: has its path moved, or who \
                     may ask it?"
                ),
            }
        }
    }

    /// Whether a backend answers a query right now, in service or not (R192); within `timeout` in
    /// all.
    pub async fn reach(&self, backend: BackendId) -> Result<(), Failure> {
        // A real query: one that never reaches the database would call a backend well that is not.
        let ask = Ask::own("/pdb/query/v4/nodes", &[("limit", "1")]);
        let wait = self.backend(backend).timeout;
        match timeout(wait, self.ask(backend, &ask)).await {
            Ok(Ok(received)) if received.status == 200 => Ok(()),
            Ok(Ok(received)) => Err(Failure::Status(received.status)),
            Ok(Err(failure)) => Err(failure),
            Err(_) => Err(Failure::Timeout(wait)),
        }
    }
}

#[cfg(test)]
mod tests;
