//! Printing what was found: a table for people, JSON for machines.

use std::fmt::Write as _;

use serde_json::json;

use super::{Aspect, Checked, Finding, Outcome, Report};

/// Whether the table has colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    /// It has none, for files and pipes.
    Plain,
    /// It has, for terminals.
    Colours,
}

impl Paint {
    fn word(self, outcome: Outcome) -> String {
        // Padded first: a terminal does not show the codes.
        let word = format!("{outcome:<7}");
        let colour = match (self, outcome) {
            (Self::Plain, _) => return word,
            (Self::Colours, Outcome::Skipped) => 2,
            (Self::Colours, Outcome::Ok) => 32,
            (Self::Colours, Outcome::Warn) => 33,
            (Self::Colours, Outcome::Fail) => 31,
        };
        format!("\x1b[{colour}m{word}\x1b[0m")
    }
}

fn is_one(one: &Finding, other: &Finding) -> bool {
    (one.outcome, &one.text) == (Outcome::Skipped, &other.text)
}

impl Report {
    /// For people: a block for each backend, then one line for all.
    pub fn table(&self, paint: Paint) -> String {
        let widest = Aspect::ALL.map(|aspect| aspect.to_string().len());
        let width = widest.into_iter().max().unwrap_or_default();
        let mut table = String::new();
        for Checked {
            name,
            url,
            findings,
        } in &self.backends
        {
            // Writing to a String cannot fail.
            let _ = writeln!(table, "{name}  {url}");
            // What was skipped for one reason is one line.
            for same in findings.chunk_by(is_one) {
                let [finding, others @ ..] = same else {
                    continue;
                };
                let aspect = match others.len() {
                    0 => finding.aspect.to_string(),
                    others => format!("{} and {others} more", finding.aspect),
                };
                let word = paint.word(finding.outcome);
                let _ = writeln!(table, "  {word}  {aspect:<width$}  {}", finding.text);
            }
            table.push('\n');
        }
        let count = |outcome| {
            let such = self.backends.iter().filter(|it| it.outcome() == outcome);
            match such.count() {
                0 => None,
                some => Some(format!("{some} {outcome}")),
            }
        };
        let counts: Vec<_> = [Outcome::Ok, Outcome::Warn, Outcome::Fail]
            .into_iter()
            .filter_map(count)
            .collect();
        let _ = writeln!(table, "backends: {}", counts.join(", "));
        table
    }

    /// For machines: one object, described in docs/estate.md.
    pub fn to_json(&self) -> serde_json::Value {
        let backends: Vec<_> = self
            .backends
            .iter()
            .map(|backend| {
                json!({
                    "name": backend.name,
                    "url": backend.url,
                    "outcome": backend.outcome(),
                    "checks": backend.findings,
                })
            })
            .collect();
        let worst = self.backends.iter().map(Checked::outcome).max();
        json!({
            "outcome": worst.unwrap_or(Outcome::Ok),
            "backends": backends,
        })
    }
}
