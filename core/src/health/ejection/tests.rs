use proptest::prelude::*;

use super::Outcome::{Failure, Success};
use super::*;

const SECOND: Duration = Duration::from_secs(1);
const TIME: Duration = Duration::from_secs(30);
const PATIENCE: Duration = Duration::from_secs(10);

/// An ejection after so many failures, and the seconds of its clock.
struct Clock {
    ejection: Ejection,
    zero: Instant,
}

impl Clock {
    fn new(failures: u32) -> Self {
        let zero = Instant::now();
        let failures = NonZeroU32::new(failures).unwrap();
        let terms = Terms {
            failures,
            time: TIME,
        };
        let ejection = Ejection::new(terms, zero);
        Self { ejection, zero }
    }

    fn at(&self, second: u32) -> Instant {
        self.zero + second * SECOND
    }

    /// Asked and answered in this second.
    fn fares(&mut self, outcome: Outcome, second: u32) -> Option<Change> {
        let now = self.at(second);
        self.ejection.observe(outcome, now, now, 0)
    }

    fn place(&self, second: u32) -> Place {
        self.ejection.place(self.at(second))
    }

    fn try_out(&mut self, second: u32) -> bool {
        let now = self.at(second);
        self.ejection.try_out(now, PATIENCE)
    }
}

#[test]
fn only_failures_in_a_row_eject() {
    let mut clock = Clock::new(3);
    for outcome in [Failure, Failure, Success, Failure, Failure] {
        assert_eq!(clock.fares(outcome, 1), None);
    }
    assert_eq!(clock.place(1), Place::In);
    assert_eq!(clock.fares(Failure, 2), Some(Change::Ejected(TIME)));
    assert_eq!(clock.ejection.until(), Some(clock.at(32)));
    assert_eq!(
        [31, 32].map(|second| clock.place(second)),
        [Place::Out, Place::Due]
    );
}

#[test]
fn one_request_tries_it_and_decides() {
    let mut clock = Clock::new(1);
    clock.fares(Failure, 0);
    assert!(!clock.try_out(29));
    assert!(clock.try_out(30));
    assert!(!clock.try_out(30), "another asks at the same time");
    assert_eq!(clock.place(31), Place::OnTrial);
    assert_eq!(clock.fares(Success, 31), Some(Change::Readmitted));
    assert_eq!((clock.place(31), clock.ejection.until()), (Place::In, None));
    assert_eq!(
        clock.fares(Failure, 32),
        Some(Change::Ejected(TIME)),
        "it begins anew"
    );
}

#[test]
fn each_trial_that_fails_doubles_the_time_up_to_a_bound() {
    let mut clock = Clock::new(1);
    clock.fares(Failure, 0);
    let mut now = 0;
    for growth in [1, 2, 4, 8, 8] {
        now += 30 * growth;
        assert_eq!(clock.place(now - 1), Place::Out);
        assert!(clock.try_out(now));
        let stays = Change::StaysOut(TIME * (growth * 2).min(8));
        assert_eq!(clock.fares(Failure, now), Some(stays));
    }
}

#[test]
fn a_trial_of_which_nothing_is_heard_gives_way_to_another() {
    let mut clock = Clock::new(1);
    clock.fares(Failure, 0);
    assert!(clock.try_out(40));
    assert!(!clock.try_out(49));
    assert!(clock.try_out(50));
    // What the first one learns at last was asked too long ago.
    let (asked, now) = (clock.at(40), clock.at(51));
    assert_eq!(clock.ejection.observe(Success, asked, now, 0), None);
    assert_eq!(clock.place(51), Place::OnTrial);
}

#[test]
fn what_was_asked_before_the_ejection_decides_nothing_after_it() {
    let mut clock = Clock::new(1);
    clock.fares(Failure, 5);
    let (asked, now) = (clock.at(4), clock.at(6));
    assert_eq!(clock.ejection.observe(Success, asked, now, 0), None);
    assert!(clock.try_out(35));
    assert_eq!(
        clock.ejection.observe(Failure, asked, clock.at(36), 0),
        None
    );
    assert_eq!(clock.place(36), Place::OnTrial);
}

#[test]
fn one_that_is_asked_for_want_of_others_comes_back_by_an_answer_and_loses_nothing_without() {
    let mut clock = Clock::new(1);
    clock.fares(Failure, 0);
    assert_eq!(clock.fares(Failure, 10), None);
    assert_eq!(clock.ejection.until(), Some(clock.at(30)));
    assert_eq!(clock.fares(Success, 11), Some(Change::Readmitted));
}

#[test]
fn a_trial_can_be_hastened_and_nothing_else() {
    let mut clock = Clock::new(1);
    clock.ejection.hasten(clock.at(1));
    assert_eq!(clock.place(1), Place::In);
    clock.fares(Failure, 2);
    clock.ejection.hasten(clock.at(3));
    assert_eq!(clock.place(3), Place::Due);
    clock.ejection.hasten(clock.at(9));
    assert_eq!(
        clock.ejection.until(),
        Some(clock.at(3)),
        "it is not put off"
    );
}

#[test]
fn jitter_makes_an_ejection_up_to_a_quarter_longer_and_nothing_makes_it_longer_than_a_day() {
    let now = Instant::now();
    let out = |time, jitter| {
        let failures = NonZeroU32::MIN;
        let mut ejection = Ejection::new(Terms { failures, time }, now);
        ejection.observe(Failure, now, now, jitter)
    };
    let most = Change::Ejected(Duration::from_secs(40) * 1279 / 1024);
    assert_eq!(out(Duration::from_secs(40), 255), Some(most));
    assert_eq!(out(Duration::MAX, 255), Some(Change::Ejected(LONGEST)));
}

proptest! {
    #[test]
    fn whatever_happens_it_is_in_after_a_success_and_out_only_by_enough_failures(
        steps in proptest::collection::vec((0u32..20, 0u8..4), 0..200),
        failures in 1u32..4,
    ) {
        let mut clock = Clock::new(failures);
        let (mut now, mut run) = (0, 0);
        for (pause, step) in steps {
            now += pause;
            let before = clock.place(now);
            match step {
                0 => {
                    clock.fares(Success, now);
                    run = 0;
                    prop_assert_eq!(clock.place(now), Place::In);
                }
                1 | 2 => {
                    let change = clock.fares(Failure, now);
                    run += 1;
                    if before == Place::In {
                        let is_out = run >= failures;
                        prop_assert_eq!(clock.place(now) == Place::Out, is_out);
                        prop_assert_eq!(change.is_some(), is_out);
                    }
                    prop_assert!(clock.place(now) != Place::In || run < failures);
                }
                _ => prop_assert_eq!(clock.try_out(now), before == Place::Due),
            }
            if let Some(until) = clock.ejection.until() {
                prop_assert!(until <= clock.at(now) + TIME * GROWTH);
            }
        }
    }
}
