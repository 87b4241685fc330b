//! A condition of which parts are known before a backend is asked.

use crate::json::{Kind, kind};

use super::ast::{Node, Value};

/// What a condition comes to once what is known was put in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Truth {
    /// It holds for every record.
    Always,
    /// It holds for none.
    Never,
    /// It is this AST.
    Depends(String),
}

/// One comparison of a condition: `[operator, field, operand]`.
#[derive(Debug, Clone, Copy)]
pub struct Atom<'q> {
    /// Its whole text.
    pub text: &'q str,
    /// Its operator.
    pub operator: &'q str,
    /// The column that it is about.
    pub field: Field<'q>,
    operand: &'q Node,
    query: &'q str,
}

/// What a comparison is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field<'q> {
    /// A column of the record.
    Column(&'q str),
    /// `["fact", name]`: a fact of the record's node.
    Fact(&'q str),
    /// `["node", "active"]`: whether the record's node is active.
    Active,
}

impl Atom<'_> {
    /// The operand as a text, if it is one.
    pub fn text_operand(&self) -> Option<&str> {
        self.operand.text()
    }

    /// The operand's JSON, as it was written.
    pub fn raw_operand(&self) -> &str {
        &self.query[self.operand.span.clone()]
    }

    /// The texts of an `["array", [...]]`; a value that is no text is left out, for it equals none.
    pub fn array_operand(&self) -> Option<Vec<&str>> {
        match self.operand.items()? {
            [head, values] if head.text() == Some("array") => {
                Some(values.items()?.iter().filter_map(Node::text).collect())
            }
            _ => None,
        }
    }

    /// Whether PuppetDB takes the operand for true: everything but `false` and `null`.
    pub fn is_truthy(&self) -> bool {
        match kind(self.raw_operand().as_bytes()) {
            Kind::Null => false,
            Kind::Bool => self.raw_operand() == "true",
            _ => true,
        }
    }
}

impl Truth {
    /// What the condition `clause`, which stands in `query` as `text`, comes to. `known` says of a
    /// comparison what it is known to be; `None` leaves it as it is. Subqueries are conditions on
    /// other records and are left alone.
    pub(super) fn of(
        query: &str,
        text: &str,
        clause: &[Node],
        known: &dyn Fn(&Atom<'_>) -> Option<Self>,
    ) -> Self {
        let as_it_is = || Self::Depends(text.to_owned());
        let [head, operands @ ..] = clause else {
            return as_it_is();
        };
        let each = || {
            operands.iter().map(|operand| {
                let text = &query[operand.span.clone()];
                match operand.items() {
                    Some(items) => Self::of(query, text, items, known),
                    None => Self::Depends(text.to_owned()),
                }
            })
        };
        match (head.text(), operands) {
            (Some("and"), [_, ..]) => Self::joined("and", Self::Always, &Self::Never, each()),
            (Some("or"), [_, ..]) => Self::joined("or", Self::Never, &Self::Always, each()),
            (Some("not"), [_]) => each().next().map_or_else(as_it_is, Self::negated),
            (Some(operator), [field, operand]) => field_of(field)
                .and_then(|field| {
                    known(&Atom {
                        text,
                        operator,
                        field,
                        operand,
                        query,
                    })
                })
                .unwrap_or_else(as_it_is),
            _ => as_it_is(),
        }
    }

    /// Conditions under one connective: `neutral` ones count for nothing, one that `decides` does
    /// so alone.
    fn joined(
        connective: &str,
        neutral: Self,
        decides: &Self,
        conditions: impl Iterator<Item = Self>,
    ) -> Self {
        let mut depends = Vec::new();
        for condition in conditions {
            match condition {
                it if it == *decides => return it,
                Self::Depends(text) => depends.push(text),
                Self::Always | Self::Never => {}
            }
        }
        if depends.is_empty() {
            return neutral;
        }
        Self::Depends(format!("[\"{connective}\",{}]", depends.join(",")))
    }

    fn negated(self) -> Self {
        match self {
            Self::Always => Self::Never,
            Self::Never => Self::Always,
            Self::Depends(text) => Self::Depends(format!("[\"not\",{text}]")),
        }
    }

    /// Both of them.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Never, _) | (_, Self::Never) => Self::Never,
            (Self::Always, it) | (it, Self::Always) => it,
            (Self::Depends(a), Self::Depends(b)) => Self::Depends(format!("[\"and\",{b},{a}]")),
        }
    }
}

fn field_of(node: &Node) -> Option<Field<'_>> {
    match &node.value {
        Value::Text(column) => Some(Field::Column(column)),
        Value::Array(items) => match &**items {
            [head, name] => match (head.text(), name.text()) {
                (Some("fact"), Some(name)) => Some(Field::Fact(name)),
                (Some("node"), Some("active")) => Some(Field::Active),
                _ => None,
            },
            _ => None,
        },
        Value::True | Value::Other => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Query;
    use super::*;

    /// `s` is known to be "a", the fact `s` too.
    fn known(atom: &Atom<'_>) -> Option<Truth> {
        if !matches!(atom.field, Field::Column("s") | Field::Fact("s")) {
            return None;
        }
        let holds = match atom.operator {
            "=" => atom.text_operand() == Some("a"),
            "in" => atom.array_operand()?.contains(&"a"),
            "null?" => !atom.is_truthy(),
            _ => return None,
        };
        Some(if holds { Truth::Always } else { Truth::Never })
    }

    fn narrowed(text: &str, clause: Option<&str>) -> Option<String> {
        let query = Query::read(Some(text)).unwrap();
        query.narrowed(&known, clause, "NEVER")
    }

    #[test]
    fn what_is_known_is_folded_away() {
        let b = r#"["=","b",1.0]"#;
        for (text, expected) in [
            (r#"["=","s","a"]"#, None),
            (r#"["=","s","b"]"#, Some("NEVER")),
            (r#"["=","s",null]"#, Some("NEVER")),
            (r#"["=",["fact","s"],"a"]"#, None),
            (r#"["in","s",["array",["b","a",1]]]"#, None),
            (r#"["in",["fact","s"],["array",["b"]]]"#, Some("NEVER")),
            (r#"["null?","s",true]"#, Some("NEVER")),
            (r#"["null?","s",false]"#, None),
            (r#"["null?","s",0]"#, Some("NEVER")),
            (
                &format!(r#"["and",["=","s","a"],{b}]"#),
                Some(r#"["and",["=","b",1.0]]"#),
            ),
            (&format!(r#"["and",["=","s","b"],{b}]"#), Some("NEVER")),
            (
                &format!(r#"["or",["=","s","b"],{b}]"#),
                Some(r#"["or",["=","b",1.0]]"#),
            ),
            (&format!(r#"["or",["=","s","a"],{b}]"#), None),
            (r#"["not",["=","s","b"]]"#, None),
            (r#"["not",["or",["=","s","a"]]]"#, Some("NEVER")),
            (
                &format!(r#"["not",["and",["=","s","a"],{b}]]"#),
                Some(r#"["not",["and",["=","b",1.0]]]"#),
            ),
            (
                r#"["extract",["c"],["=","s","a"]]"#,
                Some(r#"["extract",["c"],null]"#),
            ),
            (
                r#"["extract",["c"],["=","s","b"],["group_by","c"]]"#,
                Some(r#"["extract",["c"],NEVER,["group_by","c"]]"#),
            ),
        ] {
            assert_eq!(narrowed(text, None).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_not_known_stays_as_it_was_written() {
        for text in [
            r#"["~","s","a"]"#,
            r#"[ "=" , "t", 1.50 ]"#,
            r#"["in","certname",["extract","certname",["select_facts",["=","s","a"]]]]"#,
            r#"["subquery","facts",["=","s","a"]]"#,
            r#"["in","s",["from","nodes",["extract","certname"]]]"#,
            r#"["and"]"#,
            r#"["not",["=","s","a"],["=","s","a"]]"#,
            r#"["=","s"]"#,
            "[]",
            r#"["extract",["c"]]"#,
            r#"["extract",["c"],null]"#,
        ] {
            assert_eq!(narrowed(text, None).as_deref(), Some(text), "{text}");
        }
    }

    #[test]
    fn a_clause_is_added_to_what_is_left() {
        for (text, expected) in [
            (r#"["=","s","a"]"#, r#"["C"]"#),
            (r#"["=","s","b"]"#, "NEVER"),
            (r#"["=","t",1]"#, r#"["and",["C"],["=","t",1]]"#),
            (r#"["extract",["c"]]"#, r#"["extract",["c"],["C"]]"#),
            (r#"["extract",["c"],null]"#, r#"["extract",["c"],["C"]]"#),
            (
                r#"["extract",["c"],["=","t",1]]"#,
                r#"["extract",["c"],["and",["C"],["=","t",1]]]"#,
            ),
            (
                r#"["extract",["c"],["group_by","c"]]"#,
                r#"["extract",["c"],["C"],["group_by","c"]]"#,
            ),
            // Every column.
            (r#"["extract",[]]"#, r#"["extract",[],["C"]]"#),
            (
                r#"["extract",[],["=","t",1]]"#,
                r#"["extract",[],["and",["C"],["=","t",1]]]"#,
            ),
        ] {
            assert_eq!(
                narrowed(text, Some(r#"["C"]"#)).as_deref(),
                Some(expected),
                "{text}"
            );
        }
        let narrowed = |query: &Query, clause| query.narrowed(&known, clause, "NEVER");
        assert_eq!(narrowed(&Query::Absent, None), None);
        assert_eq!(narrowed(&Query::Absent, Some("C")).as_deref(), Some("C"));
        assert_eq!(narrowed(&Query::Text, Some("C")), None);
    }
}
