//! The rig's own PostgreSQL cluster; the machine's default one is never touched.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::process::{Running, Service, StopBy, require_free};
use crate::settings::Lifetime;

/// The packages' account, for PostgreSQL refuses to run as root.
const USER: &str = "postgres";

/// That account, with leave to pass folders that are closed to it: the rig's may lie in one.
const AS_USER: &[&str] = &[
    "--reuid",
    USER,
    "--regid",
    USER,
    "--init-groups",
    "--inh-caps",
    "+dac_override",
    "--ambient-caps",
    "+dac_override",
];

/// What a database orders its text by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Locale {
    /// By bytes, as pdbmux does.
    Bytes,
    /// As people do, and as most PuppetDBs' databases: `a` before `B`.
    English,
}

impl Locale {
    /// Its name to PostgreSQL.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bytes => "C.UTF-8",
            Self::English => "en_US.UTF-8",
        }
    }
}

/// The tables that a migration fills and that hold nothing of any node.
const FIXED: &str = "'schema_migrations', 'value_types', 'report_statuses'";

/// A cluster in a folder, serving one port of 127.0.0.1 without passwords.
#[derive(Debug)]
pub struct Cluster {
    folder: PathBuf,
    binaries: PathBuf,
    port: u16,
}

impl Cluster {
    /// Describes the cluster in `folder`; an error when PostgreSQL is not installed.
    pub fn new(folder: PathBuf, port: u16) -> Result<Self> {
        let binaries = newest_binaries(Path::new("/usr/lib/postgresql"))
            .context("PostgreSQL is not installed: run e2e/setup.sh")?;
        Ok(Self {
            folder,
            binaries,
            port,
        })
    }

    /// The cluster an earlier run left running.
    pub fn find(&self, lifetime: Lifetime) -> Option<Running> {
        self.service().find(lifetime)
    }

    /// Starts it, creating its data folder first when there is none.
    pub fn start(&self, lifetime: Lifetime) -> Result<Running> {
        require_free(self.port, "PostgreSQL")?;
        let data = self.folder.join("data");
        if !data.join("PG_VERSION").exists() {
            self.create(&data)?;
        }
        // Each PuppetDB holds some 25 connections; nothing here has to survive a power cut.
        let mut command = vec![
            self.program("postgres"),
            "-D".into(),
            data.to_string_lossy().into_owned(),
        ];
        for setting in [
            &format!("port={}", self.port),
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            "max_connections=400",
            "fsync=off",
            "full_page_writes=off",
            "synchronous_commit=off",
        ] {
            command.extend(["-c".into(), setting.to_owned()]);
        }
        let running = self.service().start(&command, lifetime, AS_USER)?;
        let port = self.port.to_string();
        running.wait("PostgreSQL", Duration::from_secs(30), || {
            let asked = Command::new(self.binaries.join("pg_isready"))
                .args(["-q", "-h", "127.0.0.1", "-p", &port])
                .status();
            asked.is_ok_and(|status| status.success()).then_some(())
        })?;
        Ok(running)
    }

    /// Gives `names` a fresh, empty database each, with the extension PuppetDB wants.
    pub fn recreate(&self, names: &[&str]) -> Result<()> {
        let mut statements = vec![
            "do $$ begin create role puppetdb login; exception when duplicate_object then null; end $$".to_owned(),
        ];
        for name in names {
            statements.push(format!("drop database if exists {name} with (force)"));
            statements.push(format!("create database {name} owner puppetdb"));
        }
        self.psql("postgres", &statements)?;
        for name in names {
            self.psql(name, &["create extension pg_trgm".to_owned()])?;
        }
        Ok(())
    }

    /// Takes all nodes out of a PuppetDB's database; what its migrations made stays.
    pub fn clear(&self, name: &str) -> Result<()> {
        let truncate = format!(
            "do $$ begin execute (select 'truncate ' || string_agg(format('%I', relname), ', ') \
             || ' restart identity cascade' from pg_stat_user_tables where relname not in ({FIXED})); end $$"
        );
        self.psql(name, &[truncate])
    }

    /// Gives a cleared database another text order, or none if it has it. The PuppetDB on it
    /// loses its connections.
    pub fn relocate(&self, name: &str, locale: Locale) -> Result<()> {
        let asked = format!("select datcollate from pg_database where datname = '{name}'");
        let output = self
            .command("psql", "postgres")
            .args(["-Atc", &asked])
            .output()?;
        if String::from_utf8_lossy(&output.stdout).trim() == locale.name() {
            return Ok(());
        }
        let dumped = self.command("pg_dump", name).output()?;
        ensure!(
            dumped.status.success(),
            "pg_dump: {}",
            String::from_utf8_lossy(&dumped.stderr).trim()
        );
        self.psql(
            "postgres",
            &[
                format!("drop database {name} with (force)"),
                format!(
                    "create database {name} owner puppetdb template template0 locale '{}'",
                    locale.name()
                ),
            ],
        )?;
        let mut restoring = self
            .command("psql", name)
            .args(["-q", "-v", "ON_ERROR_STOP=1"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()?;
        if let Some(mut input) = restoring.stdin.take() {
            input.write_all(&dumped.stdout)?;
        }
        ensure!(
            restoring.wait()?.success(),
            "psql could not restore database {name}"
        );
        Ok(())
    }

    /// Bytewise text order, as the oracle's answers have to be compared with pdbmux's.
    fn create(&self, data: &Path) -> Result<()> {
        fs::create_dir_all(&self.folder)?;
        if data.exists() {
            // A half-made cluster of an aborted run.
            fs::remove_dir_all(data)?;
        }
        fs::create_dir(data)?;
        let (user, group) = account(USER)?;
        chown(data, Some(user), Some(group))?;
        let made = Command::new("setpriv")
            .args(AS_USER)
            .args([
                "--",
                &self.program("initdb"),
                "--auth=trust",
                "--encoding=UTF8",
                "--locale=C.UTF-8",
            ])
            .args(["--no-sync", "-D"])
            .arg(data)
            .current_dir("/")
            .output()?;
        ensure!(
            made.status.success(),
            "initdb: {}",
            String::from_utf8_lossy(&made.stderr).trim()
        );
        Ok(())
    }

    fn psql(&self, database: &str, statements: &[String]) -> Result<()> {
        let mut command = self.command("psql", database);
        command.args(["-q", "-v", "ON_ERROR_STOP=1"]);
        for statement in statements {
            command.args(["-c", statement]);
        }
        let done = command
            .env("PGOPTIONS", "-c client_min_messages=warning")
            .output()?;
        if !done.status.success() {
            bail!("psql: {}", String::from_utf8_lossy(&done.stderr).trim());
        }
        Ok(())
    }

    /// A client program on `database`, as the cluster's owner.
    fn command(&self, program: &str, database: &str) -> Command {
        let mut command = Command::new(self.binaries.join(program));
        command
            .args(["-h", "127.0.0.1", "-U", USER, "-d", database, "-p"])
            .arg(self.port.to_string());
        command
    }

    fn program(&self, name: &str) -> String {
        self.binaries.join(name).to_string_lossy().into_owned()
    }

    fn service(&self) -> Service<'_> {
        Service {
            name: "postgres",
            folder: &self.folder,
            stop_by: StopBy::Interrupt,
        }
    }
}

/// The highest version's program folder below `root`.
fn newest_binaries(root: &Path) -> Option<PathBuf> {
    let version = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    fs::read_dir(root)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join("bin/initdb").exists())
        .max_by_key(|path| version(path))
        .map(|path| path.join("bin"))
}

/// User and group number of a local account.
fn account(name: &str) -> Result<(u32, u32)> {
    let passwd = fs::read_to_string("/etc/passwd")?;
    let fields: Vec<_> = passwd
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>())
        .find(|fields| fields.first() == Some(&name))
        .with_context(|| format!("there is no user {name}"))?;
    let number = |at: usize| fields.get(at).and_then(|text| text.parse().ok());
    number(2)
        .zip(number(3))
        .with_context(|| format!("/etc/passwd has no numbers for {name}"))
}
