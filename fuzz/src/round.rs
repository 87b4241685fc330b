//! A fan-out carried through without a network.

use pdbmux_core::answer::{Answer, Source};
use pdbmux_core::merge::owners::FreshnessMap;
use pdbmux_core::merge::{Context, Fan, Merged, Outcome};
use pdbmux_core::params::Params;
use pdbmux_core::plan::{Plan, plan};
use pdbmux_core::round::{BackendId, Part, Reply};
use pdbmux_core::route::Route;
use pdbmux_core::settings::{Settings, Strategy};

/// More rounds than a limit of one needs to grow beyond every limit.
const MAX_ROUNDS: usize = 20;

/// Two backends and a source fact.
pub fn settings(strategy: Strategy) -> Settings {
    Settings {
        backends: vec!["pdb-a".to_owned(), "pdb-b".to_owned()],
        strategy,
        source: Some("pdbmux_source".to_owned()),
    }
}

/// The plan of `target`, a raw path and query. `None` if it is unknown or refused.
pub fn planned(target: &str, settings: &Settings) -> Option<Plan> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let route = Route::find(path).ok()??;
    plan(&route, &Params::read(query).ok()?, settings).ok()
}

/// What each backend answers with, `None` if nothing comes.
pub type Bodies = Vec<Option<Vec<u8>>>;

/// Carries `fan` through until its answer is decided. `ask` gives a backend's body for a limit.
/// The bodies of the last round are returned too.
pub fn settle(
    fan: &Fan,
    names: &[String],
    freshness: Option<&FreshnessMap>,
    ask: impl Fn(usize, Option<u32>) -> Option<Vec<u8>>,
) -> (Merged, Bodies) {
    let mut limits = vec![fan.ask.limit(); names.len()];
    for _ in 0..MAX_ROUNDS {
        let bodies: Bodies = limits
            .iter()
            .enumerate()
            .map(|(at, limit)| ask(at, *limit))
            .collect();
        // Some are read when they come, others when they are merged.
        let scans: Vec<_> = bodies
            .iter()
            .enumerate()
            .map(|(at, body)| body.as_deref().filter(|_| at % 2 == 0))
            .map(|body| body.and_then(|body| fan.scan(body)))
            .collect();
        let round: Vec<_> = bodies
            .iter()
            .zip(&scans)
            .zip(0..)
            .map(|((body, scan), id)| Part {
                backend: BackendId(id),
                reply: body.as_ref().map(|body| Reply {
                    status: 200,
                    total: Some(7),
                    body,
                    scan: scan.as_ref(),
                }),
            })
            .collect();
        let context = Context {
            backends: names,
            freshness,
            shares: None,
        };
        let merged = fan.merge(&round, &limits, context);
        let Outcome::AskAgain(again) = &merged.outcome else {
            return (merged, bodies);
        };
        assert!(!again.is_empty(), "nobody is to be asked again");
        for again in again {
            let limit = &mut limits[again.backend.index()];
            assert!(
                again
                    .limit
                    .is_none_or(|more| limit.is_some_and(|asked| more > asked)),
                "{limit:?} does not grow to {:?}",
                again.limit
            );
            assert_ne!(
                *limit, None,
                "a backend that has sent everything is asked for more"
            );
            *limit = again.limit;
        }
    }
    panic!("undecided after {MAX_ROUNDS} rounds");
}

/// The text of `answer`, whose pieces must lie in the bodies that went into it.
pub fn text(answer: &Answer, merged: &Merged, bodies: &Bodies) -> Vec<u8> {
    let is_damaged = |at: usize| merged.damaged.iter().any(|(id, _)| id.index() == at);
    let readable: Vec<&[u8]> = bodies
        .iter()
        .enumerate()
        .filter(|(at, _)| !is_damaged(*at))
        .filter_map(|(_, body)| body.as_deref())
        .collect();
    for piece in &answer.pieces.list {
        let whole = match piece.source {
            Source::Reply(at) => readable[usize::from(at)],
            Source::Made => &answer.pieces.made,
        };
        assert!(
            piece.span.start < piece.span.end && piece.span.end <= whole.len(),
            "{piece:?} is no part of {} bytes",
            whole.len()
        );
    }
    answer.pieces.assemble(&readable)
}
