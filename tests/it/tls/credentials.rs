use pdbmux::config::{Access, Secret};

use super::{Authority, Files, Front, NODES, behind};
use crate::client::Response;
use crate::harness::Pdbmux;
use crate::stub::{Seen, Stub};

const TOKEN: &str = "hush-token";
const PASSWORD: &str = "hush-password";

fn header<'s>(seen: &'s Seen, name: &str) -> Option<&'s str> {
    let mut all = seen.headers.iter();
    all.find(|(known, _)| known == name)
        .map(|(_, value)| &**value)
}

fn assert_silent(response: &Response) {
    let text = format!(
        "{:?}{}",
        response.headers,
        String::from_utf8_lossy(&response.body)
    );
    assert!(!text.contains("hush"), "{text}");
}

fn secrets(files: &Files) -> Access {
    Access {
        headers: Some(vec![(
            http::HeaderName::from_static("x-authentication"),
            Secret::File(files.write("token", &format!("{TOKEN}\n"))),
        )]),
        user: Some("reader".to_owned()),
        password: Some(Secret::Env {
            name: "PASSWORD".to_owned(),
            value: Some(PASSWORD.to_owned().into()),
        }),
        ..Access::default()
    }
}

#[tokio::test]
async fn secrets_are_sent_with_every_request_and_shown_to_nobody() {
    let (stub, files) = (Stub::start().await, Files::new());
    stub.otherwise("[]");
    let ca = Authority::new("Puppet CA");
    let front = Front::before(&stub, &ca.identity("puppetdb"), Some(&ca)).await;
    let access = Access {
        headers: secrets(&files).headers,
        user: secrets(&files).user,
        password: secrets(&files).password,
        ..files.access(&ca, &ca.identity("pdbmux"))
    };
    let mux = behind(&front, access.clone(), |config| {
        config.facts_ttl = std::time::Duration::from_mins(1);
    })
    .await;
    for path in [
        NODES,
        "/pdb/query/v4/environments",
        "/pdb/query/v4/facts",
        "/healthz",
    ] {
        assert_silent(&mux.get(path).await);
        let mut client = mux.connect().await;
        let explained = format!("GET {path} HTTP/1.1\r\nHost: x\r\nX-Pdbmux-Explain: 1\r\n\r\n");
        client.send(explained).await;
        assert_silent(&client.response().await);
    }
    for path in ["/", "/metrics", "/healthz"] {
        assert_silent(&mux.connect_admin().await.get(path).await);
    }
    assert!(!stub.seen().is_empty());
    for seen in stub.seen() {
        assert_eq!(header(&seen, "x-authentication"), Some(TOKEN));
        // reader:hush-password
        let basic = "Basic cmVhZGVyOmh1c2gtcGFzc3dvcmQ=";
        assert_eq!(header(&seen, "authorization"), Some(basic));
    }
    assert!(!format!("{access:?}").contains("hush"));
}

#[tokio::test]
async fn a_token_that_is_replaced_is_sent_from_then_on() {
    let (stub, files) = (Stub::start().await, Files::new());
    stub.otherwise("[]");
    let access = secrets(&files);
    let mux = Pdbmux::with(&[&stub], |config| config.access = access).await;
    mux.get(NODES).await.ok();
    files.write("token", "another");
    mux.get(NODES).await.ok();
    let sent: Vec<_> = stub.seen();
    let sent: Vec<_> = sent
        .iter()
        .map(|seen| header(seen, "x-authentication"))
        .collect();
    assert_eq!(sent, [Some(TOKEN), Some("another")]);
}

#[tokio::test]
async fn a_secret_that_cannot_be_had_is_one_sentence() {
    let (stub, files) = (Stub::start().await, Files::new());
    let mut access = secrets(&files);
    let path = files.path("token").display().to_string();
    let told = async |access: &Access| {
        let access = access.clone();
        let mux = Pdbmux::with(&[&stub], |config| config.access = access).await;
        let response = mux.get(NODES).await;
        assert!(response.text().contains("pdb-a: credentials"));
        let health = mux.get("/healthz").await.json();
        health["backends"][0]["reachable"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    std::fs::remove_file(files.path("token")).unwrap();
    assert_eq!(
        told(&access).await,
        format!(
            "the secret for the header x-authentication cannot be read: {path}: it does not exist"
        )
    );
    files.write("token", "hush\n\nhush");
    assert_eq!(
        told(&access).await,
        format!(
            "the secret for the header x-authentication cannot be sent: file:{path} holds a control character"
        )
    );
    access.headers = None;
    access.password = Some(Secret::Env {
        name: "PASSWORD".to_owned(),
        value: None,
    });
    assert_eq!(
        told(&access).await,
        "the secret for the header authorization is not set: PASSWORD"
    );
    assert_eq!(stub.seen().len(), 0);
}
