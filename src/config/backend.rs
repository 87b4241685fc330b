//! The list of backends (R270, R271).

use super::access::{Access, Part};
use super::url::{BaseUrl, UrlError};
use super::value::{ValueError, shown};

/// One configured PuppetDB.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendConfig {
    /// Its label in answers, headers and logs: `[A-Za-z0-9._-]+`, unique.
    pub name: String,
    /// Where its API is.
    pub url: BaseUrl,
    /// How it is reached, as far as it is set for it alone.
    pub access: Access,
}

/// Why a list of backends is refused. Reads on after the key and its origin.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BackendError {
    /// A piece of `PDBMUX_BACKENDS` that is not `name=url`.
    #[error("has the entry {0} where name=url belongs")]
    NotAPair(String),
    /// A backend without a name.
    #[error("has a backend without a name")]
    NoName,
    /// A backend without a url.
    #[error("has the backend {0:?} without a url")]
    NoUrl(String),
    /// A name that would break headers and paths.
    #[error("has the backend name {0}, but a name is made of letters, digits, '.', '_' and '-'")]
    BadName(String),
    /// Two backends of one name.
    #[error("has two backends named {0:?}")]
    Duplicate(String),
    /// A part of how it is reached that cannot be used.
    #[error("has for {name:?} the {part} {value}, which {why}")]
    Part {
        /// The backend it belongs to.
        name: String,
        /// What is set.
        part: &'static str,
        /// The text given, or a remark where it may hold a secret.
        value: String,
        /// What is wrong with it.
        why: String,
    },
    /// A url that cannot be used.
    #[error("has for {name:?} the url {url}, which {why}")]
    Url {
        /// The backend it belongs to.
        name: String,
        /// The text given, or a remark where it may hold a secret.
        url: String,
        /// What is wrong with it.
        why: UrlError,
    },
}

impl BackendConfig {
    /// Checks one backend as it was written.
    pub(super) fn parse(name: &str, url: &str) -> Result<Self, BackendError> {
        if name.is_empty() {
            return Err(BackendError::NoName);
        }
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        if !name.bytes().all(plain) {
            return Err(BackendError::BadName(shown(name)));
        }
        if url.is_empty() {
            return Err(BackendError::NoUrl(name.to_owned()));
        }
        Ok(Self {
            name: name.to_owned(),
            url: url.parse().map_err(|why| BackendError::Url {
                name: name.to_owned(),
                url: shown(url),
                why,
            })?,
            access: Access::default(),
        })
    }

    /// Sets a part of how it is reached.
    pub(super) fn set(&mut self, part: &'static Part, text: &str) -> Result<(), BackendError> {
        let set = match text.trim() {
            "" => Err(ValueError::Empty),
            _ => (part.set)(&mut self.access, text),
        };
        set.map_err(|why| BackendError::Part {
            name: self.name.clone(),
            part: part.name,
            value: shown(if why.veils() { "@" } else { text }),
            why: why.to_string(),
        })
    }
}

/// Reads `name=url,name=url`; blanks around an entry, a name or a url are dropped.
pub(super) fn parse_list(text: &str) -> Result<Vec<BackendConfig>, BackendError> {
    let mut list = Vec::new();
    for entry in text.split(',') {
        let backend = parse_pair(entry).and_then(|backend| refuse_second(&list, backend));
        // A comma inside a password makes two entries of one, and neither shows what it is.
        list.push(backend.map_err(|why| if text.contains('@') { veiled(why) } else { why })?);
    }
    Ok(list)
}

fn parse_pair(entry: &str) -> Result<BackendConfig, BackendError> {
    match entry.split_once('=') {
        Some((name, url)) => BackendConfig::parse(name.trim(), url.trim()),
        None => Err(BackendError::NotAPair(shown(entry.trim()))),
    }
}

/// Takes out of an error what it repeats of the value.
fn veiled(error: BackendError) -> BackendError {
    match error {
        BackendError::NotAPair(_) => BackendError::NotAPair(shown("@")),
        BackendError::BadName(_) => BackendError::BadName(shown("@")),
        BackendError::Url { name, why, .. } => {
            let url = shown("@");
            BackendError::Url { name, url, why }
        }
        other @ (BackendError::NoName
        | BackendError::NoUrl(_)
        | BackendError::Duplicate(_)
        | BackendError::Part { .. }) => other,
    }
}

/// Refuses a backend whose name came before: answers tell backends apart by it.
pub(super) fn refuse_second(
    before: &[BackendConfig],
    backend: BackendConfig,
) -> Result<BackendConfig, BackendError> {
    if before.iter().any(|other| other.name == backend.name) {
        return Err(BackendError::Duplicate(backend.name));
    }
    Ok(backend)
}

/// Writes a list as `PDBMUX_BACKENDS` takes it, with what is set of a backend behind it.
pub(super) fn show_list(list: &[BackendConfig]) -> String {
    let shown = |backend: &BackendConfig| {
        let parts = backend.access.shown();
        let parts: Vec<_> = parts
            .map(|(name, text)| format!("{name}: {text}"))
            .collect();
        let parts = match parts.as_slice() {
            [] => String::new(),
            parts => format!(" {{{}}}", parts.join(", ")),
        };
        format!("{}={}{parts}", backend.name, backend.url)
    };
    let all: Vec<_> = list.iter().map(shown).collect();
    all.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r271_a_list_is_read_in_order() {
        let list = parse_list("b=http://h1:8080, a = https://h2/x ").unwrap();
        assert_eq!(show_list(&list), "b=http://h1:8080,a=https://h2/x");
        assert_eq!(list[1].name, "a");
    }

    #[test]
    fn r271_a_url_may_hold_an_equals_sign() {
        assert_eq!(
            show_list(&parse_list("a=http://h/b=c").unwrap()),
            "a=http://h/b=c"
        );
    }

    #[test]
    fn r270_each_unusable_backend_is_refused_for_its_own_reason() {
        for (text, why) in [
            ("", r#"has the entry "" where name=url belongs"#),
            ("a=http://h,", r#"has the entry "" where name=url belongs"#),
            (
                "http://h",
                r#"has the entry "http://h" where name=url belongs"#,
            ),
            ("=http://h", "has a backend without a name"),
            ("a=", r#"has the backend "a" without a url"#),
            (
                "a b=http://h",
                r#"has the backend name "a b", but a name is made of letters, digits, '.', '_' and '-'"#,
            ),
            ("a=http://h,a=http://i", r#"has two backends named "a""#),
            (
                "a=ftp://h",
                r#"has for "a" the url "ftp://h", which has a scheme other than http and https"#,
            ),
        ] {
            assert_eq!(parse_list(text).unwrap_err().to_string(), why);
        }
    }

    #[test]
    fn no_part_of_a_password_is_repeated() {
        for text in [
            "a=http://user:secret@h",
            "a=http://user:secret,more@h",
            "a=http://user:sec=ret,secret@h",
            "secret@h,a=http://h",
            "a=http://h?token=secret",
            "a=http://u:x@h,b=http://user:secret",
        ] {
            let why = parse_list(text).unwrap_err().to_string();
            assert!(!why.contains("sec"), "{why}");
        }
    }
}
