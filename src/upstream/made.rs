//! What is made of files that may be replaced while pdbmux runs.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// Something made of files, made anew once one of them has changed.
///
/// Files are looked at when it is wanted: that is one system call for each, and nothing has to watch
/// them.
#[derive(Debug)]
pub(crate) struct Made<T> {
    files: Vec<PathBuf>,
    last: Mutex<Option<(Vec<Option<Stamp>>, T)>>,
}

/// What tells one state of a file from the next.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
    inode: u64,
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let of = path.metadata().ok()?;
        Some(Self {
            modified: of.modified().ok(),
            length: of.len(),
            inode: of.ino(),
        })
    }
}

impl<T: Clone> Made<T> {
    /// Of these files, none of which is read yet.
    pub(crate) fn of(files: impl IntoIterator<Item = PathBuf>) -> Self {
        Self {
            files: files.into_iter().collect(),
            last: Mutex::new(None),
        }
    }

    /// It as the files are now. Where they cannot be used, as it was before: a certificate and its
    /// key are not replaced in the same moment. The error is told in the log then.
    pub(crate) fn get<E: std::fmt::Display>(
        &self,
        read: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        // Taken before the files are read: what changes meanwhile is read again.
        let stamps: Vec<_> = self.files.iter().map(|path| Stamp::of(path)).collect();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, made)) = &*last
            && *known == stamps
        {
            return Ok(made.clone());
        }
        let made = match (read(), last.take()) {
            (Ok(made), _) => made,
            (Err(why), None) => return Err(why),
            (Err(why), Some((_, before))) => {
                tracing::warn!(%why, "a changed file cannot be used: what it held before is");
                before
            }
        };
        *last = Some((stamps, made.clone()));
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn it_is_made_again_when_a_file_changes_and_stays_while_that_cannot_be_used() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("number");
        let made = Made::of([file.clone()]);
        let mut reads = 0;
        let mut get = || {
            made.get(|| {
                reads += 1;
                let text = fs::read_to_string(&file).map_err(|why| why.to_string())?;
                text.parse::<u8>().map_err(|why| why.to_string())
            })
        };
        assert!(get().is_err());
        fs::write(&file, "1").unwrap();
        assert_eq!((get(), get()), (Ok(1), Ok(1)));
        fs::write(&file, "two").unwrap();
        assert_eq!((get(), get()), (Ok(1), Ok(1)));
        fs::remove_file(&file).unwrap();
        assert_eq!(get(), Ok(1));
        // Of the same length, by another file in its place.
        fs::write(dir.path().join("new"), "2").unwrap();
        fs::rename(dir.path().join("new"), &file).unwrap();
        assert_eq!((get(), get()), (Ok(2), Ok(2)));
        assert_eq!(reads, 5);
    }
}
