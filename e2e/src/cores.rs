//! Backends that do not take time from each other, as if each had a machine of its own.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::rig::Rig;

/// Keeps each backend, its PuppetDB and that one's sessions in PostgreSQL, to a core of its own. To
/// be said again from time to time: new sessions may run anywhere.
pub fn part(rig: &Rig) -> Result<()> {
    let members = rig.backends.iter().chain(&rig.third).enumerate();
    for (core, member) in members {
        let server = member.server.as_ref();
        let server = server.with_context(|| format!("{} is not the rig's own", member.name))?;
        let of_database = sessions(server.database_name())?;
        for pid in of_database.into_iter().chain([server.pid()]) {
            keep(pid, core)?;
        }
    }
    Ok(())
}

/// The processes in which PostgreSQL serves `database`.
fn sessions(database: &str) -> Result<Vec<i32>> {
    let named = format!("postgres: puppetdb {database} ");
    let is_session = |pid: &i32| {
        let title = fs::read(format!("/proc/{pid}/cmdline"));
        title.is_ok_and(|title| title.starts_with(named.as_bytes()))
    };
    let processes = fs::read_dir("/proc").context("cannot list processes")?;
    let pids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Ok(pids.filter(is_session).collect())
}

/// Keeps all threads of a process to one core. It may have ended meanwhile.
fn keep(pid: i32, core: usize) -> Result<()> {
    let told = Command::new("taskset")
        .args(["--all-tasks", "--cpu-list", "--pid"])
        .args([core.to_string(), pid.to_string()])
        .output()
        .context("cannot run taskset")?;
    ensure!(
        told.status.success() || fs::metadata(format!("/proc/{pid}")).is_err(),
        "process {pid} cannot be kept to core {core}: {}",
        String::from_utf8_lossy(&told.stderr).trim()
    );
    Ok(())
}
