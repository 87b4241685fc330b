//! What a backend is told in the head of every request: configured headers, user and password.

use std::path::PathBuf;
use std::{fs, io};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use zeroize::Zeroizing;

use super::made::Made;
use crate::config::{Access, Hidden, Secret, plain};

/// Headers whose values are secrets.
#[derive(Debug)]
pub(super) struct Credentials {
    headers: Vec<(HeaderName, Value)>,
}

/// A header's value, as it is made of a secret.
#[derive(Debug)]
struct Value {
    secret: Secret,
    /// The user, if the secret is a password.
    user: Option<String>,
    made: Made<HeaderValue>,
}

/// Why a secret cannot be sent. It never tells the secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialsError {
    /// Its file cannot be read.
    #[error("the secret for the header {header} cannot be read: {}: {why}", .path.display())]
    Unreadable {
        /// The header.
        header: HeaderName,
        /// The file.
        path: PathBuf,
        /// What the system said.
        why: String,
    },
    /// Its variable is not set.
    #[error("the secret for the header {header} is not set: {variable}")]
    Unset {
        /// The header.
        header: HeaderName,
        /// The variable.
        variable: String,
    },
    /// It holds what no header may hold.
    #[error(
        "the secret for the header {header} cannot be sent: {secret} holds a control character"
    )]
    Unsendable {
        /// The header.
        header: HeaderName,
        /// Where it is.
        secret: Secret,
    },
}

impl Credentials {
    /// As they are configured. Nothing is read yet.
    pub(super) fn of(access: &Access) -> Self {
        let given = access.headers.iter().flatten().cloned();
        let mut headers: Vec<_> = given
            .map(|(name, secret)| (name, Value::of(secret, None)))
            .collect();
        if let (Some(user), Some(password)) = (&access.user, &access.password) {
            headers.retain(|(name, _)| name != AUTHORIZATION);
            let value = Value::of(password.clone(), Some(user.clone()));
            headers.push((AUTHORIZATION, value));
        }
        Self { headers }
    }

    /// Puts them into the head of a request.
    pub(super) fn add_to(&self, head: &mut HeaderMap) -> Result<(), CredentialsError> {
        for (name, value) in &self.headers {
            let value = value.made.get(|| value.make(name))?;
            head.insert(name, value);
        }
        Ok(())
    }
}

impl Value {
    fn of(secret: Secret, user: Option<String>) -> Self {
        let file = match &secret {
            Secret::File(path) => Some(path.clone()),
            Secret::Env { .. } => None,
        };
        Self {
            secret,
            user,
            made: Made::of(file),
        }
    }

    fn make(&self, header: &HeaderName) -> Result<HeaderValue, CredentialsError> {
        let text = match &self.secret {
            Secret::File(path) => {
                let text = fs::read_to_string(path).map(Hidden::from);
                text.map_err(|why: io::Error| CredentialsError::Unreadable {
                    header: header.clone(),
                    path: path.clone(),
                    why: plain(&why),
                })?
            }
            Secret::Env { name, value } => {
                let value = value.clone();
                value.ok_or_else(|| CredentialsError::Unset {
                    header: header.clone(),
                    variable: name.clone(),
                })?
            }
        };
        let text = text.reveal();
        let secret = text.strip_suffix('\n').unwrap_or(text);
        let secret = secret.strip_suffix('\r').unwrap_or(secret);
        let value = match &self.user {
            None => HeaderValue::try_from(secret),
            Some(user) => {
                let both = Zeroizing::new(format!("{user}:{secret}"));
                let both = Zeroizing::new(STANDARD.encode(both.as_bytes()));
                HeaderValue::try_from(&*Zeroizing::new(format!("Basic {}", *both)))
            }
        };
        let mut value = value.map_err(|_| CredentialsError::Unsendable {
            header: header.clone(),
            secret: self.secret.clone(),
        })?;
        value.set_sensitive(true);
        Ok(value)
    }
}
