//! PostgreSQL and three PuppetDBs: backends `a` and `b`, and the oracle `u`.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::estate::Estate;
use crate::http::Client;
use crate::load;
use crate::postgres::Cluster;
use crate::process::Running;
use crate::puppetdb::{Program, PuppetDb, version};
use crate::server::Server;
use crate::settings::{Content, Lifetime, Settings};

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
    /// The PuppetDB that holds what pdbmux should answer; only in the rig's own.
    pub oracle: Option<Member>,
    // After the PuppetDBs, which hold connections to it.
    _cluster: Option<Running>,
}

/// The rig's servers as configured, running or not.
#[derive(Debug)]
pub struct Plan {
    cluster: Cluster,
    databases: [PuppetDb; 3],
    port: u16,
    stamp: PathBuf,
}

impl Plan {
    /// What the settings ask for: backend `b` is the newer PuppetDB if it is installed.
    pub fn new(settings: &Settings) -> Result<Self> {
        let newer = settings.folder.join("trixie");
        let database = |name, program, offset| PuppetDb {
            name,
            program,
            port: settings.port + offset,
            folder: settings.folder.join("run"),
        };
        let packaged = Program::Packaged(settings.folder.join("classes"));
        let b = if newer.exists() {
            Program::Below(newer)
        } else {
            packaged.clone()
        };
        Ok(Self {
            cluster: Cluster::new(settings.folder.join("postgres"), settings.port)?,
            databases: [
                database("a", packaged.clone(), 1),
                database("b", b, 2),
                database("u", packaged, 3),
            ],
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
        self.cluster
            .recreate(&self.databases.each_ref().map(|one| one.name))?;
        let mut processes = Vec::new();
        for database in &self.databases {
            processes.push(database.start(self.port, lifetime)?);
        }
        let mut members = Vec::new();
        for (database, process) in self.databases.iter().zip(processes) {
            let version = database.wait(&process)?;
            members.push(self.member(database, version, process, lifetime));
        }
        eprintln!("e2e: PuppetDBs ready after {:.1?}", started.elapsed());
        assemble(members, cluster)
    }

    /// The rig an earlier run left running, if all of it answers.
    pub fn find(&self, lifetime: Lifetime) -> Option<Rig> {
        let cluster = self.cluster.find(lifetime)?;
        let mut members = Vec::new();
        for database in &self.databases {
            let process = database.find(lifetime)?;
            let version = version(&database.client()).ok()?;
            members.push(self.member(database, version, process, lifetime));
        }
        assemble(members, cluster).ok()
    }

    /// Stops what an earlier run left; nothing else.
    pub fn stop(&self) -> Result<()> {
        for database in &self.databases {
            if let Some(running) = database.find(Lifetime::Kept) {
                running.stop()?;
            }
        }
        if let Some(running) = self.cluster.find(Lifetime::Kept) {
            running.stop()?;
        }
        if self.stamp.exists() {
            fs::remove_file(&self.stamp)?;
        }
        Ok(())
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

    fn is_loaded(&self, estate: &Estate) -> bool {
        fs::read_to_string(&self.stamp).is_ok_and(|written| written == estate.fingerprint())
    }

    /// Loads the estate into its PuppetDBs and remembers that it did.
    pub fn load(&self, rig: &Rig, estate: &Estate) -> Result<()> {
        load_into(rig, estate)?;
        fs::write(&self.stamp, estate.fingerprint())?;
        Ok(())
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
        let kept = match settings.lifetime {
            Lifetime::Kept if plan.is_loaded(estate) => plan.find(Lifetime::Kept),
            Lifetime::Kept | Lifetime::Bound => None,
        };
        if let Some(rig) = kept {
            return Ok(rig);
        }
        let rig = plan.start(settings.lifetime)?;
        plan.load(&rig, estate)?;
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
    let Ok([a, b, oracle]) = <[Member; 3]>::try_from(members) else {
        bail!("the rig has three PuppetDBs");
    };
    Ok(Rig {
        backends: [a, b],
        oracle: Some(oracle),
        _cluster: Some(cluster),
    })
}
