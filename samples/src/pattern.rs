//! Regular expressions, as far as PostgreSQL's dialect and the crate's agree.

use regex_lite::{Regex, RegexBuilder};

use crate::fault::Fault;

#[derive(Debug, Clone)]
pub(crate) struct Pattern(Regex);

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Eq for Pattern {}

impl Pattern {
    /// Reads `text`; a form that only PostgreSQL knows is refused like a wrong one.
    pub(crate) fn parse(text: &str) -> Result<Self, Fault> {
        // To PostgreSQL a line break is a character like any other.
        let built = RegexBuilder::new(text).dot_matches_new_line(true).build();
        built
            .map(Self)
            .map_err(|why| Fault::Refused(format!("ERROR: invalid regular expression: {why}")))
    }

    /// Whether the pattern occurs anywhere in `text`.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_anywhere_unless_anchored() {
        for (pattern, yes, no) in [
            ("web", "my-web-1", "we-b"),
            ("^web", "web-1", "my-web"),
            ("web$", "my-web", "web-1"),
            ("^a.c$", "a\nc", "ac"),
            ("^(web|db)-[0-9]+$", "db-12", "mail-1"),
            (r"\.example\.org$", "a.example.org", "aXexample.org"),
            (r"^\d{2,3}$", "123", "1234"),
        ] {
            let parsed = Pattern::parse(pattern).unwrap();
            assert!(parsed.is_match(yes), "{pattern} on {yes}");
            assert!(!parsed.is_match(no), "{pattern} on {no}");
        }
    }

    #[test]
    fn a_wrong_or_foreign_pattern_is_refused() {
        for pattern in [
            "(", ")", "[a", "*a", "[b-a]", "a{3,2}", "\\", r"(a)\1", "(?=a)",
        ] {
            let refused = Pattern::parse(pattern);
            assert!(
                matches!(&refused, Err(Fault::Refused(text)) if text.starts_with("ERROR: invalid")),
                "{pattern}: {refused:?}"
            );
        }
    }
}
