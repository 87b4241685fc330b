//! What a client can get wrong about paging.

/// A `limit`, `offset` or `order_by` that is answered with `400` before any backend is asked
/// (R150, R151, R152). Its text names the culprit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PagingError {
    /// `limit` is not a whole number in its range.
    #[error("limit takes a whole number from 1 to 2147483647, not '{0}'")]
    Limit(String),
    /// `offset` is not a whole number in its range.
    #[error("offset takes a whole number from 0 to 2147483647, not '{0}'")]
    Offset(String),
    /// `order_by` does not begin with a JSON value.
    #[error("order_by '{text}' cannot be read as JSON: {problem}")]
    NotJson {
        /// The parameter as it came.
        text: String,
        /// What the JSON reader stumbled over, and where.
        problem: String,
    },
    /// `order_by` is JSON, but no array.
    #[error("order_by takes an array such as [{{\"field\": \"certname\"}}], not {0}")]
    NotAnArray(String),
    /// An item of `order_by` is no object.
    #[error("each item of order_by is an object such as {{\"field\": \"certname\"}}, not {0}")]
    NotAnObject(String),
    /// An item has a key other than `field` and `order`.
    #[error("order_by knows the keys 'field' and 'order', but {item} has '{key}'")]
    UnknownKey {
        /// The surplus key.
        key: String,
        /// The item, as JSON.
        item: String,
    },
    /// An item does not say which field it is about.
    #[error("{0} in order_by has no 'field'")]
    MissingField(String),
    /// An item's `field` is not text. PuppetDB itself fails with 500 here.
    #[error("'field' in order_by takes a column's name, not {0}")]
    FieldNotText(String),
    /// An item's `order` is neither `asc` nor `desc`.
    #[error("'order' in order_by takes 'asc' or 'desc', not {0}")]
    Direction(String),
}
