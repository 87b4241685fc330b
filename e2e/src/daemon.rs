//! What runs in front of the rig: the pdbmux under test, nginx before several of it, and Puppetboard as
//! its client.

use std::borrow::Borrow;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::http::Client;
use crate::process::{Running, Service, StopBy, free_port};
use crate::rig::Member;
use crate::settings::{Lifetime, Settings};

/// How long either may take until it answers.
const START: Duration = Duration::from_secs(30);

/// A daemon under test. Dropping it stops it.
#[derive(Debug)]
pub struct Daemon {
    /// A client of it.
    pub client: Client,
    /// Its process.
    pub process: Running,
}

/// Starts the real pdbmux on a free port before `backends`, with `variables` on top; it
/// sees nothing else of this process's environment.
pub fn pdbmux<M: Borrow<Member>>(
    settings: &Settings,
    backends: &[M],
    variables: &[(&str, &str)],
) -> Result<Daemon> {
    pdbmux_at(settings, free_port()?, backends, variables)
}

/// The same on `port`, so that it can take the place of one that has ended.
pub fn pdbmux_at<M: Borrow<Member>>(
    settings: &Settings,
    port: u16,
    backends: &[M],
    variables: &[(&str, &str)],
) -> Result<Daemon> {
    let list: Vec<_> = backends
        .iter()
        .map(Borrow::borrow)
        .map(|one: &Member| format!("{}={}", one.name, one.client.base()))
        .collect();
    let list = list.join(",");
    let mut all = vec![("PDBMUX_BACKENDS", list.as_str())];
    all.extend(variables);
    run(settings, port, &all)
}

/// Starts the real pdbmux with the configuration file `name` in the rig's folder, which is written
/// with this text; it sees nothing else but `variables`.
pub fn configured(
    settings: &Settings,
    name: &str,
    text: &str,
    variables: &[(&str, &str)],
) -> Result<Daemon> {
    let file = run_folder(settings).join(name);
    fs::write(&file, text)?;
    let file = file.to_string_lossy();
    let mut all = vec![("PDBMUX_CONFIG", &*file)];
    all.extend(variables);
    run(settings, free_port()?, &all)
}

fn run(settings: &Settings, port: u16, variables: &[(&str, &str)]) -> Result<Daemon> {
    let mut command = vec![
        "env".to_owned(),
        "-i".into(),
        format!("PDBMUX_LISTEN=127.0.0.1:{port}"),
    ];
    command.extend(
        variables
            .iter()
            .map(|(name, value)| format!("{name}={value}")),
    );
    command.extend(settings.variables.iter().cloned());
    command.push(settings.pdbmux_binary()?.to_string_lossy().into_owned());
    start(settings, "pdbmux", port, &command, "/healthz")
}

/// Starts Puppetboard before `server`, with one thread: several share one client object and
/// mix up its totals.
pub fn puppetboard(settings: &Settings, server: &Client) -> Result<Daemon> {
    let program = settings.folder.join("venv/bin/waitress-serve");
    ensure!(
        program.exists(),
        "Puppetboard is not installed: run e2e/setup.sh"
    );
    let (_, server_port) = server
        .base()
        .rsplit_once(':')
        .context("a server without a port")?;
    let port = free_port()?;
    let file = run_folder(settings).join(format!("puppetboard-{port}.py"));
    fs::write(
        &file,
        format!(
            "PUPPETDB_HOST = '127.0.0.1'\nPUPPETDB_PORT = {server_port}\nPUPPETDB_TIMEOUT = 60\n\
             SECRET_KEY = 'e2e'\nDEFAULT_ENVIRONMENT = 'production'\nOFFLINE_MODE = True\n\
             ENABLE_CATALOG = True\nENABLE_CLASS = True\nWTF_CSRF_ENABLED = False\n\
             SCHEDULER_ENABLED = False\nSCHEDULER_LOCK_BIND_PORT = {}\n",
            free_port()?
        ),
    )?;
    let command = [
        "env".to_owned(),
        format!("PUPPETBOARD_SETTINGS={}", file.display()),
        program.to_string_lossy().into_owned(),
        "--threads=1".into(),
        format!("--listen=127.0.0.1:{port}"),
        "puppetboard.app:app".into(),
    ];
    start(settings, "puppetboard", port, &command, "/status")
}

/// Starts nginx before servers on these ports, which it asks by turns, the next one where one cannot be
/// reached.
pub fn nginx(settings: &Settings, ports: &[u16]) -> Result<Daemon> {
    let port = free_port()?;
    let folder = run_folder(settings);
    let file = folder.join(format!("nginx-{port}.conf"));
    let servers: Vec<_> = ports
        .iter()
        // One that is away for a moment is not left out for longer.
        .map(|port| format!("server 127.0.0.1:{port} max_fails=0;"))
        .collect();
    let temporary: Vec<_> = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|kind| format!("{kind}_temp_path {}/nginx-{kind};", folder.display()))
        .collect();
    fs::write(
        &file,
        format!(
            "daemon off; master_process off; pid {folder}/nginx-{port}.own; error_log stderr error;\n\
             events {{}}\n\
             http {{ access_log off; {temporary}\n\
             proxy_http_version 1.1; proxy_set_header Connection '';\n\
             upstream pdbmux {{ {servers} keepalive 8; }}\n\
             server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://pdbmux; }} }} }}\n",
            folder = folder.display(),
            temporary = temporary.join(" "),
            servers = servers.join(" "),
        ),
    )?;
    let command = ["nginx", "-e", "stderr", "-c"].map(str::to_owned);
    let command = [&command[..], &[file.to_string_lossy().into_owned()]].concat();
    start(settings, "nginx", port, &command, "/livez")
}

fn start(
    settings: &Settings,
    kind: &str,
    port: u16,
    command: &[String],
    ready: &str,
) -> Result<Daemon> {
    /// Several pdbmux run at once, each with a log of its own.
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("{kind}-{}", COUNT.fetch_add(1, Ordering::Relaxed));
    let folder = run_folder(settings);
    let service = Service {
        name: &name,
        folder: &folder,
        stop_by: StopBy::Kill,
    };
    let process = service.start(command, Lifetime::Bound, &[])?;
    let client = Client::new(format!("http://127.0.0.1:{port}"));
    process.wait(kind, START, || client.get(ready, &[]).ok())?;
    Ok(Daemon { client, process })
}

fn run_folder(settings: &Settings) -> PathBuf {
    settings.folder.join("run")
}
