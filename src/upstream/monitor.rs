//! What the probes know of the backends, and whom requests ask therefore.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use pdbmux_core::health::{Finding, Health, State, Thresholds, Transition};
use pdbmux_core::round::BackendId;

use crate::config::Config;

/// The health of all backends.
#[derive(Debug)]
pub(super) struct Monitor(Mutex<Vec<Record>>);

#[derive(Debug)]
struct Record {
    /// `None` if nobody probes (R188).
    health: Option<Health>,
    last_probe: Option<SystemTime>,
    last_error: Option<String>,
}

/// What is known of one backend (R193, R194).
#[derive(Debug, Clone)]
pub struct Standing {
    /// The probes' verdict.
    pub state: State,
    /// Unsuccessful probes since the last good one.
    pub consecutive_failures: u32,
    /// Good probes since the last unsuccessful one.
    pub consecutive_successes: u32,
    /// When a probe last ended.
    pub last_probe: Option<SystemTime>,
    /// Why it was unsuccessful, if it was. For the log: it may name addresses.
    pub last_error: Option<String>,
}

/// Whom a request asks (R007).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// Those in service, or all if none is (R181); in configured order.
    pub asked: Vec<BackendId>,
    /// The others.
    pub skipped: Vec<BackendId>,
}

impl Monitor {
    pub(super) fn new(config: &Config) -> Self {
        let thresholds = Thresholds {
            failures: config.health_probe_failures,
            successes: config.health_probe_successes,
        };
        let records = config.backends.iter().map(|_| Record {
            health: config.health_probe_enabled.then(|| Health::new(thresholds)),
            last_probe: None,
            last_error: None,
        });
        Self(Mutex::new(records.collect()))
    }

    /// Takes in a probe that ended at `when`; returns what has changed by it.
    pub(super) fn observe(
        &self,
        backend: BackendId,
        finding: &Finding,
        error: Option<String>,
        when: SystemTime,
    ) -> Vec<Transition> {
        let record = &mut self.records()[backend.index()];
        record.last_probe = Some(when);
        record.last_error = error;
        let health = record.health.as_mut();
        health.map_or_else(Vec::new, |health| health.observe(finding))
    }

    pub(super) fn standing(&self, backend: BackendId) -> Standing {
        let record = &self.records()[backend.index()];
        let health = record.health.as_ref();
        Standing {
            state: record.state(),
            consecutive_failures: health.map_or(0, Health::consecutive_failures),
            consecutive_successes: health.map_or(0, Health::consecutive_successes),
            last_probe: record.last_probe,
            last_error: record.last_error.clone(),
        }
    }

    pub(super) fn pool(&self) -> Pool {
        let records = self.records();
        let (asked, skipped): (Vec<_>, Vec<_>) = (0..)
            .map(BackendId)
            .zip(records.iter())
            .partition(|(_, record)| record.state().in_service());
        let ids = |some: Vec<(BackendId, &Record)>| some.into_iter().map(|(id, _)| id).collect();
        // A prober that is wrong about everybody must not keep anybody from an answer.
        let (asked, skipped) = if asked.is_empty() {
            (skipped, asked)
        } else {
            (asked, skipped)
        };
        Pool {
            asked: ids(asked),
            skipped: ids(skipped),
        }
    }

    /// Whether there is a backend that is not down.
    pub(super) fn any_in_service(&self) -> bool {
        self.records().iter().any(|r| r.state().in_service())
    }

    fn records(&self) -> MutexGuard<'_, Vec<Record>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Record {
    fn state(&self) -> State {
        self.health
            .as_ref()
            .map_or(State::Unmonitored, Health::state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::BackendConfig;

    fn monitor(probed: bool) -> Monitor {
        let backend = |name: &str| BackendConfig {
            name: name.to_owned(),
            url: "http://puppetdb.example:8080".parse().unwrap(),
            access: crate::config::Access::default(),
        };
        Monitor::new(&Config {
            backends: ["a", "b", "c"].map(backend).into(),
            health_probe_enabled: probed,
            ..Config::default()
        })
    }

    fn take_down(monitor: &Monitor, backend: u16) {
        let sick = pdbmux_core::health::judge(503, b"");
        for _ in 0..3 {
            let error = Some("down".to_owned());
            monitor.observe(BackendId(backend), &sick, error, SystemTime::UNIX_EPOCH);
        }
    }

    fn pool(monitor: &Monitor) -> (Vec<u16>, Vec<u16>) {
        let Pool { asked, skipped } = monitor.pool();
        let plain = |ids: Vec<BackendId>| ids.into_iter().map(|id| id.0).collect();
        (plain(asked), plain(skipped))
    }

    #[test]
    fn r007_r181_r183_those_out_of_service_are_skipped_unless_all_are() {
        let monitor = monitor(true);
        assert_eq!(pool(&monitor), (vec![0, 1, 2], vec![]));
        take_down(&monitor, 1);
        assert_eq!(pool(&monitor), (vec![0, 2], vec![1]));
        take_down(&monitor, 0);
        assert_eq!(pool(&monitor), (vec![2], vec![0, 1]));
        assert!(monitor.any_in_service());
        take_down(&monitor, 2);
        assert_eq!(pool(&monitor), (vec![0, 1, 2], vec![]));
        assert!(!monitor.any_in_service());
    }

    #[test]
    fn r188_nobody_is_skipped_where_nobody_probes() {
        let monitor = monitor(false);
        take_down(&monitor, 1);
        assert_eq!(pool(&monitor), (vec![0, 1, 2], vec![]));
        let standing = monitor.standing(BackendId(1));
        assert_eq!(standing.state, State::Unmonitored);
        assert_eq!(standing.consecutive_failures, 0);
    }

    #[test]
    fn r194_a_standing_tells_of_the_last_probe() {
        let monitor = monitor(true);
        let before = monitor.standing(BackendId(0));
        assert_eq!((before.last_probe, before.last_error), (None, None));
        take_down(&monitor, 0);
        let down = monitor.standing(BackendId(0));
        assert_eq!(down.state, State::Unhealthy);
        assert_eq!(down.consecutive_failures, 3);
        assert_eq!(down.last_probe, Some(SystemTime::UNIX_EPOCH));
        assert_eq!(down.last_error.as_deref(), Some("down"));
        monitor.observe(BackendId(0), &Finding::Healthy, None, SystemTime::now());
        let good = monitor.standing(BackendId(0));
        assert_eq!((good.consecutive_successes, good.last_error), (1, None));
    }
}
