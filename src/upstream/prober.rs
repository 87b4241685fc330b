//! Probing: each backend is asked for its state again and again, whatever requests do.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::StatusCode;
use http_body_util::{BodyExt, Limited};
use pdbmux_core::health::{Finding, Transition, judge};
use pdbmux_core::plan::{Ask, Sent};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use super::client::Limits;
use super::places::Stay;
use super::{Failure, Member, MemberId, Received, Upstream, release, shared};
use crate::config::{Config, Detection};

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

/// Begins to probe every PuppetDB, unless the configuration says not to (R188), to look for
/// backends that are on one database, and to ask for the versions that matter. A PuppetDB that was probed before is probed when that is due,
/// others at once. Dropping the tasks ends them.
pub fn start(upstream: &Arc<Upstream>, config: &Config) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    if config.detect_shared_database == Detection::On && upstream.backends().len() > 1 {
        tasks.spawn(shared::watch(Arc::clone(upstream)));
    }
    let (pause, wait) = (config.health_probe_interval, config.health_probe_timeout);
    for member in upstream.members().filter(|it| it.release.is_some()) {
        tasks.spawn(release::watch(Arc::clone(upstream), member.id, pause, wait));
    }
    if !config.health_probe_enabled {
        return tasks;
    }
    for member in upstream.members() {
        let (upstream, member) = (Arc::clone(upstream), member.id);
        let path = config.health_probe_path.to_string();
        let since = upstream
            .standing_of(member)
            .last_probe
            .map(|at| at.elapsed());
        let due = since.map_or(Duration::ZERO, |since| {
            pause.saturating_sub(since.unwrap_or_default())
        });
        tasks.spawn(async move {
            sleep(due).await;
            let ask = || upstream.probe(member, &path, wait);
            repeat(pause, ask, |probed| upstream.learn(member, &path, &probed)).await;
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
        let answered = ask().await;
        // What there is too little of here tells nothing of the backend.
        if answered.as_ref().err().and_then(Failure::lack).is_none() {
            learn(Probed::of(answered));
        }
    }
}

impl Upstream {
    /// The status and, under 200, the body of a backend's answer to a probe; within `wait` in all.
    pub(super) async fn probe(
        &self,
        member: MemberId,
        path: &str,
        wait: Duration,
    ) -> Result<(u16, Vec<u8>), Failure> {
        let answered = timeout(wait, self.probe_without_end(member, path, wait)).await;
        answered.unwrap_or(Err(Failure::Timeout(wait)))
    }

    async fn probe_without_end(
        &self,
        member: MemberId,
        path: &str,
        wait: Duration,
    ) -> Result<(u16, Vec<u8>), Failure> {
        let sent = Sent {
            target: path.to_owned(),
            body: None,
        };
        let limits = Limits::of_probe(wait);
        let response = self.send(self.member(member), &sent, limits, None).await?;
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
    fn learn(&self, member: MemberId, path: &str, probed: &Probed) {
        let Probed {
            finding,
            status,
            error,
        } = probed;
        let now = SystemTime::now();
        let changes = self.monitor.observe(member, finding, error.clone(), now);
        let group = self.backend(member.backend).group();
        let probed = self.member(member);
        let backend = probed.name.as_str();
        match finding {
            Finding::Healthy | Finding::Refused(_) => {}
            // It may come back as another.
            Finding::Unhealthy(_) | Finding::Unanswered => probed.forget_version(),
        }
        let why = error.as_deref();
        for change in changes {
            match change {
                Transition::Down => {
                    tracing::warn!(
                        backend,
                        group,
                        path,
                        status,
                        why,
                        "a backend is out of service"
                    );
                }
                Transition::Up => {
                    tracing::info!(
                        backend,
                        group,
                        path,
                        status,
                        "a backend is in service again"
                    );
                }
                Transition::Unsupported { refused } => tracing::warn!(
                    backend,
                    group,
                    path,
                    status = refused,
                    why,
                    "a backend's probe was never answered: it stays in service unverified; is \
                     health_probe_path right?"
                ),
                Transition::Answered => tracing::info!(
                    backend,
                    group,
                    path,
                    status,
                    "a backend's probe is answered: from now on it decides about service"
                ),
                Transition::NowRefused(status) => tracing::error!(
                    backend,
                    group,
                    path,
                    status,
                    "a backend refuses a probe that it used to answer: has its path moved, or who \
                     may ask it?"
                ),
            }
        }
    }

    /// Whether a PuppetDB answers a query right now, in service or not (R192); within `timeout` in
    /// all.
    pub async fn reach(&self, member: &Member) -> Result<(), Failure> {
        // A real query: one that never reaches the database would call a backend well that is not.
        let ask = Ask::own("/pdb/query/v4/nodes", &[("limit", "1")]);
        match self.ask_alone(member, &ask).await?.status {
            200 => Ok(()),
            status => Err(Failure::Status(status)),
        }
    }

    /// Asks one PuppetDB, in service or not, and waits for its whole answer within its `timeout` in
    /// all.
    pub async fn ask_alone(&self, member: &Member, ask: &Ask) -> Result<Received, Failure> {
        let answered = async {
            let since = Instant::now();
            let place = member.place(Stay::Short, since).await?;
            let sent = member.sent(ask);
            let response = self.begin(member, &sent, place, since).await?;
            self.receive(response).await
        };
        let answered = timeout(member.timeout, answered).await;
        answered.unwrap_or(Err(Failure::Timeout(member.timeout)))
    }
}

#[cfg(test)]
mod tests;
