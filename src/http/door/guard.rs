//! Who may ask, by what a request bears.

use std::sync::Arc;

use http::HeaderMap;

use super::credentials::Credentials;
use super::error::DoorError;
use super::tokens::Tokens;
use super::users::Users;
use crate::config::DoorConfig;

/// What knows who may ask.
#[derive(Debug)]
pub(super) struct Guard {
    tokens: Option<Tokens>,
    users: Option<Users>,
}

/// What a request may bear so that it is let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// A token.
    Token,
    /// A user with a password.
    User,
    /// One of both.
    Either,
}

/// What the guard makes of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Judgement {
    /// It may come in, as the one of this name: a user, or whose token it is, where that has a name.
    Known(Option<Arc<str>>),
    /// It bears nothing, but has to.
    Bare(Wanted),
    /// What it bears is of nobody.
    Unknown(Wanted),
}

impl Guard {
    /// As it is configured, if it is.
    pub(super) fn of(config: &DoorConfig) -> Option<Self> {
        let (tokens, users) = (config.tokens.clone(), config.users.clone());
        let is_set = tokens.is_some() || users.is_some();
        is_set.then(|| Self {
            tokens: tokens.map(Tokens::of),
            users: users.map(Users::of),
        })
    }

    /// Reads its files.
    pub(super) fn check(&self) -> Result<(), DoorError> {
        if let Some(tokens) = &self.tokens {
            tokens.known()?;
        }
        if let Some(users) = &self.users {
            users.known()?;
        }
        Ok(())
    }

    /// Looks at the head of a request. One thing that is known is enough.
    pub(super) async fn judge(&self, headers: &HeaderMap) -> Result<Judgement, DoorError> {
        let borne = Credentials::all(headers);
        for credentials in &borne {
            match (credentials, &self.tokens, &self.users) {
                (Credentials::Token(token), Some(tokens), _) => {
                    if let Some(bearer) = tokens.known()?.bearer(token) {
                        return Ok(Judgement::Known(bearer.name.clone()));
                    }
                }
                (Credentials::User(user, password), _, Some(users)) => {
                    if users.are(user, password).await? {
                        return Ok(Judgement::Known(Some(user.as_str().into())));
                    }
                }
                (Credentials::Token(_), None, _) | (Credentials::User(..), _, None) => {}
            }
        }
        let wanted = match (&self.tokens, &self.users) {
            (Some(_), None) => Wanted::Token,
            (None, _) => Wanted::User,
            (Some(_), Some(_)) => Wanted::Either,
        };
        Ok(if borne.is_empty() {
            Judgement::Bare(wanted)
        } else {
            Judgement::Unknown(wanted)
        })
    }
}

impl Wanted {
    /// What it is, in words.
    pub(super) fn in_words(self) -> &'static str {
        match self {
            Self::Token => "a token",
            Self::User => "a user and a password",
            Self::Either => "a token, or a user and a password",
        }
    }
}
