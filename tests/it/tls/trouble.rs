use pdbmux::config::Access;

use super::{Authority, Ends, Files, Front, NODES, behind};
use crate::stub::Stub;

/// What `/healthz` says about a backend that cannot be reached so.
async fn told(front: &Front, access: Access) -> String {
    let mux = behind(front, access, |_| {}).await;
    let response = mux.get(NODES).await;
    assert_eq!(response.status, 502, "{response:?}");
    assert!(
        response.text().contains("pdb-a: tls"),
        "{}",
        response.text()
    );
    let health = mux.get("/healthz").await.json();
    health["backends"][0]["reachable"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[tokio::test]
async fn a_backend_that_wants_a_certificate_is_shown_one() {
    let (stub, files) = (Stub::start().await, Files::new());
    stub.on(NODES, "[]");
    let ca = Authority::new("Puppet CA");
    let front = Front::before(&stub, &ca.identity("puppetdb"), Some(&ca)).await;
    let access = files.access(&ca, &ca.identity("pdbmux"));
    // Set for it, or for all.
    let mux = behind(&front, access.clone(), |_| {}).await;
    assert_eq!(mux.get(NODES).await.ok(), "[]");
    let mux = behind(&front, Access::default(), |config| config.access = access).await;
    assert_eq!(mux.get(NODES).await.ok(), "[]");
}

#[tokio::test]
async fn each_wrong_thing_is_one_sentence_that_names_the_file() {
    let (stub, files) = (Stub::start().await, Files::new());
    let (ca, other) = (Authority::new("Puppet CA"), Authority::new("Another CA"));
    let right = ca.identity("pdbmux");
    let front = Front::before(&stub, &ca.identity("puppetdb"), Some(&ca)).await;
    let access = files.access(&ca, &right);
    let file = |name: &str| files.path(name).display().to_string();
    let strange = files.write("strange-ca.pem", &other.certificate);
    let foreign = other.identity("pdbmux");
    let (foreign_cert, foreign_key) = (
        files.write("foreign.pem", &foreign.certificate),
        files.write("foreign-key.pem", &foreign.key),
    );
    let garbage = files.write("garbage.pem", "no PEM at all");
    let with = |change: &dyn Fn(&mut Access)| {
        let mut access = access.clone();
        change(&mut access);
        access
    };
    for (access, sentence) in [
        (
            with(&|it| it.ca = None),
            "its certificate leads to none that this machine trusts: set ca to the file of its issuer"
                .to_owned(),
        ),
        (
            with(&|it| it.ca = Some(strange.clone())),
            format!("its certificate leads to none that the ca {} holds", file("strange-ca.pem")),
        ),
        (
            with(&|it| it.ca = Some(garbage.clone())),
            format!("the ca cannot be used: {} holds no certificate in PEM", file("garbage.pem")),
        ),
        (
            with(&|it| it.ca = Some(files.path("gone.pem"))),
            format!("the ca cannot be read: {}: it does not exist", file("gone.pem")),
        ),
        (
            with(&|it| it.server_name = Some("pdb".to_owned())),
            "its certificate is for puppetdb, not for pdb: is that its server_name?".to_owned(),
        ),
        (
            with(&|it| (it.cert, it.key) = (None, None)),
            "it wants a client certificate, and none is configured: set cert and key".to_owned(),
        ),
        (
            with(&|it| {
                (it.cert, it.key) = (Some(foreign_cert.clone()), Some(foreign_key.clone()));
            }),
            format!(
                "it does not take the client certificate {}: it does not know who issued it",
                file("foreign.pem")
            ),
        ),
        (
            with(&|it| it.key = Some(foreign_key.clone())),
            format!(
                "the key {} does not fit the certificate {}",
                file("foreign-key.pem"),
                file("cert.pem")
            ),
        ),
        (
            with(&|it| it.key = Some(garbage.clone())),
            format!(
                "the key cannot be used: {} holds no private key in PEM that is not encrypted",
                file("garbage.pem")
            ),
        ),
        (
            with(&|it| it.key = Some(files.path("gone.pem"))),
            format!("the key cannot be read: {}: it does not exist", file("gone.pem")),
        ),
        (
            with(&|it| it.cert = Some(garbage.clone())),
            format!("the cert cannot be used: {} holds no certificate in PEM", file("garbage.pem")),
        ),
    ] {
        assert_eq!(told(&front, access).await, sentence);
    }
    assert_eq!(stub.seen().len(), 0);
}

#[tokio::test]
async fn certificates_that_have_ended_are_told_on_either_side() {
    let (stub, files) = (Stub::start().await, Files::new());
    let ca = Authority::new("Puppet CA");
    let old = Front::before(&stub, &ca.identity_that("puppetdb", Ends::Ended), None).await;
    let access = files.access(&ca, &ca.identity("pdbmux"));
    assert_eq!(
        told(&old, access).await,
        "its certificate has expired (2021-01-01T00:00:00Z)"
    );
    let front = Front::before(&stub, &ca.identity("puppetdb"), Some(&ca)).await;
    let access = files.access(&ca, &ca.identity_that("pdbmux", Ends::Ended));
    let cert = files.path("cert.pem").display().to_string();
    assert_eq!(
        told(&front, access).await,
        format!(
            "it does not take the client certificate {cert}: it has expired (2021-01-01T00:00:00Z)"
        )
    );
}

#[tokio::test]
async fn a_backend_without_tls_is_told_from_one_whose_certificate_is_wrong() {
    let plain = Front::plain().await;
    assert_eq!(
        told(&plain, Access::default()).await,
        "it does not speak TLS: is its port another, or its url http?"
    );
}
