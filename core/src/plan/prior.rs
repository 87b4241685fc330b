//! Subqueries that are asked of all backends before the question around them.

use crate::json::quote;
use crate::merge::prior::Prior;
use crate::params::Params;
use crate::query::{ANY_STATE, Apart, From, Query, Subquery, is_of_nodes};
use crate::settings::Settings;

use super::{Doubt, Plan, root};

/// Most subqueries of a query, those inside them included, of which any is asked first: each is a
/// question to every backend.
pub(super) const MOST: usize = 32;

/// The entities beside those of nodes that PuppetDB takes in a subquery, as they must be spelled there
/// (seen on 7.12.1 and 8.4.1).
const OTHERS: [&str; 6] = [
    "fact_paths",
    "packages",
    "reports",
    "events",
    "environments",
    "producers",
];

/// Whether the entity's own route hides the records of inactive nodes, which a subquery sees.
fn hides(entity: &str) -> bool {
    is_of_nodes(entity) && entity != "catalogs"
}

/// A subquery in a query for `around`, as a question of its own; `None` if it cannot be one. `doubts`
/// are those that it settles.
pub(super) fn of(
    subquery: &Subquery<'_>,
    around: &str,
    doubts: &[Doubt],
    settings: &Settings,
) -> Option<Prior> {
    let Apart { columns, from } = subquery.apart()?;
    let columns = match columns {
        Some(columns) => columns,
        None => related(around, &from.entity)?,
    };
    // A backend has a fault where the path of a fact and that of a fact's content are compared.
    let is_path = |(outer, _): &(String, String)| outer == "path";
    let is_known = is_of_nodes(&from.entity) || OTHERS.contains(&&*from.entity);
    if !is_known || from.entity != around && columns.iter().any(is_path) {
        return None;
    }
    let mut selected: Vec<&str> = Vec::new();
    for (_, inner) in &columns {
        if !selected.contains(&&**inner) {
            selected.push(inner);
        }
    }
    let from = From {
        query: Some(extract(&from, &selected, subquery.is_cut)?),
        ..from
    };
    let none = Params::read("").ok()?;
    match root::of_entity(&from, &none, settings).ok()?? {
        Plan::Fan(fan) => Some(Prior {
            clause: subquery.clause().to_owned(),
            columns,
            fan,
            doubts: doubts.to_vec(),
        }),
        _ => None,
    }
}

/// The columns by which PuppetDB takes a record of `around` and a row of `entity` to belong together
/// when a query does not say; `None` if it knows none.
fn related(around: &str, entity: &str) -> Option<Vec<(String, String)>> {
    let pair = match (around, entity) {
        ("reports", "events") => ("hash", "report"),
        ("events", "reports") => ("report", "hash"),
        ("fact_paths", "facts") => ("name", "name"),
        (
            "environments",
            "factsets" | "catalogs" | "reports" | "inventory" | "facts" | "fact_contents"
            | "events" | "resources",
        ) => ("name", "environment"),
        ("producers", "factsets" | "catalogs" | "reports") => ("name", "producer"),
        (_, "nodes" | "catalogs") if is_of_nodes(around) => ("certname", "certname"),
        // Of resources it knows no more; the other is filed under a name that no query can spell.
        ("resources", _) | (_, "package_inventory") => return None,
        ("reports" | "events", entity) | (entity, "reports" | "events") if is_of_nodes(entity) => {
            ("certname", "certname")
        }
        ("reports", "reports") | ("events", "events") => ("certname", "certname"),
        _ => return None,
    };
    Some(vec![(pair.0.to_owned(), pair.1.to_owned())])
}

/// The query for these columns of the rows.
fn extract(from: &From, columns: &[&str], is_cut: bool) -> Option<String> {
    let columns: Vec<_> = columns.iter().map(|column| quote(column)).collect();
    let list = columns.join(",");
    let condition = if hides(&from.entity) {
        let condition = Query::read(from.query.as_deref()).ok()?;
        condition.and(ANY_STATE)
    } else {
        from.query.clone()
    };
    let condition = condition.map_or_else(String::new, |condition| format!(",{condition}"));
    // Each row once will do where no row decides which others are left; a backend does not group by
    // a path alone.
    let group = if is_cut || columns.iter().any(|column| column == "\"path\"") {
        String::new()
    } else {
        format!(",[\"group_by\",{list}]")
    };
    Some(format!("[\"extract\",[{list}]{condition}{group}]"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::plan;
    use crate::route::Route;
    use crate::settings::Strategy;

    fn fan(path: &str, query: &str) -> crate::merge::Fan {
        let settings = Settings {
            backends: vec!["pdb-a".into(), "pdb-b".into()],
            strategy: Strategy::Exact,
            source: Some("pdbmux_source".to_owned()),
        };
        let path = format!("/pdb/query/v4/{path}");
        let path = path.trim_end_matches('/');
        let route = Route::find(path).unwrap().unwrap();
        let raw = crate::params::encode("query", query);
        match plan(&route, &Params::read(&raw).unwrap(), &settings).unwrap() {
            Plan::Fan(fan) => fan,
            other => panic!("{query}: {other:?}"),
        }
    }

    /// Path and query of an ask, decoded.
    fn asked(fan: &crate::merge::Fan) -> String {
        let target = fan.ask.target();
        let (path, query) = target.split_once('?').unwrap();
        let pairs = Params::read(query).unwrap();
        let said: Vec<_> = pairs
            .pairs()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let path = path.strip_prefix("/pdb/query/v4/").unwrap();
        format!("{path} {}", said.join(" "))
    }

    fn pairs(columns: &[(String, String)]) -> String {
        let pairs = columns
            .iter()
            .map(|(outer, inner)| format!("{outer}={inner}"));
        pairs.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_foreign_subquery_is_asked_of_all_first() {
        for (path, query, columns, ask) in [
            (
                "nodes",
                r#"["subquery","reports",["=","status","failed"]]"#,
                "certname=certname",
                r#"reports query=["extract",["certname"],["=","status","failed"],["group_by","certname"]]"#,
            ),
            (
                "resources",
                r#"["not",["in",["type","title"],["extract",["type","title"],["select_resources",["=","certname","a"]]]]]"#,
                "type=type title=title",
                r#"resources query=["extract",["type","title"],["and",["=","node_state","any"],["=","certname","a"]],["group_by","type","title"]]"#,
            ),
            (
                "reports",
                r#"[">",["fact","uptime"],5]"#,
                "certname=certname",
                r#"facts query=["extract",["certname"],["and",["=","node_state","any"],["and",["=","name","uptime"],[">","value",5]]],["group_by","certname"]]"#,
            ),
            (
                "environments",
                r#"["subquery","factsets",["=","certname","a"]]"#,
                "name=environment",
                r#"factsets query=["extract",["environment"],["and",["=","node_state","any"],["=","certname","a"]],["group_by","environment"]]"#,
            ),
            // What is cut is not grouped, for every row counts.
            (
                "nodes",
                r#"["in","certname",["from","facts",["extract","certname"],["order_by",["value"]],["limit",2]]]"#,
                "certname=certname",
                r#"facts order_by=[{"field":"value","order":"asc"},{"field":"certname","order":"asc"},{"field":"name","order":"asc"}] query=["extract",["certname","value","name"],["=","node_state","any"]] limit=2"#,
            ),
        ] {
            let fan = fan(path, query);
            let [prior] = &*fan.priors else {
                panic!("{query}: {:?}", fan.priors);
            };
            assert_eq!(pairs(&prior.columns), columns, "{query}");
            assert_eq!(asked(&prior.fan), ask, "{query}");
            assert!(fan.doubts.is_empty(), "{query}");
            assert!(query.contains(&prior.clause));
            assert_eq!(asked(&fan), format!("{path} query={query}"));
        }
    }

    #[test]
    fn the_innermost_is_asked_before_what_is_around_it() {
        let facts =
            r#"["in","environment",["extract","environment",["select_facts",["=","name","x"]]]]"#;
        let reports = format!(r#"["subquery","reports",{facts}]"#);
        let fan = fan("nodes", &reports);
        assert_eq!(fan.priors[0].clause, reports);
        assert_eq!(fan.priors[0].fan.priors[0].clause, facts);
    }

    #[test]
    fn inside_a_subquery_that_a_backend_answers_rightly_others_are_asked_first() {
        let title = r#"["in","title",["from","facts",["extract","value"]]]"#;
        let query = format!(r#"["subquery","resources",{title}]"#);
        let fan = fan("nodes", &query);
        let clauses: Vec<_> = fan.priors.iter().map(|prior| &*prior.clause).collect();
        assert_eq!(clauses, [title]);
        assert!(fan.priors[0].fan.priors.is_empty());
    }

    #[test]
    fn what_cannot_be_asked_apart_is_doubted() {
        let many: Vec<_> = (0..=MOST)
            .map(|name| format!(r#"["subquery","reports",["=","status","{name}"]]"#))
            .collect();
        let many = format!("[\"or\",{}]", many.join(","));
        for (path, query) in [
            ("nodes", &*many),
            (
                "facts",
                r#"["in","name",["from","fact_names",["extract","name"]]]"#,
            ),
            (
                "facts",
                r#"["in","name",["from","fact-paths",["extract","name"]]]"#,
            ),
        ] {
            let fan = fan(path, query);
            assert_eq!(fan.priors, [], "{query}");
            assert_eq!(fan.doubts, [Doubt::SubquerySeesOneBackend], "{query}");
        }
    }

    #[test]
    fn t41_the_root_route_asks_the_same_first() {
        let reports = r#"["subquery","facts",["=","name","x"]]"#;
        let fan = fan("", &format!(r#"["from","reports",{reports}]"#));
        assert_eq!(fan.priors[0].clause, reports);
    }

    #[test]
    fn what_is_asked_twice_is_asked_once() {
        let reports = r#"["subquery","reports",["=","status","failed"]]"#;
        let fan = fan("nodes", &format!(r#"["or",["not",{reports}],{reports}]"#));
        assert_eq!(fan.priors.len(), 1);
    }
}
