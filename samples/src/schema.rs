//! The entities of the query API and their columns, in the order in which PuppetDB writes them.

/// What a query asks about; each has a list of records in an [`Estate`](crate::Estate).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Entity {
    /// `/pdb/query/v4/nodes`
    Nodes,
    /// `/pdb/query/v4/facts`
    Facts,
    /// `/pdb/query/v4/fact-names`: answered from the names in [`Entity::Facts`].
    FactNames,
    /// `/pdb/query/v4/factsets`
    Factsets,
    /// `/pdb/query/v4/inventory`
    Inventory,
    /// `/pdb/query/v4/environments`
    Environments,
    /// `/pdb/query/v4/reports`
    Reports,
    /// `/pdb/query/v4/events`, and what `/event-counts` counts.
    Events,
    /// `/pdb/query/v4/resources`
    Resources,
    /// `/pdb/query/v4/catalogs`
    Catalogs,
}

/// How a column's values compare and are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Timestamp,
    Boolean,
    Number,
    /// A JSON value that is compared as a whole, such as a fact's.
    Json,
    /// A JSON object that dotted paths lead into.
    Tree,
    /// Returned, but this sample neither compares nor sorts it: lists of texts, and the values of
    /// events, which PuppetDB keeps as JSON text.
    Opaque,
    /// The query-only `tag` of a resource, which looks into its `tags`.
    Tag,
    /// A JSON document that is returned only.
    Document,
}

/// Where a column may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// In answers, filters and `order_by`.
    Full,
    /// In filters only.
    QueryOnly,
    /// In answers only.
    AnswerOnly,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) role: Use,
}

impl Column {
    pub(crate) fn is_queryable(&self) -> bool {
        self.role != Use::AnswerOnly
    }

    pub(crate) fn is_returned(&self) -> bool {
        self.role != Use::QueryOnly
    }
}

const fn full(name: &'static str, kind: Kind) -> Column {
    let role = Use::Full;
    Column { name, kind, role }
}

const fn text(name: &'static str) -> Column {
    full(name, Kind::Text)
}

const fn time(name: &'static str) -> Column {
    full(name, Kind::Timestamp)
}

const fn flag(name: &'static str) -> Column {
    full(name, Kind::Boolean)
}

const fn query_only(name: &'static str, kind: Kind) -> Column {
    let role = Use::QueryOnly;
    Column { name, kind, role }
}

const fn document(name: &'static str) -> Column {
    Column {
        name,
        kind: Kind::Document,
        role: Use::AnswerOnly,
    }
}

impl Entity {
    /// Every entity, for loops over all of them.
    pub const ALL: [Self; 10] = [
        Self::Nodes,
        Self::Facts,
        Self::FactNames,
        Self::Factsets,
        Self::Inventory,
        Self::Environments,
        Self::Reports,
        Self::Events,
        Self::Resources,
        Self::Catalogs,
    ];

    /// The entity's name in paths, such as `fact-names`.
    pub const fn path_name(self) -> &'static str {
        match self {
            Self::Nodes => "nodes",
            Self::Facts => "facts",
            Self::FactNames => "fact-names",
            Self::Factsets => "factsets",
            Self::Inventory => "inventory",
            Self::Environments => "environments",
            Self::Reports => "reports",
            Self::Events => "events",
            Self::Resources => "resources",
            Self::Catalogs => "catalogs",
        }
    }

    /// The entity of this name, written with `-` or with `_` as in `select_fact_names`.
    pub fn named(name: &str) -> Option<Self> {
        let name = name.replace('_', "-");
        Self::ALL.into_iter().find(|it| it.path_name() == name)
    }

    /// Whether the plain collection leaves out nodes that are deactivated or expired.
    pub(crate) const fn hides_inactive(self) -> bool {
        match self {
            Self::Nodes | Self::Facts | Self::Factsets | Self::Inventory | Self::Resources => true,
            Self::FactNames
            | Self::Environments
            | Self::Reports
            | Self::Events
            | Self::Catalogs => false,
        }
    }

    /// PuppetDB's word for one record, and the column that its path segment holds.
    pub(crate) const fn key(self) -> (&'static str, &'static str) {
        match self {
            Self::Nodes => ("node", "certname"),
            Self::Facts | Self::FactNames => ("fact", "name"),
            Self::Factsets => ("factset", "certname"),
            Self::Inventory => ("inventory", "certname"),
            Self::Environments => ("environment", "name"),
            Self::Reports => ("report", "hash"),
            Self::Events => ("event", "report"),
            Self::Resources => ("resource", "resource"),
            Self::Catalogs => ("catalog", "certname"),
        }
    }

    /// Whether its records belong to a node.
    pub(crate) fn has_certname(self) -> bool {
        self.column("certname").is_some()
    }

    pub(crate) fn column(self, name: &str) -> Option<&'static Column> {
        self.columns().iter().find(|column| column.name == name)
    }

    pub(crate) const fn columns(self) -> &'static [Column] {
        match self {
            Self::Nodes => NODES,
            Self::Facts => FACTS,
            Self::FactNames | Self::Environments => NAMES,
            Self::Factsets => FACTSETS,
            Self::Inventory => INVENTORY,
            Self::Reports => REPORTS,
            Self::Events => EVENTS,
            Self::Resources => RESOURCES,
            Self::Catalogs => CATALOGS,
        }
    }
}

// Rows wider than eight columns come in the order of Clojure's hash maps with keyword keys, which looks
// random but is the same on every server.

const NODES: &[Column] = &[
    time("deactivated"),
    text("latest_report_hash"),
    text("facts_environment"),
    text("cached_catalog_status"),
    text("report_environment"),
    flag("latest_report_corrective_change"),
    text("catalog_environment"),
    time("facts_timestamp"),
    flag("latest_report_noop"),
    time("expired"),
    flag("latest_report_noop_pending"),
    time("report_timestamp"),
    text("certname"),
    time("catalog_timestamp"),
    text("latest_report_job_id"),
    text("latest_report_status"),
];

const FACTS: &[Column] = &[
    text("certname"),
    text("environment"),
    text("name"),
    full("value", Kind::Json),
];

const NAMES: &[Column] = &[text("name")];

const FACTSETS: &[Column] = &[
    time("timestamp"),
    document("facts"),
    text("certname"),
    text("hash"),
    time("producer_timestamp"),
    text("producer"),
    text("environment"),
];

const INVENTORY: &[Column] = &[
    text("certname"),
    time("timestamp"),
    text("environment"),
    full("facts", Kind::Tree),
    full("trusted", Kind::Tree),
];

const REPORTS: &[Column] = &[
    text("catalog_uuid"),
    time("receive_time"),
    text("producer"),
    text("hash"),
    text("transaction_uuid"),
    text("puppet_version"),
    flag("noop"),
    flag("corrective_change"),
    document("logs"),
    full("report_format", Kind::Number),
    time("start_time"),
    time("producer_timestamp"),
    text("type"),
    text("cached_catalog_status"),
    time("end_time"),
    document("resource_events"),
    text("status"),
    text("configuration_version"),
    text("environment"),
    text("code_id"),
    flag("noop_pending"),
    text("certname"),
    document("metrics"),
    text("job_id"),
    query_only("latest_report?", Kind::Boolean),
];

const EVENTS: &[Column] = &[
    full("new_value", Kind::Opaque),
    text("report"),
    flag("corrective_change"),
    time("run_start_time"),
    text("property"),
    text("name"),
    text("file"),
    full("old_value", Kind::Opaque),
    text("containing_class"),
    full("line", Kind::Number),
    text("resource_type"),
    text("status"),
    text("configuration_version"),
    text("resource_title"),
    text("environment"),
    time("timestamp"),
    time("run_end_time"),
    time("report_receive_time"),
    full("containment_path", Kind::Opaque),
    text("certname"),
    text("message"),
    query_only("latest_report?", Kind::Boolean),
];

const RESOURCES: &[Column] = &[
    full("tags", Kind::Opaque),
    text("file"),
    text("type"),
    text("title"),
    full("line", Kind::Number),
    text("resource"),
    text("environment"),
    text("certname"),
    full("parameters", Kind::Tree),
    flag("exported"),
    query_only("tag", Kind::Tag),
];

const CATALOGS: &[Column] = &[
    text("catalog_uuid"),
    text("producer"),
    text("hash"),
    text("transaction_uuid"),
    time("producer_timestamp"),
    text("environment"),
    text("code_id"),
    text("version"),
    document("resources"),
    text("certname"),
    document("edges"),
    text("job_id"),
];
