//! Puts questions to pdbmux and to the union, several at a time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Result, anyhow};

use super::ask::Ask;
use super::compare::{Difference, What, compare};
use super::corpus::Case;
use super::shape::{Shape, whole};
use super::tolerated::{Found, Tolerated, explanation, mark};
use crate::http::Client;

/// Questions under way at the same time.
const WORKERS: usize = 4;

/// One loaded estate with a pdbmux in front of it.
#[derive(Clone, Debug)]
pub struct Field {
    /// The PuppetDB that holds what pdbmux should answer.
    pub union: Client,
    /// pdbmux.
    pub pdbmux: Client,
    /// The backends in configured order.
    pub backends: Vec<Client>,
    /// Whether the estate has nodes that never reported.
    pub silent_nodes: bool,
    /// Whether a backend orders text otherwise than the union.
    pub other_order: bool,
}

/// What came of one question.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The question.
    pub case: Case,
    /// How the answers compare.
    pub verdict: Verdict,
}

/// How two answers compare.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// They say the same.
    Equal,
    /// They differ in an allowed way.
    Tolerated(&'static Tolerated),
    /// They differ, and pdbmux says that its answer is not exact.
    Marked(String, Vec<Difference>),
    /// They differ.
    Different(Vec<Difference>),
}

impl Field {
    /// Asks everything; outcomes in the order of the questions.
    pub fn run(&self, cases: &[Case]) -> Result<Vec<Outcome>> {
        side_by_side(cases, |case| {
            Ok(Outcome {
                case: case.clone(),
                verdict: self.judge(&case.ask)?,
            })
        })
    }

    /// Asks one question of both. An error when the union cannot be asked at all.
    pub fn judge(&self, ask: &Ask) -> Result<Verdict> {
        let shape = Shape::of(ask, &self.union)?;
        let union = ask.send(&self.union)?;
        let got = match ask.send(&self.pdbmux) {
            Ok(got) => got,
            Err(error) => {
                return Ok(Verdict::Different(vec![Difference {
                    what: What::Answer,
                    lines: vec![format!("{error:#}")],
                }]));
            }
        };
        let differences = compare(&shape, &union, &got, || {
            whole(ask, &shape).send(&self.union)
        })?;
        if differences.is_empty() {
            return Ok(Verdict::Equal);
        }
        let backends: Vec<_> = self
            .backends
            .iter()
            .map(|one| ask.send(one))
            .collect::<Result<_>>()?;
        let found = Found {
            ask,
            shape: &shape,
            union: &union,
            got: &got,
            backends: &backends,
            silent_nodes: self.silent_nodes,
            other_order: self.other_order,
            differences: &differences,
        };
        Ok(match (explanation(&found), mark(&got)) {
            (Some(tolerated), _) => Verdict::Tolerated(tolerated),
            (None, Some(reason)) => Verdict::Marked(reason.to_owned(), differences),
            (None, None) => Verdict::Different(differences),
        })
    }
}

/// Does the same for each of `all`, several at a time; the results come in their order.
pub(super) fn side_by_side<T: Sync, R: Send>(
    all: &[T],
    each: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let work = || -> Result<Vec<(usize, R)>> {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(one) = all.get(at) else {
                return Ok(done);
            };
            done.push((at, each(one)?));
        }
    };
    let mut done = thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        let mut all = Vec::new();
        for worker in workers {
            all.extend(worker.join().map_err(|_| anyhow!("a thread died"))??);
        }
        anyhow::Ok(all)
    })?;
    done.sort_by_key(|(at, _)| *at);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}
