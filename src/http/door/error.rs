//! What is wrong with the files of the door, each as one sentence that names the key and the file.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::config::plain;

/// Why a file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DoorError {
    /// It cannot be read.
    #[error("{key} {} cannot be read: {why}", .path.display())]
    Unreadable {
        /// The key that names it.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        why: String,
    },
    /// It holds something else.
    #[error("{key} {} holds no certificate in PEM", .path.display())]
    NoCertificate {
        /// The key that names it.
        key: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// It holds something else.
    #[error("tls_key {} holds no private key in PEM that is not encrypted", .0.display())]
    NoKey(PathBuf),
    /// Two files do not belong together.
    #[error("tls_key {} does not fit tls_cert {}", .key.display(), .cert.display())]
    Mismatch {
        /// The certificate.
        cert: PathBuf,
        /// The key.
        key: PathBuf,
    },
}

/// What a file holds.
pub(super) fn read(key: &'static str, path: &Path) -> Result<Vec<u8>, DoorError> {
    fs::read(path).map_err(|why| unreadable(key, path, &why))
}

/// The lines of a file that say something, each with its number from 1: comments and empty ones are
/// left out.
pub(super) fn lines(key: &'static str, path: &Path) -> Result<Vec<(usize, String)>, DoorError> {
    let text = fs::read_to_string(path).map_err(|why| unreadable(key, path, &why))?;
    // As PuppetDB reads its own lists, a comment may stand behind an entry.
    let said = |line: &str| line.split('#').next().unwrap_or_default().trim().to_owned();
    let lines = text.lines().map(said).zip(1..).map(|(line, at)| (at, line));
    Ok(lines.filter(|(_, line)| !line.is_empty()).collect())
}

fn unreadable(key: &'static str, path: &Path, why: &io::Error) -> DoorError {
    DoorError::Unreadable {
        key,
        path: path.to_owned(),
        why: plain(why),
    }
}
