//! How long certificates are good for, as metrics, on the estate page and in the log.

use jiff::Timestamp;
use pdbmux::config::Listen;

use super::{Scrape, get};
use crate::harness::Pdbmux;
use crate::reload::{File, reload};
use crate::stub::Stub;
use crate::tls::{Authority, Ends, Files, Front};

const NODES: &str = "/pdb/query/v4/nodes";
const METRIC: &str = "pdbmux_certificate_expiry_timestamp_seconds";

fn ends(scrape: &Scrape, backend: &str, which: &str) -> i64 {
    scrape.sum(METRIC, &[("backend", backend), ("which", which)])
}

fn at(time: &str) -> i64 {
    time.parse::<Timestamp>().unwrap().as_second()
}

/// rcgen's own, where no other is set.
const FAR: &str = "4096-01-01T00:00:00Z";

#[tokio::test]
async fn every_certificate_of_a_listener_and_of_a_backend_is_told_with_its_end() {
    let (stub, files) = (Stub::start().await, Files::new());
    stub.on(NODES, "[]");
    let ca = Authority::new("Puppet CA");
    let server = ca.identity_that("puppetdb", Ends::OnDay(2040, 1, 1));
    let front = Front::before(&stub, &server, Some(&ca)).await;
    let mut access = files.access(&ca, &ca.identity_that("pdbmux", Ends::OnDay(2041, 1, 1)));
    access.server_name = Some("puppetdb".to_owned());
    let own = ca.identity_that("pdbmux", Ends::OnDay(2042, 1, 1));
    let mux = Pdbmux::with(&[&stub, &stub], |config| {
        config.backends[0].url = front.url().parse().unwrap();
        // It holds for both, but the other speaks no TLS.
        config.access = access;
        config.door.tls_listen = vec![Listen {
            transport: pdbmux::config::Transport::Tls,
            ..config.listen[0].clone()
        }];
        config.door.tls_cert = Some(files.write("own.pem", &own.certificate));
        config.door.tls_key = Some(files.write("own-key.pem", &own.key));
        config.door.tls_client_ca = Some(files.write("clients.pem", &ca.certificate));
    })
    .await;
    let scrape = Scrape::of(&mux).await;
    let all = scrape.sum(METRIC, &[]);
    assert_eq!(ends(&scrape, "", "tls_cert"), at("2042-01-01T00:00:00Z"));
    assert_eq!(ends(&scrape, "", "tls_client_ca"), at(FAR));
    assert_eq!(ends(&scrape, "pdb-a", "cert"), at("2041-01-01T00:00:00Z"));
    assert_eq!(ends(&scrape, "pdb-a", "ca"), at(FAR));
    let told = ["tls_cert", "tls_client_ca"].map(|which| ends(&scrape, "", which));
    let of_a = ["cert", "ca"].map(|which| ends(&scrape, "pdb-a", which));
    // Nothing else: no handshake has shown what the backend has.
    assert_eq!(all, told.iter().chain(&of_a).sum::<i64>());
    assert_eq!(mux.get(NODES).await.backends(), Some("2/2"));
    let scrape = Scrape::of(&mux).await;
    assert_eq!(ends(&scrape, "pdb-a", "server"), at("2040-01-01T00:00:00Z"));
    assert_eq!(scrape.sum(METRIC, &[]), all + at("2040-01-01T00:00:00Z"));
    // A file that is replaced counts at once; one that cannot be used changes nothing.
    let renewed = ca.identity_that("pdbmux", Ends::OnDay(2050, 1, 1));
    files.write("own.pem", &renewed.certificate);
    files.write("own-key.pem", &renewed.key);
    files.write("cert.pem", "nonsense");
    let scrape = Scrape::of(&mux).await;
    assert_eq!(ends(&scrape, "", "tls_cert"), at("2050-01-01T00:00:00Z"));
    assert_eq!(ends(&scrape, "pdb-a", "cert"), at("2041-01-01T00:00:00Z"));
}

#[tokio::test]
async fn what_a_backend_shows_is_told_also_if_it_has_ended_and_the_page_says_so() {
    let (stub, files) = (Stub::start().await, Files::new());
    let ca = Authority::new("Puppet CA");
    let ended = ca.identity_that("puppetdb", Ends::Ended);
    let front = Front::before(&stub, &ended, None).await;
    let access = files.access(&ca, &ca.identity("pdbmux"));
    let mux = Pdbmux::with(&[&stub], |config| {
        config.backends[0].url = front.url().parse().unwrap();
        config.backends[0].access = access;
    })
    .await;
    assert_eq!(mux.get(NODES).await.status, 502);
    let scrape = Scrape::of(&mux).await;
    assert_eq!(ends(&scrape, "pdb-a", "server"), at("2021-01-01T00:00:00Z"));
    let page = get(&mux, "/").await;
    let html = page.ok();
    assert!(
        html.contains("<span class=\"chip warn\">server: ended</span>"),
        "{html}"
    );
    assert!(html.contains("<span class=\"chip\">cert: "), "{html}");
}

#[tokio::test]
async fn what_a_backend_has_shown_is_known_after_a_reload_for_as_long_as_it_is_the_same() {
    let (stub, files) = (Stub::start().await, Files::new());
    stub.on(NODES, "[]");
    let ca = Authority::new("Puppet CA");
    let server = ca.identity_that("puppetdb", Ends::OnDay(2040, 1, 1));
    let front = Front::before(&stub, &server, None).await;
    let ca = files.write("ca.pem", &ca.certificate);
    let configuration = |name: &str, more: &str| {
        format!(
            "listen: 127.0.0.1:0\nadmin_listen: 127.0.0.1:0\nhealth_probe_enabled: false\n{more}\n\
             backends:\n  - {{name: {name}, url: '{}', ca: {}, server_name: puppetdb}}\n",
            front.url(),
            ca.display(),
        )
    };
    let (file, mut read) = (File::with(""), 0);
    file.replace(&configuration("one", ""));
    let mux = Pdbmux::of_file(&file.path()).await;
    mux.get(NODES).await.ok();
    for name in ["one", "two"] {
        file.replace(&configuration(name, "facts_ttl: 1s"));
        reload(&mux, &mut read).await;
        let scrape = Scrape::of(&mux).await;
        assert_eq!(ends(&scrape, name, "server"), at("2040-01-01T00:00:00Z"));
        assert_eq!(ends(&scrape, name, "ca"), at(FAR));
        assert_eq!(
            scrape.sum(METRIC, &[]),
            at("2040-01-01T00:00:00Z") + at(FAR)
        );
    }
}
