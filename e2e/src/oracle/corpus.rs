//! The questions, as text in `corpus/`: a heading in brackets names the feature of the lines
//! that follow, a line is one question as [`Ask::parse`] reads it. `<name>` stands for a value
//! of the estate (see [`Sample`]).

use anyhow::{Context as _, Result};

use super::ask::Ask;
use super::sample::Sample;

/// One question and what it is a question of.
#[derive(Clone, Debug)]
pub struct Case {
    /// The feature it is scored under.
    pub feature: String,
    /// The question.
    pub ask: Ask,
}

const TEXTS: &[&str] = &[
    include_str!("../../corpus/entities.txt"),
    include_str!("../../corpus/history.txt"),
    include_str!("../../corpus/queries.txt"),
    include_str!("../../corpus/subqueries.txt"),
    include_str!("../../corpus/root.txt"),
    include_str!("../../corpus/clients.txt"),
    include_str!("../../corpus/mistakes.txt"),
];

/// Every question, filled in for an estate.
pub fn cases(sample: &Sample) -> Result<Vec<Case>> {
    lines()
        .map(|(feature, line)| case(feature, line, sample))
        .collect()
}

/// One question from its line.
pub fn case(feature: &str, line: &str, sample: &Sample) -> Result<Case> {
    let filled = sample.fill(line);
    Ok(Case {
        feature: feature.to_owned(),
        ask: Ask::parse(&filled).with_context(|| filled.clone())?,
    })
}

/// Feature and text of every question as written.
pub fn lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    TEXTS.iter().flat_map(|text| {
        let mut feature = "";
        text.lines().filter_map(move |line| {
            if let Some(heading) = line.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
                feature = heading;
                return None;
            }
            (!line.is_empty() && !line.starts_with('#')).then_some((feature, line))
        })
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_line_has_a_feature_and_is_a_question_of_its_own() {
        let mut seen = BTreeSet::new();
        for (feature, line) in lines() {
            assert!(!feature.is_empty(), "{line}");
            Ask::parse(line).unwrap();
            assert!(seen.insert((feature, line)), "twice: {line}");
        }
    }
}
