//! The layer of the config file: which file it is (R265 to R267), and what it says.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use super::access::PARTS;
use super::backend::{self, BackendConfig, BackendError};
use super::env::{CONFIG, Environment};
use super::error::{ConfigError, Place};
use super::key::{KEYS, Key, Setter};
use super::layer::{Given, Origin, Partial, Value};
use super::nearest::nearest;

/// Read where neither a flag nor a variable names a file and the user has none.
pub const SYSTEM_FILE: &str = "/etc/pdbmux/config.yaml";

/// More than this is no configuration; it bounds what is read of a device or a pipe.
const LARGEST: u64 = 1 << 20;

/// The outcome of looking for a config file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileChoice {
    /// This file is read.
    Loaded(PathBuf),
    /// None of these paths is there, and none has to be.
    Searched(Vec<PathBuf>),
}

/// The file named by `--config`, else by `PDBMUX_CONFIG`, with what named it.
pub(super) fn named(
    flag: Option<&Path>,
    env: &Environment,
) -> Result<Option<(PathBuf, Origin)>, ConfigError> {
    let flag = flag.map(|path| (path.as_os_str(), Origin::Flag("config")));
    let variable = || {
        let value = env.get(CONFIG)?;
        Some((value, Origin::Env(CONFIG.to_owned())))
    };
    match flag.or_else(variable) {
        Some((path, origin)) if path.is_empty() => Err(ConfigError::NoPath { origin }),
        Some((path, origin)) => Ok(Some((path.into(), origin))),
        None => Ok(None),
    }
}

/// The user's own file: below `XDG_CONFIG_HOME`, or `.config` in `HOME` where that is not set.
pub(super) fn of_user(env: &Environment) -> Option<PathBuf> {
    let set = |name| env.get(name).filter(|value: &&OsStr| !value.is_empty());
    let base = match set("XDG_CONFIG_HOME") {
        Some(base) => PathBuf::from(base),
        None => Path::new(set("HOME")?).join(".config"),
    };
    Some(base.join("pdbmux/config.yaml"))
}

/// Chooses the file. A named one must exist; `system` is the last place that is searched.
pub(super) fn choose(
    flag: Option<&Path>,
    env: &Environment,
    system: &Path,
) -> Result<FileChoice, ConfigError> {
    if let Some((path, origin)) = named(flag, env)? {
        return match path.try_exists() {
            Ok(true) => Ok(FileChoice::Loaded(path)),
            Ok(false) => Err(ConfigError::Missing { path, origin }),
            Err(why) => Err(ConfigError::Unreadable { path, why }),
        };
    }
    let searched: Vec<_> = of_user(env).into_iter().chain([system.into()]).collect();
    // A home that may not be entered has no file for us: containers run with such ones.
    let found = searched.iter().find(|path| path.exists()).cloned();
    Ok(found.map_or(FileChoice::Searched(searched), FileChoice::Loaded))
}

/// Reads a file into a layer.
pub(super) fn layer(path: &Path) -> Result<Partial, ConfigError> {
    let bytes = read(path).map_err(|why| ConfigError::Unreadable {
        path: path.to_owned(),
        why,
    })?;
    if bytes.len() as u64 > LARGEST {
        return Err(ConfigError::TooLarge(path.to_owned()));
    }
    let text = String::from_utf8(bytes).map_err(|_| ConfigError::NotUtf8(path.to_owned()))?;
    parse(path, &text)
}

/// Its bytes; of more than any configuration has, so many that [`layer`] refuses them.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(LARGEST + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn parse(path: &Path, text: &str) -> Result<Partial, ConfigError> {
    let options = serde_saphyr::options! {
        // An empty value becomes an empty text, which gets a sentence of our own.
        null_as_string: true,
        with_snippet: false,
    };
    let document: Document =
        serde_saphyr::from_str_with_options(text, options).map_err(|why| ConfigError::Yaml {
            place: Place::new(path, why.location().map(|at| at.line())),
            why: one_line(&why),
        })?;
    let mut layer = Partial::default();
    for Entry { name, line, what } in document.0 {
        let origin = Origin::File {
            path: path.to_owned(),
            line,
        };
        layer.0.push(match what {
            What::Scalar(key, value) => Given { key, value, origin },
            What::Backends(key, list) => {
                let value = Value::Backends(backends(path, line, list)?);
                Given { key, value, origin }
            }
            What::Unknown => {
                return Err(ConfigError::UnknownKey {
                    place: Place::new(path, Some(line)),
                    hint: hint(&name),
                    key: name,
                });
            }
        });
    }
    Ok(layer)
}

/// Keeps the first line of the parser's message, without the place, which is told before it.
fn one_line(why: &serde_saphyr::Error) -> String {
    if let serde_saphyr::Error::Unexpected { expected, .. } = why {
        return match *expected {
            "mapping start" => "keys with values belong here".to_owned(),
            "sequence start" => "a list belongs here".to_owned(),
            "string scalar" => "a single value belongs here".to_owned(),
            other => format!("{other} belongs here"),
        };
    }
    let text = why.render_with_formatter(&serde_saphyr::UserMessageFormatter);
    let line = text.lines().next().unwrap_or_default();
    let line = line.strip_prefix("error: ").unwrap_or(line);
    let end = line.find(" at line ").unwrap_or(line.len());
    line[..end].to_owned()
}

fn hint(unknown: &str) -> String {
    let names = || KEYS.iter().map(|key| key.name);
    match nearest(unknown, names()) {
        Some(near) => format!("is {near} meant?"),
        None => format!("the keys are {}", names().collect::<Vec<_>>().join(", ")),
    }
}

fn backends(path: &Path, line: u64, list: Vec<Row>) -> Result<Vec<BackendConfig>, ConfigError> {
    let refused = |line, why| ConfigError::Backends {
        origin: Origin::File {
            path: path.to_owned(),
            line,
        },
        why,
    };
    let mut checked: Vec<BackendConfig> = Vec::with_capacity(list.len());
    for row in list {
        let at = |text: &Option<Spanned<String>>| text.as_ref().map(|text| text.referenced.line());
        let line = at(&row.url).or(at(&row.name)).unwrap_or(line);
        let text = |field: Option<Spanned<String>>| field.map(|f| f.value).unwrap_or_default();
        let mut backend = BackendConfig::parse(&text(row.name), &text(row.url))
            .and_then(|backend| backend::refuse_second(&checked, backend))
            .map_err(|why: BackendError| refused(line, why))?;
        let parts: [_; PARTS.len()] = [
            row.ca,
            row.cert,
            row.key,
            row.server_name,
            row.timeout,
            row.headers,
            row.user,
            row.password,
            row.gzip,
            row.http2,
            row.max_in_flight,
            row.origin,
            row.group,
            row.hedge_after,
            row.required,
        ];
        for (part, given) in PARTS.into_iter().zip(parts) {
            if let Some(given) = given {
                let line = given.referenced.line();
                let set = backend.set(part, &given.value);
                set.map_err(|why| refused(line, why))?;
            }
        }
        let backend = backend::refuse_clash(&checked, backend);
        checked.push(backend.map_err(|why| refused(line, why))?);
    }
    Ok(checked)
}

/// The file as it was written: names, lines and texts, with nothing checked but its shape.
struct Document(Vec<Entry>);

struct Entry {
    name: String,
    line: u64,
    what: What,
}

enum What {
    Scalar(&'static Key, Value),
    Backends(&'static Key, Vec<Row>),
    Unknown,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: Option<Spanned<String>>,
    url: Option<Spanned<String>>,
    ca: Option<Spanned<String>>,
    cert: Option<Spanned<String>>,
    key: Option<Spanned<String>>,
    server_name: Option<Spanned<String>>,
    timeout: Option<Spanned<String>>,
    headers: Option<Spanned<String>>,
    user: Option<Spanned<String>>,
    password: Option<Spanned<String>>,
    gzip: Option<Spanned<String>>,
    http2: Option<Spanned<String>>,
    max_in_flight: Option<Spanned<String>>,
    origin: Option<Spanned<String>>,
    group: Option<Spanned<String>>,
    hedge_after: Option<Spanned<String>>,
    required: Option<Spanned<String>>,
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_map(DocumentVisitor)
    }
}

/// One value or a list of them, as they stand in a variable.
struct Listed(String);

impl<'de> Deserialize<'de> for Listed {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_any(ListedVisitor)
    }
}

struct ListedVisitor;

impl<'de> Visitor<'de> for ListedVisitor {
    type Value = Listed;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value or a list of values")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Listed, E> {
        Ok(Listed(text.to_owned()))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Listed, E> {
        Ok(Listed(String::new()))
    }

    // What is no text is taken as it was written: that it is a number matters to nobody here.
    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Listed, E> {
        Ok(Listed(number.to_string()))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Listed, E> {
        Ok(Listed(number.to_string()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Listed, A::Error> {
        let mut all = Vec::new();
        while let Some(one) = list.next_element::<String>()? {
            all.push(one);
        }
        Ok(Listed(all.join(",")))
    }
}

struct DocumentVisitor;

impl<'de> Visitor<'de> for DocumentVisitor {
    type Value = Document;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("keys with their values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Document, A::Error> {
        let mut entries = Vec::new();
        while let Some(name) = map.next_key::<Spanned<String>>()? {
            let line = name.referenced.line();
            let name = name.value;
            let what = match Key::named(&name).map(|key| (key, &key.set)) {
                Some((key, Setter::Scalar(set))) => {
                    let (set, text) = (*set, map.next_value()?);
                    What::Scalar(key, Value::Scalar { set, text })
                }
                Some((key, Setter::List(set))) => {
                    let (set, Listed(text)) = (*set, map.next_value()?);
                    What::Scalar(key, Value::Scalar { set, text })
                }
                Some((key, Setter::Backends)) => {
                    let list: Option<Vec<Row>> = map.next_value()?;
                    What::Backends(key, list.unwrap_or_default())
                }
                None => {
                    map.next_value::<IgnoredAny>()?;
                    What::Unknown
                }
            };
            entries.push(Entry { name, line, what });
        }
        Ok(Document(entries))
    }
}
