//! What processes took: CPU of a group, memory of one.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};

/// User and system time of all processes of a group, those that ended and were waited for within it
/// included.
pub(crate) fn cpu(group: i32) -> Result<Duration> {
    let mut ticks = 0;
    for entry in fs::read_dir("/proc")?.flatten() {
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // The command in parentheses may hold blanks.
        let Some((_, fields)) = stat.rsplit_once(") ") else {
            continue;
        };
        let fields: Vec<&str> = fields.split(' ').collect();
        if fields.get(2).and_then(|it| it.parse().ok()) != Some(group) {
            continue;
        }
        let times = fields.get(11..13).unwrap_or_default();
        ticks += times
            .iter()
            .filter_map(|it| it.parse::<u64>().ok())
            .sum::<u64>();
    }
    // The unit that Linux reports in, whatever its own clock does.
    Ok(Duration::from_millis(ticks * 10))
}

/// Forgets the highest memory of a process so far.
pub(crate) fn reset_peak(pid: i32) -> Result<()> {
    fs::write(format!("/proc/{pid}/clear_refs"), "5").context("cannot reset the peak of memory")
}

/// The highest resident memory since [`reset_peak`], in bytes.
pub(crate) fn peak(pid: i32) -> Result<u64> {
    field(pid, "VmHWM:")
}

/// The resident memory now, in bytes.
pub(crate) fn resident(pid: i32) -> Result<u64> {
    field(pid, "VmRSS:")
}

fn field(pid: i32, name: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
    let kilobytes: u64 = kilobytes.with_context(|| format!("no {name} of process {pid}"))?;
    Ok(kilobytes << 10)
}
