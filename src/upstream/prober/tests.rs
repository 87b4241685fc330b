use std::cell::{Cell, RefCell};
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use pdbmux_core::health::State;
use tokio::time::Instant;

use super::*;
use crate::config::BackendConfig;

const PAUSE: Duration = Duration::from_secs(10);
const PATH: &str = "/status/v1/services";

/// When probes begin, in seconds from the start, if each takes as long as the next of `takes`.
async fn begun(takes: &[u64]) -> Vec<u64> {
    let (start, begun) = (Instant::now(), RefCell::new(Vec::new()));
    let mut probes = Box::pin(repeat(
        PAUSE,
        || async {
            let at = begun.borrow().len();
            begun.borrow_mut().push(start.elapsed().as_secs());
            match takes.get(at) {
                Some(seconds) => tokio::time::sleep(Duration::from_secs(*seconds)).await,
                None => std::future::pending().await,
            }
            Ok((200, Vec::new()))
        },
        |_| {},
    ));
    // More than all of them take.
    let _ = timeout(Duration::from_secs(1_000), &mut probes).await;
    drop(probes);
    begun.into_inner()
}

#[tokio::test(start_paused = true)]
async fn r155_r156_the_first_probe_is_made_at_once_and_others_after_the_interval() {
    assert_eq!(begun(&[0, 0, 0]).await, [0, 10, 20, 30]);
    assert_eq!(begun(&[4, 0, 9]).await, [0, 10, 20, 30]);
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_is_late_delays_the_next_and_nothing_piles_up() {
    assert_eq!(begun(&[35, 0, 0]).await, [0, 35, 45, 55]);
}

#[tokio::test(start_paused = true)]
async fn each_probe_is_learnt_from() {
    let replies = [Ok((200, Vec::new())), Ok((404, Vec::new()))];
    let replies = RefCell::new(Vec::from(replies));
    let learnt = RefCell::new(Vec::new());
    let count = Cell::new(0);
    let probing = repeat(
        PAUSE,
        || async {
            count.set(count.get() + 1);
            match replies.borrow_mut().pop() {
                Some(reply) => reply,
                None => Err(Failure::Timeout(PAUSE)),
            }
        },
        |probed| learnt.borrow_mut().push((probed.finding, probed.error)),
    );
    let _ = timeout(PAUSE.mul_f32(2.5), probing).await;
    let error = |text: &str| Some(text.to_owned());
    assert_eq!(
        learnt.into_inner(),
        [
            (Finding::Refused(404), error("it answered with status 404")),
            (Finding::Healthy, None),
            (Finding::Unanswered, error("nothing came for 10s")),
        ]
    );
}

/// A log as text.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        log.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What is logged while a backend's probes end so: a status, or none for no answer.
fn logged(statuses: &[Option<u16>]) -> (Vec<String>, State) {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(move || writer.clone())
        .with_ansi(false)
        .with_target(false)
        .without_time()
        .finish();
    let config = Config {
        backends: vec![BackendConfig {
            name: "pdb-a".to_owned(),
            url: "http://puppetdb.example:8080".parse().unwrap(),
            access: crate::config::Access::default(),
        }],
        ..Config::default()
    };
    let upstream = Upstream::new(&config);
    let member = upstream.members().next().unwrap().id;
    tracing::subscriber::with_default(subscriber, || {
        for status in statuses {
            let answered = status.map(|status| (status, Vec::new()));
            let probed = Probed::of(answered.ok_or(Failure::Timeout(PAUSE)));
            upstream.learn(member, PATH, &probed);
        }
    });
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let lines = text.lines().map(|line| line.trim().to_owned()).collect();
    (lines, upstream.standing_of(member).state)
}

#[test]
fn r184_r185_only_transitions_are_logged_with_their_backend_path_and_status() {
    let (lines, state) = logged(&[
        Some(200),
        Some(200),
        Some(503),
        Some(503),
        Some(503),
        Some(503),
        Some(200),
        Some(200),
        Some(200),
    ]);
    assert_eq!(state, State::Healthy);
    let at = "backend=\"pdb-a\" path=\"/status/v1/services\"";
    assert_eq!(
        lines,
        [
            format!(
                "WARN a backend is out of service {at} status=503 \
                 why=\"it answered with status 503\""
            ),
            format!("INFO a backend is in service again {at} status=200"),
        ]
    );
}

#[test]
fn r168_a_probe_that_is_refused_is_logged_once_with_its_status() {
    let (lines, state) = logged(&[Some(404); 9]);
    assert_eq!(state, State::ProbeUnsupported);
    assert_eq!(lines.len(), 1, "{lines:#?}");
    for part in ["WARN", "pdb-a", PATH, "status=404", "health_probe_path"] {
        assert!(lines[0].contains(part), "{part}: {lines:#?}");
    }
    let (lines, _) = logged(&[None, None, None, None, Some(200)]);
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(lines[0].contains("nothing came for 10s") && !lines[0].contains("status="));
    assert!(lines[1].starts_with("INFO") && lines[1].contains("is answered"));
}

#[test]
fn r171_a_probe_that_is_refused_later_is_logged_loudly_at_the_first() {
    let (lines, state) = logged(&[Some(200), Some(403), Some(403), Some(403), Some(403)]);
    assert_eq!(state, State::Unhealthy);
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(lines[0].starts_with("ERROR") && lines[0].contains("status=403"));
    assert!(lines[1].starts_with("WARN") && lines[1].contains("out of service"));
}
