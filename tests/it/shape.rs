//! The general shape: one address, several backends, one answer (R001-R015).

use crate::harness::{Pdbmux, SHORT, target};
use crate::stub::{Answer, Gate, Stub, nodes_body};

const NODES: &str = "/pdb/query/v4/nodes";

fn node(certname: &str) -> String {
    nodes_body(&[(certname, "")])
}

#[tokio::test]
async fn r001_any_number_of_backends_answers_as_one() {
    let mut stubs = Vec::new();
    for number in 0..3 {
        let stub = Stub::start().await;
        stub.on(NODES, node(&format!("n{number}")));
        stubs.push(stub);
        let all: Vec<_> = stubs.iter().collect();
        let mux = Pdbmux::start(&all).await;
        let response = mux.get(NODES).await;
        let of = stubs.len();
        assert_eq!(response.json().as_array().unwrap().len(), of);
        assert_eq!(response.backends(), Some(&*format!("{of}/{of}")));
    }
}

#[tokio::test]
async fn r002_a_name_ranks_no_backend() {
    let (old, new) = (Stub::start().await, Stub::start().await);
    old.on(NODES, nodes_body(&[("n", "2024-05-01T10:00:00.000Z")]));
    new.on(NODES, nodes_body(&[("n", "2024-05-02T10:00:00.000Z")]));
    for (names, newer) in [(["a", "z"], "z"), (["z", "a"], "a"), (["-1", "0"], "0")] {
        let mux = Pdbmux::with(&[&old, &new], |config| {
            for (backend, name) in config.backends.iter_mut().zip(names) {
                backend.name = name.to_owned();
            }
        })
        .await;
        assert_eq!(mux.get(NODES).await.json()[0]["pdbmux_source"], newer);
    }
}

#[tokio::test]
async fn r003_the_configured_order_decides_whoever_answers_first() {
    let (a, b, gate) = (Stub::start().await, Stub::start().await, Gate::new());
    a.on(
        NODES,
        Answer::json(r#"[{"certname":"n","of":"a"}]"#).behind(&gate),
    );
    b.on(NODES, r#"[{"certname":"m"},{"certname":"n","of":"b"}]"#);
    let mux = Pdbmux::with(&[&a, &b], |config| config.source_fact_enabled = false).await;
    let asking = mux.get(NODES);
    let opening = async {
        b.until_seen(1).await;
        gate.open();
    };
    let (response, ()) = tokio::join!(asking, opening);
    assert_eq!(
        response.ok(),
        r#"[{"certname":"n","of":"a"},{"certname":"m"}]"#
    );
}

#[tokio::test]
async fn r004_other_methods_reach_no_backend() {
    let a = Stub::start().await;
    let mux = Pdbmux::start(&[&a]).await;
    for (path, allow) in [
        (NODES, "GET, POST"),
        ("/pdb/query/v4/environments", "GET, POST"),
        ("/pdb/query/v4", "GET, POST"),
        ("/pdb/query/v4/reports/h/logs", "GET, POST"),
        ("/pdb/meta/v1/version", "GET"),
        ("/metrics/v2/read/x", "GET"),
        ("/metrics/v2", "GET"),
        ("/metrics/v1/mbeans", "GET"),
    ] {
        for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND"] {
            if allow.contains(method) {
                continue;
            }
            let mut client = mux.connect().await;
            client
                .send(format!(
                    "{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
                ))
                .await;
            let response = client.response().await;
            assert_eq!(
                (response.status, response.header("allow")),
                (405, Some(allow))
            );
            let sentence = format!("pdbmux answers this path by {allow} only");
            assert_eq!(response.text(), sentence);
        }
    }
    assert_eq!(a.targets(), [""; 0]);
}

#[tokio::test]
async fn r005_the_query_is_forwarded_as_it_was_written() {
    let a = Stub::start().await;
    a.on(NODES, "[]").on("/pdb/query/v4/facts", "[]").fresh(&[]);
    let mux = Pdbmux::start(&[&a]).await;
    for path in [NODES, "/pdb/query/v4/facts"] {
        for raw in [
            "query=%5b%22~%22,+%22certname%22%2C%20%22%5e%5C%5C%22%5D",
            "query=[%22=%22,%22certname%22,%22a%22]",
            "query=nodes%7B%7D&origin=puppetboard",
            "query=",
            "pretty=no&query=%5B%22%3D%22%2C%22name%22%2C%22pdbmux_source%22%5D",
        ] {
            mux.get(&format!("{path}?{raw}")).await.ok();
            assert_eq!(a.asked().pop().unwrap(), format!("{path}?{raw}"));
        }
    }
}

#[tokio::test]
async fn r006_all_backends_are_asked_before_any_has_answered() {
    let (a, b, gate) = (Stub::start().await, Stub::start().await, Gate::new());
    for stub in [&a, &b] {
        stub.otherwise(Answer::json("[]").behind(&gate));
    }
    let mux = Pdbmux::start(&[&a, &b]).await;
    let count = target(NODES, &[("query", r#"["extract",[["function","count"]]]"#)]);
    for path in [
        NODES,
        &count,
        "/pdb/query/v4/facts",
        "/pdb/query/v4/facts/os",
    ] {
        let before = [a.seen().len(), b.seen().len()];
        let asked = async {
            a.until_seen(before[0] + 1).await;
            b.until_seen(before[1] + 1).await;
            gate.open();
        };
        let (response, ()) = tokio::join!(mux.get(path), asked);
        response.ok();
    }
}

#[tokio::test]
async fn r008_survivors_are_merged_and_the_missing_named() {
    let (a, b, c) = (Stub::start().await, Stub::closed(), Stub::start().await);
    a.on(NODES, node("n1"));
    c.on(NODES, Answer::status(500, "oh"));
    let mux = Pdbmux::start(&[&a, &b, &c]).await;
    let response = mux.get(NODES).await;
    assert!(response.ok().contains("n1"));
    assert_eq!(response.backends(), Some("1/3"));
    assert_eq!(
        response.missing(),
        ["pdb-b; reason=unreachable", "pdb-c; reason=status-500"]
    );
}

#[tokio::test]
async fn r009_with_no_backend_left_it_is_502_without_internals() {
    let (a, b) = (Stub::closed(), Stub::start().await);
    b.otherwise(Answer::reset());
    let mux = Pdbmux::start(&[&a, &b]).await;
    for path in [
        NODES,
        "/pdb/query/v4/facts",
        "/pdb/query/v4/environments",
        "/pdb/query/v4/nodes/n",
    ] {
        let response = mux.get(path).await;
        assert_eq!(response.status, 502);
        assert_eq!(
            response.text(),
            r#"{"error":"no backend gave a usable answer (pdb-a: unreachable, pdb-b: unreachable)"}"#
        );
        assert_eq!(
            response.header("content-type"),
            Some("application/json;charset=utf-8")
        );
    }
}

#[tokio::test]
async fn the_listener_is_up_while_all_backends_are_down_and_serves_when_one_comes() {
    let a = Stub::start().await;
    a.otherwise(Answer::reset());
    let mux = Pdbmux::start(&[&a]).await;
    assert_eq!(mux.get(NODES).await.status, 502);
    a.on(NODES, "[]");
    assert_eq!(mux.get(NODES).await.ok(), "[]");
}

#[tokio::test]
async fn r010_records_keep_every_byte() {
    let records = [
        r#"{"certname":"n1", "x" : 1.10e+05,"x":2,"deep":{"a":[ {} ,"]"]}}"#,
        r#"{"certname":"n2","big":123456789012345678901234567890,"text":"\u00e9\/é\ud83d\ude00"}"#,
        r#"{"report_timestamp":null,"certname":"n3","unknown":[true,false,null,-0.0]}"#,
    ];
    let a = Stub::start().await;
    a.on(NODES, format!("[ {} ]", records.join(" ,\n")));
    let mux = Pdbmux::with(&[&a], |config| config.source_fact_enabled = false).await;
    assert_eq!(
        mux.get(NODES).await.ok(),
        format!("[{}]", records.join(" ,\n"))
    );
}

#[tokio::test]
async fn r011_a_silent_backend_costs_the_timeout_and_no_more() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    a.otherwise(Answer::hung());
    b.on(NODES, node("n1"))
        .on("/pdb/query/v4/environments", "[]");
    b.on("/pdb/query/v4/facts", "[]").fresh(&[]);
    let mux = Pdbmux::with(&[&a, &b], |config| config.timeout = 2 * SHORT).await;
    for path in [NODES, "/pdb/query/v4/facts"] {
        let start = std::time::Instant::now();
        let response = mux.get(path).await;
        response.ok();
        assert_eq!(response.missing(), ["pdb-a; reason=timeout"]);
        assert!(
            start.elapsed() < 4 * SHORT,
            "{path} took {:?}",
            start.elapsed()
        );
    }
    assert_eq!(mux.get("/pdb/query/v4/environments").await.ok(), "[]");
}

#[tokio::test]
async fn r012_merged_answers_have_puppetdbs_own_content_type() {
    let a = Stub::start().await;
    let plain = Answer::with(200, &[("Content-Type", "application/json")], "[]");
    a.on(NODES, plain.clone())
        .on("/pdb/query/v4/facts", plain)
        .fresh(&[]);
    let mux = Pdbmux::start(&[&a]).await;
    for path in [
        NODES,
        "/pdb/query/v4/facts",
        "/pdb/query/v4/facts/pdbmux_source",
    ] {
        let response = mux.get(path).await;
        response.ok();
        assert_eq!(
            response.header("content-type"),
            Some("application/json;charset=utf-8")
        );
    }
}

#[tokio::test]
async fn r013_a_total_is_sent_only_when_asked_for() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    for stub in [&a, &b] {
        stub.on(NODES, Answer::counted(3, "[]"));
    }
    let mux = Pdbmux::start(&[&a, &b]).await;
    assert_eq!(mux.get(NODES).await.header("x-records"), None);
    let response = mux.ask(NODES, &[("include_total", "false")]).await;
    assert_eq!(response.header("x-records"), None);
    let response = mux.ask(NODES, &[("include_total", "true")]).await;
    assert_eq!(response.header("x-records"), Some("6"));
    assert!(a.targets()[2].ends_with("?include_total=true"));
}

#[tokio::test]
async fn r014_contributors_are_counted_against_the_configured() {
    let (a, b) = (Stub::start().await, Stub::start().await);
    a.on(NODES, "[]");
    b.on(NODES, "[]");
    let mux = Pdbmux::start(&[&a, &b]).await;
    let response = mux.get(NODES).await;
    assert_eq!(
        (response.backends(), response.missing()),
        (Some("2/2"), vec![])
    );
    b.on(NODES, "[{]");
    let response = mux.get(NODES).await;
    assert_eq!(response.backends(), Some("1/2"));
    assert_eq!(response.missing(), ["pdb-b; reason=damaged"]);
}

#[tokio::test]
async fn r015_paths_are_put_behind_the_base_url() {
    let a = Stub::start().await;
    a.on("/under/a%20path/pdb/query/v4/nodes", "[]")
        .on("/under/a%20path/pdb/query/v4/environments", "[]");
    let mux = Pdbmux::with(&[&a], |config| {
        config.backends[0].url = format!("{}/under/a%20path/", a.url()).parse().unwrap();
    })
    .await;
    mux.get(NODES).await.ok();
    mux.get("/pdb/query/v4/environments").await.ok();
}
