//! What can be asked of each entity (wire 4).

/// An entity and its columns.
#[derive(Debug)]
pub(super) struct Entity {
    /// Its route.
    pub(super) path: &'static str,
    /// Its columns, but receipt times: these differ from the union's anyway.
    pub(super) columns: &'static [Column],
    /// Whether `node_state` may be asked of it.
    pub(super) has_state: bool,
    /// Whether it is related to nodes by certname.
    pub(super) relates: bool,
    /// Whether the root route answers it (wire 5: not producers, fact names, counts).
    pub(super) at_root: bool,
}

/// A column.
#[derive(Debug)]
pub(super) struct Column {
    /// Its name.
    pub(super) name: &'static str,
    /// What it holds.
    pub(super) kind: Kind,
    /// Whether records show it; the others can be filtered by alone.
    pub(super) shown: bool,
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Time,
    Flag,
    Number,
    Json,
}

impl Entity {
    /// Columns to order by. Not JSON of any kind: two versions may spell equal values otherwise.
    pub(super) fn orderable(&self) -> impl Iterator<Item = &'static str> {
        let plain = self
            .columns
            .iter()
            .filter(|it| it.shown && it.kind != Kind::Json);
        plain.map(|it| it.name)
    }
}

impl Column {
    /// Whether groups can be made of it.
    pub(super) fn groups(&self) -> bool {
        self.kind != Kind::Json || self.name == "value"
    }
}

const fn of(kind: Kind, name: &'static str) -> Column {
    Column {
        name,
        kind,
        shown: true,
    }
}

const fn hidden(kind: Kind, name: &'static str) -> Column {
    Column {
        name,
        kind,
        shown: false,
    }
}

use Kind::{Flag, Json, Number, Text, Time};

const CERTNAME: Column = of(Text, "certname");
const ENVIRONMENT: Column = of(Text, "environment");

/// All of them.
pub(super) static ENTITIES: &[Entity] = &[
    Entity {
        path: "nodes",
        columns: &[
            CERTNAME,
            of(Text, "facts_environment"),
            of(Text, "catalog_environment"),
            of(Text, "report_environment"),
            of(Time, "report_timestamp"),
            of(Text, "latest_report_hash"),
            of(Flag, "latest_report_noop"),
            of(Flag, "latest_report_noop_pending"),
            of(Text, "latest_report_status"),
            of(Text, "cached_catalog_status"),
        ],
        has_state: true,
        relates: true,
        at_root: true,
    },
    Entity {
        path: "facts",
        columns: &[CERTNAME, ENVIRONMENT, of(Text, "name"), of(Json, "value")],
        has_state: true,
        relates: true,
        at_root: true,
    },
    Entity {
        path: "fact-contents",
        columns: &[CERTNAME, ENVIRONMENT, of(Text, "name"), of(Json, "value")],
        has_state: true,
        relates: true,
        at_root: true,
    },
    Entity {
        path: "factsets",
        columns: &[
            CERTNAME,
            ENVIRONMENT,
            of(Time, "producer_timestamp"),
            of(Text, "producer"),
            of(Text, "hash"),
        ],
        has_state: true,
        relates: true,
        at_root: true,
    },
    Entity {
        path: "inventory",
        columns: &[CERTNAME, ENVIRONMENT],
        has_state: true,
        relates: true,
        at_root: true,
    },
    Entity {
        path: "catalogs",
        columns: &[
            CERTNAME,
            of(Text, "version"),
            ENVIRONMENT,
            of(Text, "hash"),
            of(Text, "transaction_uuid"),
            of(Time, "producer_timestamp"),
            of(Text, "producer"),
        ],
        has_state: false,
        relates: true,
        at_root: true,
    },
    Entity {
        path: "resources",
        columns: &[
            CERTNAME,
            ENVIRONMENT,
            of(Text, "resource"),
            of(Text, "type"),
            of(Text, "title"),
            of(Flag, "exported"),
            of(Text, "file"),
            of(Number, "line"),
            hidden(Text, "tag"),
        ],
        has_state: true,
        relates: true,
        at_root: true,
    },
    Entity {
        path: "edges",
        columns: &[
            CERTNAME,
            of(Text, "relationship"),
            of(Text, "source_type"),
            of(Text, "source_title"),
            of(Text, "target_type"),
            of(Text, "target_title"),
        ],
        has_state: true,
        relates: true,
        at_root: true,
    },
    Entity {
        path: "reports",
        columns: &[
            of(Text, "hash"),
            CERTNAME,
            ENVIRONMENT,
            of(Text, "status"),
            of(Flag, "noop"),
            of(Flag, "noop_pending"),
            of(Text, "puppet_version"),
            of(Number, "report_format"),
            of(Text, "configuration_version"),
            of(Time, "start_time"),
            of(Time, "end_time"),
            of(Time, "producer_timestamp"),
            of(Text, "producer"),
            of(Text, "catalog_uuid"),
            of(Text, "cached_catalog_status"),
            hidden(Flag, "latest_report?"),
        ],
        has_state: false,
        relates: true,
        at_root: true,
    },
    Entity {
        path: "events",
        columns: &[
            CERTNAME,
            ENVIRONMENT,
            of(Text, "report"),
            of(Text, "configuration_version"),
            of(Time, "run_end_time"),
            of(Time, "timestamp"),
            of(Text, "status"),
            of(Text, "resource_type"),
            of(Text, "resource_title"),
            of(Text, "property"),
            of(Text, "message"),
            of(Text, "file"),
            of(Number, "line"),
            of(Text, "containing_class"),
            hidden(Flag, "latest_report?"),
        ],
        has_state: false,
        relates: true,
        at_root: true,
    },
    Entity {
        path: "event-counts",
        columns: EVENTS,
        has_state: false,
        relates: false,
        at_root: false,
    },
    Entity {
        path: "aggregate-event-counts",
        columns: EVENTS,
        has_state: false,
        relates: false,
        at_root: false,
    },
    Entity {
        path: "environments",
        columns: &[of(Text, "name")],
        has_state: false,
        relates: false,
        at_root: true,
    },
    Entity {
        path: "producers",
        columns: &[of(Text, "name")],
        has_state: false,
        relates: false,
        at_root: false,
    },
    Entity {
        path: "packages",
        columns: &[
            of(Text, "package_name"),
            of(Text, "version"),
            of(Text, "provider"),
        ],
        has_state: false,
        relates: false,
        at_root: true,
    },
    Entity {
        path: "package-inventory",
        columns: &[
            CERTNAME,
            of(Text, "package_name"),
            of(Text, "version"),
            of(Text, "provider"),
        ],
        has_state: true,
        relates: false,
        at_root: true,
    },
    Entity {
        path: "fact-paths",
        columns: &[of(Text, "name"), of(Text, "type"), hidden(Number, "depth")],
        has_state: false,
        relates: false,
        at_root: true,
    },
    Entity {
        path: "catalog-input-contents",
        columns: &[
            CERTNAME,
            of(Time, "producer_timestamp"),
            of(Text, "catalog_uuid"),
            of(Text, "name"),
            of(Text, "type"),
        ],
        has_state: true,
        relates: false,
        at_root: true,
    },
];

const EVENTS: &[Column] = &[
    CERTNAME,
    ENVIRONMENT,
    of(Time, "timestamp"),
    of(Text, "status"),
    of(Text, "resource_type"),
    of(Text, "resource_title"),
    of(Text, "containing_class"),
    hidden(Flag, "latest_report?"),
];
