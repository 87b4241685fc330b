//! Reading JSON without building a tree.
//!
//! A backend's answer can be hundreds of megabytes and leaves pdbmux byte for byte as it came, so
//! nothing here allocates per record or changes a byte. [`Records`] finds where the records of an
//! array begin and end and where the few members lie that a decision needs; [`Elements`] and
//! [`Members`] do the same for one level of any array or object.
//!
//! What is checked is *structure*: brackets, commas, colons, closed strings, literals. A body that
//! was cut anywhere, or that is not one JSON array, is refused. The inside of numbers and of string
//! escapes is passed on unread, since it reaches the client unchanged anyway.

mod cursor;
mod records;
mod text;

pub use cursor::{ScanError, ScanProblem};
pub use records::{Elements, Members, Records, Span};
pub(crate) use text::key_is;
pub use text::{Kind, kind, quote, unquote};
