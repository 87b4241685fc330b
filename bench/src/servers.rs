//! The servers of a run: nginx with the backends' answers, nginx before it as the peer to beat, and
//! pdbmux.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use pdbmux_e2e::process::{Running, Service, StopBy, free_port};
use pdbmux_e2e::settings::Lifetime;

use crate::fetch::fetch;

/// How long a server may take until it answers.
const START: Duration = Duration::from_secs(20);

/// A server and the ports it listens on.
pub(crate) struct Server {
    pub(crate) process: Running,
    pub(crate) ports: Vec<u16>,
}

/// A PuppetDB for each of `backends`: the files of a folder, chosen by what is asked. Each also serves
/// the lists in `cached`.
pub(crate) fn upstream(run: &Path, backends: &[PathBuf], cached: &Path) -> Result<Server> {
    let mut ports = Vec::new();
    // A file as short as a count would wait for the acknowledgement of its head, some 40 ms.
    // Whatever asks with a condition gets what the backend owns; a count is a count.
    let mut servers = String::from(
        "map $args $counts { default 0; ~count 1; }\n\
         map $args $nodes { default nodes.json; ~%22not%22 nodes-owned.json; }\n\
         map $request_method$args $facts { default facts.json; ~POST owned.json; ~query= owned.json; }\n",
    );
    for backend in backends {
        let port = free_port()?;
        let folder = backend.display();
        writeln!(
            servers,
            "server {{ listen 127.0.0.1:{port} backlog=1024 reuseport; default_type application/json;\n\
             location = /pdb/query/v4/nodes {{ if ($counts) {{ rewrite ^ /count.json last; }} alias {folder}/$nodes; }}\n\
             location = /count.json {{ sendfile off; tcp_nopush off; root {folder}; }}\n\
             location = /pdb/query/v4/events {{ alias {folder}/events.json; }}\n\
             location = /pdb/query/v4/facts {{ alias {folder}/$facts; error_page 405 =200 $uri; }}\n\
             location ~ ^/pdb/query/v4/facts/(small|large)$ {{ alias {cached}/$1.json; }}\n\
             location = /pdb/meta/v1/version {{ return 200 '{{\"version\":\"8.4.1\"}}'; }}\n\
             location = /status/v1/services/puppetdb-status {{ return 200 '{{\"state\":\"running\",\"status\":{{\"maintenance_mode?\":false,\"read_db_up?\":true}}}}'; }} }}",
            cached = cached.display(),
        )?;
        ports.push(port);
    }
    nginx(run, "upstream", &servers, ports, "/pdb/meta/v1/version")
}

/// nginx that passes on what the servers on `to` answer, one port for each.
pub(crate) fn passing(run: &Path, to: &[u16]) -> Result<Server> {
    let mut ports = Vec::new();
    // Nothing is written to disk, and connections are kept: nginx at its best.
    let mut servers = String::from(
        "proxy_http_version 1.1; proxy_set_header Connection ''; proxy_max_temp_file_size 0;\n",
    );
    for to in to {
        let port = free_port()?;
        writeln!(
            servers,
            "upstream to{to} {{ server 127.0.0.1:{to}; keepalive 64; }}\n\
             server {{ listen 127.0.0.1:{port} backlog=1024 reuseport; location / {{ proxy_pass http://to{to}; }} }}"
        )?;
        ports.push(port);
    }
    nginx(run, "passing", &servers, ports, "/pdb/meta/v1/version")
}

fn nginx(run: &Path, name: &str, servers: &str, ports: Vec<u16>, ready: &str) -> Result<Server> {
    let file = run.join(format!("{name}.conf"));
    let text = format!(
        "daemon off; worker_processes 2; pid {pid}; error_log stderr error;\n\
         events {{ worker_connections 4096; }}\n\
         http {{ access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000;\n\
         client_body_temp_path {run}/body; proxy_temp_path {run}/proxy; fastcgi_temp_path {run}/fastcgi;\n\
         uwsgi_temp_path {run}/uwsgi; scgi_temp_path {run}/scgi;\n{servers}}}\n",
        pid = run.join(format!("{name}.nginx")).display(),
        run = run.display(),
    );
    fs::write(&file, text)?;
    let command = [
        "nginx".to_owned(),
        "-e".into(),
        "stderr".into(),
        "-c".into(),
        file.display().to_string(),
    ];
    start(run, name, &command, ports, ready).map(|(server, _)| server)
}

/// How pdbmux is set up in a run.
pub(crate) struct Setup<'a> {
    pub(crate) binary: &'a Path,
    pub(crate) merge: &'a str,
    /// Whether answers are kept.
    pub(crate) cache: bool,
    pub(crate) backends: &'a [u16],
    /// The memory that it may take.
    pub(crate) memory: Memory,
}

/// The memory that a server may take.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Memory {
    /// What the machine has.
    Any,
    /// So many bytes, beyond which the kernel ends it.
    AtMost(u64),
}

impl Memory {
    /// `command` within the limit: in a control group, of whichever version may be written here.
    fn limit(self, command: Vec<String>) -> Result<Vec<String>> {
        let Self::AtMost(bytes) = self else {
            return Ok(command);
        };
        let group = |root: &str, file: &str| {
            let group = Path::new(root).join("pdbmux-bench");
            // Where there is no such file at the root, it is none of control groups.
            fs::metadata(Path::new(root).join("cgroup.procs")).ok()?;
            fs::create_dir_all(&group).ok()?;
            fs::write(group.join(file), bytes.to_string()).ok()?;
            Some(group)
        };
        let group = group("/sys/fs/cgroup", "memory.max")
            .or_else(|| group("/sys/fs/cgroup/memory", "memory.limit_in_bytes"))
            .context("no control group can be made: run as root")?;
        let enter = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", group.display());
        let shell = ["sh".to_owned(), "-c".into(), enter, "sh".into()];
        Ok(shell.into_iter().chain(command).collect())
    }
}

/// pdbmux, and how long it took from its start to its first answer.
pub(crate) fn pdbmux(run: &Path, setup: &Setup<'_>) -> Result<(Server, Duration)> {
    let port = free_port()?;
    let backends: Vec<_> = setup
        .backends
        .iter()
        .enumerate()
        .map(|(at, port)| format!("backend{at}=http://127.0.0.1:{port}"))
        .collect();
    let ttl = if setup.cache { "30s" } else { "0" };
    let command = [
        "env".to_owned(),
        "-i".into(),
        format!("PDBMUX_LISTEN=127.0.0.1:{port}"),
        format!("PDBMUX_BACKENDS={}", backends.join(",")),
        format!("PDBMUX_MERGE={}", setup.merge),
        format!("PDBMUX_FACTS_TTL={ttl}"),
        "PDBMUX_HEALTH_PROBE_ENABLED=false".into(),
        setup.binary.display().to_string(),
        "serve".into(),
    ];
    let command = setup.memory.limit(command.to_vec())?;
    start(run, "pdbmux", &command, vec![port], "/healthz")
}

fn start(
    run: &Path,
    name: &str,
    command: &[String],
    ports: Vec<u16>,
    ready: &str,
) -> Result<(Server, Duration)> {
    let service = Service {
        name,
        folder: run,
        stop_by: StopBy::Kill,
    };
    let began = Instant::now();
    let process = service.start(command, Lifetime::Bound, &[])?;
    let port = *ports.first().context("a server without a port")?;
    loop {
        if fetch(port, ready).is_ok() {
            return Ok((Server { process, ports }, began.elapsed()));
        }
        if began.elapsed() > START || !process.is_alive() {
            anyhow::bail!("{name} does not start:\n{}", process.tail());
        }
        std::thread::yield_now();
    }
}

/// An empty folder for the run's own files.
pub(crate) fn run_folder(root: &Path) -> Result<PathBuf> {
    let folder = root.join("run");
    fs::create_dir_all(&folder)?;
    Ok(folder)
}
