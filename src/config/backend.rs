//! The list of backends (R270, R271).

use super::access::{self, Access, Part};
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

/// What answers as one backend: a PuppetDB, or those of a group, which are on one database and so
/// stand in for one another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group<'c> {
    /// Its name in answers, headers and logs.
    pub name: &'c str,
    /// The PuppetDBs, in configured order; at least one.
    pub members: Vec<&'c BackendConfig>,
}

impl Group<'_> {
    /// Whether an answer without it is none.
    pub fn is_required(&self) -> bool {
        let required = |member: &&BackendConfig| member.access.required == Some(true);
        self.members.iter().any(required)
    }
}

/// The list as it answers. A group stands where its first member does.
pub(super) fn grouped(list: &[BackendConfig]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for backend in list {
        let name = backend.access.group.as_deref();
        let known = groups.iter_mut().find(|group| Some(group.name) == name);
        match known {
            Some(group) => group.members.push(backend),
            None => groups.push(Group {
                name: name.unwrap_or(&backend.name),
                members: vec![backend],
            }),
        }
    }
    groups
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
    /// A group named like a backend.
    #[error("has the name {0:?} for a backend and for a group")]
    Clash(String),
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
        if !is_name(name) {
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

/// Whether a text can stand in headers and paths as it is.
pub(super) fn is_name(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    text.bytes().all(plain)
}

/// Reads `name=url,group/name=url`; blanks around an entry, a name or a url are dropped.
pub(super) fn parse_list(text: &str) -> Result<Vec<BackendConfig>, BackendError> {
    let mut list = Vec::new();
    for entry in text.split(',') {
        let backend = parse_pair(entry)
            .and_then(|backend| refuse_second(&list, backend))
            .and_then(|backend| refuse_clash(&list, backend));
        // A comma inside a password makes two entries of one, and neither shows what it is.
        list.push(backend.map_err(|why| if text.contains('@') { veiled(why) } else { why })?);
    }
    Ok(list)
}

fn parse_pair(entry: &str) -> Result<BackendConfig, BackendError> {
    match entry.split_once('=') {
        Some((name, url)) => match name.split_once('/') {
            None => BackendConfig::parse(name.trim(), url.trim()),
            Some((group, name)) => {
                let mut backend = BackendConfig::parse(name.trim(), url.trim())?;
                backend.set(&access::GROUP, group.trim())?;
                Ok(backend)
            }
        },
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
        | BackendError::Clash(_)
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

/// Refuses a backend that has the name of a group, or a group that has a backend's: in answers they
/// would be one.
pub(super) fn refuse_clash(
    before: &[BackendConfig],
    backend: BackendConfig,
) -> Result<BackendConfig, BackendError> {
    let is_group = |other: &BackendConfig| other.access.group.as_ref() == Some(&backend.name);
    if before.iter().chain([&backend]).any(is_group) {
        return Err(BackendError::Clash(backend.name));
    }
    let is_named = |other: &BackendConfig| Some(&other.name) == backend.access.group.as_ref();
    if let Some(other) = before.iter().find(|other| is_named(other)) {
        return Err(BackendError::Clash(other.name.clone()));
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
    fn a_group_stands_where_its_first_member_does() {
        let list =
            parse_list("a=http://h1,eu/b=http://h2, c=http://h3 , eu / d =http://h4").unwrap();
        let groups = grouped(&list);
        let told = |group: &Group<'_>| -> Vec<_> {
            let members = group.members.iter().map(|member| member.name.clone());
            [group.name.to_owned()].into_iter().chain(members).collect()
        };
        let named: Vec<_> = groups.iter().map(told).collect();
        assert_eq!(
            named,
            [vec!["a", "a"], vec!["eu", "b", "d"], vec!["c", "c"]]
        );
        assert!(groups.iter().all(|group| !group.is_required()));
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
                "a=http://h,a/b=http://i",
                r#"has the name "a" for a backend and for a group"#,
            ),
            (
                "b/a=http://h,b=http://i",
                r#"has the name "b" for a backend and for a group"#,
            ),
            (
                "a/a=http://h",
                r#"has the name "a" for a backend and for a group"#,
            ),
            ("/a=http://h", r#"has for "a" the group "", which is empty"#),
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
