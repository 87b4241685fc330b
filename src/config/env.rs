//! The layer of environment variables (R269 to R285).

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use super::error::ConfigError;
use super::key::KEYS;
use super::layer::{Given, Origin, Partial};
use super::nearest::nearest;

/// Names the config file; the one variable that is no key.
pub(super) const CONFIG: &str = "PDBMUX_CONFIG";
const PREFIX: &str = "PDBMUX_";

/// The environment, as data: only the binary looks at the real one.
#[derive(Debug, Clone, Default)]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// The environment of this process.
    pub fn of_process() -> Self {
        Self(std::env::vars_os().collect())
    }

    /// A variable's value, where it is set.
    pub(crate) fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// A variable's value, where it is set to a text.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.get(name)?.to_str().map(str::to_owned)
    }

    /// Reads the variable of every key.
    pub(super) fn layer(&self) -> Result<Partial, ConfigError> {
        let mut layer = Partial::default();
        for key in KEYS {
            let name = key.env();
            if let Some(text) = self.get(&name) {
                let given = Given::from_text(key, text.to_owned(), Origin::Env(name))?;
                layer.0.push(given);
            }
        }
        Ok(layer)
    }

    /// Says which `PDBMUX_*` variables mean nothing. That is no error: Kubernetes sets some of its
    /// own (`PDBMUX_SERVICE_HOST`) beside a service named pdbmux.
    pub(super) fn notes(&self) -> Vec<String> {
        let known: Vec<String> = KEYS
            .iter()
            .map(super::Key::env)
            .chain([CONFIG.to_owned()])
            .collect();
        let mut notes = Vec::new();
        let mut foreign = Vec::new();
        for name in self.0.keys() {
            let name = name.to_string_lossy().into_owned();
            if !name.starts_with(PREFIX) || known.contains(&name) {
                continue;
            }
            match nearest(&name, known.iter().map(String::as_str)) {
                Some(near) => notes.push(format!("{name} is ignored: is {near} meant?")),
                None => foreign.push(name),
            }
        }
        if !foreign.is_empty() {
            notes.push(format!(
                "variables of no key are ignored: {}",
                foreign.join(", ")
            ));
        }
        notes
    }
}

impl<K: Into<OsString>, V: Into<OsString>> FromIterator<(K, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let own = |(name, value): (K, V)| (name.into(), value.into());
        Self(pairs.into_iter().map(own).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_no_key_are_noted_and_not_refused() {
        let env: Environment = [
            ("PDBMUX_SERVICE_HOST", "10.0.0.1"),
            ("PDBMUX_PORT_8080_TCP", "tcp://10.0.0.1:8080"),
            ("PDBMUX_TIMEOUTS", "5s"),
            ("PDBMUX_CONFIG", "/x"),
            ("PDBMUX_LISTEN", ":1"),
            ("HOME", "/root"),
        ]
        .into_iter()
        .collect();
        assert_eq!(
            env.notes(),
            [
                "PDBMUX_TIMEOUTS is ignored: is PDBMUX_TIMEOUT meant?",
                "variables of no key are ignored: PDBMUX_PORT_8080_TCP, PDBMUX_SERVICE_HOST",
            ]
        );
        assert_eq!(env.layer().unwrap().0.len(), 1);
    }
}
