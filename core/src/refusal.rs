//! The client's mistakes that pdbmux answers itself, before any backend is asked.

use crate::merge::fold::FoldRefusal;
use crate::paging::PagingError;

/// Why a request is answered with `400`. Its text is the body of that answer: one sentence that
/// names the culprit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A malformed `limit`, `offset` or `order_by`.
    #[error(transparent)]
    Paging(#[from] PagingError),
    /// A projection whose rows cannot be combined.
    #[error(transparent)]
    Fold(#[from] FoldRefusal),
    /// An `order_by` of grouped rows by a column that they do not have.
    #[error("order_by names the column '{field}', which the grouped rows do not have")]
    OrderByAbsent {
        /// The column.
        field: String,
    },
    /// An `order_by` of fact names by something other than the name (R088).
    #[error("order_by names the column '{field}', but fact names have no column besides 'name'")]
    NotAFactNameColumn {
        /// The column.
        field: String,
    },
    /// Distinct resources asked for together with a function (R099).
    #[error("distinct_resources cannot be combined with a function or group_by in an extract")]
    DistinctAggregate,
    /// The query is nested deeper than pdbmux follows.
    #[error("the query is nested deeper than {limit} levels")]
    QueryTooDeep {
        /// The deepest nesting that is followed.
        limit: usize,
    },
    /// A `%` that is not followed by two hexadecimal digits. PuppetDB would drop the parameter's
    /// value and return everything (ruling 13, trap T61).
    #[error("the parameter '{parameter}' holds a malformed percent-escape")]
    MalformedEscape {
        /// The parameter as it was written.
        parameter: String,
    },
    /// More parameters than any client sends.
    #[error("the request has more than {limit} parameters")]
    TooManyParameters {
        /// The most that are read.
        limit: usize,
    },
    /// A body that is no JSON object.
    #[error("a POST holds its parameters in a JSON object, which this body is not: {problem}")]
    BodyNotAnObject {
        /// What the JSON reader stumbled over, and where.
        problem: String,
    },
    /// Something else in a body where PuppetDB takes an array alone.
    #[error("'{name}' takes an array in a body")]
    BodyNotAnArray {
        /// The parameter.
        name: String,
    },
    /// A query in a body that is neither AST nor text.
    #[error("'query' takes an array or text in a body")]
    BodyQuery,
    /// A text in a body with an escape that stands for no character.
    #[error("'{name}' holds an escape that stands for no character")]
    BodyNotUnicode {
        /// The parameter.
        name: String,
    },
    /// A POST with parameters in its URL, which PuppetDB takes without reading them (section 1.7 of
    /// the wire notes).
    #[error("a POST takes its parameters from its body, but the URL holds some too")]
    PostWithUrlParameters,
    /// A `%` in the path that is not followed by two hexadecimal digits.
    #[error("the path holds a malformed percent-escape")]
    MalformedPath,
    /// A path with a dot segment, which could leave the routed surface (ruling 13).
    #[error("the path holds a dot segment")]
    DotSegment,
}
