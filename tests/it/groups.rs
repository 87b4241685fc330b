//! Backends that stand in for one another, being on one database.

mod damaged;

use std::net::Ipv4Addr;
use std::time::Duration;

use pdbmux::config::{Access, BackendConfig, Config, Detection};
use pdbmux_core::settings::Strategy;
use pdbmux_samples::{Server, Timestamp, migration, serve};
use serde_json::{Value, json};

use crate::client::in_time;
use crate::harness::{Pdbmux, SHORT};
use crate::seeing::Scrape;
use crate::stub::{Answer, Gate, Stub};

const NODES: &str = "/pdb/query/v4/nodes";
const COUNT: (&str, &str) = ("query", r#"["extract",[["function","count"]]]"#);

/// Three backends that have these many nodes, of which the first and the last are a group.
async fn trio() -> [Stub; 3] {
    let stubs = [
        Stub::start().await,
        Stub::start().await,
        Stub::start().await,
    ];
    for (stub, nodes) in stubs.iter().zip([3, 2, 3]) {
        stub.otherwise(format!(r#"[{{"count":{nodes}}}]"#));
    }
    stubs
}

async fn grouped(stubs: &[Stub; 3], change: impl FnOnce(&mut Config)) -> Pdbmux {
    Pdbmux::with(&stubs.each_ref(), |config| {
        for at in [0, 2] {
            config.backends[at].access.group = Some("eu".to_owned());
        }
        config.timeout = SHORT;
        change(config);
    })
    .await
}

fn asked(stubs: &[Stub; 3]) -> [usize; 3] {
    stubs.each_ref().map(|stub| stub.asked().len())
}

#[tokio::test]
async fn what_a_group_holds_is_counted_once_and_told_by_its_name() {
    let stubs = trio().await;
    let mux = grouped(&stubs, |_| {}).await;
    let response = mux.ask(NODES, &[COUNT]).await;
    assert_eq!(
        (response.ok(), response.backends()),
        (r#"[{"count":5}]"#, Some("2/2"))
    );
    assert_eq!(asked(&stubs), [1, 1, 0]);
    stubs[0].on(NODES, r#"[{"certname":"n"}]"#);
    stubs[1].on(NODES, "[]");
    let response = mux.get(NODES).await;
    assert_eq!(response.ok(), r#"[{"certname":"n","pdbmux_source":"eu"}]"#);
}

#[tokio::test]
pub(crate) async fn whatever_becomes_of_one_of_a_group_another_answers_in_its_place_and_goes_on_to()
{
    for broken in [
        Answer::reset(),
        Answer::hung(),
        Answer::status(500, "oh"),
        Answer::status(503, "not ready"),
        Answer::promising(100).send(r#"[{"cou"#).close(),
        Answer::chunked().chunk(r#"[{"cou"#).hang(),
    ] {
        let stubs = trio().await;
        let mux = grouped(&stubs, |_| {}).await;
        mux.ask(NODES, &[COUNT]).await.ok();
        stubs[0].otherwise(broken.clone());
        for _ in 0..2 {
            let response = mux.ask(NODES, &[COUNT]).await;
            assert_eq!(response.ok(), r#"[{"count":5}]"#, "{broken:?}");
            assert_eq!(
                (response.backends(), response.missing()),
                (Some("2/2"), vec![])
            );
        }
        // Only the first of these came to the one that is broken. What ended a connection that was
        // kept is asked once more on another.
        let [first, others, second] = asked(&stubs);
        assert!((2..=3).contains(&first), "{first}");
        assert_eq!((others, second), (3, 2));
    }
}

#[tokio::test]
pub(crate) async fn an_answer_that_is_passed_on_and_ends_before_its_first_byte_is_another_ones() {
    let path = "/pdb/query/v4/environments";
    for broken in [Answer::promising(2).close(), Answer::status(500, "oh")] {
        let stubs = trio().await;
        let mux = grouped(&stubs, |_| {}).await;
        stubs[0].on(path, broken);
        stubs[2].on(path, r#"[{"name":"production"}]"#);
        assert_eq!(mux.get(path).await.ok(), r#"[{"name":"production"}]"#);
        assert_eq!(asked(&stubs), [1, 0, 1]);
    }
}

#[tokio::test]
async fn a_group_of_which_none_answers_has_failed_like_any_backend() {
    let stubs = trio().await;
    let mux = grouped(&stubs, |_| {}).await;
    stubs[0].otherwise(Answer::reset());
    stubs[2].otherwise(Answer::status(500, "oh"));
    let response = mux.ask(NODES, &[COUNT]).await;
    assert_eq!(
        (response.ok(), response.backends()),
        (r#"[{"count":2}]"#, Some("1/2"))
    );
    assert_eq!(response.missing(), ["eu; reason=status-500"]);
}

#[tokio::test]
async fn what_one_of_a_group_refuses_no_other_is_asked() {
    let stubs = trio().await;
    let mux = grouped(&stubs, |_| {}).await;
    stubs[0].otherwise(Answer::status(400, "no such column"));
    stubs[1].otherwise(Answer::status(400, "no such column"));
    let response = mux.ask(NODES, &[COUNT]).await;
    assert_eq!((response.status, response.text()), (400, "no such column"));
    assert_eq!(asked(&stubs), [1, 1, 0]);
}

#[tokio::test]
pub(crate) async fn who_does_not_begin_to_answer_in_time_is_not_waited_for_if_another_does() {
    let stubs = trio().await;
    stubs[0].otherwise(Answer::hung());
    let mux = grouped(&stubs, |config| {
        config.timeout = Duration::from_secs(30);
        config.backends[0].access.hedge_after = Some(Duration::from_millis(5));
    })
    .await;
    let response = mux.ask(NODES, &[COUNT]).await;
    assert_eq!(
        (response.ok(), response.backends()),
        (r#"[{"count":5}]"#, Some("2/2"))
    );
    stubs[0].until_hung_up_on().await;
    assert_eq!(hedges(&mux).await, [1, 1, 0]);
}

/// How many questions were asked of a second as well, how many that one answered, and how many were
/// not asked twice though they were slow.
async fn hedges(mux: &Pdbmux) -> [i64; 3] {
    let scrape = Scrape::of(mux).await;
    ["hedges", "hedges_won", "hedges_withheld"]
        .map(|name| scrape.sum(&format!("pdbmux_{name}_total"), &[("backend", "eu")]))
}

#[tokio::test]
async fn of_two_that_are_asked_the_good_answer_counts() {
    let stubs = trio().await;
    // The one that is asked first answers once the other, which is asked as well, has failed.
    let gate = Gate::new();
    stubs[0].otherwise(Answer::json(r#"[{"count":3}]"#).behind(&gate));
    stubs[2].otherwise(Answer::status(503, "not ready"));
    let mux = grouped(&stubs, |config| {
        config.hedge_after = Duration::from_millis(5);
    })
    .await;
    let opens = async {
        stubs[2].until_seen(1).await;
        gate.open();
    };
    let (response, ()) = tokio::join!(mux.ask(NODES, &[COUNT]), opens);
    assert_eq!(
        (response.ok(), response.backends()),
        (r#"[{"count":5}]"#, Some("2/2"))
    );
}

#[tokio::test]
async fn no_more_than_every_tenth_question_is_asked_twice() {
    const QUESTIONS: usize = 40;
    let stubs = trio().await;
    for stub in [&stubs[0], &stubs[2]] {
        let slow = Answer::default().pause(Duration::from_millis(10));
        stub.otherwise(slow.send("HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n[{\"count\":3}]"));
    }
    let mux = grouped(&stubs, |config| {
        config.hedge_after = Duration::from_nanos(1);
    })
    .await;
    for _ in 0..QUESTIONS {
        assert_eq!(mux.ask(NODES, &[COUNT]).await.ok(), r#"[{"count":5}]"#);
    }
    let [first, _, second] = asked(&stubs);
    let twice = first + second - QUESTIONS;
    assert!((1..=1 + QUESTIONS / 10).contains(&twice), "{twice}");
    let [sent, _, withheld] = hedges(&mux).await;
    let sent = usize::try_from(sent).unwrap();
    // One that was given up may not have come to be seen.
    assert!((twice..=1 + QUESTIONS / 10).contains(&sent), "{sent}");
    assert!(withheld > 0);
}

#[tokio::test]
async fn healthz_lists_those_of_a_group_beneath_it() {
    let stubs = trio().await;
    let mux = grouped(&stubs, |_| {}).await;
    stubs[0].otherwise(Answer::status(500, "oh"));
    let response = mux.get("/healthz").await;
    let health = response.json();
    assert_eq!(
        (response.status, &health["status"]),
        (200, &json!("degraded"))
    );
    let told: Vec<_> = health["backends"]
        .as_array()
        .unwrap()
        .iter()
        .map(|of| (of["name"].clone(), of["reachable"].clone()))
        .collect();
    assert_eq!(
        told,
        [(json!("eu"), json!("ok")), (json!("pdb-b"), json!("ok"))]
    );
    assert!(health["backends"][1].get("members").is_none());
    let members = &health["backends"][0]["members"];
    assert_eq!(members[0]["name"], "pdb-a");
    assert_eq!(members[0]["reachable"], "it answered with status 500");
    assert_eq!(
        (&members[1]["name"], &members[1]["reachable"]),
        (&json!("pdb-c"), &json!("ok"))
    );
    stubs[2].otherwise(Answer::reset());
    let health = mux.get("/healthz").await.json();
    assert_eq!(
        health["backends"][0]["reachable"],
        "it answered with status 500"
    );
}

/// The backends that are told to be on one database.
async fn shared(mux: &Pdbmux) -> Option<Value> {
    let health = mux.get("/healthz").await.json();
    health.get("shared_databases").cloned()
}

#[tokio::test]
async fn backends_on_one_database_that_are_no_group_are_noticed_unless_that_is_turned_off() {
    let report = |at: u8| {
        json!({
            "hash": at.to_string(),
            "end_time": format!("2024-05-01T10:0{at}:00.000Z"),
            "receive_time": format!("2024-05-01T10:0{at}:02.003Z"),
        })
    };
    let reports = json!([report(3), report(2), report(1)]).to_string();
    for detection in [Detection::On, Detection::Off] {
        let stubs = trio().await;
        for at in [0, 2] {
            stubs[at].on("/pdb/query/v4/reports", &*reports);
        }
        let config = |config: &mut Config| config.detect_shared_database = detection;
        let mux = Pdbmux::with(&stubs.each_ref(), config).await;
        if detection == Detection::On {
            in_time(async { while shared(&mux).await != Some(json!([["pdb-a", "pdb-c"]])) {} })
                .await;
        } else {
            assert_eq!(shared(&mux).await, None);
            assert!(
                stubs[0]
                    .asked()
                    .iter()
                    .all(|target| !target.contains("reports"))
            );
        }
    }
}

/// Three PuppetDBs, the first two of which are on one database, and the third.
async fn samples() -> Vec<(Server, BackendConfig)> {
    let mut samples = Vec::new();
    for (of, name) in [(0, "pdb-1"), (0, "pdb-2"), (1, "pdb-new")] {
        let now = Timestamp::parse("2026-05-01T12:00:00Z").unwrap();
        let estate = migration::samples(now).into_iter().nth(of).unwrap().estate;
        let server = serve(estate, (Ipv4Addr::LOCALHOST, 0).into())
            .await
            .unwrap();
        let url = server.url().parse().unwrap();
        let (name, access) = (name.to_owned(), Access::default());
        samples.push((server, BackendConfig { name, url, access }));
    }
    samples
}

#[tokio::test]
async fn two_on_one_database_answer_everything_as_one_of_them_would() {
    let count = r#"["extract",[["function","count"]]]"#;
    let by_status = r#"["extract",[["function","count"],"status"],["group_by","status"]]"#;
    let questions = [
        (NODES, vec![]),
        (NODES, vec![("query", count)]),
        ("/pdb/query/v4/facts", vec![("query", count)]),
        (
            "/pdb/query/v4/facts",
            vec![("include_total", "true"), ("limit", "3")],
        ),
        ("/pdb/query/v4/reports", vec![("query", by_status)]),
        ("/pdb/query/v4/resources", vec![("query", count)]),
        ("/pdb/query/v4/fact-names", vec![]),
        ("/pdb/query/v4/facts/pdbmux_source", vec![]),
    ];
    for merge in [Strategy::Freshness, Strategy::Static, Strategy::Exact] {
        let mut samples = samples().await;
        let of = async |backends: Vec<BackendConfig>| {
            let configured = |config: &mut Config| {
                (config.backends, config.merge) = (backends, merge);
            };
            Pdbmux::with(&[], configured).await
        };
        let mut grouped: Vec<_> = samples.iter().map(|(_, config)| config.clone()).collect();
        let mut alone = grouped.clone();
        for member in &mut grouped[..2] {
            member.access.group = Some("pdb-old".to_owned());
        }
        alone.remove(1);
        alone[0].name = "pdb-old".to_owned();
        let (grouped, alone) = (of(grouped).await, of(alone).await);
        let mut expected = Vec::new();
        for (path, parameters) in &questions {
            expected.push(alone.ask(path, parameters).await);
        }
        for is_stopped in [false, true] {
            if is_stopped {
                samples[0].0.stop().await;
            }
            for ((path, parameters), expected) in questions.iter().zip(&expected) {
                let response = grouped.ask(path, parameters).await;
                let case = format!("{merge:?} {path} {parameters:?} {is_stopped}");
                assert_eq!(response.ok(), expected.ok(), "{case}");
                for header in ["x-records", "x-backends"] {
                    assert_eq!(response.header(header), expected.header(header), "{case}");
                }
                assert_eq!(response.missing(), [""; 0], "{case}");
            }
        }
    }
}

#[tokio::test]
async fn samples_on_one_database_are_noticed_and_those_that_share_nodes_are_not() {
    let samples = samples().await;
    let mux = Pdbmux::with(&[], |config| {
        config.backends = samples.iter().map(|(_, config)| config.clone()).collect();
        config.detect_shared_database = Detection::On;
    })
    .await;
    let expected = Some(json!([["pdb-1", "pdb-2"]]));
    in_time(async { while shared(&mux).await != expected {} }).await;
}

#[tokio::test]
async fn an_explanation_tells_which_of_a_group_was_asked() {
    let stubs = trio().await;
    let mux = grouped(&stubs, |_| {}).await;
    stubs[0].otherwise(Answer::status(500, "oh"));
    let target = crate::harness::target(NODES, &[COUNT]);
    let mut client = mux.connect().await;
    let explain = "X-Pdbmux-Explain: 1\r\n";
    client
        .send(format!(
            "GET {target} HTTP/1.1\r\nHost: pdbmux\r\n{explain}\r\n"
        ))
        .await;
    let told = client.response().await.json();
    let steps = told["asked"].as_array().unwrap().iter();
    let of_group = steps.filter(|step| step["backend"] == "eu");
    let of_group: Vec<_> = of_group
        .map(|step| (&step["member"], &step["status"]))
        .collect();
    assert_eq!(
        of_group,
        [
            (&json!("pdb-a"), &json!(500)),
            (&json!("pdb-c"), &json!(200))
        ]
    );
}
