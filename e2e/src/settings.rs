//! Where the rig lives and which ports it takes, from the environment.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::puppetdb::Java;

/// The first port the rig takes unless `PDBMUX_RIG_PORT` says otherwise: PostgreSQL; the
/// PuppetDBs follow it.
const DEFAULT_PORT: u16 = 28080;

/// What becomes of the servers when the process that started them ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// They end with it, also when it is killed.
    Bound,
    /// They keep running until `rig down` (`PDBMUX_E2E_KEEP=1`).
    Kept,
}

/// A PuppetDB that somebody else runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outside {
    /// The name pdbmux shall give it.
    pub name: String,
    /// Base URL without a trailing slash.
    pub url: String,
    /// Whether it holds the estate already.
    pub content: Content,
}

/// Whether a PuppetDB already holds the estate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// It is empty and has to be loaded.
    Empty,
    /// It was loaded before (`PDBMUX_E2E_LOADED=1`).
    Loaded,
}

/// Everything the environment decides.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The repository's root.
    pub repository: PathBuf,
    /// The rig's folder: `PDBMUX_RIG_DIR`, else `.rig` in the repository.
    pub folder: PathBuf,
    /// First of the rig's consecutive ports.
    pub port: u16,
    /// What becomes of the servers afterwards.
    pub lifetime: Lifetime,
    /// How the PuppetDBs that the rig starts are run.
    pub java: Java,
    /// The pdbmux to test, where it is named.
    pub binary: Option<PathBuf>,
    /// Variables that it gets beside those of a test, as `NAME=VALUE`.
    pub variables: Vec<String>,
    /// Backends from outside; empty when the rig runs its own.
    pub outside: Vec<Outside>,
}

impl Settings {
    /// Reads the `PDBMUX_RIG_*` and `PDBMUX_E2E_*` variables; an unusable value is an error
    /// naming the variable.
    pub fn from_env() -> Result<Self> {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .context("the e2e package has no parent folder")?
            .to_path_buf();
        let folder =
            env::var_os("PDBMUX_RIG_DIR").map_or_else(|| repository.join(".rig"), PathBuf::from);
        let port = match env::var("PDBMUX_RIG_PORT") {
            Ok(text) => text
                .parse()
                .with_context(|| format!("PDBMUX_RIG_PORT is not a port: {text:?}"))?,
            Err(_) => DEFAULT_PORT,
        };
        let content = if is_set("PDBMUX_E2E_LOADED") {
            Content::Loaded
        } else {
            Content::Empty
        };
        Ok(Self {
            repository,
            folder: std::path::absolute(folder)?,
            port,
            lifetime: if is_set("PDBMUX_E2E_KEEP") {
                Lifetime::Kept
            } else {
                Lifetime::Bound
            },
            java: Java::Start,
            binary: env::var_os("PDBMUX_E2E_BIN").map(PathBuf::from),
            variables: Vec::new(),
            outside: match env::var("PDBMUX_E2E_BACKENDS") {
                Ok(text) => parse_backends(&text, content)?,
                Err(_) => Vec::new(),
            },
        })
    }

    /// The pdbmux binary under test: `PDBMUX_E2E_BIN`, else the newest one that was built.
    pub fn pdbmux_binary(&self) -> Result<PathBuf> {
        if let Some(path) = &self.binary {
            return Ok(path.clone());
        }
        ["dist", "target/release", "target/debug"]
            .map(|folder| self.repository.join(folder).join("pdbmux"))
            .into_iter()
            .filter_map(|path| Some((path.metadata().ok()?.modified().ok()?, path)))
            .max()
            .map(|(_, path)| path)
            .context("no pdbmux binary in dist or target: build it first or set PDBMUX_E2E_BIN")
    }
}

fn is_set(name: &str) -> bool {
    env::var(name).is_ok_and(|value| !value.is_empty() && value != "0")
}

/// Reads `a=URL,b=URL`. The tests need exactly two backends, in the order written.
fn parse_backends(text: &str, content: Content) -> Result<Vec<Outside>> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let mut backends = Vec::new();
    for part in text.split(',') {
        let (name, url) = part
            .split_once('=')
            .with_context(|| format!("PDBMUX_E2E_BACKENDS has a part without '=': {part:?}"))?;
        backends.push(Outside {
            name: name.trim().to_owned(),
            url: url.trim().trim_end_matches('/').to_owned(),
            content,
        });
    }
    if backends.len() != 2 {
        bail!(
            "PDBMUX_E2E_BACKENDS names {} backends, the tests need two",
            backends.len()
        );
    }
    Ok(backends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outside_backends_keep_their_order_and_lose_a_trailing_slash() {
        let read =
            parse_backends("b=http://127.0.0.1:1/,a=http://127.0.0.1:2", Content::Empty).unwrap();
        let pairs: Vec<_> = read
            .iter()
            .map(|b| (b.name.as_str(), b.url.as_str()))
            .collect();
        assert_eq!(
            pairs,
            [("b", "http://127.0.0.1:1"), ("a", "http://127.0.0.1:2")]
        );
    }

    #[test]
    fn a_backend_list_that_is_not_two_named_urls_is_refused() {
        for text in ["a", "a=http://x", "a=x,b=y,c=z"] {
            assert!(parse_backends(text, Content::Empty).is_err(), "{text}");
        }
    }
}
