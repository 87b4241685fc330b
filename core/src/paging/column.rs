//! How PuppetDB stores a column, which decides how it sorts.

/// How the values of a column compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Text, timestamp, number, boolean or array of text. A `null` is SQL's and the greatest.
    Plain,
    /// `jsonb` that always has a value: a `null` is JSON's own and sorts near the front.
    Jsonb,
    /// `jsonb` that a record may be without: a `null` is SQL's and the greatest.
    NullableJsonb,
    /// A value stored as its JSON text, `null` included, which sorts as that text.
    JsonText,
    /// A fact path stored as one string, which sorts as that string.
    FactPath,
    /// The depth of a fact path, which a record shows by its path alone.
    PathDepth,
}

/// Tells how `field` of `entity` compares, as PuppetDB's own table of columns says.
///
/// `entity` is spelled as in a path (`fact-paths`) or in a query (`fact_paths`). What is not known
/// to be otherwise is [`ColumnKind::Plain`], the results of functions included.
pub fn column_kind(entity: &str, field: &str) -> ColumnKind {
    match (entity, field) {
        ("fact-paths" | "fact_paths", "path") => ColumnKind::FactPath,
        ("fact-paths" | "fact_paths", "depth") => ColumnKind::PathDepth,
        ("events", "old_value" | "new_value") => ColumnKind::JsonText,
        (_, "value" | "parameters" | "facts") => ColumnKind::Jsonb,
        // Taken out of a document by key, so that a node without it has an SQL null.
        (_, "trusted") => ColumnKind::NullableJsonb,
        (_, path) if path.contains('.') => ColumnKind::NullableJsonb,
        _ => ColumnKind::Plain,
    }
}

/// Where a record of `entity` holds the column that `order_by` calls `field`: a member, and the
/// member of that object if the column lies one level down.
///
/// Event counts are ordered by the names of SQL columns that their records nest (T22).
pub(super) fn place<'f>(entity: &str, field: &'f str) -> (&'f str, Option<&'static str>) {
    match (entity, field) {
        ("event-counts" | "event_counts", "certname" | "resource_title" | "containing_class") => {
            ("subject", Some("title"))
        }
        ("event-counts" | "event_counts", "resource_type") => ("subject", Some("type")),
        ("fact-paths" | "fact_paths", "depth") => ("path", None),
        _ => (field, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_compare_as_they_are_stored() {
        let cases = [
            ("nodes", "certname", ColumnKind::Plain),
            ("facts", "value", ColumnKind::Jsonb),
            ("fact-contents", "value", ColumnKind::Jsonb),
            ("fact_contents", "path", ColumnKind::Plain),
            ("fact-paths", "path", ColumnKind::FactPath),
            ("fact_paths", "path", ColumnKind::FactPath),
            ("resources", "parameters", ColumnKind::Jsonb),
            ("resources", "parameters.ensure", ColumnKind::NullableJsonb),
            ("inventory", "facts", ColumnKind::Jsonb),
            ("inventory", "facts.os.family", ColumnKind::NullableJsonb),
            ("inventory", "trusted", ColumnKind::NullableJsonb),
            ("events", "new_value", ColumnKind::JsonText),
            ("events", "old_value", ColumnKind::JsonText),
            ("events", "containment_path", ColumnKind::Plain),
            ("facts", "avg", ColumnKind::Plain),
        ];
        for (entity, field, expected) in cases {
            assert_eq!(column_kind(entity, field), expected, "{entity} {field}");
        }
    }
}
