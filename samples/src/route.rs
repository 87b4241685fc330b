//! Which path asks for what.

use percent_encoding::percent_decode_str;

use crate::schema::Entity;

/// The paths that the sample knows, with their segments decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// `/pdb/query/v4`: the entity stands in the query.
    Root,
    /// Rows of an entity, below a node if there is a parent, narrowed by column values.
    Rows {
        entity: Entity,
        parent: Option<Parent>,
        narrowed: Vec<(&'static str, String)>,
    },
    /// The one record of this key.
    Record(Parent),
    /// `/reports/<hash>/logs` or `/metrics`.
    ReportPart {
        hash: String,
        column: &'static str,
    },
    EventCounts,
    Version,
    ServerTime,
    /// Outside the query API: no parameters, any method, any `Accept`.
    Status(Status),
    /// A route of PuppetDB's that the sample does not serve.
    Unserved,
    /// No route of PuppetDB's.
    Unknown,
    /// Not even below one of its prefixes.
    Outside,
}

/// What a PuppetDB tells about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Status {
    Services,
    Service(String),
    Simple,
    MetricList,
    Metric {
        mbean: String,
        attribute: Option<String>,
    },
}

/// A record by its entity and key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parent {
    pub(crate) entity: Entity,
    pub(crate) key: String,
}

/// Entities of PuppetDB's that the sample holds no data for.
const UNSERVED: &[&str] = &[
    "aggregate-event-counts",
    "catalog-input-contents",
    "catalog-inputs",
    "edges",
    "fact-contents",
    "fact-paths",
    "package-inventory",
    "packages",
    "producers",
];

impl Route {
    /// Reads a raw path, still percent-encoded.
    pub(crate) fn parse(path: &str) -> Self {
        let Some(rest) = path.strip_prefix('/') else {
            return Self::Outside;
        };
        let segments: Vec<&str> = rest.split('/').collect();
        match segments.as_slice() {
            ["pdb", "query", "v4"] => Self::Root,
            ["pdb", "query", "v4", segments @ ..] => query(segments),
            ["pdb", "meta", "v1", "version"] => Self::Version,
            ["pdb", "meta", "v1", "server-time"] => Self::ServerTime,
            ["pdb", "cmd" | "admin" | "ext", ..] => Self::Unserved,
            ["pdb", ..] => Self::Unknown,
            ["status", "v1", "services"] => Self::Status(Status::Services),
            ["status", "v1", "services", name] => Self::Status(Status::Service(decoded(name))),
            ["status", "v1", "simple"] => Self::Status(Status::Simple),
            ["metrics", "v2", "list"] => Self::Status(Status::MetricList),
            ["metrics", "v2", "read", mbean] => metric(mbean, None),
            ["metrics", "v2", "read", mbean, attribute] => metric(mbean, Some(attribute)),
            _ => Self::Outside,
        }
    }
}

fn metric(mbean: &str, attribute: Option<&str>) -> Route {
    Route::Status(Status::Metric {
        mbean: decoded(mbean),
        attribute: attribute.map(decoded),
    })
}

fn query(segments: &[&str]) -> Route {
    let Some((first, rest)) = segments.split_first() else {
        return Route::Unknown;
    };
    if UNSERVED.contains(first) {
        return Route::Unserved;
    }
    if *first == "event-counts" && rest.is_empty() {
        return Route::EventCounts;
    }
    let Some(entity) = Entity::named(first).filter(|it| it.path_name() == *first) else {
        return Route::Unknown;
    };
    if !rest.iter().all(|segment| is_literal(segment)) {
        return Route::Unknown;
    }
    let below = |key: &str| Parent {
        entity,
        key: decoded(key),
    };
    match (entity, rest) {
        (_, []) => rows(entity, None, &[], &[]),
        (Entity::Facts, rest) => rows(entity, None, &["name", "value"], rest),
        (Entity::Resources, rest) => rows(entity, None, &["type", "title"], rest),
        (Entity::Nodes | Entity::Factsets | Entity::Catalogs | Entity::Environments, [key]) => {
            Route::Record(below(key))
        }
        (Entity::Nodes, [key, "facts", rest @ ..]) => {
            rows(Entity::Facts, Some(below(key)), &["name", "value"], rest)
        }
        (Entity::Nodes | Entity::Catalogs, [key, "resources", rest @ ..]) => rows(
            Entity::Resources,
            Some(below(key)),
            &["type", "title"],
            rest,
        ),
        (Entity::Reports, [hash, "logs"]) => part(hash, "logs"),
        (Entity::Reports, [hash, "metrics"]) => part(hash, "metrics"),
        (Entity::Reports, [_, "events"])
        | (Entity::Environments, [_, "facts" | "resources" | "reports" | "events", ..])
        | (Entity::Catalogs, [_, "edges"])
        | (Entity::Factsets, [_, "facts"]) => Route::Unserved,
        _ => Route::Unknown,
    }
}

fn part(hash: &str, column: &'static str) -> Route {
    let hash = decoded(hash);
    Route::ReportPart { hash, column }
}

fn rows(
    entity: Entity,
    parent: Option<Parent>,
    columns: &[&'static str],
    values: &[&str],
) -> Route {
    if values.len() > columns.len() {
        return Route::Unknown;
    }
    let pairs = columns.iter().zip(values);
    let narrowed = pairs.map(|(column, value)| (*column, decoded(value)));
    Route::Rows {
        entity,
        parent,
        narrowed: narrowed.collect(),
    }
}

/// Whether PuppetDB's router takes the segment as it stands, before decoding.
fn is_literal(segment: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_%.~:-".contains(&byte);
    segment.bytes().all(plain)
}

fn decoded(segment: &str) -> String {
    percent_decode_str(segment).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn below(entity: Entity, key: &str) -> Parent {
        let key = key.to_owned();
        Parent { entity, key }
    }

    #[test]
    fn paths_lead_to_rows_and_records() {
        let rows = |entity, parent, narrowed: &[(&'static str, &str)]| Route::Rows {
            entity,
            parent,
            narrowed: narrowed
                .iter()
                .map(|(k, v)| (*k, (*v).to_owned()))
                .collect(),
        };
        for (path, route) in [
            ("nodes", rows(Entity::Nodes, None, &[])),
            ("nodes/a.b", Route::Record(below(Entity::Nodes, "a.b"))),
            ("nodes/", Route::Record(below(Entity::Nodes, ""))),
            ("facts/os", rows(Entity::Facts, None, &[("name", "os")])),
            (
                "facts/os/x%2Fy",
                rows(Entity::Facts, None, &[("name", "os"), ("value", "x/y")]),
            ),
            (
                "nodes/a/facts/os",
                rows(
                    Entity::Facts,
                    Some(below(Entity::Nodes, "a")),
                    &[("name", "os")],
                ),
            ),
            (
                "resources/File/%2Fetc%2Fmotd",
                rows(
                    Entity::Resources,
                    None,
                    &[("type", "File"), ("title", "/etc/motd")],
                ),
            ),
            ("event-counts", Route::EventCounts),
            ("edges", Route::Unserved),
            ("reports/abc", Route::Unknown),
            ("reports/abc/events", Route::Unserved),
            ("facts/a/b/c", Route::Unknown),
            ("facts/a+b", Route::Unknown),
            ("fact_names", Route::Unknown),
            ("%6eodes", Route::Unknown),
            ("", Route::Unknown),
        ] {
            assert_eq!(
                Route::parse(&format!("/pdb/query/v4/{path}")),
                route,
                "{path}"
            );
        }
    }

    #[test]
    fn other_prefixes_have_their_own_routes() {
        for (path, route) in [
            ("/pdb/query/v4", Route::Root),
            ("/pdb/meta/v1/version", Route::Version),
            ("/pdb/meta/v1/nope", Route::Unknown),
            ("/status/v1/services", Route::Status(Status::Services)),
            ("/metrics/v2/read/a%3Ab/Value", metric("a:b", Some("Value"))),
            ("//pdb/query/v4/nodes", Route::Outside),
            ("/", Route::Outside),
        ] {
            assert_eq!(Route::parse(path), route, "{path}");
        }
    }
}
