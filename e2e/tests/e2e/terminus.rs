//! A Puppet Server's own client: the termini of Debian's `puppet-terminus-puppetdb`, which speak
//! HTTPS alone, before pdbmux under `merge: exact`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use anyhow::{Context as _, Result, ensure};
use pdbmux_e2e::estate::{EXPORTED, MOVED, Strategy};
use pdbmux_e2e::http::Client;
use pdbmux_e2e::tls::{Authority, Front};
use tempfile::TempDir;

use crate::exact_clients::{exact, lines};
use crate::puppetboard::{OF_A, OF_B};
use crate::world::World;
use crate::{Case, cases};

pub(crate) const CASES: &[Case] = cases![
    exact_the_puppet_terminus_reads_what_it_reads_of_the_oracle,
    exact_a_puppet_run_collects_each_export_once_and_stores_at_the_next_server,
];

/// The node that Puppet runs on, and what its servers are called.
const COLLECTOR: &str = "collector.example.com";
const SERVER: &str = "localhost";

/// Of each backend, held by both with either newer, gone where newest, and unknown.
const NODES: [&str; 8] = [
    OF_A,
    OF_B,
    "core1.example.com",
    "edge1.example.com",
    MOVED,
    "quiet3.example.com",
    "retired3.example.com",
    "nosuch.example.com",
];

fn exact_the_puppet_terminus_reads_what_it_reads_of_the_oracle(world: &World) -> Result<()> {
    let (union, daemon) = exact(world)?;
    let read = |server: &Client| {
        let puppet = Puppet::before(&[address(server)?])?;
        let script = world.settings.repository.join("e2e/clients/terminus.rb");
        let mut command = puppet.command("ruby");
        command.arg(script).args(puppet.folders());
        lines(command.arg(COLLECTOR).args(NODES))
    };
    let (got, wanted) = (read(&daemon.client)?, read(&union)?);
    for (question, answer) in &wanted {
        ensure!(
            got.get(question) == Some(answer),
            "{question}: {:?} for {answer}",
            got.get(question)
        );
        ensure!(!answer.starts_with("error"), "{question}: {answer}");
    }
    ensure!(got.len() == wanted.len(), "{} questions", got.len());
    let found = |question: &str, text: &str| wanted[question].contains(text);
    ensure!(found(&format!("facts find {MOVED}"), r#""only_in_b":true"#));
    ensure!(found("File <<| |>>", MOVED));
    ensure!(!found("File <<| |>>", "retired3.example.com"));
    Ok(())
}

fn exact_a_puppet_run_collects_each_export_once_and_stores_at_the_next_server(
    world: &World,
) -> Result<()> {
    let (_, daemon) = exact(world)?;
    let (sink, stored) = sink()?;
    let puppet = Puppet::before(&[address(&daemon.client)?, sink])?;
    let mut command = puppet.command("puppet");
    let [confdir, vardir] = puppet.folders();
    command.args(["apply", "--noop", "--color=false", "--confdir"]);
    command.arg(confdir).arg("--vardir").arg(vardir);
    let output = command.args(["-e", "File <<| |>>"]).output()?;
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    // Two resources of one title, a node's own and its stale copy's, would have failed the run.
    ensure!(output.status.success(), "{said}");
    let begin = format!("File[{EXPORTED}/");
    let collected: BTreeSet<_> = said
        .lines()
        .filter_map(|line| line.split_once(&begin)?.1.split_once("]/ensure"))
        .map(|(certname, _)| certname)
        .collect();
    let nodes = world.estate.owners(Strategy::Exact);
    let ran = nodes.filter(|(certname, _)| !certname.starts_with("quiet"));
    let wanted: BTreeSet<_> = ran.map(|(certname, _)| certname).collect();
    ensure!(collected == wanted, "{collected:?}\nfor {wanted:?}\n{said}");
    let stored: Vec<_> = stored.try_iter().collect();
    for command in ["replace_catalog", "store_report"] {
        let is_it = |head: &&String| {
            head.starts_with("POST /pdb/cmd/v1?") && head.contains(&format!("command={command}&"))
        };
        ensure!(
            stored.iter().filter(is_it).count() == 1,
            "{stored:?}\n{said}"
        );
    }
    ensure!(said.contains("Not Implemented"), "{said}");
    ensure!(
        stored.len() == 2,
        "it read from the next server: {stored:?}"
    );
    Ok(())
}

/// A Puppet with folders of its own.
struct Puppet {
    folder: TempDir,
    _fronts: Vec<Front>,
}

impl Puppet {
    /// One that knows these servers, in this order, each behind TLS.
    fn before(servers: &[SocketAddr]) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let authority = Authority::new()?;
        let own = authority.identity(COLLECTOR)?;
        let fronts = servers
            .iter()
            .map(|server| authority.front(SERVER, *server))
            .collect::<Result<Vec<_>>>()?;
        let urls: Vec<_> = fronts
            .iter()
            .map(|front| format!("https://{SERVER}:{}", front.port))
            .collect();
        let root = folder.path().display();
        for (path, text) in [
            (
                "conf/puppet.conf",
                format!(
                    "[main]\ncertname = {COLLECTOR}\ncertificate_revocation = false\n\
                     storeconfigs = true\nstoreconfigs_backend = puppetdb\nreports = puppetdb\n\
                     ssldir = {root}/ssl\nlogdir = {root}/log\nrundir = {root}/run\n\
                     codedir = {root}/code\n"
                ),
            ),
            (
                "conf/puppetdb.conf",
                format!("[main]\nserver_urls = {}\n", urls.join(", ")),
            ),
            // The facts of this machine are no matter of the run.
            (
                "conf/routes.yaml",
                "apply:\n  catalog:\n    terminus: compiler\n    cache: puppetdb\n  facts:\n    \
                 terminus: yaml\n    cache: puppetdb_apply\n"
                    .to_owned(),
            ),
            (
                &format!("var/yaml/facts/{COLLECTOR}.yaml"),
                format!(
                    "--- !ruby/object:Puppet::Node::Facts\nname: {COLLECTOR}\nvalues:\n  \
                     kernel: Linux\n"
                ),
            ),
            ("ssl/certs/ca.pem", authority.certificate.clone()),
            (&format!("ssl/certs/{COLLECTOR}.pem"), own.certificate),
            (&format!("ssl/private_keys/{COLLECTOR}.pem"), own.key),
        ] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().context("no folder")?)?;
            fs::write(path, text)?;
        }
        fs::create_dir_all(folder.path().join("code/environments/production"))?;
        Ok(Self {
            folder,
            _fronts: fronts,
        })
    }

    /// A program that sees nothing of this machine's own Puppet.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env("HOME", self.folder.path())
            .env("LC_ALL", "C.UTF-8");
        command
    }

    /// Where its configuration lies, and its state.
    fn folders(&self) -> [std::path::PathBuf; 2] {
        ["conf", "var"].map(|name| self.folder.path().join(name))
    }
}

fn address(server: &Client) -> Result<SocketAddr> {
    let (_, address) = server.base().split_once("://").context("no address")?;
    Ok(address.parse()?)
}

/// A server that takes every command, and what it was sent: the first line of each request.
fn sink() -> Result<(SocketAddr, Receiver<String>)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let (sender, heads) = channel();
    // It ends with the test program.
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let sender = sender.clone();
            thread::spawn(move || take(stream, &sender));
        }
    });
    Ok((address, heads))
}

/// Answers the requests of one connection.
fn take(mut stream: TcpStream, heads: &Sender<String>) -> Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let mut first = String::new();
        if reader.read_line(&mut first)? == 0 {
            return Ok(());
        }
        let mut fields = BTreeMap::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                break;
            };
            fields.insert(name.to_ascii_lowercase(), value.to_owned());
        }
        let length = fields
            .get("content-length")
            .map_or(Ok(0), |it| it.parse())?;
        reader.read_exact(&mut vec![0; length])?;
        heads.send(first)?;
        let body = r#"{"uuid":"8b1c9e5e-0000-4000-8000-000000000001"}"#;
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Type: application/json;charset=utf-8\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        )?;
    }
}
