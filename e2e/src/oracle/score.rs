//! What differs, estate by estate, and a table of features and estates.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::compare::Difference;
use super::field::{Outcome, Verdict};

/// Outcomes by estate, in the order they were made.
#[derive(Clone, Debug, Default)]
pub struct Score {
    estates: Vec<(String, Vec<Outcome>)>,
}

/// What a cell of the table counts.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    equal: usize,
    tolerated: usize,
    marked: usize,
    total: usize,
}

impl Cell {
    fn of<'o>(outcomes: impl Iterator<Item = &'o Outcome>) -> Self {
        let mut cell = Self::default();
        outcomes.for_each(|one| cell.add(&one.verdict));
        cell
    }

    fn held(self) -> usize {
        self.equal + self.tolerated + self.marked
    }

    fn add(&mut self, verdict: &Verdict) {
        self.total += 1;
        match verdict {
            Verdict::Equal => self.equal += 1,
            Verdict::Tolerated(_) => self.tolerated += 1,
            Verdict::Marked(..) => self.marked += 1,
            Verdict::Different(_) => {}
        }
    }

    /// `held/total`, with how many of these are tolerated and how many marked.
    fn text(self) -> String {
        if self.total == 0 {
            return "-".into();
        }
        let mut text = format!("{}/{}", self.held(), self.total);
        if self.held() < self.total {
            text.insert(0, '!');
        }
        for (count, sign) in [(self.tolerated, '~'), (self.marked, '^')] {
            if count > 0 {
                let _ = write!(text, " {sign}{count}");
            }
        }
        text
    }
}

impl Score {
    /// Adds what came of an estate.
    pub fn add(&mut self, estate: &str, outcomes: Vec<Outcome>) {
        self.estates.push((estate.to_owned(), outcomes));
    }

    /// Whether nothing differs without a word of why.
    pub fn is_clean(&self) -> bool {
        self.outcomes()
            .all(|(_, outcome)| !matches!(outcome.verdict, Verdict::Different(_)))
    }

    /// What differs in the estate that was added last (`longest` of each feature).
    pub fn differences(&self, longest: usize) -> String {
        let mut out = String::new();
        if let Some((estate, outcomes)) = self.estates.last() {
            write_differences(&mut out, estate, outcomes, longest);
        }
        out
    }

    /// The table, the legend and the total.
    pub fn summary(&self) -> String {
        let mut out = String::new();
        self.write_table(&mut out);
        self.write_allowed(&mut out);
        let all = Cell::of(self.outcomes().map(|(_, outcome)| outcome));
        let _ = writeln!(
            out,
            "\n{} questions: {} equal, {} tolerated, {} marked as not exact, {} different",
            all.total,
            all.equal,
            all.tolerated,
            all.marked,
            all.total - all.held()
        );
        out
    }

    fn outcomes(&self) -> impl Iterator<Item = (&str, &Outcome)> {
        self.estates
            .iter()
            .flat_map(|(estate, all)| all.iter().map(move |one| (estate.as_str(), one)))
    }

    fn features(&self) -> Vec<&str> {
        let mut all: Vec<&str> = Vec::new();
        for (_, outcome) in self.outcomes() {
            if !all.contains(&outcome.case.feature.as_str()) {
                all.push(&outcome.case.feature);
            }
        }
        all
    }

    fn write_table(&self, out: &mut String) {
        let mut lines = vec![vec![String::new()]];
        lines[0].extend(self.estates.iter().map(|(estate, _)| estate.clone()));
        lines[0].push("all".into());
        for feature in self.features() {
            lines.push(self.line(feature, |outcome| outcome.case.feature == feature));
        }
        lines.push(self.line("all", |_| true));
        let columns = lines.first().map_or(0, Vec::len);
        let widths: Vec<usize> = (0..columns)
            .map(|at| {
                let cells = lines.iter().filter_map(|line| line.get(at));
                cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
            })
            .collect();
        for line in &lines {
            let mut text = String::new();
            for (cell, width) in line.iter().zip(&widths) {
                let _ = write!(text, "{cell:width$}  ");
            }
            let _ = writeln!(out, "{}", text.trim_end());
        }
    }

    fn line(&self, head: &str, counts: impl Fn(&Outcome) -> bool) -> Vec<String> {
        let estates = self.estates.iter();
        let cells = estates.map(|(_, all)| Cell::of(all.iter().filter(|one| counts(one))));
        let all = self.outcomes().map(|(_, outcome)| outcome);
        let cells = cells.chain([Cell::of(all.filter(|one| counts(one)))]);
        let mut line = vec![head.to_owned()];
        line.extend(cells.map(Cell::text));
        line
    }

    fn write_allowed(&self, out: &mut String) {
        let mut tolerated: BTreeMap<&str, (&str, usize)> = BTreeMap::new();
        let mut marked: BTreeMap<&str, usize> = BTreeMap::new();
        for (_, outcome) in self.outcomes() {
            match &outcome.verdict {
                Verdict::Tolerated(one) => {
                    tolerated.entry(one.name).or_insert((one.reason, 0)).1 += 1;
                }
                Verdict::Marked(reason, _) => *marked.entry(reason).or_default() += 1,
                Verdict::Equal | Verdict::Different(_) => {}
            }
        }
        if !tolerated.is_empty() {
            out.push_str("\n~ tolerated\n");
        }
        for (name, (reason, count)) in tolerated {
            let _ = writeln!(out, "  {count:4} {name}: {reason}");
        }
        if !marked.is_empty() {
            out.push_str("\n^ marked by pdbmux as not exact\n");
        }
        for (reason, count) in marked {
            let _ = writeln!(out, "  {count:4} {reason}");
        }
    }
}

fn write_differences(out: &mut String, estate: &str, outcomes: &[Outcome], longest: usize) {
    let mut shown: BTreeMap<&str, usize> = BTreeMap::new();
    for outcome in outcomes {
        let Verdict::Different(differences) = &outcome.verdict else {
            continue;
        };
        let count = shown.entry(&outcome.case.feature).or_default();
        *count += 1;
        if *count <= longest {
            let _ = writeln!(out, "[{estate}] {}", outcome.case.feature);
            write_one(out, outcome, differences);
        }
    }
    for (feature, count) in shown {
        if count > longest {
            let _ = writeln!(out, "[{estate}] {feature}: {} more", count - longest);
        }
    }
}

fn write_one(out: &mut String, outcome: &Outcome, differences: &[Difference]) {
    let _ = writeln!(out, "  {}", outcome.case.ask);
    for difference in differences {
        let _ = writeln!(out, "    {}:", difference.what.word());
        for line in &difference.lines {
            let _ = writeln!(out, "      {line}");
        }
    }
}
