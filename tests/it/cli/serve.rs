//! `serve`: begins, says where it listens, and ends when it is told to.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::tempdir;

use super::{program, std_program};

const BACKENDS: (&str, &str) = ("PDBMUX_BACKENDS", "pdb-a=http://127.0.0.1:1");

/// A running program; killed with the test.
pub(super) struct Running(pub(super) Child);

impl Running {
    /// Starts it and waits for the line that tells its address.
    pub(super) fn start(command: &mut Command) -> (Self, String, BufReader<impl Read + use<>>) {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let running = Self(child);
        let mut line = String::new();
        while !line.contains("listening on ") {
            line.clear();
            assert!(
                log.read_line(&mut line).unwrap() > 0,
                "it ended before it listened"
            );
        }
        (running, line, log)
    }

    pub(super) fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.0.id());
        assert!(
            Command::new("sh")
                .args(["-c", &kill])
                .status()
                .unwrap()
                .success()
        );
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn r287_r291_with_backends_alone_it_serves_until_it_is_told_to_stop() {
    for (args, signal) in [(&[][..], "TERM"), (&["serve"], "INT")] {
        let dir = tempdir().unwrap();
        let mut command = std_program(&dir);
        command.env(BACKENDS.0, BACKENDS.1).args(args);
        // Only so that tests do not share a port.
        command.args(["--listen", "127.0.0.1:0"]);
        let (mut running, line, _log) = Running::start(&mut command);
        let address = line.trim_end().rsplit(' ').next().unwrap();
        TcpStream::connect(address).unwrap();
        running.signal(signal);
        assert!(running.0.wait().unwrap().success());
    }
}

#[test]
fn r226_the_configuration_is_read_once_at_the_start() {
    let dir = tempdir().unwrap();
    let file = dir.path().join("pdbmux.yaml");
    fs::write(&file, "source_fact: first\n").unwrap();
    let mut command = std_program(&dir);
    command
        .env(BACKENDS.0, BACKENDS.1)
        .env("PDBMUX_CONFIG", &file);
    command.args(["--listen", "127.0.0.1:0"]);
    let (_running, line, _log) = Running::start(&mut command);
    let address = line.trim_end().rsplit(' ').next().unwrap();
    fs::write(&file, "source_fact: second\n").unwrap();
    // What names no backend is known without asking (R062), for the source fact alone.
    for (name, status) in [("first", "200"), ("second", "502")] {
        let mut stream = TcpStream::connect(address).unwrap();
        let path = format!("/pdb/query/v4/facts/{name}/nobody");
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let expected = format!("HTTP/1.1 {status} ");
        assert!(answer.starts_with(&expected), "{name}: {answer}");
    }
}

#[test]
fn the_log_can_be_json_and_carries_the_notes() {
    let dir = tempdir().unwrap();
    let mut command = std_program(&dir);
    command
        .env(BACKENDS.0, BACKENDS.1)
        .env("PDBMUX_LOG_FORMAT", "json")
        .env("PDBMUX_LISTEN", "127.0.0.1:0")
        .env("PDBMUX_FACTS_TTL", "600s")
        .stderr(Stdio::piped());
    let mut child = Running(command.spawn().unwrap());
    let mut log = BufReader::new(child.0.stderr.take().unwrap()).lines();
    let mut message = || {
        let line: serde_json::Value = serde_json::from_str(&log.next().unwrap().unwrap()).unwrap();
        line["fields"]["message"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        message(),
        "facts_ttl \"600s\" (PDBMUX_FACTS_TTL) is over the cap: 30s is used"
    );
    assert!(message().starts_with("listening on 127.0.0.1:"));
}

#[test]
fn an_address_that_is_taken_ends_with_status_1_and_one_sentence() {
    let dir = tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    program(&dir)
        .env(BACKENDS.0, BACKENDS.1)
        .args(["--listen", &address])
        .assert()
        .code(1)
        .stderr(format!(
            "pdbmux: cannot listen on {address}: the address is in use\n"
        ));
}

/// Answers the first request on every connection with a refusal; what came.
fn refusing(listener: &TcpListener) -> String {
    let (mut stream, _) = listener.accept().unwrap();
    let mut head = String::new();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
    }
    let refusal = "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno";
    stream.write_all(refusal.as_bytes()).unwrap();
    head
}

#[test]
fn secrets_that_backends_are_sent_are_in_no_log_however_much_is_logged() {
    let dir = tempdir().unwrap();
    let backend = TcpListener::bind("127.0.0.1:0").unwrap();
    let password = dir.path().join("password");
    fs::write(&password, "hush-password\n").unwrap();
    let url = backend.local_addr().unwrap();
    let mut command = std_program(&dir);
    command
        .env("PDBMUX_BACKENDS", format!("pdb-a=http://{url}"))
        .env("PDBMUX_BACKEND_HEADERS", "X-Authentication=env:TOKEN")
        .env("TOKEN", "hush-token")
        .env("PDBMUX_BACKEND_USER", "reader")
        .env(
            "PDBMUX_BACKEND_PASSWORD",
            format!("file:{}", password.display()),
        )
        .env("PDBMUX_HEALTH_PROBE_ENABLED", "false")
        .env("PDBMUX_LOG_LEVEL", "trace")
        .env("PDBMUX_LISTEN", "127.0.0.1:0");
    let (mut running, line, mut log) = Running::start(&mut command);
    let address = line.trim_end().rsplit(' ').next().unwrap();
    let logged = std::thread::spawn(move || {
        let mut text = String::new();
        log.read_to_string(&mut text).unwrap();
        text
    });
    let mut stream = TcpStream::connect(address).unwrap();
    let request = "GET /pdb/query/v4/reports HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let sent = refusing(&backend).to_ascii_lowercase();
    assert!(
        sent.contains("\r\nx-authentication: hush-token\r\n"),
        "{sent}"
    );
    assert!(sent.contains("\r\nauthorization: basic "), "{sent}");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    running.signal("TERM");
    assert!(running.0.wait().unwrap().success());
    let logged = logged.join().unwrap();
    assert!(logged.contains("answered"), "{logged}");
    for text in [answer, logged] {
        // The password as it is sent, too.
        for secret in ["hush", "cmVhZGVyOmh1c2g"] {
            assert!(!text.contains(secret), "{text}");
        }
    }
}

#[test]
fn a_hangup_makes_it_read_its_configuration_again_and_say_what_came_of_it() {
    let dir = tempdir().unwrap();
    let file = dir.path().join("pdbmux.yaml");
    let write = |text: &str| {
        let backends = "backends:\n- {name: pdb-a, url: 'http://127.0.0.1:1'}\n";
        fs::write(&file, format!("{backends}{text}\n")).unwrap();
    };
    write("log_level: info");
    let mut command = std_program(&dir);
    command
        .args(["--listen", "127.0.0.1:0", "--config"])
        .arg(&file)
        .env("PDBMUX_HEALTH_PROBE_ENABLED", "false");
    let (mut running, line, mut log) = Running::start(&mut command);
    let address = line.trim_end().rsplit(' ').next().unwrap().to_owned();
    let mut until = |sentence: &str| {
        let mut line = String::new();
        while !line.contains(sentence) {
            line.clear();
            assert!(log.read_line(&mut line).unwrap() > 0, "{sentence}");
        }
    };
    let at = file.display();
    for (text, sentences) in [
        ("merge: static", &["the configuration was read again"][..]),
        (
            "merge: newest",
            &[&format!(
                "the configuration stays as it was: merge \"newest\" ({at}:3) is not one of \
                 freshness, static, exact"
            )],
        ),
        (
            "log_format: json\nlog_level: debug",
            &[
                "log_format is changed by a restart alone",
                "the configuration was read again",
            ],
        ),
    ] {
        write(text);
        running.signal("HUP");
        for sentence in sentences {
            until(sentence);
        }
    }
    // What is told at this level now is not at the one before.
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .write_all(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        .unwrap();
    until("answered");
    running.signal("TERM");
    assert!(running.0.wait().unwrap().success());
}

#[test]
fn secrets_that_clients_show_are_in_no_log_however_much_is_logged() {
    let dir = tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let hash = bcrypt::hash("hush-password", 4).unwrap();
    let mut command = std_program(&dir);
    command
        .env(BACKENDS.0, BACKENDS.1)
        .env("PDBMUX_TOKENS", file("tokens", "board hush-token\n"))
        .env("PDBMUX_USERS", file("users", &format!("ann:{hash}\n")))
        .env("PDBMUX_HEALTH_PROBE_ENABLED", "false")
        .env("PDBMUX_LOG_LEVEL", "trace")
        .env("PDBMUX_LISTEN", "127.0.0.1:0");
    let (mut running, line, mut log) = Running::start(&mut command);
    let address = line.trim_end().rsplit(' ').next().unwrap();
    let logged = std::thread::spawn(move || {
        let mut text = String::new();
        log.read_to_string(&mut text).unwrap();
        text
    });
    // Of the user ann, with the right password and another.
    for (header, status) in [
        ("X-Authentication: hush-token", "502"),
        ("Authorization: Bearer hush-wrong", "401"),
        ("Authorization: Basic YW5uOmh1c2gtcGFzc3dvcmQ=", "502"),
        ("Authorization: Basic YW5uOmh1c2gtd3Jvbmc=", "401"),
    ] {
        let mut stream = TcpStream::connect(address).unwrap();
        let request = "GET /pdb/query/v4/reports HTTP/1.1\r\nHost: x\r\nConnection: close\r\n";
        write!(stream, "{request}{header}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{header}: {answer}"
        );
    }
    running.signal("TERM");
    assert!(running.0.wait().unwrap().success());
    let logged = logged.join().unwrap();
    assert!(logged.contains("a client is refused"), "{logged}");
    for secret in ["hush", "YW5uOmh1c2g", &*hash] {
        assert!(!logged.contains(secret), "{logged}");
    }
}

#[test]
fn a_file_of_the_door_that_cannot_be_used_ends_with_one_sentence() {
    let dir = tempdir().unwrap();
    program(&dir)
        .env(BACKENDS.0, BACKENDS.1)
        .env("PDBMUX_TOKENS", "/nonexistent/tokens")
        .args(["--listen", "127.0.0.1:0"])
        .assert()
        .code(1)
        .stderr("pdbmux: tokens /nonexistent/tokens cannot be read: it does not exist\n");
}

#[test]
fn a_service_manager_is_told_of_each_step() {
    let dir = tempdir().unwrap();
    let told = UnixDatagram::bind(dir.path().join("notify")).unwrap();
    told.set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let file = dir.path().join("pdbmux.yaml");
    let backends = "backends:\n- {name: pdb-a, url: 'http://127.0.0.1:1'}\n";
    fs::write(&file, backends).unwrap();
    let mut command = std_program(&dir);
    command
        .args(["--listen", "127.0.0.1:0", "--config"])
        .arg(&file)
        .env("NOTIFY_SOCKET", dir.path().join("notify"));
    let (mut running, _line, _log) = Running::start(&mut command);
    let next = || {
        let mut message = [0; 1024];
        let length = told.recv(&mut message).unwrap();
        String::from_utf8(message[..length].to_vec()).unwrap()
    };
    assert_eq!(next(), "READY=1\nSTATUS=serving 1 backends");
    fs::write(&file, backends.to_owned() + "merge: newest\n").unwrap();
    running.signal("HUP");
    assert!(next().starts_with("RELOADING=1\nMONOTONIC_USEC="));
    let status = next();
    assert!(
        status.starts_with("READY=1\nSTATUS=serving 1 backends; the last reload failed: merge"),
        "{status}"
    );
    running.signal("TERM");
    assert!(next().starts_with("STOPPING=1\n"));
    assert!(running.0.wait().unwrap().success());
}
