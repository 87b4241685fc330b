//! Laying the layers over each other (R263).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::env::Environment;
use super::error::ConfigError;
use super::file::{self, FileChoice, SYSTEM_FILE};
use super::key::{KEYS, Key};
use super::layer::{Given, Origin, Partial};
use super::{BackendConfig, Config, Listen, Transport, duration, value};

/// More than this is never served from the cache (R206).
const FACTS_TTL_CAP: Duration = Duration::from_secs(30);

/// What was given on the command line, as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flags {
    /// `--config`.
    pub config: Option<PathBuf>,
    /// Values of keys, by the key's name.
    pub values: BTreeMap<&'static str, String>,
}

impl Flags {
    fn layer(&self) -> Result<Partial, ConfigError> {
        let mut layer = Partial::default();
        for key in KEYS {
            if let (Some(flag), Some(text)) = (key.flag, self.values.get(key.name)) {
                let given = Given::from_text(key, text.into(), Origin::Flag(flag))?;
                layer.0.push(given);
            }
        }
        Ok(layer)
    }
}

/// A configuration with its history.
#[derive(Debug)]
pub struct Loaded {
    /// The effective values.
    pub config: Config,
    /// The file that was read, or where one was looked for.
    pub file: FileChoice,
    /// What the operator should know although nothing is wrong, a sentence each.
    pub notes: Vec<String>,
    /// What was typed for each key that a layer sets, by the key's name.
    given: BTreeMap<&'static str, (String, Origin)>,
    /// `facts_ttl` as it was typed, where that is over the cap.
    clamped: Option<String>,
    /// A variable that should hold a secret and is not set.
    unset: Option<String>,
    /// A key that is set, and one that it needs.
    lacking: Option<(&'static str, &'static str)>,
}

/// Lays flags over environment over file over defaults. Fails on the first value, in any layer,
/// that cannot be used; that no backend is configured is no failure here.
pub fn load(flags: &Flags, env: &Environment) -> Result<Loaded, ConfigError> {
    load_from(flags, env, Path::new(SYSTEM_FILE))
}

/// [`load`], with another file in the place of [`SYSTEM_FILE`].
pub fn load_from(flags: &Flags, env: &Environment, system: &Path) -> Result<Loaded, ConfigError> {
    let file = file::choose(flags.config.as_deref(), env, system)?;
    let lowest = match &file {
        FileChoice::Loaded(path) => file::layer(path)?,
        FileChoice::Searched(_) => Partial::default(),
    };
    let mut loaded = Loaded {
        config: Config::default(),
        file,
        notes: env.notes(),
        given: BTreeMap::new(),
        clamped: None,
        unset: None,
        lacking: None,
    };
    for layer in [lowest, env.layer()?, flags.layer()?] {
        loaded.lay(layer)?;
    }
    loaded.clamp();
    loaded.look_up(env)?;
    loaded.look_at_door();
    loaded.note_backends();
    Ok(loaded)
}

/// [`load`] for a process that is to serve: fails where there is no backend, and gives the notes
/// along.
pub fn load_to_serve(
    flags: &Flags,
    env: &Environment,
) -> Result<(Config, Vec<String>), ConfigError> {
    let loaded = load(flags, env)?;
    if loaded.config.backends.is_empty() {
        return Err(ConfigError::NoBackends);
    }
    if let Some(variable) = loaded.unset {
        return Err(ConfigError::NoVariable(variable));
    }
    if let Some((key, lacking)) = loaded.lacking {
        return Err(ConfigError::Lacking { key, lacking });
    }
    Ok((loaded.config, loaded.notes))
}

/// What the demo serves with: quiet defaults for one machine, with the flags over them. Neither file
/// nor variables count, so that a demo beside a configured pdbmux is still the demo.
pub fn load_for_demo(flags: &Flags) -> Result<Config, ConfigError> {
    let mut config = Config {
        listen: vec![Listen {
            host: Some("127.0.0.1".to_owned()),
            port: 8080,
            transport: Transport::Plain,
        }],
        // A stopped sample is noticed, and a restarted one too, while somebody still looks.
        timeout: Duration::from_secs(2),
        freshness_ttl: Duration::from_secs(1),
        facts_ttl: Duration::ZERO,
        health_probe_interval: Duration::from_millis(500),
        shutdown_timeout: Duration::from_secs(1),
        log_level: "warn".to_owned(),
        ..Config::default()
    };
    for given in flags.layer()?.0 {
        given.apply(&mut config)?;
    }
    if config.listen.len() > 1 {
        return Err(ConfigError::OneAddress);
    }
    Ok(config)
}

/// The defaults with the flags over them, and the file that `config init` is to write (R289).
pub fn initial(flags: &Flags, env: &Environment) -> Result<(Config, PathBuf), ConfigError> {
    let path = match file::named(flags.config.as_deref(), env)? {
        Some((path, _)) => path,
        None => file::of_user(env).ok_or(ConfigError::NoHome)?,
    };
    let mut config = Config::default();
    for given in flags.layer()?.0 {
        given.apply(&mut config)?;
    }
    Ok((config, path))
}

impl Loaded {
    /// Where the effective value of a key comes from.
    pub fn origin(&self, key: &Key) -> &Origin {
        self.given
            .get(key.name)
            .map_or(&Origin::Default, |(_, origin)| origin)
    }

    /// The value of a key as `config show` writes it, with the remark of a clamped one (R208).
    pub(super) fn value(&self, key: &Key) -> String {
        let value = key.show(&self.config);
        match self.remark(key) {
            Some(remark) => format!("{value} ({remark})"),
            None => value,
        }
    }

    pub(super) fn remark(&self, key: &Key) -> Option<String> {
        let typed = self.clamped.as_ref().filter(|_| key.name == "facts_ttl")?;
        Some(format!(
            "clamped from {typed}, cap {}",
            key.show(&self.config)
        ))
    }

    fn lay(&mut self, layer: Partial) -> Result<(), ConfigError> {
        for given in layer.0 {
            given.apply(&mut self.config)?;
            let text = given.text().to_owned();
            self.given.insert(given.key.name, (text, given.origin));
        }
        Ok(())
    }

    /// Holds `facts_ttl` under its cap (R206): a stray variable must not stop a container.
    fn clamp(&mut self) {
        if self.config.facts_ttl <= FACTS_TTL_CAP {
            return;
        }
        self.config.facts_ttl = FACTS_TTL_CAP;
        if let Some((typed, origin)) = self.given.get("facts_ttl") {
            self.clamped = Some(typed.clone());
            self.notes.push(format!(
                "facts_ttl {} ({origin}) is over the cap: {} is used",
                value::shown(typed),
                duration::format(&FACTS_TTL_CAP)
            ));
        }
    }

    /// Looks secrets up that are in variables; where one is not set, only serving needs it. Refuses
    /// half of what goes by two.
    fn look_up(&mut self, env: &Environment) -> Result<(), ConfigError> {
        let general = self.config.access.look_up(env);
        let backends = self.config.backends.iter_mut();
        let own: Vec<_> = backends.map(|it| it.access.look_up(env)).collect();
        let collector = self.config.otlp.access.look_up(env);
        let all = own.into_iter().chain([general, collector]);
        self.unset = all.flatten().next();
        if let Some(variable) = &self.unset {
            let note = ConfigError::NoVariable(variable.clone());
            self.notes.push(note.to_string());
        }
        for backend in &self.config.backends {
            let access = backend.access.or(&self.config.access);
            if let Some((part, lacking)) = access.half() {
                let name = backend.name.clone();
                return Err(ConfigError::Half {
                    name,
                    part,
                    lacking,
                });
            }
        }
        Ok(())
    }

    /// Serves by TLS alone where nobody asks for anything else, and finds what is set to no effect:
    /// only serving needs that to be right.
    fn look_at_door(&mut self) {
        let Config {
            listen, door, otlp, ..
        } = &mut self.config;
        if !door.tls_listen.is_empty() && !self.given.contains_key("listen") {
            listen.clear();
        }
        self.lacking = door.lacking().or_else(|| otlp.lacking());
        if let Some((key, lacking)) = self.lacking {
            let note = ConfigError::Lacking { key, lacking };
            self.notes.push(note.to_string());
        }
    }

    /// Says where there is no backend, which only serving needs, and where two are one PuppetDB:
    /// nothing breaks then, and every count comes out double.
    fn note_backends(&mut self) {
        let backends = &self.config.backends;
        if backends.is_empty() {
            self.notes.push(ConfigError::NoBackends.to_string());
        }
        for (at, backend) in backends.iter().enumerate() {
            let is_twin = |other: &&BackendConfig| {
                let (group, own) = (&other.access.group, &backend.access.group);
                other.url == backend.url && (group.is_none() || group != own)
            };
            if let Some(first) = backends[..at].iter().find(is_twin) {
                self.notes.push(format!(
                    "the backends {} and {} have the same url: counts will be too high",
                    first.name, backend.name
                ));
            }
        }
    }
}
