//! A backend's life in one run: what is shown, what is logged, and who is asked at each step.

use std::cell::RefCell;
use std::io::{self, Write};
use std::sync::Once;

use super::*;
use crate::harness::SHORT;

/// A backend that is always well, one that has troubles, and one whose probe path is wrong.
struct Story {
    a: Stub,
    b: Stub,
    c: Stub,
    mux: Pdbmux,
}

thread_local! {
    /// The log of the daemon that runs in this thread.
    static LOGGED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

struct Log;

impl Log {
    /// Begins to keep the log. One subscriber serves all threads: with one for each, a place in the code
    /// that another test came to first may never log.
    fn keep() {
        static KEPT: Once = Once::new();
        KEPT.call_once(|| {
            let subscriber = tracing_subscriber::fmt()
                .with_writer(|| Self)
                .with_ansi(false)
                .with_target(false)
                .without_time()
                .finish();
            tracing::subscriber::set_global_default(subscriber).unwrap();
        });
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOGGED.with_borrow_mut(|logged| logged.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What the second backend's state shows in `/healthz`.
struct Shown {
    state: &'static str,
    last_error: Option<&'static str>,
    reachable: &'static str,
    status: &'static str,
}

const WELL: Shown = Shown {
    state: "healthy",
    last_error: None,
    reachable: "ok",
    status: "ok",
};

impl Story {
    /// What the log says of a backend's probes since it was last looked at, without the details.
    fn told() -> Vec<String> {
        let text = String::from_utf8(LOGGED.take()).unwrap();
        let of_probes = text.lines().filter(|line| line.contains(PROBE));
        let told = of_probes.map(|line| {
            let (message, details) = line.split_once(" backend=").unwrap();
            let message = message.trim().split_once(':').map_or(message, |it| it.0);
            let backend = details.split('"').nth(1).unwrap();
            format!("{backend}: {}", message.trim())
        });
        told.collect()
    }

    /// Waits until the second backend shows this, sees whether it is asked, and reads the log.
    async fn comes_to(&self, shown: Shown, told: &[&str]) {
        let is_of = |health: &Value, key: &str, wanted: Option<&str>| {
            let value = &health["backends"][1][key];
            wanted.map_or(value.is_null(), |wanted| {
                value.as_str().is_some_and(|text| text.contains(wanted))
            })
        };
        let health = until(&self.mux, |health| {
            health["backends"][1]["state"] == shown.state
                && is_of(health, "last_error", shown.last_error)
        })
        .await;
        assert!(
            is_of(&health, "reachable", Some(shown.reachable)),
            "{health}"
        );
        assert_eq!(health["status"], shown.status, "{health}");
        let before = [&self.a, &self.b, &self.c].map(|stub| queries(stub).len());
        let response = self.mux.get(NODES).await;
        let after = [&self.a, &self.b, &self.c].map(|stub| queries(stub).len());
        let is_asked = shown.state == "healthy";
        let b = usize::from(is_asked);
        assert_eq!(after, [before[0] + 1, before[1] + b, before[2] + 1]);
        let (of, missing): (_, &[_]) = if is_asked {
            ("3/3", &[])
        } else {
            ("2/3", &["pdb-b; reason=out-of-service"])
        };
        assert_eq!((response.ok(), response.backends()), ("[]", Some(of)));
        assert_eq!(response.missing(), missing);
        assert_eq!(Self::told(), told);
    }
}

const OUT: &str = "pdb-b: WARN a backend is out of service";
const BACK: &str = "pdb-b: INFO a backend is in service again";

#[tokio::test]
async fn a_backend_dies_hangs_starts_is_misconfigured_and_recovers() {
    // R007, R157, R158, R160-R162, R166, R168, R170-R173, R184, R185, R187, R189, R190, R192-R195.
    Log::keep();
    let (a, b) = (backend(running()).await, backend(running()).await);
    let c = backend(Answer::status(404, "no such path")).await;
    let mux = probing_with(&[&a, &b, &c], |config| {
        config.health_probe_timeout = SHORT;
        config.timeout = SHORT;
    })
    .await;
    let story = Story { a, b, c, mux };
    let b = &story.b;
    let becomes = |probe: Answer, answers: Answer| {
        b.on(PROBE, probe)
            .on(REACH, answers.clone())
            .otherwise(answers);
    };
    let down = |last_error, reachable| Shown {
        state: "unhealthy",
        last_error: Some(last_error),
        reachable,
        status: "degraded",
    };
    let well = || Answer::json("[]");

    until_state(&story.mux, 2, "probe_unsupported").await;
    let unverified = "pdb-c: WARN a backend's probe was never answered";
    story.comes_to(WELL, &[unverified]).await;

    // It dies, and recovers.
    becomes(Answer::reset(), Answer::reset());
    let dead = down("no answer", "no answer");
    story.comes_to(dead, &[OUT]).await;
    becomes(running(), well());
    story.comes_to(WELL, &[BACK]).await;

    // It hangs, is started again, which takes a while, and recovers.
    becomes(Answer::hung(), Answer::hung());
    let hung = "nothing came for 250ms";
    story.comes_to(down(hung, hung), &[OUT]).await;
    becomes(starting(), Answer::status(503, "PuppetDB is not ready"));
    let busy = "it answered with status 503";
    story.comes_to(down(busy, busy), &[]).await;
    becomes(running(), well());
    story.comes_to(WELL, &[BACK]).await;

    // Its probe's path is taken away, while it answers queries, and given back.
    becomes(Answer::status(404, "no such path"), well());
    let misconfigured = Shown {
        status: "ok",
        ..down("it answered with status 404", "ok")
    };
    let refused = "pdb-b: ERROR a backend refuses a probe that it used to answer";
    story.comes_to(misconfigured, &[refused, OUT]).await;
    becomes(running(), well());
    story.comes_to(WELL, &[BACK]).await;

    // The one that was never verified has been in service all the time (R166).
    assert_eq!(
        health(&story.mux).await["backends"][2]["state"],
        "probe_unsupported"
    );
}
