//! The estate page: what it is made of, and how it looks in a browser. Its pictures are for people to look at; that nothing is cut off or
//! runs over is measured by the browser itself.

// Clippy allows these in test functions alone, not in what they share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use jiff::{SignedDuration, Timestamp};
use pdbmux::drift::Estate;
use pdbmux::metrics::CacheUse;
use pdbmux::page::history::History;
use pdbmux::page::{Answered, Backend, Certificate, Search, Tone, View, page};
use pdbmux_core::merge::owners::FreshnessMap;
use pdbmux_core::round::BackendId;
use pdbmux_core::settings::Strategy;
use serde_json::json;

use crate::client::Response;
use crate::harness::Pdbmux;
use crate::stub::{Answer, Stub};

const NODES: &str = "/pdb/query/v4/nodes";

/// A backend with these nodes, by certname and the minute of their newest report.
async fn holding(nodes: &[(&str, u32)]) -> Stub {
    let nodes = nodes.iter().map(|(certname, minute)| {
        let report = format!("2026-05-01T12:{minute:02}:00.000Z");
        json!({"certname": certname, "report_timestamp": report})
    });
    let stub = Stub::start().await;
    stub.on(NODES, json!(nodes.collect::<Vec<_>>()).to_string());
    stub
}

async fn with_page(stubs: &[&Stub]) -> Pdbmux {
    Pdbmux::with(stubs, |config| {
        config.admin_listen = Some("127.0.0.1:0".parse().unwrap());
    })
    .await
}

async fn look(mux: &Pdbmux, target: &str) -> Response {
    mux.connect_admin().await.get(target).await
}

#[tokio::test]
async fn operators_see_the_nodes_of_all_backends_and_clients_do_not() {
    let old = holding(&[("<b>web</b>", 1), ("db-1", 1)]).await;
    let new = holding(&[("db-1", 31)]).await;
    let mux = with_page(&[&old, &new]).await;
    let response = look(&mux, "/").await;
    let html = response.ok();
    assert!(html.contains("&#60;b&#62;web&#60;/b&#62;") && !html.contains("<b>"));
    assert!(html.contains("report 30m behind"));
    assert_eq!(
        response.header("content-type"),
        Some("text/html;charset=utf-8")
    );
    let policy = response.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'"));
    // The nodes are kept for their time, and noted as the first of the history.
    let found = look(&mux, "/?certname=db-1&q=zzz").await;
    assert!(found.ok().contains("<strong>pdb-b</strong> owns it."));
    assert!(found.ok().contains("<polyline") && found.ok().contains("No node is like that."));
    assert_eq!((old.seen().len(), new.seen().len()), (1, 1));
    assert_eq!(mux.get("/").await.status, 404);
    assert_eq!(look(&mux, "/other").await.status, 404);
}

#[tokio::test]
async fn a_backend_that_is_away_is_told_without_its_address_and_noted_by_nobody() {
    let (old, away) = (holding(&[("db-1", 1)]).await, Stub::closed());
    let mux = with_page(&[&old, &away]).await;
    let response = look(&mux, "/").await;
    let html = response.ok();
    assert_eq!(html.matches("Its nodes are not known.").count(), 1);
    assert!(!html.contains("127.0.0.1") && !html.contains("<polyline"));
    let broken = Stub::start().await;
    broken.on(NODES, Answer::status(500, "broken"));
    let mux = with_page(&[&broken]).await;
    assert!(
        look(&mux, "/")
            .await
            .ok()
            .contains("Its nodes are not known.")
    );
}

fn noon() -> Timestamp {
    "2026-05-01T12:00:00Z".parse().unwrap()
}

/// 500 nodes, of which those below `moved` report to the second backend by now.
fn estate(moved: u32) -> Estate {
    let time = |minutes: i64| format!("{:.3}", noon() - SignedDuration::from_mins(minutes));
    let node = |at: u32, minutes| {
        serde_json::json!({
            "certname": format!("{}-{at:03}.example.com", ["web", "db", "app"][at as usize % 3]),
            "report_timestamp": time(minutes + i64::from(at % 30)),
            "facts_timestamp": time(minutes + i64::from(at % 30)),
            "deactivated": (at % 97 == 5).then(|| time(5)),
        })
    };
    let old: Vec<_> = (20..500)
        .map(|at| node(at, if at < moved { 3_000 } else { 1 }))
        .collect();
    let new: Vec<_> = (0..moved).map(|at| node(at, 2)).collect();
    let bodies = [old, new].map(|nodes| serde_json::to_vec(&nodes).unwrap());
    let parts: Vec<_> = (0..)
        .map(BackendId)
        .zip(bodies.iter().map(Vec::as_slice))
        .collect();
    let (map, _) = FreshnessMap::build(&parts);
    let names = ["pdb-old", "pdb-new", "pdb-dr"].map(str::to_owned).into();
    let missing = vec![(BackendId(2), "refused".to_owned())];
    Estate::of(map, names, Strategy::Exact, missing, noon())
}

fn document(query: &str) -> String {
    let estate = estate(312);
    let mut history = History::of(["pdb-old", "pdb-new"].map(str::to_owned).into());
    for minute in 0..480i64 {
        let moved = u64::try_from(minute * 312 / 479 / 12 * 12).unwrap();
        let at = noon() - SignedDuration::from_mins(479 - minute);
        history.keep(at, vec![500 - moved, moved]);
    }
    let answered = |target: &str, note: &str| Answered {
        at: "11:58:07".to_owned(),
        target: target.to_owned(),
        status: 200,
        took: "10.0 s".to_owned(),
        note: note.to_owned(),
    };
    let certificate = |(what, days): (&str, _)| Certificate {
        what: what.to_owned(),
        days,
    };
    let backend = |name: &str, state, tone, why: Option<&str>| Backend {
        name: name.to_owned(),
        state,
        tone,
        why: why.map(str::to_owned),
        versions: vec!["8.15.0".to_owned()],
        certificates: [("cert", 412), ("ca", 1_790), ("server", 9)]
            .map(certificate)
            .into(),
    };
    let query_of_facts = r#"/pdb/query/v4/facts?query=["and",["=","name","operatingsystem"],["~","certname","web-.*"]]&limit=1000"#;
    page(&View {
        at: noon(),
        backends: vec![
            backend("pdb-old", "in service", Tone::Good, None),
            backend("pdb-new", "in service", Tone::Good, None),
            backend(
                "pdb-dr",
                "out of service",
                Tone::Bad,
                Some("3 probes failed: no connection: connection refused"),
            ),
        ],
        certificates: vec![certificate(("tls_cert", 61))],
        nodes: Some(&estate),
        history: &history,
        partials: Some(vec![
            answered("/pdb/query/v4/nodes", "pdb-dr: timeout"),
            answered(query_of_facts, "pdb-dr: unreachable"),
        ]),
        slow: Some(vec![answered(
            query_of_facts,
            "pdb-old 9.8 s, pdb-new 0.3 s",
        )]),
        cache: Some(CacheUse {
            entries: 41,
            stale: 3,
            bytes: 12 << 20,
        }),
        strategy: Strategy::Exact,
        search: Search::of(query),
    })
    .unwrap()
}

const FRAME: &str = "<!doctype html><style>html,body{margin:0}iframe{border:0;display:block}</style>\
    <iframe src=\"page.html\" width=WIDTH height=HEIGHT></iframe><script>onload=()=>{\
    const page=document.querySelector('iframe').contentDocument.documentElement;\
    document.title=page.scrollWidth+' '+page.clientWidth}</script>";

/// A browser as wide as `width`, which a window of its own cannot be everywhere.
fn browser(dir: &Path, width: u32, height: u32, scheme: &str) -> Command {
    let frame = FRAME
        .replace("WIDTH", &width.to_string())
        .replace("HEIGHT", &height.to_string());
    fs::write(dir.join("frame.html"), frame).unwrap();
    let mut command = Command::new("chromium");
    command
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
        ])
        .args([
            "--allow-file-access-from-files",
            "--virtual-time-budget=2000",
        ])
        .arg(format!("--user-data-dir={}", dir.join("profile").display()))
        .arg(format!("--window-size={width},{height}"))
        .arg(format!("--blink-settings=preferredColorScheme={scheme}"));
    command
}

#[test]
#[ignore = "needs chromium; PDBMUX_PICTURES names the folder for the pictures"]
fn the_page_fits_a_phone_and_a_desk_in_light_and_dark() {
    let dir = tempfile::tempdir().unwrap();
    let pictures = std::env::var_os("PDBMUX_PICTURES").map(PathBuf::from);
    let pictures = pictures.unwrap_or_else(|| dir.path().to_owned());
    for (of, query) in [
        ("estate", "state=stale"),
        ("node", "certname=web-021.example.com&q=web-02"),
    ] {
        fs::write(dir.path().join("page.html"), document(query)).unwrap();
        for (size, width, height) in [("wide", 1_280, 2_200), ("narrow", 390, 3_400)] {
            for (name, scheme) in [("dark", "0"), ("light", "1")] {
                let file = pictures.join(format!("{of}-{size}-{name}.png"));
                let picture = format!("--screenshot={}", file.display());
                let frame = format!("file://{}", dir.path().join("frame.html").display());
                let taken = browser(dir.path(), width, height, scheme)
                    .arg(picture)
                    .arg(&frame)
                    .output()
                    .unwrap();
                assert!(taken.status.success() && file.exists(), "{taken:?}");
            }
            let frame = format!("file://{}", dir.path().join("frame.html").display());
            let dumped = browser(dir.path(), width, height, "1")
                .args(["--dump-dom", &frame])
                .output()
                .unwrap();
            let dom = String::from_utf8_lossy(&dumped.stdout);
            let title = dom
                .split("<title>")
                .nth(1)
                .and_then(|it| it.split('<').next());
            assert_eq!(title, Some(format!("{width} {width}").as_str()), "{dom}");
        }
    }
}
