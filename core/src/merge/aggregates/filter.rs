//! The `counts_filter` of event counts.

use crate::merge::fold::Row;
use crate::paging::{ColumnKind, compare_values};

/// A comparison that the counts of a subject must pass.
///
/// Backends would apply it to their own part of the counts: one failure here and one there never
/// are more than one (trap T30). So it is applied to the added counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountsFilter {
    operator: Operator,
    count: String,
    /// The number that the count is compared with, as written.
    number: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

/// The counts that PuppetDB's editions know.
const COUNTS: [&str; 8] = [
    "failures",
    "skips",
    "successes",
    "noops",
    "intentional_successes",
    "corrective_successes",
    "intentional_noops",
    "corrective_noops",
];

impl CountsFilter {
    /// Reads the parameter: `["=" or another comparison, count, number]`. `None` if it is anything
    /// else, which is the backends' to refuse.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (operator, count, number): (String, String, serde_json::Number) =
            serde_json::from_str(text).ok()?;
        let operator = match &*operator {
            "=" => Operator::Equal,
            ">" => Operator::Greater,
            ">=" => Operator::GreaterOrEqual,
            "<" => Operator::Less,
            "<=" => Operator::LessOrEqual,
            _ => return None,
        };
        COUNTS.contains(&&*count).then(|| Self {
            operator,
            count,
            number: number.to_string(),
        })
    }

    /// Whether `row` passes. One without the count does not.
    pub(super) fn passes(&self, row: &Row<'_>) -> bool {
        let Some(count) = row.column(&self.count) else {
            return false;
        };
        let order = compare_values(ColumnKind::Plain, count, self.number.as_bytes());
        match self.operator {
            Operator::Equal => order.is_eq(),
            Operator::Greater => order.is_gt(),
            Operator::GreaterOrEqual => order.is_ge(),
            Operator::Less => order.is_lt(),
            Operator::LessOrEqual => order.is_le(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_puppetdb_would_refuse_is_no_filter() {
        for text in [
            "",
            "null",
            "[]",
            r#"["=","failures"]"#,
            r#"["=","failures","1"]"#,
            r#"["=","failures",1,2]"#,
            r#"["=","total",1]"#,
            r#"["~","failures",1]"#,
            r#"["and",["=","failures",1],["=","skips",1]]"#,
            r#"["=","failures",1] x"#,
        ] {
            assert_eq!(CountsFilter::parse(text), None, "{text}");
        }
    }
}
