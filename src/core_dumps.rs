//! Whether the memory of this process, which holds secrets, can be dumped or read.

use std::io;

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use crate::config::CoreDumps;

/// Sets it for this process, whatever it was: with [`CoreDumps::Off`] the system writes no core of it,
/// and only root may read its memory or trace it.
///
/// # Errors
///
/// The system does not let this process decide that.
pub fn set(dumps: CoreDumps) -> io::Result<()> {
    let behavior = match dumps {
        CoreDumps::Off => DumpableBehavior::NotDumpable,
        CoreDumps::On => DumpableBehavior::Dumpable,
    };
    Ok(set_dumpable_behavior(behavior)?)
}
