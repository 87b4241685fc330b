//! A PuppetDB of the rig's own, which can be stopped, and started again with its data.

use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use rustix::process::Signal;

use crate::process::Running;
use crate::puppetdb::PuppetDb;
use crate::settings::Lifetime;
use crate::tls::Identity;

/// The process of one PuppetDB. Dropping it stops one that is bound.
#[derive(Debug)]
pub struct Server {
    database: Mutex<PuppetDb>,
    database_port: u16,
    lifetime: Lifetime,
    running: Mutex<Running>,
}

impl Server {
    /// Of `database`, which keeps its data in PostgreSQL on `database_port`, as it runs now.
    pub fn new(
        database: &PuppetDb,
        database_port: u16,
        lifetime: Lifetime,
        running: Running,
    ) -> Self {
        Self {
            database: Mutex::new(database.clone()),
            database_port,
            lifetime,
            running: Mutex::new(running),
        }
    }

    /// The name of the database that it keeps its data in.
    pub fn database_name(&self) -> &'static str {
        self.database().database
    }

    /// Its process.
    pub fn pid(&self) -> i32 {
        self.running().pid()
    }

    /// Sends `signal` to the whole process group.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        self.running().signal(signal)
    }

    /// Ends it and waits until it is gone.
    pub fn stop(&self) -> Result<()> {
        self.running().stop()
    }

    /// Has it show `identity` by TLS from its next start on, if it serves TLS.
    pub fn show(&self, identity: Identity) {
        if let Some(secure) = &mut self.database().secure {
            secure.identity = identity;
        }
    }

    /// Starts it after a stop; not ready yet. Its database holds what it held.
    pub fn start(&self) -> Result<()> {
        *self.running() = self.database().start(self.database_port, self.lifetime)?;
        Ok(())
    }

    /// Waits until it answers.
    pub fn wait(&self) -> Result<()> {
        self.database().wait(&self.running())?;
        Ok(())
    }

    fn database(&self) -> MutexGuard<'_, PuppetDb> {
        self.database.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
