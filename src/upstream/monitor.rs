//! What the probes know of the backends, and whom requests ask therefore.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use pdbmux_core::health::{Finding, Health, State, Thresholds, Transition};
use pdbmux_core::round::BackendId;

use super::MemberId;
use crate::config::Config;

/// The health of all PuppetDBs.
#[derive(Debug)]
pub(super) struct Monitor(Mutex<Vec<Members>>);

/// Those that answer for one backend.
type Members = Vec<Record>;

#[derive(Debug, Clone)]
struct Record {
    /// `None` if nobody probes (R188).
    health: Option<Health>,
    last_probe: Option<SystemTime>,
    last_error: Option<String>,
}

/// What is known of one PuppetDB (R193, R194).
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
        let record = || Record {
            health: config.health_probe_enabled.then(|| Health::new(thresholds)),
            last_probe: None,
            last_error: None,
        };
        let groups = config.groups();
        let records = groups
            .iter()
            .map(|group| group.members.iter().map(|_| record()).collect());
        Self(Mutex::new(records.collect()))
    }

    /// Takes over what is known of `member`, which was `at` in `before`: whoever is down stays so.
    pub(super) fn take_over(&self, member: MemberId, before: &Self, at: MemberId) {
        let known = before.records()[at.backend.index()][at.index()].clone();
        let record = &mut self.records()[member.backend.index()][member.index()];
        if let (Some(new), Some(health)) = (&record.health, known.health) {
            *record = Record {
                health: Some(health.under(new.thresholds())),
                ..known
            };
        }
    }

    /// Takes in a probe that ended at `when`; returns what has changed by it.
    pub(super) fn observe(
        &self,
        member: MemberId,
        finding: &Finding,
        error: Option<String>,
        when: SystemTime,
    ) -> Vec<Transition> {
        let record = &mut self.records()[member.backend.index()][member.index()];
        record.last_probe = Some(when);
        record.last_error = error;
        let health = record.health.as_mut();
        health.map_or_else(Vec::new, |health| health.observe(finding))
    }

    pub(super) fn standing(&self, backend: BackendId) -> Standing {
        let records = self.records();
        let members = &records[backend.index()];
        let best = members.iter().min_by_key(|record| rank(record.state()));
        best.unwrap_or(&members[0]).standing()
    }

    pub(super) fn standing_of(&self, member: MemberId) -> Standing {
        self.records()[member.backend.index()][member.index()].standing()
    }

    /// Those of a backend's members that are in service, or all if none is.
    pub(super) fn usable(&self, members: impl Iterator<Item = MemberId> + Clone) -> Vec<MemberId> {
        let records = self.records();
        let in_service =
            |id: &MemberId| records[id.backend.index()][id.index()].state().in_service();
        let usable: Vec<_> = members.clone().filter(in_service).collect();
        if usable.is_empty() {
            members.collect()
        } else {
            usable
        }
    }

    pub(super) fn pool(&self) -> Pool {
        let records = self.records();
        let (asked, skipped): (Vec<_>, Vec<_>) = (0..)
            .map(BackendId)
            .zip(records.iter())
            .partition(|(_, members)| any_in_service(members));
        let ids = |some: Vec<(BackendId, &Members)>| some.into_iter().map(|(id, _)| id).collect();
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
        self.records().iter().any(any_in_service)
    }

    fn records(&self) -> MutexGuard<'_, Vec<Members>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn any_in_service(members: &Members) -> bool {
    members.iter().any(|record| record.state().in_service())
}

/// Which of two states says more for a PuppetDB.
fn rank(state: State) -> u8 {
    match state {
        State::Healthy => 0,
        State::Unmonitored => 1,
        State::Unprobed => 2,
        State::ProbeUnsupported => 3,
        State::Unhealthy => 4,
    }
}

impl Record {
    fn standing(&self) -> Standing {
        let health = self.health.as_ref();
        Standing {
            state: self.state(),
            consecutive_failures: health.map_or(0, Health::consecutive_failures),
            consecutive_successes: health.map_or(0, Health::consecutive_successes),
            last_probe: self.last_probe,
            last_error: self.last_error.clone(),
        }
    }

    fn state(&self) -> State {
        self.health
            .as_ref()
            .map_or(State::Unmonitored, Health::state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Access, BackendConfig};

    fn monitor(probed: bool) -> Monitor {
        of(
            probed,
            ["a", "b", "c"].map(|name| backend(name, None)).into(),
        )
    }

    fn of(health_probe_enabled: bool, backends: Vec<BackendConfig>) -> Monitor {
        Monitor::new(&Config {
            backends,
            health_probe_enabled,
            ..Config::default()
        })
    }

    fn backend(name: &str, group: Option<&str>) -> BackendConfig {
        BackendConfig {
            name: name.to_owned(),
            url: "http://puppetdb.example:8080".parse().unwrap(),
            access: Access {
                group: group.map(str::to_owned),
                ..Access::default()
            },
        }
    }

    fn member(backend: u16, at: u16) -> MemberId {
        let backend = BackendId(backend);
        MemberId { backend, at }
    }

    fn take_down(monitor: &Monitor, backend: u16) {
        take_down_member(monitor, member(backend, 0));
    }

    fn take_down_member(monitor: &Monitor, member: MemberId) {
        let sick = pdbmux_core::health::judge(503, b"");
        for _ in 0..3 {
            let error = Some("down".to_owned());
            monitor.observe(member, &sick, error, SystemTime::UNIX_EPOCH);
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
    fn a_group_is_in_service_while_one_of_it_is_and_shows_the_best_state() {
        let of_group = [("a", Some("eu")), ("b", None), ("c", Some("eu"))];
        let monitor = of(true, of_group.map(|(name, of)| backend(name, of)).into());
        let both = [member(0, 1), member(0, 0)];
        let usable = || monitor.usable(both.into_iter());
        assert_eq!(usable(), both);
        take_down_member(&monitor, member(0, 0));
        assert_eq!(pool(&monitor), (vec![0, 1], vec![]));
        assert_eq!(usable(), [member(0, 1)]);
        assert_eq!(monitor.standing(BackendId(0)).state, State::Unprobed);
        assert_eq!(monitor.standing_of(member(0, 0)).state, State::Unhealthy);
        take_down_member(&monitor, member(0, 1));
        assert_eq!(pool(&monitor), (vec![1], vec![0]));
        assert_eq!(usable(), both);
        assert_eq!(monitor.standing(BackendId(0)).state, State::Unhealthy);
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
        monitor.observe(member(0, 0), &Finding::Healthy, None, SystemTime::now());
        let good = monitor.standing(BackendId(0));
        assert_eq!((good.consecutive_successes, good.last_error), (1, None));
    }
}
