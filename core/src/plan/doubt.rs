//! What an answer under `merge: exact` may lack of one PuppetDB's (see docs/exact.md).
//!
//! Rows, counts and pages are exact by construction: every backend is asked for what it speaks for.
//! A subquery is not divided. Each backend answers it from its own records, and so it decides rightly
//! only where the records it looks at are those of the very nodes, or the very reports, that the
//! backend speaks for. What cannot be seen to be so is asked first, of all backends; what cannot be
//! asked so is doubted.

use crate::merge::prior::Prior;
use crate::params::Params;
use crate::query::{Query, Subquery, is_of_nodes};
use crate::route::{Route, Rule};
use crate::settings::{Settings, Strategy};

use super::prior;

/// Why an answer may differ from that of one PuppetDB with all data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doubt {
    /// One backend's answer is passed on, from its own data.
    OneBackend,
    /// A subquery keeps some of its rows, and each backend keeps some of its own (trap T26).
    LimitInSubquery,
    /// The newest event of each resource is each backend's own (trap T66).
    DistinctByBackend,
    /// A subquery needs records that another backend may hold, or skips over stale copies.
    SubquerySeesOneBackend,
    /// Nodes came, went or moved faster than they could be listed: some may be missed or counted
    /// twice. Only asking shows it.
    EstateChanges,
}

impl Doubt {
    /// All doubts that there are.
    pub const ALL: [Self; 5] = [
        Self::OneBackend,
        Self::LimitInSubquery,
        Self::DistinctByBackend,
        Self::SubquerySeesOneBackend,
        Self::EstateChanges,
    ];

    /// One word for the client.
    pub fn reason(self) -> &'static str {
        match self {
            Self::OneBackend => "one-backend",
            Self::LimitInSubquery => "limit-in-subquery",
            Self::DistinctByBackend => "distinct-resources",
            Self::SubquerySeesOneBackend => "subquery-sees-one-backend",
            Self::EstateChanges => "estate-changes",
        }
    }
}

/// What a backend cannot be trusted to answer alone, each once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Uncertain {
    /// Subqueries that are asked of all backends first.
    pub priors: Vec<Prior>,
    /// What is to be doubted of the answer all the same.
    pub doubts: Vec<Doubt>,
}

/// How many subqueries there are, those inside them included.
fn count(subqueries: &[Subquery<'_>]) -> usize {
    let inner = subqueries.iter().map(|subquery| count(&subquery.inner()));
    subqueries.len() + inner.sum::<usize>()
}

impl Uncertain {
    /// What is uncertain about the answer to a request. With one backend nothing is.
    pub(super) fn of(route: &Route<'_>, params: &Params<'_>, settings: &Settings) -> Self {
        let mut found = Self::default();
        if settings.strategy != Strategy::Exact || settings.backends.len() < 2 {
            return found;
        }
        let Some(reach) = Reach::of(route) else {
            return found;
        };
        if reach == Reach::OneBackend || params.get("explain").is_some() {
            found.doubts.push(Doubt::OneBackend);
            return found;
        }
        if params.is_true("distinct_resources") {
            found.doubts.push(Doubt::DistinctByBackend);
        }
        if let Ok(Query::Ast(ast)) = Query::read(params.get("query")) {
            let around = match route.row.entity {
                "event-counts" | "aggregate-event-counts" => "events".to_owned(),
                entity => entity.replace('-', "_"),
            };
            let subqueries = ast.subqueries();
            // The old compiler takes no list of values.
            let ask = !params.is_true("distinct_resources") && count(&subqueries) <= prior::MOST;
            let settings = ask.then_some(settings);
            for subquery in &subqueries {
                found.look_at(subquery, reach, &around, settings);
            }
        }
        found.doubts.sort_unstable();
        found.doubts.dedup();
        found
    }

    /// Looks at a subquery in a query for `around`, of which a backend is asked about the records in
    /// its `reach`. Nothing is asked first without `settings`.
    fn look_at(
        &mut self,
        subquery: &Subquery<'_>,
        reach: Reach,
        around: &str,
        settings: Option<&Settings>,
    ) {
        let within = reach.into(subquery);
        let mut doubts = Vec::new();
        if subquery.is_cut {
            doubts.push(Doubt::LimitInSubquery);
        }
        if within.is_none() {
            doubts.push(Doubt::SubquerySeesOneBackend);
        }
        if !doubts.is_empty()
            && let Some(settings) = settings
            && let Some(prior) = prior::of(subquery, around, &doubts, settings)
        {
            if self.priors.iter().all(|known| known.clause != prior.clause) {
                self.priors.push(prior);
            }
            return;
        }
        self.doubts.extend(doubts);
        if let Some(reach) = within {
            for inner in subquery.inner() {
                self.look_at(&inner, reach, subquery.entity, settings);
            }
        }
    }
}

/// Which records around a subquery a backend is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// Those of the nodes that it owns: what it holds of them is what counts.
    Owned,
    /// All reports that it holds, also of nodes that have moved on. A report and its events are the
    /// same wherever they are held.
    Reports,
    /// The events of those.
    Events,
    /// Names that many nodes have in common.
    Names,
    /// Whatever one backend has.
    OneBackend,
}

impl Reach {
    /// The reach of a route; `None` where no query is read or none can differ.
    fn of(route: &Route<'_>) -> Option<Self> {
        match (route.row.exact, route.row.entity) {
            (_, "reports") => Some(Self::Reports),
            (_, "events" | "event-counts" | "aggregate-event-counts") => Some(Self::Events),
            (Rule::Owned | Rule::OwnedBelow | Rule::OfNode | Rule::EdgesOfCatalog, _) => {
                Some(Self::Owned)
            }
            (Rule::FirstGood, _) if route.path.starts_with("/pdb/query/") => Some(Self::OneBackend),
            (_, entity) => (!entity.is_empty()).then_some(Self::Names),
        }
    }

    /// Which of its records a backend looks at for `subquery`; `None` if others decide as well.
    fn into(self, subquery: &Subquery<'_>) -> Option<Self> {
        let entity = subquery.entity.replace('-', "_");
        match (self, &*entity) {
            // Where a record names one, its backend knows it, and it is nothing but its name.
            (Self::Owned | Self::Reports | Self::Events, "environments" | "producers") => {
                let names = subquery.is_implied()
                    || subquery.joins("environment", "name")
                    || subquery.joins("producer", "name");
                names.then_some(Self::Names)
            }
            (Self::Owned, "reports" | "events") => {
                if subquery.joins("latest_report_hash", "hash") {
                    return Some(Self::Reports);
                }
                if subquery.joins("latest_report_hash", "report") {
                    return Some(Self::Events);
                }
                // Of what has been, the owner holds the latest for certain.
                let is_theirs = subquery.is_implied() || subquery.joins("certname", "certname");
                (is_theirs && subquery.demands("latest_report?")).then_some(Self::Owned)
            }
            (Self::Owned, _) if is_of_nodes(&entity) => {
                let is_theirs = subquery.is_implied() || subquery.joins("certname", "certname");
                is_theirs.then_some(Self::Owned)
            }
            // What a stale copy says of its node is not what the owner says.
            (Self::Reports | Self::Events, "reports" | "events") if subquery.asks_of_node() => None,
            // Two reports, or two events, are related by their node: others may hold more of its.
            (Self::Events, "reports") => {
                let is_theirs = subquery.is_implied() || subquery.joins("report", "hash");
                is_theirs.then_some(Self::Reports)
            }
            (Self::Reports, "events") => {
                let is_theirs = subquery.is_implied() || subquery.joins("hash", "report");
                is_theirs.then_some(Self::Events)
            }
            (Self::Reports, "reports") => subquery.joins("hash", "hash").then_some(Self::Reports),
            (Self::Events, "events") => subquery.joins("report", "report").then_some(Self::Events),
            (Self::Owned | Self::Reports | Self::Events | Self::Names | Self::OneBackend, _) => {
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Scope;

    /// What would be doubted if nothing were asked first.
    fn doubted(settings: &Settings, path: &str, query: &str) -> Vec<&'static str> {
        let path = format!("/pdb/query/v4/{path}");
        let route = Route::find(&path).unwrap().unwrap();
        let raw = crate::params::encode("query", query);
        let params = Params::read(&raw).unwrap();
        let Uncertain { priors, mut doubts } = Uncertain::of(&route, &params, settings);
        doubts.extend(priors.into_iter().flat_map(|prior| prior.doubts));
        doubts.sort_unstable();
        doubts.dedup();
        doubts.into_iter().map(Doubt::reason).collect()
    }

    fn exact() -> Settings {
        Settings {
            backends: vec!["pdb-a".into(), "pdb-b".into()],
            strategy: Strategy::Exact,
            source: None,
        }
    }

    const LIMIT: &str = "limit-in-subquery";
    const SEES: &str = "subquery-sees-one-backend";

    #[test]
    fn a_subquery_about_the_same_nodes_is_exact() {
        for query in [
            r#"["=","certname","a"]"#,
            r#"["in","certname",["extract","certname",["select_facts",["=","name","a"]]]]"#,
            r#"["not",["in","certname",["from","resources",["extract","certname"],["order_by",["certname"]]]]]"#,
            r#"["in",["certname","name"],["extract",["certname","name"],["select_fact-contents"]]]"#,
            r#"["subquery","nodes",["subquery","facts",["=",["fact","a"],1]]]"#,
            r#"["=",["fact","os"],"x"]"#,
            r#"["subquery","reports",["and",["=","latest_report?",true],["=","status","failed"]]]"#,
            r#"["in","latest_report_hash",["extract","hash",["select_reports",["subquery","events",["=","status","x"]]]]]"#,
            r#"["in","environment",["from","environments",["extract","name",["~","name","p"]]]]"#,
            r#"["subquery","producers",["=","name","p"]]"#,
        ] {
            for path in [
                "nodes",
                "facts",
                "nodes/a/facts",
                "environments/e/resources",
            ] {
                assert_eq!(doubted(&exact(), path, query), [""; 0], "{path} {query}");
            }
        }
    }

    #[test]
    fn t66_distinct_resources_are_doubted_where_more_than_time_decides() {
        let latest = r#"query=["=","latest_report?",true]"#;
        let facts =
            r#"query=["in","certname",["extract","certname",["select_facts",["=","name","a"]]]]"#;
        let times = "distinct_start_time=2024-01-01&distinct_end_time=2025-01-01";
        let doubt = &["distinct-resources"][..];
        for (path, asked, expected) in [
            (
                "events",
                format!("distinct_resources=true&{times}"),
                &[][..],
            ),
            (
                "events",
                format!("distinct_resources=true&{times}&limit=3"),
                &[],
            ),
            (
                "environments/e/events",
                format!("distinct_resources=true&{times}"),
                &[],
            ),
            ("events", format!("distinct_resources=false&{times}"), &[]),
            (
                "event-counts",
                format!("summarize_by=resource&distinct_resources=true&{times}"),
                &[],
            ),
            (
                "aggregate-event-counts",
                format!(
                    "summarize_by=resource,certname&count_by=certname&distinct_resources=true&{times}"
                ),
                &[],
            ),
            // What all backends refuse is theirs to refuse.
            ("events", "distinct_resources=true".to_owned(), doubt),
            (
                "event-counts",
                format!("summarize_by=x&distinct_resources=true&{times}"),
                doubt,
            ),
            (
                "events",
                format!("distinct_resources=true&{times}&{latest}"),
                doubt,
            ),
            (
                "events",
                format!("distinct_resources=true&{times}&{facts}"),
                &["distinct-resources", "subquery-sees-one-backend"],
            ),
        ] {
            let path = format!("/pdb/query/v4/{path}");
            let route = Route::find(&path).unwrap().unwrap();
            let params = Params::read(&asked).unwrap();
            let Ok(crate::plan::Plan::Fan(fan)) = crate::plan::plan(&route, &params, &exact())
            else {
                panic!("not asked of all: {asked}")
            };
            let reasons: Vec<_> = fan.doubts.iter().map(|doubt| doubt.reason()).collect();
            assert_eq!(reasons, expected, "{path} {asked}");
            // The old compiler knows no list of nodes.
            let is_distinct = params.is_true("distinct_resources");
            assert_eq!(fan.ask.scope() == Scope::Everything, is_distinct, "{asked}");
            assert_eq!(
                fan.further.len(),
                usize::from(is_distinct && expected.is_empty())
            );
        }
    }

    #[test]
    fn t26_a_subquery_about_others_is_doubted() {
        for (query, expected) in [
            (
                r#"["in","certname",["from","nodes",["extract","certname"],["limit",1]]]"#,
                &[LIMIT][..],
            ),
            (
                r#"["in","certname",["extract","certname",["select_nodes",["offset",1]]]]"#,
                &[LIMIT],
            ),
            (
                r#"["in","name",["extract","name",["select_facts",["=","certname","a"]]]]"#,
                &[SEES],
            ),
            (
                r#"["in","name",["from","facts",["extract","name"],["limit",1]]]"#,
                &[LIMIT, SEES],
            ),
            (
                r#"["and",["in","a",["from","facts",["extract","b"]]],["in","a",["from","facts",["extract","b"]]]]"#,
                &[SEES],
            ),
            (r#"["subquery","reports",["=","status","failed"]]"#, &[SEES]),
            (
                r#"["subquery","reports",["or",["=","latest_report?",true],["=","a",1]]]"#,
                &[SEES],
            ),
            (
                r#"["subquery","fact_paths",["=","type","integer"]]"#,
                &[SEES],
            ),
            (
                r#"["in","environment",["from","environments",["extract","name",["subquery","facts",["=","name","a"]]]]]"#,
                &[SEES],
            ),
            (
                r#"["subquery","nodes",["in","certname",["from","facts",["extract","certname"],["limit",5]]]]"#,
                &[LIMIT],
            ),
        ] {
            for path in ["nodes", "resources", "catalogs/a/resources"] {
                assert_eq!(doubted(&exact(), path, query), expected, "{path} {query}");
            }
        }
    }

    #[test]
    fn of_the_past_and_of_names_little_is_certain() {
        let hash =
            r#"["in","report",["extract","hash",["select_reports",["=","status","failed"]]]]"#;
        let fact = r#"["=",["fact","os"],"x"]"#;
        for (path, query, expected) in [
            ("events", hash, &[][..]),
            ("event-counts", hash, &[]),
            (
                "reports",
                r#"["subquery","events",["=","status","x"]]"#,
                &[],
            ),
            // Two reports have but their node in common.
            (
                "reports",
                r#"["subquery","reports",["=","status","x"]]"#,
                &[SEES],
            ),
            (
                "reports",
                r#"["subquery","environments",["=","name","x"]]"#,
                &[],
            ),
            ("reports", fact, &[SEES]),
            (
                "events",
                r#"["subquery","nodes",["=","certname","a"]]"#,
                &[SEES],
            ),
            // Two of a kind are related by their node, whose others may be elsewhere.
            (
                "reports",
                r#"["subquery","reports",["=","status","failed"]]"#,
                &[SEES],
            ),
            (
                "reports",
                r#"["and",["not",["subquery","reports",["=","status","failed"]]],["=","noop",true]]"#,
                &[SEES],
            ),
            (
                "events",
                r#"["subquery","events",["=","status","x"]]"#,
                &[SEES],
            ),
            (
                "event-counts",
                r#"["subquery","reports",["subquery","reports",["=","status","x"]]]"#,
                &[SEES],
            ),
            (
                "reports",
                r#"["in","hash",["extract","hash",["select_reports",["=","status","x"]]]]"#,
                &[],
            ),
            (
                "events",
                r#"["in","report",["from","events",["extract","report",["=","status","x"]]]]"#,
                &[],
            ),
            // A stale copy has a latest report too.
            (
                "events",
                r#"["subquery","reports",["not",["=","latest_report?",true]]]"#,
                &[SEES],
            ),
            (
                "events",
                r#"["in","report",["extract","hash",["select_reports",["=","latest_report?",true]]]]"#,
                &[SEES],
            ),
            (
                "reports",
                r#"["subquery","events",["=",["node","active"],true]]"#,
                &[SEES],
            ),
            (
                "reports",
                r#"["subquery","events",["=","node_state","active"]]"#,
                &[SEES],
            ),
            ("fact-names", fact, &[SEES]),
            ("nodes", hash, &[SEES]),
        ] {
            assert_eq!(doubted(&exact(), path, query), expected, "{path} {query}");
        }
    }

    #[test]
    fn what_one_backend_answers_for_all_is_said() {
        let none: [&str; 0] = [];
        assert_eq!(doubted(&exact(), "nosuch", "[]"), ["one-backend"]);
        assert_eq!(doubted(&exact(), "", "[]"), ["one-backend"]);
        let fact = r#"["in","name",["from","facts",["extract","name"]]]"#;
        let mut other = exact();
        other.strategy = Strategy::Freshness;
        assert_eq!(doubted(&other, "nodes", fact), none);
        let mut one = exact();
        one.backends.pop();
        assert_eq!(doubted(&one, "nodes", fact), none);
    }
}
