//! The root route's own form: `["from", entity, query?, paging...]`.

use crate::json::{Kind, kind, quote};

use super::ast::{Ast, Node};

/// A query of the root route, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct From {
    /// The entity, as the query spells it.
    pub entity: String,
    /// The entity's own query, as it was written.
    pub query: Option<String>,
    /// Each paging clause as the text of the parameter that says the same, by the parameter's name.
    pub paging: Vec<(&'static str, String)>,
}

impl From {
    /// Takes `ast` apart as PuppetDB does (seen on 7.12.1 and 8.4.1): the query comes first, each
    /// clause once, in any order.
    ///
    /// `None` for what a backend refuses, and for what it takes though nobody writes it (`1.5` for a
    /// limit): it is for the backends to say what that means.
    pub(super) fn read(ast: &Ast) -> Option<Self> {
        let [head, entity, rest @ ..] = ast.root() else {
            return None;
        };
        let entity = entity.text().filter(|_| head.text() == Some("from"))?;
        let text = |node: &Node| &ast.text()[node.span.clone()];
        let (query, clauses) = match rest {
            [first, clauses @ ..] if !is_paging(first) => (Some(first), clauses),
            clauses => (None, clauses),
        };
        let query = match query.map(|query| (query.items(), text(query))) {
            None | Some((None, "null")) => None,
            Some((Some([_, ..]), text)) => Some(text.to_owned()),
            Some(_) => return None,
        };
        Some(Self {
            entity: entity.to_owned(),
            query,
            paging: paging(clauses, text)?,
        })
    }
}

/// The parameters that say the same as paging clauses, if each is well-formed and there once.
pub(super) fn paging<'t>(
    clauses: &[Node],
    text: impl Fn(&Node) -> &'t str + Copy,
) -> Option<Vec<(&'static str, String)>> {
    let mut paging: Vec<(&'static str, String)> = Vec::new();
    for clause in clauses {
        let (name, value) = parameter(clause, text)?;
        if paging.iter().any(|(known, _)| *known == name) {
            return None;
        }
        paging.push((name, value));
    }
    Some(paging)
}

/// Whether `clause` pages instead of selecting.
pub(super) fn is_paging(clause: &Node) -> bool {
    let head = clause.items().and_then(<[Node]>::first);
    matches!(
        head.and_then(Node::text),
        Some("limit" | "offset" | "order_by")
    )
}

/// The parameter that says the same as a paging clause: its name and its text.
fn parameter<'t>(clause: &Node, text: impl Fn(&Node) -> &'t str) -> Option<(&'static str, String)> {
    let [head, value] = clause.items()? else {
        return None;
    };
    match head.text()? {
        "limit" => Some(("limit", rows(text(value), 1)?)),
        "offset" => Some(("offset", rows(text(value), 0)?)),
        "order_by" => {
            let items = value.items()?.iter().map(order_item);
            let items = items.collect::<Option<Vec<_>>>()?;
            Some(("order_by", format!("[{}]", items.join(","))))
        }
        _ => None,
    }
}

/// A number of rows, of `least` or more. No set is as large as the most that a parameter can say,
/// but a clause can say more.
fn rows(text: &str, least: u64) -> Option<String> {
    if kind(text.as_bytes()) != Kind::Number {
        return None;
    }
    let rows: u64 = text.parse().ok()?;
    let most = u64::from(i32::MAX.unsigned_abs());
    (rows >= least).then(|| rows.min(most).to_string())
}

/// `"column"` or `["column", "asc" | "desc"]`.
fn order_item(item: &Node) -> Option<String> {
    let (field, order) = match item.items() {
        None => (item.text()?, "asc"),
        Some([field, order]) => (field.text()?, order.text()?),
        Some(_) => return None,
    };
    matches!(order, "asc" | "desc")
        .then(|| format!("{{\"field\":{},\"order\":\"{order}\"}}", quote(field)))
}

#[cfg(test)]
mod tests {
    use super::super::Query;
    use super::*;

    fn from(text: &str) -> Option<From> {
        match Query::read(Some(text)).unwrap() {
            Query::Ast(ast) => ast.from(),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn t25_clauses_become_the_parameters_that_say_the_same() {
        for (text, query, paging) in [
            (r#"["from","nodes"]"#, None, &[][..]),
            (r#" [ "from" , "nodes" , null ] "#, None, &[]),
            (
                r#"["from","nodes",["=", "a", 1.0]]"#,
                Some(r#"["=", "a", 1.0]"#),
                &[],
            ),
            (r#"["from","nodes",["limit",7]]"#, None, &[("limit", "7")]),
            (
                r#"["from","nodes",["extract","c"],["offset",0],["order_by",["a",["b\"","desc"],["c","asc"]]],["limit",99999999999]]"#,
                Some(r#"["extract","c"]"#),
                &[
                    ("offset", "0"),
                    (
                        "order_by",
                        r#"[{"field":"a","order":"asc"},{"field":"b\"","order":"desc"},{"field":"c","order":"asc"}]"#,
                    ),
                    ("limit", "2147483647"),
                ],
            ),
            (
                r#"["from","nodes",["order_by",[]]]"#,
                None,
                &[("order_by", "[]")],
            ),
        ] {
            let paging = paging
                .iter()
                .map(|(name, value)| (*name, (*value).to_owned()));
            let expected = From {
                entity: "nodes".to_owned(),
                query: query.map(str::to_owned),
                paging: paging.collect(),
            };
            assert_eq!(from(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_a_backend_refuses_or_nobody_writes_is_left_to_the_backends() {
        for text in [
            "[]",
            r#"["from"]"#,
            r#"["from",1]"#,
            r#"["nodes"]"#,
            r#"["extract","certname"]"#,
            r#"["from","nodes",[]]"#,
            r#"["from","nodes","x"]"#,
            r#"["from","nodes",{}]"#,
            r#"["from","nodes",["=","a",1],["=","a",1]]"#,
            r#"["from","nodes",["limit",1],["=","a",1]]"#,
            r#"["from","nodes",["extract",["a"]],["group_by","a"]]"#,
            r#"["from","nodes",["limit",1],["limit",1]]"#,
            r#"["from","nodes",["limit",0]]"#,
            r#"["from","nodes",["limit",-1]]"#,
            r#"["from","nodes",["limit","1"]]"#,
            r#"["from","nodes",["limit",1.5]]"#,
            r#"["from","nodes",["limit",1,2]]"#,
            r#"["from","nodes",["limit"]]"#,
            r#"["from","nodes",["offset",-1]]"#,
            r#"["from","nodes",["order_by"]]"#,
            r#"["from","nodes",["order_by","a"]]"#,
            r#"["from","nodes",["order_by",[1]]]"#,
            r#"["from","nodes",["order_by",[["a"]]]]"#,
            r#"["from","nodes",["order_by",[["a","DESC"]]]]"#,
            r#"["from","nodes",["order_by",[["a","desc",1]]]]"#,
        ] {
            assert_eq!(from(text), None, "{text}");
        }
    }
}
