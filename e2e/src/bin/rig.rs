//! Runs the rig by hand: `rig up`, `rig load`, `rig status`, `rig down`.

use std::io::{Write as _, stdout};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use pdbmux_e2e::estate::Estate;
use pdbmux_e2e::rig::Plan;
use pdbmux_e2e::settings::{Lifetime, Settings};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("rig: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let plan = Plan::new(&Settings::from_env()?)?;
    match std::env::args().nth(1).as_deref() {
        Some("up") => {
            plan.start(Lifetime::Kept)?;
        }
        Some("load") => {
            let rig = plan
                .find(Lifetime::Kept)
                .context("the rig is not running: rig up")?;
            plan.load(&rig, &Estate::default())?;
        }
        Some("status") => {}
        Some("down") => plan.stop()?,
        _ => bail!("usage: rig up|load|status|down"),
    }
    for line in plan.status() {
        writeln!(stdout(), "{line}")?;
    }
    Ok(())
}
