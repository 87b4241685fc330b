//! The table of routes: what happens to each path.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use crate::Refusal;
use crate::params::escapes_are_whole;

/// What is done with the backends' answers to a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// One record for each node, from the backend with the newer report (R030-R040).
    Nodes,
    /// The facts of each node from its owner; the path names nothing further (R041-R052).
    Facts,
    /// The same for facts of one name, and synthesised for the source fact's own name (R053-R067).
    NamedFacts,
    /// Aggregates are combined, anything else is passed through (R138, R242).
    Resources,
    /// The owner of the certname answers, then the others in turn (R228-R239).
    OfNode,
    /// The first backend that succeeds answers (R240, R241).
    FirstGood,
    /// The union of the lists of names (R086-R092).
    FactNames,
    /// Each report once (R093, R095).
    Reports,
    /// Each event once (R094, R097).
    Events,
    /// The counts of each subject added (R107, R109).
    EventCounts,
    /// The counts of each summary added (R108, R110).
    AggregateEventCounts,
    /// The answer of whichever backend holds the report (R102-R104).
    OfReport,
    /// As before; where the holder cannot answer, the same rows come from the events (D13).
    EventsOfReport,
    /// The lowest version (R243-R245).
    Version,
    /// The clock of the first backend that answers (R246).
    Clock,
    /// Attributes of an MBean, combined (R248-R258).
    ReadMetrics,
    /// The trees of MBeans united (R259).
    ListMetrics,
    /// The old listing of MBeans united (R260).
    MBeans,
    /// Attributes of an MBean in the old form, combined (R260).
    MBean,
    /// The records of each node from its owner, each backend asked for its own alone.
    Owned,
    /// The same below something that a backend may not know.
    OwnedBelow,
    /// The union of what the records of owners name: no node, but what nodes have in common.
    Set,
    /// The counts of each subject, a subject of several backends counted once.
    Subjects,
    /// How many subjects there are, by what happened to them.
    Summaries,
    /// The edges of all catalogs, if there is the one that the path names.
    EdgesOfCatalog,
    /// What hangs below a report, if there is what the path names before it.
    OfReportBelow,
    /// A query that names its entity itself.
    Root,
    /// A write or an administrative request, which pdbmux does not take (ruling 2).
    Write,
}

/// One line of the table.
#[derive(Debug, PartialEq, Eq)]
pub struct Row {
    /// Path segments; `{}` stands for any one segment, a final `**` for any rest, also none.
    pub path: &'static str,
    /// What is done with the answers.
    pub rule: Rule,
    /// What is done with them under `merge: exact`.
    pub exact: Rule,
    /// The entity whose records are merged, as a path spells it; empty where none is.
    pub entity: &'static str,
    /// The columns that identify a record, which break ties when pages are cut.
    pub identity: &'static [&'static str],
    /// Whether sets of records are kept in the cache.
    pub caching: Caching,
    /// Whether parameters may come in a body.
    pub bodies: Bodies,
    /// What tells under `merge: exact` who owns a node.
    pub told: Told,
    /// Which columns rows of functions may have.
    pub columns: Columns,
}

/// What tells under `merge: exact` who owns a node, in an answer that the client does not project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// Nothing.
    Nowhere,
    /// A key of its record.
    ByKey,
    /// The source fact among its facts.
    ByFact,
    /// The source fact, if that is the one that the path names.
    ByNamedFact,
}

/// Which columns a backend's rows of functions may have (section 8 of the wire notes).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Columns {
    /// Any: the nth of one name is called `<name>_n`.
    Open,
    /// Those of a schema: on a second of one name it fails.
    Closed,
}

/// Whether the answers of a route are kept in the cache (R202, R203). Only sets of records ever are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caching {
    /// They are, for `facts_ttl`.
    Kept,
    /// Backends are asked every time.
    Live,
}

/// Whether the parameters of a route may come in the body of a request: a JSON object by POST, or a
/// form by GET.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bodies {
    /// They may, here and at a backend.
    Read,
    /// They may here. A backend answers a POST without a look at its body, so it is asked by GET.
    ReadHere,
    /// The route is read by GET alone, and no body is looked at.
    Unread,
}

impl Row {
    const fn kept(mut self) -> Self {
        self.caching = Caching::Kept;
        self
    }

    const fn exactly(mut self, rule: Rule) -> Self {
        self.exact = rule;
        self
    }

    const fn told(mut self, told: Told) -> Self {
        self.told = told;
        self
    }

    const fn closed(mut self) -> Self {
        self.columns = Columns::Closed;
        self
    }

    const fn bodies(mut self, bodies: Bodies) -> Self {
        self.bodies = bodies;
        self
    }
}

/// A line without records to merge, of which no body is read.
const fn row(path: &'static str, rule: Rule) -> Row {
    records(path, rule, "", &[]).bodies(Bodies::Unread)
}

/// An entity's line.
const fn records(
    path: &'static str,
    rule: Rule,
    entity: &'static str,
    identity: &'static [&'static str],
) -> Row {
    Row {
        path,
        rule,
        exact: rule,
        entity,
        identity,
        caching: Caching::Live,
        bodies: Bodies::Read,
        told: Told::Nowhere,
        columns: Columns::Open,
    }
}

const CERTNAME: &[&str] = &["certname"];
const FACT: &[&str] = &["certname", "name"];
const CONTENT: &[&str] = &["certname", "path"];
const RESOURCE: &[&str] = &["certname", "type", "title"];
const EDGE: &[&str] = &[
    "certname",
    "relationship",
    "source_type",
    "source_title",
    "target_type",
    "target_title",
];
const PACKAGE: &[&str] = &["certname", "package_name", "version", "provider"];
const INPUT: &[&str] = &["certname", "type", "name"];
const NAME: &[&str] = &["name"];
const VERSION: &[&str] = &["package_name", "version", "provider"];
const TYPED_PATH: &[&str] = &["path", "type"];
const REPORT: &[&str] = &["hash"];
/// An event has no id. These columns tell one from another; columns that only say when and by whom
/// it was received are left out, since each backend stamps its own (ruling 3, trap T1).
const EVENT: &[&str] = &[
    "report",
    "resource_type",
    "resource_title",
    "property",
    "timestamp",
    "status",
    "new_value",
    "old_value",
    "message",
];

/// Every served path; the first line that matches decides. What no line matches is unknown.
#[rustfmt::skip]
pub const ROUTES: &[Row] = &[
    records("/pdb/query/v4/nodes", Rule::Nodes, "nodes", CERTNAME).kept().exactly(Rule::Owned).told(Told::ByKey),
    records("/pdb/query/v4/facts", Rule::Facts, "facts", FACT).kept().exactly(Rule::Owned).told(Told::ByFact),
    records("/pdb/query/v4/facts/{}", Rule::NamedFacts, "facts", CERTNAME).kept().exactly(Rule::Owned).told(Told::ByNamedFact),
    records("/pdb/query/v4/facts/{}/{}", Rule::NamedFacts, "facts", CERTNAME).kept().exactly(Rule::Owned).told(Told::ByNamedFact),
    records("/pdb/query/v4/fact-names", Rule::FactNames, "fact-names", NAME).kept(),
    records("/pdb/query/v4/fact-contents", Rule::FirstGood, "fact-contents", CONTENT).exactly(Rule::Owned).closed(),
    records("/pdb/query/v4/factsets", Rule::FirstGood, "factsets", CERTNAME).exactly(Rule::Owned),
    records("/pdb/query/v4/inventory", Rule::FirstGood, "inventory", CERTNAME).exactly(Rule::Owned),
    records("/pdb/query/v4/catalogs", Rule::FirstGood, "catalogs", CERTNAME).exactly(Rule::Owned),
    records("/pdb/query/v4/resources", Rule::Resources, "resources", RESOURCE).exactly(Rule::Owned).closed(),
    records("/pdb/query/v4/resources/{}", Rule::FirstGood, "resources", RESOURCE).exactly(Rule::Owned).closed(),
    records("/pdb/query/v4/resources/{}/{}", Rule::FirstGood, "resources", RESOURCE).exactly(Rule::Owned).closed(),
    records("/pdb/query/v4/edges", Rule::FirstGood, "edges", EDGE).exactly(Rule::Owned).closed(),
    records("/pdb/query/v4/package-inventory", Rule::FirstGood, "package-inventory", PACKAGE).exactly(Rule::Owned),
    records("/pdb/query/v4/catalog-inputs", Rule::FirstGood, "catalog-inputs", CERTNAME).exactly(Rule::Owned).closed(),
    records("/pdb/query/v4/catalog-input-contents", Rule::FirstGood, "catalog-input-contents", INPUT).exactly(Rule::Owned),
    records("/pdb/query/v4/environments", Rule::FirstGood, "environments", NAME).exactly(Rule::Set),
    records("/pdb/query/v4/producers", Rule::FirstGood, "producers", NAME).exactly(Rule::Set),
    records("/pdb/query/v4/packages", Rule::FirstGood, "packages", VERSION).exactly(Rule::Set),
    records("/pdb/query/v4/fact-paths", Rule::FirstGood, "fact-paths", TYPED_PATH).exactly(Rule::Set),
    records("/pdb/query/v4/environments/{}/facts", Rule::FirstGood, "facts", FACT).exactly(Rule::OwnedBelow),
    records("/pdb/query/v4/environments/{}/facts/{}", Rule::FirstGood, "facts", FACT).exactly(Rule::OwnedBelow),
    records("/pdb/query/v4/environments/{}/facts/{}/{}", Rule::FirstGood, "facts", FACT).exactly(Rule::OwnedBelow),
    records("/pdb/query/v4/environments/{}/resources", Rule::FirstGood, "resources", RESOURCE).exactly(Rule::OwnedBelow).closed(),
    records("/pdb/query/v4/environments/{}/resources/{}", Rule::FirstGood, "resources", RESOURCE).exactly(Rule::OwnedBelow).closed(),
    records("/pdb/query/v4/environments/{}/resources/{}/{}", Rule::FirstGood, "resources", RESOURCE).exactly(Rule::OwnedBelow).closed(),
    records("/pdb/query/v4/producers/{}/factsets", Rule::FirstGood, "factsets", CERTNAME).exactly(Rule::OwnedBelow),
    records("/pdb/query/v4/producers/{}/catalogs", Rule::FirstGood, "catalogs", CERTNAME).exactly(Rule::OwnedBelow),
    records("/pdb/query/v4/reports", Rule::Reports, "reports", REPORT).exactly(Rule::Owned),
    records("/pdb/query/v4/events", Rule::Events, "events", EVENT).exactly(Rule::Owned),
    records("/pdb/query/v4/environments/{}/reports", Rule::FirstGood, "reports", REPORT).exactly(Rule::OwnedBelow),
    records("/pdb/query/v4/environments/{}/events", Rule::FirstGood, "events", EVENT).exactly(Rule::OwnedBelow),
    records("/pdb/query/v4/producers/{}/reports", Rule::FirstGood, "reports", REPORT).exactly(Rule::OwnedBelow),
    records("/pdb/query/v4/event-counts", Rule::EventCounts, "event-counts", &[]).exactly(Rule::Subjects),
    records("/pdb/query/v4/aggregate-event-counts", Rule::AggregateEventCounts, "aggregate-event-counts", &[]).exactly(Rule::Summaries),
    records("/pdb/query/v4/reports/{}/events", Rule::EventsOfReport, "events", EVENT),
    row("/pdb/query/v4/reports/{}/logs", Rule::OfReport).bodies(Bodies::ReadHere),
    row("/pdb/query/v4/reports/{}/metrics", Rule::OfReport).bodies(Bodies::ReadHere),
    row("/pdb/query/v4/nodes/{}/**", Rule::OfNode).bodies(Bodies::Read),
    row("/pdb/query/v4/factsets/{}/**", Rule::OfNode).bodies(Bodies::Read),
    records("/pdb/query/v4/catalogs/{}/edges", Rule::OfNode, "edges", EDGE).exactly(Rule::EdgesOfCatalog).closed(),
    row("/pdb/query/v4/catalogs/{}/**", Rule::OfNode).bodies(Bodies::Read),
    row("/pdb/query/v4/package-inventory/{}", Rule::FirstGood).bodies(Bodies::Read).exactly(Rule::OfNode),
    row("/pdb/query/v4/environments/{}", Rule::FirstGood).bodies(Bodies::ReadHere).exactly(Rule::OfReport),
    row("/pdb/query/v4/producers/{}", Rule::FirstGood).bodies(Bodies::ReadHere).exactly(Rule::OfReport),
    row("/pdb/query/v4/environments/{}/reports/{}/events", Rule::FirstGood).bodies(Bodies::Read).exactly(Rule::OfReportBelow),
    row("/pdb/query/v4/environments/{}/reports/{}/logs", Rule::FirstGood).bodies(Bodies::Read).exactly(Rule::OfReportBelow),
    row("/pdb/query/v4/environments/{}/reports/{}/metrics", Rule::FirstGood).bodies(Bodies::Read).exactly(Rule::OfReportBelow),
    row("/pdb/query/v4/producers/{}/reports/{}/events", Rule::FirstGood).bodies(Bodies::Read).exactly(Rule::OfReport),
    row("/pdb/query/v4/producers/{}/reports/{}/logs", Rule::FirstGood).bodies(Bodies::Read).exactly(Rule::OfReportBelow),
    row("/pdb/query/v4/producers/{}/reports/{}/metrics", Rule::FirstGood).bodies(Bodies::Read).exactly(Rule::OfReportBelow),
    row("/pdb/query/v4/producers/{}/factsets/{}/**", Rule::FirstGood).bodies(Bodies::Read).exactly(Rule::OfNode),
    row("/pdb/query/v4/producers/{}/catalogs/{}/**", Rule::FirstGood).bodies(Bodies::Read).exactly(Rule::OfNode),
    row("/pdb/query/v4", Rule::FirstGood).bodies(Bodies::Read).exactly(Rule::Root),
    row("/pdb/query/v4/**", Rule::FirstGood).bodies(Bodies::Read),
    row("/pdb/meta/v1/version", Rule::Version),
    row("/pdb/meta/v1/server-time", Rule::Clock),
    row("/pdb/cmd/**", Rule::Write),
    row("/pdb/admin/**", Rule::Write),
    row("/metrics/v2/read/**", Rule::ReadMetrics),
    row("/metrics/v2/list/**", Rule::ListMetrics),
    row("/metrics/v2/**", Rule::FirstGood),
    row("/metrics/v1/mbeans", Rule::MBeans),
    row("/metrics/v1/mbeans/**", Rule::MBean),
];

/// A request's path, found in the table.
#[derive(Debug, PartialEq, Eq)]
pub struct Route<'r> {
    /// The path as it came, to be forwarded byte for byte (ruling 13, trap T54).
    pub path: &'r str,
    /// Its line in the table.
    pub row: &'static Row,
    /// The place of that line among [`ROUTES`].
    pub number: usize,
    /// The segments that `{}` stood for, still encoded.
    pub segments: Vec<&'r str>,
    /// What `**` stood for, still encoded.
    pub rest: &'r str,
}

impl Route<'_> {
    /// Finds `path`, still percent-encoded, in the table; `None` if it is unknown.
    ///
    /// Refuses paths that a backend could resolve to another route than the one found here.
    pub fn find(path: &str) -> Result<Option<Route<'_>>, Refusal> {
        if !escapes_are_whole(path) {
            return Err(Refusal::MalformedPath);
        }
        if path.split('/').any(is_dot_segment) {
            return Err(Refusal::DotSegment);
        }
        Ok(ROUTES.iter().enumerate().find_map(|(number, row)| {
            let (segments, rest) = matches(row.path, path)?;
            Some(Route {
                path,
                row,
                number,
                segments,
                rest,
            })
        }))
    }

    /// The decoded segment that the `at`th `{}` stood for.
    pub fn segment(&self, at: usize) -> Option<Cow<'_, str>> {
        self.segments
            .get(at)
            .map(|raw| percent_decode_str(raw).decode_utf8_lossy())
    }
}

/// Whether a web server would take `segment` for `.` or `..`. Path parameters (`..;x`) are cut off
/// before that decision by the server PuppetDB uses.
fn is_dot_segment(segment: &str) -> bool {
    let name = segment.split(';').next().unwrap_or_default();
    let decoded = percent_decode_str(name).decode_utf8_lossy();
    decoded == "." || decoded == ".."
}

/// What the `{}` and the `**` of `pattern` stand for, if `path` matches it.
fn matches<'p>(pattern: &str, path: &'p str) -> Option<(Vec<&'p str>, &'p str)> {
    let mut captured = Vec::new();
    let mut rest = Some(path);
    for expected in pattern.split('/') {
        if expected == "**" {
            return Some((captured, rest.unwrap_or_default()));
        }
        let (segment, behind) = match rest?.split_once('/') {
            Some((segment, behind)) => (segment, Some(behind)),
            None => (rest?, None),
        };
        match expected {
            "{}" => captured.push(segment),
            word if segment != word => return None,
            _ => {}
        }
        rest = behind;
    }
    rest.is_none().then_some((captured, ""))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn rule(path: &str) -> Option<Rule> {
        Route::find(path).unwrap().map(|route| route.row.rule)
    }

    #[test]
    fn each_path_has_its_rule() {
        for (path, expected) in [
            ("/pdb/query/v4/nodes", Rule::Nodes),
            ("/pdb/query/v4/facts", Rule::Facts),
            ("/pdb/query/v4/facts/os", Rule::NamedFacts),
            ("/pdb/query/v4/facts/", Rule::NamedFacts),
            ("/pdb/query/v4/facts/os/a%2Fb", Rule::NamedFacts),
            ("/pdb/query/v4/facts/os/a/b", Rule::FirstGood),
            ("/pdb/query/v4/resources", Rule::Resources),
            ("/pdb/query/v4/resources/File", Rule::FirstGood),
            ("/pdb/query/v4/nodes/a.example", Rule::OfNode),
            ("/pdb/query/v4/nodes/a.example/facts/os", Rule::OfNode),
            ("/pdb/query/v4/catalogs/a/edges", Rule::OfNode),
            ("/pdb/query/v4/factsets/a", Rule::OfNode),
            ("/pdb/query/v4/catalogs", Rule::FirstGood),
            ("/pdb/query/v4/environments", Rule::FirstGood),
            ("/pdb/query/v4", Rule::FirstGood),
            ("/pdb/query/v4/", Rule::FirstGood),
            ("/pdb/query/v4/%6eodes", Rule::FirstGood),
            ("/pdb/meta/v1/version", Rule::Version),
            ("/pdb/meta/v1/server-time", Rule::Clock),
            ("/metrics/v2/read/a%3Ab!/c", Rule::ReadMetrics),
            ("/metrics/v2/list", Rule::ListMetrics),
            ("/metrics/v2/list/java.lang", Rule::ListMetrics),
            ("/metrics/v2/search/x", Rule::FirstGood),
            ("/metrics/v1/mbeans", Rule::MBeans),
            ("/metrics/v1/mbeans/x%3Ay", Rule::MBean),
            ("/pdb/query/v4/reports", Rule::Reports),
            ("/pdb/query/v4/reports/abc", Rule::FirstGood),
            ("/pdb/query/v4/reports/abc/events", Rule::EventsOfReport),
            ("/pdb/query/v4/reports/abc/logs", Rule::OfReport),
            ("/pdb/cmd/v1", Rule::Write),
            ("/pdb/admin/v1/archive", Rule::Write),
        ] {
            assert_eq!(rule(path), Some(expected), "{path}");
        }
    }

    #[test]
    fn r202_r203_nodes_facts_and_fact_names_are_kept_and_nothing_else() {
        let kept: Vec<_> = ROUTES
            .iter()
            .filter(|row| row.caching == Caching::Kept)
            .map(|row| row.path)
            .collect();
        assert_eq!(
            kept,
            [
                "/pdb/query/v4/nodes",
                "/pdb/query/v4/facts",
                "/pdb/query/v4/facts/{}",
                "/pdb/query/v4/facts/{}/{}",
                "/pdb/query/v4/fact-names",
            ]
        );
    }

    #[test]
    fn rows_of_an_entity_have_the_same_columns_on_every_route() {
        let closed = |row: &&Row| row.columns == Columns::Closed;
        let entities: BTreeSet<_> = ROUTES.iter().filter(closed).map(|row| row.entity).collect();
        let expected = ["catalog-inputs", "edges", "fact-contents", "resources"];
        assert!(entities.iter().eq(&expected), "{entities:?}");
        for row in ROUTES.iter().filter(|row| entities.contains(row.entity)) {
            assert!(closed(&row), "{}", row.path);
        }
    }

    #[test]
    fn what_is_not_in_the_table_is_unknown() {
        for path in [
            "/",
            "",
            "/pdb",
            "/pdb/query/v3/nodes",
            "//pdb/query/v4/nodes",
            "/status/v1/services",
            "/pdb/meta/v1/version/latest",
            "/pdb/query/v4nodes",
            "/metrics/v1",
            "/pdb/dashboard",
        ] {
            assert_eq!(rule(path), None, "{path}");
        }
    }

    #[test]
    fn ruling_13_dot_segments_are_refused_however_they_are_written() {
        for segment in ["..", ".", "%2e%2E", ".%2e", "%2E", "..;x=1", "%2e%2e;"] {
            let path = format!("/pdb/query/v4/{segment}/admin");
            assert_eq!(Route::find(&path), Err(Refusal::DotSegment), "{path}");
        }
        for segment in ["...", "a..b", "..a", "%252e%252e"] {
            assert!(
                Route::find(&format!("/pdb/query/v4/{segment}")).is_ok(),
                "{segment}"
            );
        }
        assert_eq!(
            Route::find("/pdb/query/v4/facts/%zz"),
            Err(Refusal::MalformedPath)
        );
    }

    #[test]
    fn segments_are_kept_encoded_and_decoded_on_demand() {
        let route = Route::find("/pdb/query/v4/facts/a%2Fb/%C3%A9")
            .unwrap()
            .unwrap();
        assert_eq!(route.segments, ["a%2Fb", "%C3%A9"]);
        assert_eq!(route.segment(0).as_deref(), Some("a/b"));
        assert_eq!(route.segment(1).as_deref(), Some("é"));
        assert_eq!(route.segment(2), None);
        let route = Route::find("/metrics/v2/read/a%3Ab!/c/d").unwrap().unwrap();
        assert_eq!(route.rest, "a%3Ab!/c/d");
    }
}
