//! `config init` (R289).

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::CliError;
use crate::config::{self, Environment, Flags};

/// What becomes of a file that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Present {
    Keep,
    Replace,
}

/// Why the file was not written.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// There is one, and nobody said to replace it.
    #[error("{} is there already: --force replaces it", .0.display())]
    Present(PathBuf),
    /// The system refused.
    #[error("{} cannot be written: {}", .path.display(), config::plain(.why))]
    Refused {
        /// The file or the folder.
        path: PathBuf,
        /// What the system said.
        why: io::Error,
    },
}

/// Writes the file and gives its path.
pub(super) fn write(
    flags: &Flags,
    env: &Environment,
    present: Present,
) -> Result<PathBuf, CliError> {
    let (initial, path) = config::initial(flags, env)?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|why| refused(folder, why))?;
    }
    let mut options = OpenOptions::new();
    options.write(true);
    match present {
        // Created or refused in one step: no file is lost to a race.
        Present::Keep => options.create_new(true),
        Present::Replace => options.create(true).truncate(true),
    };
    let mut file = options.open(&path).map_err(|why| match why.kind() {
        io::ErrorKind::AlreadyExists => InitError::Present(path.clone()),
        _ => refused(&path, why),
    })?;
    write!(file, "{}", config::template(&initial)).map_err(|why| refused(&path, why))?;
    Ok(path)
}

fn refused(path: &Path, why: io::Error) -> InitError {
    let path = path.to_owned();
    InitError::Refused { path, why }
}
