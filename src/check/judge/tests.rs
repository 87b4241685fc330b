use super::*;
use Outcome::{Fail, Ok as Fine, Skipped, Warn};

fn answer(status: u16, body: &str) -> Said {
    Said::Answer {
        status,
        body: Bytes::copy_from_slice(body.as_bytes()),
    }
}

fn silent() -> Said {
    Said::Nothing("nothing came for 1s".to_owned())
}

fn moment(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn until(name: &str, day: &str) -> Certificate {
    Certificate {
        name: name.to_owned(),
        until: moment(&format!("{day}T00:00:00Z")),
    }
}

#[track_caller]
fn holds(found: &Finding, outcome: Outcome, text: &str) {
    assert_eq!(
        (found.outcome, found.text.contains(text)),
        (outcome, true),
        "{found:?} lacks {text:?}"
    );
}

#[test]
fn a_certificate_warns_a_month_before_it_ends_and_fails_after() {
    let now = moment("2026-06-01T12:00:00Z");
    for (day, outcome, text, days) in [
        ("2026-05-31", Fail, "pdb ended on 2026-05-31", -2),
        ("2026-06-02", Warn, "pdb ends in 0 days, on 2026-06-02", 0),
        ("2026-07-01", Warn, "pdb ends in 29 days, on 2026-07-01", 29),
        ("2026-07-02", Fine, "pdb until 2026-07-02, 30 days left", 30),
    ] {
        let found = certificate(Ok(vec![until("pdb", day)]), &[], now);
        holds(&found, outcome, text);
        assert_eq!(found.measure, Some(Measure::Days(days)));
        let shown = Ok(vec![until("pdb", day)]);
        holds(&client_certificate(Some(&shown), now), outcome, text);
    }
    holds(&client_certificate(None, now), Skipped, "none");
}

#[test]
fn an_authority_that_ends_before_its_certificate_is_told() {
    let now = moment("2026-06-01T12:00:00Z");
    let own = || Ok(vec![until("pdb", "2027-06-01")]);
    let soon = [until("Puppet CA", "2026-06-11")];
    let found = certificate(own(), &soon, now);
    holds(
        &found,
        Warn,
        "of those it leads to, Puppet CA ends in 9 days",
    );
    assert_eq!(found.measure, Some(Measure::Days(9)));
    for later in ["2026-09-01", "2036-06-01"] {
        holds(&certificate(own(), &[until("CA", later)], now), Fine, "pdb");
    }
    let chain = Ok(vec![until("pdb", "2027-06-01"), soon[0].clone()]);
    holds(&certificate(chain, &[], now), Warn, "Puppet CA");
    let broken = Err(Failure::Tls(TlsError::NoTls));
    holds(&certificate(broken, &soon, now), Fail, "does not speak TLS");
}

#[test]
fn who_is_not_let_in_is_told_what_to_do() {
    let own = until("pdbmux.example.com", "2030-01-01");
    let received = |status| {
        Ok(Received {
            scan: None,
            status,
            content_type: None,
            total: None,
            body: Bytes::new(),
        })
    };
    for (status, shown, outcome, text) in [
        (200, None, Fine, "answers"),
        (
            401,
            None,
            Fail,
            "set user and password, or a token in headers",
        ),
        (
            403,
            Some(&own),
            Fail,
            "does not allow pdbmux.example.com: add that name",
        ),
        (403, None, Fail, "set cert and key"),
        (404, Some(&own), Fail, "no PuppetDB at its url"),
        (503, Some(&own), Fail, "starting, or in maintenance"),
        (500, Some(&own), Fail, "status 500"),
    ] {
        holds(&authorization(&received(status), shown), outcome, text);
    }
    let refused = Err(Failure::Tls(TlsError::Wanted));
    holds(&authorization(&refused, None), Fail, "set cert and key");
}

#[test]
fn versions_are_told_apart_by_their_numbers() {
    for (version, outcome, text) in [
        ("6.22.1", Warn, "older than 7.12"),
        ("7.11.0", Warn, "older than 7.12"),
        ("7.12.1", Fine, "PuppetDB 7.12.1"),
        ("8.8.2-SNAPSHOT", Fine, "PuppetDB 8.8.2-SNAPSHOT"),
        ("8.15.0", Fine, "8.15.0, by its number an OpenVoxDB"),
        ("9.0.0-beta1", Fine, "OpenVoxDB"),
        ("nine", Warn, "no version"),
    ] {
        let said = answer(200, &format!(r#"{{"version":"{version}"}}"#));
        holds(&super::version(&said), outcome, text);
    }
    holds(
        &super::version(&answer(200, "[]")),
        Warn,
        "not what a PuppetDB says",
    );
    holds(&super::version(&silent()), Warn, "nothing came for 1s");
}

#[test]
fn a_clock_is_off_only_beyond_what_the_question_took() {
    let ours = moment("2026-06-01T12:00:00Z");
    for (theirs, half, outcome, text) in [
        ("2026-06-01T12:00:00Z", 0, Fine, "0.0 s ahead"),
        ("2026-06-01T12:00:05Z", 0, Fine, "5.0 s ahead"),
        (
            "2026-06-01T12:00:05.1Z",
            0,
            Warn,
            "5.1 s ahead: a node's owner",
        ),
        ("2026-06-01T11:59:50Z", 0, Warn, "10.0 s behind"),
        ("2026-06-01T11:59:50Z", 6, Fine, "10.0 s behind"),
    ] {
        let clocks = Clocks {
            theirs: moment(theirs),
            ours,
            half: SignedDuration::from_secs(half),
        };
        holds(&clock(Ok(clocks)), outcome, text);
    }
    holds(&clock(Err("it is mute".to_owned())), Warn, "it is mute");
}

#[test]
fn what_a_backend_answers_decides_the_rest() {
    let lists = |nodes: &str, facts: &str| [answer(200, nodes), answer(200, facts)];
    let cases = [
        (
            collation(&lists(r#"[{"certname":"a"}]"#, r#"["Z","a"]"#)),
            Fine,
            "by bytes",
        ),
        (
            collation(&lists(r#"[{"certname":"a"}]"#, r#"["a","Z"]"#)),
            Warn,
            "does not order text by bytes",
        ),
        (collation(&lists("[]", "[]")), Fine, "unknown"),
        (collation(&[answer(400, ""), silent()]), Fail, "status 400"),
        (pql(&answer(200, r#"["from","nodes"]"#)), Fine, "translates"),
        (pql(&answer(400, "what?")), Warn, "status 400"),
        (metrics(&answer(200, r#"{"status":200}"#)), Fine, "tells"),
        (
            metrics(&answer(200, r#"{"status":404}"#)),
            Warn,
            "Jolokia says 404",
        ),
        (
            metrics(&answer(200, r#"{"status":403}"#)),
            Warn,
            "auth.conf",
        ),
        (metrics(&answer(403, "Forbidden")), Warn, "auth.conf"),
        (metrics(&silent()), Warn, "nothing came"),
        (
            nodes(&lists(r#"[{"count":7}]"#, r#"[{"count":7}]"#)),
            Fine,
            "7",
        ),
        (
            nodes(&lists(r#"[{"count":7}]"#, r#"[{"count":5}]"#)),
            Fine,
            "7, 2 of them inactive",
        ),
        (nodes(&[silent(), silent()]), Fail, "could not be counted"),
    ];
    for (found, outcome, text) in cases {
        holds(&found, outcome, text);
    }
}

#[test]
fn a_name_without_an_address_fails() {
    let found = name(Ok(Some(vec!["::1".parse().unwrap()])));
    holds(&found, Fine, "::1");
    holds(&name(Ok(None)), Fail, "in time");
    let unknown = LookupError::Unknown("pdb".to_owned());
    holds(&name(Err(unknown)), Fail, "the host pdb has no address");
}
