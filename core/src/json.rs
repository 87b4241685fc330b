//! Reading JSON without building a tree.
//!
//! A backend's answer can be hundreds of megabytes and leaves pdbmux byte for byte as it came, so
//! nothing here allocates per record or changes a byte. [`Records`] finds where the records of an
//! array begin and end and where the few members lie that a decision needs; [`Elements`] and
//! [`Members`] do the same for one level of any array or object.
//!
//! [`Arriving`] does what [`Records`] does while the text is still on its way. Containers are read 64
//! bytes at a time where the processor can ([`Level`]), and what the records of an array have in
//! common is compared instead of read again; neither changes what is found.
//!
//! What is checked is *structure*, at every level: brackets that match, commas and colons in their
//! places, keys that are strings, strings that close, the literals letter by letter, numbers made of
//! a number's bytes and ending in a digit, nothing but blanks around the one value, and at most 1024
//! levels within a value. A body that was cut anywhere is therefore refused, and so are a byte order
//! mark, a second document and a comma too many.
//!
//! What is not checked is the inside of a string (its escapes, control characters and UTF-8) and the
//! grammar of a number (`01`, `1e+-5`): a value reaches the client byte for byte, so reading it more
//! strictly would change no answer, and would cost half of the speed. [`unquote`] does read a string
//! strictly, and [`check_utf8`] a whole body.

mod arriving;
#[cfg(any(
    target_arch = "x86_64",
    all(target_arch = "aarch64", target_endian = "little")
))]
mod blocks;
mod boundary;
mod cursor;
mod error;
mod neighbour;
mod nesting;
mod records;
mod shape;
mod simd;
mod text;

pub use arriving::{Arrived, Arriving, Origin};
pub use error::{ScanError, ScanProblem};
pub use records::{Elements, Members, Records, Span};
pub use simd::Level;
pub(crate) use text::spells;
pub use text::{Kind, check_utf8, kind, quote, unquote};
