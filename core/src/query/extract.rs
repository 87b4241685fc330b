//! The outermost `extract`: what it projects and where that stands in the text.

use crate::json::{Span, quote};

use super::ast::Node;

/// One column of an `extract` or an item of a `group_by`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Column {
    /// A column by its name, dotted paths included.
    Plain(String),
    /// `["function", name, args...]`.
    Function {
        /// Name of the function, as written.
        name: String,
        /// Its arguments, as written.
        args: Vec<String>,
    },
}

impl Column {
    fn read(node: &Node) -> Option<Self> {
        if let Some(name) = node.text() {
            return Some(Self::Plain(name.to_owned()));
        }
        let mut words = node.items()?.iter().map(Node::text);
        if words.next()? != Some("function") {
            return None;
        }
        let name = words.next()??.to_owned();
        let args = words
            .map(|word| word.map(str::to_owned))
            .collect::<Option<_>>()?;
        Some(Self::Function { name, args })
    }

    fn json(&self) -> String {
        match self {
            Self::Plain(name) => quote(name),
            Self::Function { name, args } => {
                let words = [name].into_iter().chain(args).map(|word| quote(word));
                format!("[\"function\",{}]", words.collect::<Vec<_>>().join(","))
            }
        }
    }

    /// `columns` as the inside of a JSON array.
    pub(super) fn list(columns: &[Self]) -> String {
        columns.iter().map(Self::json).collect::<Vec<_>>().join(",")
    }
}

/// The outermost `extract` of a query.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Extract {
    /// The projected columns, in their order.
    pub columns: Vec<Column>,
    /// The items of its `group_by`, if there is one.
    pub group_by: Vec<Column>,
}

/// Where the parts of an [`Extract`] stand in the query's text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Place {
    pub(super) columns: Span,
    pub(super) filter: Option<Span>,
    pub(super) group_by: Option<Span>,
}

impl Extract {
    /// Reads `root` as PuppetDB does: `["extract", columns, filter?, ["group_by", ...]?]` with a
    /// single name allowed for the columns.
    ///
    /// `None` where PuppetDB sees no `extract` (another operator, a fourth element that is not a
    /// `group_by`; seen on 7.12.1 and 8.4.1, trap T9) and where the columns are in no shape that it
    /// accepts, so that its own refusal reaches the client. An empty list projects every column.
    pub(super) fn read(root: &[Node]) -> Option<(Self, Place)> {
        let [head, columns_at, rest @ ..] = root else {
            return None;
        };
        if head.text() != Some("extract") {
            return None;
        }
        // Only in the last place is a `group_by` no filter; before another it is one, and wrong.
        let (filter, group_by) = match rest {
            [] => (None, None),
            [last] if is_group_by(last) => (None, Some(last)),
            [filter] => (Some(filter), None),
            [filter, last] if is_group_by(last) => (Some(filter), Some(last)),
            _ => return None,
        };
        let columns = match columns_at.items() {
            Some(items) => items.iter().map(Column::read).collect::<Option<Vec<_>>>()?,
            None => vec![Column::read(columns_at)?],
        };
        let place = Place {
            columns: columns_at.span.clone(),
            filter: filter.map(|node| node.span.clone()),
            group_by: group_by.map(|node| node.span.clone()),
        };
        let group_by = match group_by.and_then(Node::items) {
            Some(items) => items[1..]
                .iter()
                .map(Column::read)
                .collect::<Option<Vec<_>>>()?,
            None => Vec::new(),
        };
        Some((Self { columns, group_by }, place))
    }

    /// Whether a column is computed by a function.
    pub fn has_function(&self) -> bool {
        self.columns
            .iter()
            .any(|column| matches!(column, Column::Function { .. }))
    }

    /// Whether `name` is projected as a plain column.
    pub fn projects(&self, name: &str) -> bool {
        self.columns
            .iter()
            .any(|column| matches!(column, Column::Plain(plain) if plain == name))
    }
}

fn is_group_by(node: &Node) -> bool {
    node.items().and_then(<[Node]>::first).and_then(Node::text) == Some("group_by")
}

#[cfg(test)]
mod tests {
    use super::super::Query;
    use super::*;

    fn extract(text: &str) -> Option<Extract> {
        Query::read(Some(text)).unwrap().extract().cloned()
    }

    fn plain(name: &str) -> Column {
        Column::Plain(name.to_owned())
    }

    #[test]
    fn columns_are_read_in_every_shape_that_puppetdb_takes() {
        let count = Column::Function {
            name: "count".into(),
            args: vec![],
        };
        let sum = Column::Function {
            name: "sum".into(),
            args: vec!["value".into()],
        };
        let cases = [
            (r#"["extract","certname"]"#, vec![plain("certname")], vec![]),
            (
                r#"["extract",["a","b"],["=","c",1]]"#,
                vec![plain("a"), plain("b")],
                vec![],
            ),
            (r#"["extract",["a"],null]"#, vec![plain("a")], vec![]),
            (
                r#"["extract",[["function","count"],"a"],["group_by","a"]]"#,
                vec![count, plain("a")],
                vec![plain("a")],
            ),
            (
                r#"["extract",[["function","sum","value"]],["=","a",1],["group_by","a","b"]]"#,
                vec![sum],
                vec![plain("a"), plain("b")],
            ),
        ];
        for (text, columns, group_by) in cases {
            assert_eq!(extract(text), Some(Extract { columns, group_by }), "{text}");
        }
    }

    #[test]
    fn what_puppetdb_does_not_project_is_no_extract() {
        for text in [
            r#"["=","certname","a"]"#,
            r#"["extract"]"#,
            r#"["extract",[]]"#,
            r#"["extract",["a"],["=","b",1],["limit",1]]"#,
            r#"["extract",["a"],["=","b",1],["group_by","a"],1]"#,
            r#"["extract",[1]]"#,
            r#"["extract",{}]"#,
            r#"["and",["extract",["a"]]]"#,
        ] {
            assert_eq!(extract(text), None, "{text}");
        }
    }

    #[test]
    fn an_unwrapped_function_is_two_plain_columns() {
        let read = extract(r#"["extract",["function","count"]]"#).unwrap();
        assert!(!read.has_function());
        assert_eq!(read.columns, [plain("function"), plain("count")]);
    }

    #[test]
    fn a_condition_is_added_to_the_filter_alone() {
        let clause = r#"["=","report","h"]"#;
        let cases = [
            ("", r#"["=","report","h"]"#),
            (
                r#"["=","a",1.0]"#,
                r#"["and",["=","report","h"],["=","a",1.0]]"#,
            ),
            (
                r#"["extract",["a"]]"#,
                r#"["extract",["a"],["=","report","h"]]"#,
            ),
            (
                r#"["extract","a",null]"#,
                r#"["extract","a",["=","report","h"]]"#,
            ),
            (
                r#"["extract",["a"],["=","b",2],["group_by","a"]]"#,
                r#"["extract",["a"],["and",["=","report","h"],["=","b",2]],["group_by","a"]]"#,
            ),
            (
                r#"["extract",["a"],["group_by","a"]]"#,
                r#"["extract",["a"],["=","report","h"],["group_by","a"]]"#,
            ),
            // Two of them are for a backend to refuse, not to be told apart from no projection.
            (
                r#"["extract",["a"],["group_by","a"],["group_by","b"]]"#,
                r#"["extract",["a"],["and",["=","report","h"],["group_by","a"]],["group_by","b"]]"#,
            ),
        ];
        for (text, expected) in cases {
            let query = Query::read(Some(text)).unwrap();
            assert_eq!(query.and(clause).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(Query::read(Some("facts { }")).unwrap().and(clause), None);
    }

    #[test]
    fn a_rewrite_leaves_the_filter_as_it_was_written() {
        let text =
            r#" ["extract", "a" , ["=", "v", 12345678901234567890123.10], ["group_by", "a"]] "#;
        let Query::Ast(ast) = Query::read(Some(text)).unwrap() else {
            panic!("an array")
        };
        let columns = vec![
            plain("a"),
            Column::Function {
                name: "sum".into(),
                args: vec!["v\"".into()],
            },
        ];
        assert_eq!(
            ast.with_extract(&Extract {
                columns,
                group_by: vec![plain("a"), plain("b")]
            }),
            r#" ["extract", ["a",["function","sum","v\""]] , ["=", "v", 12345678901234567890123.10], ["group_by","a","b"]] "#
        );
    }
}
