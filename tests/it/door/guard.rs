//! Clients that show who they are by tokens or passwords.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pdbmux::config::Config;

use super::NODES;
use crate::client::Response;
use crate::harness::Pdbmux;
use crate::stub::Stub;
use crate::tls::Files;

fn basic(user: &str, password: &str) -> String {
    let both = STANDARD.encode(format!("{user}:{password}"));
    format!("Authorization: Basic {both}\r\n")
}

fn hash(password: &str) -> String {
    bcrypt::hash(password, 4).unwrap()
}

async fn ask(mux: &Pdbmux, headers: &str) -> Response {
    let mut client = mux.connect().await;
    client
        .send(format!("GET {NODES} HTTP/1.1\r\nHost: x\r\n{headers}\r\n"))
        .await;
    client.response().await
}

const BEARER: &str = r#"Bearer realm="pdbmux""#;
const BASIC: &str = r#"Basic realm="pdbmux", charset="UTF-8""#;

#[tokio::test]
async fn only_who_bears_a_token_is_answered_and_the_file_is_read_again() {
    let (stub, files) = (Stub::start().await, Files::new());
    stub.on(NODES, "[]");
    let mux = Pdbmux::with(&[&stub], |config| {
        config.door.tokens = Some(files.write("tokens", "# board\nboard hush-1\n\nhush-2\n"));
    })
    .await;
    for right in [
        "Authorization: Bearer hush-1\r\n",
        "X-Authentication: hush-2\r\n",
        "Authorization: Basic dTpw\r\nX-Authentication: hush-1\r\n",
    ] {
        assert_eq!(ask(&mux, right).await.ok(), "[]");
    }
    for (wrong, why) in [
        ("", "a token is needed to ask here"),
        ("Cookie: hush-1\r\n", "a token is needed to ask here"),
        (
            "Authorization: Bearer hush\r\n",
            "what shows who asks is not known here: a token is needed",
        ),
        (
            "X-Authentication: board\r\n",
            "what shows who asks is not known here: a token is needed",
        ),
    ] {
        let refused = ask(&mux, wrong).await;
        assert_eq!((refused.status, refused.text()), (401, why), "{wrong}");
        assert_eq!(refused.all("www-authenticate"), [BEARER]);
    }
    for path in ["/livez", "/readyz"] {
        assert_eq!(mux.get(path).await.status, 200);
    }
    // No backend learns of it.
    assert_eq!(stub.seen().len(), 3);
    assert!(!format!("{:?}", stub.seen()).contains("hush"));
    files.write("tokens", "hush-3\n");
    assert_eq!(ask(&mux, "X-Authentication: hush-1\r\n").await.status, 401);
    ask(&mux, "X-Authentication: hush-3\r\n").await.ok();
    // While it is empty or gone, what it held before counts.
    files.write("tokens", "");
    ask(&mux, "X-Authentication: hush-3\r\n").await.ok();
}

#[tokio::test]
async fn a_user_is_let_in_by_a_password_and_either_is_enough_where_both_are_set() {
    let (stub, files) = (Stub::start().await, Files::new());
    stub.on(NODES, "[]");
    let mux = Pdbmux::with(&[&stub], |config| {
        config.door.tokens = Some(files.write("tokens", "token\n"));
        let users = format!("ann:{}\nbob:{}\n", hash("hush"), hash("other"));
        config.door.users = Some(files.write("users", &users));
    })
    .await;
    for right in [
        basic("ann", "hush"),
        basic("ann", "hush"),
        basic("bob", "other"),
        "X-Authentication: token\r\n".to_owned(),
    ] {
        ask(&mux, &right).await.ok();
    }
    for wrong in [
        String::new(),
        basic("ann", "other"),
        basic("eve", "hush"),
        basic("ann", ""),
        "X-Authentication: hush\r\n".to_owned(),
    ] {
        let refused = ask(&mux, &wrong).await;
        assert_eq!(refused.status, 401, "{wrong}");
        assert_eq!(refused.all("www-authenticate"), [BEARER, BASIC]);
    }
}

#[test]
fn each_wrong_file_is_one_sentence_at_the_start_that_repeats_no_secret() {
    let files = Files::new();
    let right = format!("ann:{}\n", hash("hush"));
    let told = |key: &str, text: Option<&str>| {
        let path = match text {
            Some(text) => files.write("file", text),
            None => files.path("gone"),
        };
        let mut config = Config::default();
        match key {
            "tokens" => config.door.tokens = Some(path),
            _ => config.door.users = Some(path),
        }
        let told = pdbmux::check_door(&config);
        let told = told.map_or_else(|why| why.to_string(), |()| String::new());
        assert!(!told.contains("hush"), "{told}");
        told.replace(&files.path("").display().to_string(), "/")
    };
    for (key, text, why) in [
        ("tokens", Some("a hush\nhush\n"), ""),
        (
            "tokens",
            None,
            "tokens /gone cannot be read: it does not exist",
        ),
        ("tokens", Some("# none\n"), "tokens /file has no entry"),
        (
            "tokens",
            Some("hush\na b hush\n"),
            "tokens /file has in line 2 no TOKEN or NAME TOKEN",
        ),
        ("users", Some(&right), ""),
        (
            "users",
            None,
            "users /gone cannot be read: it does not exist",
        ),
        (
            "users",
            Some("\nann:$apr1$hush$x\n"),
            "users /file has in line 2 no NAME:HASH with a hash of bcrypt, as htpasswd -B writes it",
        ),
        (
            "users",
            Some("ann:hush\n"),
            "users /file has in line 1 no NAME:HASH with a hash of bcrypt, as htpasswd -B writes it",
        ),
    ] {
        assert_eq!(told(key, text), why, "{key} {text:?}");
    }
}
