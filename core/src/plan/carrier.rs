//! What keeps a record in a set that names no node.
//!
//! PuppetDB keeps an environment, a fact's name or a package for as long as a node's data names it.
//! Under `merge: exact` that must be data of the node's owner: a name that only stale copies hold is
//! in no list.

/// An entity whose records name those of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Carrier {
    /// The columns of the set, as `in` takes them.
    listed: &'static str,
    /// The entity, as in `select_<entity>`.
    entity: &'static str,
    /// Its columns, which hold the same in the same order.
    held: &'static str,
    whose: Whose,
}

/// Which of an entity's records count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// Those of nodes that the backend owns, if they meet this condition too.
    Owned(Option<&'static str>),
    /// All that meet this condition: history has no owner.
    All(&'static str),
}

/// Runs of plans are reports too, which PuppetDB hides unless they are asked for.
const ANY_REPORT: &str = r#"["=","type","any"]"#;

/// A fact is listed for what is in it (trap T52).
const NOT_EMPTY: &str = r#"["not",["or",["=","value",{}],["=","value",[]]]]"#;

const fn of_node(entity: &'static str, held: &'static str) -> Carrier {
    Carrier {
        listed: r#""name""#,
        entity,
        held,
        whose: Whose::Owned(None),
    }
}

const fn of_reports(held: &'static str) -> Carrier {
    Carrier {
        whose: Whose::All(ANY_REPORT),
        ..of_node("reports", held)
    }
}

/// What names an environment.
pub(super) const ENVIRONMENTS: &[Carrier] = &[
    of_node("factsets", r#""environment""#),
    of_node("catalogs", r#""environment""#),
    of_reports(r#""environment""#),
];

/// What names a producer.
pub(super) const PRODUCERS: &[Carrier] = &[
    of_node("factsets", r#""producer""#),
    of_node("catalogs", r#""producer""#),
    of_reports(r#""producer""#),
];

const PACKAGE: &str = r#"["package_name","version","provider"]"#;

/// What names a package.
pub(super) const PACKAGES: &[Carrier] = &[Carrier {
    listed: PACKAGE,
    ..of_node("package_inventory", PACKAGE)
}];

/// What names a fact.
pub(super) const FACT_NAMES: &[Carrier] = &[Carrier {
    whose: Whose::Owned(Some(NOT_EMPTY)),
    ..of_node("facts", r#""name""#)
}];

/// AST that holds for what one of `carriers` names, given AST that selects the records of owned
/// nodes. In a subquery it selects those of inactive nodes too.
pub(super) fn clause(carriers: &[Carrier], owned: &str) -> String {
    let named = |carrier: &Carrier| {
        let Carrier {
            listed,
            entity,
            held,
            whose,
        } = carrier;
        let condition = match whose {
            Whose::Owned(None) => owned.to_owned(),
            Whose::Owned(Some(condition)) => format!("[\"and\",{owned},{condition}]"),
            Whose::All(condition) => (*condition).to_owned(),
        };
        format!("[\"in\",{listed},[\"extract\",{held},[\"select_{entity}\",{condition}]]]")
    };
    let named: Vec<_> = carriers.iter().map(named).collect();
    match &*named {
        [single] => single.clone(),
        several => format!("[\"or\",{}]", several.join(",")),
    }
}
