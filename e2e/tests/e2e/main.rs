//! pdbmux in front of real PuppetDBs. One rig serves the whole run; see `e2e/README.md`.
//!
//! A harness of its own, because the rig has to be up before the first test and down after
//! the last, whatever happens between.

mod aggregates;
mod browser;
mod exact;
mod exact_clients;
mod explanations;
mod facts;
mod folds;
mod history;
mod meta;
mod migration;
mod moving;
mod node_lookup;
mod nodes;
mod oracle;
mod outage;
mod paging;
mod post;
mod projections;
mod puppetboard;
mod pypuppetdb;
mod refusals;
mod restarts;
mod terminus;
mod twins;
mod union;
mod walks;
mod world;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Error, Result};
use libtest_mimic::{Arguments, Failed, Trial};

use crate::world::World;

/// A test: what it holds is in its name.
type Case = (&'static str, fn(&World) -> Result<()>);

/// Lists functions as cases under their own names.
macro_rules! cases {
    ($($case:ident),* $(,)?) => {
        &[$((stringify!($case), $case as fn(&$crate::world::World) -> anyhow::Result<()>)),*]
    };
}
pub(crate) use cases;

const ALL: &[(&str, &[Case])] = &[
    ("nodes", nodes::CASES),
    ("facts", facts::CASES),
    ("history", history::CASES),
    ("paging", paging::CASES),
    ("post", post::CASES),
    ("walks", walks::CASES),
    ("projections", projections::CASES),
    ("aggregates", aggregates::CASES),
    ("refusals", refusals::CASES),
    ("explanations", explanations::CASES),
    ("meta", meta::CASES),
    ("pypuppetdb", pypuppetdb::CASES),
    ("node_lookup", node_lookup::CASES),
    ("puppetboard", puppetboard::CASES),
    ("browser", browser::CASES),
];

/// Cases that stop a PuppetDB's process or ask the oracle: only with the rig's own servers.
const OWN_RIG: &[(&str, &[Case])] = &[
    ("oracle", oracle::CASES),
    ("exact", exact::CASES),
    ("exact_clients", exact_clients::CASES),
    ("backstage", exact_clients::BACKSTAGE),
    ("terminus", terminus::CASES),
    ("migration", migration::CASES),
    ("folds", folds::CASES),
    ("union", union::CASES),
    ("outage", outage::CASES),
    ("restarts", restarts::CASES),
    ("twins", twins::CASES),
    ("moving", moving::CASES),
];

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // An outage is everybody's, and servers bound to a thread end with it.
    arguments.test_threads = Some(1);
    match run(&arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("e2e: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<ExitCode> {
    if arguments.list {
        let listed = ALL.iter().chain(OWN_RIG);
        let trials = listed
            .flat_map(|(module, cases)| cases.iter().map(move |(name, _)| (module, name)))
            .map(|(module, name)| Trial::test(format!("{module}::{name}"), || Ok(())));
        return Ok(libtest_mimic::run(arguments, trials.collect()).exit_code());
    }
    let world = Arc::new(World::new()?);
    let own = if world.rig.oracle.is_some() {
        OWN_RIG
    } else {
        &[]
    };
    let mut trials = Vec::new();
    for (module, cases) in ALL.iter().chain(own) {
        // What `setup.sh` could not install here, it left word of.
        let is_lacking = world.settings.folder.join(format!("no-{module}")).exists();
        for &(name, case) in *cases {
            let world = Arc::clone(&world);
            let trial = Trial::test(format!("{module}::{name}"), move || {
                case(&world).map_err(|error: Error| Failed::from(format!("{error:#}")))
            });
            trials.push(trial.with_ignored_flag(is_lacking));
        }
    }
    let conclusion = libtest_mimic::run(arguments, trials);
    // The servers stop when the last holder of the world lets go of it: here.
    drop(world);
    Ok(conclusion.exit_code())
}
