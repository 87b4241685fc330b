//! The access log, the warning of slow queries, and ids in the log: of the built program, as it writes
//! them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::stub::{Answer, Stub};
use crate::tls::{Authority, Ends, Files};

/// A running program, killed with the test, and what it writes.
pub(super) struct Running {
    child: Child,
    address: String,
    out: Box<dyn BufRead>,
    log: Box<dyn BufRead>,
}

impl Running {
    /// Starts it in front of a backend that refuses connections.
    pub(super) fn start(env: &[(&str, &str)]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_pdbmux"))
            .env_clear()
            .env("PDBMUX_BACKENDS", "pdb-a=http://127.0.0.1:1")
            .env("PDBMUX_LISTEN", "127.0.0.1:0")
            .env("PDBMUX_HEALTH_PROBE_ENABLED", "false")
            .envs(env.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let out = Box::new(BufReader::new(child.stdout.take().unwrap()));
        let log = Box::new(BufReader::new(child.stderr.take().unwrap()));
        let mut running = Self {
            child,
            address: String::new(),
            out,
            log,
        };
        let line = running.logged("listening on ");
        let (_, address) = line.split_once("listening on ").unwrap();
        let is_part = |c: char| c.is_ascii_digit() || ".:".contains(c);
        running.address = address.chars().take_while(|c| is_part(*c)).collect();
        running
    }

    /// Asks with these header lines; what came.
    pub(super) fn ask(&self, target: &str, headers: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let head = format!("GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n");
        stream
            .write_all((head + headers + "\r\n").as_bytes())
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// The next line on standard output.
    fn out(&mut self) -> String {
        next(&mut self.out).expect("it wrote no line")
    }

    /// The next line of the log that holds `text`.
    pub(super) fn logged(&mut self, text: &str) -> String {
        loop {
            let line = next(&mut self.log).expect("it logged no such line");
            if line.contains(text) {
                return line;
            }
        }
    }

    /// What is left of the log once it was told to end and has.
    #[cfg(feature = "otlp")]
    pub(super) fn ended(&mut self) -> String {
        let id = self.child.id().to_string();
        Command::new("kill").arg(id).status().unwrap();
        let mut rest = String::new();
        self.log.read_to_string(&mut rest).unwrap();
        rest
    }

    /// What is left of standard output once it is killed.
    fn rest(&mut self) -> String {
        self.child.kill().unwrap();
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        rest
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn next(lines: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    let read = lines.read_line(&mut line).unwrap();
    (read > 0).then_some(line)
}

const IDS: (&str, &str) = ("PDBMUX_REQUEST_IDS", "true");

const SECRETS: &str = "X-Request-Id: id-1\r\nAuthorization: Basic c2VjcmV0\r\n\
                       X-Authentication: secret\r\n";

#[test]
fn a_request_is_one_line_of_the_access_log_and_no_credential_is_in_it() {
    let mut pdbmux = Running::start(&[("PDBMUX_ACCESS_LOG", "text"), IDS]);
    pdbmux.ask("/pdb/query/v4/nodes?limit=1&token=secret", SECRETS);
    let line = pdbmux.out();
    let (_, line) = line.split_once(' ').unwrap();
    let target = "/pdb/query/v4/nodes?limit=1&token=...";
    let start = format!("127.0.0.1 \"GET {target}\" 502 ");
    assert!(line.starts_with(&start), "{line}");
    let end = " cache=miss missing=\"pdb-a; reason=unreachable\" request_id=id-1\n";
    assert!(line.ends_with(end), "{line}");
    pdbmux.ask("/livez", "");
    assert!(pdbmux.out().contains(" \"GET /livez\" 200 15 duration="));
    assert_eq!(pdbmux.rest(), "");
}

#[test]
fn the_access_log_can_be_json() {
    let mut pdbmux = Running::start(&[("PDBMUX_ACCESS_LOG", "json"), IDS]);
    let answer = pdbmux.ask("/pdb/query/v4/nodes", SECRETS);
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let line: Value = serde_json::from_str(&pdbmux.out()).unwrap();
    assert_eq!(line["status"], 502);
    assert_eq!(line["bytes"], body.len());
    assert_eq!(line["client"], "127.0.0.1");
    assert_eq!(line["request_id"], "id-1");
    assert_eq!(line["missing"][0], "pdb-a; reason=unreachable");
    assert!(line["duration"].as_f64() >= line["first_byte"].as_f64());
    assert_eq!(line["cut"], Value::Null);
}

#[test]
fn without_being_asked_for_nothing_is_written_of_a_request() {
    let mut pdbmux = Running::start(&[]);
    pdbmux.ask("/livez", "");
    assert_eq!(pdbmux.rest(), "");
}

#[test]
fn whatever_is_logged_of_a_request_carries_its_id() {
    for (format, id) in [
        ("text", " request_id=id-1"),
        ("json", "\"request_id\":\"id-1\""),
    ] {
        let mut pdbmux = Running::start(&[("PDBMUX_LOG_FORMAT", format), IDS]);
        pdbmux.ask("/pdb/query/v4/nodes", SECRETS);
        let line = pdbmux.logged("a backend did not contribute");
        assert!(line.contains(id), "{line}");
        if format == "json" {
            let line: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(line["fields"]["backend"], "pdb-a");
        }
    }
}

#[test]
fn a_slow_query_is_warned_of_with_the_time_of_each_backend() {
    let mut pdbmux = Running::start(&[
        ("PDBMUX_SLOW_QUERY", "1ns"),
        ("PDBMUX_LOG_FORMAT", "json"),
        IDS,
    ]);
    pdbmux.ask("/pdb/query/v4/reports", SECRETS);
    let line: Value = serde_json::from_str(&pdbmux.logged("a slow query")).unwrap();
    assert_eq!(line["level"], "WARN");
    let fields = &line["fields"];
    assert_eq!(fields["target"], "/pdb/query/v4/reports");
    assert_eq!(fields["status"], 502);
    assert_eq!(fields["request_id"], "id-1");
    let asked = fields["asked"].as_str().unwrap();
    assert!(asked.starts_with("pdb-a unreachable 0"), "{asked}");
}

#[test]
fn a_slow_query_names_the_one_of_a_group_that_was_asked() {
    let mut pdbmux = Running::start(&[
        ("PDBMUX_SLOW_QUERY", "1ns"),
        ("PDBMUX_LOG_FORMAT", "json"),
        ("PDBMUX_ACCESS_LOG", "json"),
        (
            "PDBMUX_BACKENDS",
            "eu/a=http://127.0.0.1:1,b=http://127.0.0.1:1,eu/c=http://127.0.0.1:1",
        ),
    ]);
    pdbmux.ask("/pdb/query/v4/reports", "");
    let line: Value = serde_json::from_str(&pdbmux.logged("a slow query")).unwrap();
    let asked = line["fields"]["asked"].as_str().unwrap();
    for who in ["eu/a unreachable ", "b unreachable ", "eu/c unreachable "] {
        assert!(asked.contains(who), "{asked}");
    }
    let line: Value = serde_json::from_str(&pdbmux.out()).unwrap();
    let asked = line["asked"].as_array().unwrap();
    let mut who: Vec<_> = asked
        .iter()
        .map(|it| (&it["backend"], &it["member"]))
        .collect();
    who.sort_by_key(|it| format!("{it:?}"));
    let (eu, names) = (Value::from("eu"), ["a", "c"].map(Value::from));
    let alone = (&Value::from("b"), &Value::Null);
    assert_eq!(who, [alone, (&eu, &names[0]), (&eu, &names[1])]);
}

#[test]
fn whom_the_door_let_in_is_in_the_access_log_and_no_secret_is() {
    let files = Files::new();
    let tokens = files.write("tokens", "board hush-1\nhush-2\n");
    let hash = bcrypt::hash("hush-3", 4).unwrap();
    let users = files.write("users", &format!("ann:{hash}\n"));
    let mut pdbmux = Running::start(&[
        ("PDBMUX_ACCESS_LOG", "text"),
        ("PDBMUX_TOKENS", tokens.to_str().unwrap()),
        ("PDBMUX_USERS", users.to_str().unwrap()),
    ]);
    for (headers, user) in [
        ("Authorization: Bearer hush-1\r\n", Some("board")),
        ("X-Authentication: hush-2\r\n", None),
        ("Authorization: Basic YW5uOmh1c2gtMw==\r\n", Some("ann")),
        ("Authorization: Basic YW5uOmh1c2gtMQ==\r\n", None),
        ("", None),
    ] {
        pdbmux.ask("/pdb/query/v4/nodes", headers);
        let line = pdbmux.out();
        let (_, told) = line.split_once(" user=").unzip();
        let told = told.and_then(|rest| rest.split_whitespace().next());
        let user = user.map(|user| format!("{user:?}"));
        assert_eq!(told, user.as_deref(), "{line}");
        assert!(!line.contains("hush"), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_cut_if_it_breaks_off_before_its_length() {
    let backend = Stub::start().await;
    let path = "/pdb/query/v4/catalogs";
    let broken = Answer::promising(9).send("[1").close();
    tokio::task::block_in_place(|| {
        let backends = format!("pdb-a={}", backend.url());
        let mut pdbmux = Running::start(&[
            ("PDBMUX_ACCESS_LOG", "json"),
            ("PDBMUX_BACKENDS", &backends),
        ]);
        for (answer, bytes, cut) in [
            (Answer::json("[1,2]"), 5, Value::Null),
            (broken, 2, Value::Bool(true)),
        ] {
            backend.on(path, answer);
            pdbmux.ask(path, "");
            let line: Value = serde_json::from_str(&pdbmux.out()).unwrap();
            assert_eq!((&line["bytes"], &line["cut"]), (&Value::from(bytes), &cut));
            assert_eq!(
                (&line["status"], &line["request_id"]),
                (&200.into(), &Value::Null)
            );
        }
    });
}

#[test]
fn a_certificate_that_ends_soon_or_has_ended_is_warned_of() {
    let (files, ca) = (Files::new(), Authority::new("Puppet CA"));
    let ended = ca.identity_that("pdbmux", Ends::Ended);
    let cert = files.write("cert.pem", &ended.certificate);
    let key = files.write("key.pem", &ended.key);
    let mut running = Running::start(&[
        ("PDBMUX_TLS_LISTEN", "127.0.0.1:0"),
        ("PDBMUX_TLS_CERT", cert.to_str().unwrap()),
        ("PDBMUX_TLS_KEY", key.to_str().unwrap()),
    ]);
    let line = running.logged("a certificate ended on 2021-01-01");
    assert!(
        line.contains("WARN") && line.contains(r#"which="tls_cert""#),
        "{line}"
    );
}
