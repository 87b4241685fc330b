mod asks;
mod cache_keys;
mod folds;
mod history;
mod merges;
mod root;
mod sets;
mod unlisted;

use super::*;
use crate::merge::Merge;

fn settings() -> Settings {
    Settings {
        backends: vec!["pdb-a".into(), "pdb-b".into()],
        strategy: Strategy::Freshness,
        source: Some("pdbmux_source".into()),
    }
}

fn planned_with(settings: &Settings, target: &str) -> Result<Plan, Refusal> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let route = Route::find(path).unwrap().unwrap();
    plan(&route, &Params::read(query).unwrap(), settings)
}

fn planned(target: &str) -> Result<Plan, Refusal> {
    planned_with(&settings(), &format!("/pdb/query/v4/{target}"))
}

/// The request line that goes to every backend, and whether all are asked at once.
fn asked(target: &str) -> (&'static str, String) {
    asked_with(&settings(), &format!("/pdb/query/v4/{target}"))
}

fn asked_with(settings: &Settings, target: &str) -> (&'static str, String) {
    let plan = planned_with(settings, &encoded(target)).unwrap();
    let (how, ask) = match plan {
        Plan::Fan(Fan { ask, .. }) => ("all", ask),
        Plan::Turns(ask, Turns::Configured, _) => ("in turn", ask),
        Plan::Turns(ask, Turns::OwnerFirst { .. }, _) => ("owner first", ask),
        Plan::Parent(_, _, Fan { ask, .. }) => ("all below a parent", ask),
        Plan::Translate(ask) => ("translated", ask),
        Plan::Nothing(total) => return ("none", format!("{total:?}")),
        Plan::Write => panic!("{target} writes"),
    };
    let target = ask.target();
    let path = target.strip_prefix("/pdb/query/v4").unwrap();
    (how, path.strip_prefix('/').unwrap_or(path).into())
}

fn records(target: &str) -> RecordMerge {
    match planned(&encoded(target)).unwrap() {
        Plan::Fan(Fan {
            merge: Merge::Records(records),
            ..
        }) => records,
        other => panic!("{target}: {other:?}"),
    }
}

fn drilldown(target: &str) -> Drilldown {
    match planned(&encoded(target)).unwrap() {
        Plan::Fan(Fan {
            drilldown: Some(drilldown),
            ..
        }) => *drilldown,
        other => panic!("{target}: {other:?}"),
    }
}

/// `target` with its JSON parameters form-encoded, so that cases stay readable.
fn encoded(target: &str) -> String {
    let Some((path, query)) = target.split_once('?') else {
        return target.to_owned();
    };
    let pairs = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, json)) if json.starts_with(['[', '{']) => crate::params::encode(name, json),
        _ => pair.to_owned(),
    });
    format!("{path}?{}", pairs.collect::<Vec<_>>().join("&"))
}

fn assert_asked(cases: &[(&str, &str, &str)]) {
    for (target, how, expected) in cases {
        assert_eq!(asked(target), (*how, encoded(expected)), "{target}");
    }
}
