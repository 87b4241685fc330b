//! What the probes know of the backends, and whom requests ask therefore.

use std::num::NonZeroU32;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use pdbmux_core::health::ejection::{Change, Ejection, Outcome, Place, Terms};
use pdbmux_core::health::{Finding, Health, State, Thresholds, Transition};
use pdbmux_core::round::BackendId;
use tokio::time::Instant;

use super::{MemberId, Via};
use crate::config::{BackendConfig, Config};

/// The health of all PuppetDBs.
#[derive(Debug)]
pub(super) struct Monitor {
    records: Mutex<Vec<Members>>,
    /// When requests leave backends out, if they do.
    ejection: Option<Terms>,
}

/// Those that answer for one backend.
type Members = Vec<Record>;

#[derive(Debug, Clone)]
struct Record {
    /// `None` if requests leave nobody out.
    ejection: Option<Ejection>,
    /// How long a request may take to learn whether it is well again.
    patience: Duration,
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
    /// Until when requests leave it out, if they do.
    pub ejected_until: Option<SystemTime>,
}

/// Whether backends that were left out are asked to see if they are well again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trials {
    /// Where that is due, and nobody else does.
    Begin,
    /// Where that is due or done.
    Join,
}

/// How a backend stands, of whose members one is enough.
enum Service {
    /// It is asked.
    In,
    /// It is asked to see if it is well again.
    OnTrial,
    /// It is left out since requests failed with it.
    Ejected,
    /// Its probes say that it is down.
    Down,
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
        let ejection = NonZeroU32::new(config.eject_failures).map(|failures| Terms {
            failures,
            time: config.eject_time,
        });
        let now = Instant::now().into_std();
        let record = |member: &&BackendConfig| Record {
            ejection: ejection.map(|terms| Ejection::new(terms, now)),
            patience: member.access.timeout.unwrap_or(config.timeout),
            health: config.health_probe_enabled.then(|| Health::new(thresholds)),
            last_probe: None,
            last_error: None,
        };
        let groups = config.groups();
        let records = groups
            .iter()
            .map(|group| group.members.iter().map(record).collect());
        Self {
            records: Mutex::new(records.collect()),
            ejection,
        }
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
        let changes = health.map_or_else(Vec::new, |health| health.observe(finding));
        // Probes that are good all the time end no ejection: it may be queries that fail. But what was
        // down and comes back may have had one reason for both.
        if changes.contains(&Transition::Up)
            && let Some(ejection) = &mut record.ejection
        {
            ejection.hasten(Instant::now().into_std());
        }
        changes
    }

    /// Whether requests leave out backends that fail.
    pub(super) fn ejects(&self) -> bool {
        self.ejection.is_some()
    }

    /// Takes in how a request fared; returns what has changed by it.
    pub(super) fn fared(&self, via: Via, outcome: Outcome, jitter: u8) -> Option<Change> {
        let mut records = self.records();
        let record = &mut records[via.member.backend.index()][via.member.index()];
        let now = Instant::now().into_std();
        let ejection = record.ejection.as_mut()?;
        ejection.observe(outcome, via.asked.into_std(), now, jitter)
    }

    pub(super) fn standing(&self, backend: BackendId) -> Standing {
        let records = self.records();
        let members = &records[backend.index()];
        let now = Instant::now();
        let rank = |record: &&Record| (!record.is_usable(now), rank(record.state()));
        let best = members.iter().min_by_key(rank);
        best.unwrap_or(&members[0]).standing()
    }

    pub(super) fn standing_of(&self, member: MemberId) -> Standing {
        self.records()[member.backend.index()][member.index()].standing()
    }

    /// Those of a backend's members that are to be asked, in this order: what is left out as long as
    /// there are others is left out here too, and one whose time is over is tried before the others.
    pub(super) fn usable(&self, members: &[MemberId], now: Instant) -> Vec<MemberId> {
        let mut records = self.records();
        let mut try_out = |id: &&MemberId| records[id.backend.index()][id.index()].try_out(now);
        let trial = members.iter().find(|id| try_out(id)).copied();
        let those = |is_one: fn(&Record, Instant) -> bool| -> Vec<_> {
            let is_one = |id: &&MemberId| is_one(&records[id.backend.index()][id.index()], now);
            let others = members.iter().filter(|id| Some(**id) != trial);
            others.filter(is_one).copied().collect()
        };
        let mut usable = those(Record::is_usable);
        if usable.is_empty() {
            usable = those(Record::is_tried);
            usable.extend(those(|record, now| {
                record.state().in_service() && !record.is_tried(now)
            }));
        }
        if usable.is_empty() && trial.is_none() {
            usable = those(|_, _| true);
        }
        trial.into_iter().chain(usable).collect()
    }

    /// Whom a request asks.
    pub(super) fn pool(&self, now: Instant, trials: Trials) -> Pool {
        let mut records = self.records();
        let mut pool = Pool {
            asked: Vec::with_capacity(records.len()),
            skipped: Vec::new(),
        };
        let (mut is_any_in, mut ejected) = (false, Vec::new());
        for (members, id) in records.iter_mut().zip((0..).map(BackendId)) {
            match service(members, now, trials) {
                Service::In => {
                    is_any_in = true;
                    pool.asked.push(id);
                }
                Service::OnTrial => pool.asked.push(id),
                Service::Ejected => ejected.push(id),
                Service::Down => pool.skipped.push(id),
            }
        }
        // Requests that fail with everybody must not keep anybody from an answer, nor may a prober that
        // is wrong about everybody.
        if is_any_in {
            pool.skipped.append(&mut ejected);
        } else {
            pool.asked.append(&mut ejected);
        }
        if pool.asked.is_empty() {
            std::mem::swap(&mut pool.asked, &mut pool.skipped);
        }
        pool.asked.sort_unstable();
        pool.skipped.sort_unstable();
        pool
    }

    /// Whether there is a backend that is not down.
    pub(super) fn any_in_service(&self) -> bool {
        self.records().iter().any(any_in_service)
    }

    fn records(&self) -> MutexGuard<'_, Vec<Members>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn service(members: &mut Members, now: Instant, trials: Trials) -> Service {
    if members.iter().any(|member| member.is_usable(now)) {
        return Service::In;
    }
    let is_tried = members.iter_mut().any(|member| match trials {
        Trials::Begin => member.try_out(now),
        Trials::Join => member.is_tried(now),
    });
    if is_tried {
        Service::OnTrial
    } else if any_in_service(members) {
        Service::Ejected
    } else {
        Service::Down
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
    /// Whether requests ask it.
    fn is_usable(&self, now: Instant) -> bool {
        self.state().in_service() && self.place(now) == Place::In
    }

    /// Whether it may be tried or is.
    fn is_tried(&self, now: Instant) -> bool {
        self.state().in_service() && matches!(self.place(now), Place::Due | Place::OnTrial)
    }

    /// Begins to try it, if that is due.
    fn try_out(&mut self, now: Instant) -> bool {
        let (in_service, patience) = (self.state().in_service(), self.patience);
        let ejection = self.ejection.as_mut().filter(|_| in_service);
        ejection.is_some_and(|it| it.try_out(now.into_std(), patience))
    }

    fn place(&self, now: Instant) -> Place {
        let ejection = self.ejection.as_ref();
        ejection.map_or(Place::In, |it| it.place(now.into_std()))
    }

    /// The moment by the time of day.
    fn ejected_until(&self) -> Option<SystemTime> {
        let until = self.ejection.as_ref()?.until()?;
        let now = Instant::now().into_std();
        SystemTime::now().checked_add(until.saturating_duration_since(now))
    }

    fn standing(&self) -> Standing {
        let health = self.health.as_ref();
        Standing {
            state: self.state(),
            consecutive_failures: health.map_or(0, Health::consecutive_failures),
            consecutive_successes: health.map_or(0, Health::consecutive_successes),
            last_probe: self.last_probe,
            last_error: self.last_error.clone(),
            ejected_until: self.ejected_until(),
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
    use crate::config::Access;
    use crate::upstream::eject::Role;

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
        let Pool { asked, skipped } = monitor.pool(Instant::now(), Trials::Begin);
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
        let usable = || monitor.usable(&both, Instant::now());
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

    fn ejecting(health_probe_enabled: bool) -> Monitor {
        Monitor::new(&Config {
            backends: ["a", "b", "c"].map(|name| backend(name, None)).into(),
            health_probe_enabled,
            eject_failures: 1,
            ..Config::default()
        })
    }

    fn fails(monitor: &Monitor, backend: u16) {
        let (member, asked) = (member(backend, 0), Instant::now());
        let via = Via {
            member,
            asked,
            role: Role::Speaker,
        };
        monitor.fared(via, Outcome::Failure, 0);
    }

    #[test]
    fn those_left_out_are_asked_before_those_that_are_down_if_nobody_else_is_there() {
        let monitor = ejecting(true);
        fails(&monitor, 2);
        assert_eq!(pool(&monitor), (vec![0, 1], vec![2]));
        take_down(&monitor, 0);
        assert_eq!(pool(&monitor), (vec![1], vec![0, 2]));
        fails(&monitor, 1);
        assert_eq!(pool(&monitor), (vec![1, 2], vec![0]));
        take_down(&monitor, 1);
        take_down(&monitor, 2);
        assert_eq!(pool(&monitor), (vec![0, 1, 2], vec![]));
    }

    #[test]
    fn a_trial_is_begun_by_one_and_shared_by_those_who_begin_none() {
        let monitor = ejecting(false);
        fails(&monitor, 1);
        let now = Instant::now() + Duration::from_mins(5);
        let asked = |trials| monitor.pool(now, trials).asked.len();
        assert_eq!(asked(Trials::Join), 3);
        assert_eq!(asked(Trials::Begin), 3);
        assert_eq!(asked(Trials::Begin), 2);
        assert_eq!(asked(Trials::Join), 3);
        let early = monitor.pool(Instant::now(), Trials::Join);
        assert_eq!(early.asked.len(), 3, "a trial has begun");
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
