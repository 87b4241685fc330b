//! PostgreSQL and the PuppetDBs: backends `a` and `b`, a third `c` on demand, the oracle `u`.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::estate::Estate;
use crate::http::Client;
use crate::load;
use crate::postgres::{Cluster, Locale};
use crate::process::{Running, poll};
use crate::puppetdb::{Program, PuppetDb, Secure, version};
use crate::server::Server;
use crate::settings::{Content, Lifetime, Settings};

/// How long a PuppetDB may take to find its database again.
const RECONNECT: Duration = Duration::from_secs(30);

/// A PuppetDB the tests talk to, whoever runs it.
#[derive(Debug)]
pub struct Member {
    /// The name pdbmux gives it.
    pub name: String,
    /// A client of its API.
    pub client: Client,
    /// Its version.
    pub version: String,
    /// Its process, if the rig started it.
    pub server: Option<Server>,
}

/// The running servers. Dropping it stops what is bound to it.
#[derive(Debug)]
pub struct Rig {
    /// The two backends in pdbmux's configured order.
    pub backends: [Member; 2],
    /// A third backend, `c`, where one was asked for.
    pub third: Option<Member>,
    /// The PuppetDB that holds what pdbmux should answer; only in the rig's own.
    pub oracle: Option<Member>,
    // After the PuppetDBs, which hold connections to it.
    _cluster: Option<Running>,
}

/// How many backends there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// `a` and `b`.
    Two,
    /// `a`, `b` and `c`.
    Three,
}

/// The rig's servers as configured, running or not.
#[derive(Debug)]
pub struct Plan {
    cluster: Cluster,
    /// `a`, `b`, `u` and, last, `c`.
    databases: [PuppetDb; 4],
    size: Size,
    port: u16,
    stamp: PathBuf,
}

impl Plan {
    /// What the settings ask for: backend `b` is the newer PuppetDB if it is installed.
    pub fn new(settings: &Settings) -> Result<Self> {
        Self::of(settings, Size::Two)
    }

    /// As [`new`](Self::new), with as many backends.
    pub fn of(settings: &Settings, size: Size) -> Result<Self> {
        let newer = settings.folder.join("trixie");
        let database = |name, program, offset| PuppetDb {
            name,
            database: name,
            program,
            java: settings.java,
            port: settings.port + offset,
            folder: settings.folder.join("run"),
            secure: None,
        };
        let packaged = Program::Packaged(settings.folder.join("classes"));
        let b = if newer.exists() {
            Program::Below(newer)
        } else {
            packaged.clone()
        };
        let (a, b) = (database("a", packaged.clone(), 1), database("b", b, 2));
        let u = database("u", packaged.clone(), 3);
        let c = database("c", packaged, 4);
        Ok(Self {
            cluster: Cluster::new(settings.folder.join("postgres"), settings.port)?,
            databases: [a, b, u, c],
            size,
            port: settings.port,
            stamp: settings.folder.join("run/loaded"),
        })
    }

    /// Starts all of it afresh, the PuppetDBs at the same time, with empty databases.
    ///
    /// Whatever an earlier run left is stopped first.
    pub fn start(&self, lifetime: Lifetime) -> Result<Rig> {
        self.stop()?;
        let rig = self.start_all(lifetime);
        if rig.is_err() {
            self.stop()?;
        }
        rig
    }

    fn start_all(&self, lifetime: Lifetime) -> Result<Rig> {
        let started = Instant::now();
        let cluster = self.cluster.start(lifetime)?;
        let all: Vec<&PuppetDb> = self.wanted().iter().collect();
        let members = self.start_databases(&all, lifetime)?;
        eprintln!("e2e: PuppetDBs ready after {:.1?}", started.elapsed());
        assemble(members, cluster)
    }

    /// Those that run in a rig of this size.
    fn wanted(&self) -> &[PuppetDb] {
        match self.size {
            Size::Two => &self.databases[..3],
            Size::Three => &self.databases,
        }
    }

    /// Starts some of the PuppetDBs on empty databases, at the same time.
    fn start_databases(&self, these: &[&PuppetDb], lifetime: Lifetime) -> Result<Vec<Member>> {
        let names: Vec<_> = these.iter().map(|one| one.name).collect();
        self.cluster.recreate(&names)?;
        let mut processes = Vec::new();
        for database in these {
            processes.push(database.start(self.port, lifetime)?);
        }
        let mut members = Vec::new();
        for (database, process) in these.iter().zip(processes) {
            let version = database.wait(&process)?;
            members.push(self.member(database, version, process, lifetime));
        }
        Ok(members)
    }

    /// The rig an earlier run left running, with what it lacks started; else a fresh one.
    pub fn complete(&self, lifetime: Lifetime) -> Result<Rig> {
        let kept = match lifetime {
            Lifetime::Kept => self.cluster.find(lifetime),
            Lifetime::Bound => None,
        };
        let Some(cluster) = kept else {
            return self.start(lifetime);
        };
        let (mut members, mut missing) = (Vec::new(), Vec::new());
        for database in self.wanted() {
            let found = database.find(lifetime);
            match found.zip(version(&database.client()).ok()) {
                Some((process, version)) => {
                    members.push(self.member(database, version, process, lifetime));
                }
                None => missing.push(database),
            }
        }
        members.extend(self.start_databases(&missing, lifetime)?);
        assemble(members, cluster)
    }

    /// Starts a second PuppetDB on the database of `a`, in the place of the third backend, which
    /// serves TLS as well.
    pub fn start_twin(&self, secure: Secure, lifetime: Lifetime) -> Result<Member> {
        let twin = PuppetDb {
            secure: Some(secure),
            ..self.twin()
        };
        if let Some(left) = twin.find(Lifetime::Kept) {
            left.stop()?;
        }
        let process = twin.start(self.port, lifetime)?;
        let version = twin.wait(&process)?;
        Ok(self.member(&twin, version, process, lifetime))
    }

    fn twin(&self) -> PuppetDb {
        let [a, _, _, c] = &self.databases;
        PuppetDb {
            name: "twin",
            port: c.port,
            ..a.clone()
        }
    }

    /// Takes all nodes out of every PuppetDB; `b`'s database shall order text by `locale`.
    pub fn clear(&self, rig: &Rig, locale: Locale) -> Result<()> {
        self.forget()?;
        for database in self.wanted() {
            self.cluster.clear(database.name)?;
        }
        let [_, b] = &rig.backends;
        self.cluster.relocate(&b.name, locale)?;
        // Connections of before may have to fail once.
        poll(Instant::now() + RECONNECT, || {
            let answer = b.client.get("/pdb/query/v4/nodes", &[]).ok()?;
            (answer.status == 200).then_some(())
        })
        .with_context(|| format!("PuppetDB {} has lost its database", b.name))
    }

    /// The rig an earlier run left running, if all of it answers.
    pub fn find(&self, lifetime: Lifetime) -> Option<Rig> {
        let cluster = self.cluster.find(lifetime)?;
        let mut members = Vec::new();
        for database in self.wanted() {
            let process = database.find(lifetime)?;
            let version = version(&database.client()).ok()?;
            members.push(self.member(database, version, process, lifetime));
        }
        assemble(members, cluster).ok()
    }

    /// Stops what an earlier run left; nothing else.
    pub fn stop(&self) -> Result<()> {
        for database in self.databases.iter().chain([&self.twin()]) {
            if let Some(running) = database.find(Lifetime::Kept) {
                running.stop()?;
            }
        }
        if let Some(running) = self.cluster.find(Lifetime::Kept) {
            running.stop()?;
        }
        self.forget()
    }

    /// One line per server.
    pub fn status(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "postgres  127.0.0.1:{}  {}",
            self.port,
            if self.cluster.find(Lifetime::Kept).is_some() {
                "running"
            } else {
                "stopped"
            }
        )];
        for database in &self.databases {
            let state = match database.find(Lifetime::Kept) {
                Some(_) => version(&database.client()).map_or_else(
                    |_| "starting".to_owned(),
                    |version| format!("PuppetDB {version}"),
                ),
                None => "stopped".to_owned(),
            };
            lines.push(format!(
                "{}         127.0.0.1:{}  {state}",
                database.name, database.port
            ));
        }
        lines
    }

    fn member(
        &self,
        database: &PuppetDb,
        version: String,
        process: Running,
        lifetime: Lifetime,
    ) -> Member {
        let server = Server::new(database, self.port, lifetime, process);
        Member {
            name: database.name.to_owned(),
            client: database.client(),
            version,
            server: Some(server),
        }
    }

    /// Whether the PuppetDBs hold the content of this fingerprint.
    pub fn holds(&self, fingerprint: &str) -> bool {
        fs::read_to_string(&self.stamp).is_ok_and(|written| written == fingerprint)
    }

    /// Remembers what the PuppetDBs hold.
    pub fn remember(&self, fingerprint: &str) -> Result<()> {
        Ok(fs::write(&self.stamp, fingerprint)?)
    }

    fn forget(&self) -> Result<()> {
        match fs::remove_file(&self.stamp) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Loads the estate into its PuppetDBs and remembers that it did.
    pub fn load(&self, rig: &Rig, estate: &Estate) -> Result<()> {
        load_into(rig, estate)?;
        self.remember(&estate.fingerprint())
    }
}

impl Rig {
    /// A loaded rig as the settings want it: backends from outside, a kept one that is
    /// still good, or a fresh one.
    pub fn loaded(settings: &Settings, estate: &Estate) -> Result<Self> {
        if !settings.outside.is_empty() {
            let rig = Self::outside(settings)?;
            if settings
                .outside
                .iter()
                .any(|one| one.content == Content::Empty)
            {
                load_into(&rig, estate)?;
            }
            return Ok(rig);
        }
        let plan = Plan::new(settings)?;
        let rig = plan.complete(settings.lifetime)?;
        if !plan.holds(&estate.fingerprint()) {
            plan.clear(&rig, Locale::Bytes)?;
            plan.load(&rig, estate)?;
        }
        Ok(rig)
    }

    fn outside(settings: &Settings) -> Result<Self> {
        let mut members = Vec::new();
        for one in &settings.outside {
            let client = Client::new(&one.url);
            let version =
                version(&client).with_context(|| format!("backend {} is not ready", one.name))?;
            members.push(Member {
                name: one.name.clone(),
                client,
                version,
                server: None,
            });
        }
        let backends = <[Member; 2]>::try_from(members)
            .ok()
            .context("two backends are needed")?;
        Ok(Self {
            backends,
            third: None,
            oracle: None,
            _cluster: None,
        })
    }
}

fn load_into(rig: &Rig, estate: &Estate) -> Result<()> {
    let started = Instant::now();
    let clients = rig.backends.each_ref().map(|one| &one.client);
    let sent = load::load(estate, clients, rig.oracle.as_ref().map(|one| &one.client))?;
    eprintln!(
        "e2e: {sent} commands processed in {:.1?}",
        started.elapsed()
    );
    Ok(())
}

fn assemble(members: Vec<Member>, cluster: Running) -> Result<Rig> {
    let mut named: BTreeMap<String, Member> = members
        .into_iter()
        .map(|member| (member.name.clone(), member))
        .collect();
    let (Some(a), Some(b)) = (named.remove("a"), named.remove("b")) else {
        bail!("the rig has two backends");
    };
    Ok(Rig {
        backends: [a, b],
        third: named.remove("c"),
        oracle: named.remove("u"),
        _cluster: Some(cluster),
    })
}
