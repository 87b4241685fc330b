//! What the cache does while backends fail.

use super::*;

/// Makes both backends fail at everything but what `/healthz` asks.
fn stop(stubs: [&Stub; 2]) {
    for stub in stubs {
        for path in [NODES, FACTS, NAMES] {
            stub.on(path, Answer::reset());
        }
    }
}

#[tokio::test]
async fn r211_while_every_backend_fails_an_older_answer_is_served_with_its_age() {
    let (a, b) = pair().await;
    let mux = with_ttl(&[&a, &b], GONE_AT_ONCE).await;
    let live = mux.get(NAMES).await;
    stop([&a, &b]);
    let aged = in_time(async {
        loop {
            let stale = mux.get(NAMES).await;
            assert_eq!(stale.header("x-cache"), Some("stale"));
            assert_eq!(stale.ok(), live.ok());
            if stale.header("age") != Some("0") {
                return stale;
            }
        }
    })
    .await;
    assert_eq!(aged.header("age"), Some("1"));
    assert_eq!((aged.backends(), aged.missing()), (Some("2/2"), vec![]));
    // What was never asked has no copy.
    let unseen = mux.get(NODES).await;
    assert_eq!((unseen.status, cache(&unseen)), (502, MISS));
    // Whoever is back is heard.
    b.on(NAMES, r#"["back"]"#);
    let back = mux.get(NAMES).await;
    assert_eq!(back.ok(), r#"["back","pdbmux_source"]"#);
    assert_eq!((cache(&back), back.backends()), (MISS, Some("1/2")));
}

#[tokio::test]
async fn a_fresh_answer_is_served_while_every_backend_fails() {
    let (a, b) = pair().await;
    let mux = caching(&[&a, &b]).await;
    mux.get(NAMES).await.ok();
    stop([&a, &b]);
    assert_hit(&mux.get(NAMES).await);
}

#[tokio::test]
async fn r025_r213_refusals_of_all_are_replayed_and_faults_of_all_are_covered() {
    let (a, b) = pair().await;
    let mux = with_ttl(&[&a, &b], GONE_AT_ONCE).await;
    mux.get(NAMES).await.ok();
    let both = |one: u16, other: u16| {
        for path in [NAMES, NODES] {
            a.on(path, Answer::status(one, "why"));
            b.on(path, Answer::status(other, "why"));
        }
    };
    for (one, other, stored, unseen) in [
        (400, 400, 400, 400),
        (404, 404, 404, 404),
        (500, 500, 200, 500),
        (503, 503, 200, 503),
        (400, 500, 200, 502),
        (400, 404, 200, 502),
    ] {
        both(one, other);
        let answer = mux.get(NAMES).await;
        assert_eq!(answer.status, stored, "{one} {other}");
        let expected = if stored == 200 { "stale" } else { "miss" };
        assert_eq!(answer.header("x-cache"), Some(expected));
        let answer = mux.get(NODES).await;
        assert_eq!(
            (answer.status, cache(&answer)),
            (unseen, MISS),
            "{one} {other}"
        );
    }
}

#[tokio::test]
async fn what_is_no_answer_is_never_stored() {
    for failing in [
        Answer::status(400, "no"),
        Answer::status(500, "oh"),
        Answer::reset(),
        Answer::json("[{"),
    ] {
        let (a, b) = pair().await;
        let mux = caching(&[&a, &b]).await;
        a.on(NAMES, failing.clone());
        b.on(NAMES, failing);
        assert_ne!(mux.get(NAMES).await.status, 200);
        a.on(NAMES, "[]");
        b.on(NAMES, "[]");
        let response = mux.get(NAMES).await;
        assert_eq!((response.status, cache(&response)), (200, MISS));
    }
}

#[tokio::test]
async fn r187_a_partial_answer_says_so_also_from_memory() {
    let (a, b) = pair().await;
    b.on(NODES, Answer::reset());
    let mux = caching(&[&a, &b]).await;
    let first = mux.get(NODES).await;
    assert_eq!(cache(&first), MISS);
    b.on(NODES, "[]");
    let second = mux.get(NODES).await;
    assert_hit(&second);
    assert_eq!((second.ok(), second.backends()), (first.ok(), Some("1/2")));
    assert_eq!(second.missing(), first.missing());
    assert_eq!(second.missing().len(), 1);
}

#[tokio::test]
async fn ruling_14_a_partial_answer_does_not_replace_a_complete_one() {
    let (a, b) = pair().await;
    let mux = with_ttl(&[&a, &b], GONE_AT_ONCE).await;
    let complete = mux.get(NODES).await;
    assert_eq!(complete.backends(), Some("2/2"));
    b.on(NODES, Answer::reset());
    let partial = mux.get(NODES).await;
    assert_eq!((cache(&partial), partial.backends()), (MISS, Some("1/2")));
    a.on(NODES, Answer::reset());
    let stale = mux.get(NODES).await;
    assert_eq!(stale.header("x-cache"), Some("stale"));
    assert_eq!((stale.ok(), stale.backends()), (complete.ok(), Some("2/2")));
}

#[tokio::test]
async fn r199_r200_healthz_tells_what_is_held_and_whether_it_is_stale() {
    let (a, b) = pair().await;
    let mux = with_ttl(&[&a, &b], GONE_AT_ONCE).await;
    let told = async || mux.get("/healthz").await.json()["cache"].clone();
    let names = mux.get(NAMES).await.ok().len();
    let expected = serde_json::json!({
        "backend": "memory", "ttl": "1ns", "entries": 1, "stale_entries": 1, "bytes": names,
        "serving_stale": false, "stale_served": 0, "last_stale_served": null,
    });
    assert_eq!(told().await, expected);
    stop([&a, &b]);
    mux.get(NAMES).await.ok();
    mux.get(NAMES).await.ok();
    let stale = told().await;
    assert_eq!(
        (&stale["serving_stale"], &stale["stale_served"]),
        (&true.into(), &2.into())
    );
    let last = stale["last_stale_served"].as_str().unwrap();
    assert!(last.starts_with("20") && last.ends_with('Z'), "{last}");
    // A failure is no answer.
    assert_eq!(mux.get("/pdb/query/v4/nodes").await.status, 502);
    assert_eq!(told().await["serving_stale"], true);
    a.on(NODES, "[]");
    mux.get(NODES).await.ok();
    let live = told().await;
    assert_eq!(
        (&live["serving_stale"], &live["stale_served"]),
        (&false.into(), &2.into())
    );
    assert_eq!(live["last_stale_served"], stale["last_stale_served"]);
}
