use proptest::prelude::*;

use super::State::{Healthy, ProbeUnsupported, Unhealthy, Unprobed};
use super::Transition::{Answered, Down, Up};
use super::*;

/// Probes as letters: `.` good, `s` unhealthy, `r` refused, `x` unanswered.
fn finding(letter: char) -> Finding {
    match letter {
        '.' => Finding::Healthy,
        's' => Finding::Unhealthy(Trouble::Status(503)),
        'r' => Finding::Refused(404),
        _ => Finding::Unanswered,
    }
}

fn health(failures: u32, successes: u32) -> Health {
    let number = |n| NonZeroU32::new(n).unwrap();
    Health::new(Thresholds {
        failures: number(failures),
        successes: number(successes),
    })
}

/// What is logged at each probe that changes anything, by the probe's number from 1.
fn changes(health: &mut Health, probes: &str) -> Vec<(usize, Transition)> {
    let seen = probes.chars().zip(1..);
    seen.flat_map(|(letter, at)| {
        let changes = health.observe(&finding(letter));
        changes.into_iter().map(move |change| (at, change))
    })
    .collect()
}

const REFUSED: Transition = Transition::Unsupported { refused: Some(404) };
const SILENT: Transition = Transition::Unsupported { refused: None };
const NOW_REFUSED: Transition = Transition::NowRefused(404);

/// A name, probes, the state after them and what was logged.
type Case = (
    &'static str,
    &'static str,
    State,
    &'static [(usize, Transition)],
);

const CASES: &[Case] = &[
    ("R183: never probed", "", Unprobed, &[]),
    ("R157: the first good probe", ".", Healthy, &[]),
    ("R174: one failure", ".s", Healthy, &[]),
    ("R172: two are too few", ".ss", Healthy, &[]),
    ("R172: three", ".sss", Unhealthy, &[(4, Down)]),
    ("R172: in a row", ".ss.ss", Healthy, &[]),
    ("R172: unreachable", ".xxx", Unhealthy, &[(4, Down)]),
    ("R174: one success", ".sss.", Unhealthy, &[(4, Down)]),
    (
        "R173: two successes",
        ".sss..",
        Healthy,
        &[(4, Down), (6, Up)],
    ),
    ("R173: in a row", ".sss.s.s.", Unhealthy, &[(4, Down)]),
    (
        "R179: late",
        ".ssssxxxss..",
        Healthy,
        &[(4, Down), (12, Up)],
    ),
    ("R175: mixed", ".sxx", Unhealthy, &[(4, Down)]),
    (
        "R175: with a refusal",
        ".srx",
        Unhealthy,
        &[(3, NOW_REFUSED), (4, Down)],
    ),
    ("R176: kinds reset nothing", ".xs", Healthy, &[]),
    ("R162: a 503 latches", "sss", Unhealthy, &[(3, Down)]),
    ("R164: a refusal does not", "rr", Unprobed, &[]),
    (
        "R166: unsupported",
        "rrr",
        ProbeUnsupported,
        &[(3, REFUSED)],
    ),
    ("R168: once", "rrrrrrxrr", ProbeUnsupported, &[(3, REFUSED)]),
    (
        "R167 R169: unreachable",
        "xxxxxx",
        ProbeUnsupported,
        &[(3, SILENT)],
    ),
    (
        "R168: names the status",
        "rrx",
        ProbeUnsupported,
        &[(3, REFUSED)],
    ),
    (
        "R168: even late",
        "xxxxrxr",
        ProbeUnsupported,
        &[(3, SILENT), (5, REFUSED)],
    ),
    (
        "R184: answered",
        "rrr.",
        Healthy,
        &[(3, REFUSED), (4, Answered)],
    ),
    (
        "R184: answered badly",
        "rrrs",
        Healthy,
        &[(3, REFUSED), (4, Answered)],
    ),
    ("R178: no warning, no answer", "rr.", Healthy, &[]),
    ("R177: earlier ones", "xxs", Healthy, &[]),
    ("R177: earlier ones, and two", "xxss", Healthy, &[]),
    (
        "R177: earlier ones, and three",
        "xxsxx",
        Unhealthy,
        &[(5, Down)],
    ),
    (
        "R177: long ones",
        "xxxxsxx",
        Unhealthy,
        &[(3, SILENT), (5, Answered), (7, Down)],
    ),
    ("R177: a new run", "xxsx.xxx", Unhealthy, &[(8, Down)]),
    (
        "R171: refusals are failures",
        ".rrr",
        Unhealthy,
        &[(2, NOW_REFUSED), (4, Down)],
    ),
    (
        "R171: a run, once",
        ".rsrx.r",
        Unhealthy,
        &[(2, NOW_REFUSED), (4, Down), (7, NOW_REFUSED)],
    ),
    (
        "R180: a path removed",
        "..rrrr",
        Unhealthy,
        &[(3, NOW_REFUSED), (5, Down)],
    ),
    (
        "R165: never unlatched",
        ".xxxrrrrrr",
        Unhealthy,
        &[(4, Down), (5, NOW_REFUSED)],
    ),
];

#[test]
fn states_and_transitions_after_runs_of_probes() {
    // R157, R162, R164-R169, R171-R180, R183, R184: in the names of the cases.
    for (name, probes, state, logged) in CASES {
        let mut health = health(3, 2);
        let seen = changes(&mut health, probes);
        assert_eq!(
            (health.state(), &*seen),
            (*state, *logged),
            "{name}: {probes}"
        );
    }
}

#[test]
fn r194_the_counts_are_those_of_the_runs() {
    for (probes, failures, successes) in [
        ("", 0, 0),
        ("..", 0, 2),
        (".sxr", 3, 0),
        ("xxs", 3, 0),
        ("xxs.", 0, 1),
        ("sss.", 0, 1),
    ] {
        let mut health = health(3, 2);
        changes(&mut health, probes);
        let counts = (
            health.consecutive_failures(),
            health.consecutive_successes(),
        );
        assert_eq!(counts, (failures, successes), "{probes}");
    }
}

#[test]
fn other_thresholds_count_what_was_probed_before() {
    let mut backend = health(3, 2);
    assert_eq!(changes(&mut backend, ".xx"), []);
    let mut backend = backend.under(health(2, 1).thresholds());
    assert_eq!(backend.state(), Healthy);
    assert_eq!(changes(&mut backend, "x"), [(1, Down)]);
    let mut backend = backend.under(health(2, 3).thresholds());
    assert_eq!(changes(&mut backend, "...."), [(3, Up)]);
}

#[test]
fn r172_r173_thresholds_of_one_act_at_once() {
    let mut health = health(1, 1);
    assert_eq!(
        changes(&mut health, "xs.r."),
        [
            (1, SILENT),
            (2, Answered),
            (2, Down),
            (3, Up),
            (4, NOW_REFUSED),
            (4, Down),
            (5, Up)
        ]
    );
}

proptest! {
    #[test]
    fn r163_to_r177_whatever_the_sequence(
        probes in "[.srx]{0,60}",
        failures in 1u32..5,
        successes in 1u32..5,
    ) {
        let mut health = health(failures, successes);
        // The oracle looks at the whole past anew at every probe.
        let mut down = false;
        for end in 1..=probes.len() {
            let past = &probes[..end];
            health.observe(&finding(past.chars().next_back().unwrap()));
            let latched = past.find(['.', 's']);
            let trusted = latched.map_or("", |at| &past[at..]);
            let run = |text: &str| text.len() - text.trim_end_matches(['s', 'r', 'x']).len();
            let good = past.len() - past.trim_end_matches('.').len();
            if run(trusted) >= failures as usize {
                down = true;
            } else if good >= successes as usize {
                down = false;
            }
            prop_assert_eq!(health.state() == State::Unhealthy, down, "{}", past);
            prop_assert_eq!(health.consecutive_failures() as usize, run(past));
            prop_assert_eq!(health.consecutive_successes() as usize, good);
            if latched.is_none() {
                prop_assert!(health.state().in_service());
                let unsupported = past.len() >= failures as usize;
                prop_assert_eq!(health.state() == State::ProbeUnsupported, unsupported);
            }
        }
    }
}
