//! What is wrong with the files of the door, each as one sentence that names the key and the file.

use std::path::{Path, PathBuf};
use std::{fs, io};

use zeroize::Zeroizing;

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
    /// It holds nothing.
    #[error("{key} {} has no entry", .path.display())]
    Empty {
        /// The key that names it.
        key: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// A line of it cannot be read. It is not repeated: it may hold a secret.
    #[error("{key} {} has in line {line} no {wanted}", .path.display())]
    Line {
        /// The key that names it.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What belongs there.
        wanted: &'static str,
    },
    /// The system is at fault.
    #[error("the system gives no random numbers, without which {key} cannot be kept")]
    NoRandom {
        /// The key that names the file.
        key: &'static str,
    },
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
/// left out. That there are none is an error: so is a file seen while it is written. They may be secrets,
/// and are wiped when they are dropped.
pub(super) fn lines(
    key: &'static str,
    path: &Path,
) -> Result<Vec<(usize, Zeroizing<String>)>, DoorError> {
    let text = fs::read_to_string(path).map_err(|why| unreadable(key, path, &why))?;
    let text = Zeroizing::new(text);
    let lines = text
        .lines()
        .map(|line| Zeroizing::new(line.trim().to_owned()));
    let lines = (1..).zip(lines);
    let says = |(_, line): &(usize, Zeroizing<String>)| !line.is_empty() && !line.starts_with('#');
    let lines: Vec<_> = lines.filter(says).collect();
    if lines.is_empty() {
        let path = path.to_owned();
        return Err(DoorError::Empty { key, path });
    }
    Ok(lines)
}

fn unreadable(key: &'static str, path: &Path, why: &io::Error) -> DoorError {
    DoorError::Unreadable {
        key,
        path: path.to_owned(),
        why: plain(why),
    }
}
