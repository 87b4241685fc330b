//! Configuration and command line (R263 to R291).

// Clippy allows these in test functions alone, not in what they share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod core_dumps;
mod descriptors;
mod documents;
mod files;
mod healthcheck;
mod init;
mod keys;
mod layers;
mod sentences;
mod serve;
mod show;

use std::path::Path;

use pdbmux::config::{ConfigError, Environment, Flags, Loaded};
use tempfile::TempDir;

/// The built program in an empty environment, at home in `dir`.
fn program(dir: &TempDir) -> assert_cmd::Command {
    let mut command = assert_cmd::Command::from(std_program(dir));
    command.timeout(std::time::Duration::from_secs(30));
    command
}

fn std_program(dir: &TempDir) -> std::process::Command {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_pdbmux"));
    command
        .env_clear()
        .env("HOME", dir.path())
        .current_dir(dir.path());
    command
}

/// What a run printed, by a person who sees `dir` as the folder `[dir]`.
fn printed(bytes: &[u8], dir: &TempDir) -> String {
    let text = std::str::from_utf8(bytes).unwrap();
    let name = dir.path().to_str().unwrap();
    let version = env!("CARGO_PKG_VERSION");
    text.replace(name, "[dir]").replace(version, "[version]")
}

/// Loads as the program does, with a file in `dir` in the place of the one in /etc.
fn load(
    dir: &TempDir,
    flags: &[(&'static str, &str)],
    env: &[(&str, &str)],
) -> Result<Loaded, ConfigError> {
    let mut given = Flags::default();
    for (name, text) in flags {
        match *name {
            "config" => given.config = Some(dir.path().join(text)),
            key => {
                given.values.insert(key, (*text).to_owned());
            }
        }
    }
    let env: Environment = env.iter().copied().collect();
    pdbmux::config::load_from(&given, &env, &dir.path().join("etc.yaml"))
}

fn write(dir: &TempDir, name: &str, text: impl AsRef<[u8]>) {
    let path = dir.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
    std::fs::write(path, text).unwrap();
}
