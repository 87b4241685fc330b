//! Bodies that cannot take part in a merge.

use crate::json::ScanError;

/// Why a body is not what its route promises. The backend that sent it has failed (ruling 12).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The text breaks JSON's grammar, is cut short or is not UTF-8.
    #[error("the body is not JSON: error at line {line}, column {column}")]
    Malformed {
        /// Line of the first bad byte, from 1.
        line: usize,
        /// Column of the first bad byte, from 1.
        column: usize,
    },
    /// The structure scanner refused the text.
    #[error("the body is not JSON: {0}")]
    Scan(#[from] ScanError),
    /// Objects inside objects beyond what a merge follows.
    #[error("the body nests objects more than {limit} deep")]
    TooDeep {
        /// The deepest level that is still merged.
        limit: usize,
    },
    /// Valid JSON, yet no `{"version": "<version>"}`.
    #[error("the body states no version")]
    NotAVersion,
    /// Valid JSON, yet no array of strings.
    #[error("the body is not an array of names")]
    NotNames,
    /// Valid JSON, yet no Jolokia answer with a `status` and, where that is 2xx, a `value`.
    #[error("the body is not a Jolokia answer")]
    NotAnEnvelope,
    /// A sound Jolokia answer that reports an error, while others report none (R256).
    #[error("Jolokia reports an error in it")]
    ReportsAnError,
    /// Valid JSON, yet no object.
    #[error("the body is not an object")]
    NotAnObject,
    /// Records that stand otherwise than they were asked for, found when others had been sent on.
    #[error("its records are not in the order that was asked for")]
    NotInOrder,
}

impl Damage {
    /// Tells a text that is no JSON from one of the wrong shape, which is `shape`.
    pub(super) fn of(error: &serde_json::Error, shape: Self) -> Self {
        match error.classify() {
            serde_json::error::Category::Data => shape,
            _ => Self::Malformed {
                line: error.line(),
                column: error.column(),
            },
        }
    }
}

/// Bodies as a merge could read them, each with its place in the configured order.
pub(super) type Readable<T> = Vec<(usize, T)>;

/// Bodies that no merge can use, each with its place in the configured order.
pub type Damaged = Vec<(usize, Damage)>;

/// Reads every body and keeps the damaged ones apart.
pub(super) fn sift<'b, T>(
    bodies: &[&'b [u8]],
    read: impl Fn(&'b [u8]) -> Result<T, Damage>,
) -> (Readable<T>, Damaged) {
    let (mut readable, mut damaged) = (Vec::new(), Vec::new());
    for (index, body) in bodies.iter().enumerate() {
        match read(body) {
            Ok(value) => readable.push((index, value)),
            Err(damage) => damaged.push((index, damage)),
        }
    }
    (readable, damaged)
}
