//! `merge: exact` against the oracle: one in three questions of the corpus and some made at random.
//! `make oracle` asks all, and of every estate.

use anyhow::{Result, ensure};
use pdbmux_e2e::oracle::field::Outcome;
use pdbmux_e2e::oracle::ground::{Before, field};
use pdbmux_e2e::oracle::rewriter::Rewriter;
use pdbmux_e2e::oracle::sample::Sample;
use pdbmux_e2e::oracle::score::Score;
use pdbmux_e2e::oracle::{corpus, random};
use pdbmux_e2e::rig::Size;

use crate::world::World;
use crate::{Case, cases};

pub(crate) const CASES: &[Case] = cases![
    exact_answers_are_the_oracles,
    a_rewritten_query_selects_what_the_owner_rule_keeps,
];

/// What is made at random is made from this.
const SEED: u64 = 5;
/// How many questions that are.
const RANDOM: u64 = 50;
/// One of how many questions of the corpus is asked.
const PART: usize = 3;
/// How many filters of each entity.
const FILTERS: u64 = 10;

fn exact_answers_are_the_oracles(world: &World) -> Result<()> {
    let (field, sample, _daemon) = field(
        &world.settings,
        &world.rig,
        Size::Two,
        Before::Backends,
        "exact",
    )?;
    let cases = corpus::cases(&sample)?.into_iter();
    let mut cases: Vec<_> = cases.step_by(PART).collect();
    cases.extend(random::cases(SEED, RANDOM, &sample));
    held(field.run(&cases)?)
}

fn a_rewritten_query_selects_what_the_owner_rule_keeps(world: &World) -> Result<()> {
    let backends = world.rig.backends.each_ref().map(|one| one.client.clone());
    let sample = Sample::of(&backends.each_ref(), world.oracle()?)?;
    let rewriter = Rewriter::new(&backends)?;
    held(rewriter.run(SEED, FILTERS, &sample, &|_| true)?)
}

/// Nothing differs without a word of why.
fn held(outcomes: Vec<Outcome>) -> Result<()> {
    let mut score = Score::default();
    score.add("rig", outcomes);
    ensure!(
        score.is_clean(),
        "{}{}",
        score.differences(3),
        score.summary()
    );
    Ok(())
}
