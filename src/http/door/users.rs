//! The users that clients may be.

use std::collections::HashMap;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_lc_rs::hmac;
use bcrypt::HashParts;
use tokio::sync::Semaphore;

use super::error::{DoorError, lines};
use super::tokens::secret_key;
use crate::config::Hidden;
use crate::upstream::made::Made;
use crate::work;

/// The file of users.
#[derive(Debug)]
pub(super) struct Users {
    path: PathBuf,
    made: Made<Arc<Known>>,
    /// To hash is work for long, meant to be so: one does it at a time, lest whoever guesses passwords
    /// takes all processors.
    hashing: Semaphore,
}

/// The users in it.
#[derive(Debug)]
pub(super) struct Known {
    /// For the codes of passwords that are remembered.
    key: hmac::Key,
    users: HashMap<String, User>,
    /// A hash as good as any, for users that are not known: they take as long as others.
    any: Hidden,
}

#[derive(Debug)]
struct User {
    hash: Hidden,
    /// The code of the password that was right last.
    right: Mutex<Option<hmac::Tag>>,
}

impl Users {
    /// Those of a file, which is read when it is wanted, and again whenever it has changed.
    pub(super) fn of(path: PathBuf) -> Self {
        Self {
            made: Made::of([path.clone()]),
            path,
            hashing: Semaphore::new(1),
        }
    }

    /// The users in it.
    pub(super) fn known(&self) -> Result<Arc<Known>, DoorError> {
        self.made.get(|| self.read().map(Arc::new))
    }

    /// Whether this is the user's password. Only the first time costs.
    pub(super) async fn are(&self, user: &str, password: &str) -> Result<bool, DoorError> {
        let known = self.known()?;
        if known.remembers(user, password) {
            return Ok(true);
        }
        // It is never closed.
        let _alone = self.hashing.acquire().await;
        // Others may have asked the same meanwhile.
        if known.remembers(user, password) {
            return Ok(true);
        }
        let (checked, user, password) = (known, user.to_owned(), password.to_owned());
        Ok(work::run(usize::MAX, move || checked.check(&user, &password)).await)
    }

    fn read(&self) -> Result<Known, DoorError> {
        let mut users = HashMap::new();
        let mut any = None;
        for (line, text) in lines("users", &self.path)? {
            // Some programs write more behind the hash.
            let mut parts = text.split(':');
            let (Some(name), Some(hash)) = (parts.next(), parts.next().filter(|it| is_hash(it)))
            else {
                return Err(DoorError::Line {
                    key: "users",
                    path: self.path.clone(),
                    line,
                    wanted: "NAME:HASH with a hash of bcrypt, as htpasswd -B writes it",
                });
            };
            let hash = Hidden::from(hash.to_owned());
            any.get_or_insert_with(|| hash.clone());
            let right = Mutex::default();
            users.insert(name.to_owned(), User { hash, right });
        }
        Ok(Known {
            key: secret_key("users")?,
            users,
            any: any.unwrap_or_else(|| Hidden::from(String::new())),
        })
    }
}

fn is_hash(text: &str) -> bool {
    HashParts::from_str(text).is_ok()
}

impl Known {
    fn remembers(&self, user: &str, password: &str) -> bool {
        let Some(user) = self.users.get(user) else {
            return false;
        };
        // Compared in constant time.
        let right = |tag: &hmac::Tag| hmac::verify(&self.key, password.as_bytes(), tag.as_ref());
        user.right().as_ref().is_some_and(|tag| right(tag).is_ok())
    }

    fn check(&self, user: &str, password: &str) -> bool {
        let user = self.users.get(user);
        let hash = user.map_or(&self.any, |user| &user.hash);
        let is_right = bcrypt::verify(password, hash.reveal()).unwrap_or(false);
        match user {
            Some(user) if is_right => {
                *user.right() = Some(hmac::sign(&self.key, password.as_bytes()));
                true
            }
            _ => false,
        }
    }
}

impl User {
    fn right(&self) -> MutexGuard<'_, Option<hmac::Tag>> {
        self.right.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[tokio::test]
    async fn a_password_is_right_for_its_user_alone_and_remembered_until_the_file_changes() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("users");
        let hash = |password| bcrypt::hash(password, 4).unwrap();
        let (ann, bob) = (hash("hush").replace("$2b$", "$2y$"), hash("other"));
        fs::write(&file, format!("# users\nann:{ann}\nbob:{bob}:more\n")).unwrap();
        let users = Users::of(file.clone());
        assert!(!users.known().unwrap().remembers("ann", "hush"));
        for _ in 0..2 {
            assert!(users.are("ann", "hush").await.unwrap());
            assert!(users.known().unwrap().remembers("ann", "hush"));
        }
        assert!(users.are("bob", "other").await.unwrap());
        for (user, password) in [
            ("ann", "other"),
            ("bob", "hush"),
            ("", "hush"),
            ("eve", "hush"),
        ] {
            assert!(
                !users.are(user, password).await.unwrap(),
                "{user} {password}"
            );
            assert!(!users.known().unwrap().remembers(user, password));
        }
        let shown = format!("{users:?}");
        assert!(!shown.contains(&ann) && !shown.contains("hush"), "{shown}");
        fs::write(&file, format!("ann:{bob}\n")).unwrap();
        assert!(!users.are("ann", "hush").await.unwrap());
        assert!(users.are("ann", "other").await.unwrap());
    }
}
