//! `merge: exact` against the oracle: of each feature that is held, every question of the corpus
//! and some made at random. `make oracle` asks all of it of every estate.

use anyhow::{Result, ensure};
use pdbmux_e2e::oracle::ground::{Before, field};
use pdbmux_e2e::oracle::score::Score;
use pdbmux_e2e::oracle::{corpus, random};
use pdbmux_e2e::rig::Size;

use crate::world::World;
use crate::{Case, cases};

pub(crate) const CASES: &[Case] = cases![exact_answers_are_the_oracles];

/// Features that may not differ. A feature is listed by its whole name.
const HELD: &[&str] = &[
    "nodes",
    "facts",
    "fact-names",
    "fact-contents",
    "factsets",
    "inventory",
    "edges",
    "package-inventory",
    "catalog-inputs",
    "reports: children",
    "operators",
    "group_by",
    "node state",
    "order_by",
    "paging",
    "totals",
    "fact-paths",
    "packages",
    "subqueries",
    "subqueries over all backends",
    "distinct resources",
    "reports: plans",
    "client: Puppetboard",
    "mistakes: parameters",
    "mistakes: HTTP",
    "client: puppetdb-ruby",
    "client: Puppet Explorer",
    "client: Prometheus exporter",
    "client: Foreman",
    "client: Icinga",
    "client: puppetdbquery",
    "client: Backstage",
    "client: Ansible",
    "client: OpenVox View",
    "client: termini",
    "client: Bolt",
    "client: Prometheus discovery",
    "client: openvox-gui",
    "client: openvox-webui",
    "client: Choria",
];

/// What the questions made at random are made from, and how many there are.
const SEED: u64 = 5;
const RANDOM: u64 = 100;

fn exact_answers_are_the_oracles(world: &World) -> Result<()> {
    let (field, sample, _daemon) = field(
        &world.settings,
        &world.rig,
        Size::Two,
        Before::Backends,
        "exact",
    )?;
    let mut cases = corpus::cases(&sample)?;
    cases.extend(random::cases(SEED, RANDOM, &sample));
    let known = |feature: &str| cases.iter().any(|case| case.feature == feature);
    for feature in HELD {
        ensure!(known(feature), "no question is of the feature {feature}");
    }
    cases.retain(|case| HELD.contains(&case.feature.as_str()));
    let mut score = Score::default();
    score.add("rig", field.run(&cases)?);
    ensure!(score.is_clean(), "{}", score.report(3));
    Ok(())
}
