//! `pdbmux drift` against scripted backends.

// Clippy allows these in test functions alone, not in what they share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use jiff::Timestamp;
use pdbmux::config::{Access, BackendConfig, Config};
use pdbmux::drift::{self, Estate, Rows};
use serde_json::{Value, json};

use crate::harness::{NAMES, SHORT};
use crate::stub::{Answer, Stub};

const NODES: &str = "/pdb/query/v4/nodes";
const REPORTS: &str = "/pdb/query/v4/reports";

fn config(stubs: &[&Stub]) -> Config {
    let backends = stubs.iter().zip(NAMES).map(|(stub, name)| BackendConfig {
        name: name.to_owned(),
        url: stub.url().parse().unwrap(),
        access: Access::default(),
    });
    Config {
        backends: backends.collect(),
        timeout: SHORT,
        ..Config::default()
    }
}

fn node(certname: &str, report: &str, facts: &str, deactivated: Option<&str>) -> Value {
    json!({
        "certname": certname,
        "report_timestamp": report,
        "facts_timestamp": facts,
        "catalog_timestamp": null,
        "deactivated": deactivated,
        "expired": null,
    })
}

/// A backend with these nodes.
async fn holding(nodes: &[Value]) -> Stub {
    let stub = Stub::start().await;
    stub.on(NODES, json!(nodes).to_string());
    stub
}

fn printed(
    print: fn(&Estate, &Rows, &mut dyn std::io::Write) -> std::io::Result<()>,
    estate: &Estate,
) -> String {
    let mut out = Vec::new();
    print(estate, &Rows::Of(Vec::new()), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[tokio::test]
async fn the_estate_is_printed_for_people_and_for_machines() {
    let old = holding(&[
        node(
            "web-1",
            "2026-05-01T10:00:00.000Z",
            "2026-05-01T09:59:00.000Z",
            None,
        ),
        node(
            "db, \"1\"",
            "2026-05-03T10:00:00.000Z",
            "2026-05-03T10:00:00.000Z",
            None,
        ),
        node(
            "dns-1",
            "2026-05-03T10:00:00.000Z",
            "2026-05-03T09:59:00.190Z",
            None,
        ),
    ])
    .await;
    let gone = Some("2026-05-02T00:00:00.000Z");
    let new = holding(&[
        node(
            "dns-1",
            "2026-05-03T10:00:00.000Z",
            "2026-05-03T09:59:00.000Z",
            None,
        ),
        node(
            "web-1",
            "2026-05-03T12:30:00.000Z",
            "2026-05-03T12:29:00.000Z",
            gone,
        ),
    ])
    .await;
    let away = Stub::closed();
    let mut estate = drift::read(&config(&[&old, &new, &away]), None).await;
    assert!(estate.whole().is_err());
    // What the system says of a refused connection is its own business.
    assert_eq!(estate.missing.len(), 1);
    estate.missing[0].1 = "no connection".to_owned();
    estate.at = "2026-05-03T13:00:00Z".parse().unwrap();
    let json = printed(drift::json, &estate);
    let _: Value = serde_json::from_str(&json).unwrap();
    insta::assert_snapshot!("drift_table", printed(drift::table, &estate));
    insta::assert_snapshot!("drift_json", json);
    insta::assert_snapshot!("drift_csv", printed(drift::csv, &estate));
}

fn ago(hours: i64) -> String {
    let moment = Timestamp::now() - jiff::SignedDuration::from_hours(hours);
    format!("{moment:.3}")
}

/// Who moved within a day.
async fn moved(old: &Stub, new: &Stub) -> (Estate, Vec<String>) {
    let day = Duration::from_hours(24);
    let estate = drift::read(&config(&[old, new]), Some(day)).await;
    let moved = estate.moved.as_ref().unwrap();
    let mut nodes: Vec<_> = moved.nodes.iter().cloned().collect();
    nodes.sort();
    (estate, nodes)
}

#[tokio::test]
async fn a_node_has_moved_if_its_first_report_to_its_owner_is_in_the_time_asked_for() {
    let at = |name: &str, hours| node(name, &ago(hours), &ago(hours), None);
    let old = holding(&[
        at("left-today", 5),
        at("was-away", 90),
        at("left-long-ago", 90),
        at("came-back", 90),
        at("stays", 1),
        at("ended-long-ago", 90),
    ])
    .await;
    let new = holding(&[
        at("left-today", 1),
        at("was-away", 1),
        at("left-long-ago", 1),
        at("came-back", 1),
        at("stays", 90),
        at("ended-long-ago", 80),
    ])
    .await;
    old.on(REPORTS, "[]");
    let last = |name: &str, hours| json!({"certname": name, "max": ago(hours)});
    let told = json!([last("left-long-ago", 30), last("came-back", 200)]);
    new.on(REPORTS, told.to_string());
    let (estate, nodes) = moved(&old, &new).await;
    assert!(estate.whole().is_ok());
    // What the other copies tell is not asked for; one that had reported there before it left for a
    // while has moved as well.
    assert_eq!(nodes, ["came-back", "left-today", "stays", "was-away"]);
    let asked = new.seen().pop().unwrap().param("query").unwrap();
    assert!(asked.contains(r#"["array",["came-back","left-long-ago","was-away"]]"#));
    assert!(asked.contains(r#"["<","end_time","#));
}

#[tokio::test]
async fn an_owner_that_does_not_tell_who_moved_is_missing() {
    let at = |hours| [node("n", &ago(hours), &ago(hours), None)];
    for answer in [Answer::status(500, "broken"), Answer::json("[{}]")] {
        let (old, new) = (holding(&at(90)).await, holding(&at(1)).await);
        new.on(REPORTS, answer);
        let (estate, nodes) = moved(&old, &new).await;
        assert!(nodes.is_empty());
        let why = estate.whole().unwrap_err().to_string();
        assert!(why.contains("pdb-b"), "{why}");
    }
}

#[tokio::test]
async fn a_list_of_nodes_that_cannot_be_read_is_a_missing_backend() {
    let well = holding(&[]).await;
    for answer in [
        Answer::json(r#"[{"certname":"n""#),
        Answer::status(403, "Permission denied"),
        Answer::hung(),
    ] {
        let broken = Stub::start().await;
        broken.on(NODES, answer);
        let estate = drift::read(&config(&[&well, &broken]), None).await;
        assert_eq!(estate.missing.len(), 1);
        let why = estate.whole().unwrap_err().to_string();
        assert!(why.contains("pdb-b: "), "{why}");
    }
}

/// Exit status and standard error of the program.
async fn program(stubs: &[&Stub], args: &'static [&'static str]) -> (i32, String) {
    let pair = |(stub, name): (&&Stub, _)| format!("{name}={}", stub.url());
    let backends: Vec<_> = stubs.iter().zip(NAMES).map(pair).collect();
    let run = move || {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_pdbmux"));
        command
            .env_clear()
            .env("PDBMUX_BACKENDS", backends.join(","));
        command.arg("drift").args(args).output().unwrap()
    };
    let output = tokio::task::spawn_blocking(run).await.unwrap();
    let why = String::from_utf8(output.stderr).unwrap();
    (output.status.code().unwrap(), why)
}

#[tokio::test]
async fn the_exit_status_tells_a_closed_gate_from_one_that_cannot_be_looked_through() {
    let nodes = [node(
        "n",
        "2026-05-01T10:00:00.000Z",
        "2026-05-01T10:00:00.000Z",
        None,
    )];
    let (old, new) = (holding(&nodes).await, holding(&[]).await);
    let away = Stub::closed();
    for (stubs, args, status, sentence) in [
        (&[&old, &new][..], &["--summary"][..], 0, ""),
        (&[&old, &new], &["--fail-if", "owned(pdb-b) > 0"], 0, ""),
        (
            &[&old, &new],
            &["--fail-if", "owned(pdb-a) > 0"],
            3,
            "pdbmux: it holds that owned(pdb-a) > 0\n",
        ),
        (
            &[&old, &away],
            &["--fail-if", "owned(pdb-b) > 0"],
            1,
            "pdbmux: the estate could not be read whole: pdb-b: no connection",
        ),
        (
            &[&old, &away],
            &["--fail-if", "owned(pdb-c) > 0"],
            2,
            "pdbmux: --fail-if cannot be read at column 7: no backend is named \"pdb-c\"",
        ),
        (
            &[&old, &new],
            &["--filter", "x"],
            2,
            "pdbmux: the filter \"x\" is none of",
        ),
    ] {
        let (code, why) = program(stubs, args).await;
        assert_eq!(code, status, "{args:?}: {why}");
        assert!(
            why.starts_with(sentence) && why.lines().count() <= 1,
            "{why}"
        );
    }
}

#[tokio::test]
async fn a_group_is_one_backend_by_its_own_name() {
    let nodes = [node(
        "n",
        "2026-05-01T10:00:00.000Z",
        "2026-05-01T10:00:00.000Z",
        None,
    )];
    let (one, other) = (holding(&nodes).await, holding(&nodes).await);
    let new = holding(&[]).await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config.yaml");
    let entry = |name: &str, stub: &Stub, group: &str| {
        format!("- name: {name}\n  url: {}\n{group}", stub.url())
    };
    let text = [
        "backends:\n".to_owned(),
        entry("old-1", &one, "  group: old\n"),
        entry("old-2", &other, "  group: old\n"),
        entry("new", &new, ""),
    ];
    std::fs::write(&file, text.concat()).unwrap();
    for (gate, status) in [
        ("owned(new) > 0", 0),
        ("held(old) == 1", 3),
        ("held == 1", 3),
    ] {
        let (file, gate) = (file.clone(), gate.to_owned());
        let run = move || {
            let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_pdbmux"));
            command.env_clear().arg("--config").arg(&file);
            command
                .args(["drift", "--fail-if", &gate])
                .output()
                .unwrap()
        };
        let output = tokio::task::spawn_blocking(run).await.unwrap();
        assert_eq!(output.status.code(), Some(status), "{output:?}");
    }
}
