//! docs/metrics.md says of each metric what it means, and of none that there is not.

use std::fmt::Write as _;
use std::fs;

use super::*;

const BEGIN: &str = "<!-- metrics: written by `UPDATE_DOCS=1 cargo test`, not by hand -->\n";
const END: &str = "<!-- end of metrics -->\n";

fn table(metrics: &Metrics) -> String {
    let mut table = "| Metric | Kind | Labels | Meaning |\n|---|---|---|---|\n".to_owned();
    for metric in metrics.listed() {
        let (kind, suffix) = match metric.kind {
            Kind::Counter => ("counter", "_total"),
            Kind::Gauge => ("gauge", ""),
            Kind::Histogram => ("histogram", ""),
            Kind::Info => ("gauge", "_info"),
        };
        let labels: Vec<_> = metric.labels.iter().map(|it| format!("`{it}`")).collect();
        let Listed { name, help, .. } = metric;
        let labels = labels.join(", ");
        writeln!(table, "| `{name}{suffix}` | {kind} | {labels} | {help} |").unwrap();
    }
    table
}

#[test]
fn the_documentation_lists_every_metric_and_no_other() {
    let path = file("docs/metrics.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let metrics = Metrics::new();
    let right = format!("{before}{BEGIN}{}{END}{after}", table(&metrics));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &right).unwrap();
    }
    assert!(
        fs::read_to_string(&path).unwrap() == right,
        "docs/metrics.md is out of date: run with UPDATE_DOCS=1"
    );
}

#[test]
fn the_documentation_explains_the_words_of_every_label() {
    let page = fs::read_to_string(file("docs/metrics.md")).unwrap();
    let closed = [
        Outcome::WORDS,
        TakeOver::WORDS,
        Tier::WORDS,
        Shed::WORDS,
        Method::WORDS,
        Status::WORDS,
        Reload::WORDS,
        Fate::WORDS,
    ];
    let states = State::ALL.map(State::name);
    let doubts = Doubt::ALL.map(Doubt::reason);
    let certificates = Which::ALL.map(Which::word);
    let open = states.into_iter().chain(doubts).chain(certificates);
    for word in closed.concat().into_iter().chain(open) {
        assert!(page.contains(&format!("`{word}`")), "{word}");
    }
}
