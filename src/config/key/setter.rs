//! How the value of a key gets into its field.

use super::super::Config;
use super::super::value::ValueError;

/// Reads a text into the field of a key.
pub(in crate::config) type SetScalar = fn(&mut Config, &str) -> Result<(), ValueError>;

/// How a key is set.
#[derive(Debug)]
pub(in crate::config) enum Setter {
    /// From one scalar.
    Scalar(SetScalar),
    /// The same, of several values with commas between them, which a file may spell as a list.
    List(SetScalar),
    /// The list of backends, which a file spells otherwise than a variable.
    Backends,
}
