//! `pdbmux check` against scripted backends.

// Clippy allows these in test functions alone, not in what they share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use pdbmux::check::{Aspect, CheckError, Finding, Outcome, Paint, Report, Strictness, run};
use pdbmux::config::{Access, BackendConfig, Config};

use crate::harness::SHORT;
use crate::stub::{Answer, Stub};
use crate::tls::{Authority, Ends, Files, Front};

/// A PuppetDB as far as a check asks.
async fn puppetdb() -> Stub {
    let stub = Stub::start().await;
    let now = jiff::Timestamp::now();
    stub.on("/pdb/meta/v1/version", r#"{"version":"8.4.1"}"#)
        .on(
            "/pdb/meta/v1/server-time",
            format!(r#"{{"server_time":"{now}"}}"#),
        )
        .on("/pdb/query/v4", r#"["from","nodes"]"#)
        .on("/pdb/query/v4/fact-names", r#"["Zone","ipaddress"]"#)
        .on(
            "/metrics/v2/read/puppetlabs.puppetdb.population:name=num-nodes",
            r#"{"status":200,"value":{"Value":2}}"#,
        )
        .makes("/pdb/query/v4/nodes", |seen| {
            let query = seen.param("query").unwrap();
            if query.contains("count") {
                return Answer::json(r#"[{"count":2}]"#);
            }
            Answer::json(r#"[{"certname":"a"},{"certname":"b"}]"#)
        });
    stub
}

fn config(backends: &[(&str, String, Access)]) -> Config {
    let backends = backends.iter().map(|(name, url, access)| BackendConfig {
        name: (*name).to_owned(),
        url: url.parse().unwrap(),
        access: access.clone(),
    });
    Config {
        backends: backends.collect(),
        timeout: SHORT * 4,
        ..Config::default()
    }
}

async fn of_one(url: String, access: Access) -> Report {
    run(&config(&[("pdb-a", url, access)]), None).await.unwrap()
}

fn found(report: &Report, aspect: Aspect) -> &Finding {
    let findings = &report.backends[0].findings;
    let aspects: Vec<_> = findings.iter().map(|finding| finding.aspect).collect();
    assert_eq!(aspects, Aspect::ALL);
    &findings[aspects.iter().position(|it| *it == aspect).unwrap()]
}

#[tokio::test]
async fn a_backend_that_is_as_it_should_be_is_ok_in_all() {
    let stub = puppetdb().await;
    let report = of_one(stub.url(), Access::default()).await;
    for finding in &report.backends[0].findings {
        let expected = match finding.aspect {
            Aspect::Certificate | Aspect::ClientCertificate => Outcome::Skipped,
            _ => Outcome::Ok,
        };
        assert_eq!(finding.outcome, expected, "{finding:?}");
    }
    assert_eq!(report.verdict(Strictness::Strict), Ok(()));
    let table = report.table(Paint::Plain);
    assert!(table.contains("\n  ok       version             PuppetDB 8.4.1\n"));
    assert!(table.ends_with("\nbackends: 1 ok\n") && !table.contains('\x1b'));
    let json = report.to_json();
    assert_eq!(json["outcome"], "ok");
    let checks = json["backends"][0]["checks"].as_array().unwrap();
    assert_eq!(
        checks[11],
        serde_json::json!({"check":"nodes","outcome":"ok","text":"2","unit":"nodes","value":2})
    );
}

#[tokio::test]
async fn warnings_fail_where_they_are_not_taken_and_one_backend_can_be_chosen() {
    let (well, old) = (puppetdb().await, puppetdb().await);
    old.on("/pdb/meta/v1/version", r#"{"version":"6.1.0"}"#);
    let both = config(&[
        ("well", well.url(), Access::default()),
        ("old", old.url(), Access::default()),
    ]);
    let report = run(&both, None).await.unwrap();
    assert_eq!(report.verdict(Strictness::Lenient), Ok(()));
    assert_eq!(
        report.verdict(Strictness::Strict),
        Err(CheckError::Warned("old".to_owned()))
    );
    let report = run(&both, Some("well")).await.unwrap();
    assert_eq!(report.verdict(Strictness::Strict), Ok(()));
    let unknown = run(&both, Some("new")).await.unwrap_err();
    assert_eq!(
        unknown.to_string(),
        r#"no backend is named "new": there are well, old"#
    );
}

#[tokio::test]
async fn what_takes_something_that_fails_is_not_looked_at() {
    let gone = Stub::closed();
    let report = of_one(gone.url(), Access::default()).await;
    assert_eq!(found(&report, Aspect::Connection).outcome, Outcome::Fail);
    assert_eq!(found(&report, Aspect::Nodes).outcome, Outcome::Skipped);
    let failed = report.verdict(Strictness::Lenient).unwrap_err();
    assert_eq!(failed.to_string(), "pdb-a cannot be used as configured");

    // Whatever hangs ends by the timeout.
    let hung = Stub::start().await;
    hung.otherwise(Answer::hung());
    let report = of_one(hung.url(), Access::default()).await;
    let authorization = found(&report, Aspect::Authorization);
    assert_eq!(authorization.text, "nothing came for 1s");
    assert_eq!(found(&report, Aspect::Clock).outcome, Outcome::Skipped);
}

#[tokio::test]
async fn certificates_are_told_and_who_is_not_on_the_allow_list_is_named() {
    let (stub, files) = (puppetdb().await, Files::new());
    let (ca, other) = (Authority::new("Puppet CA"), Authority::new("Another CA"));
    let front = Front::before(&stub, &ca.identity("puppetdb"), Some(&ca)).await;
    let access = files.access(&ca, &ca.identity("pdbmux"));
    let report = of_one(front.url(), access.clone()).await;
    let text = |report: &Report, aspect| found(report, aspect).text.clone();
    assert!(text(&report, Aspect::Certificate).starts_with("puppetdb until "));
    assert!(text(&report, Aspect::ClientCertificate).starts_with("pdbmux until "));
    assert_eq!(report.verdict(Strictness::Strict), Ok(()));

    stub.on(
        "/pdb/meta/v1/version",
        Answer::status(403, "Permission denied"),
    );
    let report = of_one(front.url(), access.clone()).await;
    assert!(text(&report, Aspect::Authorization).starts_with("it does not allow pdbmux: add"));

    let nothing_shown = Access {
        cert: None,
        key: None,
        ..access.clone()
    };
    let report = of_one(front.url(), nothing_shown).await;
    assert_eq!(
        text(&report, Aspect::Authorization),
        "it wants a client certificate, and none is configured: set cert and key"
    );

    // One cause is one failure.
    let ended = files.access(&ca, &ca.identity_that("pdbmux", Ends::Ended));
    let report = of_one(front.url(), ended).await;
    assert_eq!(
        text(&report, Aspect::ClientCertificate),
        "pdbmux ended on 2021-01-01"
    );
    let findings = report.backends[0].findings.iter();
    let failed: Vec<_> = findings
        .filter(|finding| finding.outcome == Outcome::Fail)
        .map(|finding| finding.aspect)
        .collect();
    assert_eq!(failed, [Aspect::ClientCertificate]);
    assert_eq!(
        text(&report, Aspect::Authorization),
        "not looked at, since the client certificate fails"
    );

    files.access(&ca, &ca.identity("pdbmux"));
    let strange = files.write("strange-ca.pem", &other.certificate);
    let mistrusted = Access {
        ca: Some(strange),
        ..access
    };
    let report = of_one(front.url(), mistrusted).await;
    let certificate = found(&report, Aspect::Certificate);
    assert_eq!(certificate.outcome, Outcome::Fail);
    assert!(
        certificate
            .text
            .starts_with("its certificate leads to none that the ca")
    );
}
