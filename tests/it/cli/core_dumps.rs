//! No secret is told, and none can be read out of the memory of the program but by root: a run with
//! secrets of every kind, searched for them in all that it leaves behind.

use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::process::geteuid;

use super::serve::Running;
use crate::client::Client;
use crate::stub::Stub;
use crate::tls::{Authority, Files, Front, Identity};

const NODES: &str = "/pdb/query/v4/nodes";
const NOBODY: &str = "65534";

/// In each secret that is a text.
const HUSH: &str = "hush";

/// A command of a user without rights, also where the tests are run by root.
fn as_nobody(program: &str) -> Command {
    if !geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]);
    command.arg(program);
    command
}

/// The same, allowed to leave a core as long as it likes.
fn as_dumpable() -> Command {
    let mut command = as_nobody("sh");
    command.args(["-c", "ulimit -c unlimited; exec \"$0\" \"$@\""]);
    command
}

fn signal(child: &Child, name: &str) {
    let kill = format!("kill -{name} {}", child.id());
    let sent = Command::new("sh").args(["-c", &kill]).status().unwrap();
    assert!(sent.success());
}

/// A configuration with secrets of every kind, and what it needs.
struct Site {
    files: Files,
    stub: Stub,
    _front: Front,
    manager: UnixDatagram,
    /// What may be found nowhere.
    secrets: Vec<Vec<u8>>,
}

impl Site {
    async fn new() -> Self {
        let (stub, files) = (Stub::start().await, Files::new());
        stub.otherwise("[]");
        let ca = Authority::new("Puppet CA");
        let (client, own) = (ca.identity("pdbmux"), ca.identity("pdbmux"));
        let front = Front::before(&stub, &ca.identity("puppetdb"), Some(&ca)).await;
        let mut text = format!(
            "listen: 127.0.0.1:0\ntls_listen: 127.0.0.1:0\nadmin_listen: 127.0.0.1:0\n\
             access_log: json\nrequest_ids: true\nslow_query: 1ns\nlog_level: trace\n\
             facts_ttl: 0s\nbackends:\n- name: pdb-a\n  url: {}\n  server_name: puppetdb\n  \
             user: reader\n  password: env:PASSWORD\n",
            front.url()
        );
        let tokens = "board hush-token-of-a-client\n";
        let user = format!("ann:{}\n", bcrypt::hash("hush-of-ann", 4).unwrap());
        for (key, name, content) in [
            ("  ca", "ca.pem", ca.certificate.as_str()),
            ("  cert", "cert.pem", &client.certificate),
            ("  key", "key.pem", &client.key),
            ("  headers", "header", "hush-token-of-pdbmux\n"),
            ("tls_cert", "own.pem", &own.certificate),
            ("tls_key", "own-key.pem", &own.key),
            ("tokens", "tokens", tokens),
            ("users", "users", &user),
        ] {
            let path = files.write(name, content).display().to_string();
            let value = match name {
                "header" => format!("X-Authentication=file:{path},X-Team=env:TEAM"),
                _ => path,
            };
            writeln!(text, "{key}: {value}").unwrap();
        }
        files.write("pdbmux.yaml", &text);
        let manager = UnixDatagram::bind(files.path("notify")).unwrap();
        // Whoever runs the program reads this and leaves a core here.
        for path in [files.path(""), files.path("notify")] {
            fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
        }
        let hash = user.trim_end().split_once(':').unwrap().1.to_owned();
        let basic = |user| STANDARD.encode(format!("{user}:hush"))[..10].to_owned();
        let texts = [HUSH.to_owned(), hash, basic("reader"), basic("ann")];
        let keys = [&client, &own].into_iter().flat_map(of_key);
        let secrets = texts.into_iter().map(String::into_bytes).chain(keys);
        Self {
            secrets: secrets.collect(),
            files,
            stub,
            _front: front,
            manager,
        }
    }

    /// The program where everybody can run it.
    fn program(&self) -> PathBuf {
        let (built, here) = (env!("CARGO_BIN_EXE_pdbmux"), self.files.path("pdbmux"));
        if fs::hard_link(built, &here).is_err() && !here.exists() {
            fs::copy(built, &here).unwrap();
        }
        here
    }

    fn start(&self, more: &str) -> Started {
        let path = self.files.path("pdbmux.yaml");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{more}\n{text}")).unwrap();
        let mut command = as_dumpable();
        command
            .arg(self.program())
            .arg("--config")
            .arg(path)
            .current_dir(self.files.path(""))
            .env_clear()
            .env("PASSWORD", "hush-password")
            .env("TEAM", "hush-team")
            .env("NOTIFY_SOCKET", self.files.path("notify"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Started::of(command.spawn().unwrap())
    }

    /// What its service manager hears next.
    fn hears(&self) -> String {
        let mut message = [0; 512];
        let length = self.manager.recv(&mut message).unwrap();
        String::from_utf8(message[..length].to_vec()).unwrap()
    }

    /// The secrets that are in `bytes`.
    fn found(&self, bytes: &[u8]) -> Vec<String> {
        let is_there = |secret: &&Vec<u8>| memchr::memmem::find(bytes, secret).is_some();
        let found = self.secrets.iter().filter(is_there);
        found
            .map(|secret| String::from_utf8_lossy(secret).into_owned())
            .collect()
    }

    /// The core that was left, if one was.
    fn core(&self) -> Option<Vec<u8>> {
        let mut all = fs::read_dir(self.files.path("")).unwrap();
        let core = all.find_map(|entry| {
            let path = entry.unwrap().path();
            let is_core = path.file_name()?.to_str()?.starts_with("core");
            is_core.then_some(path)
        })?;
        let bytes = fs::read(&core).unwrap();
        fs::remove_file(core).unwrap();
        Some(bytes)
    }

    /// Whether the system writes a core of a process that is not against it.
    fn writes_cores(&self) -> bool {
        let mut command = as_dumpable();
        command.args(["sh", "-c", "kill -ABRT $$"]);
        let status = command.current_dir(self.files.path("")).status().unwrap();
        self.core();
        status.core_dumped()
    }
}

/// A line of a private key as it is in the file, and the same as bytes.
fn of_key(identity: &Identity) -> [Vec<u8>; 2] {
    let line = identity.key.lines().nth(1).unwrap();
    [
        line.as_bytes().to_vec(),
        STANDARD.decode(line).unwrap()[40..].to_vec(),
    ]
}

/// The program once it listens.
struct Started {
    running: Running,
    clients: SocketAddr,
    operators: SocketAddr,
    /// What it has written and writes.
    written: [JoinHandle<String>; 2],
}

impl Started {
    fn of(mut child: Child) -> Self {
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut out = child.stdout.take().unwrap();
        let running = Running(child);
        let mut text = String::new();
        let mut address = |sentence: &str| {
            loop {
                let mut line = String::new();
                assert!(log.read_line(&mut line).unwrap() > 0, "{sentence}: {text}");
                text.push_str(&line);
                if let Some((_, behind)) = line.split_once(sentence) {
                    return behind.trim().parse().unwrap();
                }
            }
        };
        let clients = address("listening on ");
        let operators = address("telling operators on ");
        let log = std::thread::spawn(move || {
            log.read_to_string(&mut text).unwrap();
            text
        });
        let out = std::thread::spawn(move || {
            let mut text = String::new();
            out.read_to_string(&mut text).unwrap();
            text
        });
        Self {
            running,
            clients,
            operators,
            written: [log, out],
        }
    }

    /// Whether another process of its user can read of it what `file` of /proc has.
    fn lets_read(&self, file: &str) -> bool {
        let path = format!("/proc/{}/{file}", self.running.0.id());
        // It opens, and reads nothing.
        let read = ["-c", "exec 3<\"$0\"", &path];
        let read = as_nobody("sh").args(read).stderr(Stdio::null()).status();
        read.unwrap().success()
    }

    /// Ends it as a fault does; whether the system wrote a core, and all that it has written.
    fn crash(mut self) -> (bool, String) {
        signal(&self.running.0, "ABRT");
        let status = self.running.0.wait().unwrap();
        assert_eq!(status.signal(), Some(6));
        let written = self.written.map(|it| it.join().unwrap());
        (status.core_dumped(), written.concat())
    }
}

/// Has all secrets used, right and mistyped ones; what is answered.
async fn use_secrets(site: &Site, started: &Started) -> String {
    let right = STANDARD.encode("ann:hush-of-ann");
    let wrong = STANDARD.encode("ann:hush-mistyped");
    let mut answers = String::new();
    for (header, status) in [
        (
            "Authorization: Bearer hush-token-of-a-client".to_owned(),
            200,
        ),
        ("X-Authentication: hush-token-of-a-client".to_owned(), 200),
        (format!("Authorization: Basic {right}"), 200),
        (format!("Authorization: Basic {wrong}"), 401),
        ("X-Authentication: hush-mistyped".to_owned(), 401),
    ] {
        for more in ["", "X-Pdbmux-Explain: 1\r\n"] {
            let mut client = Client::connect(started.clients).await;
            let head = format!("GET {NODES} HTTP/1.1\r\nHost: x\r\n{more}{header}\r\n\r\n");
            client.send(head).await;
            let response = client.response().await;
            assert_eq!(response.status, status, "{header}");
            write!(answers, "{:?}{}", response.headers, response.text()).unwrap();
        }
    }
    for target in ["/", "/metrics", "/healthz"] {
        let response = Client::connect(started.operators).await.get(target).await;
        answers.push_str(response.ok());
    }
    let seen = site.stub.seen();
    let seen = seen
        .iter()
        .find(|seen| seen.target.starts_with(NODES))
        .unwrap();
    for (name, value) in [
        ("x-authentication", "hush-token-of-pdbmux"),
        ("x-team", "hush-team"),
        (
            "authorization",
            &format!("Basic {}", STANDARD.encode("reader:hush-password")),
        ),
    ] {
        assert!(
            seen.headers.contains(&(name.to_owned(), value.to_owned())),
            "{seen:?}"
        );
    }
    answers
}

#[tokio::test]
async fn no_secret_is_told_or_left_in_a_core_and_none_can_be_read_by_its_user() {
    let site = Site::new().await;
    let started = site.start("");
    let told = use_secrets(&site, &started).await;
    // What it needs of itself it still has, and it still is heard.
    for metric in [
        "cpu_seconds_total",
        "resident_memory_bytes",
        "open_fds",
        "max_fds",
    ] {
        let line = format!("\nprocess_{metric} ");
        let (_, value) = told.split_once(&line).expect(metric);
        assert!(value.split('\n').next().unwrap().parse::<f64>().unwrap() > 0.0);
    }
    assert!(site.hears().starts_with("READY=1\n"));
    for file in ["environ", "mem", "maps"] {
        assert!(!started.lets_read(file), "{file}");
    }
    let (dumped, written) = started.crash();
    assert!(!dumped && site.core().is_none());
    assert!(
        written.contains("answered") && written.contains("\"status\":401"),
        "{written}"
    );
    for text in [told, written] {
        assert_eq!(site.found(text.as_bytes()), [""; 0], "{text}");
    }
}

#[tokio::test]
async fn where_core_dumps_are_allowed_its_memory_can_be_read_and_holds_the_secrets() {
    let site = Site::new().await;
    let started = site.start("core_dumps: true");
    use_secrets(&site, &started).await;
    for file in ["environ", "mem", "maps"] {
        assert!(started.lets_read(file), "{file}");
    }
    let (dumped, _) = started.crash();
    assert_eq!(dumped, site.writes_cores());
    // Where the system puts cores elsewhere there is none to look into.
    if let Some(core) = site.core() {
        let found = site.found(&core);
        assert!(found.contains(&HUSH.to_owned()), "{found:?}");
    }
}

#[tokio::test]
async fn a_reload_is_enough_to_allow_core_dumps_and_to_forbid_them_again() {
    let site = Site::new().await;
    let started = site.start("core_dumps: false");
    let path = site.files.path("pdbmux.yaml");
    let until_ready = || while !site.hears().starts_with("READY=1\n") {};
    until_ready();
    for (before, after) in [("false", "true"), ("true", "false")] {
        assert_eq!(started.lets_read("mem"), before == "true");
        let text = fs::read_to_string(&path).unwrap();
        let (before, after) = (format!("dumps: {before}"), format!("dumps: {after}"));
        fs::write(&path, text.replacen(&before, &after, 1)).unwrap();
        signal(&started.running.0, "HUP");
        until_ready();
    }
    assert!(!started.lets_read("mem"));
}
