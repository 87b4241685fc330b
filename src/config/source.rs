//! Where the configuration is read from, as often as it is wanted.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Config;
use super::env::Environment;
use super::error::ConfigError;
use super::file::{self, FileChoice, SYSTEM_FILE};
use super::load::{Flags, load_to_serve};

/// The layers of a configuration, which are laid over each other anew whenever it is read (R263): the
/// flags and the environment as they were at the start, and the file as it is then.
#[derive(Debug, Clone)]
pub struct Source {
    flags: Flags,
    env: Environment,
    /// What the file held when it was last read.
    read: Arc<Mutex<Option<Vec<u8>>>>,
}

impl Source {
    /// Reads by these flags and this environment.
    pub fn new(flags: Flags, env: Environment) -> Self {
        Self {
            flags,
            env,
            read: Arc::default(),
        }
    }

    /// What is configured now, and what the operator should know of it.
    pub fn read(&self) -> Result<(Config, Vec<String>), ConfigError> {
        // Looked at before: what is written meanwhile is another content, to be read again.
        *self.last_read() = self.content();
        load_to_serve(&self.flags, &self.env)
    }

    /// Whether the config file held something else than this when it was last read.
    pub fn is_news(&self, content: Option<&[u8]>) -> bool {
        self.last_read().as_deref() != content
    }

    /// What the config file holds now; nothing if there is none that can be read.
    pub fn content(&self) -> Option<Vec<u8>> {
        let flag = self.flags.config.as_deref();
        match file::choose(flag, &self.env, Path::new(SYSTEM_FILE)) {
            Ok(FileChoice::Loaded(path)) => file::read(&path).ok(),
            Ok(FileChoice::Searched(_)) | Err(_) => None,
        }
    }

    fn last_read(&self) -> MutexGuard<'_, Option<Vec<u8>>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
