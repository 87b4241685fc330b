//! The tokens that clients may show.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;

use super::error::{DoorError, lines};
use crate::upstream::made::Made;

/// The file of tokens.
#[derive(Debug)]
pub(super) struct Tokens {
    path: PathBuf,
    made: Made<Arc<Known>>,
}

/// The tokens in it, as codes by a key that nobody else has: how long it takes to find one tells
/// nothing about it.
pub(super) struct Known {
    key: hmac::Key,
    codes: HashMap<Vec<u8>, Bearer>,
}

/// Whose a token is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bearer {
    /// The name in front of it, if one is there.
    pub(super) name: Option<Arc<str>>,
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Known").finish_non_exhaustive()
    }
}

impl Tokens {
    /// Those of a file, which is read when it is wanted, and again whenever it has changed.
    pub(super) fn of(path: PathBuf) -> Self {
        let made = Made::of([path.clone()]);
        Self { path, made }
    }

    /// The tokens in it.
    pub(super) fn known(&self) -> Result<Arc<Known>, DoorError> {
        self.made.get(|| self.read().map(Arc::new))
    }

    fn read(&self) -> Result<Known, DoorError> {
        let key = secret_key("tokens")?;
        let mut codes = HashMap::new();
        for (line, text) in lines("tokens", &self.path)? {
            let words: Vec<_> = text.split_whitespace().collect();
            let (name, token) = match words.as_slice() {
                [token] => (None, token),
                [name, token] => (Some(Arc::from(*name)), token),
                _ => {
                    return Err(DoorError::Line {
                        key: "tokens",
                        path: self.path.clone(),
                        line,
                        wanted: "TOKEN or NAME TOKEN",
                    });
                }
            };
            codes.insert(code(&key, token.as_bytes()), Bearer { name });
        }
        Ok(Known { key, codes })
    }
}

impl Known {
    /// Whose a token is, if it is one of them.
    pub(super) fn bearer(&self, token: &[u8]) -> Option<&Bearer> {
        self.codes.get(&code(&self.key, token))
    }
}

/// A key for codes, which is forgotten with this process; it is for the file that the configuration key
/// `file` names.
pub(super) fn secret_key(file: &'static str) -> Result<hmac::Key, DoorError> {
    let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new());
    key.map_err(|_| DoorError::NoRandom { key: file })
}

fn code(key: &hmac::Key, token: &[u8]) -> Vec<u8> {
    hmac::sign(key, token).as_ref().to_vec()
}
