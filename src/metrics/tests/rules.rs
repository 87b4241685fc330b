//! The alerts in deploy/prometheus and the dashboard in deploy/grafana name metrics and labels that
//! there are. Whether Prometheus takes the rules is for `promtool` to say, where it is installed.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::*;

const RULES: &str = "deploy/prometheus/pdbmux.rules.yaml";
const DASHBOARD: &str = "deploy/grafana/pdbmux.json";

/// Labels that Prometheus adds.
const ADDED: [&str; 2] = ["job", "instance"];
/// What Prometheus itself knows of a scrape.
const UP: &str = "up";

/// The words of PromQL that stand where a metric could.
const KEYWORDS: [&str; 6] = ["and", "or", "unless", "offset", "bool", "label_values"];
/// Those behind which a list of labels comes.
const GROUPING: [&str; 6] = [
    "by",
    "without",
    "on",
    "ignoring",
    "group_left",
    "group_right",
];

/// What an expression names.
#[derive(Debug, Default, PartialEq)]
struct Named {
    /// Each metric with the labels that it is chosen by.
    metrics: Vec<(String, Vec<String>)>,
    /// Labels that series are grouped by.
    labels: Vec<String>,
}

/// Finds what PromQL names: a word is a function if a bracket follows, a label in braces or in the
/// list behind `by`, and a metric anywhere else.
fn named(expr: &str) -> Named {
    let mut found = Named::default();
    let mut rest = expr;
    let mut groups = false;
    while let Some(start) = rest.find(|c: char| c.is_alphanumeric() || "_{[\"(".contains(c)) {
        rest = &rest[start..];
        let first = rest.chars().next().unwrap();
        let length = match first {
            '{' => {
                let end = closing(rest, '}');
                if let Some((_, labels)) = found.metrics.last_mut() {
                    labels.extend(matched(&rest[1..end]));
                }
                end + 1
            }
            '[' => closing(rest, ']') + 1,
            '"' => rest[1..].find('"').unwrap() + 2,
            '(' if groups => {
                let end = closing(rest, ')');
                let labels = rest[1..end].split(',').map(str::trim);
                let labels = labels.filter(|label| !label.is_empty());
                found.labels.extend(labels.map(str::to_owned));
                groups = false;
                end + 1
            }
            '(' => 1,
            _ => {
                let is_part = |c: char| c.is_alphanumeric() || "_:.".contains(c);
                let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
                let (word, behind) = (&rest[..end], rest[end..].trim_start());
                groups |= GROUPING.contains(&word);
                let is_number = first.is_ascii_digit();
                let is_metric = !is_number
                    && !behind.starts_with('(')
                    && !KEYWORDS.contains(&word)
                    && !GROUPING.contains(&word);
                let next = behind.split_whitespace().next().unwrap_or_default();
                // An aggregation, whose grouping stands before its bracket.
                if is_metric && !GROUPING.contains(&next) {
                    found.metrics.push((word.to_owned(), Vec::new()));
                }
                end
            }
        };
        rest = &rest[length..];
    }
    found
}

/// Where a bracket is closed, quoted ones aside.
fn closing(text: &str, bracket: char) -> usize {
    let mut is_quoted = false;
    let end = text.find(|c| {
        is_quoted ^= c == '"';
        c == bracket && !is_quoted
    });
    end.unwrap()
}

/// The labels in braces.
fn matched(inside: &str) -> Vec<String> {
    let mut labels = Vec::new();
    let mut rest = inside;
    while let Some((label, behind)) = rest.split_once(['=', '!']) {
        labels.push(label.trim_matches([' ', ',']).to_owned());
        let value = &behind[behind.find('"').unwrap() + 1..];
        rest = &value[value.find('"').unwrap() + 1..];
    }
    labels
}

#[test]
fn what_an_expression_names_is_found() {
    let expr = r#"sum by (job, le) (rate(a_total{x="1", y!~"b)|{c}"}[5m])) / on (job) d > 0.5"#;
    let metric = |name: &str, labels: &[&str]| {
        let labels = labels.iter().map(ToString::to_string).collect();
        (name.to_owned(), labels)
    };
    assert_eq!(
        named(expr),
        Named {
            metrics: vec![metric("a_total", &["x", "y"]), metric("d", &[])],
            labels: ["job", "le", "job"].map(str::to_owned).into(),
        }
    );
    let values = named(r#"label_values(e{f=~"$g"}, h)"#).metrics;
    assert_eq!(values, [metric("e", &["f"]), metric("h", &[])]);
    let twice = named("min(a) unless count by (b) (c offset 1h)").metrics;
    assert_eq!(twice, [metric("a", &[]), metric("c", &[])]);
}

/// The labels of every series that there can be.
fn known() -> BTreeMap<String, BTreeSet<String>> {
    let mut known = series(&text(&used()));
    known.insert(UP.to_owned(), BTreeSet::new());
    for labels in known.values_mut() {
        labels.extend(ADDED.map(str::to_owned));
    }
    known
}

#[track_caller]
fn check(known: &BTreeMap<String, BTreeSet<String>>, expr: &str) {
    let Named { metrics, labels } = named(expr);
    assert!(!metrics.is_empty(), "{expr}");
    let mut there = BTreeSet::new();
    for (metric, chosen_by) in metrics {
        let has = known.get(&metric);
        let has = has.unwrap_or_else(|| panic!("there is no metric {metric}: {expr}"));
        for label in chosen_by {
            assert!(
                has.contains(&label),
                "{metric} has no label {label}: {expr}"
            );
        }
        there.extend(has);
    }
    for label in labels {
        assert!(there.contains(&label), "there is no label {label}: {expr}");
    }
}

fn alerts() -> Vec<Value> {
    let rules = fs::read_to_string(file(RULES)).unwrap();
    let rules: Value = serde_saphyr::from_str(&rules).unwrap();
    let groups = rules["groups"].as_array().unwrap();
    let rules = groups.iter().filter_map(|group| group["rules"].as_array());
    rules.flatten().cloned().collect()
}

#[test]
fn every_alert_names_what_there_is_and_is_explained() {
    let known = known();
    let page = fs::read_to_string(file("docs/metrics.md")).unwrap();
    let mut names = BTreeSet::new();
    for alert in alerts() {
        let name = alert["alert"].as_str().unwrap();
        check(&known, alert["expr"].as_str().unwrap());
        let annotations = &alert["annotations"];
        for kind in ["summary", "description"] {
            assert!(annotations[kind].is_string(), "{name} lacks a {kind}");
        }
        let runbook = format!("docs/metrics.md#{}", name.to_lowercase());
        assert_eq!(annotations["runbook"], runbook, "{name}");
        assert!(page.contains(&format!("\n### {name}\n")), "{name}");
        let severity = alert["labels"]["severity"].as_str().unwrap();
        assert!(
            ["critical", "warning", "info"].contains(&severity),
            "{name}"
        );
        assert!(names.insert(name.to_owned()), "{name} is there twice");
    }
    let headings = page
        .lines()
        .filter_map(|line| line.strip_prefix("### Pdbmux"));
    assert_eq!(
        headings.count(),
        names.len(),
        "an alert is explained that is not there"
    );
}

#[test]
fn every_alert_is_tried_in_the_tests_of_the_rules() {
    let tests = fs::read_to_string(file("deploy/prometheus/pdbmux.rules.test.yaml")).unwrap();
    let tests: Value = serde_saphyr::from_str(&tests).unwrap();
    let tried = tests["tests"].as_array().unwrap().iter();
    let tried = tried.flat_map(|test| test["alert_rule_test"].as_array().unwrap());
    let fires = tried.filter(|it| it["exp_alerts"].is_array());
    let fires: BTreeSet<_> = fires.map(|it| it["alertname"].as_str().unwrap()).collect();
    let alerts = alerts();
    let all: BTreeSet<_> = alerts
        .iter()
        .map(|it| it["alert"].as_str().unwrap())
        .collect();
    assert_eq!(fires, all);
}

#[test]
fn prometheus_takes_the_rules_where_it_is_installed() {
    for (command, path) in [
        ("check", RULES),
        ("test", "deploy/prometheus/pdbmux.rules.test.yaml"),
    ] {
        let run = Command::new("promtool")
            .args([command, "rules"])
            .arg(file(path))
            .stdin(Stdio::null())
            .output();
        // `.ci/run` installs it.
        let Ok(run) = run else {
            return;
        };
        let said = String::from_utf8_lossy(&run.stdout) + String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{said}");
    }
}

#[test]
fn every_panel_names_what_there_is_and_no_data_source_of_some_site() {
    let known = known();
    let text = fs::read_to_string(file(DASHBOARD)).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let uids = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("\"uid\": \""));
    let others: Vec<_> = uids
        .filter(|uid| !uid.starts_with("${datasource}\""))
        .collect();
    assert_eq!(others, ["pdbmux\","]);
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    for variable in variables {
        if let Some(query) = variable["query"]["query"].as_str() {
            // The label whose values are listed comes last.
            let (metric, label) = query.rsplit_once(", ").unwrap();
            let label = label.trim_end_matches(')');
            check(&known, &format!("sum by ({label}) ({metric}))"));
        }
    }
    let (mut ids, mut taken) = (BTreeSet::new(), BTreeSet::new());
    for panel in dashboard["panels"].as_array().unwrap() {
        let title = panel["title"].as_str().unwrap();
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{title}");
        let place = |key: &str| panel["gridPos"][key].as_u64().unwrap();
        for x in place("x")..place("x") + place("w") {
            for y in place("y")..place("y") + place("h") {
                assert!(x < 24 && taken.insert((x, y)), "{title} lies on another");
            }
        }
        if panel["type"] == "row" {
            continue;
        }
        let mut letters = BTreeSet::new();
        for target in panel["targets"].as_array().unwrap() {
            assert!(letters.insert(target["refId"].as_str().unwrap()), "{title}");
            let expr = target["expr"].as_str().unwrap();
            check(&known, expr);
            for variable in ["$job", "$instance"] {
                assert!(expr.contains(variable), "{title}: {expr}");
            }
            // A legend can only tell what the series are grouped by, where they are.
            let legend = target["legendFormat"].as_str().unwrap();
            for part in legend.split("{{").skip(1) {
                let label = part.split("}}").next().unwrap();
                let grouped = named(expr).labels;
                let is_there = grouped.is_empty() || grouped.iter().any(|it| it == label);
                assert!(is_there, "{title}: {legend}");
            }
        }
        assert!(!letters.is_empty(), "{title} shows nothing");
    }
}
