//! Clients that come by TLS.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use pdbmux::config::{Config, DoorConfig, Listen, Transport};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ProtocolVersion, SupportedProtocolVersion, version};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::NODES;
use crate::client::http2::Http2;
use crate::client::{Client, in_time};
use crate::harness::{Pdbmux, SHORT};
use crate::stub::Stub;
use crate::tls::{Authority, Ends, Files, Identity};

const BOTH: &[&SupportedProtocolVersion] = &[&version::TLS12, &version::TLS13];

/// pdbmux on loopback, by TLS alone, as "pdbmux".
pub(super) fn by_tls(config: &mut Config, files: &Files, ca: &Authority) {
    let own = ca.identity("pdbmux");
    config.listen.clear();
    config.door.tls_listen = vec![Listen {
        transport: Transport::Tls,
        ..":0".parse().unwrap()
    }];
    config.door.tls_listen[0].host = Some("127.0.0.1".to_owned());
    config.door.tls_cert = Some(files.write("own.pem", &own.certificate));
    config.door.tls_key = Some(files.write("own-key.pem", &own.key));
}

/// The same, for clients that `clients` issued.
fn demanding(config: &mut Config, files: &Files, ca: &Authority, clients: &Authority) {
    by_tls(config, files, ca);
    config.door.tls_client_ca = Some(files.write("clients.pem", &clients.certificate));
}

/// What a client brings to a handshake.
fn client(
    ca: &Authority,
    own: Option<&Identity>,
    versions: &[&'static SupportedProtocolVersion],
) -> ClientConfig {
    let config =
        ClientConfig::builder_with_protocol_versions(versions).with_root_certificates(ca.roots());
    let Some(own) = own else {
        return config.with_no_client_auth();
    };
    let certificate = CertificateDer::from_pem_slice(own.certificate.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes()).unwrap();
    let config = config.with_client_auth_cert(vec![certificate], key);
    config.unwrap()
}

async fn handshake(address: SocketAddr, config: ClientConfig) -> io::Result<TlsStream<TcpStream>> {
    let stream = in_time(TcpStream::connect(address)).await.unwrap();
    let name = ServerName::try_from("pdbmux").unwrap();
    in_time(TlsConnector::from(Arc::new(config)).connect(name, stream)).await
}

/// Whether a request comes through, whichever side finds out in the handshake or after it.
async fn is_let_in(mux: &Pdbmux, ca: &Authority, own: Option<&Identity>) -> bool {
    for versions in [&BOTH[..1], &BOTH[1..]] {
        let Ok(stream) = handshake(mux.addresses()[0], client(ca, own, versions)).await else {
            return false;
        };
        let mut client = Client::over(stream);
        client
            .send_while_open("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
            .await;
        match client.until_answered_or_closed().await {
            Some(response) => assert_eq!(response.status, 200),
            None => return false,
        }
    }
    true
}

#[tokio::test]
async fn clients_are_answered_by_tls_and_beside_it_without() {
    let (stub, files, ca) = (
        Stub::start().await,
        Files::new(),
        Authority::new("Puppet CA"),
    );
    stub.on(NODES, "[]");
    let mux = Pdbmux::with(&[&stub], |config| {
        by_tls(config, &files, &ca);
        config.listen = vec!["127.0.0.1:0".parse().unwrap()];
    })
    .await;
    assert_eq!(mux.get(NODES).await.ok(), "[]");
    let versions = [ProtocolVersion::TLSv1_2, ProtocolVersion::TLSv1_3];
    for (offered, expected) in BOTH.chunks(1).zip(versions) {
        // What is preferred of what is offered, and what is spoken where nothing is.
        for (protocols, agreed) in [
            (&["h2", "http/1.1"][..], Some("h2")),
            (&["http/1.1"], Some("http/1.1")),
            (&[], None),
        ] {
            let mut config = client(&ca, None, offered);
            config.alpn_protocols = protocols.iter().map(|it| it.as_bytes().to_vec()).collect();
            let stream = handshake(mux.addresses()[1], config).await.unwrap();
            let session = stream.get_ref().1;
            assert_eq!(session.protocol_version(), Some(expected));
            assert_eq!(session.alpn_protocol(), agreed.map(str::as_bytes));
            if agreed == Some("h2") {
                let client = Http2::over(stream).await;
                assert_eq!(client.get(NODES).await.ok(), "[]");
                continue;
            }
            let mut client = Client::over(stream);
            for _ in 0..2 {
                assert_eq!(client.get(NODES).await.ok(), "[]");
            }
        }
    }
}

#[tokio::test]
async fn whoever_shows_no_right_certificate_does_not_come_in() {
    let files = Files::new();
    let (ca, other) = (Authority::new("Puppet CA"), Authority::new("Another CA"));
    let mux = Pdbmux::with(&[], |config| demanding(config, &files, &ca, &ca)).await;
    assert!(is_let_in(&mux, &ca, Some(&ca.identity("board"))).await);
    for wrong in [
        None,
        Some(other.identity("board")),
        Some(ca.identity_that("board", Ends::Ended)),
    ] {
        assert!(!is_let_in(&mux, &ca, wrong.as_ref()).await, "{wrong:?}");
    }
    // What is no TLS ends the connection.
    let mut plain = Client::connect(mux.addresses()[0]).await;
    plain
        .send_while_open("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        .await;
    let answer = plain.until_closed().await;
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
}

#[tokio::test]
async fn only_whom_the_allowlist_names_is_answered_and_it_is_read_again() {
    let (stub, files, ca) = (
        Stub::start().await,
        Files::new(),
        Authority::new("Puppet CA"),
    );
    stub.on(NODES, "[]");
    let list = "# who may ask\n\nboard.example   # Puppetboard\n  other\n";
    let mux = Pdbmux::with(&[&stub], |config| {
        demanding(config, &files, &ca, &ca);
        config.door.tls_allowlist = Some(files.write("allowlist", list));
    })
    .await;
    let connect = async |name: &str| {
        let config = client(&ca, Some(&ca.identity(name)), BOTH);
        Client::over(handshake(mux.addresses()[0], config).await.unwrap())
    };
    let mut board = connect("board.example").await;
    assert_eq!(board.get(NODES).await.ok(), "[]");
    let mut stranger = connect("stranger").await;
    let refused = stranger.get(NODES).await;
    assert_eq!(
        (refused.status, refused.text()),
        (
            403,
            r#"the certificate of "stranger" is none that may ask here"#
        )
    );
    assert_eq!(stranger.get("/livez").await.status, 200);
    // On the same connections.
    files.write("allowlist", "stranger\n");
    assert_eq!(stranger.get(NODES).await.ok(), "[]");
    assert_eq!(board.get(NODES).await.status, 403);
    assert_eq!(stub.targets(), [NODES; 2]);
}

#[tokio::test]
async fn a_replaced_certificate_is_shown_on_new_connections_and_none_is_lost() {
    let (stub, files, ca) = (
        Stub::start().await,
        Files::new(),
        Authority::new("Puppet CA"),
    );
    stub.on(NODES, "[]");
    let mux = Pdbmux::with(&[&stub], |config| by_tls(config, &files, &ca)).await;
    let shown = async || {
        let stream = handshake(mux.addresses()[0], client(&ca, None, BOTH))
            .await
            .unwrap();
        let shown = stream.get_ref().1.peer_certificates().unwrap()[0].to_vec();
        (shown, Client::over(stream))
    };
    let (first, mut before) = shown().await;
    before.get(NODES).await.ok();
    let renewed = ca.identity("pdbmux");
    files.write("own.pem", &renewed.certificate);
    // The key of the old one is there still.
    assert_eq!(shown().await.0, first);
    files.write("own-key.pem", &renewed.key);
    let (second, mut after) = shown().await;
    assert_ne!(second, first);
    for client in [&mut before, &mut after] {
        assert_eq!(client.get(NODES).await.ok(), "[]");
    }
}

#[tokio::test]
async fn a_handshake_that_does_not_end_holds_up_nobody_and_is_given_up() {
    let (files, ca) = (Files::new(), Authority::new("Puppet CA"));
    let mux = Pdbmux::with(&[], |config| {
        by_tls(config, &files, &ca);
        config.header_timeout = SHORT;
    })
    .await;
    let mut silent = Client::connect(mux.addresses()[0]).await;
    let mut begun = Client::connect(mux.addresses()[0]).await;
    begun.send([0x16, 0x03, 0x01]).await;
    assert!(is_let_in(&mux, &ca, None).await);
    assert_eq!(silent.until_closed().await, b"");
    assert_eq!(begun.until_closed().await, b"");
}

#[test]
fn each_wrong_file_is_one_sentence_at_the_start_that_names_key_and_file() {
    let (files, ca) = (Files::new(), Authority::new("Puppet CA"));
    let mut config = Config::default();
    demanding(&mut config, &files, &ca, &ca);
    config.door.tls_allowlist = Some(files.write("allowlist", "board\n"));
    assert_eq!(pdbmux::check_door(&config), Ok(()));
    let garbage = files.write("garbage.pem", "no PEM at all");
    let gone = files.path("gone");
    let other_key = files.write("other-key.pem", &ca.identity("other").key);
    let wrong = |change: &dyn Fn(&mut DoorConfig)| {
        let mut config = config.clone();
        change(&mut config.door);
        let why = pdbmux::check_door(&config).unwrap_err().to_string();
        why.replace(&files.path("").display().to_string(), "/")
    };
    let told = [
        wrong(&|door| door.tls_cert = Some(gone.clone())),
        wrong(&|door| door.tls_cert = Some(garbage.clone())),
        wrong(&|door| door.tls_key = Some(gone.clone())),
        wrong(&|door| door.tls_key = Some(garbage.clone())),
        wrong(&|door| door.tls_key = Some(other_key.clone())),
        wrong(&|door| door.tls_client_ca = Some(gone.clone())),
        wrong(&|door| door.tls_client_ca = Some(garbage.clone())),
        wrong(&|door| door.tls_allowlist = Some(gone.clone())),
    ];
    assert_eq!(
        told,
        [
            "tls_cert /gone cannot be read: it does not exist",
            "tls_cert /garbage.pem holds no certificate in PEM",
            "tls_key /gone cannot be read: it does not exist",
            "tls_key /garbage.pem holds no private key in PEM that is not encrypted",
            "tls_key /other-key.pem does not fit tls_cert /own.pem",
            "tls_client_ca /gone cannot be read: it does not exist",
            "tls_client_ca /garbage.pem holds no certificate in PEM",
            "tls_allowlist /gone cannot be read: it does not exist",
        ]
    );
}
