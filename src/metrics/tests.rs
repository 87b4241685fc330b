mod documents;
mod rules;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::Method as Asked;
use pdbmux_core::health::State;
use pdbmux_core::plan::Doubt;

use super::*;
use crate::certificate::{InUse, Which};

/// A file of the repository.
fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn sample() -> Sample<'static> {
    Sample {
        backends: vec!["pdb-a"],
        states: vec![("pdb-a", Stand::Probed(State::Healthy))],
        versions: vec![("pdb-a", "8.15.0".to_owned())],
        cache: Some(CacheUse {
            entries: 3,
            stale: 1,
            bytes: 300,
        }),
        memory: Some((4096, 1024)),
        certificates: vec![InUse {
            backend: Some("pdb-a"),
            which: Which::Server,
            until: jiff::Timestamp::UNIX_EPOCH,
        }],
    }
}

/// Metrics of which everything was counted at least once.
fn used() -> Arc<Metrics> {
    let metrics = Metrics::new();
    metrics.group("eu").taken_over(TakeOver::Damaged);
    let backend = metrics.backend("pdb-a");
    let mut asking = backend.asked();
    asking.head(Duration::from_millis(20));
    asking.received(100);
    asking.ends(Outcome::Ok);
    drop(asking);
    backend.contributed();
    backend.missing(Outcome::Timeout);
    let route = metrics.route(Place::Row(0));
    let method = Method::from(&Asked::GET);
    route.answered(method, Status::Success, Duration::from_secs(2));
    route.completed(Answered::Partial);
    route.completed(Answered::Refused);
    route.cached(Tier::Hit);
    route.coalesced();
    route.merged(Duration::from_micros(200));
    route.doubted(Doubt::OneBackend.reason());
    metrics.shed(Shed::Memory);
    metrics.spans(Fate::Exported, 1);
    metrics.learn_estate(Estate {
        when: SystemTime::now(),
        nodes: 5,
        shared: 1,
        backends: vec![EstateOfBackend {
            name: "pdb-a".to_owned(),
            nodes: 5,
            owned: 4,
            stale: 1,
        }],
    });
    metrics
}

/// The labels of every series in a text, by its name.
fn series(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut found = BTreeMap::<_, BTreeSet<_>>::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (series, _) = line.rsplit_once(' ').unwrap();
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let labels = labels.split("\",").filter_map(|pair| pair.split_once('='));
        let labels = labels.map(|(label, _)| label.to_owned());
        found.entry(name.to_owned()).or_default().extend(labels);
    }
    found
}

fn text(metrics: &Metrics) -> String {
    metrics.text(&sample(), Format::OpenMetrics).unwrap()
}

#[test]
fn what_is_listed_is_what_is_written() {
    let metrics = used();
    let mut listed = BTreeMap::new();
    for metric in metrics.listed() {
        for series in metric.series() {
            let mut labels: BTreeSet<_> = metric.labels.iter().map(ToString::to_string).collect();
            if series.ends_with("_bucket") {
                labels.insert("le".to_owned());
            }
            assert_eq!(listed.insert(series, labels), None, "{}", metric.name);
        }
    }
    assert_eq!(series(&text(&metrics)), listed);
}

#[test]
fn names_tell_whose_they_are_and_in_what_they_are_counted() {
    for metric in Metrics::new().listed() {
        let name = metric.name;
        assert!(
            name.starts_with("pdbmux_") || name.starts_with("process_"),
            "{name}"
        );
        assert!(
            !name.ends_with("_total") && !name.ends_with("_info"),
            "{name}"
        );
        assert!(
            !metric.help.ends_with('.') && !metric.help.is_empty(),
            "{name}"
        );
        let is_time = metric.kind == Kind::Histogram;
        assert!(!is_time || name.ends_with("_seconds"), "{name}");
    }
}

#[test]
fn a_histogram_counts_a_duration_from_its_bound_on() {
    let text = text(&used());
    let bucket = |bound: &str| {
        let start = format!("pdbmux_http_request_duration_seconds_bucket{{le=\"{bound}\"");
        let mut lines = text.lines().filter(|line| line.starts_with(&start));
        lines.next().unwrap().rsplit_once(' ').unwrap().1
    };
    // Two seconds.
    let counts = ["1.0", "2.5", "60.0", "+Inf"].map(bucket);
    assert_eq!(counts, ["0", "1", "1", "1"]);
    let sum = "pdbmux_http_request_duration_seconds_sum{route=\"/pdb/query/v4/nodes\"} 2.0\n";
    assert!(text.contains(sum), "{text}");
}

#[test]
fn a_backend_that_is_no_longer_configured_is_in_no_state_and_has_no_nodes() {
    let metrics = used();
    let other = Sample {
        backends: vec!["pdb-b"],
        states: vec![("pdb-b", Stand::Probed(State::Unhealthy))],
        versions: Vec::new(),
        ..sample()
    };
    let text = metrics.text(&other, Format::Text).unwrap();
    assert!(text.contains("pdbmux_backend_state{backend=\"pdb-b\",state=\"unhealthy\"} 1\n"));
    for gone in ["state", "nodes", "info"].map(|it| format!("pdbmux_backend_{it}")) {
        assert!(
            !text.contains(&format!("{gone}{{backend=\"pdb-a\"")),
            "{gone}"
        );
    }
}

#[test]
fn a_backend_of_the_same_name_is_counted_on() {
    let metrics = used();
    metrics.backend("pdb-a").contributed();
    let twice = "pdbmux_backend_contributed_total{backend=\"pdb-a\"} 2\n";
    assert!(text(&metrics).contains(twice));
}

#[test]
fn a_reload_that_failed_leaves_the_time_of_the_last_good_one() {
    let metrics = Metrics::new();
    let of = |name: &str| {
        let text = text(&metrics);
        let start = format!("pdbmux_config_{name} ");
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(&start));
        lines.next().unwrap().to_owned()
    };
    let at = of("last_reload_success_timestamp_seconds");
    metrics.config_reloaded(Reload::Failed);
    assert_eq!(of("last_reload_successful"), "0");
    assert_eq!(of("last_reload_success_timestamp_seconds"), at);
    metrics.config_reloaded(Reload::Succeeded);
    assert_eq!(of("last_reload_successful"), "1");
    assert_ne!(of("last_reload_success_timestamp_seconds"), at);
}

#[test]
fn fifty_of_each_kind_are_kept_the_newest_first() {
    let metrics = Metrics::new();
    let story = |id: usize| {
        Arc::new(Story {
            time: String::new(),
            client: String::new(),
            name: None,
            user: None,
            method: String::new(),
            target: String::new(),
            status: 200,
            bytes: 0,
            duration: 0.0,
            first_byte: 0.0,
            cache: None,
            backends: None,
            missing: Vec::new(),
            asked: Vec::new(),
            cut: false,
            request_id: Some(id.to_string()),
        })
    };
    for id in 0..60 {
        metrics.recent().keep_slow(&story(id));
    }
    metrics.recent().keep_partial(&story(60));
    let slow = metrics.recent().slow();
    let ids: Vec<_> = slow
        .iter()
        .map(|story| story.request_id.as_deref())
        .collect();
    assert_eq!((ids.len(), ids[0], ids[49]), (50, Some("59"), Some("10")));
    assert_eq!(metrics.recent().partial().len(), 1);
}
