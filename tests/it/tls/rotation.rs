use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

use super::{Authority, Files, Front, NODES, behind};
use crate::client::in_time;
use crate::stub::{Answer, Stub};

#[tokio::test]
async fn a_certificate_that_is_replaced_under_load_is_used_and_costs_no_request() {
    let (stub, files) = (Stub::start().await, Files::new());
    // Every request needs a new connection.
    stub.on(NODES, Answer::with(200, &[("Connection", "close")], "[]"));
    let ca = Authority::new("Puppet CA");
    let front = Front::before(&stub, &ca.identity("puppetdb"), Some(&ca)).await;
    let access = files.access(&ca, &ca.identity("pdbmux"));
    let mux = Arc::new(behind(&front, access, |_| {}).await);
    // It has read its files.
    mux.get(NODES).await.ok();
    let done = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let (mux, done) = (Arc::clone(&mux), Arc::clone(&done));
            tokio::spawn(async move {
                let mut answered = 0;
                while !done.load(Ordering::Relaxed) {
                    assert_eq!(mux.get(NODES).await.ok(), "[]");
                    answered += 1;
                }
                answered
            })
        })
        .collect();
    for round in 1..=3 {
        let new = ca.identity("pdbmux");
        let der = CertificateDer::from_pem_slice(new.certificate.as_bytes()).unwrap();
        let seen = |der: &[u8]| {
            let shown = front.shown.lock().unwrap();
            shown.iter().filter(|it| **it == der).count()
        };
        // First the one, then the other, with requests between.
        files.write("cert.pem", &new.certificate);
        let asked = stub.seen().len();
        in_time(stub.until_seen(asked + 8)).await;
        assert_eq!(seen(&der), 0, "round {round}");
        fs::write(files.path("key.new"), &new.key).unwrap();
        fs::rename(files.path("key.new"), files.path("key.pem")).unwrap();
        in_time(async {
            while seen(&der) < 4 {
                stub.until_seen(stub.seen().len() + 1).await;
            }
        })
        .await;
    }
    done.store(true, Ordering::Relaxed);
    for client in clients {
        assert!(client.await.unwrap() > 0);
    }
}
